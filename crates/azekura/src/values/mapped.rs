//! Large values, read in place in the mapped file.
//!
//! The first read of a block of a segment goes through a small buffer. It reports an error where a touch of
//! the mapping would end the process. From then on the block counts as touched, and values in touched blocks
//! are handed out in place. The checksum of a value is compared at each read.

use super::place::SegmentPlace;
use super::{Segment, ValuePointer, ValueStore};
use crate::base::codec::{usize_of, usize_of64};
use crate::base::error::Result;
use crate::base::limits::ALIGN_BYTES;
use crate::storage::FileMapping;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// How much of a segment is read at a time, to touch it.
const TOUCH_BYTES: usize = 64 << 10;

/// A large value that was read and verified. It dereferences to its bytes.
pub(crate) struct LargeValue(Inner);

enum Inner {
    /// In the mapping. The place keeps the extents from being given to others.
    Standing {
        bytes: NonNull<[u8]>,
        _place: Arc<SegmentPlace>,
        _mapping: Arc<FileMapping>,
    },
    Copied(Arc<Vec<u8>>, Range<usize>),
}

// SAFETY: the bytes never change while the place is held, and their address does not depend on the thread.
unsafe impl Send for LargeValue {}
// SAFETY: as above. They are only read.
unsafe impl Sync for LargeValue {}

impl LargeValue {
    /// A part of a buffer.
    pub(super) fn copied(bytes: Arc<Vec<u8>>, range: Range<usize>) -> LargeValue {
        LargeValue(Inner::Copied(bytes, range))
    }
}

impl Deref for LargeValue {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            // SAFETY: the mapping is kept, and its bytes do not change while the place is held.
            Inner::Standing { bytes, .. } => unsafe { bytes.as_ref() },
            Inner::Copied(bytes, range) => &bytes[range.clone()],
        }
    }
}

/// Which blocks of a segment were read before, at one place of the segment.
#[derive(Default)]
pub(super) struct Touched(OnceLock<Box<[AtomicU64]>>);

/// References reach no further: an offset of 32 bits and a length of as many.
const REACH_BYTES: u64 = 2 << 32;

impl Touched {
    /// Calls `touch`, unless all blocks from byte `start` to `end` were touched before. The segment has
    /// `bytes`.
    fn once(&self, start: u64, end: u64, bytes: u64, touch: impl FnOnce() -> Result<()>) -> Result<()> {
        let blocks = start / ALIGN_BYTES..end.div_ceil(ALIGN_BYTES);
        let place =
            |block: u64| (usize_of64(block / u64::from(u64::BITS)), 1 << (block % u64::from(u64::BITS)));
        let is_set = |map: &[AtomicU64], block| {
            let (word, mask) = place(block);
            map.get(word).is_some_and(|word| word.load(Ordering::Relaxed) & mask != 0)
        };
        if self.0.get().is_some_and(|map| blocks.clone().all(|block| is_set(map, block))) {
            return Ok(());
        }
        // Before the map is made: a damaged file may claim a segment of any length, and then this fails.
        touch()?;
        let words = bytes.min(REACH_BYTES).div_ceil(ALIGN_BYTES * u64::from(u64::BITS));
        let map = self.0.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        for (word, mask) in blocks.map(place) {
            if let Some(word) = map.get(word) {
                word.fetch_or(mask, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

impl Segment {
    /// The value in place. None if it is not in one piece, or not in the file yet.
    fn standing(&self, mapping: &Arc<FileMapping>, at: ValuePointer) -> Result<Option<LargeValue>> {
        self.check(at)?;
        let (start, end) = (u64::from(at.offset), u64::from(at.offset) + u64::from(at.len));
        if end > self.written() {
            return Ok(None);
        }
        let place = self.place();
        let Some((offset, together)) = place.stretch(start) else { return Ok(None) };
        let Some(first) = mapping.at(offset, usize_of(at.len)).filter(|_| together >= end - start) else {
            return Ok(None);
        };
        place.touched.once(start, end, place.bytes(), || self.touch(&place, start, end))?;
        let bytes = NonNull::slice_from_raw_parts(first, usize_of(at.len));
        let value = LargeValue(Inner::Standing { bytes, _place: place, _mapping: mapping.clone() });
        self.verify(at, &value)?;
        Ok(Some(value))
    }

    /// Reads bytes `start` to `end` and discards them.
    #[cold]
    fn touch(&self, place: &SegmentPlace, start: u64, end: u64) -> Result<()> {
        let mut buffer = vec![0; TOUCH_BYTES.min(usize_of64(end - start))];
        let mut at = start;
        while at < end {
            let n = buffer.len().min(usize_of64(end - at));
            place.read(self.file.as_ref(), at, &mut buffer[..n])?;
            at += n as u64;
        }
        Ok(())
    }
}

impl ValueStore {
    /// The value of a reference in place, if it can be read there.
    pub(super) fn standing(&self, at: ValuePointer) -> Result<Option<LargeValue>> {
        match &self.mapping {
            Some(mapping) => self.segment_of(at)?.standing(mapping, at),
            None => Ok(None),
        }
    }
}
