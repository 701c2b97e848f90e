//! Power cuts while a database is mirrored: at random calls of a script, or at every call of a short one.

use super::going::{Going, catch_up, followed, found};
use super::kept::{Kept, MIRROR, Way};
use super::waited::Waited;
use crate::disk::{Disk, Keep, Moment};
use crate::judge::{PATH, Setting, recovered};
use crate::report::Run;
use crate::rng::Rng;
use crate::script::{Ack, Script};
use azekura::storage::Storage;
use azekura::{Db, promote_on};
use std::cell::RefCell;
use std::path::Path;

const KEPT: [Keep; 6] =
    [Keep::None, Keep::All, Keep::Prefix, Keep::Blocks(512), Keep::Blocks(4096), Keep::Wild];
/// Images of one workload.
const MOMENTS: u64 = 12;

fn setting(rng: &mut Rng) -> Setting {
    Setting {
        threads: !rng.one_in(3),
        merges: rng.one_in(2),
        delay_ms: *rng.pick(&[2, 60_000]),
        memtable_bytes: *rng.pick(&[64 << 10, 256 << 10]),
        large_value_bytes: *rng.pick(&[64, 1024]),
    }
}

/// A workload, and where its files are.
struct Trial<'a> {
    run: &'a Run,
    script: Script,
    set: Setting,
    source: Disk,
    dest: Disk,
    /// Whether the mirror has a disk of its own.
    is_apart: bool,
    /// Whether durable commits wait for the mirror.
    is_waited: bool,
    n: u64,
}

/// Runs a script with a mirror beside it, and judges what is left after a cut.
pub(super) fn cut_off(run: &Run, rng: &mut Rng, n: u64) {
    let steps = 8 + rng.below(60) as usize;
    let Some((trial, moments)) = ran(run, rng, n, steps, None) else { return };
    for _ in 0..MOMENTS {
        if run.goes_on() {
            trial.cut(rng.pick(&moments), *rng.pick(&KEPT), rng);
        }
    }
}

/// The same with a short script, and a cut at every call: what was not synced is gone, or some of it is.
/// False if the time was over before.
pub(super) fn cut_everywhere(run: &Run, rng: &mut Rng, n: u64) -> bool {
    let steps = 3 + rng.below(10) as usize;
    let Some((trial, moments)) = ran(run, rng, n, steps, Some(1)) else { return false };
    for moment in &moments {
        for kept in [Keep::None, KEPT[1 + rng.below(KEPT.len() as u64 - 1) as usize]] {
            if !run.has_time() {
                return false;
            }
            trial.cut(moment, kept, rng);
        }
    }
    true
}

/// A script that was run with a mirror beside it, and the moments that were recorded: one of `odds` calls.
fn ran<'a>(
    run: &'a Run,
    rng: &mut Rng,
    n: u64,
    steps: usize,
    odds: Option<u64>,
) -> Option<(Trial<'a>, Vec<Moment>)> {
    let script = Script::new(rng.number(), steps, rng.one_in(3));
    let (set, source, is_apart) = (setting(rng), Disk::seeded(rng.number()), rng.one_in(2));
    let dest = if is_apart { Disk::seeded(rng.number()) } else { source.clone() };
    let is_waited = rng.one_in(3);
    let trial = Trial { run, script, set, source, dest, is_apart, is_waited, n };
    let random_odds = 1 + rng.below(if is_apart { 3 } else { 12 });
    trial.dest.record(odds.unwrap_or(random_odds), rng.number());
    let seed = rng.number();
    let ran = if is_waited { trial.go_waited(seed) } else { trial.go(seed) };
    if let Err(e) = ran {
        run.violation(format!("{}: {e}", trial.name()));
        return None;
    }
    let moments = trial.dest.moments();
    Some((trial, moments))
}

impl Trial<'_> {
    fn name(&self) -> String {
        let apart = if self.is_apart { ", apart" } else { "" };
        let waited = if self.is_waited { ", waited for" } else { "" };
        format!("mirror {} of {} steps{apart}{waited}, {:?}", self.n, self.script.steps.len(), self.set)
    }

    /// Runs the script on a good disk, to its end. The mirror comes to that, too.
    fn go(&self, seed: u64) -> Result<(), String> {
        let failed = |e: azekura::Error| format!("failed on a good disk: {e}");
        let db = self.set.open(&self.source).map_err(failed)?;
        let (source, dest, script) = (&self.source, &self.dest, &self.script);
        let (mirror, mirrored, failure) = (None, 0, None);
        let (is_apart, rng) = (self.is_apart, Rng(seed));
        let going = Going { source, dest, is_apart, script, rng, mirror, mirrored, failure };
        let going = RefCell::new(going);
        let mut ack = Ack::default();
        let ran = self.script.run(&db, 0, &mut ack, &|ack| going.borrow_mut().go(ack));
        let mut going = going.into_inner();
        if let Some(e) = going.failure.take() {
            return Err(e);
        }
        ran.map_err(failed)?;
        db.close().map_err(failed)?;
        ack.durable = ack.done;
        going.mark(&ack);
        going.catch_up()?;
        followed(dest, script, script.last(), script.last())?;
        going.mirrored = script.last() + 1;
        going.mark(&ack);
        Ok(())
    }

    /// The same, where durable commits wait for the mirror.
    fn go_waited(&self, seed: u64) -> Result<(), String> {
        let Trial { source, dest, script, set, .. } = self;
        Waited { source, dest, script, set: *set }.go(seed)
    }

    fn cut(&self, moment: &Moment, kept: Keep, rng: &mut Rng) {
        let choice = moment.disk.choice(kept, rng);
        let image = moment.disk.image(&choice);
        self.run.tried(1);
        let way = Way::whole(rng);
        let judged = if self.is_apart {
            self.judge_apart(&image, moment, way)
        } else {
            self.judge(&image, moment, way)
        };
        if let Err(e) = judged {
            let mark = moment.mark;
            self.run.violation(format!("{}, cut at call {}, {choice:?}: {e}", self.name(), mark.calls));
        }
    }

    /// The state of the mirror, if it is there.
    fn mirror_of(&self, image: &Disk, moment: &Moment) -> Result<Option<usize>, String> {
        let [_, begun, mirrored] = moment.mark.numbers;
        if image.exists(Path::new(MIRROR)).unwrap_or(false) {
            return found(image, &self.script, mirrored.saturating_sub(1), begun).map(Some);
        }
        if mirrored > 0 { Err("the mirror is not there any more".into()) } else { Ok(None) }
    }

    /// Both files are on the disk.
    fn judge(&self, image: &Disk, moment: &Moment, way: Way) -> Result<(), String> {
        let [durable, begun, _] = moment.mark.numbers;
        let mirrored = self.mirror_of(image, moment)?;
        if !image.exists(Path::new(PATH)).unwrap_or(false) {
            return Ok(());
        }
        let ack = Ack { durable, begun, done: durable, steps: 0 };
        let (db, state) = recovered(Setting { threads: false, ..self.set }, image, &self.script, ack)?;
        if mirrored.is_some_and(|mirrored| mirrored > state) {
            return Err(format!("the mirror has state {mirrored:?}, and its source {state}"));
        }
        let failed = |e: azekura::Error| format!("after recovery: {e}");
        db.flush().map_err(failed)?;
        let mut mirror = Kept::open_whole(image, image, way).map_err(failed)?;
        catch_up(mirror.mirror().map_err(failed)?)?;
        followed(image, &self.script, state, state)?;
        drop((mirror, db));
        self.promoted(image, state)
    }

    /// The mirror alone is on the disk. Its source has come to the end of the script meanwhile.
    fn judge_apart(&self, image: &Disk, moment: &Moment, way: Way) -> Result<(), String> {
        self.mirror_of(image, moment)?;
        let failed = |e: azekura::Error| format!("after a cut: {e}");
        let mut mirror = Kept::open_whole(&self.source, image, way).map_err(failed)?;
        catch_up(mirror.mirror().map_err(failed)?)?;
        let last = self.script.last();
        followed(image, &self.script, last, last)?;
        drop(mirror);
        self.promoted(image, last)
    }

    /// A mirror becomes a database.
    fn promoted(&self, image: &Disk, state: usize) -> Result<(), String> {
        let failed = |e: azekura::Error| format!("promoting: {e}");
        promote_on(image, MIRROR).map_err(failed)?;
        let options = Setting { threads: false, ..self.set }.options();
        let db = Db::open_on(image, MIRROR, options).map_err(failed)?;
        self.script.state_of(&db, state, state).map_err(|e| format!("promoted: {e}"))?;
        db.close().map_err(failed)
    }
}
