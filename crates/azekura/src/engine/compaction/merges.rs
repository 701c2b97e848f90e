//! Merges as the other parts ask for them. A merge is taken under the lock of the background's work, let pass
//! if the disk has room for it, and carried out.

use super::compactor::Compactor;
use super::install::Installer;
use super::output::Outlet;
use super::pick::{MergeJob, Sizes};
use super::run::{MERGING, Means};
use super::turns::Taken;
use crate::base::error::{Error, Result};
use crate::base::poison::Poison;
use crate::engine::checkpoint::Checkpoints;
use crate::engine::ids::Ids;
use crate::engine::memory::MemoryBudget;
use crate::engine::pace::Pace;
use crate::engine::relief::{Admitted, Relief};
use crate::engine::waste::{Excess, Survey};
use crate::run::Store;
use crate::values::ValueStore;

/// Picks merges and does them. The log is out of its reach, and so are the memtables but for their size.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Merges<'a> {
    pub(in crate::engine) installer: Installer<'a>,
    pub(in crate::engine) compactor: &'a Compactor,
    pub(in crate::engine) store: &'a Store,
    pub(in crate::engine) values: &'a ValueStore,
    pub(in crate::engine) ids: &'a Ids,
    pub(in crate::engine) memory: &'a MemoryBudget,
    pub(in crate::engine) pace: &'a Pace,
    pub(in crate::engine) relief: &'a Relief,
    pub(in crate::engine) poison: &'a Poison,
    pub(in crate::engine) checkpoints: Checkpoints<'a>,
    pub(in crate::engine) large_value_bytes: usize,
}

impl<'a> Merges<'a> {
    /// Does a merge. False if the table is gone, the engine is stopping, or somebody needs room sooner.
    pub(in crate::engine) fn run(&self, job: MergeJob) -> Result<bool> {
        let alive = job.alive(self.store.clock.now_if_used());
        let Some(_claim) = self.claim(&job, alive) else { return Err(Error::NoSpace { during: MERGING }) };
        self.try_run(job)
    }

    /// As `run`, whether or not it seems that there is room.
    pub(in crate::engine) fn try_run(&self, job: MergeJob) -> Result<bool> {
        let means = Means {
            installer: self.installer,
            outlet: self.outlet(),
            relief: self.relief,
            poison: self.poison,
            flush_need: &|| self.flush_need(),
            checkpoints: self.checkpoints,
        };
        self.compactor.run(job, &means)
    }

    /// Lets a merge pass if it will likely find room. `alive`: which part of what it reads is alive.
    pub(in crate::engine) fn claim(&self, job: &MergeJob, alive: f64) -> Option<Admitted<'a>> {
        self.relief.claim(job, alive, self.memory.flush_bytes(), || self.flush_need())
    }

    /// What a flush of all that is in memory may need.
    pub(in crate::engine) fn flush_need(&self) -> u64 {
        self.relief.flush_need(self.pace, &self.installer.state.load())
    }

    /// A merge that is due, if one is.
    pub(in crate::engine) fn take(&self, class: usize, idle: bool) -> Option<MergeJob> {
        let mut work = self.installer.background.lock();
        // Looked at under the lock, so that what is picked is not replaced before it is busy.
        let state = self.installer.state.load_full();
        if self.poison.check().is_err() {
            return None;
        }
        work.turns.take(&state, class, &self.sizes(), idle)
    }

    /// What a table has to do with an excess, unless others are at work on it.
    pub(in crate::engine) fn take_excess(&self, class: usize, excess: &Excess, table: u32) -> Taken {
        let mut work = self.installer.background.lock();
        let state = self.installer.state.load_full();
        work.turns.take_excess(&state, class, excess, table)
    }

    /// Does a merge that was taken. What follows a merge is a part of its turn, for it looks at the state.
    pub(in crate::engine) fn run_in_turn(&self, class: usize, job: MergeJob) -> Result<bool> {
        self.installer.background.in_turn(class, || {
            let done = self.run(job);
            self.note_levels();
            done
        })
    }

    /// Tells the pace of writers how many levels the tallest table has.
    pub(in crate::engine) fn note_levels(&self) {
        let state = self.installer.state.load();
        let most = state.tables.with_runs().map(|t| t.levels.len()).max().unwrap_or(0);
        self.pace.set_levels(most);
    }

    /// The sizes by which merges are picked.
    pub(in crate::engine) fn sizes(&self) -> Sizes {
        let (flush_bytes, few_runs) = (self.memory.flush_bytes(), self.store.room.is_tight());
        Sizes { flush_bytes, few_runs, now: self.store.clock.now_if_used() }
    }

    /// Looks at the runs of the newest state. It keeps all that the state names until it is dropped.
    pub(in crate::engine) fn survey(&self) -> Survey<'a> {
        let now = self.store.clock.now_if_used();
        Survey::of(self.installer.state, self.values, self.memory.flush_bytes(), now)
    }

    /// Where flushes and merges write runs.
    pub(in crate::engine) fn outlet(&self) -> Outlet<'a> {
        let Merges { store, values, ids, large_value_bytes, .. } = *self;
        Outlet { store, values, ids, flush_bytes: self.memory.flush_bytes(), large_value_bytes }
    }
}
