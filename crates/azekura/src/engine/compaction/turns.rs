//! Whose turn it is to reorder runs: which levels are being merged, and who holds merges back.

use super::pick::{MergeJob, Sizes, pick, pick_idle};
use crate::engine::state::{Level, State};
use crate::engine::waste::Excess;
use std::sync::Arc;

/// What a thread does about the excess of a table.
pub(in crate::engine) enum Taken {
    Job(MergeJob),
    /// The table has nothing to do with it any more.
    NotDue,
    /// Others are at work on the table, or merges are held back.
    Busy,
}

/// The merges under way. Guarded by the lock of the background's work.
#[derive(Default)]
pub(in crate::engine) struct Turns {
    /// Levels that a merge is reading, and the class of the merge.
    pub(in crate::engine) busy: Vec<(usize, Arc<Level>)>,
    pub(super) running: usize,
    /// How many look at the runs of a state for what is dead.
    pub(super) looks: usize,
    /// How many hold merges back. One of them reorders the runs, the others wait for their turn.
    pub(super) paused: usize,
    pub(super) reordering: bool,
}

impl Turns {
    /// Whether a merge is under way.
    pub(in crate::engine) fn is_any_running(&self) -> bool {
        self.running > 0
    }

    /// Whether merges are held back.
    pub(in crate::engine) fn are_paused(&self) -> bool {
        self.paused > 0
    }

    /// Whether a merge is reading a level.
    pub(in crate::engine) fn is_busy(&self, level: &Arc<Level>) -> bool {
        self.busy.iter().any(|(_, b)| Arc::ptr_eq(b, level))
    }

    /// Whether nobody reads the oldest of a table's levels to replace it, so that others may.
    pub(in crate::engine) fn bottom_is_free(&self, levels: &[Arc<Level>]) -> bool {
        self.paused == 0 && levels.last().is_none_or(|bottom| !self.is_busy(bottom))
    }

    /// Takes on the next merge of a class, or what idle time merges, that reads no busy level. REQUIRES: the
    /// state is the newest, looked at under the lock. Else what is picked may be replaced before it is busy.
    pub(in crate::engine) fn take(
        &mut self,
        state: &State,
        class: usize,
        sizes: &Sizes,
        idle: bool,
    ) -> Option<MergeJob> {
        if self.are_paused() {
            return None;
        }
        let busy = |l: &Arc<Level>| self.is_busy(l);
        let due = state.tables.with_runs().find_map(|t| pick(t, class, sizes, busy));
        let in_idle_time = || state.tables.with_runs().find_map(|t| pick_idle(t, false, sizes.now, busy));
        let job = due.or_else(|| if idle { in_idle_time() } else { None })?;
        self.begin(class, &job);
        Some(job)
    }

    /// Takes on what a table has to do with an excess. REQUIRES: as `take`.
    pub(in crate::engine) fn take_excess(
        &mut self,
        state: &State,
        class: usize,
        excess: &Excess,
        table: u32,
    ) -> Taken {
        let Some(job) = state.table(table).ok().and_then(|t| excess.job(t)) else { return Taken::NotDue };
        if self.are_paused() || job.inputs.iter().any(|l| self.is_busy(l)) {
            return Taken::Busy;
        }
        self.begin(class, &job);
        Taken::Job(job)
    }

    /// A merge of a class begins. Nobody else picks its inputs until `end`.
    pub(in crate::engine) fn begin(&mut self, class: usize, job: &MergeJob) {
        self.busy.extend(job.inputs.iter().map(|l| (class, l.clone())));
        self.running += 1;
    }

    /// The merge of a class has ended, well or not. Its inputs may be picked again.
    pub(super) fn end(&mut self, class: usize) {
        self.running -= 1;
        self.busy.retain(|(c, _)| *c != class);
    }

    /// Another level, or none, stands in the place of one that a merge may be reading. It is as busy.
    pub(in crate::engine) fn replace_busy(&mut self, old: &Arc<Level>, new: Option<&Arc<Level>>) {
        let Some(at) = self.busy.iter().position(|(_, b)| Arc::ptr_eq(b, old)) else { return };
        match new {
            Some(new) => self.busy[at].1 = new.clone(),
            None => drop(self.busy.swap_remove(at)),
        }
    }
}
