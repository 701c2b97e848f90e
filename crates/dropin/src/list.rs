//! A list in memory, which has nothing to do with databases. One thread at a time uses one.

use crate::call::{Caller, guarded};
use crate::errors::NO_DATABASE;
use std::collections::VecDeque;
use std::ffi::{c_char, c_void};
use std::ptr::null;

/// A list.
#[repr(C)]
pub struct KCLIST {
    /// Of the library.
    list: *mut c_void,
}

/// The records. Each has a zero byte behind it.
type List = VecDeque<Box<[u8]>>;

/// Runs a call for a list. If a pointer is bad, or the call panics, it gives `failed`.
fn on<T: Copy>(c: Caller, list: *mut KCLIST, failed: T, f: impl FnOnce(&mut List) -> Option<T>) -> T {
    let Some(handle) = c.handle(list.cast_const()) else { return failed };
    // SAFETY: `kclistnew` has made the handle with this pointer, and the caller answers for it.
    let list = unsafe { &mut *handle.list.cast::<List>() };
    guarded(NO_DATABASE, failed, || Ok(f(list).unwrap_or(failed)))
}

/// A record of the caller's bytes.
fn record(c: Caller, data: *const c_char, len: usize) -> Option<Box<[u8]>> {
    Some([c.bytes(data, len, "record").ok()?, &[0]].concat().into())
}

/// Makes a list. Free it with kclistdel.
#[unsafe(no_mangle)]
pub extern "C" fn kclistnew() -> *mut KCLIST {
    let list = Box::into_raw(Box::<List>::default());
    Box::into_raw(Box::new(KCLIST { list: list.cast() }))
}

/// Frees a list. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kclistdel(list: *mut KCLIST) {
    if !list.is_null() {
        // SAFETY: `kclistnew` has made both boxes. The header demands of the caller that it is not freed
        // twice.
        unsafe { drop(Box::from_raw(Box::from_raw(list).list.cast::<List>())) }
    }
}

/// Adds a record at the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kclistpush(list: *mut KCLIST, data: *const c_char, len: usize) {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    on(c, list, (), |list| {
        list.push_back(record(c, data, len)?);
        Some(())
    });
}

/// Removes the record at the end. Returns 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kclistpop(list: *mut KCLIST) -> i32 {
    // SAFETY: as the header demands of the caller.
    on(unsafe { Caller::trusted() }, list, 0, |list| Some(i32::from(list.pop_back().is_some())))
}

/// Adds a record at the beginning.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kclistunshift(list: *mut KCLIST, data: *const c_char, len: usize) {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    on(c, list, (), |list| {
        list.push_front(record(c, data, len)?);
        Some(())
    });
}

/// Removes the record at the beginning. Returns 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kclistshift(list: *mut KCLIST) -> i32 {
    // SAFETY: as the header demands of the caller.
    on(unsafe { Caller::trusted() }, list, 0, |list| Some(i32::from(list.pop_front().is_some())))
}

/// Adds a record so that it has this index. Nothing happens if the list is shorter than that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kclistinsert(list: *mut KCLIST, data: *const c_char, len: usize, index: usize) {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    on(c, list, (), |list| {
        if index <= list.len() {
            list.insert(index, record(c, data, len)?);
        }
        Some(())
    });
}

/// Removes the record with an index. Nothing happens if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kclistremove(list: *mut KCLIST, index: usize) {
    // SAFETY: as the header demands of the caller.
    on(unsafe { Caller::trusted() }, list, (), |list| list.remove(index).map(drop));
}

/// The record with an index and a zero byte behind it, or NULL. It is lent until the list changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kclistget(list: *mut KCLIST, index: usize, len: *mut usize) -> *const c_char {
    // SAFETY: as the header demands of the caller.
    let c = unsafe { Caller::trusted() };
    on(c, list, null(), |list| {
        let record = list.get(index)?;
        c.set(len, record.len() - 1).ok()?;
        Some(record.as_ptr().cast())
    })
}

/// Removes all records.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kclistclear(list: *mut KCLIST) {
    // SAFETY: as the header demands of the caller.
    on(unsafe { Caller::trusted() }, list, (), |list| {
        list.clear();
        Some(())
    });
}

/// How many records there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kclistcount(list: *mut KCLIST) -> usize {
    // SAFETY: as the header demands of the caller.
    on(unsafe { Caller::trusted() }, list, 0, |list| Some(list.len()))
}
