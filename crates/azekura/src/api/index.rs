//! Lookups by an index.

use super::any_txn::{AnyTxn, Reads};
use crate::base::error::{Error, Result};
use crate::cursor::{Cursor, Limits, Records, Way};
use crate::engine::Table;
use crate::format::hidden::{FIRST_ENTRY, IndexState, STATE_KEY, is_hidden};
use crate::format::ranges::Range;
use crate::index::{IndexSpec, IndexValue};
use crate::txn::ReadTxn;
use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// An index of a table: finds records by what is in their values. See [`Table::create_index`].
///
/// Each lookup sees one snapshot, in which index and table agree. [`read_in`](Index::read_in) is for several
/// lookups in one snapshot, and for lookups that see the writes of a transaction.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-index-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// t.put_many([("ada", "London"), ("alan", "London"), ("grace", "New York")])?;
/// let by_city = t.create_index("by_city", "v")?;
/// let keys: Result<Vec<_>, _> = by_city.get(&["London".into()])?.keys().collect();
/// assert_eq!(keys?, [b"ada".to_vec(), b"alan".to_vec()]);
/// # drop((by_city, t)); db.close()?; std::fs::remove_file(&path).unwrap(); Ok::<(), azekura::Error>(())
/// ```
#[derive(Clone)]
pub struct Index {
    table: Table,
    /// The hidden table.
    entries: Table,
    name: Arc<str>,
    spec: Arc<IndexSpec>,
    /// The index was complete after this commit.
    ready_at: u64,
}

impl Index {
    pub(super) fn new(
        table: Table,
        entries: Table,
        name: Arc<str>,
        spec: Arc<IndexSpec>,
        ready_at: u64,
    ) -> Index {
        Index { table, entries, name, spec, ready_at }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is of.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// The table whose records it finds.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The records whose first fields have these values, in the order of the index. Without values all
    /// records that are in the index. They are read one by one as the iterator goes, from a snapshot of now.
    ///
    /// # Errors
    /// `Invalid` if a value is not of its field's type, or there are more values than fields; `NoSuchIndex`
    /// if the index was dropped; as [`Table::get`].
    pub fn get(&self, values: &[IndexValue<'_>]) -> Result<IndexRecords> {
        self.records(self.own(), self.of_values(values)?)
    }

    /// As [`get`](Index::get), but only the beginning of the last value is given. It is text or bytes.
    ///
    /// # Errors
    /// As [`get`](Index::get).
    pub fn prefix(&self, values: &[IndexValue<'_>]) -> Result<IndexRecords> {
        self.records(self.own(), self.of_beginning(values)?)
    }

    /// The records from some values to others, in the order of the index. Values stand for the first fields.
    /// An included end includes all records that begin with its values. An excluded end excludes them.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-index-range-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let born = db.table("born", TableKind::Hash)?;
    /// born.put_many([("ada", "1815"), ("alan", "1912"), ("grace", "1906"), ("nobody", "")])?;
    /// let by_year = born.create_index("by_year", "v:i64 where present")?;
    /// let mut keys = by_year.range([1900.into()]..[2000.into()])?.keys();
    /// assert_eq!(keys.next().transpose()?, Some(b"grace".to_vec()));
    /// assert_eq!(keys.next_back().transpose()?, Some(b"alan".to_vec()));
    /// assert_eq!(by_year.range([1850.into()]..)?.count(), 2);
    /// # drop((keys, by_year)); drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Index::get).
    pub fn range<'v, V: AsRef<[IndexValue<'v>]>>(&self, range: impl RangeBounds<V>) -> Result<IndexRecords> {
        self.records(self.own(), self.of_range(&range)?)
    }

    /// The first record whose first fields have these values. If the index is unique and all of its fields
    /// have a value here, it is the only one.
    ///
    /// # Errors
    /// As [`get`](Index::get).
    pub fn first(&self, values: &[IndexValue<'_>]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.get(values)?.next().transpose()
    }

    /// The last record whose first fields have these values.
    ///
    /// # Errors
    /// As [`get`](Index::get).
    pub fn last(&self, values: &[IndexValue<'_>]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.get(values)?.next_back().transpose()
    }

    /// How many records have these values in their first fields. No record is read.
    ///
    /// # Errors
    /// As [`get`](Index::get).
    pub fn count(&self, values: &[IndexValue<'_>]) -> Result<u64> {
        self.count_in(&self.own(), values)
    }

    /// The index as a transaction sees it.
    pub fn read_in<'t>(&'t self, txn: impl Into<AnyTxn<'t>>) -> IndexRead<'t> {
        IndexRead { index: self, txn: txn.into() }
    }

    fn own(&self) -> Box<ReadTxn> {
        Box::new(self.table.db.read())
    }

    fn of_values(&self, values: &[IndexValue<'_>]) -> Result<Limits> {
        let prefix = self.spec.encode(values)?;
        Ok(if prefix.is_empty() { all() } else { Limits::prefix(&prefix) })
    }

    fn of_beginning(&self, values: &[IndexValue<'_>]) -> Result<Limits> {
        Ok(Limits::prefix(&self.spec.encode_beginning(values)?))
    }

    fn of_range<'v, V: AsRef<[IndexValue<'v>]>>(&self, range: &impl RangeBounds<V>) -> Result<Limits> {
        let prefix = |values: &V| self.of_values(values.as_ref()).map(|limits| limits.as_range());
        let start = match range.start_bound() {
            Bound::Unbounded => Some(FIRST_ENTRY.to_vec()),
            Bound::Included(values) => Some(prefix(values)?.start),
            Bound::Excluded(values) => prefix(values)?.end,
        };
        let end = match range.end_bound() {
            Bound::Unbounded => None,
            Bound::Included(values) => prefix(values)?.end,
            Bound::Excluded(values) => Some(prefix(values)?.start),
        };
        // Nothing comes after the end of all.
        let Some(start) = start else { return Ok(none()) };
        let range = Range { start, end };
        Ok(if range.is_empty() { none() } else { Limits::from(range) })
    }

    fn records<S: Reads>(&self, source: S, limits: Limits) -> Result<IndexRecords<S>> {
        let entries = self.cursor(source.txn(), limits)?.owned();
        Ok(IndexRecords { entries, index: self.clone(), source, done: false })
    }

    fn count_in(&self, source: &impl Reads, values: &[IndexValue<'_>]) -> Result<u64> {
        self.cursor(source.txn(), self.of_values(values)?)?.count_rest()
    }

    /// A cursor over entries.
    fn cursor(&self, txn: AnyTxn<'_>, limits: Limits) -> Result<Cursor> {
        if let AnyTxn::Write(txn) = txn {
            txn.expect_kept(&self.table, self.entries.id)?;
        }
        let cursor = txn.limited(&self.entries, limits).map_err(|e| self.named(e))?;
        if txn.seq() < self.ready_at {
            self.expect_ready(txn)?;
        }
        Ok(cursor)
    }

    /// An error if the snapshot is from before the index was opened, and the index was not complete then.
    #[cold]
    fn expect_ready(&self, txn: AnyTxn<'_>) -> Result<()> {
        let state = txn.get(&self.entries, STATE_KEY).map_err(|e| self.named(e))?;
        if state.is_some_and(|state| IndexState::decode(&state).is_ok_and(|s| s.next.is_none())) {
            return Ok(());
        }
        let detail =
            format!("the transaction is older than index {:?} of table {:?}", self.name, self.table.name);
        Err(Error::Invalid { detail })
    }

    /// An error of the hidden table, in the words of the index: programs do not know the table.
    #[cold]
    fn named(&self, e: Error) -> Error {
        match e {
            Error::NoSuchTable { name } if is_hidden(&name) => {
                Error::NoSuchIndex { table: self.table.name.to_string(), name: self.name.to_string() }
            }
            other => other,
        }
    }

    /// The primary key of an entry.
    fn key_of(&self, entry: &[u8]) -> Result<Vec<u8>> {
        Ok(entry.get(self.spec.fields_len(entry)?..).unwrap_or_default().to_vec())
    }

    /// The record of a primary key.
    fn record(&self, txn: AnyTxn<'_>, key: Vec<u8>) -> Result<(Vec<u8>, Vec<u8>)> {
        match txn.get(&self.table, &key)? {
            Some(value) => Ok((key, value)),
            None => {
                let (name, table, key) = (&self.name, &self.table.name, crate::base::error::shown(&key));
                let detail = format!("{name:?} of table {table:?} has the key {key}, and the table does not");
                Err(Error::corrupt("index", 0, detail))
            }
        }
    }
}

/// All entries.
fn all() -> Limits {
    Limits::from(Range { start: FIRST_ENTRY.to_vec(), end: None })
}

/// No entry.
fn none() -> Limits {
    Limits::from(Range { start: FIRST_ENTRY.to_vec(), end: Some(FIRST_ENTRY.to_vec()) })
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Index({:?} of {:?}, {})", self.name, self.table.name(), self.spec)
    }
}

/// An [`Index`] as a transaction sees it. See [`Index::read_in`].
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-indexread-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// t.put_many([("ada", "London"), ("grace", "New York")])?;
/// let by_city = t.create_index("by_city", "v")?;
/// let now = db.read();
/// let cities = by_city.read_in(&now);
/// t.clear()?;
/// assert_eq!(cities.get(&["London".into()])?.count() + cities.get(&["New York".into()])?.count(), 2);
/// # drop((now, by_city, t)); db.close()?; std::fs::remove_file(&path).unwrap(); Ok::<(), azekura::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct IndexRead<'t> {
    index: &'t Index,
    txn: AnyTxn<'t>,
}

impl<'t> IndexRead<'t> {
    /// As [`Index::get`].
    ///
    /// # Errors
    /// As [`Index::get`]; `NoSuchIndex` if the transaction's snapshot is from before the index was made,
    /// `Invalid` if it is from before the index was complete.
    pub fn get(&self, values: &[IndexValue<'_>]) -> Result<IndexRecords<AnyTxn<'t>>> {
        self.index.records(self.txn, self.index.of_values(values)?)
    }

    /// As [`Index::prefix`].
    ///
    /// # Errors
    /// As [`get`](IndexRead::get).
    pub fn prefix(&self, values: &[IndexValue<'_>]) -> Result<IndexRecords<AnyTxn<'t>>> {
        self.index.records(self.txn, self.index.of_beginning(values)?)
    }

    /// As [`Index::range`].
    ///
    /// # Errors
    /// As [`get`](IndexRead::get).
    pub fn range<'v, V: AsRef<[IndexValue<'v>]>>(
        &self,
        range: impl RangeBounds<V>,
    ) -> Result<IndexRecords<AnyTxn<'t>>> {
        self.index.records(self.txn, self.index.of_range(&range)?)
    }

    /// As [`Index::first`].
    ///
    /// # Errors
    /// As [`get`](IndexRead::get).
    pub fn first(&self, values: &[IndexValue<'_>]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.get(values)?.next().transpose()
    }

    /// As [`Index::last`].
    ///
    /// # Errors
    /// As [`get`](IndexRead::get).
    pub fn last(&self, values: &[IndexValue<'_>]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.get(values)?.next_back().transpose()
    }

    /// As [`Index::count`].
    ///
    /// # Errors
    /// As [`get`](IndexRead::get).
    pub fn count(&self, values: &[IndexValue<'_>]) -> Result<u64> {
        self.index.count_in(&self.txn, values)
    }
}

/// An iterator over records in the order of an index, from both ends. It gives keys and values of the table.
/// After an error it has ended. One with a snapshot of its own can go to another thread.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-indexrecords-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// t.put_many([("alan", "1912"), ("grace", "1906")])?;
/// let by_year = t.create_index("by_year", "v:i64")?;
/// let mut born = by_year.range([1900.into()]..)?;
/// assert_eq!(born.next().transpose()?, Some((b"grace".to_vec(), b"1906".to_vec())));
/// assert_eq!(born.keys().next_back().transpose()?, Some(b"alan".to_vec()));
/// # drop((by_year, t)); db.close()?; std::fs::remove_file(&path).unwrap(); Ok::<(), azekura::Error>(())
/// ```
pub struct IndexRecords<S = Box<ReadTxn>> {
    entries: Records,
    index: Index,
    source: S,
    done: bool,
}

impl<S: Reads> IndexRecords<S> {
    /// Their keys alone. No record is read.
    pub fn keys(self) -> IndexKeys<S> {
        IndexKeys(self)
    }

    /// The key of the next record. The record is passed over and not read.
    pub fn next_key(&mut self) -> Option<Result<Vec<u8>>> {
        self.key(Way::Forward)
    }

    /// The key of the next record from the end.
    pub fn next_key_back(&mut self) -> Option<Result<Vec<u8>>> {
        self.key(Way::Backward)
    }

    fn key(&mut self, to: Way) -> Option<Result<Vec<u8>>> {
        if self.done {
            return None;
        }
        let (entries, index) = (&mut self.entries, &self.index);
        let key = entries.step(to, |entry, _| index.key_of(entry));
        self.done = !matches!(key, Some(Ok(_)));
        key
    }

    fn step(&mut self, to: Way) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        let key = self.key(to)?;
        let record = key.and_then(|key| self.index.record(self.source.txn(), key));
        self.done |= record.is_err();
        Some(record)
    }
}

impl<S: Reads> Iterator for IndexRecords<S> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Way::Forward)
    }
}

impl<S: Reads> DoubleEndedIterator for IndexRecords<S> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Way::Backward)
    }
}

impl<S: Reads> FusedIterator for IndexRecords<S> {}

/// An iterator over the keys of records in the order of an index, from both ends.
///
/// ```
/// # use azekura::{Db, Options, TableKind, storage::MemStorage};
/// # let db = Db::open_on(&MemStorage::default(), "t.azk", Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// t.put_many([("ada", "1815"), ("alan", "1912"), ("grace", "1906")])?;
/// let by_year = t.create_index("by_year", "v:i64")?;
/// let keys = by_year.range([1900.into()]..)?.keys();
/// assert_eq!(keys.collect::<azekura::Result<Vec<_>>>()?, [b"grace".to_vec(), b"alan".to_vec()]);
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct IndexKeys<S = Box<ReadTxn>>(IndexRecords<S>);

impl<S: Reads> Iterator for IndexKeys<S> {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.key(Way::Forward)
    }
}

impl<S: Reads> DoubleEndedIterator for IndexKeys<S> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.key(Way::Backward)
    }
}

impl<S: Reads> FusedIterator for IndexKeys<S> {}

/// Another thread may walk over the records that were looked up.
const _: fn() = || {
    fn can_be_sent<T: Send>() {}
    can_be_sent::<(Index, IndexRecords, IndexKeys)>();
};
