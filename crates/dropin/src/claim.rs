//! The files that this process has open.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The files that this process has open, by device and number.
static CLAIMS: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// A file that this process has open.
pub(crate) struct Claim((u64, u64));

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

impl Claim {
    pub(crate) fn of(path: &Path) -> Option<Claim> {
        let identity = identity(path)?;
        CLAIMS.lock().unwrap_or_else(PoisonError::into_inner).push(identity);
        Some(Claim(identity))
    }

    pub(crate) fn exists(path: &Path) -> bool {
        let claims = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
        identity(path).is_some_and(|identity| claims.contains(&identity))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claims = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = claims.iter().position(|claim| *claim == self.0) {
            claims.swap_remove(at);
        }
    }
}
