//! Unique numbers for runs and log chains.

use crate::base::sync::atomic::{AtomicU64, Ordering};

/// Gives each number once.
pub(super) struct Ids(AtomicU64);

impl Ids {
    pub(super) fn from(first: u64) -> Ids {
        Ids(AtomicU64::new(first))
    }

    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// The one that comes next.
    pub(super) fn peek(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
