//! A bound of the file while it is written to: about twice what is alive in it, and two memtables.
//!
//! What is **in place** (levels, and value segments to which they refer) grows with every flush, whether the
//! records are new or replace others. A thread of its own, the sweep, looks at it (`waste.rs`) each time that
//! it has grown by a quarter of what was **alive** at the last look. If the data grew, that is all. Else the
//! sweep merges tables and empties segments of which a third or more is dead. So it copies at most twice what
//! it frees.
//!
//! Writers may be faster than that. A writer that finds the file at its limit asks for a sweep, and waits
//! until there is room or the sweep has ended. It waits no longer than some 20 ms and what its bytes are
//! worth, so the file may be longer than the bound by what is written meanwhile. (Such a sweep begins with
//! a flush: the log, and values to which only memtables refer, go by that.)
//!
//! A sweep always ends, and then the limit is above what is taken. So no writer is stopped for good by what
//! readers still see, a damaged table or a full disk. What could not be freed counts as alive.
//!
//! Nobody waits where there are no threads, or none that merge, or none to be had. Nor does anybody on a
//! nearly full disk, which has rules of its own (`relief.rs`).

use super::Engine;
use super::checkpoint::Purpose;
use super::compaction::pick::{CLASSES, MergeJob};
use super::crew::Role;
use super::threads::lower_priority;
use super::waste::Excess;
use crate::base::error::Result;
use crate::base::sync::Instant;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The sweep's merges among those of the others.
const CLASS: usize = CLASSES;
/// What is in place may grow by this part of what is alive, or of a memtable, before it is looked at. That is
/// early: a load of new keys is to be known for what it is before it comes to the limit.
const GROWTH_PART: u64 = 4;
/// So much may be dead before a sweep is worth its while.
const DEAD_PART: u64 = 2;
/// The limit is below the bound by what merges and flushes under way may write before they free anything:
/// these parts of a memtable and of what is alive.
const MEMTABLE_MARGIN_PART: u64 = 2;
const ALIVE_MARGIN_PART: u64 = 2;
/// After a sweep there are these parts of a memtable, or of what is alive, to be written before the next.
const MEMTABLE_STEP_PART: u64 = 2;
const ALIVE_STEP_PART: u64 = 8;
/// A merge may only find out which values are dead, and the next one then moves those beside them.
const ROUNDS_MAX: usize = 8;
/// One write waits no longer than this, and the time that its bytes take at so many in a microsecond. It is
/// slowed, never stopped.
const WAIT_MAX: Duration = Duration::from_millis(20);
const BYTES_PER_MICROSECOND: u64 = 100;
/// Waits end at a signal. This is for those that are missed.
const WAIT: Duration = Duration::from_millis(20);
const NICE: i32 = 4;

/// What has become of the tables that a sweep was to merge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Swept {
    All,
    /// Others were at work on some, of whom one has ended.
    Some,
    /// Merges are held back.
    HeldBack,
}

/// The figures that the bound goes by.
#[derive(Default)]
pub(super) struct Bound {
    /// How much of what is in place was alive at the last look.
    alive: AtomicU64,
    /// What was in place then.
    seen: AtomicU64,
    /// Writers wait where more of the file is taken. Zero until the tables are loaded, when nobody writes.
    limit: AtomicU64,
    /// A look is wanted, or under way.
    look: AtomicBool,
    /// Somebody waits for room. Set until a sweep that was begun for that has ended.
    room: AtomicBool,
}

impl Bound {
    pub(super) fn alive(&self) -> u64 {
        self.alive.load(Ordering::Relaxed)
    }

    fn is_room_wanted(&self) -> bool {
        self.room.load(Ordering::Relaxed)
    }

    fn is_due(&self) -> bool {
        self.look.load(Ordering::Relaxed) || self.is_room_wanted()
    }
}

impl Engine {
    /// All that is found when a file is opened counts as alive.
    pub(super) fn begin_bound(&self) {
        self.note_all_alive();
    }

    fn note_all_alive(&self) {
        let in_place = self.in_place();
        self.bound.seen.store(in_place, Ordering::Relaxed);
        self.note_alive(in_place);
    }

    fn note_alive(&self, bytes: u64) {
        self.bound.alive.store(bytes, Ordering::Relaxed);
        let memtable_bytes = self.config.memtable_bytes;
        let margin = memtable_bytes / MEMTABLE_MARGIN_PART + bytes / ALIVE_MARGIN_PART;
        let limit = bytes.saturating_add(memtable_bytes).saturating_mul(2) - margin;
        self.bound.limit.store(limit, Ordering::Relaxed);
    }

    /// By how much what is in place may grow before it is looked at.
    fn growth(&self) -> u64 {
        self.bound.alive().saturating_add(self.config.memtable_bytes) / GROWTH_PART
    }

    /// How much may be dead.
    fn dead_max(&self) -> u64 {
        self.bound.alive().saturating_add(self.config.memtable_bytes) / DEAD_PART
    }

    /// Whether a thread may sweep.
    fn sweeps(&self) -> bool {
        self.config.threads && self.config.background_merges && !self.room.is_tight()
    }

    /// Called after a flush: more may be in place than is alive.
    pub(super) fn note_growth(&self) {
        if !self.sweeps() || self.bound.is_due() {
            return;
        }
        let (in_place, seen) = (self.in_place(), self.bound.seen.load(Ordering::Relaxed));
        if in_place < self.bound.alive() {
            // Dropped, or known better.
            self.note_all_alive();
        } else if in_place < seen {
            // Merged.
            self.bound.seen.store(in_place, Ordering::Relaxed);
        } else if in_place - seen > self.growth() {
            // If there is no thread, the next flush or the next writer that waits asks again.
            let _later = self.ask_for(&self.bound.look);
        }
    }

    fn ask_for(&self, what: &AtomicBool) -> Result<()> {
        // First, for a thread that the sweep starts would have its low priority.
        self.background.crew.need(Role::Flush)?;
        self.background.crew.need(Role::Sweep)?;
        what.store(true, Ordering::Relaxed);
        self.background.wake();
        Ok(())
    }

    /// Waits for room, if the file is at its limit and some can be made.
    #[inline(always)]
    pub(super) fn pace_by_space(&self, bytes: u64) {
        if self.is_at_limit() {
            self.wait_for_sweep(WAIT_MAX + Duration::from_micros(bytes / BYTES_PER_MICROSECOND));
        }
    }

    #[inline(always)]
    fn is_at_limit(&self) -> bool {
        self.space.taken_bytes() > self.bound.limit.load(Ordering::Relaxed)
    }

    #[cold]
    fn wait_for_sweep(&self, most: Duration) {
        if !self.sweeps() || self.ask_for(&self.bound.room).is_err() {
            return;
        }
        let started = Instant::now();
        let mut work = self.background.lock();
        let may_wait = || {
            self.poison.check().is_ok() && !self.background.stopping() && self.committer.check_open().is_ok()
        };
        while self.is_at_limit() && self.bound.is_room_wanted() && self.sweeps() && may_wait() {
            let Some(left) = most.checked_sub(started.elapsed()) else { break };
            self.background.wait(&mut work, left.min(WAIT));
        }
        drop(work);
        self.note_stall(started.elapsed());
    }

    /// The body of the sweep's thread.
    pub(super) fn sweep_loop(&self) {
        lower_priority(NICE);
        while !self.background.stopping() {
            if self.bound.is_due() {
                // A writer learns elsewhere that it cannot write. What fails here is tried again when more
                // is taken.
                let for_room = self.bound.is_room_wanted();
                self.space.take_least();
                let sweep = || self.poison.check().and_then(|()| self.sweep(for_room));
                let done = self.poison.catch("sweeping", sweep);
                self.end_sweep(for_room, done.is_ok());
            }
            let mut work = self.background.lock();
            if !self.bound.is_due() && !self.background.stopping() {
                self.background.wait(&mut work, WAIT * 10);
            }
        }
        self.bound.room.store(false, Ordering::Relaxed);
        self.background.wake();
    }

    /// Lets go of what is dead, if that is much.
    fn sweep(&self, for_room: bool) -> Result<()> {
        if for_room {
            self.flush_while(|| !self.background.stopping())?;
            self.flusher.wait();
            self.committer.lock().clear_spares();
        }
        let (mut told, mut before, mut swept) = (Ok(()), None, false);
        for round in 0..ROUNDS_MAX {
            let found = self.look_beside_writers(&|| !self.background.stopping());
            if self.background.stopping() {
                break;
            }
            self.bound.seen.store(self.in_place(), Ordering::Relaxed);
            self.note_alive(found.alive);
            let enough = if for_room || round > 0 { self.dead_max() / 2 } else { self.dead_max() };
            // What was merged in vain would be again.
            let in_vain = before.as_ref() == Some(&found.excess);
            let is_done = found.dead <= enough || found.excess.is_empty() || in_vain || told.is_err();
            if is_done {
                break;
            }
            swept = true;
            match self.sweep_tables(&found.excess) {
                Ok(Swept::HeldBack) => break,
                Ok(done) => before = (done == Swept::All).then_some(found.excess),
                Err(e) => told = Err(e),
            }
            if for_room {
                self.checkpoint(Purpose::Plain)?;
            }
        }
        if swept || for_room {
            self.checkpoint(Purpose::Plain)?;
        }
        told
    }

    /// How much sweeping may copy before it frees anything.
    fn copies_max(&self) -> u64 {
        let memtable_bytes = self.config.memtable_bytes;
        let most = self.bound.alive().saturating_add(memtable_bytes).saturating_mul(2);
        (most.saturating_sub(self.space.taken_bytes()) / 2).max(self.step())
    }

    /// Merges what an excess says. A table that others are at work on is left to them. Then this was not all,
    /// and it returns when one of them has ended.
    fn sweep_tables(&self, excess: &Excess) -> Result<Swept> {
        let ids: Vec<u32> = self.state.load().tables.with_runs().map(|t| t.id).collect();
        let (mut told, mut busy) = (Ok(()), false);
        for id in ids {
            if self.state.load().table(id).is_ok_and(|t| excess.job(t).is_none()) {
                continue;
            }
            let Some(job) = self.take_excess(CLASS, excess, id) else {
                busy = true;
                continue;
            };
            let done = self.run_job(MergeJob { together: true, copies_max: self.copies_max(), ..job });
            self.background.end_merge(CLASS);
            self.note_levels();
            told = told.and(done.map(drop));
        }
        told.map(|()| match busy {
            false => Swept::All,
            true if self.wait_for_a_merge() => Swept::Some,
            true => Swept::HeldBack,
        })
    }

    /// Waits until a merge under way has ended. False if merges are held back: somebody else reorders the
    /// runs.
    fn wait_for_a_merge(&self) -> bool {
        let merges = || self.counters.merges.load(Ordering::Relaxed);
        let before = merges();
        let mut work = self.background.lock();
        while work.turns.is_any_running()
            && merges() == before
            && !work.turns.are_paused()
            && !self.background.stopping()
        {
            self.background.wait(&mut work, WAIT);
        }
        !work.turns.are_paused()
    }

    /// How much is written or copied before more is done for room.
    fn step(&self) -> u64 {
        (self.config.memtable_bytes / MEMTABLE_STEP_PART).max(self.bound.alive() / ALIVE_STEP_PART)
    }

    /// Lets those go on who wait for room. If there was none at any time, the limit is raised.
    fn end_sweep(&self, for_room: bool, done: bool) {
        if !done {
            self.note_all_alive();
        }
        self.bound.look.store(false, Ordering::Relaxed);
        if for_room {
            let step = self.step();
            let limit = self.bound.limit.load(Ordering::Relaxed);
            if self.space.take_least().saturating_add(step / 4) > limit {
                self.bound
                    .limit
                    .store(self.space.taken_bytes().max(limit).saturating_add(step), Ordering::Relaxed);
            }
            self.bound.room.store(false, Ordering::Relaxed);
        }
        self.background.wake();
    }
}
