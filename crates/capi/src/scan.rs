//! Iteration by callback.

use crate::arguments::azk_bytes;
use crate::call::Caller;
use crate::handles::{azk_cursor, azk_table};
use crate::slots::{owned, shared};
use crate::status::azk_status::{AZK_OK, AZK_STOPPED};
use crate::status::{Outcome, azk_status, invalid};
use azekura::Cursor;
use std::ffi::c_void;

/// Called with each record. The bytes stay until it returns. 0 goes on; any other number ends the walk.
pub type azk_scan_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        key: *const c_void,
        key_len: usize,
        value: *const c_void,
        value_len: usize,
    ) -> i32,
>;

/// A callback for records, with what it is given.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    call: unsafe extern "C" fn(*mut c_void, *const c_void, usize, *const c_void, usize) -> i32,
    user_data: *mut c_void,
}

impl Callback {
    pub(crate) fn new(call: azk_scan_fn, user_data: *mut c_void) -> Outcome<Callback> {
        let call = call.ok_or_else(|| invalid("callback is NULL"))?;
        Ok(Callback { call, user_data })
    }

    /// What it answers.
    #[inline(always)]
    pub(crate) fn call(self, key: &[u8], value: &[u8]) -> i32 {
        self.call_at(azk_bytes::of(key), azk_bytes::of(value))
    }

    /// The same, of bytes that stay until it returns, unless it does away with them itself.
    #[inline(always)]
    fn call_at(self, key: azk_bytes, value: azk_bytes) -> i32 {
        // SAFETY: the bytes are there when it is called. The caller answers for what it does.
        crate::files::within(|| unsafe {
            (self.call)(self.user_data, key.data, key.len, value.data, value.len)
        })
    }
}

/// Calls `callback` with each record of the table as it is at this moment, in order: the keys from `from` on
/// and below `to`. NULL is no bound, and a hash table has no bounds. Errors: AZK_STOPPED if the callback has
/// ended the walk, AZK_INVALID if it is NULL, and as azk_table_cursor and azk_cursor_next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_scan(
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
        // No handle is held while the callback is called, so the callback may do what it likes with the
        // handles.
        let mut cursor: Cursor = {
            let table = shared(table)?;
            if span.is_whole() { table.cursor()? } else { table.range((span.start(), span.end()))? }
        };
        while let Some((key, value)) = cursor.next()? {
            if callback.call(key, value.bytes()?) != 0 {
                return Ok(AZK_STOPPED);
            }
        }
        Ok(AZK_OK)
    })
}

/// Calls `callback` with each record from the cursor's place to the end of its range, in order. So a table, a
/// snapshot and a transaction are walked alike, and a part that begins with a key after azk_cursor_seek. The
/// callback may free the cursor once it has no use for the record any more. Errors: AZK_STOPPED if it has
/// ended the walk (the cursor stands behind its last record), AZK_INVALID if it is NULL, and as
/// azk_cursor_next; AZK_BAD_HANDLE if the callback has freed the cursor and goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_cursor_scan(
    cursor: *mut azk_cursor,
    callback: azk_scan_fn,
    user_data: *mut c_void,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(move |_| {
        let callback = Callback::new(callback, user_data)?;
        loop {
            // The cursor is held until the end of this line, and not while the callback is called.
            let record = owned(cursor)?.record()?;
            match record {
                None => return Ok(AZK_OK),
                Some((key, value)) if callback.call_at(key, value) != 0 => return Ok(AZK_STOPPED),
                Some(_) => {}
            }
        }
    })
}
