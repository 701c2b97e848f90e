//! The budget's division between the page cache and the memtables.
//!
//! While nothing much is written, the page cache has nearly all of the memory budget. As soon as the
//! memtables hold more than a little, it is brought down to what they and the merges leave at their
//! largest; when they have held little for a second and nothing was merged, the memory of flushed
//! chunks is given back and the cache grows again. What a load leaves in the memtables, if it is more
//! than a little, is flushed when they have hardly grown for a second. The flushing thread does all
//! this, so a commit only raises a flag.
//!
//! Where memtables are read, they are flushed at half of their size, and the page cache gives way by less:
//! readers need the runs in memory, new ones and those that they replace.
//!
//! While a load goes on, what the allocator has gathered is given back now and then, if the process holds more than
//! the budget: 39 MiB of a budget of 48 after some minutes. Less and less often where that gives little, since the
//! memory may be the host program's.
//!
//! The page cache is two, one for each size of page; `cache/shares.rs` divides between them what they
//! get here, and is told by `share_cache` what there is to be cached.

use super::Engine;
use crate::base::codec::usize_of64;
use crate::base::error::Result;
use crate::base::heap;
use crate::base::limits::SMALL_PAGE_BYTES;
use crate::base::sync::Instant;
use crate::cache::LiveBytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Memtables must have held little for so long before the cache grows.
const QUIET: Duration = Duration::from_secs(1);

/// What filters and tables take is the cache's, but for this part of it.
const CACHE_LEFT_PART: u64 = 4;
/// A change of the page cache by a smaller part than this is not worth driving pages out.
const CACHE_STEP_PART: u64 = 64;
/// Memtables that grow by less than this part of their size in that time are hardly written to.
const TRICKLE_PART: u64 = 64;

/// How often memory is given back while a load goes on, at most and at least.
const GIVE_BACK_MIN: Duration = Duration::from_secs(5);
const GIVE_BACK_MAX: Duration = Duration::from_secs(320);
/// Giving back less than this part of the budget was not worth it.
const GIVEN_PART: u64 = 16;

/// Who the budget is for.
pub(super) struct Balance {
    /// Memtables may need it.
    writing: AtomicBool,
}

/// What the flushing thread has seen and done.
pub(super) struct Watch {
    writing: bool,
    since: Instant,
    /// The page cache leaves memtables their largest share.
    cache_is_small: bool,
    /// What the page cache was given last.
    cache_bytes: u64,
    /// What memtables held, and when.
    held: (u64, Instant),
    /// When memory was last given back, and how long until the next time.
    given: (Instant, Duration),
    /// What the process held when the engine's threads began.
    host_bytes: u64,
}

impl Balance {
    pub(super) fn new() -> Balance {
        Balance { writing: AtomicBool::new(false) }
    }
}

impl Engine {
    pub(super) fn new_watch(&self) -> Watch {
        let cache_bytes = self.config.cache_bytes_reading();
        let now = Instant::now();
        Watch {
            writing: false,
            cache_is_small: false,
            since: now,
            cache_bytes,
            held: (0, now),
            given: (now, GIVE_BACK_MIN),
            host_bytes: heap::resident_bytes().unwrap_or(0),
        }
    }

    fn memtables_are_small(&self) -> bool {
        self.pace.memtable_bytes() <= self.config.memtable_bytes / 16
    }

    /// Called after memtables have grown.
    pub(super) fn claim_memory(&self) {
        if !self.balance.writing.load(Ordering::Relaxed) && !self.memtables_are_small() {
            self.balance.writing.store(true, Ordering::Relaxed);
            self.wake();
        }
    }

    /// Whether `divide_memory` has something to do at once.
    pub(super) fn memory_is_claimed(&self, watch: &Watch) -> bool {
        !watch.writing && self.balance.writing.load(Ordering::Relaxed)
    }

    /// Sets the size of the page cache by who needs memory.
    pub(super) fn divide_memory(&self, watch: &mut Watch) {
        if self.memory_is_claimed(watch) {
            watch.writing = true;
        }
        if !self.memtables_are_small() || self.lock_work().merges() {
            watch.since = Instant::now();
        }
        if watch.writing && watch.since.elapsed() >= QUIET {
            watch.writing = false;
            self.end_load();
        }
        if watch.writing && watch.given.0.elapsed() >= watch.given.1 {
            self.give_back(watch);
        }
        self.size_cache(watch);
        self.share_cache();
    }

    /// Gives the memory back that a load has needed, if there was one.
    pub(super) fn end_load(&self) {
        if self.balance.writing.swap(false, Ordering::Relaxed) {
            self.pool.clear();
            heap::give_back();
        }
    }

    /// Gives back what the allocator has gathered in a load that goes on, if the budget is exceeded.
    fn give_back(&self, watch: &mut Watch) {
        let over = |bytes: u64| bytes > watch.host_bytes.saturating_add(self.config.memory_bytes);
        let mut wait = GIVE_BACK_MIN;
        if let Some(before) = heap::resident_bytes().filter(|&bytes| over(bytes)) {
            heap::give_back();
            let given = before.saturating_sub(heap::resident_bytes().unwrap_or(before));
            if given < self.config.memory_bytes / GIVEN_PART {
                wait = (watch.given.1 * 2).min(GIVE_BACK_MAX);
            }
        }
        watch.given = (Instant::now(), wait);
    }

    /// Gives the page cache what is its due, without the filters that are kept beside it, and the tables.
    fn size_cache(&self, watch: &mut Watch) {
        watch.cache_is_small = watch.writing && !self.readers_keep_the_cache(watch);
        let due = match (watch.writing, watch.cache_is_small) {
            (_, true) => self.config.cache_bytes_writing(),
            (true, false) => self.config.cache_bytes_both(),
            (false, false) => self.config.cache_bytes_reading(),
        };
        let taken = self.store.filters.taken() as u64 + self.table_bytes();
        let due = due.saturating_sub(taken).max(due / CACHE_LEFT_PART);
        if due.abs_diff(watch.cache_bytes) > due / CACHE_STEP_PART {
            self.store.caches.set_bytes(usize_of64(due));
            watch.cache_bytes = due;
        }
    }

    /// Whether memtables are read, and what they held before that is gone.
    fn readers_keep_the_cache(&self, watch: &Watch) -> bool {
        let held_before = watch.cache_is_small && self.pace.memtable_bytes() > self.config.memtable_bytes;
        self.memtables_are_read() && !held_before
    }

    /// Divides the page cache's memory between the sizes of pages.
    pub(super) fn share_cache(&self) {
        let mut live = LiveBytes::default();
        for run in self.state.load().tables.with_runs().flat_map(|t| t.levels.iter()).flat_map(|l| &l.runs) {
            if run.info.page_bytes == SMALL_PAGE_BYTES {
                live.small += run.info.data_bytes;
                live.large += run.info.meta_at() - run.info.data_bytes;
            } else {
                live.large += run.info.meta_at();
            }
        }
        // Filters that are kept beside the cache need no frames of it.
        live.large = live.large.saturating_sub(self.store.filters.taken() as u64);
        self.store.caches.share(live);
    }

    /// Freezes what is left in the memtables when hardly anything is written any more, so that the
    /// memory goes to reading.
    pub(super) fn freeze_remainder(&self, watch: &mut Watch) -> Result<()> {
        let (held, since) = watch.held;
        let holds = self.pace.memtable_bytes();
        if self.memtables_are_small() || holds.abs_diff(held) > self.config.memtable_bytes / TRICKLE_PART {
            watch.held = (holds, Instant::now());
        } else if since.elapsed() >= QUIET && !self.has_frozen() {
            watch.held = (holds, Instant::now());
            self.rotate(&mut self.lock_commit())?;
        }
        Ok(())
    }
}
