//! How fast all writers together write: whether flush and merges have much to do.

use crate::base::sync::{Instant, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU64 as Count, Ordering};
use std::time::Duration;

/// At a lower rate, in bytes a microsecond, flush and merges have little to do.
const BYTES_PER_US: u64 = 16;
/// The rate is that of a span of at least so many microseconds, which ends when somebody asks. So a commit
/// that was late, and those that had waited for it, count together.
const SPAN_US: u64 = 20_000;
/// If writers wait for flush and merges longer than this part of the span, these have much to do.
const WAITED_PART: u64 = 10;

/// What commits have brought, and when.
pub(in crate::engine) struct WriteRate {
    opened: Instant,
    committed: Count,
    /// What writers would have brought in their pauses.
    missed: Count,
    /// How long writers have waited for flush and merges, in microseconds.
    waited_us: Count,
    span: Mutex<Span>,
    /// Whether the rate of the span before was low.
    is_low: AtomicBool,
}

/// When a span began, and what there was until then.
#[derive(Default)]
struct Span {
    began_us: u64,
    bytes: u64,
    waited_us: u64,
}

impl WriteRate {
    pub(super) fn new() -> WriteRate {
        WriteRate {
            opened: Instant::now(),
            committed: Count::new(0),
            missed: Count::new(0),
            waited_us: Count::new(0),
            span: Mutex::new(Span::default()),
            is_low: AtomicBool::new(true),
        }
    }

    /// What all commits so far have cost (`Batch::cost`). REQUIRES: the commit lock.
    pub(in crate::engine) fn note(&self, cost: u64) {
        self.committed.store(cost, Ordering::Relaxed);
    }

    /// A writer has made a pause of so long after it had worked for so long. It counts as if it had worked on
    /// as fast. Without pauses it would share the processor, and be slower: so pauses begin at the full rate,
    /// and end somewhat below.
    pub(in crate::engine) fn note_pause(&self, cost: u64, worked: Duration, pause: Duration) {
        let more = u128::from(cost) * pause.as_nanos() / worked.as_nanos().max(1);
        self.missed.fetch_add(u64::try_from(more).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// A writer has waited for flush and merges.
    pub(in crate::engine) fn note_wait(&self, waited: Duration) {
        let us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.waited_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Whether in the span before writers wrote little, and did not wait.
    pub(in crate::engine) fn is_low(&self) -> bool {
        let now_us = u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.is_low_at(now_us)
    }

    fn is_low_at(&self, now_us: u64) -> bool {
        if let Some(mut span) = self.span.try_lock() {
            let took_us = now_us.saturating_sub(span.began_us);
            if took_us >= SPAN_US {
                let next = Span {
                    began_us: now_us,
                    bytes: self
                        .committed
                        .load(Ordering::Relaxed)
                        .wrapping_add(self.missed.load(Ordering::Relaxed)),
                    waited_us: self.waited_us.load(Ordering::Relaxed),
                };
                let bytes = next.bytes.wrapping_sub(span.bytes);
                let waited_us = next.waited_us.wrapping_sub(span.waited_us);
                let is_low = bytes / BYTES_PER_US < took_us && waited_us < took_us / WAITED_PART;
                self.is_low.store(is_low, Ordering::Relaxed);
                *span = next;
            }
        }
        self.is_low.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_all_writers_bring_counts_over_a_span() {
        let rate = WriteRate::new();
        assert!(rate.is_low_at(0), "nobody has written");
        rate.note(300_000);
        assert!(rate.is_low_at(1_000), "a burst, so far");
        assert!(rate.is_low_at(SPAN_US), "and nothing after it");
        rate.note(300_000 + 20 * SPAN_US);
        assert!(!rate.is_low_at(2 * SPAN_US));
        assert!(!rate.is_low_at(3 * SPAN_US - 1), "not before another span is over");
        assert!(rate.is_low_at(3 * SPAN_US));
    }

    #[test]
    fn pauses_and_waits_do_not_make_it_low() {
        let rate = WriteRate::new();
        rate.note_wait(Duration::from_micros(SPAN_US / 2));
        assert!(!rate.is_low_at(SPAN_US));
        let quarter = Duration::from_micros(SPAN_US / 4);
        let mut all = 0;
        // 24 bytes a microsecond, and 2, for a quarter of the time.
        for (bytes, is_low, span) in [(24, false, 2), (2, true, 3)] {
            let cost = bytes * SPAN_US / 4;
            all += cost;
            rate.note(all);
            rate.note_pause(cost, quarter, 3 * quarter);
            assert_eq!(rate.is_low_at(span * SPAN_US), is_low);
        }
    }
}
