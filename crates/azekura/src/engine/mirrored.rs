//! Waiting for synchronous mirrors: those that acknowledge what they have (`storage/acks.rs`).
//!
//! 1. When a group of durable commits was written, its leader asks the system whether there is such a mirror
//!    (`look`). If so, the log says at once that the group is durable, for a mirror takes nothing
//!    else.
//! 2. When a call that commits holds no lock any more, it waits (`MirrorWait`). One of those that wait
//!    asks the system again and again. What it learns lets all go who waited for no more than that.
//! 3. Who has waited for `Options::mirror_timeout` goes on without the mirror, and so do all others, until
//!    that has caught up. With `Options::require_mirror` each waits for so long, and gets `MirrorBehind`.
//!
//! Waiting ends with the mirror, and when the handle is closed or poisoned. Readers never wait.

use super::commit::Committer;
use super::state::State;
use crate::base::error::{Error, Result};
use crate::base::life::Life;
use crate::base::poison::Poison;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::thread::sleep;
use crate::base::sync::{ArcSwap, Condvar, Instant, Mutex, MutexGuard};
use crate::log::Log;
use crate::storage::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How often the system is asked: at first, and at most while nothing comes.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(1);
/// A mirror that was left behind has caught up when it has all that went without it, or what was the newest
/// commit so short a time ago.
const CAUGHT_UP: Duration = Duration::from_secs(1);

/// What is known of synchronous mirrors.
pub(crate) struct Mirrored {
    file: Arc<dyn File>,
    /// `Options::mirror_timeout` and `require_mirror`.
    timeout: Duration,
    is_required: bool,
    /// Whether there was one when the log was last written.
    are_there: AtomicBool,
    /// What was committed by earlier handles.
    opened_at: AtomicU64,
    /// Durable commits that returned without a mirror that was there.
    without: AtomicU64,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// The newest commit of which is known that all mirrors have it.
    all_have: u64,
    /// Whether somebody asks the system.
    is_asking: bool,
    /// What a mirror that is left behind must have.
    goal: Option<Goal>,
    /// The newest commit that went without it.
    last_without: u64,
}

/// A commit, and when it was the newest.
#[derive(Clone, Copy)]
struct Goal {
    commit: u64,
    since: Instant,
}

/// What asking has brought.
enum Answer {
    /// All mirrors have the commits up to this one.
    Has(u64),
    /// There is none.
    Nobody,
    /// The time is over.
    Nothing,
}

impl Mirrored {
    pub(super) fn new(file: Arc<dyn File>, timeout: Duration, is_required: bool) -> Mirrored {
        Mirrored {
            file,
            timeout,
            is_required,
            are_there: AtomicBool::new(false),
            opened_at: AtomicU64::new(0),
            without: AtomicU64::new(0),
            waiting: Mutex::new(Waiting::default()),
            changed: Condvar::new(),
        }
    }

    /// The handle is open, and the newest commit is this one.
    pub(super) fn opened(&self, commit: u64) {
        self.opened_at.store(commit, Ordering::Release);
    }

    /// Whether a sync of all commits up to here waits. What earlier handles have committed is not waited for,
    /// unless a mirror is required.
    pub(super) fn sync_waits(&self, commit: u64) -> bool {
        self.is_required || commit > self.opened_at.load(Ordering::Acquire) && self.acknowledged().is_some()
    }

    /// Whether a commit waits.
    #[inline]
    pub(super) fn is_waited_for(&self) -> bool {
        self.are_there.load(Ordering::Acquire) || self.is_required
    }

    /// How many durable commits have returned without a mirror that was there.
    pub(crate) fn went_without(&self) -> u64 {
        self.without.load(Ordering::Relaxed)
    }

    /// Looks whether there are synchronous mirrors. If so, the log says that its last frames are durable.
    pub(super) fn look(&self, log: &Log) {
        let are_there = self.acknowledged().is_some();
        self.are_there.store(are_there, Ordering::Release);
        if are_there || self.is_required {
            log.vouch();
        }
    }

    /// The newest commit that all synchronous mirrors have. None if there is none.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        match self.file.acknowledged() {
            Ok(found) => found,
            // The system knows no such locks (as for `pins_of_others`), so no mirror could have one.
            Err(e) if matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => None,
            // There may be a mirror, and nothing is known of it.
            Err(_) => Some(0),
        }
    }
}

/// A call that waits for mirrors. It holds no lock.
pub(super) struct MirrorWait<'a> {
    pub(super) state: &'a ArcSwap<State>,
    pub(super) mirrored: &'a Mirrored,
    pub(super) committer: &'a Committer,
    pub(super) life: &'a Life,
    pub(super) poison: &'a Poison,
}

impl MirrorWait<'_> {
    /// Waits until the mirrors have a commit that is durable here.
    #[cold]
    pub(super) fn wait_for(&self, commit: u64) -> Result<()> {
        let began = Instant::now();
        let Mirrored { waiting, changed, .. } = &self.mirrored;
        let mut waiting = waiting.lock();
        loop {
            if waiting.all_have >= commit {
                return Ok(());
            }
            if self.goes_on_without(&mut waiting, commit) {
                self.note_without(&mut waiting, commit);
                return Ok(());
            }
            if self.is_over(began) {
                return self.end_waiting(&mut waiting, commit, began);
            }
            if waiting.is_asking {
                changed.wait_for(&mut waiting, self.mirrored.timeout.saturating_sub(began.elapsed()));
                continue;
            }
            waiting.is_asking = true;
            let known = waiting.all_have;
            let answer = MutexGuard::unlocked(&mut waiting, || self.ask_mirrors(known, began));
            waiting.is_asking = false;
            changed.notify_all();
            match answer {
                Answer::Has(newest) => waiting.all_have = newest.max(waiting.all_have),
                Answer::Nobody => return Ok(()),
                Answer::Nothing => {}
            }
        }
    }

    /// Asks until more is known, or the time is over.
    fn ask_mirrors(&self, known: u64, began: Instant) -> Answer {
        let mut pause = PAUSE_MIN;
        loop {
            // Nobody has what was not committed yet, whatever a lock says.
            let newest = |has: u64| has.min(self.state.load().visible());
            match self.mirrored.acknowledged().map(newest) {
                Some(newest) if newest > known => return Answer::Has(newest),
                None if !self.mirrored.is_required => return Answer::Nobody,
                _ => {}
            }
            if self.is_over(began) {
                return Answer::Nothing;
            }
            sleep(pause);
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    fn is_over(&self, began: Instant) -> bool {
        began.elapsed() >= self.mirrored.timeout || self.is_ending()
    }

    fn is_ending(&self) -> bool {
        self.committer.check_open().is_err() || self.life.check().is_err() || self.poison.check().is_err()
    }

    /// Nobody waits any longer for a mirror that does not come to have a commit, until it has caught up.
    fn end_waiting(&self, waiting: &mut Waiting, commit: u64, began: Instant) -> Result<()> {
        let waited = began.elapsed();
        if self.mirrored.is_required {
            return Err(Error::MirrorBehind { commit, waited });
        }
        self.note_without(waiting, commit);
        if !self.is_ending() {
            waiting.goal = Some(Goal { commit, since: Instant::now() });
            self.mirrored.changed.notify_all();
        }
        Ok(())
    }

    fn note_without(&self, waiting: &mut Waiting, commit: u64) {
        self.mirrored.without.fetch_add(1, Ordering::Relaxed);
        waiting.last_without = commit.max(waiting.last_without);
    }

    /// Whether the mirror was left behind, and has not caught up since.
    fn goes_on_without(&self, waiting: &mut Waiting, commit: u64) -> bool {
        let Some(goal) = waiting.goal else { return false };
        waiting.goal = match self.mirrored.acknowledged() {
            None => None,
            Some(newest) if newest < goal.commit => Some(goal),
            Some(newest) if newest >= waiting.last_without => None,
            // Where much is committed it never has the newest. So it is enough to be near.
            Some(_) if goal.since.elapsed() < CAUGHT_UP => None,
            Some(_) => Some(Goal { commit, since: Instant::now() }),
        };
        waiting.goal.is_some()
    }
}
