//! Value segments: large values, written once, in the order in which they come.
//!
//! A transaction's large values go to the open segment as they are put, and its records hold
//! references. Values gather in a buffer of 4 MiB; a thread of its own writes full buffers, paced
//! like a run's. A segment is a stretch of the file of up to 64 MiB; a value that is larger gets
//! one to itself. Values stand one after the other without headers: the reference knows the length
//! and the checksum. After a sync the next value starts at a multiple of 4 KiB, so that no block
//! that holds a durable value is ever written again.
//!
//! A segment lives as long as somebody holds it: the runs, chunks and transactions whose records
//! refer to it. The last one to drop it frees its extents. A segment that is closed and written may be
//! moved, in parts too: references name it and not its place.
//!
//! Lock order: `open`, then `queue`, then the leaves (`registry`, a segment's `tail`, a place's `left`).

pub(crate) mod ahead;
mod mapped;
mod place;
#[cfg(all(test, not(loom)))]
mod tests;
mod writer;

pub(crate) use mapped::LargeValue;
pub(crate) use writer::ValueStore;

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
/// A length from here on is believed only if the file is as long.
const BELIEVED_BYTES_MAX: u32 = 1 << 20;

/// Where a large value is. It is stored as it stands here, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValuePointer {
    pub(crate) segment: u32,
    /// From the segment's first byte.
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
}

/// A part of a segment that is full but not yet written.
struct UnwrittenPart {
    start: u64,
    bytes: Arc<Vec<u8>>,
}

/// Values that stand one after the other.
pub(crate) struct Segment {
    pub(crate) id: u32,
    file: Arc<dyn File>,
    /// It shrinks when the segment is closed, and changes when it is moved.
    place: ArcSwap<SegmentPlace>,
    /// Bytes given out.
    used: AtomicU64,
    /// Bytes that stand in the file (though perhaps not on the device).
    written: AtomicU64,
    /// Parts on their way to the file.
    parts: Mutex<Vec<UnwrittenPart>>,
    /// Bytes given out and not in a part yet: the open buffer and where it starts.
    tail: Mutex<(u64, Vec<u8>)>,
    /// How long the file was when it was opened, if it ended before the segment did: long values behind that
    /// are not believed, however long the file has become since.
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

    /// Where it stands now.
    pub(crate) fn place(&self) -> Arc<SegmentPlace> {
        self.place.load_full()
    }

    /// Bytes of the file that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.place.load().bytes()
    }

    /// It ends behind the bytes given out: the rest of its extent is free. REQUIRES: nothing more is given
    /// out.
    fn cut(&self) {
        let (place, used) = (self.place(), align_up(self.used()));
        if let &[extent] = place.extents()
            && used < extent.len
            && used > 0
        {
            // Nobody reads what goes, so it is free at once. The former place may still be read, and
            // therefore keeps this one alive.
            self.moved(vec![place.shrunk(extent, used)], Vec::new());
        }
    }

    /// It stands in `extents` from now on; `left` are those of its former ones, or parts of them, that it has
    /// left. REQUIRES: they hold the same bytes, and a durable checkpoint says so if they are elsewhere;
    /// nobody else moves it. (Only what is whole is moved, and that is not cut any more.)
    pub(crate) fn moved(&self, extents: Vec<Extent>, left: Vec<Extent>) {
        let old = self.place.load_full();
        let next = Arc::new(old.at(extents));
        old.succeeded_by(next.clone(), left);
        self.place.store(next);
    }

    /// Whether all that its extents hold is in the file, and will stay as it is.
    fn is_whole(&self) -> bool {
        self.written() == self.bytes()
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    /// Whether a reference lies within the segment, and, if much memory is to be taken for its value, in the
    /// file.
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

    /// The segment was found in a file of `file_len` bytes.
    pub(crate) fn found_in(&self, file_len: u64) {
        if self.place.load().check_inside(0, self.used(), file_len).is_err() {
            let _first = self.cut_at.set(file_len);
        }
    }

    /// Whether the file ended before it did when it was opened.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut_at.get().is_some()
    }

    /// Reads a value into `out`, whose length is the value's, and verifies it.
    pub(crate) fn read(&self, at: ValuePointer, out: &mut [u8]) -> Result<()> {
        self.check(at)?;
        debug_assert_eq!(out.len(), usize_of(at.len));
        self.read_bytes(u64::from(at.offset), out)?;
        self.verify(at, out)
    }

    /// Bytes that stand in the file.
    fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Fills `out` from byte `start` on. REQUIRES: that many were given out.
    fn read_bytes(&self, start: u64, out: &mut [u8]) -> Result<()> {
        if start + out.len() as u64 <= self.written() {
            self.place.load().read(self.file.as_ref(), start, out)
        } else {
            self.read_unwritten(start, out)
        }
    }

    /// Whether a value is what was written.
    fn verify(&self, at: ValuePointer, value: &[u8]) -> Result<()> {
        let crc = crc32c::crc32c(value);
        if crc == at.crc || crate::base::checksum::is_ignored() {
            Ok(())
        } else {
            Err(self.bad(u64::from(at.offset), &format!("checksum {crc:08x}, expected {:08x}", at.crc)))
        }
    }

    fn bad(&self, start: u64, detail: &str) -> Error {
        Error::corrupt("value", self.place.load().offset_of(start), format!("segment {}: {detail}", self.id))
    }

    /// As `read`, of bytes some of which are still in memory. A part is removed only after it is
    /// written, and the tail becomes a part before it is emptied, so looking at tail, parts and
    /// file in this order, with the tail locked, misses nothing.
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

/// Copies what `bytes`, which stand from `from` on, share with `out`, which stands from `start` on.
fn copy_overlap(from: u64, bytes: &[u8], start: u64, out: &mut [u8]) {
    let low = from.max(start);
    let high = (from + bytes.len() as u64).min(start + out.len() as u64);
    if low < high {
        let at = |x: u64, base: u64| crate::base::codec::usize_of64(x - base);
        out[at(low, start)..at(high, start)].copy_from_slice(&bytes[at(low, from)..at(high, from)]);
    }
}
