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

/// Is called with each record. The bytes stay until it returns. 0 goes on, any other number ends the walk.
pub type azk_scan_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        key: *const c_void,
        key_len: usize,
        value: *const c_void,
        value_len: usize,
    ) -> i32,
>;

/// Calls `callback` with each record of the table as it is now, in order: with the keys from `from` on and
/// below `to`; NULL is no bound, and a hash table has none. Errors: AZK_STOPPED if the callback has ended it,
/// AZK_INVALID if it is NULL, and as azk_table_cursor and azk_cursor_next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_scan(
    table: *const azk_table,
    from: *const azk_bytes,
    to: *const azk_bytes,
    callback: azk_scan_fn,
    user_data: *mut c_void,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.call(|c| {
        let callback = callback.ok_or_else(|| invalid("callback is NULL"))?;
        let span = c.span(from, to)?;
        // Nothing of the handle is held while the callback is called, so that it may do with it what it
        // likes.
        let mut cursor: Cursor = {
            let table = shared(table)?;
            if span.is_whole() { table.cursor()? } else { table.range((span.start(), span.end()))? }
        };
        while let Some((key, value)) = cursor.next()? {
            let value = value.bytes()?;
            // SAFETY: the bytes are there until the cursor moves, and the caller answers for what the
            // callback does.
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
