//! Reading a table. Each call stands for itself.

use crate::call::Caller;
use crate::handles::azk_table;
use crate::memory::Block;
use crate::slots::shared;
use crate::status::azk_status::{AZK_NOT_FOUND, AZK_OK};
use crate::status::{Outcome, azk_status};
use std::ffi::c_void;

/// The status of a call that copies a value into the caller's buffer. None: the value is absent.
#[inline(always)]
pub(crate) fn found(copied: Option<azk_status>) -> Outcome<azk_status> {
    Ok(copied.unwrap_or(AZK_NOT_FOUND))
}

/// Gives a copy of a value, if there is one.
pub(crate) fn give(
    c: Caller,
    value: *mut *mut c_void,
    len: *mut usize,
    get: impl FnOnce() -> Outcome<Option<Outcome<Block>>>,
) -> Outcome<azk_status> {
    let (mut value, mut len) = (c.handle_place(value)?, c.place(len, "len")?);
    len.set(0);
    let Some(block) = get()? else { return Ok(AZK_NOT_FOUND) };
    let block = block?;
    len.set(block.len());
    value.set(block.release());
    Ok(AZK_OK)
}

/// Copies the value of a key into a buffer of `capacity` bytes. *len is the length of the value, also if the
/// value does not fit: then nothing is copied. `buffer` may be NULL if `capacity` is 0. Errors:
/// AZK_NOT_FOUND, AZK_BUFFER_TOO_SMALL, AZK_CORRUPT, AZK_IO, AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_get(
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
        let mut into = c.buffer(buffer, capacity, len)?;
        found(shared(table)?.get_with(key, |value| into.fill(value))?)
    })
}

/// A copy of the value of a key. Free it with azk_free. If the key is absent *value is NULL; for an empty
/// value it is not. Errors: AZK_NOT_FOUND, AZK_NO_MEMORY, and as azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_get_alloc(
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let get = || Ok(shared(table)?.get_with(key, Block::copy)?);
        give(c, value, value_len, get)
    })
}

/// Whether a key is present. Errors: as azk_table_get, without AZK_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_contains(
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    is_there: *mut bool,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut is_there = c.place(is_there, "is_there")?;
        is_there.set(shared(table)?.contains(key)?);
        Ok(())
    })
}

/// How many records the table has. This walks over all of them unless the table was compacted. Errors:
/// AZK_CORRUPT, AZK_IO, AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_count(table: *const azk_table, count: *mut u64) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut count = c.place(count, "count")?;
        count.set(shared(table)?.count()?);
        Ok(())
    })
}

/// Removes a key and gives a copy of its value. Free it with azk_free. If the key is absent *value is NULL.
/// Errors: AZK_NOT_FOUND, AZK_NO_MEMORY (the record is removed all the same), and as azk_table_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_take(
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let take = || Ok(shared(table)?.take(key)?.map(|value| Block::copy(&value)));
        give(c, value, value_len, take)
    })
}
