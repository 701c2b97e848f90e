//! Whose turn it is to merge small chunks.

use crate::base::sync::atomic::{AtomicBool, Ordering};

/// Lets one thread at a time merge chunks.
#[derive(Default)]
pub(in crate::engine) struct OneAtATime(AtomicBool);

/// Ends the turn of the thread that merges chunks, also by a panic.
pub(in crate::engine) struct Turn<'a>(&'a OneAtATime);

impl OneAtATime {
    pub(in crate::engine) fn take_turn(&self) -> Option<Turn<'_>> {
        (!self.0.swap(true, Ordering::Acquire)).then(|| Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
