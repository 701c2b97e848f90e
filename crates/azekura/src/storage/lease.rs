//! The lock on a file of which parts are read where they stand.
//!
//! Bytes in a mapping are the file's: once another process may write to it, they are his. So where runs and
//! large values are read through a mapping, closing gives the lock up when the last reader has gone who was
//! there before.

use super::File;
use std::sync::Arc;

/// Gives the file's lock up with its last holder.
pub(crate) struct Lease(Arc<dyn File>);

impl Lease {
    /// REQUIRES: the file is locked, and nobody else gives the lock up.
    pub(crate) fn new(file: Arc<dyn File>) -> Arc<Lease> {
        Arc::new(Lease(file))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // What it might say has no one left to hear it, and the lock goes with the process in any case.
        let _unheard = self.0.unlock();
    }
}
