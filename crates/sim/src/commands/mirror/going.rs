//! A mirror beside a script.

use super::kept::{Kept, MIRROR, Way};
use crate::disk::{Call, Disk, Effect, Fault};
#[cfg(test)]
use crate::judge::PATH;
use crate::judge::Setting;
use crate::rng::Rng;
use crate::script::{Ack, Script, problems};
#[cfg(test)]
use azekura::CopyOptions;
use azekura::{Db, Error, Freshness, Mirror};
#[cfg(test)]
use std::sync::Arc;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// A mirror is level after so many steps if nobody writes.
const STEPS_MAX: usize = 2000;

/// Opens a mirror of the database on `source`, which is reached as a file.
#[cfg(test)]
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
    is_whole(db).map_err(|e| format!("the mirror, state {state}: {e}"))?;
    Ok(state)
}

/// Whether nothing is wrong with a mirror that was opened for reading.
pub(super) fn is_whole(db: &Db) -> Result<(), String> {
    // Who only reads does not mend the copy of a superblock that was being written.
    let mut wrong = problems(db);
    wrong.retain(|problem| !problem.ends_with("its twin is in use"));
    if wrong.is_empty() { Ok(()) } else { Err(format!("check says {wrong:?}")) }
}

/// A mirror that goes on now and then while a script runs.
pub(super) struct Going<'a> {
    pub(super) source: &'a Disk,
    pub(super) dest: &'a Disk,
    /// Whether the mirror has a disk of its own, which may be full and fail.
    pub(super) is_apart: bool,
    pub(super) script: &'a Script,
    pub(super) rng: Rng,
    pub(super) mirror: Option<Kept>,
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

    fn open(&mut self) -> Result<(), String> {
        let way = Way::any(&mut self.rng);
        let opened = Kept::open(self.source, self.dest, way);
        self.mirror = opened.map_err(|e| format!("opening the mirror ({way:?}): {e}"))?;
        Ok(())
    }

    /// Steps while the mirror's disk is full, or one call to it fails. A full disk has changed nothing: the
    /// same mirror goes on when there is room. After any other error a mirror is opened anew.
    fn go_on_bad_disk(&mut self) -> Result<(), String> {
        let is_full = self.rng.one_in(2);
        if is_full {
            let bytes = self.dest.bytes(MIRROR).len() as u64;
            self.dest.set_bytes_max(bytes + (self.rng.below(40) << 12));
        } else {
            let call = *self.rng.pick(&[Call::Write, Call::Write, Call::Sync, Call::SetLen, Call::Name]);
            let effect = *self.rng.pick(&[Effect::Error(EIO), Effect::Error(ENOSPC), Effect::Short]);
            self.dest.set_fault(Some(Fault { call, nth: 1 + self.rng.below(8), forever: false, effect }));
        }
        let done = self.steps_on_bad_disk();
        self.dest.set_bytes_max(u64::MAX);
        self.dest.set_fault(None);
        match done {
            Err(_) if self.mirror.as_ref().is_some_and(Kept::was_cut) => self.mirror = None,
            Err(Error::NoSpace { .. }) if is_full => {}
            Err(e) if is_full => return Err(format!("a full disk: {e}")),
            Err(_) => self.mirror = None,
            Ok(()) => {}
        }
        Ok(())
    }

    fn steps_on_bad_disk(&mut self) -> Result<(), Error> {
        if self.mirror.is_none() {
            self.mirror = Kept::open(self.source, self.dest, Way::any(&mut self.rng))?;
        }
        let steps = 1 + self.rng.below(5);
        let Some(kept) = &mut self.mirror else { return Ok(()) };
        let mirror = kept.mirror()?;
        (0..steps).try_for_each(|_| mirror.step().map(drop))
    }

    /// Comes to all that the source has, with the mirror that there is if its pipe is not cut on the way.
    pub(super) fn catch_up(&mut self) -> Result<(), String> {
        let failed = |e: Error| format!("opening the mirror: {e}");
        if let Some(mut kept) = self.mirror.take() {
            let done = catch_up(kept.mirror().map_err(failed)?);
            if done.is_ok() || !kept.was_cut() {
                return done;
            }
        }
        let way = Way::whole(&mut self.rng);
        let mut kept = Kept::open_whole(self.source, self.dest, way).map_err(failed)?;
        catch_up(kept.mirror().map_err(failed)?)
    }

    fn try_to_go(&mut self, ack: &Ack) -> Result<(), String> {
        if self.mirror.is_none() && self.rng.one_in(4) {
            self.open()?;
        }
        if self.is_apart && self.rng.one_in(6) {
            self.go_on_bad_disk()?;
        }
        let Some(kept) = &mut self.mirror else { return Ok(()) };
        for _ in 0..self.rng.below(5) {
            let stepped = kept.mirror().and_then(Mirror::step);
            match stepped {
                // It is opened again, some time.
                Err(_) if kept.was_cut() => {
                    self.mirror = None;
                    return Ok(());
                }
                stepped => drop(stepped.map_err(|e| format!("a step of the mirror: {e}"))?),
            }
        }
        let is_there = kept.mirror().is_ok_and(|mirror| mirror.status().checkpoint > 0);
        if is_there && self.rng.one_in(3) {
            let low = self.mirrored.saturating_sub(1);
            self.mirrored = followed(self.dest, self.script, low, ack.begun)? + 1;
        }
        if self.rng.one_in(12) {
            self.mirror = None;
        }
        Ok(())
    }
}
