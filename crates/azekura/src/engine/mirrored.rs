//! Waiting for synchronous mirrors: those that acknowledge what they have (`storage/acks.rs`).
//!
//! 1. When a group of durable commits was written, its leader asks the system whether there is such a mirror
//!    (`look`). If so, the log says at once that the group is durable, for a mirror takes nothing
//!    else.
//! 2. When a call that commits holds no lock any more, it waits (`wait_for_mirrors`). One of those that wait
//!    asks the system again and again. What it learns lets all go who waited for no more than that.
//! 3. Who has waited for `Options::mirror_timeout` goes on without the mirror, and so do all others, until
//!    that has caught up. With `Options::require_mirror` each waits for so long, and gets `MirrorBehind`.
//!
//! Waiting ends with the mirror, and when the handle is closed or poisoned. Readers never wait.

use super::Engine;
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::thread::sleep;
use crate::base::sync::{Condvar, Instant, Mutex, MutexGuard};
use crate::log::Log;
use crate::storage::File;
use std::sync::Arc;
use std::time::Duration;

/// How often the system is asked: at first, and at most while nothing comes.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(1);
/// A mirror that was left behind has caught up when it has what was the newest commit so short a time ago.
const CAUGHT_UP: Duration = Duration::from_secs(1);

/// What is known of synchronous mirrors.
pub(crate) struct Mirrored {
    file: Arc<dyn File>,
    /// `Options::mirror_timeout` and `require_mirror`.
    timeout: Duration,
    is_required: bool,
    /// Whether there was one when the log was last written.
    are_there: AtomicBool,
    /// What was committed by earlier handles. Nobody waits for it.
    opened_at: AtomicU64,
    /// Durable commits that returned without a mirror that was there.
    pub(crate) without: AtomicU64,
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
        // Where the system cannot say, no mirror could.
        self.file.acknowledged().unwrap_or_default()
    }
}

impl Engine {
    /// As `sync`, and waits for synchronous mirrors.
    pub(crate) fn sync_mirrored(&self) -> Result<()> {
        let newest = self.state.load().visible();
        self.sync()?;
        if self.config.read_only || newest <= self.mirrored.opened_at.load(Ordering::Acquire) {
            return Ok(());
        }
        self.mirrored.look(&self.log);
        self.wait_for_mirrors(newest)
    }

    /// Waits until the synchronous mirrors have a commit that is durable here. REQUIRES: the caller holds no
    /// lock.
    ///
    /// # Errors
    /// `MirrorBehind`, if a mirror is required.
    #[inline]
    pub(crate) fn wait_for_mirrors(&self, commit: u64) -> Result<()> {
        if self.mirrored.are_there.load(Ordering::Acquire) || self.mirrored.is_required {
            self.wait_until_mirrored(commit)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn wait_until_mirrored(&self, commit: u64) -> Result<()> {
        let began = Instant::now();
        let Mirrored { waiting, changed, .. } = &self.mirrored;
        let mut waiting = waiting.lock();
        loop {
            if waiting.all_have >= commit {
                return Ok(());
            }
            if self.goes_on_without(&mut waiting, commit) {
                self.mirrored.without.fetch_add(1, Ordering::Relaxed);
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
            match self.mirrored.acknowledged() {
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
        self.mirrored.without.fetch_add(1, Ordering::Relaxed);
        if !self.is_ending() {
            waiting.goal = Some(Goal { commit, since: Instant::now() });
            self.mirrored.changed.notify_all();
        }
        Ok(())
    }

    /// Whether the mirror was left behind, and has not caught up since.
    fn goes_on_without(&self, waiting: &mut Waiting, commit: u64) -> bool {
        let Some(goal) = waiting.goal else { return false };
        waiting.goal = match self.mirrored.acknowledged() {
            None => None,
            Some(newest) if newest < goal.commit => Some(goal),
            // Where much is committed it never has the newest. So it is enough to be near.
            Some(_) if goal.since.elapsed() < CAUGHT_UP => None,
            Some(_) => Some(Goal { commit, since: Instant::now() }),
        };
        waiting.goal.is_some()
    }
}
