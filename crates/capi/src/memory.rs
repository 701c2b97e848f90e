//! Results that outlive their call. They are memory of the C library, so that callers can free it there too.

use crate::arguments::azk_bytes;
use crate::status::{Outcome, azk_status, failure};
use azekura::ValueRef;
use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::NonNull;

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(block: *mut c_void);
}

/// Values that were lent from a transaction, which stay where they are.
pub(crate) type LentValues<'a> = RefCell<Vec<ValueRef<'a>>>;

/// A block that belongs to the caller after `release`.
pub(crate) struct Block {
    start: NonNull<u8>,
    bytes: usize,
    used: usize,
}

impl Block {
    /// A block for this many bytes.
    pub(crate) fn new(bytes: usize) -> Outcome<Block> {
        // SAFETY: any size may be asked for. At least one byte, so that an empty value has an address.
        let start = unsafe { malloc(bytes.max(1)) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) => Ok(Block { start, bytes, used: 0 }),
            None => {
                Err(failure(azk_status::AZK_NO_MEMORY, format!("no memory for a result of {bytes} bytes")))
            }
        }
    }

    /// A block with a copy of some bytes.
    pub(crate) fn copy(bytes: &[u8]) -> Outcome<Block> {
        let mut block = Block::new(bytes.len())?;
        block.add(bytes);
        Ok(block)
    }

    /// Appends a copy, and returns where it is. REQUIRES: there is room. Without room nothing is copied.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> azk_bytes {
        let end = self.used.saturating_add(bytes.len());
        if end > self.bytes {
            return azk_bytes::NONE;
        }
        // SAFETY: `used` is at most `bytes`, so the address is within the block or at its end, and the copy
        // fits. The block is new memory, so it does not overlap the source.
        let at = unsafe {
            let at = self.start.add(self.used);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.as_ptr(), bytes.len());
            at
        };
        self.used = end;
        azk_bytes { data: at.as_ptr().cast(), len: bytes.len() }
    }

    /// Reserves an array at the start, which `set` fills. REQUIRES: nothing was added yet.
    pub(crate) fn begin_with<T>(&mut self, count: usize) {
        self.used = count.saturating_mul(size_of::<T>()).min(self.bytes);
    }

    /// Sets an element of the array at the start.
    pub(crate) fn set<T>(&mut self, index: usize, value: T) {
        let end = index.saturating_add(1).saturating_mul(size_of::<T>());
        if end <= self.used && align_of::<T>() <= align_of::<u128>() {
            // SAFETY: the element is within the block, which is aligned for every type of C.
            unsafe { self.start.cast::<T>().add(index).write(value) };
        }
    }

    /// How many bytes were added.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Gives the block to the caller.
    pub(crate) fn release<T>(self) -> *mut T {
        let start = self.start;
        std::mem::forget(self);
        start.as_ptr().cast()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block is from `malloc`, and nobody else has it.
        unsafe { free(self.start.as_ptr().cast()) }
    }
}

/// Frees what a function of this library has allocated for its result. NULL is allowed. (The memory is the C
/// library's: `free` does the same.)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_free(memory: *mut c_void) {
    // SAFETY: the caller got it from this library, as the header demands, so it is from `malloc`.
    unsafe { free(memory) }
}
