//! Records with a time to live, in transactions.

use super::read::ReadTxn;
use super::write::{WriteTxn, check_key};
use crate::base::clock::{millis, time_of};
use crate::base::error::{Error, Result};
use crate::engine::Table;
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use std::time::{Duration, SystemTime};

/// How long a record will be there.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-lifetime-{}.azk", std::process::id()));
/// use azekura::{Db, Lifetime, Options, TableKind};
/// use std::time::Duration;
/// let db = Db::open(&path, Options::new())?;
/// let t = db.table("t", TableKind::Hash)?;
/// t.put("pi", "3.14159")?;
/// t.put_for("weather", "rain", Duration::from_secs(3600))?;
/// assert_eq!(t.ttl("pi")?, Some(Lifetime::Unlimited));
/// assert!(matches!(t.ttl("weather")?, Some(Lifetime::Left(left)) if left.as_secs() > 3500));
/// assert_eq!(t.ttl("e")?, None);
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is removed.
    Unlimited,
    /// So long from now on.
    Left(Duration),
}

impl Lifetime {
    fn of(expiry: Expiry, now: u64) -> Lifetime {
        match expiry.time_ms() {
            None => Lifetime::Unlimited,
            Some(ms) => Lifetime::Left(Duration::from_millis(ms.saturating_sub(now))),
        }
    }
}

/// The longest time that a table may give its records: so that no sum comes near the end of times.
const LIFETIME_MS_MAX: u64 = 1 << 45;

/// How long a table's records live, in milliseconds.
pub(crate) fn lifetime_ms(ttl: Duration) -> Result<u64> {
    let ms = millis(ttl);
    if !(1..LIFETIME_MS_MAX).contains(&ms) {
        let detail = format!("a table's time to live cannot be {ttl:?}: from a millisecond to 1,100 years");
        return Err(Error::Invalid { detail });
    }
    Ok(ms)
}

/// When what lives so long from `now` on expires.
pub(crate) fn expiry_after(now: u64, ttl: Duration) -> Expiry {
    Expiry::at(now.saturating_add(millis(ttl)))
}

impl ReadTxn {
    /// How long a record will be there; none if it is not. As all of a transaction, by one time: that at
    /// which it began.
    ///
    /// # Errors
    /// As [`get`](ReadTxn::get).
    pub fn ttl(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Lifetime>> {
        self.get_expiring(table, key.as_ref(), |_, expiry| Lifetime::of(expiry, self.now_if_used()))
    }
}

impl WriteTxn {
    /// Sets the value of a key for some time, after which the record is gone by itself. A time that ends
    /// after the year 4000 is none: the record stays.
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put).
    pub fn put_for(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        let expiry = expiry_after(self.now(), ttl);
        self.put_expiring(table, key.as_ref(), value.as_ref(), expiry)
    }

    /// Sets the value of a key until a time: see [`Table::put_until`].
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put).
    pub fn put_until(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: SystemTime,
    ) -> Result<()> {
        self.put_expiring(table, key.as_ref(), value.as_ref(), Expiry::at_time(time))
    }

    /// The time by which records are there or have expired, as all of the transaction sees it. Until its
    /// first read it goes on.
    pub fn time(&self) -> SystemTime {
        time_of(self.now())
    }

    /// Gives a record that is there another time to live. True if it was there.
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put) and [`get`](WriteTxn::get).
    pub fn expire(&mut self, table: &Table, key: impl AsRef<[u8]>, ttl: Duration) -> Result<bool> {
        let expiry = expiry_after(self.now(), ttl);
        self.live_until(table, key.as_ref(), expiry)
    }

    /// Lets a record that is there stay until it is removed. True if it was there.
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put) and [`get`](WriteTxn::get).
    pub fn persist(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool> {
        self.live_until(table, key.as_ref(), Expiry::NEVER)
    }

    /// Sets the value of a key until a time.
    pub(crate) fn put_expiring(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
    ) -> Result<()> {
        check_key(key)?;
        if value.len() >= self.db.engine.config.large_value_bytes {
            return self.put_large_until(table, key, value, expiry);
        }
        self.reindex(table, key, Some((value, expiry)))?;
        self.write_content(table, key, Content { tag: Tag::Put, value, expiry })
    }

    fn live_until(&mut self, table: &Table, key: &[u8], expiry: Expiry) -> Result<bool> {
        check_key(key)?;
        let Some((value, was)) = self.get_expiring(table, key, |value, was| (value.to_vec(), was))? else {
            return Ok(false);
        };
        if was != expiry {
            self.put_expiring(table, key, &value, expiry)?;
        }
        Ok(true)
    }

    /// How long a record will be there; none if it is not.
    ///
    /// # Errors
    /// As [`get`](WriteTxn::get).
    pub fn ttl(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Lifetime>> {
        self.get_expiring(table, key.as_ref(), |_, expiry| Lifetime::of(expiry, self.now()))
    }
}
