//! The lock on a file with parts that are read in place.
//!
//! A mapping shows the file's bytes. Once the lock is released, another process may change them. So where
//! runs and large values are read through a mapping, closing does not release the lock at once: the last
//! reader from before the close does.

use super::File;
use std::sync::Arc;

/// Releases the file's lock when its last holder goes.
pub(crate) struct Lease(Arc<dyn File>);

impl Lease {
    /// REQUIRES: the file is locked, and nobody else releases the lock.
    pub(crate) fn new(file: Arc<dyn File>) -> Arc<Lease> {
        Arc::new(Lease(file))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Nobody is left to hear of an error. The lock ends with the process in any case.
        let _unheard = self.0.unlock();
    }
}
