//! Making, renaming and dropping tables.
//!
//! Tables are made by a commit, any number at once. The log has their names until a manifest does. So
//! making one costs what a durable commit costs, however many there are. The manifest's `tables_seq` says
//! which commits of the log it knows.
//!
//! A transaction makes, renames and drops them by its commit, too. That is durable before anybody sees it,
//! whatever the transaction's durability is: so a manifest that knows of it never stands without its records.
//! What was dropped keeps its place in the file until the next checkpoint, which follows at once.
//!
//! Renaming and dropping outside of transactions are a checkpoint each, after a sync, so that earlier commits
//! are durable. The checkpoint comes first, and then the state: a full disk has changed nothing.

use super::Engine;
use super::batch::Batch;
use super::catalog::{check_name, check_shown};
use super::changes::{TableChanges, dropped};
use super::checkpoint::PendingFree;
use super::commit::Commit;
use super::history::conflict_error;
use super::state::{State, TableState};
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::format::frame::{NewTable, TableChange};
use crate::format::hidden::is_hidden;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

impl Engine {
    /// Makes tables, all or none. Gives the id of the first, and the others' follow. `ttl_ms`: how long their
    /// records live; 0: until they are removed.
    pub(crate) fn create_tables(&self, wanted: &[(&str, TableKind)], ttl_ms: u64) -> Result<u32> {
        let (first, commit) = self.make_tables(wanted, ttl_ms)?;
        commit.map_or(Ok(()), |commit| self.wait_for_mirrors(commit))?;
        Ok(first)
    }

    /// The id of the first, and the commit.
    fn make_tables(&self, wanted: &[(&str, TableKind)], ttl_ms: u64) -> Result<(u32, Option<u64>)> {
        self.check_writable()?;
        let _changing = self.catalog.changing.lock();
        let mut seen = HashSet::with_capacity(wanted.len());
        for &(name, _) in wanted {
            check_name(name)?;
            check_shown(name)?;
            self.check_free(name)?;
            if !seen.insert(name) {
                return Err(Error::TableExists { name: name.into() });
            }
        }
        let first = self.catalog.reserve_ids(&self.state.load(), wanted.len())?;
        let made = (first..).zip(wanted);
        let made: Vec<TableChange> = made
            .map(|(id, &(name, kind))| TableChange::Made(NewTable { id, kind, name: name.into(), ttl_ms }))
            .collect();
        self.note_lifetime(ttl_ms);
        if made.is_empty() {
            return Ok((first, None));
        }
        let tables = || TableChanges::of(made.clone());
        let commit = self.commit_created(|| Batch { tables: tables(), durable: true, ..Batch::default() })?;
        Ok((first, Some(commit)))
    }

    /// The id of a table that a transaction is to make. No other table gets it.
    pub(crate) fn reserve_table(&self) -> Result<u32> {
        self.catalog.reserve_ids(&self.state.load(), 1)
    }

    /// Whether a table may have this name.
    pub(crate) fn check_new_name(&self, name: &str) -> Result<()> {
        self.check_writable()?;
        check_name(name)?;
        check_shown(name)
    }

    /// Commits a transaction that changes tables. Those that it drops take their indexes along.
    pub(crate) fn commit_tables(&self, mut batch: Batch) -> Result<u64> {
        let _changing = self.catalog.changing.lock();
        let state = self.state.load_full();
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
        batch.durable = true;
        let seq = self.commit(batch)?;
        if !gone.is_empty() {
            // It is committed, whatever becomes of this. Without room for a checkpoint the space is free
            // after the next one: that of a flush a second later, or of a writer that needs room. After any
            // other error the handle is poisoned, and says so from then on.
            let _later = self.checkpoints().write_if_open();
        }
        Ok(seq)
    }

    /// Commits a batch that makes tables.
    pub(super) fn commit_created(&self, batch: impl Fn() -> Batch) -> Result<u64> {
        self.store.bulk.unnoted(|| match self.commit(batch()) {
            // With what the log has in the manifest, the log has room again.
            Err(Error::NoSpace { .. }) => self.flush().and_then(|()| self.commit(batch())),
            done => done,
        })
    }

    /// Readers of the feed are told what becomes of a table, and that is a commit's business.
    fn expect_unfed(&self, table: u32, name: &str) -> Result<()> {
        if self.feed.is_fed(table) { Err(conflict_error(name)) } else { Ok(()) }
    }

    /// Gives a table another name. A conflict if it is fed: then a transaction does that.
    pub(crate) fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.check_writable()?;
        check_name(to)?;
        check_shown(to)?;
        self.look_after();
        let _changing = self.catalog.changing.lock();
        self.sync()?;
        let rename = |state: &State| {
            let id = self.shown_table(state, from)?.id;
            self.check_free(to)?;
            self.expect_unfed(id, from)?;
            Ok(move |state: &State| match state.tables.get(id) {
                Some(table) => state.with_table(TableState { name: to.into(), ..TableState::clone(table) }),
                None => state.copy(),
            })
        };
        self.checkpoint_tables(rename, |_, _| {
            if let Some(id) = self.catalog.names.get(from) {
                self.catalog.names.insert(to.into(), id);
                self.catalog.names.remove(from);
            }
        })
    }

    /// Removes a table, and its indexes. Its space is free once the readers that see it are gone. A conflict
    /// if it is fed: then a transaction does that.
    pub(crate) fn drop_table(&self, name: &str) -> Result<()> {
        self.drop_tables(|state| {
            let table = self.shown_table(state, name)?;
            self.expect_unfed(table.id, name)?;
            let indexes = table.indexes.iter().flat_map(|list| list.iter()).map(|slot| slot.id);
            Ok(std::iter::once(table.id).chain(indexes).collect())
        })
    }

    /// Removes the hidden table of an index.
    pub(crate) fn drop_index(&self, id: u32) -> Result<()> {
        self.drop_tables(|state| state.table(id).map(|table| vec![table.id]))
    }

    /// As `drop_index`, unless `stays` says otherwise of the newest state, in which no table changes
    /// meanwhile. Gives what it said.
    pub(crate) fn drop_index_unless(
        &self,
        id: u32,
        stays: impl FnOnce(&State) -> Result<bool>,
    ) -> Result<bool> {
        let mut kept = false;
        self.drop_tables(|state| {
            kept = stays(state)?;
            Ok(if kept { Vec::new() } else { vec![state.table(id)?.id] })
        })?;
        Ok(kept)
    }

    fn drop_tables(&self, find: impl FnOnce(&State) -> Result<Vec<u32>>) -> Result<()> {
        self.check_writable()?;
        self.look_after();
        let _changing = self.catalog.changing.lock();
        self.sync()?;
        let gone = RefCell::new(Vec::new());
        let remove = |state: &State| {
            let ids = find(state)?;
            gone.borrow_mut().clone_from(&ids);
            Ok(move |state: &State| state.without_tables(&ids, true))
        };
        self.checkpoint_tables(remove, |commit, before| {
            self.life.note_dropped();
            for table in gone.borrow().iter().filter_map(|&id| before.tables.get(id)) {
                self.catalog.gone.add(table.id, before.name_when_gone(table.id));
                self.catalog.names.remove(&table.name);
                self.forget_table(commit, table);
                // No durable checkpoint names them any more. Recovery passes over the log's records of
                // unknown tables, so values may go too.
                table.levels.iter().flat_map(|l| &l.runs).for_each(|run| run.free_on_drop());
            }
            self.note_memory(commit);
        })
    }

    /// Lets go of what a commit has dropped. The newest checkpoint names its runs, and the log behind that
    /// refers to its large values. The rest of its memory goes with the next checkpoint too, when nobody
    /// waits for it. `at_once`: it goes now. (A log may make and drop very many tables.)
    pub(super) fn tables_are_gone(&self, commit: &mut Commit, before: &State, gone: &[u32], at_once: bool) {
        if gone.is_empty() {
            return;
        }
        self.life.note_dropped();
        for table in gone.iter().filter_map(|&id| before.tables.get(id)) {
            self.catalog.gone.add(table.id, before.name_when_gone(table.id));
            self.forget_table(commit, table);
            let runs = table.levels.iter().flat_map(|l| &l.runs).cloned();
            self.checkpointer.free_later(runs.map(PendingFree::whole));
            if !at_once {
                self.checkpointer.free_later([PendingFree::memory(table.clone())]);
                continue;
            }
            let segments = table.segments();
            let held = (!segments.is_empty()).then(|| PendingFree::memory(Arc::new(segments)));
            self.checkpointer.free_later(held);
        }
        self.note_memory(commit);
    }

    /// A table is in no state any more, and its memory no part of the memtables.
    fn forget_table(&self, commit: &mut Commit, table: &TableState) {
        self.memory.count_few(Some(table), None);
        self.operators.forget(table.id);
        commit.live_bytes -= table.live_bytes().min(commit.live_bytes);
    }

    /// What memtables hold, after tables have gone.
    fn note_memory(&self, commit: &Commit) {
        self.pace.set_live(self.freezer().held_bytes(commit));
        if !self.state.load().has_frozen() {
            self.pace.set_frozen(0);
            self.background.forget_flush_error();
        }
    }
}

/// Only the engine knows hidden tables.
fn shown(table: &Arc<TableState>) -> Result<&Arc<TableState>> {
    if is_hidden(&table.name) {
        return Err(Error::NoSuchTable { name: table.name.to_string() });
    }
    Ok(table)
}

impl Engine {
    /// The table of a name in a state, if users may know it.
    pub(crate) fn shown_table<'a>(&self, state: &'a State, name: &str) -> Result<&'a Arc<TableState>> {
        self.table_named(state, name).and_then(shown)
    }

    /// The table that has a name now, or as a follower sees it.
    pub(crate) fn table_now(&self, name: &str) -> Result<Arc<TableState>> {
        self.follow()?;
        self.life.check()?;
        let state = self.state.load();
        self.behind(&state).shown_table(&state, name).cloned()
    }

    /// The table of a name in a state.
    pub(super) fn table_named<'a>(&self, state: &'a State, name: &str) -> Result<&'a Arc<TableState>> {
        let has_name = |t: &&Arc<TableState>| &*t.name == name;
        let id = self.catalog.names.get(name);
        // While names change they are ahead of the state, or behind it.
        let found = id.and_then(|id| {
            state.tables.get(id).filter(has_name).or_else(|| state.tables.iter().find(has_name))
        });
        found.ok_or_else(|| Error::NoSuchTable { name: name.into() })
    }

    fn check_free(&self, name: &str) -> Result<()> {
        match self.catalog.names.get(name) {
            Some(_) => Err(Error::TableExists { name: name.into() }),
            None => Ok(()),
        }
    }
}
