//! Large values, read in place in the mapped file.
//!
//! The first read of a block of a segment goes through a small buffer, or the system enters a longer stretch
//! into the mapping. Either reports an error where a touch of the mapping would end the process. From then on
//! the block counts as touched, and values in touched blocks are handed out in place. The checksum of a value
//! is compared at each read.

use super::large::{Inner, LargeValue};
use super::place::SegmentPlace;
use super::{Segment, ValuePointer, ValueStore};
use crate::base::codec::{usize_of, usize_of64};
use crate::base::error::Result;
use crate::storage::{ENTER_BYTES, FileMapping};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

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
        if !place.touched.has(start..end) {
            self.touch(mapping, &place, start..end)?;
        }
        let bytes = NonNull::slice_from_raw_parts(first, usize_of(at.len));
        let value = LargeValue(Inner::Standing { bytes, _place: place, _mapping: mapping.clone() });
        self.verify(at, &value)?;
        Ok(Some(value))
    }

    /// Makes bytes of the segment safe to touch: enters stretches that the system has in memory, and reads
    /// what is needed of the others, and discards what was read.
    #[cold]
    fn touch(&self, mapping: &FileMapping, place: &SegmentPlace, bytes: Range<u64>) -> Result<()> {
        let (mut buffer, mut at, mut asks) = (Vec::new(), bytes.start, true);
        while at < bytes.end {
            let entered = if asks { self.enter_at(mapping, place, at) } else { None };
            asks = entered.is_some();
            let touched = match entered {
                Some(stretch) => stretch,
                None => {
                    let end = bytes.end.min((at / ENTER_BYTES + 1) * ENTER_BYTES);
                    buffer.resize(usize_of64(end - at), 0);
                    place.read(self.file.as_ref(), at, &mut buffer)?;
                    at..end
                }
            };
            at = touched.end;
            place.touched.note(touched, place.bytes());
        }
        Ok(())
    }

    /// Enters the stretch in which a byte is, if all of it is written, the system has it in memory, and
    /// nobody has asked before.
    fn enter_at(&self, mapping: &FileMapping, place: &SegmentPlace, at: u64) -> Option<Range<u64>> {
        let stretch = mapping.stretch_of(at, place.bytes());
        if stretch.end > self.written() || !place.touched.ask(at, &stretch, place.bytes()) {
            return None;
        }
        let (offset, together) = place.stretch(stretch.start)?;
        let len = stretch.end - stretch.start;
        (together >= len && mapping.enter(offset, len)).then_some(stretch)
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
