//! Power cuts: the database opens as the state after some commit, no older than the newest one
//! acknowledged as durable, with all tables at the same commit; and goes on from there.

use crate::disk::{Disk, Keep};
use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::script::{Ack, Script, options, problems};
use crate::watchdog::Watchdog;
use azekura::Db;

const PATH: &str = "crash.azk";
const KEEPS: [Keep; 5] = [Keep::None, Keep::All, Keep::Prefix, Keep::Blocks(512), Keep::Blocks(4096)];

/// Cuts random scripts at random calls.
pub fn run(limits: &Limits) -> Verdict {
    let run = Run::new(limits, "crash images");
    let watchdog = Watchdog::start(60);
    run.on_all_processors(|n| {
        watchdog.at(format!("trial {n}"));
        trial(&run, n);
    });
    run.verdict()
}

fn trial(run: &Run, n: u64) {
    let mut rng = Rng::of(run.seed, n);
    let script = Script::new(rng.number(), 40, n.is_multiple_of(2));
    let disk = Disk::new();
    let at = 1 + rng.below(300);
    disk.cut_after(at);
    let mut ack = Ack::default();
    let ran = Db::open_on(&disk, PATH, options(false, 60_000)).and_then(|db| script.run(&db, 0, &mut ack));
    if let (Err(e), false) = (&ran, disk.is_dead()) {
        return run.violation(format!("trial {n}: an error on a good disk: {e}"));
    }
    disk.stop();
    for keep in KEEPS {
        run.outcome(format!("trial {n}, cut {at}, {keep:?}"), judge(&disk.after_cut(keep, &mut rng), &script, ack));
    }
}

fn judge(disk: &Disk, script: &Script, ack: Ack) -> Result<(), String> {
    let db = Db::open_on(disk, PATH, options(false, 60_000)).map_err(|e| format!("does not open: {e}"))?;
    let k = script.state_of(&db, ack.durable, ack.begun)?;
    let wrong = problems(&db);
    if wrong.is_empty() { Ok(()) } else { Err(format!("state {k}, but check says {wrong:?}")) }
}
