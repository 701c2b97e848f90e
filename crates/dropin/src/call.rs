//! The frame of every call, and what callers pass.

use crate::codes::*;
use crate::errors::{Failure, NO_DATABASE, Outcome, failure, keep, told};
use crate::store::Store;
use std::any::Any;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What the caller of a function answers for. Handles are from this library and not deleted. Pointers to
/// bytes lead to as many as it says. Pointers for results have room for these. So the methods are safe to
/// call.
#[derive(Clone, Copy)]
pub(crate) struct Caller(());

impl Caller {
    /// Relies on the caller's word.
    ///
    /// # Safety
    /// Until the call returns, the pointers that are passed to the methods of the result are as said above.
    pub(crate) unsafe fn trusted() -> Caller {
        Caller(())
    }

    /// Runs a call for a database object. If it fails it gives `failed`, and the thread keeps why.
    pub(crate) fn on<T>(self, db: *const KCDB, failed: T, f: impl FnOnce(&Arc<Store>) -> Outcome<T>) -> T {
        let Some(handle) = self.handle(db) else {
            keep(NO_DATABASE, failure(KCEINVALID, c"the database object is NULL"));
            return failed;
        };
        // SAFETY: `kcdbnew` has made the object with this pointer, and the caller answers for it.
        let store = unsafe { &*handle.db.cast::<Arc<Store>>() };
        guarded(store.id, failed, || f(store))
    }

    /// Runs a call for a database object that only succeeds or fails.
    pub(crate) fn done(self, db: *const KCDB, f: impl FnOnce(&Arc<Store>) -> Outcome<()>) -> i32 {
        self.on(db, 0, |store| f(store).map(|()| 1))
    }

    /// What a pointer to a handle leads to, unless it is NULL.
    pub(crate) fn handle<'a, T>(self, at: *const T) -> Option<&'a T> {
        // SAFETY: the caller answers for handles that are not NULL.
        unsafe { at.as_ref() }
    }

    /// As `handle`, for what is changed.
    pub(crate) fn handle_mut<'a, T>(self, at: *mut T) -> Option<&'a mut T> {
        // SAFETY: the caller answers for handles that are not NULL, and that one thread at a time uses them.
        unsafe { at.as_mut() }
    }

    /// Bytes of the caller.
    pub(crate) fn bytes<'a>(self, at: *const c_char, len: usize, what: &str) -> Outcome<&'a [u8]> {
        if len == 0 {
            return Ok(&[]);
        }
        if at.is_null() || isize::try_from(len).is_err() {
            return Err(told(KCEINVALID, format!("the {what} is {at:p} with {len} bytes")));
        }
        // SAFETY: the pointer is not NULL, and memory can have that length. The caller answers for the bytes.
        Ok(unsafe { std::slice::from_raw_parts(at.cast(), len) })
    }

    /// Bytes that a NULL pointer leaves out.
    pub(crate) fn optional<'a>(self, at: *const c_char, len: usize, what: &str) -> Outcome<Option<&'a [u8]>> {
        if at.is_null() { Ok(None) } else { self.bytes(at, len, what).map(Some) }
    }

    /// An array of the caller.
    pub(crate) fn array<'a, T: Copy>(self, first: *const T, count: usize) -> Outcome<&'a [T]> {
        if count == 0 {
            return Ok(&[]);
        }
        let bytes = count.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
        if first.is_null() || !first.is_aligned() || bytes.is_none() {
            return Err(told(KCEINVALID, format!("an array at {first:p} of {count} elements")));
        }
        // SAFETY: the pointer is not NULL and is aligned, and memory can have that length. The caller answers
        // for the rest.
        Ok(unsafe { std::slice::from_raw_parts(first, count) })
    }

    /// Text that ends with a zero byte.
    pub(crate) fn text<'a>(self, text: *const c_char, what: &str) -> Outcome<&'a CStr> {
        if text.is_null() {
            return Err(told(KCEINVALID, format!("the {what} is NULL")));
        }
        // SAFETY: the pointer is not NULL. The caller answers for the zero byte at the end.
        Ok(unsafe { CStr::from_ptr(text) })
    }

    /// Sets a result. NULL is refused.
    pub(crate) fn set<T>(self, at: *mut T, value: T) -> Outcome<()> {
        if at.is_null() || !at.is_aligned() {
            return Err(told(KCEINVALID, format!("the place for a result is {at:p}")));
        }
        // SAFETY: the pointer is not NULL and is aligned. The caller answers for the room.
        unsafe { at.write(value) };
        Ok(())
    }

    /// Sets an element of an array of results.
    pub(crate) fn set_at<T>(self, first: *mut T, index: usize, value: T) -> Outcome<()> {
        if first.is_null() {
            return Err(failure(KCEINVALID, c"the place for the results is NULL"));
        }
        // SAFETY: the caller answers for room for as many elements as it has allowed.
        self.set(unsafe { first.add(index) }, value)
    }
}

/// Runs a call. A panic becomes a failure.
pub(crate) fn guarded<T>(database: u64, failed: T, f: impl FnOnce() -> Outcome<T>) -> T {
    // What a panic leaves half-done is behind locks that take no notice of it. The engine has its own guard.
    let failure = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(done)) => return done,
        Ok(Err(failure)) => failure,
        Err(panic) => panicked(panic),
    };
    keep(database, failure);
    failed
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    let said =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let failure = told(KCEMISC, format!("a defect of the library: {}", said.unwrap_or("it panicked")));
    // Dropping what a panic carries may panic again.
    std::mem::forget(panic);
    failure
}
