//! Databases of indexes. They are databases like others, with fewer functions.

use crate::call::Caller;
use crate::codes::*;
use crate::db;
use crate::files;
use crate::records;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

/// The database object of an index.
fn inner(c: Caller, index: *mut KCIDX) -> *mut KCDB {
    c.handle(index.cast_const()).map_or(null_mut(), |index| index.db.cast())
}

/// Makes an index. Free it with kcidxdel.
#[unsafe(no_mangle)]
pub extern "C" fn kcidxnew() -> *mut KCIDX {
    Box::into_raw(Box::new(KCIDX { db: db::kcdbnew().cast() }))
}

/// As kcdbdel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxdel(index: *mut KCIDX) {
    // SAFETY: `kcidxnew` has made the box. The header demands of the caller that it is not freed twice.
    unsafe {
        if !index.is_null() && db::delete(inner(Caller::trusted(), index)) {
            drop(Box::from_raw(index));
        }
    }
}

/// The database object of an index. It is freed with the index. NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxrevealinnerdb(index: *mut KCIDX) -> *mut KCDB {
    // SAFETY: as the header demands of the caller.
    inner(unsafe { Caller::trusted() }, index)
}

/// As kcdbopen.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxopen(index: *mut KCIDX, path: *const c_char, mode: u32) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { files::kcdbopen(inner(Caller::trusted(), index), path, mode) }
}

/// As kcdbclose.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxclose(index: *mut KCIDX) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { files::kcdbclose(inner(Caller::trusted(), index)) }
}

/// As kcdbecode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxecode(index: *mut KCIDX) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { db::kcdbecode(inner(Caller::trusted(), index)) }
}

/// As kcdbemsg.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxemsg(index: *mut KCIDX) -> *const c_char {
    // SAFETY: as the header demands of the caller.
    unsafe { db::kcdbemsg(inner(Caller::trusted(), index)) }
}

/// As kcdbset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxset(
    index: *mut KCIDX,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { records::kcdbset(inner(Caller::trusted(), index), key, key_len, value, value_len) }
}

/// As kcdbadd.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxadd(
    index: *mut KCIDX,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { records::kcdbadd(inner(Caller::trusted(), index), key, key_len, value, value_len) }
}

/// As kcdbreplace.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxreplace(
    index: *mut KCIDX,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { records::kcdbreplace(inner(Caller::trusted(), index), key, key_len, value, value_len) }
}

/// As kcdbappend.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxappend(
    index: *mut KCIDX,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { records::kcdbappend(inner(Caller::trusted(), index), key, key_len, value, value_len) }
}

/// As kcdbremove.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxremove(index: *mut KCIDX, key: *const c_char, key_len: usize) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { records::kcdbremove(inner(Caller::trusted(), index), key, key_len) }
}

/// As kcdbget.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxget(
    index: *mut KCIDX,
    key: *const c_char,
    key_len: usize,
    value_len: *mut usize,
) -> *mut c_char {
    // SAFETY: as the header demands of the caller.
    unsafe { records::kcdbget(inner(Caller::trusted(), index), key, key_len, value_len) }
}

/// As kcdbsync.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxsync(
    index: *mut KCIDX,
    hard: i32,
    proc: KCFILEPROC,
    opaque: *mut c_void,
) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { db::kcdbsync(inner(Caller::trusted(), index), hard, proc, opaque) }
}

/// As kcdbclear.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxclear(index: *mut KCIDX) -> i32 {
    // SAFETY: as the header demands of the caller.
    unsafe { db::kcdbclear(inner(Caller::trusted(), index)) }
}

/// As kcdbcount.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxcount(index: *mut KCIDX) -> i64 {
    // SAFETY: as the header demands of the caller.
    unsafe { db::kcdbcount(inner(Caller::trusted(), index)) }
}

/// As kcdbsize.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxsize(index: *mut KCIDX) -> i64 {
    // SAFETY: as the header demands of the caller.
    unsafe { db::kcdbsize(inner(Caller::trusted(), index)) }
}

/// As kcdbpath.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxpath(index: *mut KCIDX) -> *mut c_char {
    // SAFETY: as the header demands of the caller.
    unsafe { db::kcdbpath(inner(Caller::trusted(), index)) }
}

/// As kcdbstatus.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcidxstatus(index: *mut KCIDX) -> *mut c_char {
    // SAFETY: as the header demands of the caller.
    unsafe { db::kcdbstatus(inner(Caller::trusted(), index)) }
}
