//! Giving space back: cutting the file's end, punching holes, and moving the tail down (`tail.rs`).

use super::Engine;
use super::checkpoint::Purpose;
use super::compact::SHORT_BYTES_MAX;
use super::pick::Job;
use super::state::SortedRun;
use super::tail::Allowance;
use crate::base::error::{Error, Result};
use std::sync::Arc;

/// How far a long operation has come, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes handled so far.
    pub done: u64,
    /// Bytes to be handled in all; it may grow as the operation learns more.
    pub total: u64,
}

/// Idle time moves the tail down while holes take more than this part of the file, and this much.
const LOOSE_PART: u64 = 1024;
const LOOSE_BYTES_MIN: u64 = 8 << 20;
/// Closing does so where they take more than this part, and moves at most so many memtables. Where they are most
/// of a file, less will do: a few keys that were overwritten for long leave the log's last segment before them.
const CLOSE_LOOSE_PART: u64 = 32;
const CLOSE_MEMTABLES: u64 = 4;
const CLOSE_HOLES_MIN: u64 = 64 << 10;
/// Closing merges so many small tables at most.
const CLOSE_TABLES: usize = 16;
/// Holes smaller than this are not worth a call.
const PUNCH_BYTES_MIN: u64 = 64 << 10;

impl Engine {
    /// Cuts free space off the file's end.
    pub(super) fn trim(&self) -> Result<()> {
        self.space.with_end(|end| {
            let len = self.file.len().map_err(|e| Error::io("reading the file's length", e))?;
            if end < len { self.file.set_len(end).map_err(|e| Error::io("shortening the file", e)) } else { Ok(()) }
        })
    }

    /// Rewrites and moves what is needed so that the file is no larger than its contents. `progress` is called
    /// without a lock, and may call whatever there is.
    pub(crate) fn compact(&self, mut progress: impl FnMut(Progress)) -> Result<()> {
        self.check_writable()?;
        self.settle()?;
        self.lock_commit().clear_spares();
        self.values.close_open()?;
        self.drain_values()?;
        let paused = self.pause_merges();
        self.check_open()?;
        // Only what is closed and written is moved.
        self.values.close_open()?;
        self.values.sync()?;
        let total = self.space.end();
        let mut say = |done| {
            paused.step_aside(|| progress(Progress { done, total }));
            // It may have closed the database, or waited for somebody who did.
            self.check_open()
        };
        say(0)?;
        let mut left = Allowance::new(total);
        while self.move_tail(&mut left)? {
            say(total - self.space.end().min(total))?;
        }
        self.checkpoint(Purpose::Plain)?;
        self.checkpoint(Purpose::Plain)?;
        self.trim()?;
        self.space.with_holes(|hole| {
            if hole.len < PUNCH_BYTES_MIN {
                return Ok(());
            }
            self.file.punch(hole.offset, hole.len).map_err(|e| Error::io("punching a hole", e))
        })?;
        drop(paused);
        progress(Progress { done: total, total });
        Ok(())
    }

    /// Whether enough of the file is holes that moving its tail into them is worth while.
    pub(super) fn is_loose(&self) -> bool {
        let free = self.space.free_bytes();
        free > LOOSE_BYTES_MIN && free > self.space.end() / LOOSE_PART
    }

    /// Moves the file's tail into its holes as long as these are many and `go_on` says so, and cuts it.
    /// REQUIRES: merges are held back.
    pub(super) fn tighten(&self, go_on: impl Fn() -> bool) -> Result<()> {
        if self.is_loose() && go_on() && self.values.close_at(self.space.end())? {
            self.values.sync()?;
        }
        let mut left = Allowance::new(self.space.end());
        while self.is_loose() && go_on() && !self.stopping() && self.move_tail(&mut left)? {}
        self.trim()
    }

    /// Merges what small tables have been flushed to, if it may be mostly of the same keys: a file of a few keys that
    /// were overwritten for long is small when it is closed. Some tables at most, for each is a checkpoint. Gives how
    /// many were merged. REQUIRES: merges are held back.
    pub(super) fn settle_small_tables(&self) -> Result<usize> {
        let is_due = |levels: &[Arc<SortedRun>]| {
            let Some((bottom, above)) = levels.split_last() else { return false };
            let above: u64 = above.iter().map(|l| l.kept_bytes()).sum();
            above > 0 && above * 2 >= bottom.kept_bytes() && above + bottom.kept_bytes() <= SHORT_BYTES_MAX
        };
        let state = self.state.load_full();
        let due: Vec<u32> =
            state.tables.with_runs().filter(|t| is_due(&t.levels)).map(|t| t.id).take(CLOSE_TABLES).collect();
        drop(state);
        for &table in &due {
            // One that was dropped meanwhile needs no merging.
            let Ok(inputs) = self.state.load().table(table).map(|t| t.levels.to_vec()) else { continue };
            self.run_job(Job { table, inputs, bottom: true })?;
        }
        Ok(due.len())
    }

    /// The log of a load leaves holes as large as itself when the file is closed: fills them with the tail, if
    /// they are a good part of the file. REQUIRES: merges are held back.
    pub(super) fn tighten_for_closing(&self) -> Result<()> {
        let (free, end) = (self.space.free_bytes(), self.space.end());
        let begin = free > LOOSE_BYTES_MIN && free > end / CLOSE_LOOSE_PART;
        let holes = || self.space.free_bytes() > (self.space.end() / 2).max(CLOSE_HOLES_MIN);
        let mut left = Allowance::new(CLOSE_MEMTABLES * self.config.memtable_bytes);
        while (begin && self.is_loose() || holes()) && self.move_tail(&mut left)? {}
        Ok(())
    }

    /// Rewrites runs whose values stand in mostly dead segments, so that these go.
    fn drain_values(&self) -> Result<()> {
        let sparse = self.sparse_segments();
        if sparse.is_empty() {
            return Ok(());
        }
        let ids: Vec<u32> = self.state.load().tables.with_runs().map(|t| t.id).collect();
        for table in ids {
            let _paused = self.pause_merges();
            let inputs = match self.state.load().table(table) {
                Ok(t) if t.levels.len() == 1 && sparse.iter().any(|s| t.levels[0].refers_to(s.id)) => t.levels.to_vec(),
                _ => continue,
            };
            self.run_job(Job { table, inputs, bottom: true })?;
        }
        Ok(())
    }
}
