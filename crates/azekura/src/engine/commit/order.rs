//! The order of commits: conflicts with those since a snapshot, and the next number.

use super::guarded::Commit;
use crate::base::error::{Error, Result};
use crate::engine::batch::Batch;
use crate::engine::catalog::Names;
use crate::engine::changes::TableChanges;
use crate::engine::history::{ReadSet, conflict_error, own_error};
use crate::engine::indexes::are_same;
use crate::engine::state::State;
use crate::format::frame::TableChange;

impl Commit {
    /// Checks for conflicts and gives the commit its number.
    pub(super) fn sequence(&mut self, state: &State, batch: &Batch) -> Result<u64> {
        if let Some(reads) = &batch.reads {
            self.check_reads(state, reads)?;
        }
        for part in &batch.parts {
            match state.tables.get(part.table) {
                Some(table) if are_same(&table.indexes, &part.indexes) => {}
                Some(table) => return Err(conflict_error(&table.name)),
                None => expect_made(state, batch, part.table)?,
            }
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        self.cost += batch.cost();
        if batch.parts.iter().any(|p| !p.segments.is_empty()) {
            self.large_bytes += batch.user_bytes;
        }
        if self.history.wanted(batch.snapshots()) {
            for part in &batch.parts {
                let mut tmp = [0; 8];
                let keys = (0..part.block.len()).map(|i| part.block.key(i, &mut tmp).to_vec()).collect();
                self.history.record(seq, part.table, keys, part.ranges.clone());
            }
        }
        Ok(seq)
    }

    fn check_reads(&self, state: &State, reads: &ReadSet) -> Result<()> {
        match self.history.conflict(reads) {
            None => Ok(()),
            Some((table, seq)) => Err(conflict_with(state, reads, table, seq)),
        }
    }
}

/// Whether the names that a commit has looked up are those of the same tables as they were then, and the
/// tables are there whose records are to live otherwise.
#[cold]
pub(super) fn check_changes(state: &State, names: &Names, changes: &TableChanges) -> Result<()> {
    let lives = changes.list.iter().filter(|change| matches!(change, TableChange::Lives(..)));
    lives.map(TableChange::id).try_for_each(|id| state.table(id).map(drop))?;
    match names.changed(changes) {
        Some(name) => Err(conflict_error(name)),
        None => match names.refused(state, &changes.list) {
            Some(name) => Err(Error::TableExists { name: name.to_string() }),
            None => Ok(()),
        },
    }
}

/// An error unless the commit makes a table that is not there.
#[cold]
fn expect_made(state: &State, batch: &Batch, table: u32) -> Result<()> {
    if batch.tables.as_ref().is_some_and(|changes| changes.makes(table)) {
        return Ok(());
    }
    state.table(table).map(drop).map_err(|e| found_indexes(state, batch).unwrap_or(e))
}

/// The error of a commit whose transaction has written to an index that was dropped since.
#[cold]
fn found_indexes(state: &State, batch: &Batch) -> Option<Error> {
    let tables = batch.parts.iter().filter_map(|p| Some((p, state.tables.get(p.table)?)));
    let mut others = tables.filter(|(part, table)| !are_same(&table.indexes, &part.indexes));
    others.next().map(|(_, table)| conflict_error(&table.name))
}

/// Tables were dropped since a transaction began to read: an error if it has read one of them. Writes to them
/// leave no trace from then on, and by the records of an index it has read its table.
#[cold]
pub(super) fn expect_tables(
    state: &State,
    batch: &Batch,
    reads: &ReadSet,
    gone: impl Fn(u32) -> String,
) -> Result<()> {
    for part in &batch.parts {
        // The error names a table that the transaction has written to.
        if state.tables.get(part.table).is_none() {
            expect_made(state, batch, part.table)?;
        }
    }
    match reads.reads.tables().find(|&id| state.tables.get(id).is_none()) {
        None => Ok(()),
        Some(id) => Err(conflict_error(&gone(id))),
    }
}

#[cold]
fn conflict_with(state: &State, reads: &ReadSet, table: u32, seq: u64) -> Error {
    let name = state.name_in_conflict(table);
    let is_own = reads.own.commits.iter().any(|own| own.contains(&seq));
    if is_own { own_error(name) } else { conflict_error(name) }
}
