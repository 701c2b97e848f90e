//! Backups: whatever is cut off, each point of a repository is the database after some commit, whole, and the
//! points that were acknowledged are there; a restored file has its name when it is whole, or not at all.
//!
//! The database and its repository are on one disk, which loses power at random calls of a script with
//! backups and prunings in between (`cuts`). On disks of their own, calls fail or files are lost and damaged
//! (`damage`).

mod cuts;
mod damage;

use crate::disk::Disk;
use crate::judge::Setting;
use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::script::{Script, problems};
use crate::watchdog::Watchdog;
use azekura::storage::Storage;
use azekura::{Db, Repository, Which};
use std::path::Path;

const HANG_SECONDS: u64 = 120;
/// Where the repository is, and where its points are restored.
const REPO: &str = "saved";
const OUT: &str = "restored.azk";

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

fn setting(rng: &mut Rng) -> Setting {
    Setting {
        threads: !rng.one_in(3),
        merges: rng.one_in(2),
        delay_ms: *rng.pick(&[2, 60_000]),
        memtable_bytes: *rng.pick(&[64 << 10, 256 << 10]),
        large_value_bytes: *rng.pick(&[64, 1024]),
    }
}

/// The first so many steps of a script.
fn prefix(script: &Script, steps: usize) -> Script {
    Script {
        steps: script.steps[..steps].to_vec(),
        digests: script.digests.clone(),
        models: script.models.clone(),
    }
}

/// Restores a point, which must be in a state of the script; the file is gone afterwards.
fn restores(disk: &Disk, script: &Script, point: u64, state: usize) -> Result<(), String> {
    let failed = |e: azekura::Error| format!("point {point}: {e}");
    let repository = Repository::open_on(disk, REPO).map_err(failed)?;
    repository.restore(Which::Point(point), OUT, |_| {}).map_err(failed)?;
    is_state(disk, script, state).map_err(|e| format!("point {point}: {e}"))?;
    disk.remove(Path::new(OUT)).map_err(|e| format!("removing the restored file: {e}"))
}

/// Whether the restored file is a sound database in a state of the script.
fn is_state(disk: &Disk, script: &Script, state: usize) -> Result<(), String> {
    let set = Setting { threads: false, ..Setting::QUIET };
    let db: Db = Db::open_on(disk, OUT, set.options()).map_err(|e| format!("the restored file: {e}"))?;
    script.state_of(&db, state, state)?;
    let wrong = problems(&db);
    if !wrong.is_empty() {
        return Err(format!("state {state}, but check says {wrong:?}"));
    }
    db.close().map_err(|e| format!("closing the restored file: {e}"))
}
