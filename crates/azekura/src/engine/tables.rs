//! Making, renaming and dropping tables.
//!
//! Tables are made by a commit, any number at once. The log has their names until a manifest does. So
//! making one costs what a durable commit costs, however many there are. The manifest's `next_table` says
//! which tables of the log it knows.
//!
//! Renaming and dropping are a checkpoint each, after a sync, so that earlier commits are durable. The
//! checkpoint comes first, and then the state: a full disk has changed nothing.

use super::Engine;
use super::batch::Batch;
use super::state::{State, TableState};
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::base::limits::{NAME_BYTES_MAX, SHORT_COUNT_END};
use crate::base::sync::{Mutex, Rank};
use crate::format::frame::NewTable;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The tables by name.
pub(super) struct Catalog {
    /// Held while tables are made, renamed or dropped.
    pub(super) changing: Mutex<()>,
    pub(super) names: Names,
}

impl Catalog {
    pub(super) fn new() -> Catalog {
        Catalog { changing: Mutex::ranked(Rank::ChangingTables, ()), names: Names::default() }
    }
}

impl Engine {
    /// Makes tables, all or none. Gives the id of the first, and the others' follow.
    pub(crate) fn create_tables(&self, wanted: &[(&str, TableKind)]) -> Result<u32> {
        self.check_writable()?;
        let _changing = self.catalog.changing.lock();
        let first = self.state.load().next_table;
        let mut seen = HashSet::with_capacity(wanted.len());
        let mut created = Vec::with_capacity(wanted.len());
        for (id, &(name, kind)) in (first..SHORT_COUNT_END - 1).zip(wanted) {
            check_name(name)?;
            self.check_free(name)?;
            if !seen.insert(name) {
                return Err(Error::TableExists { name: name.into() });
            }
            created.push(NewTable { id, kind, name: name.into() });
        }
        if created.len() < wanted.len() {
            let (found, limit) = (u64::from(first) + wanted.len() as u64, u64::from(SHORT_COUNT_END));
            return Err(Error::TooLarge { what: "number of tables ever made", found, limit });
        }
        if !created.is_empty() {
            let make = || self.commit(Batch { created: created.clone(), durable: true, ..Batch::default() });
            self.store.bulk.unnoted(|| match make() {
                // With what the log has in the manifest, the log has room again.
                Err(Error::NoSpace { .. }) => self.flush().and_then(|()| make()),
                done => done,
            })?;
        }
        Ok(first)
    }

    /// Gives a table another name.
    pub(crate) fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.check_writable()?;
        check_name(to)?;
        self.look_after();
        let _changing = self.catalog.changing.lock();
        self.sync()?;
        let rename = |state: &State| {
            let id = self.table_named(state, from)?.id;
            self.check_free(to)?;
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

    /// Removes a table. Its space is free once the readers that see it are gone.
    pub(crate) fn drop_table(&self, name: &str) -> Result<()> {
        self.check_writable()?;
        self.look_after();
        let _changing = self.catalog.changing.lock();
        self.sync()?;
        let remove = |state: &State| {
            let id = self.table_named(state, name)?.id;
            Ok(move |state: &State| state.without_table(id))
        };
        self.checkpoint_tables(remove, |commit, before| {
            self.life.note_dropped();
            let Some(table) = self.catalog.names.remove(name).and_then(|id| before.tables.get(id)) else {
                return;
            };
            self.count_few(Some(table), None);
            commit.live_bytes -= table.live_bytes().min(commit.live_bytes);
            self.pace.set_live(self.held_bytes(commit));
            // No durable checkpoint names them any more. Recovery passes over the log's records of unknown
            // tables, so values may go too.
            table.levels.iter().flat_map(|l| &l.runs).for_each(|run| run.free_on_drop());
            if !self.has_frozen() {
                self.pace.set_frozen(0);
                self.background.forget_flush_error();
            }
        })
    }
}

impl Engine {
    /// The table of a name in a state.
    pub(crate) fn table_named<'a>(&self, state: &'a State, name: &str) -> Result<&'a Arc<TableState>> {
        let found =
            self.catalog.names.get(name).and_then(|id| state.tables.get(id)).filter(|t| &*t.name == name);
        found.ok_or_else(|| Error::NoSuchTable { name: name.into() })
    }

    fn check_free(&self, name: &str) -> Result<()> {
        match self.catalog.names.get(name) {
            Some(_) => Err(Error::TableExists { name: name.into() }),
            None => Ok(()),
        }
    }
}

/// Which tables the newest state has, by name. It changes with the state, under the commit lock. A reader
/// compares what it finds with its own state.
#[derive(Default)]
pub(super) struct Names(Mutex<HashMap<Arc<str>, u32>>);

impl Names {
    pub(super) fn get(&self, name: &str) -> Option<u32> {
        self.0.lock().get(name).copied()
    }

    /// Gives a table a name. True if another had it.
    pub(super) fn insert(&self, name: Arc<str>, id: u32) -> bool {
        self.0.lock().insert(name, id).is_some()
    }

    /// Adds a table to the state that comes next. REQUIRES: the commit lock.
    pub(super) fn add_table(&self, state: &mut State, table: NewTable) {
        state.next_table = state.next_table.max(table.id + 1);
        self.insert(table.name.clone(), table.id);
        state.tables.set(TableState::new(table.id, table.kind, table.name));
    }

    fn remove(&self, name: &str) -> Option<u32> {
        self.0.lock().remove(name)
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::Invalid { detail: "a table's name cannot be empty".into() });
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(Error::TooLarge {
            what: "table name",
            found: name.len() as u64,
            limit: NAME_BYTES_MAX as u64,
        });
    }
    Ok(())
}
