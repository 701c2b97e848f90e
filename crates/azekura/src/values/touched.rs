//! Which parts of a segment may be read in the mapping.

use crate::base::codec::usize_of64;
use crate::base::limits::ALIGN_BYTES;
use crate::storage::ENTER_BYTES;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which blocks of a segment may be read in the mapping, at one place of the segment.
#[derive(Default)]
pub(super) struct Touched {
    /// A bit for each block.
    blocks: OnceLock<Box<[AtomicU64]>>,
    /// A bit for each stretch of [`ENTER_BYTES`]: whether the system was asked to enter all of it.
    asked: AtomicU64,
}

/// References reach no further: an offset of 32 bits and a length of as many.
const REACH_BYTES: u64 = 2 << 32;

/// The word of a bit, and its mask there.
fn place(bit: u64) -> (usize, u64) {
    (usize_of64(bit / u64::from(u64::BITS)), 1 << (bit % u64::from(u64::BITS)))
}

impl Touched {
    /// Whether all bytes of a range were touched.
    #[inline(always)]
    pub(super) fn has(&self, bytes: Range<u64>) -> bool {
        let is_set = |map: &[AtomicU64], block| {
            let (word, mask) = place(block);
            map.get(word).is_some_and(|word| word.load(Ordering::Relaxed) & mask != 0)
        };
        let mut blocks = bytes.start / ALIGN_BYTES..bytes.end.div_ceil(ALIGN_BYTES);
        self.blocks.get().is_some_and(|map| blocks.all(|block| is_set(map, block)))
    }

    /// Notes that bytes of a segment of `segment_bytes` were touched. REQUIRES: the file has them. (A damaged
    /// file may claim a segment of any length, for which no map must be made.)
    pub(super) fn note(&self, bytes: Range<u64>, segment_bytes: u64) {
        let words = segment_bytes.min(REACH_BYTES).div_ceil(ALIGN_BYTES * u64::from(u64::BITS));
        let map = self.blocks.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        for (word, mask) in (bytes.start / ALIGN_BYTES..bytes.end.div_ceil(ALIGN_BYTES)).map(place) {
            if let Some(word) = map.get(word) {
                word.fetch_or(mask, Ordering::Relaxed);
            }
        }
    }

    /// The stretch of [`ENTER_BYTES`] in which byte `at` is, the first time that it is asked for, if all of
    /// it is before byte `written`. No stretch is asked for twice, so that a file that is not in memory costs
    /// hardly more. Only the first 64 of a segment are, which most segments do not have.
    pub(super) fn ask(&self, at: u64, written: u64, segment_bytes: u64) -> Option<Range<u64>> {
        let number = at / ENTER_BYTES;
        let stretch = number * ENTER_BYTES..segment_bytes.min((number + 1) * ENTER_BYTES);
        if number >= u64::from(u64::BITS) || stretch.end > written {
            return None;
        }
        let before = self.asked.fetch_or(1 << number, Ordering::Relaxed);
        (before & (1 << number) == 0).then_some(stretch)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_asked_for_once_when_all_of_it_is_written() {
        let (touched, whole) = (Touched::default(), 5 << 20);
        assert_eq!(touched.ask(ENTER_BYTES + 7, 2 * ENTER_BYTES - 1, whole), None, "its end is not written");
        assert_eq!(touched.ask(ENTER_BYTES + 7, whole, whole), Some(ENTER_BYTES..2 * ENTER_BYTES));
        assert_eq!(touched.ask(ENTER_BYTES, whole, whole), None);
        assert_eq!(touched.ask(whole - 1, whole, whole), Some(2 * ENTER_BYTES..whole), "the last is shorter");
        assert_eq!(touched.ask(64 * ENTER_BYTES, u64::MAX, u64::MAX), None);
        touched.note(ENTER_BYTES..2 * ENTER_BYTES, whole);
        assert!(touched.has(ENTER_BYTES..2 * ENTER_BYTES) && !touched.has(ENTER_BYTES - 1..ENTER_BYTES));
    }
}
