//! Large values, read in place in the mapped file.
//!
//! The first read of a block of a segment goes through a small buffer. It reports an error where a touch of
//! the mapping would end the process. From then on the block counts as touched, and values in touched blocks
//! are handed out in place. The checksum of a value is compared at each read.

use super::large::{Inner, LargeValue};
use super::place::SegmentPlace;
use super::{Segment, ValuePointer, ValueStore};
use crate::base::codec::{usize_of, usize_of64};
use crate::base::error::Result;
use crate::storage::FileMapping;
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
