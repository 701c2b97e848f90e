//! Which hidden tables are the indexes of which tables.
//!
//! A table's state lists its indexes. A write says which of them its transaction has kept, and a commit is
//! refused if these are not all that there are (`Commit::sequence`). So from the commit on that makes an
//! index no write passes it by.

mod slots;

pub(crate) use slots::{IndexSlot, Indexes, are_same};

use super::batch::{Batch, BatchPart};
use super::catalog::check_name;
use super::changes::TableChanges;
use super::state::State;
use super::tables::TableChanger;
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::base::limits::NAME_BYTES_MAX;
use crate::format::block::Tag;
use crate::format::feed::FEED_NAME;
use crate::format::frame::{NewTable, TableChange};
use crate::format::hidden::{IndexState, STATE_KEY, is_hidden, name_of, parse_name};
use crate::index::IndexSpec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// The most indexes of a table. Every write to it goes through all of them.
const INDEXES_MAX: usize = 64;

/// The longest name of an index: with the longest id of a table it is a table's name.
const INDEX_NAME_BYTES_MAX: usize = 200;
const _: () = assert!("\0index\0\0".len() + "4294967295".len() + INDEX_NAME_BYTES_MAX <= NAME_BYTES_MAX);

/// Hidden tables that commits of a log have made and dropped, by id and name.
#[derive(Default)]
pub(super) struct HiddenTables {
    pub(super) made: Vec<(u32, Arc<str>)>,
    pub(super) dropped: Vec<(u32, Arc<str>)>,
}

impl HiddenTables {
    /// Notes those of the next commit. `state`: before it.
    pub(super) fn note(&mut self, state: &State, changes: &[TableChange]) {
        for change in changes {
            match change {
                TableChange::Made(table) if is_hidden(&table.name) => {
                    self.made.push((table.id, table.name.clone()));
                }
                TableChange::Dropped(id) => {
                    let table = state.tables.get(*id).filter(|table| is_hidden(&table.name));
                    self.dropped.extend(table.map(|table| (*id, table.name.clone())));
                }
                _ => {}
            }
        }
    }
}

impl State {
    /// Notes which of some tables, by id and name, are indexes of which. (A forged file may call any table
    /// so, and very many: each list of indexes is made once.)
    pub(super) fn attach_indexes<'a>(&mut self, tables: impl IntoIterator<Item = (u32, &'a str)>) {
        let mut indexes: BTreeMap<u32, Vec<(u32, &str)>> = BTreeMap::new();
        for (id, name) in tables {
            if self.tables.get(id).is_some_and(|t| t.kind == TableKind::Ordered)
                && let Some((table, index)) = parse_name(name)
            {
                indexes.entry(table).or_default().push((id, index));
            }
        }
        for (table, of) in indexes {
            self.change_indexes(table, |list| add(list, of));
        }
    }

    /// Takes tables, by id and name, out of the lists of those whose indexes they are.
    pub(crate) fn detach_indexes<'a>(&mut self, tables: impl IntoIterator<Item = (u32, &'a str)>) {
        let mut gone: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (id, name) in tables {
            if let Some((table, _)) = parse_name(name) {
                gone.entry(table).or_default().insert(id);
            }
        }
        for (table, of) in gone {
            self.change_indexes(table, |list| list.retain(|slot| !of.contains(&slot.id)));
        }
    }

    fn change_indexes(&mut self, table: u32, change: impl FnOnce(&mut Vec<Arc<IndexSlot>>)) {
        let Some(table) = self.tables.get(table).filter(|t| !is_hidden(&t.name)) else { return };
        let mut table = table.as_ref().clone();
        let mut list = table.indexes.as_deref().cloned().unwrap_or_default();
        change(&mut list);
        table.indexes = (!list.is_empty()).then(|| Arc::new(list));
        self.tables.set(table);
    }

    /// What a table is called in messages: a hidden one after the table whose index it is.
    pub(crate) fn shown_name(&self, name: &str) -> String {
        match parse_name(name) {
            None if name == FEED_NAME => "the feed".into(),
            None => format!("table {name:?}"),
            Some((table, index)) => {
                let of = self.table(table).map_or("", |t| &*t.name);
                format!("index {index:?} of table {of:?}")
            }
        }
    }

    /// The name of a table for the error of a conflict: of an index's table that of the table.
    pub(super) fn name_in_conflict(&self, id: u32) -> &str {
        let name = |id| self.table(id).map_or("", |t| &*t.name);
        match parse_name(name(id)) {
            Some((table, _)) => name(table),
            None => name(id),
        }
    }

    /// What a table that is being dropped is called in such errors later.
    pub(super) fn name_when_gone(&self, id: u32) -> String {
        let of = self.name_in_conflict(id);
        match self.tables.get(id).and_then(|t| parse_name(&t.name)) {
            Some((_, index)) => format!("{of} (index {index}, dropped)"),
            None => format!("{of} (dropped)"),
        }
    }
}

impl TableChanger<'_> {
    /// Makes an index of a table, with nothing in it. Gives its number; none if there is one of this name.
    pub(crate) fn create_index(&self, table: u32, name: &str, spec: &IndexSpec) -> Result<Option<u32>> {
        check_index_name(name)?;
        self.commits.check_writable()?;
        let _changing = self.keep();
        let state = self.checkpoints.state.load_full();
        let list = state.table(table)?.indexes.as_deref().map_or(&[][..], Vec::as_slice);
        if list.iter().any(|slot| *slot.name == *name) {
            return Ok(None);
        }
        if list.len() >= INDEXES_MAX {
            let (found, limit) = (list.len() as u64 + 1, INDEXES_MAX as u64);
            return Err(Error::TooLarge { what: "number of indexes of a table", found, limit });
        }
        let catalog = self.steps.catalog;
        let id = catalog.reserve_ids(&state, 1)?;
        let name: Arc<str> = name_of(table, name).into();
        // Before it is there: who asks whether there are indexes asks this first.
        catalog.note_index(&name);
        let made = NewTable { id, kind: TableKind::Ordered, name, ttl_ms: 0 };
        let first = IndexState { next: Some(Vec::new()), spec: spec.to_string() }.encode();
        self.commits.commit_created(&|| Batch {
            tables: TableChanges::of(vec![TableChange::Made(made.clone())]),
            parts: vec![BatchPart::single(id, STATE_KEY, Tag::Put, &first)],
            durable: true,
            ..Batch::default()
        })?;
        Ok(Some(id))
    }
}

/// Adds indexes, by id and name, to those of a table.
fn add<'a>(list: &mut Vec<Arc<IndexSlot>>, more: impl IntoIterator<Item = (u32, &'a str)>) {
    let slot = |(id, name): (u32, &str)| Arc::new(IndexSlot { id, name: name.into(), spec: OnceLock::new() });
    list.extend(more.into_iter().map(slot));
    list.sort_by_key(|slot| slot.id);
}

fn check_index_name(name: &str) -> Result<()> {
    check_name(name)?;
    if name.contains('\0') {
        return Err(Error::Invalid { detail: format!("the name {name:?} of an index has a zero byte") });
    }
    if name.len() > INDEX_NAME_BYTES_MAX {
        let (found, limit) = (name.len() as u64, INDEX_NAME_BYTES_MAX as u64);
        return Err(Error::TooLarge { what: "name of an index", found, limit });
    }
    Ok(())
}
