//! What a run of this order has found.

use serde::Serialize;

/// One row: what was done, and what it took.
#[derive(Debug, Serialize)]
pub struct Row {
    pub(super) order: &'static str,
    pub(super) table: &'static str,
    pub(super) durability: &'static str,
    /// Records written.
    pub records: u64,
    /// Transactions they were written in.
    pub transactions: u64,
    pub(super) key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Bytes of all keys and values.
    pub total_bytes: u64,
    /// The size of the closed file.
    pub database_bytes: u64,
    /// Bytes of the file beyond keys and values, for each record.
    pub overhead_bytes_per_record: f64,
    /// Seconds until the last commit returned.
    pub write_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) settle_s: Option<f64>,
    /// Seconds of the close.
    pub flush_s: f64,
    /// Seconds of the reopening and the gets.
    pub read_s: f64,
    pub(super) open_ms: f64,
    /// Records written in a second, until the last commit returned.
    pub writes_per_s: f64,
    /// Records written in a second, with the close.
    pub writes_flushed_per_s: f64,
    /// Gets in a second, with the reopening.
    pub reads_per_s: f64,
    /// Records scanned in a second.
    pub scan_per_s: f64,
    /// Megabytes (10^6) of keys and values written in a second.
    pub write_mb_per_s: f64,
    /// Megabytes (10^6) of keys and values read in a second.
    pub read_mb_per_s: f64,
    /// Bytes that the process wrote, from opening to closing.
    pub written_bytes: Option<u64>,
    /// Write calls of the process, from opening to closing.
    pub write_calls: Option<u64>,
    /// The peak of the process's memory.
    pub peak_rss_bytes: Option<u64>,
    /// Values compared byte for byte.
    pub(super) verified: u64,
}
