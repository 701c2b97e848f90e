//! Indexes, compared with their tables both ways: each record has its entry, and there are no others.

use super::Check;
use crate::base::error::{Result, shown};
use crate::base::key::SortKey;
use crate::cursor::{Cursor, Limits};
use crate::engine::IndexSlot;
use crate::engine::state::TableState;
use crate::format::feed::FEED_NAME;
use crate::format::hidden::{FIRST_ENTRY, parse_name};
use crate::format::ranges::Range;
use crate::index::IndexSpec;
use crate::txn::get::lookup;
use crate::txn::indexed::{entry_of, state_of};
use std::sync::Arc;

impl Check<'_> {
    /// Compares the indexes of a table with it. `sound`: how many problems there were before the table.
    pub(super) fn indexes(&mut self, table: &Arc<TableState>, sound: usize) {
        for slot in table.indexes.iter().flat_map(|list| list.iter()) {
            match self.index(table, slot) {
                // What stops the comparison was mostly found before.
                Err(_) if self.report.problems.len() > sound => {}
                Err(e) => self.problem(format!("index {:?} of table {:?}: {e}", slot.name, table.name)),
                Ok(()) => {}
            }
        }
    }

    /// Each hidden table is the index of a table, or the feed.
    pub(super) fn hidden(&mut self, table: &TableState) {
        let is_known = |id| {
            let list = self.state.table(id).ok()?.indexes.clone()?;
            list.iter().any(|slot| slot.id == table.id).then_some(())
        };
        if *table.name == *FEED_NAME {
            return;
        }
        if parse_name(&table.name).and_then(|(id, _)| is_known(id)).is_none() {
            self.problem(format!("table {:?} is the index of no table", table.name));
        }
    }

    fn index(&mut self, table: &Arc<TableState>, slot: &IndexSlot) -> Result<()> {
        let Some(known) = state_of(self.db, &self.state, self.seq, slot.id)? else {
            // A follower may see the table of an index before its record.
            if self.engine.config.follow.is_none() {
                let (name, table) = (&slot.name, &table.name);
                self.problem(format!("index {name:?} of table {table:?} has lost its state: make it again"));
            }
            return Ok(());
        };
        let spec = IndexSpec::parse(&known.spec)?;
        let entries = self.state.table(slot.id)?.clone();
        // Of an index that is being built, only the records that the builder has come to.
        let is_ready = known.next.is_none();
        let wanted = self.wanted(table, &entries, &spec, known.next, &slot.name)?;
        let found = self.entries(table, &entries, &spec, &slot.name)?;
        if is_ready && wanted != found {
            let (name, table) = (&slot.name, &table.name);
            self.problem(format!(
                "index {name:?} of table {table:?} has {found} entries, and the table's records have {wanted}"
            ));
        }
        Ok(())
    }

    /// Looks for the entry of each record below a sort key, and counts them.
    fn wanted(
        &mut self,
        table: &Arc<TableState>,
        entries: &Arc<TableState>,
        spec: &IndexSpec,
        end: Option<Vec<u8>>,
        name: &str,
    ) -> Result<u64> {
        let mut cursor = self.walk(table, Range { start: Vec::new(), end })?;
        let (mut wanted, mut entry, mut key) = (0, Vec::new(), Vec::new());
        while let Some((found, value)) = cursor.next()? {
            entry.clear();
            key.clear();
            key.extend_from_slice(found);
            let made = entry_of(spec, &key, value.bytes()?, &mut entry);
            let expiry = cursor.expiry();
            let what = match made {
                Ok(None) => continue,
                Ok(Some(_)) => {
                    wanted += 1;
                    let now = || self.now;
                    let found = lookup(entries, self.seq, SortKey::new(&entry), now, |_, _, until| until)?;
                    if found == Some(expiry) {
                        continue;
                    }
                    let is_there = found.is_some();
                    if is_there {
                        "its entry expires at another time".into()
                    } else {
                        "it has no entry".into()
                    }
                }
                Err(e) => e.to_string(),
            };
            let key = shown(&key);
            self.problem(format!("index {name:?} of table {:?}: key {key}: {what}", table.name));
        }
        Ok(wanted)
    }

    /// Looks at the entries by themselves, and counts them.
    fn entries(
        &mut self,
        table: &TableState,
        entries: &Arc<TableState>,
        spec: &IndexSpec,
        name: &str,
    ) -> Result<u64> {
        let mut cursor = self.walk(entries, Range { start: FIRST_ENTRY.to_vec(), end: None })?;
        let (mut found, mut before) = (0, Vec::new());
        while let Some((entry, _)) = cursor.next()? {
            found += 1;
            let (fields, key) = entry.split_at(spec.fields_len(entry)?.min(entry.len()));
            if spec.is_unique() && fields == before && spec.is_checked(fields) {
                let key = shown(key);
                self.problem(format!(
                    "index {name:?} of table {:?} is unique, and key {key} has the values of another",
                    table.name
                ));
            }
            before.clear();
            before.extend_from_slice(fields);
        }
        Ok(found)
    }

    fn walk(&self, table: &Arc<TableState>, range: Range) -> Result<Cursor> {
        Cursor::new(
            self.db.clone(),
            self.state.clone(),
            table.clone(),
            self.seq,
            self.now,
            Vec::new(),
            Limits::from(range),
        )
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
