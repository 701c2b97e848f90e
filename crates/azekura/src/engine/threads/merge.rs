//! The threads that merge, one for each class of lengths. The last one does what idle time does, too.

use super::{RETRY, lower_priority};
use crate::base::error::Error;
use crate::base::sync::Instant;
use crate::engine::compaction::install::Installer;
use crate::engine::compaction::merges::Merges;
use crate::engine::compaction::pick::CLASSES;
use crate::engine::reclaim::Reclaimer;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long nothing must have been committed before idle merges begin.
const IDLE: Duration = Duration::from_millis(500);
/// How long nothing must have been committed before the file is brought down to what its records need.
const TIDY: Duration = Duration::from_secs(1);
/// A thread without a merge to do looks this often.
const LOOK: Duration = Duration::from_millis(100);
/// A merge that fails again and again (a damaged page) is tried less and less often.
const RETRY_DOUBLINGS: u32 = 8;
/// A merge that found no room is tried again at once if the room has grown by this part.
const MORE_ROOM_PART: u64 = 4;

/// What a thread that merges uses.
pub(in crate::engine) struct MergeThread<'a> {
    pub(in crate::engine) class: usize,
    pub(in crate::engine) reclaimer: Reclaimer<'a>,
}

/// What a thread has seen and done.
struct Seen {
    /// How many commits there were, and since when.
    commits: (u64, Instant),
    /// What the file looked like when idle time had nothing more to do, or met a damaged page.
    tidied: [u64; 4],
    /// How often in a row its work has failed.
    failures: u32,
}

impl MergeThread<'_> {
    /// From the thread's start to its end.
    pub(super) fn run(self) {
        let Merges { poison, installer: Installer { background, .. }, .. } = self.reclaimer.flush.merges;
        lower_priority(4 * self.class as i32 + 8);
        let mut seen = Seen { commits: (self.commits(), Instant::now()), tidied: [0; 4], failures: 0 };
        while !background.stopping() {
            let commits = self.commits();
            if commits != seen.commits.0 {
                seen.commits = (commits, Instant::now());
            }
            match self.work(&mut seen) {
                None => {}
                Some(false) => seen.failures = 0,
                Some(true) if poison.check().is_err() => return,
                Some(true) => self.wait_to_retry(&mut seen),
            }
        }
    }

    fn commits(&self) -> u64 {
        self.reclaimer.flush.counters.commits.load(Ordering::Relaxed)
    }

    /// Does what is due. If there was something, says whether it has failed.
    fn work(&self, seen: &mut Seen) -> Option<bool> {
        let merges = self.reclaimer.flush.merges;
        let idle = self.class == CLASSES - 1 && seen.commits.1.elapsed() >= IDLE;
        if let Some(job) = merges.take(self.class, idle) {
            return Some(merges.run_in_turn(self.class, job).is_err());
        }
        let failed = if idle { self.tidy(seen) } else { None };
        let background = merges.installer.background;
        let mut work = background.lock();
        if !background.stopping() {
            background.wait(&mut work, LOOK);
        }
        failed
    }

    /// Brings the file down to what its records need, if that is due.
    fn tidy(&self, seen: &mut Seen) -> Option<bool> {
        let is_due = seen.commits.1.elapsed() >= TIDY && seen.tidied != self.reclaimer.file_mark();
        if !is_due || self.reclaimer.flush.merges.poison.check().is_err() {
            return None;
        }
        let is_quiet = || self.commits() == seen.commits.0;
        // What fails here is tried again, and nothing is lost: at once, or after the file has changed where a
        // page is damaged.
        let done = self.reclaimer.tidy(self.class, is_quiet);
        if matches!(done, Ok(true) | Err(Error::Corrupt { .. })) && is_quiet() {
            seen.tidied = self.reclaimer.file_mark();
        }
        Some(done.is_err())
    }

    fn wait_to_retry(&self, seen: &mut Seen) {
        let Merges { store, installer: Installer { background, .. }, .. } = self.reclaimer.flush.merges;
        seen.failures += 1;
        let room = store.room.bytes();
        let is_as_full = || store.room.bytes() <= room.saturating_add(room / MORE_ROOM_PART);
        background.pause_while(RETRY * (1 << seen.failures.min(RETRY_DOUBLINGS)), is_as_full);
    }
}
