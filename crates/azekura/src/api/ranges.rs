//! What a table does with ranges, ends, and all of its records.

use crate::base::error::Result;
use crate::cursor::{Cursor, KeyRange, Records, Way};
use crate::engine::Table;
use crate::txn::{Isolation, WriteOptions};

impl Table {
    /// A cursor over the table as it is now, before its first record. It is the fastest way to walk, and goes
    /// back and forth.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn cursor(&self) -> Result<Cursor> {
        self.db.read().cursor(self)
    }

    /// An iterator over copies of the records as they are now, from both ends.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-iter-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let born = db.table("born", TableKind::Ordered)?;
    /// born.put_many([("ada", "1815"), ("grace", "1906")])?;
    /// let keys = born.iter()?.map(|record| record.map(|(key, _)| key)).collect::<azekura::Result<Vec<_>>>()?;
    /// assert_eq!(keys, [&b"ada"[..], b"grace"]);
    /// # drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn iter(&self) -> Result<Records> {
        self.cursor().map(Cursor::owned)
    }

    /// A cursor over the keys of a range, before its first record. Ordered tables only. A loop takes copies:
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-ranges-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let born = db.table("born", TableKind::Ordered)?;
    /// born.put_many([("ada", "1815"), ("alan", "1912"), ("grace", "1906")])?;
    /// let mut seen = Vec::new();
    /// for record in born.range("al"..)? {
    ///     let (key, _) = record?;
    ///     seen.push(key);
    /// }
    /// assert_eq!(seen, [&b"alan"[..], b"grace"]);
    /// # drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WrongType` for a hash table; as [`get`](Table::get).
    pub fn range(&self, range: impl KeyRange) -> Result<Cursor> {
        self.db.read().range(self, range)
    }

    /// A cursor over the keys that begin with `prefix`. Ordered tables only.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-prefix-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put_many([("ada", "1815"), ("alan", "1912"), ("grace", "1906")])?;
    /// assert_eq!(t.prefix("a")?.owned().count(), 2);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`range`](Table::range).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        self.db.read().prefix(self, prefix)
    }

    /// The first record. Of a hash table it may be any.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-first-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put_many([("ada", "1815"), ("grace", "1906")])?;
    /// assert_eq!(t.first()?, Some((b"ada".to_vec(), b"1815".to_vec())));
    /// assert_eq!(t.last()?, Some((b"grace".to_vec(), b"1906".to_vec())));
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.db.read().first(self)
    }

    /// The last record. Of a hash table it may be any.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.db.read().last(self)
    }

    /// What `f` makes of the first record in this direction.
    pub(crate) fn edge<T>(&self, way: Way, f: impl FnOnce(&[u8], &[u8]) -> Result<T>) -> Result<Option<T>> {
        self.db.read().edge(self, way, f)
    }

    /// Removes the first record and gives it. Of a hash table it may be any. Threads that do so at the same
    /// time get a record each.
    ///
    /// A call costs microseconds. [`drain`](Table::drain) takes many records for much less.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-pop-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let jobs = db.table("jobs", TableKind::Ordered)?;
    /// jobs.put_many([("1", "sweep"), ("2", "dust")])?;
    /// assert_eq!(jobs.pop_first()?, Some((b"1".to_vec(), b"sweep".to_vec())));
    /// assert_eq!(jobs.pop_last()?, Some((b"2".to_vec(), b"dust".to_vec())));
    /// assert_eq!(jobs.pop_first()?, None);
    /// # drop(jobs); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Table::get) and [`put`](Table::put).
    pub fn pop_first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.retry(|w| w.pop_first(self))
    }

    /// Removes the last record and gives it, as [`pop_first`](Table::pop_first) does with the first.
    ///
    /// # Errors
    /// As [`pop_first`](Table::pop_first).
    pub fn pop_last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.retry(|w| w.pop_last(self))
    }

    /// Removes the first record in this direction, and gives what `f` made of it.
    pub(crate) fn pop_with<T>(
        &self,
        way: Way,
        mut f: impl FnMut(&[u8], &[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        self.retry(|w| w.pop_with(self, way, &mut f))
    }

    /// Removes all keys of a range. Ordered tables only. It costs the same however many there are, unless
    /// the table has indexes.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-remove-range-{}.azk", std::process::id()));
    /// # use azekura::{Db, Error, Isolation, Options, TableKind, WriteOptions};
    /// # let db = Db::open(&path, Options::new())?;
    /// # let t = db.table("t", TableKind::Ordered)?;
    /// t.put_many([("ada", "1815"), ("alan", "1912"), ("grace", "1906")])?;
    /// t.remove_range(.."b")?;
    /// assert_eq!(t.count()?, 1);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WrongType` for a hash table; as [`put`](Table::put).
    pub fn remove_range(&self, range: impl KeyRange) -> Result<()> {
        let range = (range.start(), range.end());
        self.retry(|w| w.remove_range(self, range))
    }

    /// Removes the records of a range for which `f` says false, and tells how many. Of a hash table the range
    /// is `..`. All go at once, and only records that `f` has refused go: if another commit changes one of
    /// them meanwhile, all is done again. What others add or change besides stays as it is.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-retain-table-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let sessions = db.table("sessions", TableKind::Hash)?;
    /// sessions.put_many([("ada", "until 1852"), ("alan", "until 1954"), ("grace", "until 1992")])?;
    /// assert_eq!(sessions.retain(.., |_, until| until > &b"until 1900"[..])?, 1);
    /// assert_eq!(sessions.count()?, 2);
    /// # drop(sessions); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WrongType` for a part of a hash table; `Conflict` if what is to be removed was changed each time, by
    /// others or by `f` itself; as [`get`](Table::get) and [`put`](Table::put).
    pub fn retain(&self, range: impl KeyRange, mut f: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        self.try_retain(range, |key, value| Ok(f(key, value)))
    }

    /// As `retain`. If `f` fails nothing is removed.
    pub(crate) fn try_retain(
        &self,
        range: impl KeyRange,
        mut f: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<u64> {
        // Under snapshot isolation only the removed records must not have changed.
        let options = WriteOptions { isolation: Isolation::Snapshot, ..WriteOptions::default() };
        let range = (range.start(), range.end());
        self.db.transact_with(options, |w| w.try_retain(self, range, &mut f))
    }

    /// Removes a range and gives what was in it, by an iterator that reads from the table as it was. However
    /// many records there are, they are removed in one step, unless there are indexes. That is durable before
    /// the first record is given. So no two threads get the same one, and records that a program does not
    /// come to are gone too. Of a hash table the range is `..`.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-drain-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let due = db.table("due", TableKind::Ordered)?;
    /// due.put_many([("08:00", "wake"), ("08:15", "tea"), ("09:00", "work")])?;
    /// for record in due.drain(.."08:30")? {
    ///     let (time, what) = record?;
    ///     println!("{} {}", String::from_utf8_lossy(&time), String::from_utf8_lossy(&what));
    /// }
    /// assert_eq!(due.count()?, 1);
    /// # drop(due); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WrongType` for a part of a hash table; as [`get`](Table::get) and [`put`](Table::put).
    pub fn drain(&self, range: impl KeyRange) -> Result<Records> {
        let range = (range.start(), range.end());
        self.retry(|w| w.drain(self, range))
    }

    /// Removes all records.
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn clear(&self) -> Result<()> {
        self.retry(|w| w.clear(self))
    }
}
