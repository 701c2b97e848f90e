//! Calls that fail during backup, restore and pruning, and repositories of which files are lost or damaged.
//! The result is the right database or an error. What is not whole never has its final name.

use super::restored::{OUT, REPO, follower, is_state, restores, setting};
use crate::disk::{Call, Disk, Effect, Fault};
use crate::report::Run;
use crate::rng::Rng;
use crate::script::{Ack, Script};
use azekura::storage::Storage;
use azekura::{Db, Keep, Repository, Which};
use std::path::Path;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const CALLS: [Call; 6] = [Call::Read, Call::Write, Call::Sync, Call::SetLen, Call::Allocate, Call::Name];
/// Faults and damages of one database.
const TRIALS: u64 = 24;

/// Tries faults and damage.
pub(super) fn damaged(run: &Run, rng: &mut Rng, n: u64) {
    let script = Script::new(rng.number(), 8 + rng.below(40) as usize, rng.one_in(3));
    let source = Disk::seeded(rng.number());
    let failed = |e: azekura::Error| run.violation(format!("backups {n}, on a good disk: {e}"));
    let db = match setting(rng).open(&source) {
        Ok(db) => db,
        Err(e) => return failed(e),
    };
    if let Err(e) = script.run(&db, 0, &mut Ack::default(), &|_| {}) {
        return failed(e);
    }
    // Who follows copies the log, and is to have all of it.
    let by_follower = rng.one_in(2);
    let reader = match db.sync().and_then(|()| follower(&source, rng)) {
        Ok(reader) => reader,
        Err(e) => return failed(e),
    };
    let copied = if by_follower { &reader } else { &db };
    for trial in 0..TRIALS {
        if !run.goes_on() {
            break;
        }
        run.tried(1);
        let tried = if trial % 2 == 0 { fault(copied, &script, rng) } else { damage(copied, &script, rng) };
        if let Err(e) = tried {
            run.violation(format!("backups {n}, trial {trial}: {e}"));
        }
    }
    drop(reader);
    if let Err(e) = db.close() {
        failed(e);
    }
}

/// One call fails, or all from one on. Afterwards everything works, and the source has noticed nothing.
fn fault(db: &Db, script: &Script, rng: &mut Rng) -> Result<(), String> {
    let disk = Disk::seeded(rng.number());
    let errno = if rng.one_in(2) { EIO } else { ENOSPC };
    let fault = Fault {
        call: *rng.pick(&CALLS),
        nth: 1 + rng.below(20),
        forever: rng.one_in(2),
        effect: Effect::Error(errno),
    };
    disk.set_fault(Some(fault));
    let first = db.backup_on(&disk, REPO, |_| {});
    let restored = Repository::open_on(&disk, REPO).and_then(|r| r.restore(Which::Newest, OUT, |_| {}));
    let keep: Keep = "1".parse().map_err(|e| format!("{e}"))?;
    let pruned = Repository::open_on(&disk, REPO).and_then(|r| r.prune(&keep, |_| {}));
    disk.set_fault(None);
    let say =
        |what: &str| format!("{fault:?}: {what} (backup {first:?}, restore {restored:?}, prune {pruned:?})");
    if disk.exists(Path::new(OUT)).unwrap_or(false) {
        // A backup or a restore that failed may still have its name, if all but the sync of the name was
        // done.
        is_state(&disk, script, script.last()).map_err(|e| say(&e))?;
        disk.remove(Path::new(OUT)).map_err(|e| say(&e.to_string()))?;
    }
    let again = db.backup_on(&disk, REPO, |_| {}).map_err(|e| say(&format!("the next backup: {e}")))?;
    restores(&disk, script, again.point, script.last()).map_err(|e| say(&e))?;
    let report = Repository::open_on(&disk, REPO).and_then(|r| r.prune(&keep, |_| {}));
    report.map_err(|e| say(&format!("the next pruning: {e}")))?;
    let report = Repository::open_on(&disk, REPO).and_then(|r| r.verify(|_| {}));
    match report.map_err(|e| say(&e.to_string()))? {
        report if report.problems.is_empty() && report.unused == 0 && report.points == 1 => Ok(()),
        report => Err(say(&format!("after all this {report:?}"))),
    }
}

/// Some files of a repository are lost, cut or changed.
fn damage(db: &Db, script: &Script, rng: &mut Rng) -> Result<(), String> {
    let disk = Disk::seeded(rng.number());
    let failed = |e: azekura::Error| format!("on a good disk: {e}");
    let report = db.backup_on(&disk, REPO, |_| {}).map_err(failed)?;
    let mut files = vec![format!("{REPO}/repository")];
    for dir in ["chunks", "points"] {
        let dir = format!("{REPO}/{dir}");
        let names = disk.names_in(Path::new(&dir)).map_err(|e| e.to_string())?;
        files.extend(names.into_iter().map(|name| format!("{dir}/{name}")));
    }
    let mut done = Vec::new();
    for _ in 0..1 + rng.below(2) {
        let file = rng.pick(&files).clone();
        let (len, at) = (disk.bytes(&file).len() as u64, rng.number());
        match rng.below(3) {
            0 => drop(disk.remove(Path::new(&file))),
            1 => disk.cut_file(&file, at % len.max(1)),
            _ => {
                let at = at % len.max(1);
                let byte = disk.peek(&file, at, 1)[0];
                disk.patch(&file, at, &[byte ^ (1 << rng.below(8))]);
            }
        }
        done.push(file);
    }
    let restored =
        Repository::open_on(&disk, REPO).and_then(|r| r.restore(Which::Point(report.point), OUT, |_| {}));
    match (restored, disk.exists(Path::new(OUT)).unwrap_or(false)) {
        (Err(_), false) => Ok(()),
        (Err(e), true) => Err(format!("{done:?}: {e}, and the file is there")),
        (Ok(_), _) => is_state(&disk, script, script.last()).map_err(|e| format!("{done:?}: {e}")),
    }
}
