//! What a run of this order has found.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::units::as_f64;

/// One row: the result of one number of threads.
#[derive(Debug, Serialize)]
pub struct Row {
    pub(super) order: &'static str,
    pub(super) table: &'static str,
    pub(super) durability: &'static str,
    /// Threads that committed.
    pub threads: u64,
    /// Records written, each in its own transaction.
    pub records: u64,
    pub(super) transactions: u64,
    pub(super) key_bytes: u64,
    pub(super) value_bytes: u64,
    pub(super) seconds: f64,
    /// Commits in a second, by all threads.
    pub commits_per_s: f64,
    /// The latency below which half of the commits stay.
    pub commit_p50_us: f64,
    /// The same for 99 % of them.
    pub commit_p99_us: f64,
    /// The longest latency.
    pub commit_max_us: f64,
    /// Appends and syncs of a raw file in a second.
    pub raw_appends_per_s: f64,
    /// Commits divided by raw appends.
    pub ratio_to_raw: f64,
    /// Commits divided by those of one thread.
    pub ratio_to_one_thread: f64,
    pub(super) written_bytes: Option<u64>,
    pub(super) write_calls: Option<u64>,
    pub(super) peak_rss_bytes: Option<u64>,
    pub(super) verified: u64,
}

/// Some operations: the time they took, and the latency of each.
pub struct Run {
    /// Latencies in nanoseconds.
    pub latency_ns: Histogram<u64>,
    /// Seconds from the first operation to the last.
    pub seconds: f64,
}

impl Run {
    /// Operations in a second.
    pub fn per_s(&self) -> f64 {
        as_f64(self.latency_ns.len()) / self.seconds
    }

    /// A quantile of the latencies, in microseconds.
    pub fn at_us(&self, quantile: f64) -> f64 {
        as_f64(self.latency_ns.value_at_quantile(quantile)) / 1e3
    }

    /// The longest latency, in microseconds.
    pub fn max_us(&self) -> f64 {
        as_f64(self.latency_ns.max()) / 1e3
    }
}
