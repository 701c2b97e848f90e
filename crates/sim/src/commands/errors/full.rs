//! Full disks: a simulated one with random room, and a small real one that is mounted for this, where that is
//! possible.

use super::recover::{HANG_SECONDS, recover};
use crate::disk::{Disk, Keep};
use crate::judge::Setting;
use crate::mounted::Mounted;
use crate::report::Run;
use crate::rng::Rng;
use crate::script::{Ack, Script, problems};
use crate::watchdog::Watchdog;
use azekura::{Db, Error, Options};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// With room again everything works after this time at the latest.
const GOES_ON: Duration = Duration::from_secs(20);

/// Runs a script on a simulated disk with limited room.
pub(super) fn simulated(run: &Run, watchdog: &Watchdog, n: u64) {
    let mut rng = Rng::of(run.seed, n);
    let script = Script::new(rng.number(), 80, rng.one_in(2));
    let room = rng.pick(&[30_000, 200_000, 1 << 20, 4 << 20, 66 << 20]) + rng.below(300_000);
    let set = Setting { threads: rng.one_in(2), merges: rng.one_in(3), delay_ms: 20, ..Setting::QUIET };
    let disk = Disk::seeded(rng.number());
    disk.set_bytes_max(room);
    let reserves = !rng.one_in(3);
    if !reserves {
        disk.set_unreserving();
    }
    let name = format!("full disk {n}: room for {room} bytes, reserving {reserves}, {set:?}");
    watchdog.at(&name);
    run.outcome(&name, with_room(&script, disk, set, &mut rng));
}

fn with_room(script: &Script, disk: Disk, set: Setting, rng: &mut Rng) -> Result<(), String> {
    let mut ack = Ack::default();
    let makes_room = rng.one_in(2);
    if let Ok(db) = set.open(&disk) {
        let met = met_the_end(script, &db, &mut ack)?;
        if met && makes_room {
            disk.set_bytes_max(u64::MAX);
            goes_on(script, db, &mut ack)?;
        } else {
            closes(script, db, &disk, &mut ack)?;
        }
    }
    disk.set_bytes_max(u64::MAX);
    let cut = disk.after_cut(Keep::None, rng);
    for (how, disk) in [("a cut", cut), ("reopening", disk)] {
        recover(script, &disk, ack, set).map_err(|e| format!("{ack:?}, after {how}: {e}"))?;
    }
    Ok(())
}

/// Runs a script. True if the disk was full before its end.
fn met_the_end(script: &Script, db: &Db, ack: &mut Ack) -> Result<bool, String> {
    let Err(e) = script.run(db, 0, ack, &|_| {}) else { return Ok(false) };
    only_full(&e)?;
    // Half of a commit was never visible, and what is there can be read.
    script.state_of(db, ack.done, ack.begun).map_err(|e| format!("{ack:?}: reading on a full disk: {e}"))?;
    Ok(true)
}

/// Checks that closing makes everything durable, or says that it cannot. Then nothing is lost while the
/// handle lives.
fn closes(script: &Script, db: Db, disk: &Disk, ack: &mut Ack) -> Result<(), String> {
    if let Err(e) = db.try_close() {
        let Error::NotDurable { .. } = e else { return only_full(&e) };
        script.state_of(&db, ack.done, ack.begun).map_err(|e| format!("{ack:?}, not closed: {e}"))?;
        disk.set_bytes_max(u64::MAX);
        db.close().map_err(|e| format!("{ack:?}: closing when there is room again: {e}"))?;
    }
    ack.durable = ack.done;
    Ok(())
}

/// With room again, checks that the same handle runs the script to its end and closes. It may need the
/// background's next try.
fn goes_on(script: &Script, db: Db, ack: &mut Ack) -> Result<(), String> {
    let until = Instant::now() + GOES_ON;
    loop {
        let k = script
            .state_of(&db, ack.done, ack.begun)
            .map_err(|e| format!("{ack:?}, with room again: {e}"))?;
        match script.run(&db, k, ack, &|_| {}) {
            Ok(()) => break,
            Err(Error::NoSpace { .. }) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20))
            }
            Err(e) => {
                return Err(format!("{ack:?}: the handle does not go on when there is room again: {e}"));
            }
        }
    }
    script
        .state_of(&db, script.last(), script.last())
        .map_err(|e| format!("carried on with room again: {e}"))?;
    db.close().map_err(|e| format!("{ack:?}: closing when there is room again: {e}"))?;
    ack.durable = ack.done;
    Ok(())
}

fn only_full(e: &Error) -> Result<(), String> {
    match e {
        Error::NoSpace { .. } => Ok(()),
        e => Err(format!("a full disk gives {e}")),
    }
}

const IMAGE_BYTES: u64 = 24 << 20;

/// Runs scripts on a real file system that is nearly full.
pub(super) fn real(run: &Run) {
    let small = match Mounted::new(IMAGE_BYTES) {
        Ok(small) => small,
        Err(e) => {
            return run
                .note(format!("a really full disk: skipped, no small file system can be mounted ({e})"));
        }
    };
    let watchdog = Watchdog::start(HANG_SECONDS);
    let before = run.tried_so_far();
    let mut full = 0;
    for n in 0..12 {
        if !run.goes_on() {
            break;
        }
        let name = format!("really full disk {n}");
        watchdog.at(&name);
        let outcome = on_small(small.path(), &mut Rng::of(run.seed, n)).map(|met| full += u64::from(met));
        run.outcome(name, outcome);
    }
    run.note(format!(
        "a really full disk (ext4 of {} MiB): {} scripts, {full} met the end",
        IMAGE_BYTES >> 20,
        run.tried_so_far() - before
    ));
}

/// Fills the file system except for a little. True if the disk was full before the script's end.
fn on_small(mount: &Path, rng: &mut Rng) -> Result<bool, String> {
    let (path, ballast) = (mount.join("full.azk"), mount.join("ballast"));
    let text = |e: std::io::Error| e.to_string();
    let _none = fs::remove_file(&path);
    let script = Script::new(rng.number(), 120, true);
    let open = || {
        let delay = Duration::from_millis(20);
        Db::open(&path, Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).eventual_delay(delay))
    };
    let mut room = *rng.pick(&[100_000, 1 << 20, 3 << 20]);
    room += rng.below(500_000);
    fill(&ballast, room).map_err(|e| format!("making the disk nearly full: {e}"))?;
    let mut ack = Ack::default();
    let mut met = true;
    match open() {
        Ok(db) => {
            met = met_the_end(&script, &db, &mut ack)?;
            if met && rng.one_in(2) {
                fs::remove_file(&ballast).map_err(text)?;
                goes_on(&script, db, &mut ack)?;
            } else {
                met |= db.close().is_err();
            }
        }
        Err(e) => only_full(&e)?,
    }
    if ballast.exists() {
        fs::remove_file(&ballast).map_err(text)?;
    }
    let db = open().map_err(|e| format!("{ack:?}: does not open when there is room again: {e}"))?;
    let k = script.state_of(&db, ack.durable, ack.begun)?;
    let wrong = problems(&db);
    if !wrong.is_empty() {
        return Err(format!("state {k}, but check says {wrong:?}"));
    }
    db.close().map_err(|e| format!("closing when there is room again: {e}"))?;
    Ok(met)
}

/// Writes a file until only this much room is left.
fn fill(ballast: &Path, room: u64) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = fs::File::create(ballast)?;
    let block = vec![1; 64 << 10];
    let mut len = 0;
    while file.write_all(&block).is_ok() {
        len += block.len() as u64;
    }
    file.set_len(len.saturating_sub(room))?;
    file.sync_all()
}
