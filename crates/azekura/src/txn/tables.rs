//! What a transaction has done with tables, and what it knows of names.
//!
//! A table that it makes has its id from the beginning, and an empty buffer that hides whatever could be
//! below. So its handle is good within the transaction at once, and for everybody when it is committed: until
//! then no state has the id. A dropped table keeps its buffer, which hides all records, and each look at it
//! that finds nothing asks whether it is dropped. So whoever changes no tables pays nothing for this.
//!
//! Names are looked up in the newest state, and each name that was looked up must stand for the same table
//! when the transaction commits.

mod txn;

use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::engine::{BatchPart, Db, Table, TableChanges};
use crate::format::frame::{NewTable, TableChange};
use crate::format::ranges::Ranges;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a transaction knows of names, and has done with tables.
#[derive(Default, Clone)]
pub(super) struct OwnTables {
    /// Names that were looked up outside, and the tables that they stood for.
    seen: BTreeMap<Arc<str>, Option<u32>>,
    /// Savepoints share it.
    pub(super) changes: Arc<Changes>,
}

/// What a transaction has done with tables.
#[derive(Default, Clone)]
pub(super) struct Changes {
    /// The names that stand for something else than outside.
    names: BTreeMap<Arc<str>, Option<(u32, TableKind)>>,
    made: BTreeMap<u32, (TableKind, Arc<str>)>,
    renamed: BTreeMap<u32, Arc<str>>,
    /// How long the records of tables live from now on, in milliseconds. 0: until they are removed.
    lives: BTreeMap<u32, u64>,
    /// Those that are there outside.
    dropped: BTreeSet<u32>,
    /// Those that it had made.
    unmade: BTreeSet<u32>,
}

impl Changes {
    fn is_gone(&self, id: u32) -> bool {
        self.dropped.contains(&id) || self.unmade.contains(&id)
    }

    fn is_empty(&self) -> bool {
        let Changes { made, renamed, lives, dropped, .. } = self;
        dropped.is_empty() && renamed.is_empty() && lives.is_empty() && made.is_empty()
    }
}

impl OwnTables {
    /// Whether it has made the table.
    pub(super) fn has_made(&self, id: u32) -> bool {
        self.changes.made.contains_key(&id)
    }

    /// The tables that it makes.
    pub(super) fn made<'a>(&'a self, db: &'a Db) -> impl Iterator<Item = Table> + 'a {
        let table = |(&id, (kind, name)): (&u32, &(TableKind, Arc<str>))| Table {
            db: db.clone(),
            id,
            kind: *kind,
            name: name.clone(),
        };
        self.changes.made.iter().map(table)
    }

    /// Whether it has made the table, and perhaps dropped it again: nobody else ever writes to it.
    pub(super) fn is_alone_with(&self, id: u32) -> bool {
        self.has_made(id) || self.changes.unmade.contains(&id)
    }

    /// Rolls back what was done to tables. Tables that were made since then will never exist.
    pub(super) fn unmake(&mut self, undone: &Changes) {
        let all = undone.made.keys().chain(&undone.unmade);
        let unmade: Vec<u32> = all.filter(|id| !self.changes.made.contains_key(id)).copied().collect();
        if !unmade.is_empty() {
            Arc::make_mut(&mut self.changes).unmade.extend(unmade);
        }
    }

    /// Whether it has made tables that are not to be.
    pub(super) fn has_undone(&self) -> bool {
        !self.changes.unmade.is_empty()
    }

    /// Whether there is anything to commit.
    pub(super) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// An error if it has dropped the table.
    pub(super) fn expect(&self, table: &Table) -> Result<()> {
        if self.changes.is_gone(table.id) { Err(missing(&table.name)) } else { Ok(()) }
    }

    /// What the commit does with tables. Of the writes to them those are left that it is to do then.
    pub(super) fn settle(self, parts: &mut Vec<BatchPart>) -> Box<TableChanges> {
        let changes = &self.changes;
        parts.retain_mut(|part| {
            if changes.made.contains_key(&part.table) {
                // There is nothing older that it could hide.
                part.ranges = Ranges::default();
            }
            let is_empty = part.block.is_empty() && part.ranges.is_empty();
            !changes.is_gone(part.table) && !is_empty
        });
        let dropped = changes.dropped.iter().map(|&id| TableChange::Dropped(id));
        let renamed = changes.renamed.iter().map(|(&id, name)| TableChange::Renamed(id, name.clone()));
        let others = changes.lives.iter().filter(|(id, _)| !changes.made.contains_key(id));
        let lives = others.map(|(&id, &ttl_ms)| TableChange::Lives(id, ttl_ms));
        let made = changes.made.iter().map(|(&id, (kind, name))| {
            let ttl_ms = changes.lives.get(&id).copied().unwrap_or(0);
            TableChange::Made(NewTable { id, kind: *kind, name: name.clone(), ttl_ms })
        });
        let list = dropped.chain(renamed).chain(lives).chain(made).collect();
        Box::new(TableChanges { list, seen: self.seen.into_iter().collect() })
    }
}

fn missing(name: &str) -> Error {
    Error::NoSuchTable { name: name.to_owned() }
}
