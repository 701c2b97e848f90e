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
use crate::storage::FileMapping;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// How much of a segment is read at a time, to touch it.
const TOUCH_BYTES: usize = 64 << 10;

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

    /// Makes bytes of the segment safe to touch: enters the stretch in which they begin, if the system has it
    /// in memory, or else reads them and discards what was read.
    #[cold]
    fn touch(&self, mapping: &FileMapping, place: &SegmentPlace, bytes: Range<u64>) -> Result<()> {
        if let Some(stretch) = place.touched.ask(bytes.start, self.written(), place.bytes())
            && let Some((offset, together)) = place.stretch(stretch.start)
            && together >= stretch.end - stretch.start
            && mapping.enter(offset, stretch.end - stretch.start)
        {
            place.touched.note(stretch.clone(), place.bytes());
            if bytes.end <= stretch.end {
                return Ok(());
            }
        }
        let mut buffer = vec![0; TOUCH_BYTES.min(usize_of64(bytes.end - bytes.start))];
        let mut at = bytes.start;
        while at < bytes.end {
            let n = buffer.len().min(usize_of64(bytes.end - at));
            place.read(self.file.as_ref(), at, &mut buffer[..n])?;
            at += n as u64;
        }
        place.touched.note(bytes, place.bytes());
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
