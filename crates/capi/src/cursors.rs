//! Makes cursors: over a table as it is, as a read transaction sees it, or as a write transaction sees it.

use crate::arguments::azk_bytes;
use crate::call::Caller;
use crate::cursor::Walk;
use crate::handles::{azk_cursor, azk_read, azk_table, azk_write};
use crate::slots::{own, owned, shared};
use crate::status::{Outcome, azk_status};
use azekura::Cursor;
use std::ffi::c_void;

/// A call that makes a cursor.
fn made(c: Caller, out: *mut *mut azk_cursor, make: impl FnOnce() -> Outcome<Cursor>) -> azk_status {
    c.run(move |c| {
        let mut out = c.handle_place(out)?;
        out.set(own(Walk::new(make()?))?);
        Ok(())
    })
}

/// Makes a cursor over the table as it is at this moment, before its first record. It covers the keys from
/// `from` on and below `to`; NULL is no bound. (The smallest key above a key is that key with a zero byte
/// added.) A hash table has no bounds. Free the cursor with azk_cursor_free: until then the space of what it
/// sees is kept. On failure *out is NULL. Errors: AZK_WRONG_TYPE for bounds in a hash table, AZK_CORRUPT,
/// AZK_IO, AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_cursor(
    table: *const azk_table,
    from: *const azk_bytes,
    to: *const azk_bytes,
    out: *mut *mut azk_cursor,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    made(c, out, || {
        let span = c.span(from, to)?;
        let table = shared(table)?;
        if span.is_whole() { Ok(table.cursor()?) } else { Ok(table.range((span.start(), span.end()))?) }
    })
}

/// As azk_table_cursor, over the keys that begin with `prefix`. Ordered tables only. Errors: as
/// azk_table_cursor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_prefix_cursor(
    table: *const azk_table,
    prefix: *const c_void,
    prefix_len: usize,
    out: *mut *mut azk_cursor,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    made(c, out, || {
        let prefix = c.bytes(prefix, prefix_len, "prefix")?;
        let table = shared(table)?;
        Ok(table.prefix(prefix)?)
    })
}

/// As azk_table_cursor, over the table as the snapshot has it. The cursor may outlive the transaction.
/// Errors: as azk_table_cursor, and AZK_INVALID if the table is of another database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_cursor(
    read: *mut azk_read,
    table: *const azk_table,
    from: *const azk_bytes,
    to: *const azk_bytes,
    out: *mut *mut azk_cursor,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    made(c, out, || {
        let span = c.span(from, to)?;
        let (read, table) = (owned(read)?, shared(table)?);
        let read = read.txn()?;
        if span.is_whole() {
            Ok(read.cursor(&table)?)
        } else {
            Ok(read.range(&table, (span.start(), span.end()))?)
        }
    })
}

/// As azk_read_cursor, over the keys that begin with `prefix`. Ordered tables only. Errors: as
/// azk_read_cursor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_read_prefix_cursor(
    read: *mut azk_read,
    table: *const azk_table,
    prefix: *const c_void,
    prefix_len: usize,
    out: *mut *mut azk_cursor,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    made(c, out, || {
        let prefix = c.bytes(prefix, prefix_len, "prefix")?;
        let (read, table) = (owned(read)?, shared(table)?);
        let read = read.txn()?;
        Ok(read.prefix(&table, prefix)?)
    })
}

/// As azk_table_cursor, over the table as this transaction sees it at this moment. The cursor does not see
/// later writes, and may outlive the transaction. Errors: as azk_table_cursor, and AZK_INVALID if the table
/// is of another database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_cursor(
    write: *mut azk_write,
    table: *const azk_table,
    from: *const azk_bytes,
    to: *const azk_bytes,
    out: *mut *mut azk_cursor,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    made(c, out, || {
        let span = c.span(from, to)?;
        let (write, table) = (owned(write)?, shared(table)?);
        if span.is_whole() {
            Ok(write.txn()?.cursor(&table)?)
        } else {
            Ok(write.txn()?.range(&table, (span.start(), span.end()))?)
        }
    })
}

/// As azk_write_cursor, over the keys that begin with `prefix`. Ordered tables only. Errors: as
/// azk_write_cursor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_write_prefix_cursor(
    write: *mut azk_write,
    table: *const azk_table,
    prefix: *const c_void,
    prefix_len: usize,
    out: *mut *mut azk_cursor,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    made(c, out, || {
        let prefix = c.bytes(prefix, prefix_len, "prefix")?;
        let (write, table) = (owned(write)?, shared(table)?);
        Ok(write.txn()?.prefix(&table, prefix)?)
    })
}
