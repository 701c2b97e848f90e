//! The engine: everything between the public handles and the file.
//!
//! A lock is a field of the part that it belongs to. They are taken in this order: who changes tables
//! (`Catalog`), who makes room (`Relief`), who flushes (`Flusher`), a checkpoint (`Checkpointer`), commits
//! and those that wait (`Committer`), the background's work (`Background`), the log's `io`, the values'
//! `open` and `queue`, then the leaves (the log's `queue`, space, the page cache's clock, the list of
//! threads).

mod background;
mod batch;
mod bound;
mod build;
mod capture;
mod catalog;
mod checkpoint;
mod chunks;
mod close;
mod commit;
mod compaction;
pub(crate) mod config;
mod cpu_backoff;
mod create;
mod crew;
mod dials;
mod few;
mod flush;
mod flusher;
pub(crate) mod follow;
mod followed;
mod follower;
mod found;
mod freeze;
mod handle;
mod history;
mod idle;
mod ids;
mod indexes;
mod length;
mod logs;
mod memory;
#[cfg(all(test, loom))]
mod models;
mod open;
mod pace;
mod reclaim;
mod relief;
mod relocate;
pub(crate) mod state;
mod sweep;
mod tables;
mod tableset;
#[cfg(all(test, not(loom)))]
mod tests;
mod threads;
mod waste;
mod watch;
pub(crate) mod within;

pub(crate) use batch::{Batch, BatchPart, TableChanges};
pub(crate) use capture::{Capture, Part};
pub use config::{Durability, Freshness};
pub use handle::{Db, Table};
pub(crate) use history::{OwnCommits, ReadSet, Reads, conflict_error, key_mark};
pub(crate) use indexes::{IndexSlot, Indexes};
pub(crate) use memory::default_memtable_bytes;
pub(crate) use open::open;
pub use reclaim::Progress;
pub(crate) use threads::lower_priority;

use crate::base::error::Result;
use crate::base::life::Life;
use crate::base::poison::Poison;
use crate::base::sync::ArcSwap;
use crate::base::sync::atomic::AtomicBool;
use crate::engine::config::Config;
use crate::log::Log;
use crate::run::Store;
use crate::space::{Room, Space};
use crate::storage::{File, IoCounters};
use crate::values::{LargeValue, Segment, ValuePointer, ValueStore};
use background::Background;
use bound::Bound;
use catalog::Catalog;
use checkpoint::Checkpointer;
use commit::Committer;
use compaction::compactor::Compactor;
use flusher::Flusher;
use follower::{Follower, Looked};
use ids::Ids;
use memory::MemoryBudget;
use pace::Pace;
use state::State;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as Count;
use waste::Survey;

/// An open database: the parts, and what ties them together.
///
/// A part has its own locks and counters. What else it needs its methods are given, so that their signatures
/// say what they can touch. What needs several parts at once is a method of the engine.
pub(crate) struct Engine {
    pub(crate) path: PathBuf,
    pub(crate) config: Config,
    pub(crate) hash_seed: u64,
    /// Whether handles may still be used.
    pub(crate) life: Arc<Life>,
    pub(crate) poison: Arc<Poison>,
    pub(crate) counters: Counters,

    // The file.
    pub(crate) file: Arc<dyn File>,
    /// How long the file had to be when it was opened.
    pub(crate) least_bytes: u64,
    pub(crate) io: Arc<IoCounters>,
    pub(crate) space: Arc<Space>,
    pub(crate) room: Arc<Room>,
    pub(crate) store: Store,
    pub(crate) values: Arc<ValueStore>,
    pub(crate) log: Log,

    // What readers see.
    pub(crate) state: ArcSwap<State>,
    /// Whether gets of many keys have waited for the disk of late.
    pub(crate) reads_wait: AtomicBool,
    /// Whether a table may have indexes.
    pub(crate) any_indexes: AtomicBool,

    // The parts.
    catalog: Catalog,
    committer: Committer,
    pub(crate) memory: MemoryBudget,
    pub(crate) pace: Pace,
    flusher: Flusher,
    checkpointer: Checkpointer,
    pub(crate) compactor: Compactor,
    ids: Ids,
    /// How much the file may take.
    bound: Bound,
    relief: relief::Relief,
    background: Background,

    // Where another process may write.
    follower: Option<Follower>,
    looked: Option<Looked>,
}

/// Running totals, for `Stats`.
#[derive(Default)]
pub(crate) struct Counters {
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

impl Engine {
    /// An error if the handle cannot write.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.life.check()?;
        if self.config.read_only { Err(crate::Error::ReadOnly) } else { self.poison.check() }
    }

    /// The value that a reference of `VALUE_POINTER_BYTES` in a state stands for.
    #[inline(always)]
    pub(crate) fn read_large(&self, state: &State, reference: &[u8]) -> Result<LargeValue> {
        self.behind(state).values.read(reference)
    }

    /// Stores a large value for a commit to come.
    pub(crate) fn store_large(&self, value: &[u8]) -> Result<(ValuePointer, Arc<Segment>)> {
        if self.config.read_only {
            return Err(crate::Error::ReadOnly);
        }
        // If not, the commit that refers to the value writes it.
        let _looked_after = self.look_after();
        let _admitted = self.admit_value(value.len())?;
        self.pace_by_space(value.len() as u64);
        let stored = self.values.append(value);
        if self.values.wants_writer() {
            let _later = self.background.crew.need(crew::Role::Values);
        }
        stored
    }

    /// Looks at the runs of the newest state. It keeps all that the state names until it is dropped.
    fn survey(&self) -> Survey<'_> {
        Survey::of(&self.state, &self.values, self.flush_bytes())
    }
}
