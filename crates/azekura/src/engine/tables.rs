//! Creating, renaming and dropping tables: each is a checkpoint of its own, after a sync, so that
//! what was committed before is never behind.

use super::Engine;
use super::checkpoint::{Purpose, Retired};
use super::state::TableState;
use crate::base::error::{Error, Result};
use crate::base::key::Kind;
use crate::base::limits::NAME_BYTES_MAX;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Engine {
    /// Makes a table and gives its id.
    pub(crate) fn create_table(&self, name: &str, kind: Kind) -> Result<u32> {
        self.check_writable()?;
        check_name(name)?;
        self.sync()?;
        let (id, known);
        {
            let _commit = self.lock_commit();
            self.check_open()?;
            let state = self.state.load_full();
            if state.table_named(name).is_some() {
                return Err(Error::TableExists { name: name.into() });
            }
            id = self.next_table.fetch_add(1, Ordering::Relaxed);
            let table = TableState::new(id, kind, name);
            known = table.known.clone();
            self.state.store(Arc::new(state.with_table(table)));
        }
        self.checkpoint(Purpose::Tables)?;
        known.store(true, Ordering::Release);
        Ok(id)
    }

    /// Gives a table another name.
    pub(crate) fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.check_writable()?;
        check_name(to)?;
        self.sync()?;
        {
            let _commit = self.lock_commit();
            self.check_open()?;
            let state = self.state.load_full();
            let table = state.table_named(from).ok_or_else(|| no_such(from))?;
            if state.table_named(to).is_some() {
                return Err(Error::TableExists { name: to.into() });
            }
            let mut t = TableState::clone(table);
            t.name = to.into();
            self.state.store(Arc::new(state.with_table(t)));
        }
        self.checkpoint(Purpose::Tables)
    }

    /// Removes a table; its space is free once the readers that see it are gone.
    pub(crate) fn drop_table(&self, name: &str) -> Result<()> {
        self.check_writable()?;
        self.sync()?;
        {
            let mut commit = self.lock_commit();
            self.check_open()?;
            let state = self.state.load_full();
            let table = state.table_named(name).ok_or_else(|| no_such(name))?;
            commit.live_bytes -= table.live_bytes().min(commit.live_bytes);
            let tables = state.tables.iter().filter(|t| t.id != table.id).cloned().collect();
            self.state.store(Arc::new(state.with_tables(tables)));
            self.pace.set_live(commit.live_bytes as u64);
            let runs = table.levels.iter().flat_map(|l| l.runs.iter().cloned());
            self.retired.lock().extend(runs.map(Retired::whole).chain([Retired::memory(state.clone())]));
        }
        if !self.has_frozen() {
            self.pace.set_frozen(0);
            self.forget_flush_error();
        }
        self.checkpoint(Purpose::Tables)
    }
}

fn no_such(name: &str) -> Error {
    Error::NoSuchTable { name: name.into() }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::Invalid { detail: "a table's name cannot be empty".into() });
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(Error::TooLarge { what: "table name", found: name.len() as u64, limit: NAME_BYTES_MAX as u64 });
    }
    Ok(())
}
