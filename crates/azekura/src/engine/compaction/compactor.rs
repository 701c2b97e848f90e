//! What merges have done so far.

use std::sync::atomic::AtomicU64 as Count;

/// Merges levels, and counts what it has merged.
#[derive(Default)]
pub(crate) struct Compactor {
    pub(crate) merges: Count,
    /// Records that merges have read.
    pub(crate) records: Count,
    pub(crate) ns: Count,
}
