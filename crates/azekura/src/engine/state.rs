//! What readers see: an immutable description of every table, swapped as a whole.
//!
//! A reader loads the state and then its `visible` number. Commits up to that number are in the state.
//! Later ones are not in its chunks and runs, and carry a higher number in its active buffers. A change of
//! structure makes a new state with a `visible` of its own, under the commit lock. So an old state stays at
//! the snapshot that its readers took, and no chunk and no run needs sequence numbers.

mod level;
mod readers;
mod table;

pub(crate) use level::Level;
pub(super) use level::look;
pub(super) use readers::{ReadBy, note_commit};
pub(super) use table::ACTIVE_BYTES_MAX;
pub(crate) use table::{ActiveBuf, TableState};

use super::dials::Dials;
use super::tableset::Tables;
use crate::base::error::{Error, Result};
use crate::base::sync::ArcSwap;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::storage::Lease;
use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

/// All tables at one moment.
pub(crate) struct State {
    pub(crate) visible: AtomicU64,
    pub(crate) tables: Tables,
    /// Every commit up to here is in runs.
    pub(crate) flushed_seq: u64,
    /// Every commit up to here is in runs or frozen.
    pub(crate) frozen_seq: u64,
    /// The tables whose memtables wait for a flush, or are being flushed. None if nothing does.
    pub(crate) frozen: Option<Arc<[u32]>>,
    /// The id of the next table. All ids that were ever given are below it.
    pub(crate) next_table: u32,
    /// The last commit that has changed the tables, and the last one that has done so beside other changes.
    pub(crate) tables_seq: u64,
    pub(crate) joint_seq: u64,
    /// Where runs are read in the file's mapping: who holds the state may read them there. None once the
    /// database is closed.
    pub(crate) lease: Option<Arc<Lease>>,
    /// In a follower, what it has found in the file (`Followed`). That has an engine of its own, whose state
    /// this is. So it cannot be named here.
    pub(crate) followed: Option<Arc<dyn Any + Send + Sync>>,
    /// Why a follower could not find what is newest. Such a state has no tables.
    pub(crate) failure: Option<Arc<Error>>,
}

impl State {
    /// No tables yet, and everything up to a commit in runs.
    pub(crate) fn new(flushed_seq: u64) -> State {
        State {
            visible: AtomicU64::new(flushed_seq),
            tables: Tables::default(),
            flushed_seq,
            frozen_seq: flushed_seq,
            frozen: None,
            next_table: 1,
            tables_seq: 0,
            joint_seq: 0,
            lease: None,
            followed: None,
            failure: None,
        }
    }

    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// Makes commit `seq` visible here. REQUIRES: the commit lock; the active buffers have it already.
    pub(super) fn show(&self, seq: u64) {
        self.visible.store(seq, Ordering::Release);
    }

    /// The table of an id, unless it was dropped.
    #[inline(always)]
    pub(crate) fn table(&self, id: u32) -> Result<&Arc<TableState>> {
        self.tables.get(id).ok_or_else(|| self.missing(id))
    }

    #[cold]
    fn missing(&self, id: u32) -> Error {
        self.failure.as_deref().cloned().unwrap_or_else(|| dropped(id))
    }

    /// Whether memtables wait for a flush, or are being flushed.
    pub(crate) fn has_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// The tables whose memtables wait for a flush, or are being flushed.
    pub(crate) fn frozen_tables(&self) -> impl Iterator<Item = &Arc<TableState>> {
        self.frozen.iter().flat_map(|ids| ids.iter()).filter_map(|&id| self.tables.get(id))
    }

    /// The dials of a table. Nobody reads one that was dropped.
    pub(super) fn dials(&self, table: u32) -> &'static Dials {
        Dials::of(self.table(table).is_ok_and(|t| t.is_read()))
    }

    /// Who has looked into the memtables of any table lately.
    pub(super) fn read_by(&self) -> ReadBy {
        self.tables.iter().map(|t| t.read_by()).max().unwrap_or_default()
    }

    /// A copy with one table replaced.
    pub(crate) fn with_table(&self, table: TableState) -> State {
        let mut next = self.copy();
        next.tables.set(table);
        next
    }

    /// A copy without some tables. `detaches`: nor are they in the lists of indexes.
    pub(crate) fn without_tables(&self, gone: &[u32], detaches: bool) -> State {
        let mut next = self.copy();
        gone.iter().for_each(|&id| next.tables.remove(id));
        if detaches {
            let named = |&id: &u32| self.tables.get(id).map(|table| (id, &*table.name));
            next.detach_indexes(gone.iter().filter_map(named));
        }
        let all: HashSet<u32> = gone.iter().copied().collect();
        let left: Vec<u32> =
            self.frozen.iter().flat_map(|ids| ids.iter().copied()).filter(|f| !all.contains(f)).collect();
        next.frozen = (!left.is_empty()).then(|| left.into());
        next
    }

    /// A copy, to be changed before anybody sees it.
    pub(crate) fn copy(&self) -> State {
        State {
            visible: AtomicU64::new(self.visible()),
            tables: self.tables.clone(),
            flushed_seq: self.flushed_seq,
            frozen_seq: self.frozen_seq,
            frozen: self.frozen.clone(),
            next_table: self.next_table,
            tables_seq: self.tables_seq,
            joint_seq: self.joint_seq,
            lease: self.lease.clone(),
            followed: self.followed.clone(),
            failure: self.failure.clone(),
        }
    }
}

fn dropped(id: u32) -> Error {
    Error::NoSuchTable { name: format!("(dropped table {id})") }
}

/// Makes commit `seq` visible, all of it at once: by the next state, or in the one there is, whose active
/// buffers have it already. REQUIRES: the commit lock.
pub(super) fn publish(cell: &ArcSwap<State>, seq: u64, next: Option<State>) {
    match next {
        Some(state) => {
            state.show(seq);
            cell.store(Arc::new(state));
        }
        None => cell.load().show(seq),
    }
}
