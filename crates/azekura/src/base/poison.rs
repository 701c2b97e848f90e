//! The flag that a failed write or sync leaves behind, or a panic half-way: nothing later may be
//! acknowledged.

use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Set once, never cleared; the first cause is kept.
#[derive(Default)]
pub(crate) struct Poison {
    set: AtomicBool,
    cause: Mutex<Option<String>>,
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

    /// Poisons the handle if `result` is an error, and passes it on. That somebody has closed the database
    /// meanwhile is no failure: nothing was written.
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

    #[cold]
    fn set(&self, cause: String) {
        self.cause.lock().get_or_insert(cause);
        self.set.store(true, Ordering::Release);
    }

    /// Poisons the handle if the result is dropped by a panic before `disarm`: for what would be left
    /// half-way.
    pub(crate) fn armed(&self, doing: &'static str) -> Armed<'_> {
        Armed { poison: self, doing, armed: true }
    }

    /// Does what a thread of the engine is there for. A panic poisons the handle and becomes an error,
    /// so that the thread goes on to tell those who wait for it.
    pub(crate) fn catch<T>(&self, doing: &'static str, f: impl FnOnce() -> Result<T>) -> Result<T> {
        let armed = self.armed(doing);
        // What `f` has left half-way nobody builds upon: the handle is poisoned.
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
    /// It went well, or failed as an error tells.
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
