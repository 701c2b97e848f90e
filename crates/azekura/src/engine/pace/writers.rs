//! What a writer passes through before it commits: whether it may, and how long it waits.

use crate::base::error::Result;
use crate::base::sync::Instant;
use crate::engine::Engine;
use crate::engine::batch::Batch;
use crate::engine::relief::Admitted;
use crate::engine::state::note_commit;
use std::time::Duration;

impl Engine {
    /// Lets a batch pass, or refuses it for want of room.
    #[inline(always)]
    pub(in crate::engine) fn admit_batch(&self, batch: &Batch) -> Result<Admitted<'_>> {
        if self.store.room.is_tight() {
            self.room_maker().admit_batch(batch)
        } else {
            Ok(self.relief.unmeasured())
        }
    }

    /// Lets a large value pass that will be stored. `frees`: what it is for makes room in the end.
    pub(in crate::engine) fn admit_value(&self, len: usize, frees: bool) -> Result<Admitted<'_>> {
        if len > 0 && self.store.room.is_tight() {
            self.room_maker().admit(len as u64, frees)
        } else {
            Ok(self.relief.unmeasured())
        }
    }

    /// Waits for room, if the file is at its limit and some can be made.
    #[inline(always)]
    pub(in crate::engine) fn pace_by_space(&self, bytes: u64) {
        if self.bound.is_reached(self.space.used_bytes()) {
            self.sweeper().wait_for_room(bytes);
        }
    }

    /// Delays a commit as the debts demand.
    pub(in crate::engine) fn pace_writer(&self, batch: &Batch) -> Result<()> {
        let bytes = batch.user_bytes;
        self.pace_by_space(bytes);
        let only_writes = note_commit();
        if self.pace.read_by(&self.state.load()).are_others(only_writes) {
            self.pace.cpu_backoff.yield_to_readers(batch.cost(), &self.committer.rate);
        }
        let limit = self.memory.flush_bytes();
        let debt = self.pace.debt(limit);
        if debt <= 0.0 {
            return Ok(());
        }
        let started = Instant::now();
        let delay = self.pace.delay(debt, bytes);
        if delay > Duration::ZERO {
            crate::base::sync::thread::sleep(delay);
        }
        while self.pace.is_memory_full(self.memory.division().full_bytes) && self.state.load().has_frozen() {
            self.flushing().wait(0)?;
        }
        let waited = started.elapsed();
        self.committer.rate.note_wait(waited);
        self.counters.note_stall(waited);
        Ok(())
    }
}
