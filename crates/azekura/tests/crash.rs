//! Power cuts and kills at any call: the database opens as the state after some commit, no older than
//! the newest one acknowledged as durable, with all tables at the same commit; and goes on from there.
//!
//! `AZEKURA_SEED` fixes the first seed, `AZEKURA_SECONDS` lengthens the random tests.

use azekura::{Db, Error};
use sim::disk::{Disk, Keep};
use sim::rng::Rng;
use sim::script::{Ack, Script, options, problems};
use sim::watchdog::Watchdog;
use std::time::{Duration, Instant};

const PATH: &str = "crash.azk";
const KEEPS: [Keep; 5] = [Keep::None, Keep::All, Keep::Prefix, Keep::Blocks(512), Keep::Blocks(4096)];
const HANG_SECONDS: u64 = 30;

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

/// How the database is opened in one trial.
#[derive(Clone, Copy)]
struct Setting {
    merges: bool,
    delay_ms: u64,
}

impl Setting {
    fn open(self, disk: &Disk) -> Result<Db, Error> {
        Db::open_on(disk, PATH, options(self.merges, self.delay_ms))
    }
}

/// Opens and runs the script from state `from` until the disk dies or the script ends. An error
/// while the disk lives is a failure.
fn go(set: Setting, disk: &Disk, script: &Script, from: usize, ack: &mut Ack) -> Result<(), String> {
    *ack = Ack { durable: ack.durable, begun: from, done: from };
    let done = set.open(disk).and_then(|db| {
        let done = script.run(&db, from, ack);
        match done {
            Ok(()) => db.close().map(|()| ack.durable = ack.done),
            e => e,
        }
    });
    match done {
        Err(e) if !disk.is_dead() => Err(format!("failed on a good disk: {e}")),
        _ => Ok(()),
    }
}

/// Opens a disk and says in which state the database is, which must lie within `ack`.
fn recovered(set: Setting, disk: &Disk, script: &Script, ack: Ack) -> Result<(Db, usize), String> {
    let db = set.open(disk).map_err(|e| format!("does not open: {e}"))?;
    let k = script.state_of(&db, ack.durable, ack.begun)?;
    let wrong = problems(&db);
    if wrong.is_empty() { Ok((db, k)) } else { Err(format!("state {k}, but check says {wrong:?}")) }
}

/// Recovers, carries on to the end, closes, reopens and compares.
fn finish(set: Setting, disk: &Disk, script: &Script, ack: Ack) -> Result<(), String> {
    let (db, k) = recovered(set, disk, script, ack)?;
    let mut ack = Ack { durable: k, ..Ack::default() };
    script.run(&db, k, &mut ack).map_err(|e| format!("from state {k} on: {e}"))?;
    db.close().map_err(|e| format!("closing: {e}"))?;
    let last = script.digests.len() - 1;
    let end = Ack { durable: last, begun: last, done: last };
    recovered(set, disk, script, end).map(drop).map_err(|e| format!("after state {k}, the script and a reopening: {e}"))
}

struct Trial<'a> {
    set: Setting,
    script: &'a Script,
    rng: Rng,
    watchdog: &'a Watchdog,
    name: String,
    failures: Vec<String>,
    opened: u64,
}

impl Trial<'_> {
    fn note(&mut self, what: String, result: Result<(), String>) {
        self.opened += 1;
        if let Err(e) = result {
            let text = format!("{}, {what}: {e}", self.name);
            eprintln!("{text}");
            self.failures.push(text);
        }
    }

    /// Runs until the cut, then tries each way in which the disk may come back. False: no cut came.
    fn cut(&mut self, n: u64, keeps: &[Keep], deep: bool) -> bool {
        self.watchdog.at(format!("{}, cut {n}", self.name));
        let disk = Disk::new();
        disk.cut_after(n);
        let mut ack = Ack::default();
        let ran = go(self.set, &disk, self.script, 0, &mut ack);
        self.note(format!("cut {n}"), ran);
        if !disk.is_dead() {
            return false;
        }
        for &keep in keeps {
            let after = disk.after_cut(keep, &mut self.rng);
            if deep {
                self.again(&format!("cut {n}, {keep:?}"), &after, ack);
            } else {
                let done = finish(self.set, &after, self.script, ack);
                self.note(format!("cut {n}, {keep:?}, {ack:?}"), done);
            }
        }
        true
    }

    /// The power goes again soon after the recovery; then the disk must come back for good.
    fn again(&mut self, name: &str, disk: &Disk, ack: Ack) {
        let set = self.set;
        let most = if self.rng.below(2) == 0 { 6 } else { 120 };
        let m = 1 + self.rng.below(most);
        let (db, k) = match recovered(set, &disk.after_kill(), self.script, ack) {
            Ok(found) => found,
            Err(e) => return self.note(name.into(), Err(e)),
        };
        drop(db);
        disk.cut_after(m);
        let mut ack = Ack { durable: k, ..Ack::default() };
        let ran = go(set, disk, self.script, k, &mut ack);
        self.note(format!("{name}, state {k}, cut again {m}"), ran);
        disk.stop();
        for keep in KEEPS {
            let after = disk.after_cut(keep, &mut self.rng);
            let done = finish(set, &after, self.script, ack);
            self.note(format!("{name}, state {k}, cut again {m}, {keep:?}, {ack:?}"), done);
        }
    }

    /// The process is killed, a second one goes on and is cut off, now by the power.
    fn kill_then_cut(&mut self, n: u64, m: u64) {
        let name = format!("kill {n}, cut {m}");
        self.watchdog.at(format!("{}, {name}", self.name));
        let disk = Disk::new();
        disk.cut_after(n);
        let mut ack = Ack::default();
        let ran = go(self.set, &disk, self.script, 0, &mut ack);
        self.note(name.clone(), ran);
        let disk = disk.after_kill();
        let k = match recovered(self.set, &disk, self.script, ack) {
            Ok((db, k)) => {
                // A sync says that what is seen is safe.
                let synced = db.sync();
                self.note(name.clone(), synced.map_err(|e| format!("syncing: {e}")));
                k
            }
            Err(e) => return self.note(name, Err(e)),
        };
        disk.cut_after(m);
        let mut ack = Ack { durable: k, ..Ack::default() };
        let ran = go(self.set, &disk, self.script, k, &mut ack);
        self.note(name.clone(), ran);
        disk.stop();
        for keep in KEEPS {
            let after = disk.after_cut(keep, &mut self.rng);
            let done = finish(self.set, &after, self.script, ack);
            self.note(format!("{name}, state {k}, {keep:?}, {ack:?}"), done);
        }
    }
}

fn report(failures: &[String], opened: u64) {
    println!("{opened} recoveries");
    assert!(failures.is_empty(), "{} failures, the first: {}", failures.len(), failures[0]);
}

fn trial<'a>(set: Setting, script: &'a Script, seed: u64, watchdog: &'a Watchdog) -> Trial<'a> {
    let name = format!("seed {seed}, {} steps", script.steps.len());
    Trial { set, script, rng: Rng(seed ^ 77), watchdog, name, failures: Vec::new(), opened: 0 }
}

#[test]
fn the_script_runs_without_a_cut() {
    let watchdog = Watchdog::start(HANG_SECONDS);
    for seed in 0..6 {
        watchdog.at(format!("seed {seed}"));
        let script = Script::new(seed, 150, seed % 2 == 1);
        let disk = Disk::new();
        let set = Setting { merges: seed % 3 == 1, delay_ms: 5 };
        finish(set, &disk, &script, Ack::default()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        println!("seed {seed}: {} states, {} calls", script.digests.len(), disk.calls());
    }
}

#[test]
fn a_cut_at_every_call_of_a_short_script() {
    let watchdog = Watchdog::start(HANG_SECONDS);
    let first = env("AZEKURA_SEED", 100);
    let until = Instant::now() + Duration::from_secs(env("AZEKURA_SECONDS", 14));
    let set = Setting { merges: false, delay_ms: 60_000 };
    let (mut failures, mut opened) = (Vec::new(), 0);
    for seed in first.. {
        let script = Script::new(seed, 16, false);
        let mut t = trial(set, &script, seed, &watchdog);
        let mut n = 1;
        while t.cut(n, &KEEPS, n % 5 == 0) && t.failures.len() < 5 {
            n += 1;
        }
        println!("seed {seed}: {n} calls, {} recoveries", t.opened);
        opened += t.opened;
        failures.append(&mut t.failures);
        if Instant::now() > until || !failures.is_empty() {
            break;
        }
    }
    report(&failures, opened);
}

#[test]
fn cuts_at_random_calls_of_long_scripts() {
    let watchdog = Watchdog::start(HANG_SECONDS);
    let first = env("AZEKURA_SEED", 1000);
    let until = Instant::now() + Duration::from_secs(env("AZEKURA_SECONDS", 14));
    let (mut failures, mut opened) = (Vec::new(), 0);
    for seed in first.. {
        let script = Script::new(seed, 60 + (seed % 4) as usize * 40, seed % 2 == 0);
        let set = Setting { merges: seed % 2 == 0, delay_ms: [2, 20, 60_000][(seed % 3) as usize] };
        let mut t = trial(set, &script, seed, &watchdog);
        for _ in 0..6 {
            let n = 1 + t.rng.below(500);
            let keep = KEEPS[t.rng.below(5) as usize];
            let deep = t.rng.below(2) == 0;
            t.cut(n, &[keep, Keep::Blocks(512)], deep);
        }
        opened += t.opened;
        failures.append(&mut t.failures);
        if Instant::now() > until || failures.len() > 3 {
            break;
        }
    }
    report(&failures, opened);
}

#[test]
fn two_cuts_close_together() {
    let watchdog = Watchdog::start(HANG_SECONDS);
    let first = env("AZEKURA_SEED", 3000);
    let until = Instant::now() + Duration::from_secs(env("AZEKURA_SECONDS", 10));
    let (mut failures, mut opened) = (Vec::new(), 0);
    for seed in first.. {
        let script = Script::new(seed, 12, false);
        let mut t = trial(Setting { merges: false, delay_ms: 60_000 }, &script, seed, &watchdog);
        for _ in 0..8 {
            let n = 1 + t.rng.below(40);
            let keep = [Keep::None, Keep::Prefix, Keep::Blocks(512), Keep::Blocks(4096)][t.rng.below(4) as usize];
            t.cut(n, &[keep], true);
        }
        opened += t.opened;
        failures.append(&mut t.failures);
        if Instant::now() > until || failures.len() > 3 {
            break;
        }
    }
    report(&failures, opened);
}

#[test]
fn a_kill_and_then_a_cut() {
    let watchdog = Watchdog::start(HANG_SECONDS);
    let first = env("AZEKURA_SEED", 5000);
    let until = Instant::now() + Duration::from_secs(env("AZEKURA_SECONDS", 12));
    let (mut failures, mut opened) = (Vec::new(), 0);
    for seed in first.. {
        let script = Script::new(seed, 50, seed % 2 == 0);
        let set = Setting { merges: seed % 2 == 0, delay_ms: [2, 60_000][(seed % 2) as usize] };
        let mut t = trial(set, &script, seed, &watchdog);
        for _ in 0..6 {
            let n = 1 + t.rng.below(200);
            let m = 1 + t.rng.below(60);
            t.kill_then_cut(n, m);
        }
        opened += t.opened;
        failures.append(&mut t.failures);
        if Instant::now() > until || failures.len() > 3 {
            break;
        }
    }
    report(&failures, opened);
}
