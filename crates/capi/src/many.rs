//! Many records in one call, which is much faster than as many calls.

use crate::arguments::azk_bytes;
use crate::call::Caller;
use crate::handles::{azk_read, azk_table, azk_write};
use crate::memory::Block;
use crate::slots::{owned, shared};
use crate::status::{Outcome, azk_status};
use std::ops::Range;

/// Copies of several values, in the order in which they are found.
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    places: Vec<Option<Range<usize>>>,
}

impl Gathered {
    fn new(count: usize) -> Gathered {
        Gathered { bytes: Vec::new(), places: vec![None; count] }
    }

    /// Keeps the value of a key.
    pub(crate) fn add(&mut self, index: usize, value: Option<&[u8]>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.places[index] = value.map(|_| start..self.bytes.len());
    }

    /// A block with an array of the values' places, followed by the values.
    fn block(&self) -> Outcome<Block> {
        let count = self.places.len();
        let mut block = Block::new(count * size_of::<azk_bytes>() + self.bytes.len())?;
        block.begin_with::<azk_bytes>(count);
        let all = block.add(&self.bytes);
        for (i, place) in self.places.iter().enumerate() {
            let data =
                |at: &Range<usize>| azk_bytes { data: all.data.wrapping_byte_add(at.start), len: at.len() };
            block.set(i, place.as_ref().map_or(azk_bytes::NONE, data));
        }
        Ok(block)
    }
}

/// A call that gives the values of several keys.
pub(crate) fn gather(
    c: Caller,
    keys: *const azk_bytes,
    count: usize,
    out: *mut *mut azk_bytes,
    get: impl FnOnce(&[&[u8]], &mut Gathered) -> Outcome<()>,
) -> azk_status {
    c.run(move |c| {
        let mut out = c.handle_place(out)?;
        let keys = c.many(keys, count, "a key")?;
        let mut gathered = Gathered::new(count);
        get(&keys, &mut gathered)?;
        out.set(gathered.block()?.release());
        Ok(())
    })
}

/// The values of `count` keys, in their order: an array of as many azk_bytes. Free the array with azk_free,
/// once. For an absent key `data` is NULL; for an empty value it is not. On failure *values is NULL. Errors:
/// AZK_NO_MEMORY, and as azk_table_get, without AZK_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_get_many(
    table: *const azk_table,
    keys: *const azk_bytes,
    count: usize,
    values: *mut *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    gather(c, keys, count, values, |keys, all| {
        Ok(shared(table)?.get_many_with(keys, |i, value| all.add(i, value))?)
    })
}

/// As azk_table_get_many, as the snapshot has the table. Errors: as azk_read_get and azk_table_get_many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_get_many(
    read: *mut azk_read,
    table: *const azk_table,
    keys: *const azk_bytes,
    count: usize,
    values: *mut *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    gather(c, keys, count, values, |keys, all| {
        let (read, table) = (owned(read)?, shared(table)?);
        Ok(read.txn()?.get_many_with(&table, keys, |i, value| all.add(i, value))?)
    })
}

/// As azk_table_get_many, as this transaction sees the table. Errors: as azk_write_get and
/// azk_table_get_many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_get_many(
    write: *mut azk_write,
    table: *const azk_table,
    keys: *const azk_bytes,
    count: usize,
    values: *mut *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    gather(c, keys, count, values, |keys, all| {
        let (write, table) = (owned(write)?, shared(table)?);
        let values = write.txn()?.get_many(&table, keys)?;
        values.iter().enumerate().for_each(|(i, value)| all.add(i, value.as_deref()));
        Ok(())
    })
}

/// Sets the values of `count` keys in one transaction. If keys are equal the last one counts. Errors: as
/// azk_table_put; nothing is written then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_put_many(
    table: *const azk_table,
    keys: *const azk_bytes,
    values: *const azk_bytes,
    count: usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let (keys, values) = (c.many(keys, count, "a key")?, c.many(values, count, "a value")?);
        Ok(shared(table)?.put_many(keys.into_iter().zip(values))?)
    })
}

/// Sets the values of `count` keys within a transaction. If keys are equal the last one counts. Errors: as
/// azk_write_put; the records before the failed one are in the transaction then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_put_many(
    write: *mut azk_write,
    table: *const azk_table,
    keys: *const azk_bytes,
    values: *const azk_bytes,
    count: usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let (keys, values) = (c.many(keys, count, "a key")?, c.many(values, count, "a value")?);
        let (mut write, table) = (owned(write)?, shared(table)?);
        Ok(write.changed()?.put_many(&table, keys.into_iter().zip(values))?)
    })
}
