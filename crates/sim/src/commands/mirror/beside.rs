//! A mirror in a thread of its own, which goes on whatever the script does.

use super::going::open;
use crate::disk::Disk;
use azekura::{Error, Mirror};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The thread, for those who wait for it.
#[derive(Default)]
pub(super) struct Beside {
    is_over: AtomicBool,
    failure: Mutex<Option<Error>>,
}

/// Ends the thread when it is dropped, also by a panic.
pub(super) struct Ends<'a>(&'a Beside);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Beside {
    /// The thread's work.
    pub(super) fn go_on(&self, source: &Disk, dest: &Disk) {
        let goes_on = || !self.is_over.load(Ordering::Relaxed);
        let mut mirror: Option<Mirror> = None;
        while goes_on() {
            let stepped = match &mut mirror {
                Some(mirror) => mirror.run(|_| goes_on()),
                None => open(source, dest).map(|opened| mirror = Some(opened)),
            };
            if let Err(e) = stepped {
                *self.failure.lock().unwrap_or_else(|e| e.into_inner()) = Some(e);
                return;
            }
        }
    }

    /// Keeps the thread going while it is held.
    pub(super) fn until_dropped(&self) -> Ends<'_> {
        Ends(self)
    }

    /// What has failed.
    pub(super) fn check(&self) -> Result<(), String> {
        let failed = self.failure.lock().unwrap_or_else(|e| e.into_inner()).take();
        failed.map_or(Ok(()), |e| Err(format!("the mirror beside: {e}")))
    }
}
