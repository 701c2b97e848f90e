//! Putting levels in the place of others: what merges have written, and runs that were moved.
//!
//! Lock order: the commit lock, then the lock of the background's work.

use super::prefix::Successor;
use crate::base::error::Result;
use crate::base::fault::fault;
use crate::base::sync::ArcSwap;
use crate::engine::background::Background;
use crate::engine::checkpoint::{Checkpointer, PendingFree};
use crate::engine::commit::Committer;
use crate::engine::state::{Level, State, TableState};
use crate::run::Run;
use std::sync::Arc;

/// Changes the levels that the state has. It cannot make the change durable. Its callers write a checkpoint.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Installer<'a> {
    pub(in crate::engine) state: &'a ArcSwap<State>,
    pub(in crate::engine) committer: &'a Committer,
    pub(in crate::engine) background: &'a Background,
    pub(in crate::engine) checkpointer: &'a Checkpointer,
}

impl Installer<'_> {
    /// Swaps contiguous levels of a table, each for another or none. The next checkpoint frees the runs in
    /// `gone`. A level that takes the place of a busy one is busy too. False if the table was dropped
    /// meanwhile, or the levels are not there any more.
    pub(in crate::engine) fn replace(
        &self,
        table: u32,
        old: &[Arc<Level>],
        new: &[Successor],
        gone: Vec<Arc<Run>>,
    ) -> Result<bool> {
        let commit = self.committer.lock();
        let state = self.state.load_full();
        let Ok(current) = state.table(table) else { return Ok(false) };
        let mut t = TableState::clone(current);
        let Some(from) = t.levels.iter().position(|l| Arc::ptr_eq(l, &old[0])) else { return Ok(false) };
        let mut levels = t.levels.to_vec();
        let same = |i: usize, o: &Arc<Level>| levels.get(from + i).is_some_and(|l| Arc::ptr_eq(o, l));
        if !old.iter().enumerate().all(|(i, o)| same(i, o)) {
            return Ok(false);
        }
        // Held until both say the same: no flush joins, and no merge takes, a level that is being read.
        let mut work = self.background.lock();
        for (old, new) in old.iter().zip(new) {
            work.turns.replace_busy(old, new.as_ref());
        }
        levels.splice(from..from + old.len(), new.iter().flatten().cloned());
        t.levels = Arc::new(levels);
        self.state.store(Arc::new(state.with_table(t)));
        drop((work, commit));
        if fault!("reuse_early") {
            gone.iter().for_each(|r| r.free_on_drop());
            return Ok(true);
        }
        self.checkpointer.free_later(gone.into_iter().map(PendingFree::whole));
        Ok(true)
    }

    /// Lets runs of a table's second oldest level that have only values, and meet none of the oldest level,
    /// join that one. Then a merge puts what it writes in their place one by one. Else it would write all
    /// that stands below the oldest level's first partition before anything goes. True if some have joined.
    /// REQUIRES: merges are held back.
    pub(in crate::engine) fn join_oldest(&self, table: u32) -> Result<bool> {
        let state = self.state.load_full();
        let Ok(t) = state.table(table) else { return Ok(false) };
        let [.., newer, oldest] = t.levels.as_slice() else { return Ok(false) };
        // Such range deletes would hide what has joined. A merge of operands ends all at once.
        if !newer.ranges.is_empty() || t.levels.iter().any(|level| level.has_operands()) {
            return Ok(false);
        }
        let runs = newer.runs.iter().cloned();
        let oldest_only = std::slice::from_ref(oldest);
        let (fresh, left): (Vec<_>, Vec<_>) = runs.partition(|run| Level::may_join_oldest(oldest_only, run));
        if fresh.is_empty() {
            return Ok(false);
        }
        // A merge that reads only some of the newer level may move such values. See `run::label`.
        if !left.is_empty() && fresh.iter().any(|run| !run.info.large.is_empty()) {
            return Ok(false);
        }
        let rest = if left.is_empty() { None } else { Some(Arc::new(newer.with_only(left)?)) };
        // See `run::label`.
        let newest = newer.newest - u64::from(rest.is_some() && newer.newest > 0);
        let joined = oldest.with_joined(&fresh)?.with_newest(newest.max(oldest.newest));
        let joined = Some(Arc::new(joined));
        self.replace(table, &[newer.clone(), oldest.clone()], &[rest, joined], Vec::new())
    }
}
