//! What the flushing thread does when a load pauses or ends, so that its memory goes back.
//!
//! When memtables have held little for a second and nothing was merged, the memory of flushed chunks is given
//! back. A load may leave more than a little in the memtables. That is flushed when they have hardly grown
//! for a second.
//!
//! If the process holds more than the budget while a load goes on, what the allocator has gathered is given
//! back now and then. Where that gives little it is done less and less often: the memory may be the host
//! program's.

use super::commit::Committer;
use super::freeze::Freezer;
use crate::base::error::Result;
use crate::base::heap;
use crate::base::sync::Instant;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Nothing much must have happened for so long.
const QUIET: Duration = Duration::from_secs(1);

/// While a load goes on, memory is given back no more often than after the first, and no less than after the
/// second.
const GIVE_BACK_MIN: Duration = Duration::from_secs(5);
const GIVE_BACK_MAX: Duration = Duration::from_secs(320);

/// Gives memory back. What the flushing thread has seen and done for that.
pub(super) struct MemoryWatch<'a> {
    freezer: Freezer<'a>,
    committer: &'a Committer,
    /// When something was last written or merged.
    busy: Instant,
    /// What memtables held, and when.
    held: (u64, Instant),
    /// When memory was last given back, and how long until the next time.
    given: (Instant, Duration),
    /// What the process held beside the engine when this thread began.
    host_bytes: u64,
}

impl<'a> MemoryWatch<'a> {
    /// `pages_bytes`: what is in memory of runs' pages.
    pub(super) fn new(freezer: Freezer<'a>, committer: &'a Committer, pages_bytes: u64) -> MemoryWatch<'a> {
        let now = Instant::now();
        let own_bytes = freezer.pace.memtable_bytes() + pages_bytes;
        let host_bytes = heap::resident_bytes().unwrap_or(0).saturating_sub(own_bytes);
        MemoryWatch { freezer, committer, busy: now, held: (0, now), given: (now, GIVE_BACK_MIN), host_bytes }
    }

    fn memtables_are_small(&self) -> bool {
        self.freezer.memory.is_small(self.freezer.pace.memtable_bytes())
    }

    /// Gives memory back if it is time to.
    pub(super) fn give_memory_back(&mut self) {
        let Freezer { memory, background, .. } = self.freezer;
        if !self.memtables_are_small() || background.lock().turns.is_any_running() {
            self.busy = Instant::now();
        }
        if self.busy.elapsed() >= QUIET && memory.loading.load(Ordering::Relaxed) {
            // Given back when the lock is not held.
            let spare = std::mem::take(&mut self.committer.lock().spare);
            drop(spare);
            memory.end_load();
        }
        if memory.loading.load(Ordering::Relaxed) && self.given.0.elapsed() >= self.given.1 {
            self.give_back();
        }
    }

    /// Gives back what the allocator has gathered in a load that goes on, if the budget is exceeded.
    fn give_back(&mut self) {
        let memory = self.freezer.memory;
        let over = |bytes: u64| bytes > self.host_bytes.saturating_add(memory.budget_bytes());
        let mut wait = GIVE_BACK_MIN;
        if let Some(before) = heap::resident_bytes().filter(|&bytes| over(bytes)) {
            heap::give_back();
            let given = before.saturating_sub(heap::resident_bytes().unwrap_or(before));
            if given < memory.division().given_bytes_min {
                wait = (self.given.1 * 2).min(GIVE_BACK_MAX);
            }
        }
        self.given = (Instant::now(), wait);
    }

    /// Freezes what is left in the memtables when hardly anything is written any more, so that the
    /// memory goes to reading.
    pub(super) fn freeze_remainder(&mut self) -> Result<()> {
        let Freezer { memory, pace, .. } = self.freezer;
        let (held, since) = self.held;
        let holds = pace.memtable_bytes();
        if self.memtables_are_small() || holds.abs_diff(held) > memory.division().trickle_bytes {
            self.held = (holds, Instant::now());
        } else if since.elapsed() >= QUIET && !self.freezer.has_frozen() {
            self.held = (holds, Instant::now());
            self.freezer.rotate(&mut self.committer.lock())?;
        }
        Ok(())
    }
}
