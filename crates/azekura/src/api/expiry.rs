//! Tables and records with a time to live.

use crate::base::clock::millis;
use crate::base::error::{Error, Result};
use crate::base::key::{KeyBuf, TableKind};
use crate::engine::{Db, Table};
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use crate::txn::get::lookup;
use crate::txn::{Lifetime, check_key, expiry_after, lifetime_ms};
use std::time::{Duration, SystemTime};

impl Db {
    /// The table of a name, made if there is none, whose records are gone by themselves after some time: each
    /// that is put lives so long from then on, unless the put says otherwise. ([`Table::set_usual_ttl`]
    /// changes that.)
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-cache-{}.azk", std::process::id()));
    /// use azekura::{Db, Lifetime, Options, TableKind};
    /// use std::time::Duration;
    /// let db = Db::open(&path, Options::new())?;
    /// let pages = db.expiring_table("pages", TableKind::Hash, Duration::from_secs(60))?;
    /// pages.put("/", "<html>")?;                                      // for a minute
    /// pages.put_for("/news", "<html>", Duration::from_secs(5))?;
    /// pages.put_for("/imprint", "<html>", Duration::MAX)?;            // until it is removed
    /// assert!(matches!(pages.ttl("/")?, Some(Lifetime::Left(left)) if left.as_secs() > 30));
    /// assert_eq!(pages.ttl("/imprint")?, Some(Lifetime::Unlimited));
    /// # drop(pages); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WrongType` if the table is of the other kind, or its records live longer or shorter; as
    /// [`create_expiring_table`](Db::create_expiring_table).
    pub fn expiring_table(&self, name: &str, kind: TableKind, ttl: Duration) -> Result<Table> {
        let table = loop {
            match self.open_table(name) {
                Err(Error::NoSuchTable { .. }) => {}
                other => break other?,
            }
            match self.create_expiring_table(name, kind, ttl) {
                // Another thread was faster.
                Err(Error::TableExists { .. }) => {}
                other => return other,
            }
        };
        let (found, wanted) = (table.usual_ttl(), lifetime_ms(ttl)?);
        if table.kind != kind || found.map(millis) != Some(wanted) {
            let detail = format!(
                "table {name:?} is of kind {:?} with a time to live of {found:?}, not {kind:?} with {ttl:?}",
                table.kind
            );
            return Err(Error::WrongType { detail });
        }
        Ok(table)
    }

    /// Makes such a table, as [`create_table`](Db::create_table) makes others.
    ///
    /// # Errors
    /// As [`create_table`](Db::create_table); `Invalid` for a time of less than a millisecond, or one that
    /// ends after the year 4000.
    pub fn create_expiring_table(&self, name: &str, kind: TableKind, ttl: Duration) -> Result<Table> {
        let id = self.engine.table_changer().create(&[(name, kind)], lifetime_ms(ttl)?)?;
        Ok(Table { db: self.clone(), id, kind, name: name.into() })
    }
}

impl Table {
    /// How long the table's records live if the put does not say otherwise; none if until they are removed,
    /// or if the table was dropped.
    pub fn usual_ttl(&self) -> Option<Duration> {
        let state = self.db.engine.last_known();
        let ttl_ms = state.table(self.id).map_or(0, |table| table.ttl_ms);
        (ttl_ms > 0).then(|| Duration::from_millis(ttl_ms))
    }

    /// Says how long the table's records live from now on if the put does not say otherwise; none: until they
    /// are removed. Records that are there keep the time that they have, or have none, until their value is
    /// set again. It is a commit, and durable. A transaction does the same by
    /// [`WriteTxn::set_usual_ttl`](crate::WriteTxn::set_usual_ttl).
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-set-ttl-{}.azk", std::process::id()));
    /// # use azekura::{Db, Lifetime, Options, TableKind};
    /// use std::time::Duration;
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put("before", "1")?;
    /// t.set_usual_ttl(Some(Duration::from_secs(60)))?;
    /// t.put("after", "2")?;
    /// assert_eq!(t.ttl("before")?, Some(Lifetime::Unlimited));
    /// assert!(matches!(t.ttl("after")?, Some(Lifetime::Left(_))));
    /// t.set_usual_ttl(None)?;
    /// assert_eq!(t.usual_ttl(), None);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a time of less than a millisecond, or of more than 1,100 years; `NoSuchTable`,
    /// `ReadOnly`, `Closed`, `Forked`, `Io`, `NoSpace`, `Poisoned`.
    pub fn set_usual_ttl(&self, ttl: Option<Duration>) -> Result<()> {
        self.retry(|w| w.set_usual_ttl(self, ttl))
    }

    /// Sets the value of a key for some time, after which the record is gone by itself: no read shows it any
    /// more, it does not count, and a put of the same key is one of a new key. Its space comes back when runs
    /// are merged. Any table may have such records beside others. A time that ends after the year 4000 is
    /// none: the record stays, also in a table made by [`expiring_table`](Db::expiring_table).
    ///
    /// What sets a value ([`put`](Table::put), [`add`](Table::add), [`replace`](Table::replace),
    /// [`compare_and_swap`](Table::compare_and_swap)) ends the time that the record had. What changes it
    /// ([`append`](Table::append), [`increment`](Table::increment), [`update`](Table::update)) leaves it.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-put-for-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// use std::time::Duration;
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put_for("session", "ada", Duration::from_secs(60))?;
    /// t.put_for("ticket", "42", Duration::ZERO)?;
    /// assert!(t.contains("session")? && !t.contains("ticket")?);
    /// assert_eq!(t.count()?, 1);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn put_for(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Result<()> {
        self.put_bytes_for(key.as_ref(), value.as_ref(), ttl)
    }

    /// Sets the value of a key until a time, at which the record is gone by itself, as after
    /// [`put_for`](Table::put_for): for records that come from elsewhere with the time at which they expire,
    /// as a [cursor](crate::Cursor::expires) and the [feed](crate::Change::expires) say it. A time that has
    /// come leaves no record. A time after the year 4000 is none.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-put-until-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// use std::time::{Duration, SystemTime};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// let noon = SystemTime::now() + Duration::from_secs(60);
    /// t.put_until("soup", "hot", noon)?;
    /// assert!(t.contains("soup")?);
    /// t.put_until("soup", "cold", SystemTime::UNIX_EPOCH)?;
    /// assert!(!t.contains("soup")?);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn put_until(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, time: SystemTime) -> Result<()> {
        self.put_to_expire(key.as_ref(), value.as_ref(), Expiry::at_time(time))
    }

    fn put_bytes_for(&self, key: &[u8], value: &[u8], ttl: Duration) -> Result<()> {
        self.put_to_expire(key, value, expiry_after(self.db.engine.config.clock.now(), ttl))
    }

    fn put_to_expire(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<()> {
        check_key(key)?;
        let engine = &self.db.engine;
        let is_durable = engine.config.durability == super::Durability::Sync;
        let is_apart = engine.config.is_stored_apart(value.len(), is_durable, 0);
        if is_apart || expiry == Expiry::NEVER {
            return self.retry(|w| w.put_expiring(self, key, value, expiry));
        }
        engine.config.clock.use_it();
        let mut stored = Vec::new();
        let (tag, stored) = Content { tag: Tag::Put, value, expiry }.stored(&mut stored);
        self.commit_one(key, tag, stored)
    }

    /// How long a record will be there; none if it is not.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn ttl(&self, key: impl AsRef<[u8]>) -> Result<Option<Lifetime>> {
        self.db.read().ttl(self, key)
    }

    /// Gives a record that is there another time to live, from now on. True if it was there. It writes the
    /// record anew.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-expire-{}.azk", std::process::id()));
    /// # use azekura::{Db, Lifetime, Options, TableKind};
    /// use std::time::Duration;
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put("ada", "1815")?;
    /// assert!(t.expire("ada", Duration::from_secs(60))?);
    /// assert!(matches!(t.ttl("ada")?, Some(Lifetime::Left(_))));
    /// assert!(t.persist("ada")?);
    /// assert_eq!(t.ttl("ada")?, Some(Lifetime::Unlimited));
    /// assert!(!t.expire("alan", Duration::from_secs(60))?);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Table::put) and [`get`](Table::get).
    pub fn expire(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<bool> {
        let key = key.as_ref();
        self.retry(|w| w.expire(self, key, ttl))
    }

    /// Lets a record that is there stay until it is removed. True if it was there.
    ///
    /// # Errors
    /// As [`put`](Table::put) and [`get`](Table::get).
    pub fn persist(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        self.retry(|w| w.persist(self, key))
    }

    /// Whether a key has a record, expired or not.
    pub(crate) fn has_record(&self, key: &[u8]) -> Result<bool> {
        let engine = &self.db.engine;
        let (state, mut buf) = (engine.state.load(), KeyBuf::new());
        let sort = self.kind.sort_key(key, engine.store.hash_seed, &mut buf);
        Ok(lookup(self.of(&state)?, state.visible(), sort, || 0, |_, _, _| ())?.is_some())
    }
}
