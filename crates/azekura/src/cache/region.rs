//! The memory of the page frames, followed by that of their guides: one anonymous mapping. It is aligned to
//! huge pages and advised to use them, so that a random read has no extra miss for its address. Memory is
//! taken as it is used.
//!
//! Invariant: the mapping does not move until the region is dropped. The frames' headers decide who may touch
//! which frame.

use std::ffi::c_void;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::base::error::{Error, Result};
use crate::base::limits::PAGE_BYTES;
use crate::base::sync::Shadow;
use crate::format::guide::Guide;

/// The size of a huge page on x86-64 and, with 4 KiB base pages, on AArch64.
const HUGE_BYTES: usize = 2 << 20;

/// Reserves addresses only. What the cache does not use does not count as memory of the process.
#[cfg(target_os = "linux")]
const FLAGS: MapFlags = MapFlags::PRIVATE.union(MapFlags::NORESERVE);
#[cfg(not(target_os = "linux"))]
const FLAGS: MapFlags = MapFlags::PRIVATE;

/// A frame is watched as a whole. This is how many bytes a shadow watches as one.
const SHADOW_BYTES: usize = 8;

/// A mapping that holds a number of frames.
pub(super) struct Region {
    mapping: NonNull<c_void>,
    mapping_bytes: usize,
    /// The first frame, at a multiple of `HUGE_BYTES` inside the mapping.
    first: NonNull<u8>,
    frames: usize,
    /// For model checkers: one watched place per frame.
    shadow: Shadow,
}

// SAFETY: the region owns its mapping, whose address does not depend on the thread. It only hands out raw
// pointers. Those who follow the pointers answer for that.
unsafe impl Send for Region {}
// SAFETY: as above. Its own fields never change.
unsafe impl Sync for Region {}

impl Region {
    /// Reserves addresses for `frames` frames.
    ///
    /// # Errors
    /// `Io` if the system refuses, or if the frames do not fit in the address space.
    pub(super) fn new(frames: usize) -> Result<Region> {
        const DURING: &str = "reserving memory for the page cache";
        let refused = |errno: rustix::io::Errno| Error::io(DURING, errno.into());
        let mapping_bytes = frames
            .checked_mul(PAGE_BYTES + size_of::<Guide>())
            .and_then(|bytes| bytes.checked_next_multiple_of(HUGE_BYTES))
            .and_then(|bytes| bytes.checked_add(HUGE_BYTES))
            .filter(|&bytes| bytes <= isize::MAX.unsigned_abs())
            .ok_or_else(|| refused(rustix::io::Errno::NOMEM))?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice touches no other memory.
        let mapping = unsafe { mmap_anonymous(std::ptr::null_mut(), mapping_bytes, protection, FLAGS) };
        let mapping = mapping.map_err(refused)?;
        let mapping = NonNull::new(mapping).ok_or_else(|| refused(rustix::io::Errno::NOMEM))?;
        let skipped = mapping.cast::<u8>().align_offset(HUGE_BYTES);
        // SAFETY: the mapping has HUGE_BYTES more than the frames need, and `skipped` is less than
        // HUGE_BYTES.
        let first = unsafe { mapping.cast::<u8>().add(skipped) };
        let shadow = Shadow::new(frames * SHADOW_BYTES);
        let region = Region { mapping, mapping_bytes, first, frames, shadow };
        region.advise_huge();
        Ok(region)
    }

    /// Asks for huge pages where whole ones fit in the frames, so that the budget is kept. The first one
    /// stays small: filling it with zeros would add 0.1 ms to the first get of every database.
    #[cfg(target_os = "linux")]
    fn advise_huge(&self) {
        let whole = self.frames * (PAGE_BYTES + size_of::<Guide>()) / HUGE_BYTES * HUGE_BYTES;
        if whole > HUGE_BYTES {
            // SAFETY: `whole` bytes from the first frame on are inside the mapping.
            let second = unsafe { self.first.add(HUGE_BYTES) }.as_ptr().cast();
            // SAFETY: the range is inside the mapping, and the advice changes no contents. A kernel without
            // huge pages refuses it; then reads are slower, no more.
            let _ =
                unsafe { rustix::mm::madvise(second, whole - HUGE_BYTES, rustix::mm::Advice::LinuxHugepage) };
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn advise_huge(&self) {}

    /// The first byte of frame `index`.
    #[inline(always)]
    pub(super) fn frame(&self, index: usize) -> NonNull<u8> {
        debug_assert!(index < self.frames);
        let offset = index * PAGE_BYTES;
        // SAFETY: `index` is a frame's: the array of headers, as long as this one, was indexed with it. So
        // the offset is inside the mapping, which `new` has checked to fit an isize.
        unsafe { self.first.add(offset) }
    }

    /// The bytes of frame `index`.
    #[inline(always)]
    pub(super) fn bytes(&self, index: usize) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.frame(index), PAGE_BYTES)
    }

    /// The guide of the page in frame `index`.
    #[inline(always)]
    pub(super) fn guide(&self, index: usize) -> NonNull<Guide> {
        debug_assert!(index < self.frames);
        let offset = (self.frames * PAGE_BYTES).wrapping_add(index.wrapping_mul(size_of::<Guide>()));
        // SAFETY: as in `frame`. The guides follow the frames, which end at a multiple of a guide's size.
        unsafe { self.first.add(offset).cast() }
    }
}

impl Region {
    /// The sole owner of frame `index` is about to write to it.
    #[inline(always)]
    pub(super) fn note_write(&self, index: usize) {
        self.shadow.write(index * SHADOW_BYTES..(index + 1) * SHADOW_BYTES);
    }

    /// Frame `index` is about to be read through a pin.
    #[inline(always)]
    pub(super) fn note_read(&self, index: usize) {
        self.shadow.read(index * SHADOW_BYTES..(index + 1) * SHADOW_BYTES);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is this region's own, and everything that points into it borrows the cache.
        let _ = unsafe { munmap(self.mapping.as_ptr(), self.mapping_bytes) };
    }
}
