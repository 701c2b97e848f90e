//! What a run of this order has found.

use serde::Serialize;

/// One row: what was done, and what it took.
#[derive(Debug, Serialize)]
pub struct Row {
    pub(super) order: &'static str,
    pub(super) table: &'static str,
    pub(super) durability: &'static str,
    /// Records in the table.
    pub records: u64,
    /// Transactions that the writer committed.
    pub transactions: u64,
    /// Updates in one transaction.
    pub batch: u64,
    /// Bytes of a key.
    pub key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// How long both threads ran.
    pub seconds: f64,
    /// Gets in a second.
    pub gets_per_s: f64,
    /// Updates in a second, at the same time.
    pub updates_per_s: f64,
    /// The latency below which half of the gets stay.
    pub get_p50_us: f64,
    /// The same for 99 % of them.
    pub get_p99_us: f64,
    /// The same for 99.9 % of them.
    pub get_p99_9_us: f64,
    /// The longest latency.
    pub get_max_us: f64,
    /// The longest time of a transaction with its updates.
    pub transaction_max_ms: f64,
    /// The size of the closed file.
    pub database_bytes: u64,
    /// Bytes that the process wrote while both ran.
    pub written_bytes: Option<u64>,
    /// Write calls of the process while both ran.
    pub write_calls: Option<u64>,
    /// The peak of the process's memory.
    pub peak_rss_bytes: Option<u64>,
    /// Values compared byte for byte.
    pub(super) verified: u64,
}
