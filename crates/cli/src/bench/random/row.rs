//! What a run of this order has found.

use std::path::PathBuf;

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
    /// Records in one transaction, except the last.
    pub batch: u64,
    /// Mean bytes of a key, rounded.
    pub key_bytes: u64,
    /// Mean bytes of a value, rounded.
    pub value_bytes: u64,
    /// Bytes of all keys and values.
    pub total_bytes: u64,
    /// The size of the closed file.
    pub database_bytes: u64,
    /// Bytes of the closed file for each record.
    pub bytes_per_record: f64,
    /// Seconds until the last commit returned.
    pub write_s: f64,
    /// Seconds until background merging had nothing left to do, if that was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_s: Option<f64>,
    /// Seconds of the close.
    pub flush_s: f64,
    /// Seconds of the reopening and the gets of present keys.
    pub read_s: f64,
    /// Milliseconds of the reopening and one get.
    pub open_ms: f64,
    /// Records written in a second, until the last commit returned.
    pub inserts_per_s: f64,
    /// The same, with settling and close.
    pub inserts_flushed_per_s: f64,
    /// Mean time of a batch.
    pub batch_mean_ms: f64,
    /// The time below which 99 % of the batches stay.
    pub batch_p99_ms: f64,
    /// The longest batch.
    pub batch_max_ms: f64,
    /// The mean time of the last 5 % of batches, divided by that of the first 5 %.
    pub growth: f64,
    /// Random gets of present keys in a second.
    pub present_gets_per_s: f64,
    /// Gets of absent keys in a second.
    pub absent_gets_per_s: f64,
    /// Present keys looked up in a second, 100 in each call.
    pub get_many_per_s: f64,
    /// Records scanned in a second.
    pub scan_per_s: f64,
    /// Bytes that the process wrote, from opening to closing.
    pub written_bytes: Option<u64>,
    /// Write calls of the process, from opening to closing.
    pub write_calls: Option<u64>,
    /// The peak of the process's memory.
    pub peak_rss_bytes: Option<u64>,
    /// Values compared byte for byte.
    pub(super) verified: u64,
    /// The file with the time of each batch.
    pub csv: PathBuf,
}
