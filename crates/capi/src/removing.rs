//! Removing what is looked at: a key that may be there, records that a callback refuses, a range with its
//! records.

use crate::arguments::{Span, azk_bytes};
use crate::call::Caller;
use crate::handles::{azk_table, azk_write};
use crate::scan::{Callback, azk_scan_fn};
use crate::slots::{owned, shared};
use crate::status::azk_status::{AZK_OK, AZK_STOPPED};
use crate::status::{Outcome, azk_status};
use azekura::{Records, Table};
use std::ffi::c_void;
use std::ops::Bound;

/// Removes a key. *done says whether it was there. It costs a get more than azk_table_remove. Errors: as
/// azk_table_put and azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_remove_existing(
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    done: *mut bool,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut done = c.place(done, "done")?;
        done.set(shared(table)?.remove_existing(key)?);
        Ok(())
    })
}

/// As azk_table_remove_existing, within this transaction. The key counts as read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_remove_existing(
    write: *mut azk_write,
    table: *const azk_table,
    key: *const c_void,
    key_len: usize,
    done: *mut bool,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let key = c.bytes(key, key_len, "key")?;
        let mut done = c.place(done, "done")?;
        let (mut write, table) = (owned(write)?, shared(table)?);
        done.set(write.changed()?.remove_existing(&table, key)?);
        Ok(())
    })
}

/// A range for the engine. That of a hash table is the whole table.
fn bounds<'a>(span: &Span<'a>) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (span.start(), span.end())
}

/// Removes the records from `from` on and below `to` for which `callback` returns 0. NULL is no bound, and a
/// hash table has no bounds. All go at once, and only records that the callback has refused go. If another
/// commit changes one of them meanwhile, all is done again, and the callback is called again. *removed says
/// how many have gone. `removed` may be NULL. Errors: AZK_WRONG_TYPE for a part of a hash table, AZK_CONFLICT
/// if they were changed each time, AZK_INVALID if the callback is NULL, and as azk_table_put and
/// azk_table_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_retain(
    table: *const azk_table,
    from: *const azk_bytes,
    to: *const azk_bytes,
    callback: azk_scan_fn,
    user_data: *mut c_void,
    removed: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let callback = Callback::new(callback, user_data)?;
        retain(c, table, from, to, removed, |table, span| {
            Ok(table.retain(bounds(span), |key, value| callback.call(key, value) != 0)?)
        })
    })
}

/// Removes what `f` removes of a part of a table, and says how many records these are. The table's handle is
/// not held meanwhile.
fn retain(
    c: Caller,
    table: *const azk_table,
    from: *const azk_bytes,
    to: *const azk_bytes,
    removed: *mut u64,
    f: impl FnOnce(&Table, &Span<'_>) -> Outcome<u64>,
) -> Outcome<()> {
    let span = c.span(from, to)?;
    let removed = c.optional_place(removed, "removed")?;
    let table: Table = shared(table)?.clone();
    let count = f(&table, &span)?;
    removed.into_iter().for_each(|mut place| place.set(count));
    Ok(())
}

/// As azk_table_retain, in a transaction, which sees its own writes. The callback sees the table as it was at
/// the beginning of the call, and must not use the transaction (AZK_BUSY). Errors: AZK_WRONG_TYPE for a part
/// of a hash table, AZK_INVALID if the callback is NULL, and as azk_write_get and azk_write_remove.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_retain(
    write: *mut azk_write,
    table: *const azk_table,
    from: *const azk_bytes,
    to: *const azk_bytes,
    callback: azk_scan_fn,
    user_data: *mut c_void,
    removed: *mut u64,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let callback = Callback::new(callback, user_data)?;
        retain(c, table, from, to, removed, |table, span| {
            let mut write = owned(write)?;
            let txn = write.changed()?;
            Ok(txn.retain(table, bounds(span), |key, value| callback.call(key, value) != 0)?)
        })
    })
}

/// Removes the records from `from` on and below `to`, and then calls `callback` with each of them. NULL is no
/// bound, and a hash table has no bounds. They are removed in one step, and as durably as by a put, before
/// the first call. So no two threads get the same record, and records that the callback does not come to are
/// gone too. Errors: AZK_STOPPED if it has ended the walk, AZK_WRONG_TYPE for a part of a hash table,
/// AZK_INVALID if it is NULL (nothing is removed then), and as azk_table_put and azk_cursor_next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_drain(
    table: *const azk_table,
    from: *const azk_bytes,
    to: *const azk_bytes,
    callback: azk_scan_fn,
    user_data: *mut c_void,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let callback = Callback::new(callback, user_data)?;
        let span = c.span(from, to)?;
        let records = shared(table)?.drain(bounds(&span))?;
        hand_out(records, callback)
    })
}

/// As azk_table_drain, within this transaction. Others see it when the transaction is committed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_drain(
    write: *mut azk_write,
    table: *const azk_table,
    from: *const azk_bytes,
    to: *const azk_bytes,
    callback: azk_scan_fn,
    user_data: *mut c_void,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |c| {
        let callback = Callback::new(callback, user_data)?;
        let span = c.span(from, to)?;
        let records = {
            let (mut write, table) = (owned(write)?, shared(table)?);
            write.changed()?.drain(&table, bounds(&span))?
        };
        hand_out(records, callback)
    })
}

/// Calls the callback with each record.
fn hand_out(records: Records, callback: Callback) -> Outcome<azk_status> {
    for record in records {
        let (key, value) = record?;
        if callback.call(&key, &value) != 0 {
            return Ok(AZK_STOPPED);
        }
    }
    Ok(AZK_OK)
}
