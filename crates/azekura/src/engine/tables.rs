//! Making, renaming and dropping tables.
//!
//! Tables are made by a commit, any number at once. The log has their names until a manifest does. So
//! making one costs what a durable commit costs, however many there are. The manifest's `tables_seq` says
//! which commits of the log it knows.
//!
//! A transaction makes, renames and drops them by its commit, too, and says how long their records live. That
//! is durable before anybody sees it, whatever the transaction's durability is: so a manifest that knows of
//! it never stands without its records.
//! What was dropped keeps its place in the file until the next checkpoint, which follows at once.
//!
//! Renaming and dropping outside of transactions are a checkpoint each, after a sync, so that earlier commits
//! are durable. The checkpoint comes first, and then the state: a full disk has changed nothing.

use super::batch::Batch;
use super::catalog::{check_name, check_shown};
use super::changes::{TableChanges, dropped};
use super::checkpoint::Checkpoints;
use super::commit::CommitSteps;
use super::commits::Commits;
use super::history::conflict_error;
use super::state::{State, TableState};
use crate::base::clock::Clock;
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::base::sync::MutexGuard;
use crate::format::frame::{NewTable, TableChange};
use std::cell::RefCell;
use std::collections::HashSet;

/// Makes, renames and drops tables, and makes indexes (`indexes.rs`).
pub(crate) struct TableChanger<'a> {
    pub(super) commits: &'a dyn Commits,
    pub(super) steps: CommitSteps<'a>,
    pub(super) checkpoints: Checkpoints<'a>,
    pub(super) clock: &'a Clock,
}

impl<'a> TableChanger<'a> {
    /// Nobody makes, renames or drops tables while this is held.
    pub(crate) fn keep(&self) -> MutexGuard<'a, ()> {
        self.steps.catalog.changing.lock()
    }

    /// Makes tables, all or none. Gives the id of the first, and the others' follow. `ttl_ms`: how long their
    /// records live; 0: until they are removed.
    pub(crate) fn create(&self, wanted: &[(&str, TableKind)], ttl_ms: u64) -> Result<u32> {
        let (first, commit) = self.make(wanted, ttl_ms)?;
        commit.map_or(Ok(()), |commit| self.commits.wait_for_mirrors(commit))?;
        Ok(first)
    }

    /// The id of the first, and the commit.
    fn make(&self, wanted: &[(&str, TableKind)], ttl_ms: u64) -> Result<(u32, Option<u64>)> {
        self.commits.check_writable()?;
        let _changing = self.keep();
        let catalog = self.steps.catalog;
        let mut seen = HashSet::with_capacity(wanted.len());
        for &(name, _) in wanted {
            check_name(name)?;
            check_shown(name)?;
            catalog.check_free(name)?;
            if !seen.insert(name) {
                return Err(Error::TableExists { name: name.into() });
            }
        }
        let first = catalog.reserve_ids(&self.checkpoints.state.load(), wanted.len())?;
        let made = (first..).zip(wanted);
        let made: Vec<TableChange> = made
            .map(|(id, &(name, kind))| TableChange::Made(NewTable { id, kind, name: name.into(), ttl_ms }))
            .collect();
        catalog.note_lifetime(ttl_ms, self.clock);
        if made.is_empty() {
            return Ok((first, None));
        }
        let tables = || TableChanges::of(made.clone());
        let batch = || Batch { tables: tables(), durable: true, ..Batch::default() };
        let commit = self.commits.commit_created(&batch)?;
        Ok((first, Some(commit)))
    }

    /// The id of a table that a transaction is to make. No other table gets it.
    pub(crate) fn reserve(&self) -> Result<u32> {
        self.steps.catalog.reserve_ids(&self.checkpoints.state.load(), 1)
    }

    /// Whether a table may have this name.
    pub(crate) fn check_new_name(&self, name: &str) -> Result<()> {
        self.commits.check_writable()?;
        check_name(name)?;
        check_shown(name)
    }

    /// Commits a transaction that changes tables. Those that it drops take their indexes along.
    pub(crate) fn commit(&self, mut batch: Batch) -> Result<u64> {
        let _changing = self.keep();
        let state = self.checkpoints.state.load_full();
        let tables = dropped(batch.changes()).filter_map(|id| state.tables.get(id));
        let slots = tables.flat_map(|table| table.indexes.iter().flat_map(|list| list.iter()));
        let slots = slots.filter(|slot| dropped(batch.changes()).all(|id| id != slot.id));
        let indexes: Vec<TableChange> = slots.map(|slot| TableChange::Dropped(slot.id)).collect();
        drop(state);
        if let Some(changes) = &mut batch.tables {
            changes.list.splice(0..0, indexes);
        }
        let gone: HashSet<u32> = dropped(batch.changes()).collect();
        batch.parts.retain(|part| !gone.contains(&part.table));
        batch
            .changes()
            .iter()
            .for_each(|change| self.steps.catalog.note_lifetime(change.ttl_ms(), self.clock));
        batch.durable = true;
        let seq = self.commits.commit(batch)?;
        if !gone.is_empty() {
            // It is committed, whatever becomes of this. Without room for a checkpoint the space is free
            // after the next one: that of a flush a second later, or of a writer that needs room. After any
            // other error the handle is poisoned, and says so from then on.
            let _later = self.checkpoints.write_if_open();
        }
        Ok(seq)
    }

    /// Readers of the feed are told what becomes of a table, and that is a commit's business.
    fn expect_unfed(&self, table: u32, name: &str) -> Result<()> {
        if self.steps.feed.is_fed(table) { Err(conflict_error(name)) } else { Ok(()) }
    }

    /// Gives a table another name. A conflict if it is fed: then a transaction does that.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.commits.check_writable()?;
        check_name(to)?;
        check_shown(to)?;
        let _changing = self.keep();
        self.commits.sync_and_look_after()?;
        let catalog = self.steps.catalog;
        let rename = |state: &State| {
            let id = catalog.shown_table(state, from)?.id;
            catalog.check_free(to)?;
            self.expect_unfed(id, from)?;
            Ok(move |state: &State| match state.tables.get(id) {
                Some(table) => state.with_table(TableState { name: to.into(), ..TableState::clone(table) }),
                None => state.copy(),
            })
        };
        self.checkpoints.write_tables(rename, |_, _| {
            if let Some(id) = catalog.names.get(from) {
                catalog.names.insert(to.into(), id);
                catalog.names.remove(from);
            }
        })
    }

    /// Removes a table, and its indexes. Its space is free once the readers that see it are gone. A conflict
    /// if it is fed: then a transaction does that.
    pub(crate) fn drop_table(&self, name: &str) -> Result<()> {
        self.remove(|state| {
            let table = self.steps.catalog.shown_table(state, name)?;
            self.expect_unfed(table.id, name)?;
            let indexes = table.indexes.iter().flat_map(|list| list.iter()).map(|slot| slot.id);
            Ok(std::iter::once(table.id).chain(indexes).collect())
        })
    }

    /// Removes the hidden table of an index.
    pub(crate) fn drop_index(&self, id: u32) -> Result<()> {
        self.remove(|state| state.table(id).map(|table| vec![table.id]))
    }

    /// As `drop_index`, unless `stays` says otherwise of the newest state, in which no table changes
    /// meanwhile. Gives what it said.
    pub(crate) fn drop_index_unless(
        &self,
        id: u32,
        stays: impl FnOnce(&State) -> Result<bool>,
    ) -> Result<bool> {
        let mut kept = false;
        self.remove(|state| {
            kept = stays(state)?;
            Ok(if kept { Vec::new() } else { vec![state.table(id)?.id] })
        })?;
        Ok(kept)
    }

    /// Removes the tables that are found.
    fn remove(&self, find: impl FnOnce(&State) -> Result<Vec<u32>>) -> Result<()> {
        self.commits.check_writable()?;
        let _changing = self.keep();
        self.commits.sync_and_look_after()?;
        let gone = RefCell::new(Vec::new());
        let remove = |state: &State| {
            let ids = find(state)?;
            gone.borrow_mut().clone_from(&ids);
            Ok(move |state: &State| state.without_tables(&ids, true))
        };
        self.checkpoints.write_tables(remove, |commit, before| {
            self.steps.tables_were_removed(commit, before, &gone.borrow());
        })
    }
}
