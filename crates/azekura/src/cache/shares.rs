//! How the two page caches of a database share its memory: one has frames of 16 KiB, for the pages of
//! most runs and for filters, the other frames of 4 KiB, for runs of small general records.
//!
//! A cache of its own for each size keeps a hit what it is, an array lookup and a pin, and needs no
//! search for neighbours that can be driven out together. What it needs is a division:
//!
//! 1. If all pages of both sizes fit, each cache gets what its pages take, and half of the rest.
//! 2. Else each gets at first what its pages take, up to a quarter of the memory, and the rest goes by
//!    what is left of their pages.
//! 3. Then misses count. Another byte of cache saves what was missed for each byte that is not
//!    cached; where that is worth twice as much as in the other cache, it gets a 32nd of the memory
//!    from there, a few times a second, until the other has an eighth left (or all it can use).
//!
//! The cache of small pages is made when the first run with such pages is opened.
//!
//! Lock order: `shares`, then the caches' clocks. Readers take neither.

use super::Cache;
use crate::base::codec::usize_of64;
use crate::base::error::Result;
use crate::base::limits::{PAGE_BYTES, SMALL_PAGE_BYTES};
use crate::base::sync::Mutex;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Misses are looked at this often at most.
const TICK: Duration = Duration::from_millis(200);
/// Fewer misses than this in a tick say nothing.
const MISSES_MIN: u64 = 256;
/// What a miss of a large page costs, in misses of small ones: it reads and checks four times as much.
const LARGE_MISS_COST: u64 = 3;
/// A cache gets more where that is worth so many times what it is worth in the other one.
const WORTH_MORE: u128 = 2;
/// Changes smaller than this part of the memory are not worth driving pages out.
const STEP_PART: usize = 32;

/// Bytes of pages in the runs that readers may meet, by the size of their pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LiveBytes {
    /// In pages of 16 KiB, those of filters among them.
    pub(crate) large: u64,
    /// In pages of 4 KiB.
    pub(crate) small: u64,
}

/// What the guide and the header of a small frame take beside it, as a part of it.
const SMALL_OVERHEAD_PART: usize = 50;

/// Both caches.
pub(crate) struct Caches {
    large: Arc<Cache>,
    small: OnceLock<Arc<Cache>>,
    bytes_max: usize,
    /// Whether threads may touch frames in advance.
    stock: bool,
    shares: Mutex<Shares>,
}

/// What both caches have done and hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CachesStats {
    /// Pages that had to be loaded.
    pub(crate) misses: u64,
    /// Pages that were driven out by others.
    pub(crate) evictions: u64,
    /// Bytes of frames in use.
    pub(crate) used_bytes: u64,
}

impl Caches {
    /// Caches of `bytes` in all, which is also the most they can ever get.
    ///
    /// # Errors
    /// As `Cache::new`.
    pub(crate) fn new(bytes: usize, stock: bool) -> Result<Arc<Caches>> {
        let (large, shares) = (Cache::new(bytes, PAGE_BYTES, stock)?, Mutex::new(Shares::new(bytes)));
        Ok(Arc::new(Caches { large, small: OnceLock::new(), bytes_max: bytes, stock, shares }))
    }

    /// One cache of guides for pages of both sizes, which are read where they stand.
    ///
    /// # Errors
    /// As `Cache::new`.
    pub(crate) fn of_guides(bytes: usize) -> Result<Arc<Caches>> {
        let (large, shares) = (Cache::new(bytes, 0, false)?, Mutex::new(Shares::new(bytes)));
        Ok(Arc::new(Caches { large, small: OnceLock::new(), bytes_max: bytes, stock: false, shares }))
    }

    /// The most that it may take.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Whether pages are read where they stand, and only their guides are here.
    pub(crate) fn has_guides_only(&self) -> bool {
        self.large.frame_bytes() == 0
    }

    /// The cache of pages of that size.
    ///
    /// # Errors
    /// As `Cache::new`, for the first run of small pages.
    pub(crate) fn of(&self, page_bytes: usize) -> Result<Arc<Cache>> {
        debug_assert!(page_bytes == PAGE_BYTES || page_bytes == SMALL_PAGE_BYTES);
        if page_bytes == PAGE_BYTES || self.has_guides_only() {
            return Ok(self.large.clone());
        }
        if let Some(small) = self.small.get() {
            return Ok(small.clone());
        }
        let mut shares = self.shares.lock();
        if self.small.get().is_none() {
            let small = Cache::new(self.bytes_max, SMALL_PAGE_BYTES, self.stock)?;
            small.set_bytes(0);
            let _ours = self.small.set(small);
            self.divide(&mut shares);
        }
        Ok(self.small.get().unwrap_or(&self.large).clone())
    }

    /// Ends the threads that touch frames in advance, for good.
    pub(crate) fn stop(&self) {
        for cache in std::iter::once(&self.large).chain(self.small.get()) {
            cache.stop_stocking();
        }
    }

    /// Lets both caches together have `bytes`.
    pub(crate) fn set_bytes(&self, bytes: usize) {
        if self.has_guides_only() {
            return;
        }
        let mut shares = self.shares.lock();
        shares.bytes = bytes;
        self.divide(&mut shares);
    }

    /// Divides the memory by what the runs hold now, and by what was missed lately.
    pub(crate) fn share(&self, live: LiveBytes) {
        let mut shares = self.shares.lock();
        shares.live = live;
        let Some(small) = self.small.get() else { return };
        if shares.looked.elapsed() >= TICK {
            shares.looked = Instant::now();
            shares.learn([self.large.stats().misses, small.stats().misses]);
        }
        if shares.wanted().abs_diff(shares.small) >= shares.bytes / STEP_PART {
            self.divide(&mut shares);
        }
    }

    /// Gives each cache what it should have; the one that gets less goes first.
    fn divide(&self, shares: &mut Shares) {
        let Some(small) = self.small.get() else { return self.large.set_bytes(shares.bytes) };
        let (before, wanted) = (shares.small, shares.wanted());
        shares.small = wanted;
        let set_small = || small.set_bytes(shares.small - shares.small / SMALL_OVERHEAD_PART);
        if shares.small < before {
            set_small();
        }
        self.large.set_bytes(shares.bytes - shares.small);
        if shares.small >= before {
            set_small();
        }
    }

    /// What both have done so far.
    pub(crate) fn stats(&self) -> CachesStats {
        let mut sum = CachesStats::default();
        for cache in std::iter::once(&self.large).chain(self.small.get()) {
            let stats = cache.stats();
            sum.misses += stats.misses;
            sum.evictions += stats.evictions;
            sum.used_bytes += stats.frames_used * super::cost_of(cache.frame_bytes()) as u64;
        }
        sum
    }
}

/// What each cache may have.
struct Shares {
    /// For both.
    bytes: usize,
    /// Of which the cache of small pages has this much.
    small: usize,
    /// How many 32nds of the memory misses have moved the border from where sizes put it.
    tilt: isize,
    live: LiveBytes,
    /// Misses of large and small pages that have been looked at, and when.
    misses: [u64; 2],
    looked: Instant,
}

impl Shares {
    fn new(bytes: usize) -> Shares {
        Shares { bytes, small: 0, tilt: 0, live: LiveBytes::default(), misses: [0; 2], looked: Instant::now() }
    }

    /// What the pages of both sizes would take, as far as they could.
    fn needs(&self) -> (usize, usize) {
        (usize_of64(self.live.large.min(1 << 40)), usize_of64(self.live.small.min(1 << 40)))
    }

    /// What the cache of small pages should have.
    fn wanted(&self) -> usize {
        let ((large, small), all) = (self.needs(), self.bytes);
        if small == 0 {
            return 0;
        }
        if large + small <= all {
            return small + (all - large - small) / 2;
        }
        let tilt = self.tilt * (all / STEP_PART).cast_signed();
        self.by_size().saturating_add_signed(tilt).clamp(small.min(all / 8), all - large.min(all / 8))
    }

    /// The same without regard to misses, where not all fits.
    fn by_size(&self) -> usize {
        let ((large, small), all) = (self.needs(), self.bytes);
        let (least_large, least_small) = (large.min(all / 4), small.min(all / 4));
        let (more_large, more_small) = (large - least_large, small - least_small);
        let rest = (all - least_large - least_small) as u128;
        let part = rest * more_small as u128 / ((more_large + more_small).max(1) as u128);
        least_small + usize_of64(part as u64)
    }

    /// Moves the border by what was missed since the last time.
    fn learn(&mut self, misses: [u64; 2]) {
        let (large, small) = (misses[0] - self.misses[0], misses[1] - self.misses[1]);
        self.misses = misses;
        let (need_large, need_small) = self.needs();
        if large + small < MISSES_MIN || need_large + need_small <= self.bytes {
            return;
        }
        // What a byte more would save: misses for each byte that is not cached, crosswise multiplied.
        let beyond = |need: usize, has: usize| need.saturating_sub(has).max(1) as u128;
        let large = u128::from(large * LARGE_MISS_COST) * beyond(need_small, self.small);
        let small = u128::from(small) * beyond(need_large, self.bytes - self.small.min(self.bytes));
        let step = if small > large * WORTH_MORE { 1 } else { -isize::from(large > small * WORTH_MORE) };
        self.tilt += step;
        // Not beyond where the border ends, so that it turns at once.
        let (wanted, by_size, unit) = (self.wanted(), self.by_size(), (self.bytes / STEP_PART).max(1));
        let reached = wanted.abs_diff(by_size).div_ceil(unit).cast_signed();
        self.tilt = self.tilt.clamp(-reached, reached);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn shares(bytes: usize, large: u64, small: u64) -> Shares {
        Shares { live: LiveBytes { large, small }, ..Shares::new(bytes) }
    }

    #[test]
    fn what_fits_is_kept_whole() {
        assert_eq!(shares(1000, 2000, 0).wanted(), 0);
        assert_eq!(shares(1000, 0, 2000).wanted(), 1000);
        assert_eq!(shares(1000, 300, 500).wanted(), 600);
        // Filters beside the pages that they are for.
        assert_eq!(shares(1000, 10, 5000).wanted(), 990);
    }

    #[test]
    fn beyond_memory_neither_starves() {
        for (large, small) in [(100_000, 1000), (1000, 100_000), (5000, 5000)] {
            let part = shares(1000, large, small).wanted();
            assert!((250..=750).contains(&part), "{part} of 1000 for {small} beside {large}");
        }
    }

    #[test]
    fn misses_move_the_border_and_turn_it_at_once() {
        let mut s = shares(1 << 20, 4 << 20, 4 << 20);
        let mut misses = [0, 0];
        let mut step = |s: &mut Shares, large: u64, small: u64| {
            misses = [misses[0] + large, misses[1] + small];
            s.learn(misses);
            s.small = s.wanted();
            s.small
        };
        assert_eq!(step(&mut s, 0, 0), 1 << 19);
        for _ in 0..100 {
            step(&mut s, 10, 10_000);
        }
        assert_eq!(s.small, (1 << 20) / 8 * 7, "an eighth is left to the other");
        assert!(step(&mut s, 10_000, 10) < (1 << 20) / 8 * 7);
        for _ in 0..100 {
            step(&mut s, 10_000, 10);
        }
        assert_eq!(s.small, (1 << 20) / 8);
        let before = s.small;
        assert_eq!(step(&mut s, 1, 100), before, "too few misses say nothing");
    }

    #[test]
    fn the_caches_get_their_shares() {
        let caches = Caches::new(16 << 20, false).unwrap();
        let frames = |page_bytes| caches.of(page_bytes).unwrap().limit();
        assert_eq!(frames(PAGE_BYTES), 1024);
        caches.share(LiveBytes { large: 64 << 20, small: 64 << 20 });
        let small = frames(SMALL_PAGE_BYTES);
        assert!(small > 1900 && small <= 2048, "{small} frames, less their guides");
        assert_eq!(frames(PAGE_BYTES), 512);
        caches.set_bytes(8 << 20);
        assert_eq!(frames(PAGE_BYTES), 256);
        assert!(frames(SMALL_PAGE_BYTES) <= 1024);
        caches.share(LiveBytes { large: 1 << 20, small: 64 << 20 });
        assert_eq!(frames(PAGE_BYTES), 64);
        caches.share(LiveBytes { large: 64 << 20, small: 0 });
        assert_eq!((frames(PAGE_BYTES), frames(SMALL_PAGE_BYTES)), (512, 1));
    }
}
