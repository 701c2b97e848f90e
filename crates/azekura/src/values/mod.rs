//! Value segments: large values, written once, in the order in which they come.
//!
//! A transaction's large values go to the open segment as they are put, but for those of small durable
//! transactions, which a flush brings there. Its records hold references. Values gather in a buffer of 4
//! MiB. A thread of its own writes full buffers, at the pace of a run's writes. A segment is a stretch of
//! the file of up to 64 MiB. A larger value gets a segment to itself. Values stand one after the other
//! without headers: the reference has the length and the checksum. After a sync the next value starts at a
//! multiple of 4 KiB, so a block that holds a durable value is never written again.
//!
//! A segment lives as long as a run, chunk or transaction has records that refer to it. When the last holder
//! drops it, its extents are freed. A segment that is closed and written may be moved, also in parts:
//! references name the segment and not its place.
//!
//! Lock order: `open`, then `queue`, then the leaves (`registry`, a segment's `tail`, a place's `left`).

pub(crate) mod ahead;
mod large;
mod mapped;
mod place;
#[cfg(all(test, not(loom)))]
mod tests;
mod touched;
mod writer;

pub(crate) use large::LargeValue;
pub(crate) use writer::ValueStore;

use crate::base::checksum::crc;
use crate::base::codec::{u32_at, usize_of};
use crate::base::error::{Error, Result};
use crate::base::limits::align_up;
use crate::base::poison::Poison;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{ArcSwap, Mutex, Rank};
use crate::space::{Extent, Space};
use crate::storage::File;
use place::SegmentPlace;
use std::sync::{Arc, OnceLock};

/// Bytes of a reference in a record.
pub(crate) const VALUE_POINTER_BYTES: usize = 16;
/// A value of this length or more is believed only if the file is long enough.
const BELIEVED_BYTES_MAX: u32 = 1 << 20;

/// Where a large value is. Stored in this order, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValuePointer {
    pub(crate) segment: u32,
    /// In bytes from the start of the segment.
    pub(crate) offset: u32,
    pub(crate) len: u32,
    pub(crate) crc: u32,
}

impl ValuePointer {
    pub(crate) fn encode(self) -> [u8; VALUE_POINTER_BYTES] {
        let mut b = [0; VALUE_POINTER_BYTES];
        b[..4].copy_from_slice(&self.segment.to_le_bytes());
        b[4..8].copy_from_slice(&self.offset.to_le_bytes());
        b[8..12].copy_from_slice(&self.len.to_le_bytes());
        b[12..].copy_from_slice(&self.crc.to_le_bytes());
        b
    }

    pub(crate) fn decode(b: &[u8]) -> Result<ValuePointer> {
        if b.len() != VALUE_POINTER_BYTES {
            return Err(Error::corrupt("value reference", 0, format!("{} bytes, expected 16", b.len())));
        }
        Ok(ValuePointer {
            segment: u32_at(b, 0),
            offset: u32_at(b, 4),
            len: u32_at(b, 8),
            crc: u32_at(b, 12),
        })
    }

    /// Where the value begins and ends in its segment.
    pub(crate) fn range(self) -> (u64, u64) {
        (u64::from(self.offset), u64::from(self.offset) + u64::from(self.len))
    }
}

/// A full buffer of a segment that is not written yet.
struct UnwrittenPart {
    start: u64,
    bytes: Arc<Vec<u8>>,
}

/// A stretch of the file with values, one after the other.
pub(crate) struct Segment {
    pub(crate) id: u32,
    file: Arc<dyn File>,
    /// Its extents. They shrink when the segment is closed, and change when it is moved.
    place: ArcSwap<SegmentPlace>,
    /// Bytes given out to values.
    used: AtomicU64,
    /// Bytes that are in the file, though perhaps not on the device yet.
    written: AtomicU64,
    /// Parts on their way to the file.
    parts: Mutex<Vec<UnwrittenPart>>,
    /// Bytes given out that are not in a part yet: where the open buffer starts, and the buffer.
    tail: Mutex<(u64, Vec<u8>)>,
    /// The file's length at its opening, if the file ended before the segment did. Long values behind that
    /// place are not believed, even if the file has grown since.
    cut_at: OnceLock<u64>,
}

impl Drop for Segment {
    fn drop(&mut self) {
        let place = self.place.load_full();
        place.left(place.extents().to_vec());
    }
}

impl Segment {
    pub(crate) fn new(
        id: u32,
        file: Arc<dyn File>,
        space: Arc<Space>,
        poison: Arc<Poison>,
        extents: Vec<Extent>,
        used: u64,
    ) -> Segment {
        Segment {
            id,
            file,
            place: ArcSwap::from_pointee(SegmentPlace::new(extents, space, poison)),
            used: AtomicU64::new(used),
            written: AtomicU64::new(used),
            parts: Mutex::new(Vec::new()),
            tail: Mutex::ranked(Rank::ValuesTail, (used, Vec::new())),
            cut_at: OnceLock::new(),
        }
    }

    /// Where the segment stands.
    pub(crate) fn place(&self) -> Arc<SegmentPlace> {
        self.place.load_full()
    }

    /// Bytes that the segment takes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.place.load().bytes()
    }

    /// Frees the rest of the extent behind the bytes given out. REQUIRES: nothing more is given out.
    fn cut(&self) {
        let (place, used) = (self.place(), align_up(self.used()));
        if let &[extent] = place.extents()
            && used < extent.len
            && used > 0
        {
            // Nobody reads the freed part, so it is free at once. The former place may still be read, and
            // keeps this one alive.
            self.moved(vec![place.shrunk(extent, used)], Vec::new());
        }
    }

    /// Moves the segment to `extents`. `left` are the former extents, or parts of them, that it has left.
    /// REQUIRES: the new extents hold the same bytes; where they are elsewhere, a durable checkpoint names
    /// them; nobody else moves the segment. (Only whole segments are moved, and those are not cut any more.)
    pub(crate) fn moved(&self, extents: Vec<Extent>, left: Vec<Extent>) {
        let old = self.place.load_full();
        let next = Arc::new(old.at(extents));
        old.succeeded_by(next.clone(), left);
        self.place.store(next);
    }

    /// Whether the file holds all of its extents' bytes, which then never change.
    fn is_whole(&self) -> bool {
        self.written() == self.bytes()
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    /// Checks that a reference lies within the segment. If its value needs much memory, checks that the file
    /// has it too.
    pub(crate) fn check(&self, at: ValuePointer) -> Result<()> {
        let start = u64::from(at.offset);
        let end = start + u64::from(at.len);
        if end > self.used() {
            return Err(self.bad(start, "the reference passes the end of its segment"));
        }
        if at.len < BELIEVED_BYTES_MAX {
            return Ok(());
        }
        let file_len = match self.cut_at.get() {
            Some(&file_len) => file_len,
            None => self.file.len().map_err(|e| Error::io("reading the file's length", e))?,
        };
        self.place.load().check_inside(start, end.min(self.written()), file_len)
    }

    /// Notes that the segment was found in a file of `file_len` bytes.
    pub(crate) fn found_in(&self, file_len: u64) {
        if self.place.load().check_inside(0, self.used(), file_len).is_err() {
            let _first = self.cut_at.set(file_len);
        }
    }

    /// Whether the file, when it was opened, ended before the segment.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut_at.get().is_some()
    }

    /// Reads a value into `out`, which has the value's length, and verifies it.
    pub(crate) fn read(&self, at: ValuePointer, out: &mut [u8]) -> Result<()> {
        self.check(at)?;
        debug_assert_eq!(out.len(), usize_of(at.len));
        self.read_bytes(u64::from(at.offset), out)?;
        self.verify(at, out)
    }

    /// Bytes that are in the file.
    fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Fills `out` from byte `start` on. REQUIRES: these bytes were given out.
    fn read_bytes(&self, start: u64, out: &mut [u8]) -> Result<()> {
        if start + out.len() as u64 <= self.written() {
            self.place.load().read(self.file.as_ref(), start, out)
        } else {
            self.read_unwritten(start, out)
        }
    }

    /// Checks a value against the checksum in its reference.
    fn verify(&self, at: ValuePointer, value: &[u8]) -> Result<()> {
        let crc = crc(0, value);
        if crc == at.crc || crate::base::checksum::is_ignored() {
            Ok(())
        } else {
            Err(self.bad(u64::from(at.offset), &format!("checksum {crc:08x}, expected {:08x}", at.crc)))
        }
    }

    fn bad(&self, start: u64, detail: &str) -> Error {
        Error::corrupt("value", self.place.load().offset_of(start), format!("segment {}: {detail}", self.id))
    }

    /// As `read_bytes`, where some of the bytes are still in memory. A part is removed only after it is
    /// written, and the tail becomes a part before it is emptied. So tail, parts and file, looked at in this
    /// order with the tail locked, have every byte.
    fn read_unwritten(&self, start: u64, out: &mut [u8]) -> Result<()> {
        let end = start + out.len() as u64;
        let tail = self.tail.lock();
        let mut file_end = end;
        copy_overlap(tail.0, &tail.1, start, out);
        file_end = file_end.min(tail.0.max(start));
        {
            let parts = self.parts.lock();
            for part in parts.iter() {
                copy_overlap(part.start, &part.bytes, start, out);
                file_end = file_end.min(part.start.max(start));
            }
        }
        drop(tail);
        let n = crate::base::codec::usize_of64(file_end - start);
        if n > 0 {
            self.place.load().read(self.file.as_ref(), start, &mut out[..n])?;
        }
        Ok(())
    }
}

/// Copies the bytes that are in both stretches: `bytes`, which starts at `from`, and `out`, which starts at
/// `start`.
fn copy_overlap(from: u64, bytes: &[u8], start: u64, out: &mut [u8]) {
    let low = from.max(start);
    let high = (from + bytes.len() as u64).min(start + out.len() as u64);
    if low < high {
        let at = |x: u64, base: u64| crate::base::codec::usize_of64(x - base);
        out[at(low, start)..at(high, start)].copy_from_slice(&bytes[at(low, from)..at(high, from)]);
    }
}
