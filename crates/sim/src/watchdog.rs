//! Turns a hang into a failure that says where: the watchdog ends the process if nobody reports progress.
//!
//! It counts its own looks, and not the clock's seconds. A process that is stopped for a while, or gets no
//! processor, does not hang.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How often it looks.
const TICK: Duration = Duration::from_millis(250);

/// Ends the process with a message if [`Watchdog::at`] is not called for too long. Dropping it ends the
/// watch.
pub struct Watchdog(Arc<Mutex<(u64, String)>>);

fn lock(seen: &Mutex<(u64, String)>) -> MutexGuard<'_, (u64, String)> {
    seen.lock().unwrap_or_else(|e| e.into_inner())
}

impl Watchdog {
    /// Begins to watch.
    pub fn start(seconds: u64) -> Watchdog {
        let seen = Arc::new(Mutex::new((0, String::from("starting"))));
        let watched = Arc::downgrade(&seen);
        std::thread::spawn(move || {
            while let Some(seen) = watched.upgrade() {
                let mut last = lock(&seen);
                last.0 += 1;
                if TICK * u32::try_from(last.0).unwrap_or(u32::MAX) > Duration::from_secs(seconds) {
                    eprintln!("HANG: no progress for {seconds} s in: {}", last.1);
                    std::process::abort();
                }
                drop(last);
                drop(seen);
                std::thread::sleep(TICK);
            }
        });
        Watchdog(seen)
    }

    /// Reports what is being done.
    pub fn at(&self, what: impl Into<String>) {
        *lock(&self.0) = (0, what.into());
    }
}
