//! What is tried, and what a restored file must be.

use crate::disk::Disk;
use crate::judge::{PATH, Setting};
use crate::rng::Rng;
use crate::script::{Script, problems};
use azekura::storage::Storage;
use azekura::{Db, Error, Freshness, Options, Repository, Which};
use std::path::Path;

/// Where the repository is, and where its points are restored.
pub(super) const REPO: &str = "saved";
pub(super) const OUT: &str = "restored.azk";
/// What is restored only to be looked at.
const LOOKED_AT: &str = "looked-at.azk";

pub(super) fn setting(rng: &mut Rng) -> Setting {
    Setting {
        threads: !rng.one_in(3),
        merges: rng.one_in(2),
        delay_ms: *rng.pick(&[2, 60_000]),
        memtable_bytes: *rng.pick(&[64 << 10, 256 << 10]),
        large_value_bytes: *rng.pick(&[64, 1024]),
    }
}

/// A handle that follows the database.
pub(super) fn follower(disk: &Disk, rng: &mut Rng) -> Result<Db, Error> {
    let freshness = if rng.one_in(2) { Freshness::Log } else { Freshness::Checkpoint };
    Db::open_on(disk, PATH, Options::new().memory_bytes(8 << 20).freshness(freshness))
}

/// The first so many steps of a script.
pub(super) fn prefix(script: &Script, steps: usize) -> Script {
    Script {
        steps: script.steps[..steps].to_vec(),
        digests: script.digests.clone(),
        models: script.models.clone(),
    }
}

/// Restores a point, which must be in a state of the script. The file is removed afterwards.
pub(super) fn restores(disk: &Disk, script: &Script, point: u64, state: usize) -> Result<(), String> {
    let failed = |e: azekura::Error| format!("point {point}: {e}");
    let repository = Repository::open_on(disk, REPO).map_err(failed)?;
    repository.restore(Which::Point(point), OUT, |_| {}).map_err(failed)?;
    is_state(disk, script, state).map_err(|e| format!("point {point}: {e}"))?;
    disk.remove(Path::new(OUT)).map_err(|e| format!("removing the restored file: {e}"))
}

/// Restores something that must be in a state of the script up to one. The file is removed afterwards.
pub(super) fn restores_between(
    disk: &Disk,
    script: &Script,
    which: Which,
    high: usize,
) -> Result<(), String> {
    between(disk, script, which, 0, high).map(drop)
}

/// As `restores_between`, from a state on. Gives the state.
pub(super) fn between(
    disk: &Disk,
    script: &Script,
    which: Which,
    low: usize,
    high: usize,
) -> Result<usize, String> {
    let failed = |e: Error| format!("{which:?}: {e}");
    let removed = |e: std::io::Error| format!("removing the restored file: {e}");
    if disk.exists(Path::new(LOOKED_AT)).map_err(removed)? {
        // The power was cut while somebody looked at it.
        disk.remove(Path::new(LOOKED_AT)).map_err(removed)?;
    }
    let repository = Repository::open_on(disk, REPO).map_err(failed)?;
    repository.restore(which, LOOKED_AT, |_| {}).map_err(failed)?;
    let db = Db::open_on(disk, LOOKED_AT, Options::new().read_only(true)).map_err(failed)?;
    let state = script.state_of(&db, low, high).map_err(|e| format!("{which:?}: {e}"))?;
    let wrong = problems(&db);
    if !wrong.is_empty() {
        return Err(format!("{which:?}: state {state}, but check says {wrong:?}"));
    }
    drop(db);
    disk.remove(Path::new(LOOKED_AT)).map_err(removed)?;
    Ok(state)
}

/// Whether the restored file is a sound database in a state of the script.
pub(super) fn is_state(disk: &Disk, script: &Script, state: usize) -> Result<(), String> {
    let set = Setting { threads: false, ..Setting::QUIET };
    let db: Db = Db::open_on(disk, OUT, set.options()).map_err(|e| format!("the restored file: {e}"))?;
    script.state_of(&db, state, state)?;
    let wrong = problems(&db);
    if !wrong.is_empty() {
        return Err(format!("state {state}, but check says {wrong:?}"));
    }
    db.close().map_err(|e| format!("closing the restored file: {e}"))
}
