//! Backups. Whatever is cut off, each point of a repository is the whole database after some commit, and
//! acknowledged points are there. A restored file has its name only when it is whole.
//!
//! `cuts`: the database and its repository are on one disk. It loses power at random calls of a script with
//! backups and prunings in between. `damage`: each is on a disk of its own. Calls fail, or files are lost and
//! damaged.

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
