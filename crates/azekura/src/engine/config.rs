//! The options of a database once they are fixed.

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
