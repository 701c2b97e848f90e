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
    /// A bit for each [`ENTER_BYTES`]: whether the system was asked to enter them.
    asked: OnceLock<Box<[AtomicU64]>>,
}

/// References reach no further: an offset of 32 bits and a length of as many.
const REACH_BYTES: u64 = 2 << 32;

/// A bit for each so many bytes of a segment, none set.
fn map_of(segment_bytes: u64, each_bytes: u64) -> Box<[AtomicU64]> {
    let words = segment_bytes.min(REACH_BYTES).div_ceil(each_bytes * u64::from(u64::BITS));
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

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
        let map = self.blocks.get_or_init(|| map_of(segment_bytes, ALIGN_BYTES));
        for (word, mask) in (bytes.start / ALIGN_BYTES..bytes.end.div_ceil(ALIGN_BYTES)).map(place) {
            if let Some(word) = map.get(word) {
                word.fetch_or(mask, Ordering::Relaxed);
            }
        }
    }

    /// Whether a stretch of a segment of `segment_bytes` is to be entered for byte `at` of it: nobody has
    /// asked for that byte, so that a file that is not in memory costs hardly more. REQUIRES: the file has
    /// all of the stretch.
    pub(super) fn ask(&self, at: u64, stretch: &Range<u64>, segment_bytes: u64) -> bool {
        let map = self.asked.get_or_init(|| map_of(segment_bytes, ENTER_BYTES));
        let claim = |part: u64| {
            let (word, mask) = place(part);
            map.get(word).is_some_and(|word| word.fetch_or(mask, Ordering::Relaxed) & mask == 0)
        };
        let is_first = claim(at / ENTER_BYTES);
        if is_first {
            for part in stretch.start / ENTER_BYTES..stretch.end.div_ceil(ENTER_BYTES) {
                let _others = claim(part);
            }
        }
        is_first
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_asked_for_once() {
        let (touched, whole) = (Touched::default(), 100 * ENTER_BYTES + 4096);
        let stretch = 2 * ENTER_BYTES..4 * ENTER_BYTES;
        assert!(touched.ask(stretch.start + 7, &stretch, whole));
        assert!(
            !touched.ask(stretch.start, &stretch, whole) && !touched.ask(stretch.end - 1, &stretch, whole)
        );
        let last = 100 * ENTER_BYTES..whole;
        assert!(touched.ask(whole - 1, &last, whole) && !touched.ask(whole - 1, &last, whole));
        let beyond = REACH_BYTES + whole;
        assert!(!touched.ask(beyond, &(beyond..beyond + 1), u64::MAX), "no reference reaches there");
        touched.note(stretch.clone(), whole);
        assert!(touched.has(stretch.clone()) && !touched.has(stretch.start - 1..stretch.end));
    }
}
