//! The frame of every call: a panic or an error becomes a number, and a message that the thread keeps.

use crate::status::azk_status::{AZK_OK, AZK_PANIC};
use crate::status::{Failure, Outcome, azk_status};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// Why the thread's last failed call failed.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// What the caller of a function answers for: pointers to bytes lead to as many bytes as it says, and
/// pointers for results lead to room for these. The header demands it. It makes the functions of `arguments`
/// safe to call.
#[derive(Clone, Copy)]
pub(crate) struct Caller(());

impl Caller {
    /// Relies on the caller's word.
    ///
    /// # Safety
    /// Until the call returns, the pointers that are passed to the methods of the result are as the header
    /// demands.
    #[inline(always)]
    pub(crate) unsafe fn trusted() -> Caller {
        Caller(())
    }

    /// Runs a call.
    #[inline(always)]
    pub(crate) fn call(self, f: impl FnOnce(Caller) -> Outcome<azk_status>) -> azk_status {
        call(move || f(self))
    }

    /// Runs a call that has no result.
    #[inline(always)]
    pub(crate) fn run(self, f: impl FnOnce(Caller) -> Outcome<()>) -> azk_status {
        call(move || f(self).map(|()| AZK_OK))
    }
}

/// Runs a call whose only pointers are handles.
#[inline(always)]
pub(crate) fn call(f: impl FnOnce() -> Outcome<azk_status>) -> azk_status {
    // The closure's result is a number that fits a register: what it would store in two parts, the caller
    // would wait for.
    let ended = move || match f() {
        Ok(status) => status,
        Err(failure) => fail(failure),
    };
    // Whatever a panic leaves half-done is behind a handle, and the header says to free those handles.
    catch_unwind(AssertUnwindSafe(ended)).unwrap_or_else(panicked)
}

#[cold]
fn fail(failure: Failure) -> azk_status {
    let status = failure.status();
    keep(failure.message());
    status
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> azk_status {
    let said =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    keep(format!("a defect of the library: {}", said.unwrap_or("it panicked")));
    // Dropping what a panic carries may panic again.
    std::mem::forget(panic);
    AZK_PANIC
}

fn keep(message: String) {
    // A message ends at its first zero byte.
    let bytes: Vec<u8> = message.into_bytes().into_iter().map(|b| if b == 0 { b'?' } else { b }).collect();
    let message = CString::new(bytes).unwrap_or_default();
    // While a thread ends nobody can read its message.
    let _ending = MESSAGE.try_with(|slot| slot.replace(message));
}

/// Why the last failed call of this thread failed, in English. "" if none has failed. The text stays until
/// the thread's next failure, or its end.
#[unsafe(no_mangle)]
pub extern "C" fn azk_error_message() -> *const c_char {
    MESSAGE.try_with(|slot| slot.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The version of the library, such as "0.1.0". The text stays for good.
#[unsafe(no_mangle)]
pub extern "C" fn azk_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> String {
        // SAFETY: the text stays until the next failure of this thread.
        unsafe { CStr::from_ptr(azk_error_message()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_is_a_status_and_a_message() {
        let status = call(|| panic!("two and two are {}", 5));
        assert_eq!((status, message()), (AZK_PANIC, "a defect of the library: two and two are 5".into()));
    }

    #[test]
    fn a_message_is_whole_whatever_is_in_it() {
        call(|| Err(crate::status::invalid("a\0b")));
        assert_eq!(message(), "invalid argument: a?b");
        std::thread::spawn(|| assert_eq!(message(), "")).join().expect("the thread's own message is empty");
    }
}
