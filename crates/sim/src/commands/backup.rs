//! Backups. Whatever is cut off, each point of a repository is the whole database after some commit, and
//! acknowledged points are there. A restored file has its name only when it is whole.
//!
//! `cuts`: the database and its repository are on one disk. It loses power at random calls of a script with
//! backups and prunings in between, and of a short script at every call. `damage`: each is on a disk of its
//! own. Calls fail, or files are lost and damaged.

mod cuts;
mod damage;
mod restored;

use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::watchdog::Watchdog;
use std::sync::atomic::{AtomicU64, Ordering};

const HANG_SECONDS: u64 = 120;
/// One in so many scripts is short, and cut at every call.
const EVERYWHERE_PART: u64 = 8;

/// Tries backups.
pub fn run(limits: &Limits) -> Verdict {
    let run = Run::new(limits, "repositories");
    let watchdog = Watchdog::start(HANG_SECONDS);
    let everywhere = AtomicU64::new(0);
    run.on_all_processors(|n| {
        watchdog.at(format!("backups {n}"));
        let mut rng = Rng::of(run.seed, n);
        match n {
            n if n % EVERYWHERE_PART == 1 => {
                let is_whole = cuts::cut_everywhere(&run, &mut rng, n);
                everywhere.fetch_add(u64::from(is_whole), Ordering::Relaxed);
            }
            n if n % 4 == 3 => damage::damaged(&run, &mut rng, n),
            _ => cuts::cut_off(&run, &mut rng, n),
        }
    });
    run.note(format!("{} short scripts were cut at every call", everywhere.into_inner()));
    run.verdict()
}
