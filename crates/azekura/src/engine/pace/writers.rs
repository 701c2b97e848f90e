//! Writers and the debts: each commit is delayed as these demand.

use super::TABLES_FEW;
use crate::base::error::Result;
use crate::base::sync::Instant;
use crate::engine::Engine;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Engine {
    /// Delays a commit of `bytes` as the debts demand.
    pub(in crate::engine) fn pace_writer(&self, bytes: u64) -> Result<()> {
        self.pace_by_space(bytes);
        let is_read = self.memtables_are_read();
        if is_read {
            self.pace.cpu_backoff.yield_to_readers();
        }
        let limit = self.memory.division(is_read).freeze_bytes;
        self.pace.limit.store(limit, Ordering::Relaxed);
        let debt = self.pace.debt(limit);
        if debt <= 0.0 {
            return Ok(());
        }
        let started = Instant::now();
        let delay = self.pace.delay(debt, bytes);
        if delay > Duration::ZERO {
            crate::base::sync::thread::sleep(delay);
        }
        while self.memory_is_full() && self.has_frozen() {
            self.wait_for_flush(0)?;
        }
        self.counters.note_stall(started.elapsed());
        Ok(())
    }

    /// Whether somebody has looked into the memtables of any table lately. Many tables are looked at only
    /// once in as many calls, so that a call costs as much as with one table.
    pub(in crate::engine) fn memtables_are_read(&self) -> bool {
        let state = self.state.load();
        let calls = self.pace.calls.load(Ordering::Relaxed);
        if calls < state.tables.len() as u64 && state.tables.len() > TABLES_FEW {
            self.pace.calls.store(calls + 1, Ordering::Relaxed);
            return self.pace.is_read.load(Ordering::Relaxed);
        }
        let is_read = state.is_read();
        self.pace.is_read.store(is_read, Ordering::Relaxed);
        self.pace.calls.store(0, Ordering::Relaxed);
        is_read
    }

    /// Whether writers are to wait for the flush under way.
    fn memory_is_full(&self) -> bool {
        self.pace.frozen.load(Ordering::Relaxed) > 0
            && self.pace.live.load(Ordering::Relaxed) >= self.memory.division(false).full_bytes
    }
}
