//! One flush at a time. Without the engine's threads callers flush, and there may be several of them.

use crate::base::sync::{Mutex, MutexGuard, Rank};

/// Lets one flush at a time.
pub(super) struct Flusher {
    turn: Mutex<()>,
}

impl Flusher {
    pub(super) fn new() -> Flusher {
        Flusher { turn: Mutex::ranked(Rank::Flushing, ()) }
    }

    /// Waits for the flush under way. No other begins while the result lives.
    pub(super) fn begin(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Waits until the flush under way has let go of what was there before, and with it of dead values.
    pub(super) fn wait(&self) {
        drop(self.begin());
    }
}
