//! The options of a database once they are fixed, and how its memory is divided.

use crate::base::codec::usize_of64;
use crate::base::limits::SEGMENT_BYTES;
use crate::run::Buffers;
use std::time::Duration;

/// When a commit survives a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When `commit` returns.
    #[default]
    Sync,
    /// Within the eventual delay (a second, if not set otherwise), or when [`Db::sync`](crate::Db::sync)
    /// returns. A crash never tears such a commit and never keeps a later one without an earlier one.
    Eventual,
}

/// The options once they are fixed.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) create: bool,
    pub(crate) exclusive: bool,
    pub(crate) read_only: bool,
    pub(crate) memory_bytes: u64,
    pub(crate) memtable_bytes: u64,
    pub(crate) durability: Durability,
    pub(crate) eventual_delay: Duration,
    pub(crate) large_value_bytes: usize,
    pub(crate) background_merges: bool,
    pub(crate) mapped: bool,
    pub(crate) threads: bool,
}

impl Config {
    /// What the page cache has, where there is one: what memtables and merges leave at their largest.
    pub(crate) fn cache_bytes(&self) -> u64 {
        let elsewhere = self.memtable_bytes * 7 / 2 + self.buffer_bytes();
        self.memory_bytes.saturating_sub(elsewhere).max(self.memory_bytes / 4)
    }

    /// For the buffers of merges and of large values.
    fn buffer_bytes(&self) -> u64 {
        (self.memory_bytes / 8).min(48 << 20)
    }

    /// The buffers of merges: each reads some ten or twenty runs and writes one.
    pub(crate) fn buffers(&self) -> Buffers {
        let write = 1 << (self.buffer_bytes() / 8).max(1).ilog2();
        let write = usize_of64(write).clamp(SEGMENT_BYTES / 16, SEGMENT_BYTES);
        Buffers { read: write / 4, write }
    }
}
