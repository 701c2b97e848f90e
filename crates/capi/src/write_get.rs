//! Reading within a write transaction, which sees its own writes.

use crate::arguments::{Buffer, azk_bytes};
use crate::call::Caller;
use crate::get::{found, give};
use crate::handles::{azk_table, azk_write};
use crate::memory::Block;
use crate::slots::{owned, shared};
use crate::status::azk_status;
use crate::status::azk_status::{AZK_NOT_FOUND, AZK_OK};
use std::ffi::c_void;

/// As azk_table_get, as this transaction sees the table. Errors: AZK_INVALID if the table is of another
/// database, AZK_NO_SUCH_TABLE if it was made later, and as azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_get(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    len: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut into: Buffer = c.buffer(buffer, capacity, len)?;
        let (write, table) = (owned(write)?, shared(table)?);
        found(write.txn()?.get(&table, key)?.map(|value| into.fill(&value)))
    })
}

/// As azk_table_get_alloc, as this transaction sees the table. Errors: as azk_write_get, and AZK_NO_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_get_alloc(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        give(c, value, value_len, || {
            let (write, table) = (owned(write)?, shared(table)?);
            Ok(write.txn()?.get(&table, key)?.map(|value| Block::copy(&value)))
        })
    })
}

/// The value of a key, without a copy, as this transaction sees it. The bytes stay unchanged in place until
/// the transaction is next changed: by a call that writes, sets a savepoint or goes back to one, opens or
/// changes a table, or ends it. Reading calls leave them. Until then each value takes some 100 bytes of
/// memory, and keeps the page or segment that holds it. On failure *value is NULL and 0. Errors: as
/// azk_write_get, without AZK_BUFFER_TOO_SMALL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_get_ref(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *mut azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut value = c.place(value, "value")?;
        value.set(azk_bytes::NONE);
        let (mut write, table) = (owned(write)?, shared(table)?);
        let Some(bytes) = write.lend(&table, key)? else { return Ok(AZK_NOT_FOUND) };
        value.set(bytes);
        Ok(AZK_OK)
    })
}

/// Removes a key and gives a copy of its value. Free it with azk_free. If the key is absent *value is NULL.
/// Errors: AZK_NOT_FOUND, AZK_NO_MEMORY, and as azk_write_put and azk_write_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_take(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        give(c, value, value_len, || {
            let (mut write, table) = (owned(write)?, shared(table)?);
            Ok(write.changed()?.take(&table, key)?.map(|value| Block::copy(&value)))
        })
    })
}

/// Whether a key is present. Errors: as azk_write_get, without AZK_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_contains(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    is_there: *mut bool,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut is_there = c.place(is_there, "is_there")?;
        let (write, table) = (owned(write)?, shared(table)?);
        is_there.set(write.txn()?.contains(&table, key)?);
        Ok(())
    })
}

/// How many records the table has, as this transaction sees it. Errors: as azk_table_count, and AZK_INVALID
/// if the table is of another database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_count(
    write: *mut azk_write,
    table: *const azk_table,
    count: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut count = c.place(count, "count")?;
        let (write, table) = (owned(write)?, shared(table)?);
        count.set(write.txn()?.count(&table)?);
        Ok(())
    })
}
