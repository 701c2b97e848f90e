//! Creating, renaming and dropping tables: each is a checkpoint of its own, after a sync, so that
//! what was committed before is never behind. The checkpoint comes first, and then the state: nobody
//! commits to a table that a crash would take away, and a full disk has changed nothing.

use super::Engine;
use super::state::{State, TableState};
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
        let id = self.next_table.fetch_add(1, Ordering::Relaxed);
        let table = TableState::new(id, kind, name);
        let create = |state: &State| {
            check_free(state, name)?;
            Ok(|state: &State| state.with_table(table.clone()))
        };
        self.checkpoint_tables(create, |_, _| {})?;
        Ok(id)
    }

    /// Gives a table another name.
    pub(crate) fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.check_writable()?;
        check_name(to)?;
        self.sync()?;
        let rename = |state: &State| {
            let id = state.table_named(from).ok_or_else(|| no_such(from))?.id;
            check_free(state, to)?;
            Ok(move |state: &State| {
                let mut tables = state.tables.clone();
                for table in tables.iter_mut().filter(|t| t.id == id) {
                    Arc::make_mut(table).name = to.into();
                }
                state.with_tables(tables)
            })
        };
        self.checkpoint_tables(rename, |_, _| {})
    }

    /// Removes a table; its space is free once the readers that see it are gone.
    pub(crate) fn drop_table(&self, name: &str) -> Result<()> {
        self.check_writable()?;
        self.sync()?;
        let remove = |state: &State| {
            let id = state.table_named(name).ok_or_else(|| no_such(name))?.id;
            Ok(move |state: &State| state.with_tables(state.tables.iter().filter(|t| t.id != id).cloned().collect()))
        };
        self.checkpoint_tables(remove, |commit, before| {
            self.life.note_dropped();
            let Some(table) = before.table_named(name) else { return };
            commit.live_bytes -= table.live_bytes().min(commit.live_bytes);
            self.pace.set_live(self.held_bytes(commit));
            // No durable checkpoint names them any more, and of the log's records those of unknown tables are
            // passed over, so that values go too.
            table.levels.iter().flat_map(|l| &l.runs).for_each(|run| run.doom());
            if !self.has_frozen() {
                self.pace.set_frozen(0);
                self.forget_flush_error();
            }
        })
    }
}

fn check_free(state: &State, name: &str) -> Result<()> {
    match state.table_named(name) {
        Some(_) => Err(Error::TableExists { name: name.into() }),
        None => Ok(()),
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
