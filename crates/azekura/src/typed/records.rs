//! Walks over tables with types.

use super::codec::{Key, Types, Value, in_record};
use crate::base::error::Result;
use crate::cursor::{Cursor, LazyValue, Records, Way};
use crate::engine::Table;
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// An iterator over copies of the records of a [`TypedTable`](super::TypedTable), from both ends, as
/// [`Records`]. After an error it has ended.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-typedrecords-{}.azk", std::process::id()));
/// # use azekura::{Db, Options};
/// # let db = Db::open(&path, Options::new())?;
/// use azekura::TableDefinition;
/// const BORN: TableDefinition<str, u16> = TableDefinition::ordered("born");
/// let born = db.typed_table(&BORN)?;
/// born.put_many([("ada", 1815), ("grace", 1906)])?;
/// let mut records = born.range("a"..)?;
/// assert_eq!(records.next_back().transpose()?, Some(("grace".to_owned(), 1906)));
/// # drop((records, born)); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct TypedRecords<K: ?Sized, V: ?Sized> {
    records: Records,
    table: Table,
    types: Types<K, V>,
}

impl<K: Key + ?Sized, V: Value + ?Sized> TypedRecords<K, V> {
    pub(super) fn new(records: Records, table: Table) -> Self {
        TypedRecords { records, table, types: PhantomData }
    }

    fn step(&mut self, way: Way) -> Option<Result<(K::Owned, V::Owned)>> {
        let table = &self.table;
        self.records.step(way, |key, value| own_record::<K, V>(table, key, value.bytes()?))
    }
}

impl<K: Key + ?Sized, V: Value + ?Sized> Iterator for TypedRecords<K, V> {
    type Item = Result<(K::Owned, V::Owned)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Way::Forward)
    }
}

impl<K: Key + ?Sized, V: Value + ?Sized> DoubleEndedIterator for TypedRecords<K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Way::Backward)
    }
}

impl<K: Key + ?Sized, V: Value + ?Sized> FusedIterator for TypedRecords<K, V> {}

/// A [`Cursor`] over a [`TypedTable`](super::TypedTable): keys and values are read where they stand, and
/// nothing is copied.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-typedcursor-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableDefinition};
/// # let db = Db::open(&path, Options::new())?;
/// const NAMES: TableDefinition<u32, str> = TableDefinition::ordered("names");
/// let names = db.typed_table(&NAMES)?;
/// names.put_many([(7, "ada"), (9, "grace"), (12, "alan")])?;
/// let mut cursor = names.cursor()?;
/// cursor.seek(8)?;
/// assert_eq!(cursor.next()?, Some((9, "grace")));
/// assert_eq!(cursor.next()?, Some((12, "alan")));
/// assert_eq!(cursor.next()?, None);
/// # drop(cursor); drop(names); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct TypedCursor<K: ?Sized, V: ?Sized> {
    cursor: Cursor,
    table: Table,
    types: Types<K, V>,
}

impl<K: Key + ?Sized, V: Value + ?Sized> TypedCursor<K, V> {
    pub(super) fn new(cursor: Cursor, table: Table) -> Self {
        TypedCursor { cursor, table, types: PhantomData }
    }

    /// Goes before the first record.
    pub fn seek_first(&mut self) {
        self.cursor.seek_first();
    }

    /// Goes after the last record.
    pub fn seek_last(&mut self) {
        self.cursor.seek_last();
    }

    /// Goes to a key: `next` then gives the first record at or above it, `prev` the last below. Ordered
    /// tables only.
    ///
    /// # Errors
    /// `WrongType` for a hash table; `Invalid` for what cannot be a key.
    pub fn seek(&mut self, key: K::Given<'_>) -> Result<()> {
        K::with_bytes(key, |key| self.cursor.seek(key))
    }

    /// The next record; none after the last one.
    ///
    /// # Errors
    /// As [`Cursor::next`]; `WrongType` if it has not the form of the types.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(K::View<'_>, V::View<'_>)>> {
        let table = &self.table;
        self.cursor.next()?.map(|record| view_record::<K, V>(table, record)).transpose()
    }

    /// The record before; none before the first one.
    ///
    /// # Errors
    /// As [`next`](TypedCursor::next).
    pub fn prev(&mut self) -> Result<Option<(K::View<'_>, V::View<'_>)>> {
        let table = &self.table;
        self.cursor.prev()?.map(|record| view_record::<K, V>(table, record)).transpose()
    }
}

fn view_record<'a, K: Key + ?Sized, V: Value + ?Sized>(
    table: &Table,
    (key, value): (&'a [u8], LazyValue<'a>),
) -> Result<(K::View<'a>, V::View<'a>)> {
    let found = K::view(key);
    match found {
        Ok(found) => Ok((found, V::view(value.bytes()?).map_err(|e| in_record(table, key, e))?)),
        Err(e) => Err(in_record(table, key, e)),
    }
}

/// A copy of a record.
pub(super) fn own_record<K: Key + ?Sized, V: Value + ?Sized>(
    table: &Table,
    key: &[u8],
    value: &[u8],
) -> Result<(K::Owned, V::Owned)> {
    let read = || Ok((K::own(K::view(key)?), V::own(V::view(value)?)));
    read().map_err(|e| in_record(table, key, e))
}
