//! The engine: everything between the public handles and the file.
//!
//! Lock order: `changing_tables`, `relieving`, `flushing`, `checkpoint`, `commit`, `waiting`, `work`, the
//! log's `io`, the values' `open` and `queue`, then the leaves (the log's `queue`, space, the page cache's
//! clock, the list of threads).

mod batch;
mod capture;
mod checkpoint;
mod close;
mod commit;
mod compaction;
pub(crate) mod config;
mod cpu_backoff;
mod create;
mod crew;
mod few;
mod flush;
mod found;
mod freeze;
mod handle;
mod history;
mod idle;
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
pub(crate) mod within;

pub(crate) use batch::{Batch, BatchPart};
pub(crate) use capture::{Capture, Part};
pub use config::Durability;
pub use handle::{Db, Table};
pub(crate) use history::{OwnCommits, ReadSet, Reads, key_mark};
pub(crate) use open::open;
pub use reclaim::Progress;
pub(crate) use threads::lower_priority;

use crate::base::error::Result;
use crate::base::life::Life;
use crate::base::poison::Poison;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{ArcSwap, Condvar, Mutex};
use crate::engine::config::Config;
use crate::log::Log;
use crate::memtable::pool::Pool;
use crate::run::Store;
use crate::space::{Room, Space};
use crate::storage::{File, IoCounters};
use crate::values::{LargeValue, Segment, ValuePointer, ValueStore};
use checkpoint::Checkpoint;
use commit::Commit;
use pace::Pace;
use state::State;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as Count;

/// An open database.
pub(crate) struct Engine {
    pub(crate) path: PathBuf,
    /// How long the file had to be when it was opened.
    pub(crate) least_bytes: u64,
    pub(crate) config: Config,
    pub(crate) file: Arc<dyn File>,
    /// Whether handles may still be used.
    pub(crate) life: Arc<Life>,
    pub(crate) io: Arc<IoCounters>,
    pub(crate) store: Store,
    pub(crate) space: Arc<Space>,
    pub(crate) room: Arc<Room>,
    relief: relief::Relief,
    pub(crate) hash_seed: u64,
    pub(crate) values: Arc<ValueStore>,
    pub(crate) log: Log,
    pub(crate) state: ArcSwap<State>,
    pub(crate) poison: Arc<Poison>,
    commit: Mutex<Commit>,
    /// Who merges chunks.
    small_chunk_merges: memory::OneAtATime,
    waiting: Mutex<commit::Waiting>,
    /// Held by whoever flushes.
    flushing: Mutex<()>,
    checkpoint: Mutex<Checkpoint>,
    /// Runs that the state has dropped and the newest durable checkpoint may still name.
    pending_free: Mutex<Vec<checkpoint::PendingFree>>,
    /// Unique numbers for runs and log chains.
    next_id: AtomicU64,
    /// Held by whoever makes, renames or drops tables.
    changing_tables: Mutex<()>,
    names: tables::Names,
    pub(crate) pace: Pace,
    /// How much the file may take.
    bound: sweep::Bound,
    /// Bytes of the records of small tables, which stand in the manifest and in memory.
    few_bytes: Count,
    /// Memtables have held more than a little since memory was last given back.
    loading: AtomicBool,
    cpu_backoff: cpu_backoff::CpuBackoff,
    /// Whether gets of many keys have waited for the disk of late.
    pub(crate) reads_wait: AtomicBool,
    crew: crew::Crew,
    /// What the background threads wait for.
    work: Mutex<threads::Work>,
    work_changed: Condvar,
    stop: AtomicBool,
    /// Set under the commit lock when closing begins: nothing is committed from then on.
    closed: AtomicBool,
    pub(crate) counters: Counters,
    /// The memory of chunks that were flushed, for those to come.
    pub(crate) pool: Arc<Pool>,
}

/// Running totals, for `Stats`.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) commits: Count,
    /// Bytes of keys and values that commits brought.
    pub(crate) user_bytes: Count,
    pub(crate) flushes: Count,
    pub(crate) merges: Count,
    /// Records that merges have read.
    pub(crate) merged_records: Count,
    pub(crate) merge_ns: Count,
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
    fn of(replayed: &found::Replayed) -> Counters {
        Counters {
            log_commits: Count::new(replayed.commits.len() as u64),
            log_records: Count::new(replayed.records()),
            old_log_bytes: Count::new(checkpoint::old_log_bytes(&replayed.logs)),
            ..Counters::default()
        }
    }
}

impl Engine {
    pub(crate) fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// An error if the handle cannot write.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.life.check()?;
        if self.config.read_only { Err(crate::Error::ReadOnly) } else { self.poison.check() }
    }

    /// The value that a reference of `VALUE_POINTER_BYTES` stands for.
    pub(crate) fn read_large(&self, reference: &[u8]) -> Result<LargeValue> {
        self.values.read(reference)
    }

    /// Stores a large value for a commit to come.
    pub(crate) fn store_large(&self, value: &[u8]) -> Result<(ValuePointer, Arc<Segment>)> {
        // If not, what is stored is waited for, and written, by whoever commits it.
        let _looked_after = self.look_after();
        let _admitted = self.admit_value(value.len())?;
        self.pace_by_space(value.len() as u64);
        let stored = self.values.append(value);
        if self.values.wants_writer() {
            let _later = self.need(crew::Role::Values);
        }
        stored
    }

    /// An error once closing has begun. REQUIRES: the commit lock, else a commit may still follow.
    fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(crate::Error::Closed) } else { Ok(()) }
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}
