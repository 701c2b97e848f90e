//! What a reader holds of a file with parts that are read in place.
//!
//! A mapping shows the file's bytes. Once the lock is released, another process may change them. So where
//! runs and large values are read through a mapping, closing does not release the lock at once: the last
//! reader from before the close does. A follower has no lock. It holds a pin of the checkpoint that it reads
//! (`storage/pins.rs`) in the same way.

use super::File;
use std::io;
use std::sync::Arc;

/// Releases the file's lock, or a pin, when its last holder goes.
pub(crate) struct Lease {
    file: Arc<dyn File>,
    /// The checkpoint that is pinned, if that is what is released.
    pinned: Option<u64>,
}

impl Lease {
    /// REQUIRES: the file is locked, and nobody else releases the lock.
    pub(crate) fn new(file: Arc<dyn File>) -> Arc<Lease> {
        Arc::new(Lease { file, pinned: None })
    }

    /// Pins a checkpoint.
    ///
    /// # Errors
    /// As `File::pin`.
    pub(crate) fn pin(file: Arc<dyn File>, number: u64) -> io::Result<Arc<Lease>> {
        file.pin(number)?;
        Ok(Arc::new(Lease { file, pinned: Some(number) }))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match self.pinned {
            Some(number) => self.file.unpin(number),
            None => {
                // Nobody is left to hear of an error. The lock ends with the process in any case.
                let _unheard = self.file.unlock();
            }
        }
    }
}
