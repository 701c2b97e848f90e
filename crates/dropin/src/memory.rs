//! Results that outlive their call. They are memory of the C library, and end with a zero byte.

use crate::codes::{KCESYSTEM, KCSTR};
use crate::errors::{Outcome, told};
use std::ffi::{c_char, c_void};

/// A block of memory for the caller to free.
fn block(bytes: usize) -> Outcome<*mut u8> {
    // SAFETY: any size may be asked for.
    let at = unsafe { libc::malloc(bytes) };
    if at.is_null() {
        return Err(told(KCESYSTEM, format!("no memory for a result of {bytes} bytes")));
    }
    Ok(at.cast())
}

/// Copies bytes and a zero byte to `at`. Returns where they end.
///
/// # Safety
/// There is room.
unsafe fn put(at: *mut u8, bytes: &[u8]) -> *mut u8 {
    // SAFETY: there is room, and the memory is new, so it overlaps nothing.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
        let end = at.add(bytes.len());
        end.write(0);
        end.add(1)
    }
}

/// A copy of bytes.
pub(crate) fn give(bytes: &[u8]) -> Outcome<*mut c_char> {
    let at = block(bytes.len() + 1)?;
    // SAFETY: the block has a byte more than the bytes.
    unsafe { put(at, bytes) };
    Ok(at.cast())
}

/// A copy of bytes, with their length.
pub(crate) fn give_str(bytes: &[u8]) -> Outcome<KCSTR> {
    Ok(KCSTR { buf: give(bytes)?, size: bytes.len() })
}

/// A copy of a key and a value in one block, which is freed if it does not come to the caller.
pub(crate) struct Pair {
    block: *mut c_char,
    pub(crate) value: *const c_char,
    pub(crate) key_len: usize,
    pub(crate) value_len: usize,
}

impl Pair {
    /// The block, which begins with the key. It is the caller's from here on.
    pub(crate) fn hand_out(mut self) -> *mut c_char {
        std::mem::replace(&mut self.block, std::ptr::null_mut())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: it is NULL or from `malloc`, and the caller has not got it.
        unsafe { kcfree(self.block.cast()) }
    }
}

/// A copy of a key and a value.
pub(crate) fn give_pair(key: &[u8], value: &[u8]) -> Outcome<Pair> {
    let at = block(key.len() + value.len() + 2)?;
    // SAFETY: the block has two bytes more than the key and the value.
    let second = unsafe {
        let second = put(at, key);
        put(second, value);
        second
    };
    let second = second.cast_const().cast();
    Ok(Pair { block: at.cast(), value: second, key_len: key.len(), value_len: value.len() })
}

/// Allocates memory. Free it with kcfree.
#[unsafe(no_mangle)]
pub extern "C" fn kcmalloc(size: usize) -> *mut c_void {
    // SAFETY: any size may be asked for. At least one byte, so that NULL means that there is none.
    unsafe { libc::malloc(size.max(1)) }
}

/// Frees what a function of this library has returned. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kcfree(memory: *mut c_void) {
    // SAFETY: the caller got it from this library, as the header demands, so it is from `malloc`.
    unsafe { libc::free(memory) }
}
