//! Lookups by an index: of a snapshot of now, or of what a transaction sees.

use crate::arguments::azk_bytes;
use crate::call::{Caller, call};
use crate::handles::{azk_index, azk_lookup, azk_read, azk_write};
use crate::slots::{end, own, owned, shared};
use crate::status::azk_status::{AZK_NOT_FOUND, AZK_OK};
use crate::status::{Outcome, azk_status, invalid};
use azekura::{AnyTxn, Index, IndexRecords, IndexValue};
use std::ops::Bound;
use std::vec::IntoIter;

/// The type of an azk_value.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum azk_value_kind {
    /// The value of a field that a record does not have. It comes before all others.
    AZK_VALUE_NULL = 0,
    /// The field `bytes`.
    AZK_VALUE_BYTES = 1,
    /// The field `bytes`, which is UTF-8.
    AZK_VALUE_TEXT = 2,
    /// The field `u64`.
    AZK_VALUE_U64 = 3,
    /// The field `i64`.
    AZK_VALUE_I64 = 4,
    /// The field `f64`.
    AZK_VALUE_F64 = 5,
}

/// A value of a field of an index. Only the field that `kind` names is read. Numbers may be of any type that
/// has them exactly.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_value {
    /// An azk_value_kind.
    pub kind: i32,
    /// Bytes or text.
    pub bytes: azk_bytes,
    /// An integer that is not negative; for a field of type bool 0 or 1.
    pub u64: u64,
    /// Any integer.
    pub i64: i64,
    /// A float, not NaN.
    pub f64: f64,
}

/// What a lookup's handle holds.
pub(crate) struct Lookup {
    records: Found,
    /// The record that was given last.
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Records from both ends.
enum Found {
    /// They are read when they are asked for.
    Walk(Box<IndexRecords>),
    /// They were read.
    List(IntoIter<(Vec<u8>, Vec<u8>)>),
}

const fn is_send<T: Send>() {}
const _: () = is_send::<Lookup>();

/// What is looked up.
enum Query<'a> {
    Equal(Vec<IndexValue<'a>>),
    Beginning(Vec<IndexValue<'a>>),
    Between(Vec<IndexValue<'a>>, Vec<IndexValue<'a>>),
}

/// The records of a query by an index, or by one as a transaction sees it.
macro_rules! ask {
    ($query:expr, $index:expr) => {
        match $query {
            Query::Equal(values) => $index.get(&values),
            Query::Beginning(values) => $index.prefix(&values),
            Query::Between(from, to) => {
                let from = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
                $index.range((from, if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) }))
            }
        }
    };
}

impl Lookup {
    fn new(records: Found) -> Lookup {
        Lookup { records, key: Vec::new(), value: Vec::new() }
    }

    /// Goes to the next record from one end. `false`: there is none.
    fn step(&mut self, back: bool, reads: bool) -> Outcome<bool> {
        self.key.clear();
        self.value.clear();
        let found = match (&mut self.records, back, reads) {
            (Found::Walk(walk), false, true) => walk.next().transpose()?,
            (Found::Walk(walk), true, true) => walk.next_back().transpose()?,
            (Found::Walk(walk), false, false) => walk.next_key().transpose()?.map(|key| (key, Vec::new())),
            (Found::Walk(walk), true, false) => {
                walk.next_key_back().transpose()?.map(|key| (key, Vec::new()))
            }
            (Found::List(list), false, _) => list.next(),
            (Found::List(list), true, _) => list.next_back(),
        };
        let is_there = found.is_some();
        (self.key, self.value) = found.unwrap_or_default();
        Ok(is_there)
    }
}

/// Values of the caller.
fn values<'a>(c: Caller, first: *const azk_value, count: usize) -> Outcome<Vec<IndexValue<'a>>> {
    let value = |value: &azk_value| {
        let bytes = || c.bytes(value.bytes.data, value.bytes.len, "the bytes of a value");
        Ok(match value.kind {
            0 => IndexValue::Null,
            1 => IndexValue::Bytes(bytes()?),
            2 => IndexValue::Text(
                std::str::from_utf8(bytes()?)
                    .map_err(|error| invalid(format!("the text of a value is not UTF-8: {error}")))?,
            ),
            3 => IndexValue::U64(value.u64),
            4 => IndexValue::I64(value.i64),
            5 => IndexValue::F64(value.f64),
            other => return Err(invalid(format!("{other} is no azk_value_kind"))),
        })
    };
    c.array(first, count, "values")?.iter().map(value).collect()
}

/// Gives the caller what `find` makes of a query.
fn found<'a>(
    c: Caller,
    out: *mut *mut azk_lookup,
    query: impl FnOnce() -> Outcome<Query<'a>>,
    find: impl FnOnce(Query<'a>) -> Outcome<Lookup>,
) -> azk_status {
    c.run(move |c| {
        let mut out = c.handle_place(out)?;
        let lookup = find(query()?)?;
        out.set(own(lookup)?);
        Ok(())
    })
}

/// A lookup of a snapshot of now.
fn looked_up<'a>(
    c: Caller,
    index: *const azk_index,
    out: *mut *mut azk_lookup,
    query: impl FnOnce() -> Outcome<Query<'a>>,
) -> azk_status {
    found(c, out, query, |query| {
        let index = shared(index)?;
        let records = ask!(query, index)?;
        Ok(Lookup::new(Found::Walk(Box::new(records))))
    })
}

/// All that a transaction sees of a query.
fn listed(index: &Index, txn: AnyTxn<'_>, query: Query<'_>) -> Outcome<Lookup> {
    let all: azekura::Result<Vec<_>> = ask!(query, index.read_in(txn))?.collect();
    Ok(Lookup::new(Found::List(all?.into_iter())))
}

/// A lookup in a read transaction.
fn looked_up_by_read<'a>(
    c: Caller,
    read: *mut azk_read,
    index: *const azk_index,
    out: *mut *mut azk_lookup,
    query: impl FnOnce() -> Outcome<Query<'a>>,
) -> azk_status {
    found(c, out, query, |query| {
        let (read, index) = (owned(read)?, shared(index)?);
        listed(&index, read.txn()?.into(), query)
    })
}

/// A lookup in a write transaction.
fn looked_up_by_write<'a>(
    c: Caller,
    write: *mut azk_write,
    index: *const azk_index,
    out: *mut *mut azk_lookup,
    query: impl FnOnce() -> Outcome<Query<'a>>,
) -> azk_status {
    found(c, out, query, |query| {
        let (write, index) = (owned(write)?, shared(index)?);
        listed(&index, write.txn()?.into(), query)
    })
}

/// Finds the records whose first fields have these values, in the order of the index, as it is at this
/// moment. Without values it finds all records that are in the index. Free the lookup with azk_lookup_free:
/// until then the space of what it sees is kept. On failure *out is NULL. Errors: AZK_INVALID if a field
/// cannot have its value or there are too many, AZK_NO_SUCH_INDEX, AZK_CORRUPT, AZK_IO, AZK_CLOSED,
/// AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_index_get(
    index: *const azk_index,
    values: *const azk_value,
    count: usize,
    out: *mut *mut azk_lookup,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    looked_up(c, index, out, || Ok(Query::Equal(self::values(c, values, count)?)))
}

/// As azk_index_get, but only the beginning of the last value is given. It is text or bytes. Errors: as
/// azk_index_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_index_prefix(
    index: *const azk_index,
    values: *const azk_value,
    count: usize,
    out: *mut *mut azk_lookup,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    looked_up(c, index, out, || Ok(Query::Beginning(self::values(c, values, count)?)))
}

/// As azk_index_get, the records from the values `from` on and below the values `to`. No values are no bound.
/// Errors: as azk_index_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_index_range(
    index: *const azk_index,
    from: *const azk_value,
    from_count: usize,
    to: *const azk_value,
    to_count: usize,
    out: *mut *mut azk_lookup,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    looked_up(c, index, out, || Ok(Query::Between(values(c, from, from_count)?, values(c, to, to_count)?)))
}

/// How many records have these values in their first fields. No record is read. Errors: as azk_index_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_index_count(
    index: *const azk_index,
    values: *const azk_value,
    count: usize,
    records: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut records = c.place(records, "records")?;
        let values = self::values(c, values, count)?;
        records.set(shared(index)?.count(&values)?);
        Ok(())
    })
}

/// As azk_index_range, as the snapshot has it. All of it is read now, so the lookup may outlive the
/// transaction. Errors: as azk_index_get, also AZK_NO_SUCH_INDEX if the index was made after the snapshot,
/// and AZK_INVALID if it was complete only after that, or is of another database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_index_range(
    read: *mut azk_read,
    index: *const azk_index,
    from: *const azk_value,
    from_count: usize,
    to: *const azk_value,
    to_count: usize,
    out: *mut *mut azk_lookup,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    looked_up_by_read(c, read, index, out, || {
        Ok(Query::Between(values(c, from, from_count)?, values(c, to, to_count)?))
    })
}

/// As azk_index_get, as the snapshot has it. Errors: as azk_read_index_range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_index_get(
    read: *mut azk_read,
    index: *const azk_index,
    values: *const azk_value,
    count: usize,
    out: *mut *mut azk_lookup,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    looked_up_by_read(c, read, index, out, || Ok(Query::Equal(self::values(c, values, count)?)))
}

/// As azk_index_prefix, as the snapshot has it. Errors: as azk_read_index_range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_index_prefix(
    read: *mut azk_read,
    index: *const azk_index,
    values: *const azk_value,
    count: usize,
    out: *mut *mut azk_lookup,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    looked_up_by_read(c, read, index, out, || Ok(Query::Beginning(self::values(c, values, count)?)))
}

/// As azk_index_range, as this transaction sees it at this moment; what it looks at counts as read. All of it
/// is read now, so the lookup does not see later writes, and may outlive the transaction. Errors: as
/// azk_read_index_range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_index_range(
    write: *mut azk_write,
    index: *const azk_index,
    from: *const azk_value,
    from_count: usize,
    to: *const azk_value,
    to_count: usize,
    out: *mut *mut azk_lookup,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    looked_up_by_write(c, write, index, out, || {
        Ok(Query::Between(values(c, from, from_count)?, values(c, to, to_count)?))
    })
}

/// As azk_index_get, as this transaction sees it at this moment. Errors: as azk_write_index_range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_index_get(
    write: *mut azk_write,
    index: *const azk_index,
    values: *const azk_value,
    count: usize,
    out: *mut *mut azk_lookup,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    looked_up_by_write(c, write, index, out, || Ok(Query::Equal(self::values(c, values, count)?)))
}

/// As azk_index_prefix, as this transaction sees it at this moment. Errors: as azk_write_index_range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_index_prefix(
    write: *mut azk_write,
    index: *const azk_index,
    values: *const azk_value,
    count: usize,
    out: *mut *mut azk_lookup,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    looked_up_by_write(c, write, index, out, || Ok(Query::Beginning(self::values(c, values, count)?)))
}

/// A step from either end.
fn step(
    lookup: *mut azk_lookup,
    back: bool,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
    c: Caller,
) -> azk_status {
    c.call(move |c| {
        let mut key = c.place(key, "key")?;
        let mut value = c.optional_place(value, "value")?;
        let mut lookup = owned(lookup)?;
        if !lookup.step(back, value.is_some())? {
            return Ok(AZK_NOT_FOUND);
        }
        key.set(azk_bytes::of(&lookup.key));
        value.iter_mut().for_each(|place| place.set(azk_bytes::of(&lookup.value)));
        Ok(AZK_OK)
    })
}

/// Gives the next record that was found: its key and value in the table, which stay until the next step or
/// until the lookup is freed. If `value` is NULL the record is not read. After the last record every call
/// gives AZK_NOT_FOUND. Errors: AZK_NOT_FOUND, AZK_CORRUPT, AZK_IO, AZK_CLOSED, AZK_FORKED; after one of
/// these but AZK_NOT_FOUND there is no other record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_lookup_next(
    lookup: *mut azk_lookup,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    step(lookup, false, key, value, unsafe { Caller::trusted() })
}

/// Gives the next record from the end. Each record is given once, from one end or the other. Errors: as
/// azk_lookup_next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_lookup_next_back(
    lookup: *mut azk_lookup,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    step(lookup, true, key, value, unsafe { Caller::trusted() })
}

/// Frees a lookup. NULL is allowed. Errors: none of its own.
#[unsafe(no_mangle)]
pub extern "C" fn azk_lookup_free(lookup: *mut azk_lookup) -> azk_status {
    call(move || {
        if !lookup.is_null() {
            end(lookup)?;
        }
        Ok(AZK_OK)
    })
}
