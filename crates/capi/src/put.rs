//! Changing a table. Each call is a transaction of its own, with the durability of the database's options.

use crate::arguments::azk_bytes;
use crate::call::Caller;
use crate::handles::azk_table;
use crate::slots::shared;
use crate::status::azk_status;
use std::ffi::c_void;

/// Sets the value of a key. A key has at most 65,536 bytes, a value at most 4 GiB less one byte. Errors:
/// AZK_TOO_LARGE, AZK_READ_ONLY, AZK_NO_SPACE, AZK_IO, AZK_POISONED, AZK_NO_SUCH_TABLE, AZK_CLOSED,
/// AZK_FORKED; if the table has indexes, AZK_NOT_UNIQUE, and AZK_CORRUPT if the old value is damaged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_put(
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
        Ok(shared(table)?.put(key, value)?)
    })
}

/// Removes a key, whether it is present or not. Errors: as azk_table_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_remove(
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        Ok(shared(table)?.remove(key)?)
    })
}

/// Sets the value of a key only if the key is absent. *done says whether it was absent. Errors: as
/// azk_table_put and azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_add(
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
        done.set(shared(table)?.add(key, value)?);
        Ok(())
    })
}

/// Sets the value of a key only if the key is present. *done says whether it was present. Errors: as
/// azk_table_put and azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_replace(
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
        done.set(shared(table)?.replace(key, value)?);
        Ok(())
    })
}

/// Appends to the value of a key. An absent value counts as empty. Errors: as azk_table_put and
/// azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_append(
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
        Ok(shared(table)?.append(key, value)?)
    })
}

/// Adds to a number and gives the sum. Numbers have eight bytes, little-endian, in two's complement. An
/// absent key counts as zero. Sums wrap around. Errors: AZK_WRONG_TYPE if the value does not have eight
/// bytes, and as azk_table_put and azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_increment(
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
        sum.set(shared(table)?.increment(key, delta)?);
        Ok(())
    })
}

/// Replaces the value of a key only if it is `expected` (NULL: the key is absent). *done says whether it was.
/// A `new_value` of NULL removes the key. Errors: as azk_table_put and azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_compare_and_swap(
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
        done.set(shared(table)?.compare_and_swap(key, expected, new)?);
        Ok(())
    })
}

/// Removes all keys from `from` on and below `to`; NULL is no bound. Ordered tables only. The cost does not
/// depend on the number of keys. Errors: AZK_WRONG_TYPE for a hash table, and as azk_table_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_remove_range(
    table: *const azk_table,
    from: *const azk_bytes,
    to: *const azk_bytes,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let span = c.span(from, to)?;
        Ok(shared(table)?.remove_range((span.start(), span.end()))?)
    })
}

/// Removes all records of the table. Errors: as azk_table_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_clear(table: *const azk_table) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |_| Ok(shared(table)?.clear()?))
}
