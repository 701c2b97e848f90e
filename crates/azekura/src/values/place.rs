//! Where a segment's bytes stand in the file: in one extent, or in several once parts of it were moved.
//!
//! A reader holds the place at which it reads. Extents that were moved away from a place are free when nobody
//! holds the place any more. (The end that a cut leaves is free at once, since nobody reads it.) The other
//! extents belong to the next place. That must live at least as long.

use super::touched::Touched;
use crate::base::error::{Error, Result};
use crate::base::poison::Poison;
use crate::base::sync::Mutex;
use crate::space::{Extent, Space, scattered};
use crate::storage::{File, Lease};
use std::sync::{Arc, OnceLock};

/// One place of a segment.
pub(crate) struct SegmentPlace {
    /// The segment's bytes, in order. Never empty.
    extents: Vec<Extent>,
    space: Arc<Space>,
    poison: Arc<Poison>,
    next: OnceLock<Arc<SegmentPlace>>,
    /// Extents that are freed when nobody holds this place any more.
    left: Mutex<Vec<Extent>>,
    /// In a follower, the pin under which the bytes are read.
    lease: OnceLock<Arc<Lease>>,
    /// What was touched at this place, where the file is mapped.
    pub(super) touched: Touched,
}

impl Drop for SegmentPlace {
    fn drop(&mut self) {
        // After a failure it is not known what the file names. A merge that is still at work must not write
        // there.
        if self.poison.check().is_ok() {
            self.left.get_mut().iter().for_each(|&extent| self.space.free(extent));
        }
        // In a loop: dropping a long chain of places would recurse deeply.
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
        SegmentPlace { extents, space, poison, next, left, lease: OnceLock::new(), touched }
    }

    /// Holders of the place hold the lease.
    pub(crate) fn read_under(&self, lease: Arc<Lease>) {
        let is_first = self.lease.set(lease).is_ok();
        debug_assert!(is_first, "a follower adopts a segment once for each view");
    }

    pub(crate) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Bytes of all extents.
    pub(super) fn bytes(&self) -> u64 {
        self.extents.iter().map(|e| e.len).sum()
    }

    /// A next place of the same segment.
    pub(super) fn at(&self, extents: Vec<Extent>) -> SegmentPlace {
        SegmentPlace::new(extents, self.space.clone(), self.poison.clone())
    }

    /// Frees an extent's end, which nobody reads, at once. Returns the rest, for the next place.
    pub(super) fn shrunk(&self, extent: Extent, len: u64) -> Extent {
        self.space.shrink(extent, len)
    }

    /// The segment has moved to `next`, which takes over all extents but `left` (and what was freed at once).
    pub(super) fn succeeded_by(&self, next: Arc<SegmentPlace>, left: Vec<Extent>) {
        // Keeps the next place alive: otherwise extents that it leaves would be freed while this place is
        // read.
        let is_first = self.next.set(next).is_ok();
        debug_assert!(is_first, "a place is left only once: its successor is left after that");
        self.left(left);
    }

    /// These extents are freed when nobody holds this place any more.
    pub(super) fn left(&self, extents: Vec<Extent>) {
        *self.left.lock() = extents;
    }

    /// Where byte `start` of the segment is in the file.
    pub(super) fn offset_of(&self, start: u64) -> u64 {
        // A byte behind the last one is not of the segment. The place is good enough for a message.
        self.stretch(start).map_or_else(|| self.extents.last().map_or(0, Extent::end), |place| place.0)
    }

    /// Where byte `start` of the segment is in the file, and how many of the segment's bytes follow it there.
    pub(super) fn stretch(&self, start: u64) -> Option<(u64, u64)> {
        scattered::stretch(&self.extents, start)
    }

    /// Fails if a file of `file_len` bytes lacks some of the segment's bytes from `start` to `end`.
    pub(super) fn check_inside(&self, start: u64, end: u64, file_len: u64) -> Result<()> {
        scattered::check_inside(&self.extents, start, end, file_len)
    }

    /// Fills `out` from byte `start` of the segment on.
    pub(super) fn read(&self, file: &dyn File, start: u64, out: &mut [u8]) -> Result<()> {
        let end = || Error::corrupt("value", self.offset_of(start), "a read passes the end of its segment");
        if scattered::read(&self.extents, file, start, out)? { Ok(()) } else { Err(end()) }
    }
}
