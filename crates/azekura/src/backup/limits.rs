//! How long the log of a point comes to be, and how much of it is in memory.

use crate::base::codec::usize_of64;

/// The limits of a point whose log is kept.
#[derive(Clone, Copy)]
pub(super) struct LogLimits {
    /// A log with fewer bytes is not worth another point.
    pub(super) short_bytes: u64,
    /// From so many bytes on another point is begun, and the log is read on until that has taken over. Who
    /// restores a point reads all of its log, and opening the database does so again, with all in memory.
    pub(super) long_bytes: u64,
    /// The same, for the number of logs.
    pub(super) long_logs: usize,
    /// A point ends with so many bytes, though no other has taken over. What comes next is lost to the
    /// repository, until another point has been begun.
    pub(super) end_bytes: u64,
    /// The same, for the number of logs.
    pub(super) end_logs: usize,
    /// What was read is written when it has so many bytes. So much, and one commit, is in memory.
    pub(super) increment_bytes: usize,
}

impl LogLimits {
    pub(super) const USUAL: LogLimits = LogLimits {
        short_bytes: 16 << 20,
        long_bytes: 256 << 20,
        long_logs: 1000,
        end_bytes: 1 << 30,
        end_logs: 2000,
        increment_bytes: 32 << 20,
    };

    /// Limits that a little data reaches. A point has a few logs all the same.
    pub(super) fn divided(self, part: u64) -> LogLimits {
        let bytes = |bytes: u64| bytes.checked_div(part).unwrap_or(bytes).max(1);
        let count = |count: usize| usize_of64(bytes(count as u64));
        LogLimits {
            short_bytes: bytes(self.short_bytes),
            long_bytes: bytes(self.long_bytes),
            long_logs: count(self.long_logs).max(3),
            end_bytes: bytes(self.end_bytes),
            end_logs: count(self.end_logs).max(6),
            increment_bytes: count(self.increment_bytes),
        }
    }
}
