//! The table handle: every operation as a transaction of its own.

use crate::base::error::{Error, Result};
use crate::base::key::{KeyBuf, TableKind};
use crate::engine::{Batch, BatchPart, Table, within};
use crate::format::block::Tag;
use crate::format::expiry::Content;
use crate::txn::gather;
use crate::txn::get::lookup;
use crate::txn::value::resolve;
use crate::txn::{ValueRef, WriteTxn, check_key};
use crate::values::ahead::ReadAhead;

impl Table {
    /// The table's name; empty if it was dropped, or if the transaction that makes it is not committed.
    pub fn name(&self) -> String {
        let state = self.db.engine.state.load();
        state.table(self.id).map_or(String::new(), |t| t.name.to_string())
    }

    /// The table's kind.
    pub fn kind(&self) -> TableKind {
        self.kind
    }

    /// Calls `f` with the value of a key where it stands, and gives what `f` made of it. It is the cheapest
    /// way to read.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-get-with-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put("ada", "1815")?;
    /// assert_eq!(t.get_with("ada", |value| value.len())?, Some(4));
    /// assert_eq!(t.get_with("alan", |value| value.len())?, None);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Table::get).
    #[inline]
    pub fn get_with<T>(&self, key: impl AsRef<[u8]>, f: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let key = key.as_ref();
        let engine = &self.db.engine;
        let state = engine.newest()?;
        let seq = state.visible();
        let t = self.of(&state)?;
        let mut buf = KeyBuf::new();
        let sort = t.kind.sort_key(key, engine.store.hash_seed, &mut buf);
        lookup(
            t,
            seq,
            sort,
            || engine.config.clock.now(),
            |tag, slot, _| resolve(tag, slot.bytes(), |reference| engine.read_large(&state, reference), f),
        )?
        .transpose()
    }

    /// The value of a key.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if it cannot be read, `NoSuchTable` if the table was dropped, `Closed`, `Forked`;
    /// `WrongType` if what was [merged](Table::merge) into a value does not suit it.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.copy_of(key.as_ref())
    }

    fn copy_of(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Replaces the contents of `out` by the value of a key. If there is none, it is false and `out` is
    /// empty. Allocates only if the value does not fit.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-get-into-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put("ada", "1815")?;
    /// let mut value = Vec::new();                        // used again and again
    /// assert!(t.get_into("ada", &mut value)?);
    /// assert_eq!(value, b"1815");
    /// assert!(!t.get_into("alan", &mut value)? && value.is_empty());
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn get_into(&self, key: impl AsRef<[u8]>, out: &mut Vec<u8>) -> Result<bool> {
        self.copy_into(key.as_ref(), out)
    }

    fn copy_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        Ok(self.get_with(key, |v| out.extend_from_slice(v))?.is_some())
    }

    /// The value of a key without copying it.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn get_ref(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueRef<'static>>> {
        self.borrow_at(key.as_ref())
    }

    fn borrow_at(&self, key: &[u8]) -> Result<Option<ValueRef<'static>>> {
        let engine = &self.db.engine;
        let state = engine.newest_full()?;
        let mut buf = KeyBuf::new();
        let t = self.of(&state)?;
        let sort = t.kind.sort_key(key, engine.store.hash_seed, &mut buf);
        let large = |reference: &[u8]| ReadAhead::default().read(&engine.behind(&state).values, reference);
        lookup(
            t,
            state.visible(),
            sort,
            || engine.config.clock.now(),
            |tag, slot, _| {
                // SAFETY: the state goes with the reference.
                unsafe { ValueRef::resolve(tag, slot, Some(state.clone()), large) }
            },
        )?
        .transpose()
    }

    /// The values of several keys, in their order. Much faster than one by one.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-get-many-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put_many([("ada", "1815"), ("grace", "1906")])?;
    /// let found = t.get_many(&["grace", "alan", "ada"])?;
    /// assert_eq!(found, [Some(b"1906".to_vec()), None, Some(b"1815".to_vec())]);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Table::get), if one of the values cannot be read: then none is given. The others can be
    /// read one by one.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.db.read().get_many(self, keys)
    }

    /// Calls `f` for each of several keys, in no particular order, with the key's index among them and its
    /// value.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-get-many-with-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put_many([("ada", "1815"), ("grace", "1906")])?;
    /// let mut lengths = [None; 2];
    /// t.get_many_with(&["ada", "alan"], |place, value| lengths[place] = value.map(<[u8]>::len))?;
    /// assert_eq!(lengths, [Some(4), None]);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Table::get), if one of the values cannot be read: `f` may have had some of the others
    /// before. They can be read one by one.
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        f: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.db.read().get_many_with(self, keys, f)
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.has(key.as_ref())
    }

    fn has(&self, key: &[u8]) -> Result<bool> {
        Ok(self.get_with(key, |_| ())?.is_some())
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// `TooLarge`, `ReadOnly`, `NoSpace`, `Io`, `Poisoned`, `NoSuchTable`, `Closed`, `Forked`; `NotUnique`,
    /// or an error that the specification of an index has for the record. `Corrupt` if the table has indexes
    /// and the old value is damaged, for its entries are not known then. Without indexes
    /// ([`drop_index`](Table::drop_index)) such a record can be put and removed.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_bytes(key.as_ref(), value.as_ref())
    }

    fn put_bytes(&self, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        let config = &self.db.engine.config;
        if config.is_stored_apart(value.len(), config.durability == super::Durability::Sync, 0) {
            return self.retry(|w| w.put(self, key, value));
        }
        self.commit_one(key, Tag::Put, value)
    }

    pub(super) fn commit_one(&self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        let engine = &self.db.engine;
        if engine.catalog.puts_more(&engine.state, self.id) {
            return self.commit_indexed(key, tag, value);
        }
        let mut buf = KeyBuf::new();
        let sort = self.kind.sort_key(key, engine.store.hash_seed, &mut buf);
        let part = BatchPart::single(self.id, sort.bytes, tag, value);
        let durable = engine.config.durability == super::Durability::Sync;
        let user_bytes = (key.len() + value.len()) as u64;
        match gather::commit(&self.db, Batch { parts: vec![part], durable, user_bytes, ..Batch::default() }) {
            Ok(done) => done.wait(engine),
            // This has read nothing, so only a new index can be the cause.
            Err(Error::Conflict { .. }) => self.commit_indexed(key, tag, value),
            Err(e) => Err(self.named(e)),
        }
    }

    /// As `commit_one`, of a table that has indexes, or says how long records live.
    #[cold]
    #[inline(never)]
    fn commit_indexed(&self, key: &[u8], tag: Tag, stored: &[u8]) -> Result<()> {
        let Content { value, expiry, .. } = Content::of(tag, stored);
        self.retry(|w| match tag {
            Tag::Tombstone => w.remove(self, key),
            Tag::Expiring => w.put_expiring(self, key, value, expiry),
            _ => w.put(self, key, value),
        })
    }

    /// Sets the values of many keys in one transaction.
    ///
    /// # Errors
    /// As [`put`](Table::put). Nothing is written then, but for `MirrorBehind`: it is committed.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<()> {
        let mut w = self.db.write();
        w.put_many(self, records)?;
        w.commit_blind()
    }

    /// Removes a key, whether it is there or not. Unless the table has indexes nothing is read, so removing
    /// is as fast as putting. [`remove_existing`](Table::remove_existing) tells whether the key was there.
    ///
    /// # Errors
    /// As [`put`](Table::put), also `Corrupt`.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        self.commit_one(key, Tag::Tombstone, &[])
    }

    /// Runs an operation that reads before it writes. After a conflict it is run again.
    pub(crate) fn retry<T>(&self, mut f: impl FnMut(&mut WriteTxn) -> Result<T>) -> Result<T> {
        loop {
            let mut w = self.db.write();
            let out = f(&mut w)?;
            match w.commit() {
                Err(Error::Conflict { .. }) => {}
                other => return other.map(|()| out),
            }
        }
    }

    /// Sets the value of a key only if the key is absent. True if it was.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-add-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// assert!(t.add("ada", "1815")?);
    /// assert!(!t.add("ada", "1816")?);
    /// assert_eq!(t.get("ada")?.as_deref(), Some(&b"1815"[..]));
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn add(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.retry(|w| w.add(self, key, value))
    }

    /// Sets the value of a key only if the key is present. True if it was.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-replace-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// assert!(!t.replace("ada", "1815")?);
    /// assert!(!t.contains("ada")?);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn replace(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.retry(|w| w.replace(self, key, value))
    }

    /// Appends to the value of a key. An absent value counts as empty.
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn append(&self, key: impl AsRef<[u8]>, suffix: impl AsRef<[u8]>) -> Result<()> {
        let (key, suffix) = (key.as_ref(), suffix.as_ref());
        self.retry(|w| w.append(self, key, suffix))
    }

    /// Adds to a number and gives the sum. A number is eight bytes, little-endian; an absent one is 0. Sums
    /// wrap.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-increment-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// assert_eq!(t.increment("visits", 2)?, 2);
    /// assert_eq!(t.increment("visits", -5)?, -3);
    /// assert_eq!(t.get("visits")?.unwrap(), (-3i64).to_le_bytes());
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WrongType` if the value has not eight bytes; as [`put`](Table::put).
    pub fn increment(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        let key = key.as_ref();
        self.retry(|w| w.increment(self, key, delta))
    }

    /// Replaces the value of a key only if it is what is expected, where none stands for an absent key. True
    /// if it was. A new value of none removes the key.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-cas-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// assert!(t.compare_and_swap("lamp", None, Some(b"on"))?);
    /// assert!(!t.compare_and_swap("lamp", Some(b"off"), Some(b"on"))?);
    /// assert!(t.compare_and_swap("lamp", Some(b"on"), None)?);
    /// assert!(!t.contains("lamp")?);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let key = key.as_ref();
        self.retry(|w| w.compare_and_swap(self, key, expected, new))
    }

    /// Replaces the value of a key by what `f` makes of it. None stands for an absent key, before and after.
    /// `f` is run again if another commit has changed the key meanwhile. It may use the database, but must
    /// not change the key itself.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-update-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put("stock", "2")?;
    /// t.update("stock", |left| match left {
    ///     Some(b"2") => Some(b"1".to_vec()),
    ///     _ => None,
    /// })?;
    /// assert_eq!(t.get("stock")?.as_deref(), Some(&b"1"[..]));
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Table::put); `Invalid` if `f` has itself committed a change to the key, also by removing a
    /// range.
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut f: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<()> {
        self.try_update(key.as_ref(), |old| Ok(f(old)))
    }

    /// As [`update`](Table::update), with an `f` that may fail: then nothing is written.
    ///
    /// # Errors
    /// What `f` fails with, and as [`update`](Table::update).
    pub fn try_update(
        &self,
        key: &[u8],
        mut f: impl FnMut(Option<&[u8]>) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        let engine = &*self.db.engine;
        self.retry(|w| {
            let (done, own) = within::watch(engine, || w.try_update(self, key, &mut f));
            w.set_own_commits(own, self, key);
            done
        })
    }

    /// Removes a key if it is there. True if it was. It costs a get more than [`remove`](Table::remove).
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-remove-existing-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put("ada", "1815")?;
    /// assert!(t.remove_existing("ada")?);
    /// assert!(!t.remove_existing("ada")?);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Table::get) and [`put`](Table::put).
    pub fn remove_existing(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        self.retry(|w| w.remove_existing(self, key))
    }

    /// Removes a key and gives its value.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-take-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put("ada", "1815")?;
    /// assert_eq!(t.take("ada")?.as_deref(), Some(&b"1815"[..]));
    /// assert_eq!(t.take("ada")?, None);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.retry(|w| w.take(self, key))
    }

    /// Removes a key and gives what `f` made of its value. If `f` fails nothing is removed.
    pub(crate) fn take_with<T>(
        &self,
        key: &[u8],
        mut f: impl FnMut(&[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        self.retry(|w| w.take_with(self, key, &mut f))
    }

    /// How many records there are. Cheap where runs do not overlap, else a scan.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn count(&self) -> Result<u64> {
        self.db.read().count(self)
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({:?}, {:?})", self.name(), self.kind)
    }
}
