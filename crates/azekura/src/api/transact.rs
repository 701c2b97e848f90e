//! Transactions that run again after a conflict.

use crate::base::error::{Error, Result};
use crate::engine::Db;
use crate::txn::{WriteOptions, WriteTxn};
use std::time::Duration;

/// A transaction is tried so many times.
const TRIES_MAX: u32 = 100;
/// After so many conflicts there is a pause before each further try. Each is twice as long as the last.
const TRIES_AT_ONCE: u32 = 4;
const PAUSE_FIRST: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(5);

impl Db {
    /// Calls `f` with a write transaction and commits it. If another transaction has changed meanwhile what
    /// this one has read, all is done again with a new one. So `f` should change nothing else.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-transact-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let stock = db.table("stock", TableKind::Hash)?;
    /// stock.put(b"apples", b"3")?;
    /// let sold = db.transact(|txn| match txn.get(&stock, b"apples")?.as_deref() {
    ///     Some(b"0") | None => Ok(false),
    ///     Some(left) => {
    ///         let left: u32 = String::from_utf8_lossy(left).parse().unwrap_or(0);
    ///         txn.put(&stock, b"apples", left.saturating_sub(1).to_string().as_bytes())?;
    ///         Ok(true)
    ///     }
    /// })?;
    /// assert!(sold);
    /// assert_eq!(stock.get(b"apples")?.as_deref(), Some(&b"2"[..]));
    /// # drop(stock); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// What `f` gives: nothing is written then. `Conflict` after a hundred of them, with pauses between the
    /// last ones. Else as [`WriteTxn::commit`].
    pub fn transact<T>(&self, f: impl FnMut(&mut WriteTxn) -> Result<T>) -> Result<T> {
        self.transact_with(WriteOptions::default(), f)
    }

    /// As [`transact`](Db::transact), with options of its own.
    ///
    /// ```
    /// # use azekura::{Db, Options, TableKind, storage::MemStorage};
    /// # let db = Db::open_on(&MemStorage::default(), "t.azk", Options::new())?;
    /// use azekura::{Durability, WriteOptions};
    /// let visits = db.table("visits", TableKind::Hash)?;
    /// let options = WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() };
    /// let count = db.transact_with(options, |txn| txn.increment(&visits, "home", 1))?;
    /// assert_eq!(count, 1);
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`transact`](Db::transact).
    pub fn transact_with<T>(
        &self,
        options: WriteOptions,
        mut f: impl FnMut(&mut WriteTxn) -> Result<T>,
    ) -> Result<T> {
        let mut tries = 1;
        loop {
            let mut txn = self.write_with(options);
            let done = f(&mut txn).and_then(|out| txn.commit().map(|()| out));
            match done {
                Err(Error::Conflict { .. }) if tries < TRIES_MAX => pause(tries),
                done => return done,
            }
            tries += 1;
        }
    }
}

/// Waits before the next try. The wait is random, so that two who have met do not meet again.
pub(super) fn pause(tries: u32) {
    let Some(doublings) = tries.checked_sub(TRIES_AT_ONCE) else { return };
    let longest = PAUSE_FIRST.saturating_mul(1 << doublings.min(16)).min(PAUSE_MAX);
    let thread = std::thread::current().id();
    let draw = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), thread) % 1024;
    crate::base::sync::thread::sleep(longest.mul_f64((512.0 + draw as f64) / 1536.0));
}
