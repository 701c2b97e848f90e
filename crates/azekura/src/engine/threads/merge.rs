//! The threads that merge, one for each class of lengths. The last one does what idle time does, too.

use super::{RETRY, lower_priority};
use crate::base::sync::Instant;
use crate::engine::Engine;
use crate::engine::compaction::pick::CLASSES;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long nothing must have been committed before idle merges begin.
const IDLE: Duration = Duration::from_millis(500);
/// And before the file is brought down to what its records need.
const TIDY: Duration = Duration::from_secs(1);
/// A merge that fails again and again (a damaged page) is tried less and less often.
const RETRY_DOUBLINGS: u32 = 8;
/// But what found no room earlier is tried at once, if there is this part more of it.
const MORE_ROOM_PART: u64 = 4;

impl Engine {
    pub(in crate::engine) fn merge_loop(&self, class: usize) {
        lower_priority(4 * class as i32 + 8);
        let mut failures = 0u32;
        let mut tidied = [0; 4];
        let mut quiet = (self.counters.commits.load(Ordering::Relaxed), Instant::now());
        while !self.background.stopping() {
            let commits = self.counters.commits.load(Ordering::Relaxed);
            if commits != quiet.0 {
                quiet = (commits, Instant::now());
            }
            let idle = class == CLASSES - 1 && quiet.1.elapsed() >= IDLE;
            let failed = match self.merges().take(class, idle) {
                Some(job) => Some(self.merges().run_in_turn(class, job).is_err()),
                None => {
                    let mut failed = None;
                    let due = idle && quiet.1.elapsed() >= TIDY && tidied != self.file_mark();
                    if due && self.poison.check().is_ok() {
                        let is_quiet = || self.counters.commits.load(Ordering::Relaxed) == quiet.0;
                        // What fails here is tried again, and is nobody's loss.
                        let done = self.tidy(class, is_quiet);
                        failed = Some(done.is_err());
                        if matches!(done, Ok(true)) && is_quiet() {
                            tidied = self.file_mark();
                        }
                    }
                    let mut work = self.background.lock();
                    if !self.background.stopping() {
                        self.background.wait(&mut work, Duration::from_millis(100));
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
                    self.background.pause_while(RETRY * (1 << failures.min(RETRY_DOUBLINGS)), is_as_full);
                }
            }
        }
    }
}
