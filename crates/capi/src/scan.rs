//! Iteration by callback.

use crate::arguments::azk_bytes;
use crate::call::Caller;
use crate::handles::azk_table;
use crate::slots::shared;
use crate::status::azk_status;
use crate::status::azk_status::{AZK_OK, AZK_STOPPED};
use crate::status::invalid;
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
        let callback = callback.ok_or_else(|| invalid("callback is NULL"))?;
        let span = c.span(from, to)?;
        // No handle is held while the callback is called, so the callback may do what it likes with the
        // handles.
        let mut cursor: Cursor = {
            let table = shared(table)?;
            if span.is_whole() { table.cursor()? } else { table.range((span.start(), span.end()))? }
        };
        while let Some((key, value)) = cursor.next()? {
            let value = value.bytes()?;
            // SAFETY: the bytes stay until the cursor moves. The caller answers for what the callback does.
            let answer = unsafe {
                callback(user_data, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len())
            };
            if answer != 0 {
                return Ok(AZK_STOPPED);
            }
        }
        Ok(AZK_OK)
    })
}
