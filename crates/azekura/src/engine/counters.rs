//! What the engine counts, and what it has waited for.

use super::checkpoint::old_log_bytes;
use super::found::Replayed;
use crate::storage::IoCounters;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Count, Ordering};
use std::time::Duration;

/// Running totals, for `Stats`.
#[derive(Default)]
pub(crate) struct Counters {
    /// What the file was asked for.
    pub(crate) io: Arc<IoCounters>,
    pub(crate) commits: Count,
    /// Bytes of keys and values that commits brought.
    pub(crate) user_bytes: Count,
    pub(crate) flushes: Count,
    pub(crate) stalls: Count,
    pub(crate) stall_ns: Count,
    /// What opening found in the log: commits, and the records in them.
    pub(crate) log_commits: Count,
    pub(crate) log_records: Count,
    /// Bytes of the segments of earlier handles' chains, as the newest checkpoint has left them.
    pub(crate) old_log_bytes: Count,
}

impl Counters {
    /// Those of an engine that has replayed logs.
    pub(super) fn of(replayed: &Replayed, io: Arc<IoCounters>) -> Counters {
        Counters {
            io,
            log_commits: Count::new(replayed.commits.len() as u64),
            log_records: Count::new(replayed.records()),
            old_log_bytes: Count::new(old_log_bytes(&replayed.logs)),
            ..Counters::default()
        }
    }

    /// Counts a commit of so many bytes of keys and values.
    pub(super) fn note_commit(&self, user_bytes: u64) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.user_bytes.fetch_add(user_bytes, Ordering::Relaxed);
    }

    /// Counts the time that a writer has waited, if it is long.
    pub(super) fn note_stall(&self, waited: Duration) {
        if waited > Duration::from_millis(1) {
            self.stalls.fetch_add(1, Ordering::Relaxed);
            let ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
            self.stall_ns.fetch_add(ns, Ordering::Relaxed);
        }
    }
}
