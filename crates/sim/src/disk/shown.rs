//! A file of the disk, for those who map it: the same bytes in a file of the system.

use std::fs::File;
use std::io;
use std::sync::Arc;

/// The system's file, once it was asked for. A copy of the disk begins without it.
#[derive(Default)]
pub(super) struct Shown(pub(super) Option<Arc<File>>);

impl Clone for Shown {
    fn clone(&self) -> Shown {
        Shown(None)
    }
}

impl Shown {
    /// Makes the same change in the system's file. If that fails, going on would show nothing.
    pub(super) fn follow(&self, change: impl FnOnce(&File) -> io::Result<()>) {
        if let Some(file) = &self.0
            && let Err(e) = change(file)
        {
            panic!("a mapped file of the simulated disk: {e}");
        }
    }
}
