//! Chains of the log that earlier handles have left.

use crate::format::manifest::LogChain;
use crate::space::Extent;

/// A chain that recovery has read.
pub(in crate::engine) struct OldLog {
    pub(in crate::engine) chain: LogChain,
    pub(in crate::engine) segments: Vec<Extent>,
    pub(in crate::engine) last_seq: u64,
}

/// Bytes of the file that chains take.
pub(in crate::engine) fn old_log_bytes(logs: &[OldLog]) -> u64 {
    logs.iter().flat_map(|l| &l.segments).map(|s| s.len).sum()
}
