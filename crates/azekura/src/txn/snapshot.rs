//! The state that a read transaction looks into: the one that it began with, or a later one of the same
//! contents.
//!
//! Without this, a transaction that reads for long would go on searching the memtable and the many runs that
//! it met at first, whatever was flushed and merged since. As long as nobody commits anything, the engine's
//! state has the same contents as the transaction's, in fewer places. Then the transaction takes it over.

use crate::base::error::Result;
use crate::engine::Engine;
use crate::engine::state::{State, TableState};
use std::cell::{Cell, OnceCell};
use std::sync::Arc;

/// Each takeover halves the places of a table at least, so that few are enough.
const TAKEOVERS: usize = 6;
/// Lookups in several places between two looks at the engine's state.
const LOOKS: u32 = 1024;

pub(crate) struct Snapshot {
    first: Arc<State>,
    /// The states taken over. All are kept as long as the transaction, for what it gave out borrows from
    /// them.
    later: OnceCell<Box<[OnceCell<Arc<State>>; TAKEOVERS]>>,
    taken: Cell<usize>,
    lookups: Cell<u32>,
    /// Commits up to this one are seen.
    seq: u64,
}

impl Snapshot {
    pub(crate) fn new(first: Arc<State>, seq: u64) -> Snapshot {
        Snapshot { first, later: OnceCell::new(), taken: Cell::new(0), lookups: Cell::new(0), seq }
    }

    #[inline(always)]
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// The state to look into.
    #[inline(always)]
    pub(crate) fn state(&self) -> &Arc<State> {
        match self.taken.get() {
            0 => &self.first,
            n => self.later.get().and_then(|later| later.get(n - 1)?.get()).unwrap_or(&self.first),
        }
    }

    /// A table of `state`, or what it has become in a state that was taken over, for a lookup.
    #[inline(always)]
    pub(crate) fn newer<'a>(
        &'a self,
        table: &'a Arc<TableState>,
        engine: &Engine,
    ) -> Result<&'a Arc<TableState>> {
        if table.levels.len() <= 1 && table.chunks.is_empty() && table.frozen.is_empty() {
            return Ok(table);
        }
        self.lookups.set(self.lookups.get().wrapping_add(1));
        if self.lookups.get().is_multiple_of(LOOKS) { self.look(engine, table.id) } else { Ok(table) }
    }

    /// Takes the engine's state over if it has the same contents, and the table in half the places.
    #[cold]
    fn look(&self, engine: &Engine, id: u32) -> Result<&Arc<TableState>> {
        let (mine, now) = (self.state(), engine.state.load_full());
        // Each followed state has value segments of its own, and what was found in one is resolved in it. And
        // merges may have dropped what has expired since this transaction began.
        if mine.followed.is_some() || engine.config.clock.is_used() {
            return mine.table(id);
        }
        let better = now.table(id).is_ok_and(|t| 2 * places(t) <= mine.table(id).map_or(0, |m| places(m)));
        if better && now.visible() == self.seq && same_tables(mine, &now) {
            let taken = self.taken.get();
            let later = self.later.get_or_init(Box::default);
            if later.get(taken).is_some_and(|slot| slot.set(now).is_ok()) {
                self.taken.set(taken + 1);
            }
        }
        self.state().table(id)
    }
}

/// In how many places a lookup may look.
fn places(table: &TableState) -> usize {
    table.levels.len() + table.frozen.len() + table.chunks.len() + usize::from(table.active.is_some())
}

/// Whether no table was made, dropped or renamed. These are not seen by the number of a commit.
fn same_tables(a: &State, b: &State) -> bool {
    a.tables.are_named_as(&b.tables)
}
