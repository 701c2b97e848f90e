//! What a log has of some commits, with their large values: a part of a copy that comes behind all others.
//!
//! Large values are written one behind the other, in a value segment of a new number, and the commits refer
//! to that. So nothing of it depends on the segments of the file, whose numbers are given again.

use super::since::{ReadValue, Taken};
use crate::base::error::Result;
use crate::base::limits::{ALIGN_BYTES, align_up};
use crate::format::frame::RecordPart;
use crate::format::manifest::{LogChain, ValueInfo};
use crate::log::image::{ImageId, LogImage};
use crate::space::Extent;
use crate::values::ValuePointer;

/// A commit with more bytes of large values is not taken. The runs and value segments of another point have
/// it at less cost.
const VALUES_OF_COMMIT_MAX: u64 = 256 << 20;

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
    /// With so many bytes it is to be sealed.
    full_bytes: usize,
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
    pub(crate) fn new(place: IncrementPlace, full_bytes: usize) -> Increment {
        Increment { place, full_bytes, image: LogImage::default(), values: Vec::new(), last: None }
    }

    /// Ends what there is, and begins the next in the same place.
    pub(crate) fn take(&mut self) -> Increment {
        let next = Increment::new(self.place, self.full_bytes);
        std::mem::replace(self, next)
    }

    /// Moves it, while it has no commit.
    pub(crate) fn go_on(&mut self, place: IncrementPlace) {
        self.place = place;
    }

    /// The last commit. None: there is none yet.
    pub(crate) fn last(&self) -> Option<u64> {
        self.last
    }

    /// Whether it is to be sealed.
    pub(crate) fn is_full(&self) -> bool {
        self.image.bytes() + self.values.len() >= self.full_bytes
    }

    /// Adds the next commit. `read` appends the bytes of a large value, or says that it is nowhere. It is not
    /// taken if one is not there, or all are too long.
    pub(crate) fn add(
        &mut self,
        seq: u64,
        mut parts: Vec<RecordPart>,
        read: &ReadValue<'_>,
    ) -> Result<Taken> {
        if value_bytes(&parts)? > VALUES_OF_COMMIT_MAX {
            return Ok(Taken::No);
        }
        let before = self.values.len();
        for part in parts.iter_mut().filter(|part| !part.segments.is_empty()) {
            let added = self.add_values(part, read);
            if !matches!(added, Ok(true)) {
                self.values.truncate(before);
                return added.map(|_| Taken::No);
            }
        }
        self.image.add(seq, &parts);
        self.last = Some(seq);
        Ok(if self.is_full() { Taken::Last } else { Taken::Yes })
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

    /// What is sealed of it. None if it has no commit. `clock` is the latest time that the log's frames say.
    pub(crate) fn seal(self, clock: u32) -> Option<SealedIncrement> {
        let Increment { place, image, values, last, .. } = self;
        let extent = Extent { offset: place.offset, len: align_up(values.len() as u64) };
        let log = image.finish(place.id, clock, extent.end())?;
        let values = (!values.is_empty()).then(|| {
            let used = values.len() as u64;
            (ValueInfo { id: place.values, extents: vec![extent], used }, values)
        });
        Some(SealedIncrement { last: last?, values, log: (log.1, log.0) })
    }
}

/// Bytes of the large values of a commit.
fn value_bytes(parts: &[RecordPart]) -> Result<u64> {
    let mut bytes = 0;
    for part in parts.iter().filter(|part| !part.segments.is_empty()) {
        for reference in (0..part.block.len()).filter_map(|i| part.block.reference(i)) {
            bytes += u64::from(ValuePointer::decode(reference)?.len);
        }
    }
    Ok(bytes)
}
