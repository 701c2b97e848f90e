//! Changing tables within a transaction.

use crate::arguments::azk_bytes;
use crate::call::Caller;
use crate::handles::{azk_table, azk_write};
use crate::slots::{owned, shared};
use crate::status::azk_status;
use std::ffi::c_void;

/// Sets the value of a key. A key has at most 65,536 bytes, a value at most 4 GiB less one byte. Errors:
/// AZK_TOO_LARGE, AZK_NO_SUCH_TABLE, AZK_INVALID if the table is of another database, AZK_CLOSED, AZK_FORKED.
/// A large value is stored at once, which may give AZK_READ_ONLY, AZK_NO_SPACE, AZK_IO, AZK_POISONED. If the
/// table has indexes, the old value is read, which may give AZK_CORRUPT, AZK_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_put(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let value = c.bytes(value, value_len, "value")?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        Ok(write.changed()?.put(&table, key, value)?)
    })
}

/// Removes a key, whether it is present or not. Errors: as azk_write_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_remove(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        Ok(write.changed()?.remove(&table, key)?)
    })
}

/// Sets the value of a key only if the key is absent. *done says whether it was absent. Errors: as
/// azk_write_put and azk_write_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_add(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    done: *mut bool,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let value = c.bytes(value, value_len, "value")?;
        let mut done = c.place(done, "done")?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        done.set(write.changed()?.add(&table, key, value)?);
        Ok(())
    })
}

/// Sets the value of a key only if the key is present. *done says whether it was present. Errors: as
/// azk_write_put and azk_write_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_replace(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    done: *mut bool,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let value = c.bytes(value, value_len, "value")?;
        let mut done = c.place(done, "done")?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        done.set(write.changed()?.replace(&table, key, value)?);
        Ok(())
    })
}

/// Appends to the value of a key. An absent value counts as empty. Errors: as azk_write_put and
/// azk_write_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_append(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let value = c.bytes(value, value_len, "value")?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        Ok(write.changed()?.append(&table, key, value)?)
    })
}

/// Adds to a number and gives the sum. Numbers have eight bytes, little-endian, in two's complement. An
/// absent key counts as zero. Sums wrap around. Errors: AZK_WRONG_TYPE if the value does not have eight
/// bytes, and as azk_write_put and azk_write_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_increment(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    delta: i64,
    sum: *mut i64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut sum = c.place(sum, "sum")?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        sum.set(write.changed()?.increment(&table, key, delta)?);
        Ok(())
    })
}

/// Replaces the value of a key only if it is `expected` (NULL: the key is absent). *done says whether it was.
/// A `new_value` of NULL removes the key. Errors: as azk_write_put and azk_write_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_compare_and_swap(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    expected: *const azk_bytes,
    new_value: *const azk_bytes,
    done: *mut bool,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let (expected, new) = (c.optional(expected, "expected")?, c.optional(new_value, "new_value")?);
        let mut done = c.place(done, "done")?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        done.set(write.changed()?.compare_and_swap(&table, key, expected, new)?);
        Ok(())
    })
}

/// Removes all keys from `from` on and below `to`; NULL is no bound. Ordered tables only. The cost does not
/// depend on the number of keys. Errors: AZK_WRONG_TYPE for a hash table, and as azk_write_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_remove_range(
    write: *mut azk_write,
    table: *const azk_table,
    from: *const azk_bytes,
    to: *const azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let span = c.span(from, to)?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        Ok(write.changed()?.remove_range(&table, (span.start(), span.end()))?)
    })
}

/// Removes all records of a table. Errors: as azk_write_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_clear(write: *mut azk_write, table: *const azk_table) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |_| {
        let (mut write, table) = (owned(write)?, shared(table)?);
        Ok(write.changed()?.clear(&table)?)
    })
}
