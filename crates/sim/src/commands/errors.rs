//! Calls that fail: no panic, no hang, no false acknowledgement, no wrong value. When the fault is over the
//! file is opened again, also after a power cut, and nothing acknowledged is missing.
//!
//! A trial is one script, one kind of call, and one effect (EIO, ENOSPC, a short call, an interruption), once
//! or for good, at the `n`th call of that kind. `n` rises until the script ends before it. Half of the trials
//! run scripts without threads, so that `n` means the same call each time. The other half has the engine's
//! threads. `full` tries full disks.

mod full;
mod recover;

use crate::disk::{Call, Disk, Effect, Fault, Keep};
use crate::judge::Setting;
use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::script::{Ack, Script, digest_of};
use crate::watchdog::Watchdog;
use azekura::{Db, Error};
use recover::{HANG_SECONDS, recover};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

const CALLS: [Call; 7] =
    [Call::Read, Call::Write, Call::Sync, Call::SetLen, Call::Allocate, Call::Punch, Call::Name];

/// Makes calls fail.
pub fn run(limits: &Limits) -> Verdict {
    let run = Run::new(limits, "calls failed");
    let watchdog = Watchdog::start(HANG_SECONDS);
    full::real(&run);
    let kinds = kinds();
    run.on_all_processors(|n| {
        // In strides, so that a short run has calls of every kind.
        let kind = kinds[usize::try_from(n * 13).unwrap_or(0) % kinds.len()];
        if n.is_multiple_of(16) {
            full::simulated(&run, &watchdog, n);
        }
        every_call(&run, &watchdog, kind, n);
    });
    run.verdict()
}

/// Every kind of call with every effect that it can have, once and for good.
fn kinds() -> Vec<Fault> {
    let mut all = Vec::new();
    for call in CALLS {
        for effect in [Effect::Error(EIO), Effect::Error(ENOSPC), Effect::Short, Effect::Interrupted] {
            let possible = match effect {
                Effect::Short => matches!(call, Call::Read | Call::Write),
                Effect::Interrupted => call != Call::Name,
                Effect::Error(_) => true,
            };
            if possible {
                all.extend([false, true].map(|forever| Fault { call, nth: 1, forever, effect }));
            }
        }
    }
    all
}

/// Runs one script, with the fault at each call in turn.
fn every_call(run: &Run, watchdog: &Watchdog, kind: Fault, n: u64) {
    let mut rng = Rng::of(run.seed, n);
    let script = Script::new(rng.number(), 4 + rng.below(40) as usize, rng.one_in(2));
    let threads = rng.one_in(2);
    let set = Setting { threads, merges: rng.one_in(3), delay_ms: 20, ..Setting::QUIET };
    for nth in 1.. {
        let fault = Fault { nth, ..kind };
        let name = format!("script {n}, {fault:?}, {set:?}");
        watchdog.at(&name);
        if !run.goes_on() {
            return;
        }
        match trial(&script, fault, set, rng.number()) {
            Ok(true) => run.tried(1),
            Ok(false) => return,
            Err(e) => {
                run.tried(1);
                return run.violation(format!("{name}: {e}"));
            }
        }
    }
}

/// Runs the script with a fault. Then runs it without, from whatever state it left. True: the fault came.
fn trial(script: &Script, fault: Fault, set: Setting, seed: u64) -> Result<bool, String> {
    let disk = Disk::seeded(seed);
    let mut rng = Rng(seed);
    if rng.one_in(3) {
        disk.set_mapping();
    }
    let mut ack = Ack::default();
    // Half of the trials begin with an existing database.
    if rng.one_in(2) {
        set.open(&disk).and_then(Db::close).map_err(|e| format!("a good disk: {e}"))?;
    }
    disk.set_fault(Some(fault));
    let failed = with_fault(script, &disk, set, &mut ack)?;
    let came = disk.faults_hit() > 0;
    if let Some(e) = failed
        && !(came && matches!(fault.effect, Effect::Error(_)))
    {
        return Err(format!("{ack:?}: an error that is no fault's: {e}"));
    }
    disk.set_fault(None);
    let cut = disk.after_cut(Keep::None, &mut rng);
    let torn = disk.after_cut(Keep::Wild, &mut rng);
    for (name, disk) in [("a cut", cut), ("a torn cut", torn), ("reopening", disk)] {
        recover(script, &disk, ack, set).map_err(|e| format!("after {name}, {ack:?}: {e}"))?;
    }
    Ok(came)
}

/// Runs the script until something fails, and checks what the handle does then.
fn with_fault(script: &Script, disk: &Disk, set: Setting, ack: &mut Ack) -> Result<Option<Error>, String> {
    let db = match set.open(disk) {
        Ok(db) => db,
        Err(e) => return Ok(Some(e)),
    };
    let ran = script.run(&db, 0, ack, &|_| {});
    if ran.is_err() {
        readable(script, &db, *ack)?;
        after_failure(&db, disk, ack)?;
    }
    match (ran, db.close()) {
        (Ok(()), Ok(())) => {
            ack.durable = ack.done;
            Ok(None)
        }
        (Err(e), _) | (Ok(()), Err(e)) => Ok(Some(e)),
    }
}

/// Checks that what can still be read is right: the state that was reached, or the one that was begun.
fn readable(script: &Script, db: &Db, ack: Ack) -> Result<(), String> {
    match digest_of(db) {
        Ok(found) if script.digests[ack.done..=ack.begun].contains(&found) => Ok(()),
        Ok(_) => Err(format!("{ack:?}: what is read after the failure is no state it could be")),
        // An error is an answer too. But bytes that could not be read are not corrupt.
        Err(e @ Error::Corrupt { .. }) => Err(format!("a failed call is taken for damage: {e}")),
        Err(_) => Ok(()),
    }
}

/// Checks that a poisoned handle stays poisoned, and that a failed sync poisons. A handle that is not
/// poisoned goes on.
fn after_failure(db: &Db, disk: &Disk, ack: &Ack) -> Result<(), String> {
    let synced = disk.syncs_failed() == 0;
    let Ok(table) = db.open_table("ordered") else { return Ok(()) };
    let first = table.put(b"after", b"a failure");
    let second = table.put(b"after", b"a failure");
    if !synced && (first.is_ok() || second.is_ok()) {
        return Err(format!("{ack:?}: a commit is acknowledged as durable after a sync has failed"));
    }
    match (&first, &second) {
        (Err(Error::Poisoned { .. }), Ok(())) => Err("a poisoned handle acknowledged a commit".into()),
        _ => {
            // Whether or not this was committed, the script must not find it.
            let _removed = table.remove(b"after");
            Ok(())
        }
    }
}
