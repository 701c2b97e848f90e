//! The tables by name, which names there may be, and what is known of tables beside their states.

use super::changes::{TableChanges, dropped};
use super::operators::Operators;
use super::state::{State, TableState};
use crate::base::clock::Clock;
use crate::base::error::{Error, Result};
use crate::base::limits::{NAME_BYTES_MAX, SHORT_COUNT_END};
use crate::base::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::base::sync::{ArcSwap, Mutex, Rank};
use crate::format::frame::{NewTable, TableChange};
use crate::format::hidden::{is_hidden, parse_name};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// The tables by name.
pub(crate) struct Catalog {
    /// Held while tables are made, renamed or dropped.
    pub(super) changing: Mutex<()>,
    pub(super) names: Names,
    pub(super) gone: Gone,
    /// Which tables take operands.
    pub(super) operators: Operators,
    /// Whether a put to some table may be more than its record: see `puts_more`.
    any_puts_more: AtomicBool,
    /// The smallest id that no table and no transaction has been given.
    next_id: AtomicU32,
}

impl Catalog {
    pub(super) fn new() -> Catalog {
        Catalog {
            changing: Mutex::ranked(Rank::ChangingTables, ()),
            names: Names::default(),
            gone: Gone::default(),
            operators: Operators::default(),
            any_puts_more: AtomicBool::new(false),
            next_id: AtomicU32::new(0),
        }
    }

    /// Ids for so many tables, one after the other. Nobody else gets them, whether they are used or not.
    pub(super) fn reserve_ids(&self, state: &State, tables: usize) -> Result<u32> {
        self.next_id.fetch_max(state.next_table, Ordering::Relaxed);
        let end = |first: u32| {
            let end = u64::from(first) + tables as u64;
            u32::try_from(end).ok().filter(|&end| end < SHORT_COUNT_END)
        };
        self.next_id.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end).map_err(|first| {
            let (found, limit) = (u64::from(first) + tables as u64, u64::from(SHORT_COUNT_END));
            Error::TooLarge { what: "number of tables ever made", found, limit }
        })
    }

    /// The table of a name in a state.
    pub(crate) fn table<'a>(&self, state: &'a State, name: &str) -> Result<&'a Arc<TableState>> {
        let has_name = |t: &&Arc<TableState>| &*t.name == name;
        let id = self.names.get(name);
        // While names change they are ahead of the state, or behind it.
        let found = id.and_then(|id| {
            state.tables.get(id).filter(has_name).or_else(|| state.tables.iter().find(has_name))
        });
        found.ok_or_else(|| Error::NoSuchTable { name: name.into() })
    }

    /// As `table`, if users may know it.
    pub(crate) fn shown_table<'a>(&self, state: &'a State, name: &str) -> Result<&'a Arc<TableState>> {
        self.table(state, name).and_then(shown)
    }

    /// An error if a table has the name.
    pub(super) fn check_free(&self, name: &str) -> Result<()> {
        match self.names.get(name) {
            Some(_) => Err(Error::TableExists { name: name.into() }),
            None => Ok(()),
        }
    }

    /// A table of this name comes: if it is that of an index, a put is more than its record.
    pub(super) fn note_index(&self, name: &str) {
        if parse_name(name).is_some() {
            self.any_puts_more.store(true, Ordering::Release);
        }
    }

    /// A table comes whose records live so long: if they do not live until they are removed, a put is more
    /// than its record.
    pub(super) fn note_lifetime(&self, ttl_ms: u64, clock: &Clock) {
        if ttl_ms > 0 {
            clock.use_it();
            self.any_puts_more.store(true, Ordering::Release);
        }
    }

    /// Whether a put to a table now is more than its record: the table has indexes, or says how long records
    /// live.
    #[inline(always)]
    pub(crate) fn puts_more(&self, state: &ArcSwap<State>, table: u32) -> bool {
        self.any_puts_more.load(Ordering::Acquire) && has_more(&state.load(), table)
    }
}

#[cold]
fn has_more(state: &State, table: u32) -> bool {
    state.table(table).is_ok_and(|t| t.indexes.is_some() || t.ttl_ms > 0)
}

/// Only the engine knows hidden tables.
fn shown(table: &Arc<TableState>) -> Result<&Arc<TableState>> {
    if is_hidden(&table.name) {
        return Err(Error::NoSuchTable { name: table.name.to_string() });
    }
    Ok(table)
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

/// Which tables the newest state has, by name. It changes with the state, under the commit lock: before that
/// it has the new names already, and still has old ones. A reader compares what it finds with its own state,
/// and looks through that if they differ.
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

    /// Makes the changes of a commit in the state that comes next. Gives the names that tables give up, which
    /// readers of the state before still look for. Unless it `attaches`, the lists of indexes stay as they
    /// are. REQUIRES: the commit lock.
    pub(super) fn change(
        &self,
        state: &mut State,
        changes: Vec<TableChange>,
        attaches: bool,
    ) -> Vec<(Arc<str>, u32)> {
        let seen = changes.iter().filter(|change| change.is_seen());
        let before = seen.filter_map(|change| state.tables.get(change.id()));
        let given_up = before.map(|table| (table.name.clone(), table.id)).collect();
        let gone: Vec<u32> = dropped(&changes).collect();
        if !gone.is_empty() {
            *state = state.without_tables(&gone, attaches);
        }
        let mut hidden = Vec::new();
        for change in changes {
            match change {
                TableChange::Dropped(_) => {}
                TableChange::Renamed(id, name) => {
                    let Some(table) = state.tables.get(id) else { continue };
                    let table = TableState { name: name.clone(), ..TableState::clone(table) };
                    self.insert(name, id);
                    state.tables.set(table);
                }
                TableChange::Lives(id, ttl_ms) => {
                    // (The engine gives hidden tables none.)
                    let Some(table) = state.tables.get(id).filter(|t| !is_hidden(&t.name)) else { continue };
                    let table = TableState { ttl_ms, ..TableState::clone(table) };
                    state.tables.set(table);
                }
                TableChange::Made(NewTable { id, kind, name, ttl_ms }) => {
                    state.next_table = state.next_table.max(id + 1);
                    self.insert(name.clone(), id);
                    if attaches && is_hidden(&name) {
                        hidden.push((id, name.clone()));
                    }
                    state.tables.set(TableState { ttl_ms, ..TableState::new(id, kind, name) });
                }
            }
        }
        if !hidden.is_empty() {
            state.attach_indexes(hidden.iter().map(|(id, name)| (*id, &**name)));
        }
        given_up
    }

    /// Forgets names that tables have given up, unless others have them, or they again.
    pub(super) fn give_up(&self, given_up: Vec<(Arc<str>, u32)>, state: &State) {
        let mut names = self.0.lock();
        for (name, id) in given_up {
            let has_it = state.tables.get(id).is_some_and(|table| table.name == name);
            if names.get(&name) == Some(&id) && !has_it {
                names.remove(&name);
            }
        }
    }

    /// A name that two tables would have after the changes, or that a hidden table would give up for another.
    pub(super) fn refused<'a>(&self, state: &State, changes: &'a [TableChange]) -> Option<Arc<str>> {
        let names = self.0.lock();
        let seen = changes.iter().filter(|change| change.is_seen());
        let given_up: HashSet<u32> = seen.map(TableChange::id).collect();
        let mut new = HashSet::new();
        let mut is_bad = |change: &'a TableChange| {
            let is_hidden_now = || state.tables.get(change.id()).is_some_and(|t| is_hidden(&t.name));
            let Some(name) = change.name() else { return false };
            let is_taken = names.get(name).is_some_and(|id| !given_up.contains(id));
            is_taken || !new.insert(name) || is_hidden_now()
        };
        changes.iter().find(|change| is_bad(change)).and_then(TableChange::name).cloned()
    }

    /// The name of a table that somebody has made, renamed or dropped since it was looked up.
    pub(super) fn changed<'a>(&self, changes: &'a TableChanges) -> Option<&'a str> {
        let names = self.0.lock();
        changes.seen.iter().find(|(name, id)| names.get(name) != id.as_ref()).map(|(name, _)| &**name)
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
