//! Whose turn it is to reorder runs: which levels are being merged, and who holds merges back.

use super::pick::{MergeJob, Sizes, pick, pick_idle};
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::engine::background::Background;
use crate::engine::state::{Level, State};
use crate::engine::waste::Excess;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// Waits end at a signal. This is for those that are missed.
const WAIT: Duration = Duration::from_millis(50);

/// What of an excess a thread has taken on.
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
    running: usize,
    /// How many look at the runs of a state for what is dead.
    looks: usize,
    /// How many hold merges back. One of them reorders the runs himself, the others wait for their turn.
    paused: usize,
    reordering: bool,
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
        let in_idle_time = || state.tables.with_runs().find_map(|t| pick_idle(t, false, busy));
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
    fn end(&mut self, class: usize) {
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

/// The turn of a merge that has begun.
pub(in crate::engine) struct Turn<'a> {
    pub(in crate::engine) background: &'a Background,
    pub(in crate::engine) class: usize,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.background.lock().turns.end(self.class);
        self.background.notify();
    }
}

/// A long look at the runs of a state. Whoever holds merges back waits until it has ended, for what is looked
/// at is not free.
pub(in crate::engine) struct Look<'a>(&'a Background);

impl<'a> Look<'a> {
    /// Nothing if somebody holds merges back.
    pub(in crate::engine) fn begin(background: &'a Background) -> Option<Look<'a>> {
        let turns = &mut background.lock().turns;
        if turns.paused > 0 {
            return None;
        }
        turns.looks += 1;
        Some(Look(background))
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let is_awaited = {
            let turns = &mut self.0.lock().turns;
            turns.looks -= 1;
            turns.are_paused()
        };
        // Looks are many and short. Nobody else waits for their end.
        if is_awaited {
            self.0.notify();
        }
    }
}

/// Merges are held back while this lives, and nobody else reorders the runs.
pub(in crate::engine) struct Paused<'a> {
    background: &'a Background,
    holding_back: &'a AtomicU64,
    /// Somebody else may be at it while this one has stepped aside.
    has_turn: Cell<bool>,
}

impl<'a> Paused<'a> {
    /// Holds back new merges, and waits for those under way, for those who look at runs, and for others who do
    /// the same. `holding_back` counts those who do, for readers without the lock.
    pub(in crate::engine) fn new(background: &'a Background, holding_back: &'a AtomicU64) -> Paused<'a> {
        let mut work = background.lock();
        work.turns.paused += 1;
        holding_back.fetch_add(1, Ordering::Relaxed);
        while work.turns.running > 0 || work.turns.looks > 0 || work.turns.reordering {
            background.wait(&mut work, WAIT);
        }
        work.turns.reordering = true;
        Paused { background, holding_back, has_turn: Cell::new(true) }
    }

    /// Calls out. Merges stay held back, but others may reorder the runs meanwhile: `f` may be the caller's
    /// code. It may want to compact or to close, or wait for a thread that does. Nothing that was known of
    /// the runs before holds afterwards.
    pub(in crate::engine) fn step_aside(&self, f: impl FnOnce()) {
        self.has_turn.set(false);
        self.end_turn();
        f();
        let mut work = self.background.lock();
        while work.turns.reordering {
            self.background.wait(&mut work, WAIT);
        }
        work.turns.reordering = true;
        self.has_turn.set(true);
    }

    fn end_turn(&self) {
        self.background.lock().turns.reordering = false;
        self.background.notify();
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        if self.has_turn.get() {
            self.end_turn();
        }
        self.holding_back.fetch_sub(1, Ordering::Relaxed);
        self.background.lock().turns.paused -= 1;
        self.background.notify();
    }
}
