//! A page held in memory: a pin on a frame of the cache, or, when every frame was pinned, a buffer of
//! its own.
//!
//! Invariant: while a `PageRef` lives, nobody writes to its bytes: they are in a frame whose pin it
//! holds, or its own.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

use super::frame::Frame;
use crate::base::limits::PAGE_BYTES;
use crate::base::prefetch::prefetch_line;
use crate::format::guide::Guide;

/// Room for one page outside the cache, aligned as the disk would have it.
#[repr(C, align(4096))]
pub(super) struct PageBuffer {
    pub(super) bytes: [u8; PAGE_BYTES],
    pub(super) guide: Guide,
}

impl PageBuffer {
    pub(super) fn zeroed() -> PageBuffer {
        PageBuffer { bytes: [0; PAGE_BYTES], guide: Guide::NONE }
    }
}

/// A page that stays as it is until this is dropped.
#[must_use]
pub(crate) struct PageRef<'a> {
    bytes: NonNull<[u8]>,
    guide: NonNull<Guide>,
    /// The header of the frame that is pinned; null if the guide stands in a `PageBuffer` of its own.
    frame: *const Frame,
    cache: PhantomData<&'a Frame>,
}

// SAFETY: the bytes are only read, and a pin may be taken back by another thread than set it.
unsafe impl Send for PageRef<'_> {}
// SAFETY: shared access only reads.
unsafe impl Sync for PageRef<'_> {}

impl<'a> PageRef<'a> {
    /// Takes over one pin of `frame`.
    ///
    /// # Safety
    /// The caller has pinned `frame` and passes that pin on; `bytes` and `guide` are the frame's, and
    /// the mapping that holds them outlives `'a`.
    #[inline(always)]
    pub(super) unsafe fn pinned(
        frame: &'a Frame,
        bytes: NonNull<[u8]>,
        guide: NonNull<Guide>,
    ) -> PageRef<'a> {
        PageRef { bytes, guide, frame, cache: PhantomData }
    }

    /// Takes over a buffer of its own.
    pub(super) fn private(buffer: Box<PageBuffer>) -> PageRef<'a> {
        let buffer = NonNull::from(Box::leak(buffer));
        // SAFETY: the buffer was just leaked, so the address of its field is inside an allocation. (It is
        // reckoned from the whole buffer's, which is freed by it.)
        let guide = unsafe { buffer.byte_add(std::mem::offset_of!(PageBuffer, guide)).cast() };
        let bytes = NonNull::slice_from_raw_parts(buffer.cast(), PAGE_BYTES);
        PageRef { bytes, guide, frame: std::ptr::null(), cache: PhantomData }
    }

    /// What `load` left beside the page.
    #[inline(always)]
    pub(crate) fn guide(&self) -> &Guide {
        // SAFETY: as for the bytes, and a guide that was never set is all zeros, which is valid.
        unsafe { self.guide.as_ref() }
    }

    /// Has the processor fetch the line of a byte of the page.
    #[inline(always)]
    pub(crate) fn prefetch(&self, byte: usize) {
        // A page whose checksum was forged may name any byte.
        prefetch_line(self.bytes.cast::<u8>().as_ptr().wrapping_add(byte));
    }

    /// The same page, of which only the first `len` bytes are used.
    #[inline(always)]
    pub(crate) fn first(mut self, len: usize) -> PageRef<'a> {
        debug_assert!(len <= self.bytes.len(), "a frame holds pages of all sizes");
        self.bytes = NonNull::slice_from_raw_parts(self.bytes.cast(), len);
        self
    }

    /// The same page for longer than the borrow says.
    ///
    /// # Safety
    /// The caller keeps the run's `PageSlots`, and with it the cache, alive until the result has been
    /// dropped.
    #[inline(always)]
    pub(crate) unsafe fn extend<'b>(self) -> PageRef<'b> {
        let page = ManuallyDrop::new(self);
        PageRef { bytes: page.bytes, guide: page.guide, frame: page.frame, cache: PhantomData }
    }
}

impl Deref for PageRef<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` are initialised (mappings and buffers begin as zeros), and by the invariant
        // of this file nobody writes to them meanwhile.
        unsafe { self.bytes.as_ref() }
    }
}

impl Drop for PageRef<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: a frame that is not null outlives this reference (by its lifetime, or by the
        // promise given to `extend`).
        match unsafe { self.frame.as_ref() } {
            Some(frame) => frame.unpin(),
            None => free_private(self.guide),
        }
    }
}

/// Frees the buffer of a reference made by `PageRef::private`, by its guide.
#[cold]
#[inline(never)]
fn free_private(guide: NonNull<Guide>) {
    // SAFETY: without a frame the guide stands in a leaked box of this type, so that its beginning is as far
    // before.
    let buffer = unsafe { guide.byte_sub(std::mem::offset_of!(PageBuffer, guide)) };
    // SAFETY: as above; the box is freed once only.
    drop(unsafe { Box::from_raw(buffer.cast::<PageBuffer>().as_ptr()) });
}
