//! The flag that a failed write or sync leaves behind: nothing later may be acknowledged.

use crate::base::error::{Error, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

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

    /// Poisons the handle if `result` is an error, and passes it on.
    pub(crate) fn guard<T>(&self, result: Result<T>) -> Result<T> {
        #[cfg(azekura_canary)]
        if crate::base::canary::sings("forget_failure") {
            return result;
        }
        if let Err(e) = &result {
            self.cause.lock().get_or_insert_with(|| e.to_string());
            self.set.store(true, Ordering::Release);
        }
        result
    }
}
