//! What the background does (`crew.rs` says which of its threads are there): one thread flushes, one writes
//! the log when the eventual delay has passed, one writes large values, one for each class of merges, and one
//! keeps the file's bound (`sweep.rs`). Merges run at lower priorities the longer they are, so that the
//! operating system runs readers, writers and flushes first, and the short merges before the long.

use super::Engine;
use super::checkpoint::Purpose;
use super::compaction::pick::{CLASSES, MergeJob, Sizes, pick, pick_idle};
use super::crew::Role;
use super::idle::Watch;
use super::state::{Level, TableState};
use super::waste::Excess;
use crate::base::error::{Error, Result};
use crate::base::sync::{Instant, MutexGuard};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long nothing must have been committed before idle merges begin.
const IDLE: Duration = Duration::from_millis(500);
/// And before the file is brought down to what its records need.
const TIDY: Duration = Duration::from_secs(1);
/// A failed flush or merge (a full disk) is tried again after this.
const RETRY: Duration = Duration::from_millis(250);
/// A merge that fails again and again (a damaged page) is tried less and less often.
const RETRY_DOUBLINGS: u32 = 8;
/// So much that waits for the log is a bulk.
const LOG_BULK_BYTES: usize = 8 << 20;
/// A log to which nothing was written for so long, and up to twice that, rests.
const LOG_REST: Duration = Duration::from_millis(100);
/// But what found no room earlier, if there is this part more of it.
const MORE_ROOM_PART: u64 = 4;
/// The eventual delay is watched in this many steps.
const LOG_TICKS: u32 = 8;

/// How much room the disk has is looked at this often, for others take it too.
pub(super) const LOOK: Duration = Duration::from_millis(200);

/// What the background threads share.
#[derive(Default)]
pub(super) struct Work {
    /// Levels that a merge is reading, and the class of the merge.
    pub(super) busy: Vec<(usize, Arc<Level>)>,
    /// How many flushes the background has begun.
    flushes_begun: u64,
    /// Which of them failed last, and why, until one succeeds.
    flush_error: Option<(u64, Error)>,
    jobs_running: usize,
    /// Merges are held back: someone reorders the runs himself, and some may wait for their turn.
    paused: usize,
    reordering: bool,
}

impl Work {
    /// Whether a merge is under way.
    pub(super) fn merges(&self) -> bool {
        self.jobs_running > 0
    }

    /// Whether merges are held back.
    pub(super) fn is_paused(&self) -> bool {
        self.paused > 0
    }

    /// Whether nobody reads the oldest of a table's levels to replace it, so that others may.
    pub(super) fn bottom_is_free(&self, levels: &[Arc<Level>]) -> bool {
        self.paused == 0
            && levels.last().is_none_or(|bottom| !self.busy.iter().any(|(_, b)| Arc::ptr_eq(b, bottom)))
    }

    fn begin(&mut self, class: usize, job: &MergeJob) {
        self.busy.extend(job.inputs.iter().map(|l| (class, l.clone())));
        self.jobs_running += 1;
    }

    /// Another level, or none, stands in the place of one that a merge may be reading: it is as busy.
    pub(super) fn replace_busy(&mut self, old: &Arc<Level>, new: Option<&Arc<Level>>) {
        let Some(at) = self.busy.iter().position(|(_, b)| Arc::ptr_eq(b, old)) else { return };
        match new {
            Some(new) => self.busy[at].1 = new.clone(),
            None => drop(self.busy.swap_remove(at)),
        }
    }
}

impl Engine {
    /// Wakes whoever waits for the background, and the background itself.
    pub(super) fn wake(&self) {
        let _guard = self.work.lock();
        self.work_changed.notify_all();
    }

    /// Lock order: after the commit lock.
    pub(super) fn lock_work(&self) -> MutexGuard<'_, Work> {
        self.work.lock()
    }

    pub(super) fn has_frozen(&self) -> bool {
        self.state.load().has_frozen()
    }

    /// What the last flush met may be over.
    pub(super) fn forget_flush_error(&self) {
        self.work.lock().flush_error = None;
    }

    pub(super) fn flush_loop(&self) {
        let mut watch = Watch::new(self);
        loop {
            self.give_memory_back(&mut watch);
            if self.poison.check().is_ok() && !self.stopping() {
                // Sealing a buffer fails only where a commit would, which reports it.
                let _later = self.freeze_remainder(&mut watch);
            }
            {
                let mut work = self.work.lock();
                if !self.has_frozen() {
                    if self.stopping() {
                        return;
                    }
                    self.work_changed.wait_for(&mut work, Duration::from_millis(200));
                }
            }
            if !self.has_frozen() {
                self.finish_flush();
                continue;
            }
            let number = self.next_flush();
            let mut done = self.flush_frozen();
            if matches!(done, Err(Error::NoSpace { .. })) {
                // Merges give back what they have taken and not put in place.
                let _paused = self.pause_merges();
                done = self.flush_frozen();
            }
            let failed = done.is_err();
            self.note_levels();
            self.start_merges();
            self.work.lock().flush_error = done.err().map(|e| (number, e));
            self.wake();
            if failed {
                if self.poison.check().is_err() || self.stopping() {
                    return;
                }
                self.pause(RETRY);
            }
        }
    }

    /// A flush that failed after its runs were in place, for want of room for the checkpoint, is over
    /// when a checkpoint has been made.
    fn finish_flush(&self) {
        let failed = self.work.lock().flush_error.is_some();
        if failed && self.poison.check().is_ok() {
            match self.checkpoint(Purpose::Plain) {
                Ok(()) => self.forget_flush_error(),
                Err(_) => self.pause(RETRY),
            }
        }
    }

    fn next_flush(&self) -> u64 {
        let mut work = self.work.lock();
        work.flushes_begun += 1;
        work.flushes_begun
    }

    /// How many flushes the background has begun.
    pub(super) fn flushes_begun(&self) -> u64 {
        self.work.lock().flushes_begun
    }

    /// Waits until a flush has ended or a moment has passed (without a thread for it: flushes); an error if
    /// one that began after number `after` has failed.
    pub(super) fn wait_for_flush(&self, after: u64) -> Result<()> {
        self.poison.check()?;
        if !self.config.threads || self.need(Role::Flush).is_err() {
            return self.flush_frozen();
        }
        let mut work = self.work.lock();
        if let Some((_, e)) = work.flush_error.as_ref().filter(|(number, _)| *number > after) {
            return Err(e.clone());
        }
        if self.has_frozen() {
            self.work_changed.wait_for(&mut work, Duration::from_millis(20));
        }
        Ok(())
    }

    pub(super) fn log_loop(&self) {
        let tick = (self.config.eventual_delay / LOG_TICKS).max(Duration::from_millis(1));
        // Commits that were there then are late at the tick after the next.
        let late = self.config.eventual_delay.saturating_sub(tick * 2);
        let mut seen: VecDeque<(Instant, u64)> = VecDeque::new();
        let mut took = Duration::ZERO;
        let (mut looked, mut frames) = (Instant::now(), 0);
        let mut begun = Instant::now();
        let mut room_seen = begun;
        self.keep_watch(&mut room_seen);
        while !self.stopping() {
            self.pause(LOG_REST.min(tick.saturating_sub(begun.elapsed())));
            if looked.elapsed() >= LOG_REST {
                (looked, frames) = (Instant::now(), self.log.vouch_at_rest(frames));
                self.keep_watch(&mut room_seen);
            }
            if begun.elapsed() < tick {
                continue;
            }
            let (now, newest) = (Instant::now(), self.state.load().visible());
            seen.push_back((now, newest));
            let mut due = 0;
            while let Some(&(at, seq)) = seen.front()
                && at.elapsed() >= late
            {
                due = seq;
                seen.pop_front();
            }
            if due > self.log.durable_seq() && self.poison.check().is_ok() {
                // A bulk's younger commits wait: a flush that is under way may save them the log. A few go
                // along, so that there is one sync for all, and so does everything where syncs are slow.
                let all = took > tick || self.log.queued_bytes() < LOG_BULK_BYTES;
                // A failure poisons the handle, which is how writers learn of it. Where there is no room for
                // the log, a flush makes it needless; if that finds none either, both are tried again.
                let synced = self.sync_until(if all { newest } else { due });
                if matches!(synced, Err(Error::NoSpace { .. })) {
                    let _later = self.rotate(&mut self.lock_commit());
                }
                took = now.elapsed();
            }
            begun = Instant::now();
        }
    }

    pub(super) fn merge_loop(&self, class: usize) {
        lower_priority(4 * class as i32 + 8);
        let mut failures = 0u32;
        let mut tidied = [0; 4];
        let mut quiet = (self.counters.commits.load(Ordering::Relaxed), Instant::now());
        while !self.stopping() {
            let commits = self.counters.commits.load(Ordering::Relaxed);
            if commits != quiet.0 {
                quiet = (commits, Instant::now());
            }
            let idle = class == CLASSES - 1 && quiet.1.elapsed() >= IDLE;
            let failed = match self.take_job(class, idle) {
                Some(job) => {
                    let done = self.run_job(job);
                    self.end_job(class);
                    self.note_levels();
                    Some(done.is_err())
                }
                None => {
                    let mut failed = None;
                    let due = idle && quiet.1.elapsed() >= TIDY && tidied != self.file_mark();
                    if due && self.poison.check().is_ok() {
                        let is_quiet = || self.counters.commits.load(Ordering::Relaxed) == quiet.0;
                        // What fails here is tried again, and is nobody's loss.
                        failed = Some(self.tidy(class, is_quiet).is_err());
                        if failed == Some(false) && is_quiet() {
                            tidied = self.file_mark();
                        }
                    }
                    let mut work = self.work.lock();
                    if !self.stopping() {
                        self.work_changed.wait_for(&mut work, Duration::from_millis(100));
                    }
                    failed
                }
            };
            match failed {
                None => {}
                Some(false) => failures = 0,
                Some(true) if self.poison.check().is_err() => return,
                Some(true) => {
                    failures += 1;
                    let room = self.room.bytes();
                    let is_as_full = || self.room.bytes() <= room.saturating_add(room / MORE_ROOM_PART);
                    self.pause_while(RETRY * (1 << failures.min(RETRY_DOUBLINGS)), is_as_full);
                }
            }
        }
    }

    /// Sleeps, unless the engine stops.
    fn pause(&self, time: Duration) {
        self.pause_while(time, || true);
    }

    /// As `pause`, as long as something holds, which is looked at now and then.
    fn pause_while(&self, time: Duration, holds: impl Fn() -> bool) {
        let until = Instant::now() + time;
        let mut work = self.work.lock();
        while !self.stopping() && Instant::now() < until && holds() {
            self.work_changed.wait_until(&mut work, until.min(Instant::now() + LOOK));
        }
    }

    fn take_job(&self, class: usize, idle: bool) -> Option<MergeJob> {
        let mut work = self.work.lock();
        // Looked at under the lock, so that what is picked is not replaced before it is busy.
        let state = self.state.load_full();
        if work.paused > 0 || self.poison.check().is_err() {
            return None;
        }
        let sizes = self.sizes();
        let busy = |l: &Arc<Level>| work.busy.iter().any(|(_, b)| Arc::ptr_eq(b, l));
        let job = state.tables.with_runs().find_map(|t| pick(t, class, &sizes, busy)).or_else(|| {
            state.tables.with_runs().find_map(|t| if idle { pick_idle(t, false, busy) } else { None })
        })?;
        work.begin(class, &job);
        Some(job)
    }

    /// By what merges are picked here.
    fn sizes(&self) -> Sizes {
        Sizes { flush_bytes: self.flush_bytes(), few_runs: self.room.is_tight() }
    }

    /// Whether a class has a merge to do, whatever others are at; or idle time.
    pub(super) fn has_job(&self, class: usize, idle: bool) -> bool {
        let (sizes, state) = (self.sizes(), self.state.load());
        let due = |t: &Arc<TableState>| {
            pick(t, class, &sizes, |_| false).is_some() || idle && pick_idle(t, false, |_| false).is_some()
        };
        state.tables.with_runs().any(due)
    }

    /// What a table has to do with an excess, unless others are at work on it.
    pub(super) fn take_excess(&self, class: usize, excess: &Excess, table: u32) -> Option<MergeJob> {
        let mut work = self.work.lock();
        let job = excess.job(self.state.load().table(table).ok()?)?;
        if work.paused > 0 || job.inputs.iter().any(|l| work.busy.iter().any(|(_, b)| Arc::ptr_eq(b, l))) {
            return None;
        }
        work.begin(class, &job);
        Some(job)
    }

    /// The merge of a class has ended, well or not: its inputs may be picked again.
    pub(super) fn end_job(&self, class: usize) {
        let mut work = self.work.lock();
        work.jobs_running -= 1;
        work.busy.retain(|(c, _)| *c != class);
        self.work_changed.notify_all();
    }

    /// Holds back new merges and waits for those under way, and for others who do the same; ends
    /// when the guard is dropped.
    pub(super) fn pause_merges(&self) -> Paused<'_> {
        let mut work = self.work.lock();
        work.paused += 1;
        self.relief.holding_back.fetch_add(1, Ordering::Relaxed);
        while work.jobs_running > 0 || work.reordering {
            self.work_changed.wait_for(&mut work, Duration::from_millis(50));
        }
        work.reordering = true;
        Paused { engine: self, has_turn: Cell::new(true) }
    }

    pub(super) fn note_levels(&self) {
        let most = self.state.load().tables.with_runs().map(|t| t.levels.len()).max().unwrap_or(0);
        self.pace.set_levels(most);
    }
}

/// Merges are held back while this lives, and nobody else reorders the runs.
pub(super) struct Paused<'a> {
    engine: &'a Engine,
    /// Somebody else may be at it while this one has stepped aside.
    has_turn: Cell<bool>,
}

impl Paused<'_> {
    /// Calls out. Merges stay held back, but others may reorder the runs meanwhile: `f` may be the caller's
    /// code, which may want to compact or to close, or wait for a thread that does. Nothing that was known of
    /// the runs before holds afterwards.
    pub(super) fn step_aside(&self, f: impl FnOnce()) {
        self.has_turn.set(false);
        self.end_turn();
        f();
        let mut work = self.engine.work.lock();
        while work.reordering {
            self.engine.work_changed.wait_for(&mut work, Duration::from_millis(50));
        }
        work.reordering = true;
        self.has_turn.set(true);
    }

    fn end_turn(&self) {
        self.engine.work.lock().reordering = false;
        self.engine.work_changed.notify_all();
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        if self.has_turn.get() {
            self.end_turn();
        }
        self.engine.relief.holding_back.fetch_sub(1, Ordering::Relaxed);
        self.engine.work.lock().paused -= 1;
        self.engine.work_changed.notify_all();
    }
}

/// Gives this thread a nice value; without the right to, it stays as it is. (Under the checker of schedules
/// all threads are one of the system's.)
#[cfg(all(target_os = "linux", not(shuttle)))]
pub(crate) fn lower_priority(nice: i32) {
    let thread = rustix::process::Pid::from_raw(rustix::thread::gettid().as_raw_nonzero().get());
    let _kept = rustix::process::setpriority_process(thread, nice);
}

/// Where threads have no priorities of their own, or none that may be changed.
#[cfg(not(all(target_os = "linux", not(shuttle))))]
pub(crate) fn lower_priority(_nice: i32) {}
