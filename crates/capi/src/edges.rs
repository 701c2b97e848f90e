//! The first and the last record of a table: reading, and removing them.

use crate::arguments::azk_bytes;
use crate::call::Caller;
use crate::handles::{azk_read, azk_table, azk_write};
use crate::memory::Block;
use crate::slots::{owned, shared};
use crate::status::azk_status::{AZK_NOT_FOUND, AZK_OK};
use crate::status::{Outcome, azk_status};

type Record = Option<(Vec<u8>, Vec<u8>)>;

/// Gives a copy of a record, if there is one, in one block that begins with the key.
fn give(
    c: Caller,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
    get: impl FnOnce() -> Outcome<Record>,
) -> azk_status {
    c.call(move |c| {
        let (mut key, mut value) = (c.place(key, "key")?, c.place(value, "value")?);
        key.set(azk_bytes::NONE);
        value.set(azk_bytes::NONE);
        let Some((found, its_value)) = get()? else { return Ok(AZK_NOT_FOUND) };
        let mut block = Block::new(found.len() + its_value.len())?;
        key.set(block.add(&found));
        value.set(block.add(&its_value));
        block.release::<u8>();
        Ok(AZK_OK)
    })
}

/// The first record of a table. Of a hash table it may be any. Key and value are copies in one block: free it
/// with azk_free(key->data). Errors: AZK_NOT_FOUND if the table has no records, AZK_NO_MEMORY, and as
/// azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_first(
    table: *const azk_table,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    give(unsafe { Caller::trusted() }, key, value, || Ok(shared(table)?.first()?))
}

/// The last record of a table. Of a hash table it may be any. Else as azk_table_first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_last(
    table: *const azk_table,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    give(unsafe { Caller::trusted() }, key, value, || Ok(shared(table)?.last()?))
}

/// Removes the first record of a table and gives it, as azk_table_first. Threads that do so at the same time
/// get a record each. If there is no memory for the copy, the record is gone. Errors: as azk_table_first and
/// azk_table_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_pop_first(
    table: *const azk_table,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    give(unsafe { Caller::trusted() }, key, value, || Ok(shared(table)?.pop_first()?))
}

/// Removes the last record of a table and gives it, as azk_table_last. Else as azk_table_pop_first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_pop_last(
    table: *const azk_table,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    give(unsafe { Caller::trusted() }, key, value, || Ok(shared(table)?.pop_last()?))
}

/// As azk_table_first, as the snapshot has the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_first(
    read: *mut azk_read,
    table: *const azk_table,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    give(unsafe { Caller::trusted() }, key, value, || {
        let (read, table) = (owned(read)?, shared(table)?);
        Ok(read.txn()?.first(&table)?)
    })
}

/// As azk_table_last, as the snapshot has the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_last(
    read: *mut azk_read,
    table: *const azk_table,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    give(unsafe { Caller::trusted() }, key, value, || {
        let (read, table) = (owned(read)?, shared(table)?);
        Ok(read.txn()?.last(&table)?)
    })
}

/// As azk_table_first, as this transaction sees the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_first(
    write: *mut azk_write,
    table: *const azk_table,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    give(unsafe { Caller::trusted() }, key, value, || {
        let (write, table) = (owned(write)?, shared(table)?);
        Ok(write.txn()?.first(&table)?)
    })
}

/// As azk_table_last, as this transaction sees the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_last(
    write: *mut azk_write,
    table: *const azk_table,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    give(unsafe { Caller::trusted() }, key, value, || {
        let (write, table) = (owned(write)?, shared(table)?);
        Ok(write.txn()?.last(&table)?)
    })
}

/// As azk_table_pop_first, within this transaction. For conflicts only the keys up to the record count as
/// read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_pop_first(
    write: *mut azk_write,
    table: *const azk_table,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    give(unsafe { Caller::trusted() }, key, value, || {
        let (mut write, table) = (owned(write)?, shared(table)?);
        Ok(write.changed()?.pop_first(&table)?)
    })
}

/// As azk_table_pop_last, within this transaction. For conflicts only the keys from the record on count as
/// read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_pop_last(
    write: *mut azk_write,
    table: *const azk_table,
    key: *mut azk_bytes,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    give(unsafe { Caller::trusted() }, key, value, || {
        let (mut write, table) = (owned(write)?, shared(table)?);
        Ok(write.changed()?.pop_last(&table)?)
    })
}
