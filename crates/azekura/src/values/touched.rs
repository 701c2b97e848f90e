//! Which parts of a segment may be read in the mapping.

use crate::base::codec::usize_of64;
use crate::base::error::Result;
use crate::base::limits::ALIGN_BYTES;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which blocks of a segment were read before, at one place of the segment.
#[derive(Default)]
pub(super) struct Touched(OnceLock<Box<[AtomicU64]>>);

/// References reach no further: an offset of 32 bits and a length of as many.
const REACH_BYTES: u64 = 2 << 32;

impl Touched {
    /// Calls `touch`, unless all blocks from byte `start` to `end` were touched before. The segment has
    /// `bytes`.
    pub(super) fn once(
        &self,
        start: u64,
        end: u64,
        bytes: u64,
        touch: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let blocks = start / ALIGN_BYTES..end.div_ceil(ALIGN_BYTES);
        let place =
            |block: u64| (usize_of64(block / u64::from(u64::BITS)), 1 << (block % u64::from(u64::BITS)));
        let is_set = |map: &[AtomicU64], block| {
            let (word, mask) = place(block);
            map.get(word).is_some_and(|word| word.load(Ordering::Relaxed) & mask != 0)
        };
        if self.0.get().is_some_and(|map| blocks.clone().all(|block| is_set(map, block))) {
            return Ok(());
        }
        // Before the map is made: a damaged file may claim a segment of any length, and then this fails.
        touch()?;
        let words = bytes.min(REACH_BYTES).div_ceil(ALIGN_BYTES * u64::from(u64::BITS));
        let map = self.0.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        for (word, mask) in blocks.map(place) {
            if let Some(word) = map.get(word) {
                word.fetch_or(mask, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}
