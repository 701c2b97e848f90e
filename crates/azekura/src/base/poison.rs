//! The flag that a failed write or sync, or a panic half-way, leaves behind. A poisoned handle acknowledges
//! nothing more.

use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Mutex, RwLock};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Set once and never cleared. It keeps the first cause.
#[derive(Default)]
pub(crate) struct Poison {
    set: AtomicBool,
    cause: Mutex<Option<String>>,
    /// Read by whoever makes data durable, until it is known whether that has failed.
    syncing: RwLock<()>,
}

impl Poison {
    /// An error if the handle is poisoned.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<()> {
        if self.set.load(Ordering::Acquire) { Err(self.error()) } else { Ok(()) }
    }

    #[cold]
    fn error(&self) -> Error {
        Error::Poisoned { cause: self.cause.lock().clone().unwrap_or_default() }
    }

    /// Returns `result`, and poisons the handle if it is an error. `Closed` does not poison: nothing was
    /// written.
    pub(crate) fn guard<T>(&self, result: Result<T>) -> Result<T> {
        if fault!("forget_failure") {
            return result;
        }
        match &result {
            Ok(_) | Err(Error::Closed) => {}
            Err(e) => self.set(e.to_string()),
        }
        result
    }

    /// Runs a call that makes data durable. Like `guard`, and who calls `check_syncs` learns of it.
    pub(crate) fn guard_sync<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        let _outcome_is_unknown = self.syncing.read();
        self.guard(f())
    }

    /// As `check`, when the calls of `guard_sync` that are under way have ended. One that fails may have
    /// forgotten what others have written, and then a sync of theirs succeeds all the same: the system tells
    /// an error once.
    pub(crate) fn check_syncs(&self) -> Result<()> {
        drop(self.syncing.write());
        self.check()
    }

    #[cold]
    fn set(&self, cause: String) {
        self.cause.lock().get_or_insert(cause);
        self.set.store(true, Ordering::Release);
    }

    /// Returns a guard that poisons the handle if it is dropped before `disarm`. A panic half-way does that.
    pub(crate) fn armed(&self, doing: &'static str) -> Armed<'_> {
        Armed { poison: self, doing, armed: true }
    }

    /// Runs a step of one of the engine's threads. A panic poisons the handle and becomes an error, so that
    /// the thread can still tell those who wait for it.
    pub(crate) fn catch<T>(&self, doing: &'static str, f: impl FnOnce() -> Result<T>) -> Result<T> {
        let armed = self.armed(doing);
        // `f` may leave things half-way: the handle is poisoned then, and nobody builds upon them.
        match catch_unwind(AssertUnwindSafe(f)) {
            Ok(done) => {
                armed.disarm();
                done
            }
            Err(_reported_by_the_hook) => {
                drop(armed);
                Err(self.error())
            }
        }
    }
}

/// See `Poison::armed`.
#[must_use]
pub(crate) struct Armed<'a> {
    poison: &'a Poison,
    doing: &'static str,
    armed: bool,
}

impl Armed<'_> {
    /// The step has ended, well or with an error that it reports itself.
    pub(crate) fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.poison.set(format!("a panic while {}", self.doing));
        }
    }
}
