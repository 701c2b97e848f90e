//! What the flushing thread does when a load pauses or ends, so that its memory goes back.
//!
//! When memtables have held little for a second and nothing was merged, the memory of flushed chunks is given
//! back. What a load leaves in the memtables, if it is more than a little, is flushed when they have hardly
//! grown for a second.
//!
//! While a load goes on, what the allocator has gathered is given back now and then, if the process holds
//! more than the budget. (That was 39 MiB of a budget of 48 after some minutes.) Where that gives little it
//! is done less and less often: the memory may be the host program's.

use super::Engine;
use super::crew::Role;
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

/// What the flushing thread has seen and done.
pub(super) struct Watch {
    /// When something was last written or merged.
    busy: Instant,
    /// What memtables held, and when.
    held: (u64, Instant),
    /// When memory was last given back, and how long until the next time.
    given: (Instant, Duration),
    /// What the process held beside the engine when this thread began.
    host_bytes: u64,
}

impl Watch {
    pub(super) fn new(engine: &Engine) -> Watch {
        let now = Instant::now();
        let own_bytes = engine.pace.memtable_bytes() + engine.store.pages.stats().bytes;
        let host_bytes = heap::resident_bytes().unwrap_or(0).saturating_sub(own_bytes);
        Watch { busy: now, held: (0, now), given: (now, GIVE_BACK_MIN), host_bytes }
    }
}

impl Engine {
    /// Called after memtables have grown.
    pub(super) fn note_load(&self) {
        if !self.memory.loading.load(Ordering::Relaxed) && !self.memory.is_small(self.pace.memtable_bytes()) {
            self.memory.loading.store(true, Ordering::Relaxed);
            let _later = self.background.crew.need(Role::Flush);
        }
    }

    /// Gives memory back if it is time to.
    pub(super) fn give_memory_back(&self, watch: &mut Watch) {
        if !self.memory.is_small(self.pace.memtable_bytes()) || self.background.lock().turns.is_any_running()
        {
            watch.busy = Instant::now();
        }
        if watch.busy.elapsed() >= QUIET {
            self.memory.end_load();
        }
        if self.memory.loading.load(Ordering::Relaxed) && watch.given.0.elapsed() >= watch.given.1 {
            self.give_back(watch);
        }
    }

    /// Gives back what the allocator has gathered in a load that goes on, if the budget is exceeded.
    fn give_back(&self, watch: &mut Watch) {
        let over = |bytes: u64| bytes > watch.host_bytes.saturating_add(self.config.memory_bytes);
        let mut wait = GIVE_BACK_MIN;
        if let Some(before) = heap::resident_bytes().filter(|&bytes| over(bytes)) {
            heap::give_back();
            let given = before.saturating_sub(heap::resident_bytes().unwrap_or(before));
            if given < self.memory.division(false).given_bytes_min {
                wait = (watch.given.1 * 2).min(GIVE_BACK_MAX);
            }
        }
        watch.given = (Instant::now(), wait);
    }

    /// Freezes what is left in the memtables when hardly anything is written any more, so that the
    /// memory goes to reading.
    pub(super) fn freeze_remainder(&self, watch: &mut Watch) -> Result<()> {
        let (held, since) = watch.held;
        let holds = self.pace.memtable_bytes();
        if self.memory.is_small(self.pace.memtable_bytes())
            || holds.abs_diff(held) > self.memory.division(false).trickle_bytes
        {
            watch.held = (holds, Instant::now());
        } else if since.elapsed() >= QUIET && !self.has_frozen() {
            watch.held = (holds, Instant::now());
            self.rotate(&mut self.committer.lock())?;
        }
        Ok(())
    }
}
