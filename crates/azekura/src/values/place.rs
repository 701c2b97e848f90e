//! Where a segment's bytes stand in the file: in one extent, or in several once parts of it were moved.
//!
//! Who reads holds the place at which he reads. What was moved away from it is free when nobody holds it any
//! more (what was cut off its end, where nobody reads, is free at once); the rest has passed to the next
//! place, which therefore must not go before.

use super::mapped::Touched;
use crate::base::error::{Error, Result};
use crate::base::poison::Poison;
use crate::base::sync::Mutex;
use crate::space::{Extent, Space, scattered};
use crate::storage::File;
use std::sync::{Arc, OnceLock};

/// One place of a segment; see the module.
pub(crate) struct SegmentPlace {
    /// Never empty; the segment's bytes one after the other.
    extents: Vec<Extent>,
    space: Arc<Space>,
    poison: Arc<Poison>,
    next: OnceLock<Arc<SegmentPlace>>,
    /// What is freed when nobody holds this any more.
    left: Mutex<Vec<Extent>>,
    /// What was read once here, where it is read in the file's mapping.
    pub(super) touched: Touched,
}

impl Drop for SegmentPlace {
    fn drop(&mut self) {
        // After a failure nobody knows what the file names; a merge still at work must not write there.
        if self.poison.check().is_ok() {
            self.left.get_mut().iter().for_each(|&extent| self.space.free(extent));
        }
        // One after the other: a long chain of places would be a deep recursion.
        let mut next = self.next.take().and_then(Arc::into_inner);
        while let Some(mut place) = next {
            next = place.next.take().and_then(Arc::into_inner);
        }
    }
}

impl SegmentPlace {
    pub(super) fn new(extents: Vec<Extent>, space: Arc<Space>, poison: Arc<Poison>) -> SegmentPlace {
        debug_assert!(!extents.is_empty());
        let (next, left, touched) = (OnceLock::new(), Mutex::new(Vec::new()), Touched::default());
        SegmentPlace { extents, space, poison, next, left, touched }
    }

    pub(crate) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// The bytes of its extents.
    pub(super) fn bytes(&self) -> u64 {
        self.extents.iter().map(|e| e.len).sum()
    }

    /// The same segment's next place.
    pub(super) fn at(&self, extents: Vec<Extent>) -> SegmentPlace {
        SegmentPlace::new(extents, self.space.clone(), self.poison.clone())
    }

    /// Frees an extent's end, which nobody reads, at once; gives what is left of it, for the next place.
    pub(super) fn shrunk(&self, extent: Extent, len: u64) -> Extent {
        self.space.shrink(extent, len)
    }

    /// The segment stands at `next` now, which has taken over all but `left` (and what was freed at once).
    pub(super) fn succeeded_by(&self, next: Arc<SegmentPlace>, left: Vec<Extent>) {
        // Else what the next place leaves would be free while this one is read.
        let is_first = self.next.set(next).is_ok();
        debug_assert!(is_first, "a place is left only once: its successor is left after that");
        self.left(left);
    }

    /// These extents are free as soon as nobody holds this.
    pub(super) fn left(&self, extents: Vec<Extent>) {
        *self.left.lock() = extents;
    }

    /// Where byte `start` of the segment lies in the file.
    pub(super) fn offset_of(&self, start: u64) -> u64 {
        // One byte behind the last, or further: not of the segment, but good enough for a message.
        self.stretch(start).map_or_else(|| self.extents.last().map_or(0, Extent::end), |place| place.0)
    }

    /// Where byte `start` of the segment lies in the file, and how many of the segment's bytes stand there
    /// together.
    pub(super) fn stretch(&self, start: u64) -> Option<(u64, u64)> {
        scattered::stretch(&self.extents, start)
    }

    /// An error if a file of `file_len` bytes ends before some of the segment's bytes from `start` to `end`.
    pub(super) fn check_inside(&self, start: u64, end: u64, file_len: u64) -> Result<()> {
        scattered::check_inside(&self.extents, start, end, file_len)
    }

    /// Fills `out` from byte `start` of the segment on.
    pub(super) fn read(&self, file: &dyn File, start: u64, out: &mut [u8]) -> Result<()> {
        let end = || Error::corrupt("value", self.offset_of(start), "a read passes the end of its segment");
        if scattered::read(&self.extents, file, start, out)? { Ok(()) } else { Err(end()) }
    }
}
