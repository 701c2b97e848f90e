//! A mirror beside a script.

use crate::disk::Disk;
use crate::judge::{PATH, Setting};
use crate::rng::Rng;
use crate::script::{Ack, Script, problems};
use azekura::{CopyOptions, Db, Error, Freshness, Mirror};
use std::sync::Arc;

/// The mirror's name.
pub(super) const MIRROR: &str = "mirror.azk";
/// A mirror is level after so many steps if nobody writes.
const STEPS_MAX: usize = 2000;

/// Opens a mirror of the database on `source`.
pub(super) fn open(source: &Disk, dest: &Disk) -> Result<Mirror, Error> {
    let options = CopyOptions::default();
    Mirror::open_on(Arc::new(source.clone()), PATH, Arc::new(dest.clone()), MIRROR, options)
}

/// Goes on until the mirror has all that is durable.
pub(super) fn catch_up(mirror: &mut Mirror) -> Result<(), String> {
    for _ in 0..STEPS_MAX {
        if !mirror.step().map_err(|e| format!("a step of the mirror: {e}"))? && mirror.status().is_level() {
            return Ok(());
        }
    }
    Err(format!("the mirror is not level: {:?}", mirror.status()))
}

/// Which state, from `low` to `high`, a mirror is in, as its followers see it.
pub(super) fn followed(dest: &Disk, script: &Script, low: usize, high: usize) -> Result<usize, String> {
    let options = Setting::QUIET.options().freshness(Freshness::Log);
    let db = Db::open_on(dest, MIRROR, options).map_err(|e| format!("following the mirror: {e}"))?;
    state_of(&db, script, low, high)
}

/// The same of a mirror that nobody keeps.
pub(super) fn found(dest: &Disk, script: &Script, low: usize, high: usize) -> Result<usize, String> {
    let options = Setting::QUIET.options().read_only(true);
    let db = Db::open_on(dest, MIRROR, options).map_err(|e| format!("the mirror does not open: {e}"))?;
    state_of(&db, script, low, high)
}

fn state_of(db: &Db, script: &Script, low: usize, high: usize) -> Result<usize, String> {
    let state = script.state_of(db, low, high).map_err(|e| format!("the mirror: {e}"))?;
    // Who only reads does not mend the copy of a superblock that was being written.
    let mut wrong = problems(db);
    wrong.retain(|problem| !problem.ends_with("its twin is in use"));
    if wrong.is_empty() { Ok(state) } else { Err(format!("the mirror, state {state}: check says {wrong:?}")) }
}

/// A mirror that goes on now and then while a script runs.
pub(super) struct Going<'a> {
    pub(super) source: &'a Disk,
    pub(super) dest: &'a Disk,
    pub(super) script: &'a Script,
    pub(super) rng: Rng,
    pub(super) mirror: Option<Mirror>,
    /// The state that it had when it was last looked at, and one more. 0: it was not there.
    pub(super) mirrored: usize,
    pub(super) failure: Option<String>,
}

impl Going<'_> {
    /// Tells the mirror's disk what is known now.
    pub(super) fn mark(&self, ack: &Ack) {
        self.dest.mark([ack.durable, ack.begun, self.mirrored]);
    }

    /// Some steps.
    pub(super) fn go(&mut self, ack: &Ack) {
        self.mark(ack);
        if self.failure.is_none()
            && let Err(e) = self.try_to_go(ack)
        {
            self.failure = Some(e);
        }
        self.mark(ack);
    }

    fn try_to_go(&mut self, ack: &Ack) -> Result<(), String> {
        if self.mirror.is_none() && self.rng.one_in(4) {
            let opened = open(self.source, self.dest).map_err(|e| format!("opening the mirror: {e}"))?;
            self.mirror = Some(opened);
        }
        let Some(mirror) = &mut self.mirror else { return Ok(()) };
        for _ in 0..self.rng.below(5) {
            mirror.step().map_err(|e| format!("a step of the mirror: {e}"))?;
        }
        if mirror.status().checkpoint > 0 && self.rng.one_in(3) {
            let low = self.mirrored.saturating_sub(1);
            self.mirrored = followed(self.dest, self.script, low, ack.begun)? + 1;
        }
        if self.rng.one_in(12) {
            self.mirror = None;
        }
        Ok(())
    }
}
