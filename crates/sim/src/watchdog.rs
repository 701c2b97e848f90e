//! A hang is a failure that says where: the watchdog ends the process if nobody reports progress.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Ends the process with a message when [`Watchdog::at`] is not called for too long. Dropping it
/// calls it off.
pub struct Watchdog(Arc<Mutex<(Instant, String)>>);

fn lock(seen: &Mutex<(Instant, String)>) -> MutexGuard<'_, (Instant, String)> {
    seen.lock().unwrap_or_else(|e| e.into_inner())
}

impl Watchdog {
    /// Watches from now on.
    pub fn start(seconds: u64) -> Watchdog {
        let seen = Arc::new(Mutex::new((Instant::now(), String::from("starting"))));
        let watched = Arc::downgrade(&seen);
        std::thread::spawn(move || {
            while let Some(seen) = watched.upgrade() {
                let (at, what) = lock(&seen).clone();
                drop(seen);
                if at.elapsed() > Duration::from_secs(seconds) {
                    eprintln!("HANG: no progress for {seconds} s in: {what}");
                    std::process::abort();
                }
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        Watchdog(seen)
    }

    /// Says what is being done now.
    pub fn at(&self, what: impl Into<String>) {
        *lock(&self.0) = (Instant::now(), what.into());
    }
}
