//! Whose turn it is to merge small chunks.

use crate::base::sync::Instant;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::engine::cpu_backoff::is_little;
use std::time::Duration;

/// Lets one thread at a time merge chunks.
pub(in crate::engine) struct OneAtATime {
    taken: AtomicBool,
    opened: Instant,
    /// When there were many bytes to merge last, in microseconds since `opened`.
    long_us: AtomicU64,
}

/// Ends the turn of the thread that merges chunks, also by a panic.
pub(in crate::engine) struct Turn<'a>(&'a OneAtATime);

impl OneAtATime {
    pub(in crate::engine) fn new() -> OneAtATime {
        OneAtATime { taken: AtomicBool::new(false), opened: Instant::now(), long_us: AtomicU64::new(0) }
    }

    pub(in crate::engine) fn take_turn(&self) -> Option<Turn<'_>> {
        (!self.taken.swap(true, Ordering::Acquire)).then(|| Turn(self))
    }
}

impl Turn<'_> {
    /// Notes that there are many bytes to merge. Whether they are little for the time since that was noted
    /// last.
    pub(in crate::engine) fn note_long(&self, bytes: usize) -> bool {
        let now = self.0.opened.elapsed();
        let now_us = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let before = Duration::from_micros(self.0.long_us.swap(now_us, Ordering::Relaxed));
        is_little(bytes as u64, now.saturating_sub(before))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn many_bytes_are_little_if_they_came_slowly() {
        let turns = OneAtATime::new();
        std::thread::sleep(Duration::from_millis(20));
        let turn = turns.take_turn().unwrap();
        assert!(turns.take_turn().is_none());
        assert!(turn.note_long(20_000));
        assert!(!turn.note_long(1 << 30), "as much in no time");
    }
}
