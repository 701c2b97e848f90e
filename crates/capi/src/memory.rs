//! Results that outlive their call: memory of the C library, so that whoever gets it can free it there too.

use crate::arguments::azk_bytes;
use crate::status::{Outcome, azk_status, failure};
use std::ffi::c_void;
use std::ptr::NonNull;

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(block: *mut c_void);
}

/// A block that belongs to the caller once `release` has let it go.
pub(crate) struct Block {
    start: NonNull<u8>,
    bytes: usize,
    used: usize,
}

impl Block {
    /// A block of some bytes.
    pub(crate) fn new(bytes: usize) -> Outcome<Block> {
        // SAFETY: any size may be asked for. One byte at least, so that empty values have a place of their
        // own.
        let start = unsafe { malloc(bytes.max(1)) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) => Ok(Block { start, bytes, used: 0 }),
            None => {
                Err(failure(azk_status::AZK_NO_MEMORY, format!("no memory for a result of {bytes} bytes")))
            }
        }
    }

    /// A block with a copy.
    pub(crate) fn copy(bytes: &[u8]) -> Outcome<Block> {
        let mut block = Block::new(bytes.len())?;
        block.add(bytes);
        Ok(block)
    }

    /// Adds a copy at the end, and says where it stands. REQUIRES: there is room; what there is none for is
    /// left out.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> azk_bytes {
        let end = self.used.saturating_add(bytes.len());
        if end > self.bytes {
            return azk_bytes::NONE;
        }
        // SAFETY: `used` is at most `bytes`, so that the result is within the block or at its end, and what
        // is copied fits. The block is new, so nothing else stands in it.
        let at = unsafe {
            let at = self.start.add(self.used);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.as_ptr(), bytes.len());
            at
        };
        self.used = end;
        azk_bytes { data: at.as_ptr().cast(), len: bytes.len() }
    }

    /// Leaves room for an array at the start, which `set` fills. REQUIRES: nothing was added yet.
    pub(crate) fn begin_with<T>(&mut self, count: usize) {
        self.used = count.saturating_mul(size_of::<T>()).min(self.bytes);
    }

    /// Fills a place of the array at the start.
    pub(crate) fn set<T>(&mut self, index: usize, value: T) {
        let end = index.saturating_add(1).saturating_mul(size_of::<T>());
        if end <= self.used && align_of::<T>() <= align_of::<u128>() {
            // SAFETY: the place is within the block, which is aligned for everything that C has.
            unsafe { self.start.cast::<T>().add(index).write(value) };
        }
    }

    /// How many bytes were added.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Hands it to the caller.
    pub(crate) fn release<T>(self) -> *mut T {
        let start = self.start;
        std::mem::forget(self);
        start.as_ptr().cast()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it is from `malloc`, and nobody else has it.
        unsafe { free(self.start.as_ptr().cast()) }
    }
}

/// Frees what a function of this library has allocated for its result. NULL is nothing to free. (It is memory
/// of the C library: `free` does the same.)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_free(memory: *mut c_void) {
    // SAFETY: the caller has it from this library, as the header demands, and so it is from `malloc`.
    unsafe { free(memory) }
}
