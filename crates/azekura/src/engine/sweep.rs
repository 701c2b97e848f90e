//! A bound of the file while it is written to: about twice what is alive in it, and two memtables.
//!
//! What is **in place** is levels, and value segments to which they refer. It grows with every flush, whether
//! the records are new or replace others. Each time that it has grown by a quarter of what was **alive** at
//! the last look, a thread of its own looks at it again (`waste.rs`): the sweep. If the data grew, that is
//! all. Else the sweep merges tables and empties segments of which a third or more is dead. So it copies at
//! most twice what it frees.
//!
//! Writers may be faster than that. A writer that finds the file at its limit asks for a sweep, and waits
//! until there is room or the sweep has ended. It waits no longer than some 20 ms and what its bytes are
//! worth. So the file may be longer than the bound by what is written meanwhile. (Such a sweep looks first
//! whether the data grew. Else it begins with a flush. By that the log goes, and values to which only
//! memtables refer.)
//!
//! A sweep always ends, and then the limit is above what is taken. So no writer is stopped for good by what
//! readers still see, a damaged table or a full disk. What could not be freed counts as alive.
//!
//! Nobody waits where no thread can sweep: without threads, without merges, or if the system refuses the
//! thread. Nobody waits on a nearly full disk either. It has rules of its own (`relief.rs`).
//!
//! Runs that only readers still see, in this process or by a pin, do not count: no sweep can free them. So
//! beside a long snapshot, or a backup, the file is longer by what that keeps. (Value segments that only
//! readers of this process see do count.)

use super::bound::Bound;
use super::compaction::install::Installer;
use super::compaction::merges::Merges;
use super::compaction::pick::{CLASSES, MergeJob};
use super::compaction::turns::Taken;
use super::flush::Flush;
use super::lower_priority;
use super::waste::{Excess, Found};
use crate::base::error::Result;
use crate::base::sync::Instant;
use crate::base::sync::atomic::Ordering;
use crate::space::Room;
use std::time::Duration;

/// The sweep's merges among those of the others.
const CLASS: usize = CLASSES;
/// A merge may only find out which values are dead. The next one then moves the values beside them.
const ROUNDS_MAX: usize = 8;
/// A write waits no longer than this and the time of its bytes, at so many in a microsecond. So it is slowed,
/// never stopped.
const WAIT_MAX: Duration = Duration::from_millis(20);
const BYTES_PER_MICROSECOND: u64 = 100;
/// Waits end at a signal. This is for those that are missed.
const WAIT: Duration = Duration::from_millis(20);
const NICE: i32 = 4;

/// What has become of the tables that a sweep was to merge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Swept {
    All,
    /// Others were at work on some of the tables, and one of them has ended.
    Some,
    /// Merges are held back.
    HeldBack,
}

/// Lets go of what is dead while others write, and has writers wait for that.
pub(super) struct Sweeper<'a> {
    pub(super) flush: Flush<'a>,
    pub(super) bound: &'a Bound,
}

impl Sweeper<'_> {
    fn room(&self) -> &Room {
        &self.flush.merges.store.room
    }

    fn used_bytes(&self) -> u64 {
        self.room().space.used_bytes()
    }

    /// Waits for a sweep, but no longer than a write of so many bytes may.
    #[cold]
    pub(super) fn wait_for_room(&self, bytes: u64) {
        let most = WAIT_MAX + Duration::from_micros(bytes / BYTES_PER_MICROSECOND);
        let Installer { committer, background, .. } = self.flush.merges.installer;
        let poison = self.flush.merges.poison;
        let is_kept = || self.bound.is_kept(self.room());
        if !is_kept() || background.ask_for_sweep(&self.bound.room).is_err() {
            return;
        }
        let started = Instant::now();
        let mut work = background.lock();
        let may_wait = || poison.check().is_ok() && !background.stopping() && committer.check_open().is_ok();
        let is_at_limit = || self.bound.is_reached(self.used_bytes());
        while is_at_limit() && self.bound.is_room_wanted() && is_kept() && may_wait() {
            let Some(left) = most.checked_sub(started.elapsed()) else { break };
            background.wait(&mut work, left.min(WAIT));
        }
        drop(work);
        self.flush.counters.note_stall(started.elapsed());
    }

    /// The body of the sweep's thread.
    pub(super) fn run(&self) {
        let background = self.flush.merges.installer.background;
        lower_priority(NICE);
        while !background.stopping() {
            if self.bound.is_due() {
                self.sweep_as_due();
            }
            let mut work = background.lock();
            if !self.bound.is_due() && !background.stopping() {
                background.wait(&mut work, WAIT * 10);
            }
        }
        self.bound.room.store(false, Ordering::Relaxed);
        background.wake();
    }

    /// One sweep, for room if somebody waits for that. A writer learns elsewhere that it cannot write. What
    /// fails here is tried again when more is taken.
    pub(super) fn sweep_as_due(&self) {
        let Merges { poison, installer: Installer { background, .. }, .. } = self.flush.merges;
        let for_room = self.bound.is_room_wanted();
        self.room().space.take_least();
        let sweep = || {
            poison.check()?;
            let is_growth = for_room && self.finds_growth();
            if is_growth { Ok(true) } else { self.sweep(for_room).map(|()| false) }
        };
        match poison.catch("sweeping", sweep) {
            Ok(true) => {
                self.bound.let_go_on();
                background.wake();
            }
            done => self.end_sweep(for_room, done.is_ok()),
        }
    }

    /// Looks whether little is dead, and the file below the new limit. It is so while new keys are loaded and
    /// merges write copies. (For the flush of a sweep, which would find nothing, writers waited up to 81 ms.)
    fn finds_growth(&self) -> bool {
        let background = self.flush.merges.installer.background;
        let in_place = background.look_at_runs(|_| self.flush.merges.survey().in_place());
        let is_little = |found: Found| found.dead <= self.bound.dead_max() / 2;
        // Else the limit would hardly change.
        in_place.is_some_and(|bytes| self.bound.is_more(bytes))
            && self.look().is_some_and(|(_, found)| is_little(found))
            && !self.bound.is_reached(self.used_bytes())
    }

    /// Lets go of what is dead, if that is much.
    pub(super) fn sweep(&self, for_room: bool) -> Result<()> {
        let merges = self.flush.merges;
        let Installer { committer, background, .. } = merges.installer;
        if for_room {
            self.flush.flush_while(|| !background.stopping())?;
            self.flush.flusher.wait();
            committer.lock().clear_spares();
        }
        let (mut told, mut before, mut swept) = (Ok(()), None, false);
        for round in 0..ROUNDS_MAX {
            let Some((due, found)) = self.look() else { break };
            let dead_max = self.bound.dead_max();
            let enough = if for_room || round > 0 { dead_max / 2 } else { dead_max };
            // Else what was merged in vain would be merged again.
            let in_vain = before.as_ref() == Some(&found.excess);
            let is_done = found.dead <= enough || found.excess.is_empty() || in_vain || told.is_err();
            if is_done {
                break;
            }
            swept = true;
            match self.sweep_tables(&due, &found.excess) {
                Ok(Swept::HeldBack) => break,
                Ok(done) => before = (done == Swept::All).then_some(found.excess),
                Err(e) => told = Err(e),
            }
            if for_room {
                merges.checkpoints.write()?;
            }
        }
        if swept || for_room {
            merges.checkpoints.write()?;
        }
        told
    }

    /// Looks what is in place, what of that is alive, and which tables are to be swept. None if the look was
    /// ended early: it says nothing.
    fn look(&self) -> Option<(Vec<u32>, Found)> {
        let merges = self.flush.merges;
        let look = |go_on: &dyn Fn() -> bool| {
            let survey = merges.survey();
            let found = survey.look_beside_writers(go_on);
            (survey.due(&found.excess), found, go_on())
        };
        let (due, found, is_whole) = merges.installer.background.look_at_runs(look)?;
        if !is_whole {
            return None;
        }
        self.bound.note_look(found.in_place, found.alive);
        Some((due, found))
    }

    /// Merges what an excess says, of the tables that are due. A table that others are at work on is left to
    /// them. Then this was not all, and it returns when one of them has ended.
    fn sweep_tables(&self, due: &[u32], excess: &Excess) -> Result<Swept> {
        let merges = self.flush.merges;
        let (mut told, mut busy) = (Ok(()), false);
        for &id in due {
            let job = match merges.take_excess(CLASS, excess, id) {
                Taken::Job(job) => job,
                Taken::NotDue => continue,
                Taken::Busy => {
                    busy = true;
                    continue;
                }
            };
            let copies_max = self.bound.copies_max(self.used_bytes());
            let done = merges.run_in_turn(CLASS, MergeJob { together: true, copies_max, ..job });
            told = told.and(done.map(drop));
        }
        told.map(|()| match busy {
            false => Swept::All,
            true if merges.installer.background.wait_for_a_merge(merges.compactor) => Swept::Some,
            true => Swept::HeldBack,
        })
    }

    /// Lets those go on who wait for room. If there was none at any time, the limit is raised.
    fn end_sweep(&self, for_room: bool, done: bool) {
        let (merges, space) = (self.flush.merges, &self.room().space);
        let background = merges.installer.background;
        // Where merges are held back, the next look finds more.
        if !done && let Some(in_place) = background.look_at_runs(|_| merges.survey().in_place()) {
            self.bound.note_all_alive(in_place);
        }
        self.bound.look.store(false, Ordering::Relaxed);
        if for_room {
            self.bound.end_wait_for_room(space.take_least(), space.used_bytes());
        }
        background.wake();
    }
}
