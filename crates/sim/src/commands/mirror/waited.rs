//! A mirror for which durable commits wait: what has returned is in it, whatever is cut off.

use super::going::{catch_up, followed};
use super::kept::{Kept, Way};
use crate::disk::Disk;
use crate::judge::{PATH, Setting};
use crate::rng::Rng;
use crate::script::{Ack, Script, Step};
use azekura::{Db, Error};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longer than any run.
const LONG: Duration = Duration::from_secs(3600);

/// A script beside such a mirror.
pub(super) struct Waited<'a> {
    pub(super) source: &'a Disk,
    pub(super) dest: &'a Disk,
    pub(super) script: &'a Script,
    pub(super) set: Setting,
}

/// What is known while it runs.
struct Known<'a> {
    db: &'a Db,
    rng: Rng,
    /// The newest state that the mirror surely has, and one more.
    mirrored: usize,
    failure: Option<Error>,
}

impl Waited<'_> {
    /// Runs the script to its end. The mirror's disk is told what is in it by then.
    pub(super) fn go(&self, seed: u64) -> Result<(), String> {
        let failed = |e: Error| format!("failed on a good disk: {e}");
        let mut rng = Rng(seed);
        let options = self.set.options().mirror_timeout(LONG);
        let db = Db::open_on(self.source, PATH, options).map_err(failed)?;
        let mut kept = Kept::open_whole(self.source, self.dest, Way::whole(&mut rng)).map_err(failed)?;
        let mirror = kept.mirror().map_err(failed)?;
        mirror.synchronous(true);
        mirror.run(|status| !status.synchronous).map_err(failed)?;
        let ends = AtomicBool::new(false);
        let (ran, ack) = std::thread::scope(|scope| {
            let going = scope.spawn(|| mirror.run(|_| !ends.load(Ordering::Relaxed)));
            let ran = self.run(&db, rng);
            let unmirrored = db.stats().unmirrored_commits;
            ends.store(true, Ordering::Relaxed);
            let gone = going.join().map_err(|_| "the mirror has panicked".to_string())?;
            gone.map_err(|e| format!("a step of the mirror: {e}"))?;
            if unmirrored > 0 {
                return Err(format!("{unmirrored} commits did not wait"));
            }
            Ok::<_, String>(ran)
        })?;
        ran.map_err(failed)?;
        db.close().map_err(failed)?;
        catch_up(kept.mirror().map_err(failed)?)?;
        let last = self.script.last();
        followed(self.dest, self.script, last, last)?;
        self.dest.mark([ack.done, ack.begun, last + 1]);
        Ok(())
    }

    fn run(&self, db: &Db, rng: Rng) -> (Result<(), Error>, Ack) {
        let known = RefCell::new(Known { db, rng, mirrored: 0, failure: None });
        let mut ack = Ack::default();
        let ran = self.script.run(db, 0, &mut ack, &|ack| self.note(&mut known.borrow_mut(), ack));
        let failure = known.into_inner().failure.take();
        (ran.and(failure.map_or(Ok(()), Err)), ack)
    }

    fn note(&self, known: &mut Known<'_>, ack: &Ack) {
        if self.has_waited(ack) {
            known.mirrored = ack.done + 1;
        } else if known.rng.one_in(6) && self.is_committed(ack) {
            match known.db.sync() {
                Ok(()) => known.mirrored = ack.done + 1,
                Err(e) => known.failure = Some(e),
            }
        }
        self.dest.mark([ack.durable, ack.begun, known.mirrored]);
    }

    /// Whether the last step has returned, and was one that waits.
    fn has_waited(&self, ack: &Ack) -> bool {
        let waits = |step: &Step| match step {
            Step::Commit(..) => ack.durable == ack.done,
            step => matches!(step, Step::Create(..) | Step::CreateSmall(_)),
        };
        ack.steps > 0
            && self
                .script
                .steps
                .get(ack.steps - 1)
                .is_some_and(|(step, state)| *state == ack.done && waits(step))
    }

    /// Whether the newest state was made by a commit. (Tables are dropped by a checkpoint alone. It is in the
    /// mirror with the next commit.)
    fn is_committed(&self, ack: &Ack) -> bool {
        let made = self.script.steps.iter().find(|(_, state)| *state == ack.done);
        !matches!(made, Some((Step::Drop(_), _)))
    }
}
