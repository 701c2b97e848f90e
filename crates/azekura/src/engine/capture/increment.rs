//! What a log has of some commits, with their large values: a part of a copy that comes behind all others.
//!
//! Large values are written one behind the other, in a value segment of a new number, and the commits refer
//! to that. So nothing of it depends on the segments of the file, whose numbers are given again.

use super::since::ReadValue;
use crate::base::error::Result;
use crate::base::limits::{ALIGN_BYTES, align_up};
use crate::format::frame::RecordPart;
use crate::format::manifest::{LogChain, ValueInfo};
use crate::log::image::{ImageId, LogImage};
use crate::space::Extent;
use crate::values::ValuePointer;

/// An increment with so many bytes is to be sealed, when what the log has just now was read.
const BYTES_FULL: usize = 32 << 20;

/// Where in the copy an increment comes, and under which numbers.
#[derive(Clone, Copy)]
pub(crate) struct IncrementPlace {
    pub(crate) id: ImageId,
    /// The number of the value segment.
    pub(crate) values: u32,
    /// Where the copy has ended until now.
    pub(crate) offset: u64,
}

/// Commits that follow each other.
pub(crate) struct Increment {
    place: IncrementPlace,
    image: LogImage,
    values: Vec<u8>,
    last: Option<u64>,
}

/// An increment that has ended: what the manifest says of it, and its bytes.
pub(crate) struct SealedIncrement {
    pub(crate) last: u64,
    /// None if no commit has a large value.
    pub(crate) values: Option<(ValueInfo, Vec<u8>)>,
    pub(crate) log: (LogChain, Vec<u8>),
}

impl Increment {
    pub(crate) fn new(place: IncrementPlace) -> Increment {
        Increment { place, image: LogImage::default(), values: Vec::new(), last: None }
    }

    pub(crate) fn place(&self) -> IncrementPlace {
        self.place
    }

    /// The last commit. None: there is none yet.
    pub(crate) fn last(&self) -> Option<u64> {
        self.last
    }

    /// Whether it is to be sealed.
    pub(crate) fn is_full(&self) -> bool {
        self.image.bytes() + self.values.len() >= BYTES_FULL
    }

    /// Adds the next commit. `read` appends the bytes of a large value, or says that it is nowhere. False if
    /// one is not there, or all are too long for one segment. Then the commit is not there either.
    pub(crate) fn add(&mut self, seq: u64, mut parts: Vec<RecordPart>, read: &ReadValue<'_>) -> Result<bool> {
        let before = self.values.len();
        for part in parts.iter_mut().filter(|part| !part.segments.is_empty()) {
            let added = self.add_values(part, read);
            if !matches!(added, Ok(true)) {
                self.values.truncate(before);
                return added;
            }
        }
        self.image.add(seq, &parts);
        self.last = Some(seq);
        Ok(true)
    }

    fn add_values(&mut self, part: &mut RecordPart, read: &ReadValue<'_>) -> Result<bool> {
        let before = self.values.len();
        for i in 0..part.block.len() {
            let Some(reference) = part.block.reference(i) else { continue };
            let at = ValuePointer::decode(reference)?;
            let (Ok(offset), len) = (u32::try_from(self.values.len()), at.len) else { return Ok(false) };
            if offset.checked_add(len).is_none() || !read(part, at, &mut self.values)? {
                return Ok(false);
            }
            let moved = ValuePointer { segment: self.place.values, offset, ..at };
            if let Some(reference) = part.block.reference_mut(i) {
                reference.copy_from_slice(&moved.encode());
            }
        }
        part.segments.clear();
        if self.values.len() > before {
            // The manifest says how long it is.
            let first = Extent { offset: self.place.offset, len: ALIGN_BYTES };
            part.segments.push((self.place.values, first));
        }
        Ok(true)
    }

    /// Ends it. None if it has no commit. `clock` is the latest time that the log's frames say.
    pub(crate) fn seal(self, clock: u32) -> Option<SealedIncrement> {
        let Increment { place, image, values, last } = self;
        let extent = Extent { offset: place.offset, len: align_up(values.len() as u64) };
        let log = image.finish(place.id, clock, extent.end())?;
        let values = (!values.is_empty()).then(|| {
            let used = values.len() as u64;
            (ValueInfo { id: place.values, extents: vec![extent], used }, values)
        });
        Some(SealedIncrement { last: last?, values, log: (log.1, log.0) })
    }
}
