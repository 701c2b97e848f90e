//! A page held in memory: a pin on a frame of the cache, or a buffer of its own if every frame was pinned.
//!
//! Invariant: while a `PageRef` lives, nobody writes to its bytes. They are in a frame that it has pinned, or
//! in its own buffer.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

use super::frame::Frame;
use crate::base::limits::PAGE_BYTES;
use crate::base::prefetch::prefetch_line;
use crate::format::guide::Guide;

/// Room for one page outside the cache, aligned as a disk wants it.
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

/// A page that does not change until this is dropped.
#[must_use]
pub(crate) struct PageRef<'a> {
    bytes: NonNull<[u8]>,
    guide: NonNull<Guide>,
    /// The header of the pinned frame. Null if bytes and guide are in a `PageBuffer`.
    frame: *const Frame,
    cache: PhantomData<&'a Frame>,
}

// SAFETY: the bytes are only read, and any thread may take a pin back.
unsafe impl Send for PageRef<'_> {}
// SAFETY: shared access only reads.
unsafe impl Sync for PageRef<'_> {}

impl<'a> PageRef<'a> {
    /// Takes over one pin of `frame`.
    ///
    /// # Safety
    /// The caller has pinned `frame` and passes that pin on. `bytes` and `guide` are the frame's, and the
    /// mapping that holds them outlives `'a`.
    #[inline(always)]
    pub(super) unsafe fn pinned(
        frame: &'a Frame,
        bytes: NonNull<[u8]>,
        guide: NonNull<Guide>,
    ) -> PageRef<'a> {
        PageRef { bytes, guide, frame, cache: PhantomData }
    }

    /// Takes over a private buffer.
    pub(super) fn private(buffer: Box<PageBuffer>) -> PageRef<'a> {
        let buffer = NonNull::from(Box::leak(buffer));
        // SAFETY: the buffer was just leaked, so the address of its field is inside an allocation. (The
        // address is derived from the whole buffer's, since `free_private` frees the buffer by it.)
        let guide = unsafe { buffer.byte_add(std::mem::offset_of!(PageBuffer, guide)).cast() };
        let bytes = NonNull::slice_from_raw_parts(buffer.cast(), PAGE_BYTES);
        PageRef { bytes, guide, frame: std::ptr::null(), cache: PhantomData }
    }

    /// The guide that `load` has left beside the page.
    #[inline(always)]
    pub(crate) fn guide(&self) -> &Guide {
        // SAFETY: as for the bytes. A guide that was never set is all zeros, which is valid.
        unsafe { self.guide.as_ref() }
    }

    /// Has the processor fetch the line of a byte of the page.
    #[inline(always)]
    pub(crate) fn prefetch(&self, byte: usize) {
        // A page with a forged checksum may name any byte. A prefetch may have any address.
        prefetch_line(self.bytes.cast::<u8>().as_ptr().wrapping_add(byte));
    }

    /// The same page, cut to its first `len` bytes.
    #[inline(always)]
    pub(crate) fn first(mut self, len: usize) -> PageRef<'a> {
        debug_assert!(len <= self.bytes.len(), "a frame holds pages of all sizes");
        self.bytes = NonNull::slice_from_raw_parts(self.bytes.cast(), len);
        self
    }

    /// The same page, with a longer lifetime.
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
        // SAFETY: `bytes` are initialised, since mappings and buffers begin as zeros. By the invariant of
        // this file nobody writes to them meanwhile.
        unsafe { self.bytes.as_ref() }
    }
}

impl Drop for PageRef<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: a frame that is not null outlives this reference, by its lifetime or by the promise given
        // to `extend`.
        match unsafe { self.frame.as_ref() } {
            Some(frame) => frame.unpin(),
            None => free_private(self.guide),
        }
    }
}

/// Frees the buffer of a reference that `PageRef::private` made. `guide` is inside that buffer.
#[cold]
#[inline(never)]
fn free_private(guide: NonNull<Guide>) {
    // SAFETY: without a frame the guide is in a leaked `PageBuffer`, which begins this many bytes before it.
    let buffer = unsafe { guide.byte_sub(std::mem::offset_of!(PageBuffer, guide)) };
    // SAFETY: as above. The box is freed only here, once.
    drop(unsafe { Box::from_raw(buffer.cast::<PageBuffer>().as_ptr()) });
}
