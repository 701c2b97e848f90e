//! The engine: everything between the public handles and the file.
//!
//! A lock is a field of the part that it belongs to. `Rank` (`base/sync.rs`) has their order, which builds
//! for tests check. ARCHITECTURE.md says what each guards.

mod background;
mod batch;
mod bound;
mod build;
mod capture;
mod catalog;
mod changes;
mod checkpoint;
mod chunks;
mod close;
mod commit;
mod commits;
mod compaction;
pub(crate) mod config;
mod counters;
mod cpu_backoff;
mod create;
mod crew;
mod dials;
mod fed;
mod feed;
mod few;
mod flush;
mod flusher;
pub(crate) mod follow;
mod followed;
mod follower;
mod found;
mod freeze;
mod gathered;
mod handle;
mod history;
mod idle;
mod ids;
mod indexes;
mod length;
mod load;
mod logs;
mod memory;
mod mirrored;
#[cfg(all(test, loom))]
mod models;
mod open;
mod operators;
mod pace;
mod reclaim;
mod relief;
mod relocate;
pub(crate) mod state;
mod sweep;
mod tables;
mod tableset;
mod tasks;
#[cfg(all(test, not(loom)))]
mod tests;
mod threads;
mod waste;
mod watch;
pub(crate) mod within;

pub(crate) use batch::{Again, Batch, BatchPart, Refused};
pub(crate) use capture::{
    Capture, CapturePart, Increment, IncrementPlace, LogSince, Reading, SealedIncrement,
};
pub(crate) use changes::TableChanges;
pub use config::{Durability, Freshness};
pub(crate) use fed::FeedTally;
pub(crate) use feed::{no_feed, now_ms};
pub(crate) use follower::honoured_from;
pub(crate) use found::{Admission, Newest, read_manifest, read_newest};
pub(crate) use gathered::Gathered;
pub use handle::{Db, Table};
pub(crate) use history::{OwnCommits, ReadSet, Reads, conflict_error, key_mark};
pub(crate) use indexes::{IndexSlot, Indexes};
pub(crate) use length::{Length, named_bytes};
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
use crate::space::Space;
use crate::values::{LargeValue, Segment, ValuePointer, ValueStore};
use background::Background;
use bound::Bound;
use catalog::Catalog;
use checkpoint::Checkpointer;
use commit::Committer;
use compaction::compactor::Compactor;
use counters::Counters;
use crew::Role;
use fed::Feeding;
use flusher::Flusher;
use follower::Following;
use ids::Ids;
use memory::MemoryBudget;
use mirrored::Mirrored;
use pace::Pace;
use state::{State, TableState};
use std::path::PathBuf;
use std::sync::Arc;

/// What opening has found of the file itself.
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    /// Whether the file is a mirror of another one.
    pub(crate) is_mirror: bool,
    /// How long the file had to be.
    pub(crate) least_bytes: u64,
}

/// An open database: the parts, and what ties them together.
///
/// A part has its own locks and counters. What else it needs its methods are given, so that their signatures
/// say what they can touch. The parts that live for one task are filled in `tasks.rs`. A method of the engine
/// needs several parts, and is a short story of named steps.
pub(crate) struct Engine {
    pub(crate) opened: Opened,
    pub(crate) config: Config,
    /// Whether handles may still be used.
    pub(crate) life: Arc<Life>,
    pub(crate) poison: Arc<Poison>,
    pub(crate) counters: Counters,

    // The file. `store` has it, and its room.
    pub(crate) space: Arc<Space>,
    pub(crate) store: Store,
    pub(crate) values: Arc<ValueStore>,
    pub(crate) log: Log,

    // What readers see.
    pub(crate) state: ArcSwap<State>,
    /// Whether gets of many keys have waited for the disk of late.
    pub(crate) reads_wait: AtomicBool,
    /// Which tables are fed.
    pub(crate) feed: Feeding,

    // The parts.
    pub(crate) catalog: Catalog,
    pub(crate) committer: Committer,
    pub(crate) memory: MemoryBudget,
    pub(crate) pace: Pace,
    flusher: Flusher,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) compactor: Compactor,
    ids: Ids,
    /// How much the file may take.
    bound: Bound,
    relief: relief::Relief,
    background: Background,
    pub(crate) mirrored: Mirrored,

    /// Whether another process may write the file.
    following: Following,
}

impl Engine {
    /// An error if the handle cannot write.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.life.check()?;
        self.config.check_writable()?;
        self.poison.check()
    }

    /// Flushes everything committed so far and waits for it.
    pub(crate) fn flush(&self) -> Result<()> {
        self.flushing().flush()
    }

    /// See `Syncer::sync`.
    pub(crate) fn sync(&self) -> Result<()> {
        self.syncer().sync()
    }

    /// As `sync`, and waits for synchronous mirrors.
    pub(crate) fn sync_mirrored(&self) -> Result<()> {
        let newest = self.state.load().visible();
        self.sync()?;
        if self.config.read_only || !self.mirrored.sync_waits(newest) {
            return Ok(());
        }
        self.log.vouch();
        self.mirror_wait().wait_for(newest)
    }

    /// Waits until the synchronous mirrors have a commit that is durable here. REQUIRES: the caller holds no
    /// lock.
    ///
    /// # Errors
    /// `MirrorBehind`, if a mirror is required.
    #[inline]
    pub(crate) fn wait_for_mirrors(&self, commit: u64) -> Result<()> {
        if self.mirrored.is_waited_for() { self.mirror_wait().wait_for(commit) } else { Ok(()) }
    }

    /// See `Reclaimer::compact`.
    pub(crate) fn compact(&self) -> Result<()> {
        self.look_after();
        self.reclaimer().compact()
    }

    /// See `Reclaimer::shrink`.
    pub(crate) fn shrink(&self, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        self.check_writable()?;
        self.look_after();
        self.reclaimer().shrink(progress)
    }

    /// Called before anything is changed. See `Background::look_after`.
    #[inline(always)]
    fn look_after(&self) -> bool {
        self.store.pages.note_changes();
        self.background.look_after(&self.store.room)
    }

    /// The newest commit that is durable, of those that `state` shows.
    pub(crate) fn durable_of(&self, state: &State) -> u64 {
        let visible = state.visible();
        // What another process has committed is seen when it is durable.
        if self.config.read_only { visible } else { visible.min(self.log.durable_seq()) }
    }

    /// The table that has a name now, or as a follower sees it.
    pub(crate) fn table_now(&self, name: &str) -> Result<Arc<TableState>> {
        let state = self.newest()?;
        self.behind(&state).catalog.shown_table(&state, name).cloned()
    }

    /// The value that a reference of `VALUE_POINTER_BYTES` in a state stands for.
    #[inline(always)]
    pub(crate) fn read_large(&self, state: &State, reference: &[u8]) -> Result<LargeValue> {
        self.behind(state).values.read(reference)
    }

    /// Stores a large value for a commit to come. `frees`: the commit makes room in the end.
    pub(crate) fn store_large(&self, value: &[u8], frees: bool) -> Result<(ValuePointer, Arc<Segment>)> {
        self.config.check_writable()?;
        // If not, the commit that refers to the value writes it.
        let _looked_after = self.look_after();
        let _admitted = self.admit_value(value.len(), frees)?;
        self.pace_by_space(value.len() as u64);
        let stored = self.values.append(value);
        if self.values.wants_writer() {
            let _later = self.background.crew.need(Role::Values);
        }
        stored
    }
}
