//! What the background threads share: what they wait for, and what they tell those who wait for them.
//!
//! `crew.rs` says which threads there are, `threads/` what each of them does. Lock order: the lock of the
//! work comes after the commit lock.

use super::compaction::compactor::Compactor;
use super::compaction::turns::Turns;
use super::crew::{Crew, Role};
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Condvar, Instant, Mutex, MutexGuard, Rank};
use crate::space::Room;
use std::time::Duration;

/// Waits for something that sends no signal look this often. The disk's room is looked at as often, for
/// others take it.
pub(super) const LOOK: Duration = Duration::from_millis(200);

/// Waits for merges end at a signal. This is for those that are missed.
const WAIT: Duration = Duration::from_millis(20);

/// The threads of an engine, and their work.
pub(super) struct Background {
    pub(super) crew: Crew,
    work: Mutex<Work>,
    changed: Condvar,
    stop: AtomicBool,
    /// How many hold merges back. Readers without the lock look here.
    pub(super) holding_back: AtomicU64,
    /// Whether the thread that flushes waits for something to do.
    flusher_waits: AtomicBool,
    /// The number, plus one, of a table whose chunks that thread is to merge. 0: none.
    crowded: AtomicU64,
}

/// What is under way.
#[derive(Default)]
pub(super) struct Work {
    pub(super) turns: Turns,
    flushes: Flushes,
}

/// The flushes of the background.
#[derive(Default)]
struct Flushes {
    /// How many were begun.
    begun: u64,
    /// Which of them failed last, and why, until one succeeds.
    error: Option<(u64, Error)>,
}

impl Work {
    /// An error if a flush that began after number `after` has failed.
    pub(super) fn check_flushes(&self, after: u64) -> Result<()> {
        match &self.flushes.error {
            Some((number, e)) if *number > after => Err(e.clone()),
            _ => Ok(()),
        }
    }
}

impl Background {
    pub(super) fn new(crew: Crew) -> Background {
        Background {
            crew,
            work: Mutex::ranked(Rank::Work, Work::default()),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            holding_back: AtomicU64::new(0),
            flusher_waits: AtomicBool::new(false),
            crowded: AtomicU64::new(0),
        }
    }

    /// From now on the background looks after what changes. False if the system refuses the thread.
    #[inline(always)]
    pub(super) fn look_after(&self, room: &Room) -> bool {
        self.crew.has(Role::Log) || self.begin_to_look_after(room)
    }

    #[cold]
    fn begin_to_look_after(&self, room: &Room) -> bool {
        // Nobody has looked since the file was opened.
        room.look();
        self.crew.need(Role::Log).is_ok()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock()
    }

    /// Wakes those who wait for the background, and the background itself.
    pub(super) fn wake(&self) {
        let _guard = self.lock();
        self.notify();
    }

    /// As `wake`, for a caller that has just held the lock.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits for a signal, no longer than so.
    pub(super) fn wait(&self, work: &mut MutexGuard<'_, Work>, most: Duration) {
        self.changed.wait_for(work, most);
    }

    /// As `wait`, for the thread that flushes, while nothing is frozen. Meanwhile it may be asked to merge
    /// chunks.
    pub(super) fn wait_for_flush(&self, work: &mut MutexGuard<'_, Work>) {
        self.flusher_waits.store(true, Ordering::Release);
        if self.crowded.load(Ordering::Acquire) == 0 {
            self.wait(work, LOOK);
        }
        self.flusher_waits.store(false, Ordering::Release);
    }

    /// Whether the thread that flushes has nothing to do.
    pub(super) fn is_flusher_waiting(&self) -> bool {
        self.flusher_waits.load(Ordering::Acquire)
    }

    /// Asks the thread that flushes to merge chunks of a table. Nothing may come of it: it has been asked and
    /// has not begun, it has a flush to do by then, or somebody else merges. The table's next chunk asks
    /// again.
    pub(super) fn ask_for_chunk_merge(&self, table: u32) {
        let number = u64::from(table) + 1;
        if self.crowded.compare_exchange(0, number, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.wake();
        }
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn is_asked_for_chunk_merge(&self) -> bool {
        self.crowded.load(Ordering::Acquire) != 0
    }

    /// The table of which that was asked.
    pub(super) fn take_crowded(&self) -> Option<u32> {
        let number = self.crowded.swap(0, Ordering::AcqRel);
        number.checked_sub(1).and_then(|id| u32::try_from(id).ok())
    }

    /// Whether the threads are to end.
    pub(super) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// From now on the threads end at their next step.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Waits for the threads' ends. REQUIRES: they were told to stop.
    pub(super) fn join(&self) {
        self.wake();
        for thread in self.crew.end() {
            // A thread that panicked has already said so on standard error.
            let _panicked = thread.join();
        }
    }

    /// Sleeps, unless the engine stops.
    pub(super) fn pause(&self, time: Duration) {
        self.pause_while(time, || true);
    }

    /// As `pause`, but ends when a condition that is checked now and then does not hold any more.
    pub(super) fn pause_while(&self, time: Duration, holds: impl Fn() -> bool) {
        let until = Instant::now() + time;
        let mut work = self.lock();
        while !self.stopping() && Instant::now() < until && holds() {
            self.changed.wait_until(&mut work, until.min(Instant::now() + LOOK));
        }
    }

    /// Whether somebody holds merges back.
    pub(super) fn are_merges_paused(&self) -> bool {
        self.holding_back.load(Ordering::Relaxed) > 0
    }

    /// Waits until a merge under way has ended. False if merges are held back: somebody else reorders the
    /// runs.
    pub(super) fn wait_for_a_merge(&self, compactor: &Compactor) -> bool {
        let merges = || compactor.merges.load(Ordering::Relaxed);
        let before = merges();
        let mut work = self.lock();
        while work.turns.is_any_running()
            && merges() == before
            && !work.turns.are_paused()
            && !self.stopping()
        {
            self.wait(&mut work, WAIT);
        }
        !work.turns.are_paused()
    }

    /// Asks the sweep for `what`.
    ///
    /// # Errors
    /// What the system says if it starts no thread.
    pub(super) fn ask_for_sweep(&self, what: &AtomicBool) -> Result<()> {
        // First, for a thread that the sweep starts would inherit its low priority.
        self.crew.need(Role::Flush)?;
        self.crew.need(Role::Sweep)?;
        what.store(true, Ordering::Relaxed);
        self.wake();
        Ok(())
    }

    /// A flush begins. Gives its number.
    pub(super) fn begin_flush(&self) -> u64 {
        let flushes = &mut self.lock().flushes;
        flushes.begun += 1;
        flushes.begun
    }

    /// A flush has ended.
    pub(super) fn end_flush(&self, number: u64, done: Result<()>) {
        self.lock().flushes.error = done.err().map(|e| (number, e));
        self.wake();
    }

    /// How many flushes the background has begun.
    pub(super) fn flushes_begun(&self) -> u64 {
        self.lock().flushes.begun
    }

    /// Whether the last flush has failed.
    pub(super) fn has_flush_failed(&self) -> bool {
        self.lock().flushes.error.is_some()
    }

    /// What the last flush met may be over.
    pub(super) fn forget_flush_error(&self) {
        self.lock().flushes.error = None;
    }
}
