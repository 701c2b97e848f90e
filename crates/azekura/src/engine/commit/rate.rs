//! How fast all writers together write: whether flush and merges have much to do.

use crate::base::sync::Instant;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// At a lower rate, in bytes a microsecond, flush and merges have little to do.
const BYTES_PER_US: u64 = 16;
/// A record costs flush and merges as much as so many bytes, besides its own.
const RECORD_BYTES: u64 = 32;
/// The rate is that of at least so many microseconds. So a commit that was late, and those that had waited
/// for it, count together.
const SPAN_US: u64 = 20_000;

/// What commits have brought, and when.
pub(in crate::engine) struct WriteRate {
    opened: Instant,
    bytes: AtomicU64,
    /// Where the span began: microseconds since `opened`, and the bytes until then.
    began_us: AtomicU64,
    began_bytes: AtomicU64,
    /// Whether the rate of the span before was low.
    is_low: AtomicBool,
}

impl WriteRate {
    pub(super) fn new() -> WriteRate {
        WriteRate {
            opened: Instant::now(),
            bytes: AtomicU64::new(0),
            began_us: AtomicU64::new(0),
            began_bytes: AtomicU64::new(0),
            is_low: AtomicBool::new(true),
        }
    }

    /// Counts a commit.
    pub(in crate::engine) fn note(&self, bytes: u64, records: usize) {
        let cost = (records as u64).saturating_mul(RECORD_BYTES).saturating_add(bytes);
        self.bytes.fetch_add(cost, Ordering::Relaxed);
    }

    /// Whether writers wrote little lately.
    pub(in crate::engine) fn is_low(&self) -> bool {
        let now_us = u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.is_low_at(now_us)
    }

    fn is_low_at(&self, now_us: u64) -> bool {
        let began_us = self.began_us.load(Ordering::Relaxed);
        let took_us = now_us.saturating_sub(began_us);
        let ends = took_us >= SPAN_US
            && self.began_us.compare_exchange(began_us, now_us, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if ends {
            let bytes = self.bytes.load(Ordering::Relaxed);
            let before = self.began_bytes.swap(bytes, Ordering::Relaxed);
            let is_low = bytes.saturating_sub(before) < took_us.saturating_mul(BYTES_PER_US);
            self.is_low.store(is_low, Ordering::Relaxed);
        }
        self.is_low.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_records_of_all_writers_count_and_bursts_do_not() {
        let rate = WriteRate::new();
        assert!(rate.is_low_at(0), "nobody has written");
        rate.note(250_000, 1);
        assert!(rate.is_low_at(1_000), "a burst");
        assert!(rate.is_low_at(SPAN_US));
        // Two that write 10 bytes a microsecond each.
        (0..2).for_each(|_| rate.note(10 * SPAN_US, 1));
        assert!(!rate.is_low_at(2 * SPAN_US));
        assert!(!rate.is_low_at(3 * SPAN_US - 1), "not before another span is over");
        assert!(rate.is_low_at(3 * SPAN_US));
        (0..SPAN_US).for_each(|_| rate.note(0, 1));
        assert!(!rate.is_low_at(4 * SPAN_US), "a million records a second");
    }
}
