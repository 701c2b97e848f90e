//! The tables by name, and which names there may be.

use super::state::{State, TableState};
use crate::base::error::{Error, Result};
use crate::base::limits::NAME_BYTES_MAX;
use crate::base::sync::{Mutex, Rank};
use crate::format::frame::NewTable;
use crate::format::hidden::is_hidden;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The tables by name.
pub(super) struct Catalog {
    /// Held while tables are made, renamed or dropped.
    pub(super) changing: Mutex<()>,
    pub(super) names: Names,
    pub(super) gone: Gone,
}

impl Catalog {
    pub(super) fn new() -> Catalog {
        Catalog {
            changing: Mutex::ranked(Rank::ChangingTables, ()),
            names: Names::default(),
            gone: Gone::default(),
        }
    }
}

/// So many dropped tables are remembered.
const GONE_MAX: usize = 256;

/// What the tables were called that were dropped last, for the errors of those who have read them.
#[derive(Default)]
pub(super) struct Gone(Mutex<VecDeque<(u32, String)>>);

impl Gone {
    pub(super) fn add(&self, id: u32, name: String) {
        let mut all = self.0.lock();
        if all.len() == GONE_MAX {
            all.pop_front();
        }
        all.push_back((id, name));
    }

    pub(super) fn name_of(&self, id: u32) -> String {
        let all = self.0.lock();
        let name = all.iter().rev().find(|(gone, _)| *gone == id).map(|(_, name)| name.clone());
        name.unwrap_or_else(|| format!("(dropped table {id})"))
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

    pub(super) fn remove(&self, name: &str) -> Option<u32> {
        self.0.lock().remove(name)
    }
}

pub(super) fn check_name(name: &str) -> Result<()> {
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

/// Refuses names that only the engine gives.
pub(super) fn check_shown(name: &str) -> Result<()> {
    if is_hidden(name) {
        return Err(Error::Invalid { detail: "a table's name cannot begin with a zero byte".into() });
    }
    Ok(())
}
