//! Backups: whatever is cut off, each point of a repository is the database after some commit, whole, and the
//! points that were acknowledged are there; a restored file has its name when it is whole, or not at all.
//!
//! The database and its repository are on one disk, which loses power at random calls of a script with
//! backups and prunings in between (`cuts`). On disks of their own, calls fail or files are lost and damaged
//! (`damage`).

mod cuts;
mod damage;
mod restored;

use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::watchdog::Watchdog;

const HANG_SECONDS: u64 = 120;
/// Tries backups.
pub fn run(limits: &Limits) -> Verdict {
    let run = Run::new(limits, "repositories");
    let watchdog = Watchdog::start(HANG_SECONDS);
    run.on_all_processors(|n| {
        watchdog.at(format!("backups {n}"));
        let mut rng = Rng::of(run.seed, n);
        if n % 4 == 3 { damage::damaged(&run, &mut rng, n) } else { cuts::cut_off(&run, &mut rng, n) }
    });
    run.verdict()
}
