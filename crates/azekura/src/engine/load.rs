//! The tables of an engine that is built of a file: those of the manifest, and what the log has besides.

use super::batch::{Batch, BatchPart};
use super::changes::TableChanges;
use super::commit::CommitSteps;
use super::compaction::merges::Merges;
use super::found::{Found, Replay};
use super::indexes::HiddenTables;
use super::state::{Level, State, TableState};
use crate::base::clock::Clock;
use crate::base::error::{Error, Result};
use crate::format::few::Few;
use crate::format::frame::TableChange;
use crate::format::manifest::{Manifest, RunInfo, TableInfo};
use crate::log::Log;
use crate::run::Run;
use crate::space::Extent;
use std::collections::HashMap;
use std::sync::Arc;

/// Fills an engine with tables. Nobody else uses it yet, or a follower adds what its log has got.
pub(super) struct TableLoader<'a> {
    pub(super) merges: Merges<'a>,
    pub(super) steps: CommitSteps<'a>,
    pub(super) log: &'a Log,
    pub(super) clock: &'a Clock,
    /// Whether another process writes the file. A follower's states hold the value segments of runs.
    pub(super) follows: bool,
}

/// What a checkpoint says of runs, and which of them are known already.
#[derive(Clone, Copy)]
pub(super) struct FoundRuns<'a> {
    /// The checkpoint's number.
    pub(super) number: u64,
    pub(super) file_bytes: u64,
    pub(super) known: &'a HashMap<u64, Arc<Run>>,
}

impl TableLoader<'_> {
    /// Makes the tables of a manifest. It has what commits up to `tables_seq` have changed.
    pub(super) fn load(&self, found: &Found, tables_seq: u64, runs: FoundRuns<'_>) -> Result<()> {
        let (manifest, catalog) = (&found.manifest, self.steps.catalog);
        let state = self.merges.installer.state;
        let mut next = state.load().copy();
        next.next_table = manifest.next_table.max(1);
        next.tables_seq = tables_seq;
        for info in &manifest.tables {
            catalog.note_lifetime(info.ttl_ms, self.clock);
            catalog.operators.found(info);
            let table = self.table(info, runs)?;
            if catalog.names.insert(table.name.clone(), table.id) || next.tables.get(table.id).is_some() {
                return Err(Error::corrupt("manifest", 0, "two tables have the same name or id"));
            }
            next.next_table = next.next_table.max(table.id + 1);
            next.tables.set(table);
        }
        self.attach_found(manifest, &mut next);
        for (id, few) in &manifest.few {
            self.add_few(&mut next, *id, few)?;
        }
        state.store(Arc::new(next));
        Ok(())
    }

    /// A table with its levels.
    fn table(&self, info: &TableInfo, runs: FoundRuns<'_>) -> Result<TableState> {
        let table = TableState::new(info.id, info.kind, info.name.clone());
        let mut table = TableState { ttl_ms: info.ttl_ms, ..table };
        let mut levels = Vec::new();
        for level in &info.levels {
            let of: Vec<Arc<Run>> = level.runs.iter().map(|r| self.run(r, runs)).collect::<Result<_>>()?;
            if of.windows(2).any(|w| w[0].info.max >= w[1].info.min) {
                let detail = format!("table {:?}: partitions overlap", info.name);
                return Err(Error::corrupt("manifest", 0, detail));
            }
            let joined = of.len();
            levels.push(Arc::new(Level::new(of, 1.0, level.newest)?.joined_by(joined)));
        }
        if !levels.is_empty() {
            table.levels = Arc::new(levels);
        }
        Ok(table)
    }

    /// A run as it is known, or opened, with the value segments to which it refers.
    fn run(&self, info: &RunInfo, runs: FoundRuns<'_>) -> Result<Arc<Run>> {
        if let Some(run) = runs.known.get(&info.id).filter(|run| run.info == *info) {
            run.is_named_by(runs.number);
            return Ok(run.clone());
        }
        let run = match self.follows {
            true => Run::new(info.clone(), self.merges.store, Vec::new()),
            false => self.merges.outlet().open_run(info.clone())?,
        };
        Ok(Arc::new(run.found_in(runs.file_bytes)))
    }

    /// Notes which tables of a manifest are indexes of which.
    fn attach_found(&self, manifest: &Manifest, state: &mut State) {
        manifest.tables.iter().for_each(|info| self.steps.catalog.note_index(&info.name));
        state.attach_indexes(manifest.tables.iter().map(|info| (info.id, &*info.name)));
    }

    /// Gives a table without runs the records that the manifest has of it.
    fn add_few(&self, next: &mut State, id: u32, few: &Few) -> Result<()> {
        let found = next.tables.get(id).filter(|t| t.levels.is_empty() && t.few.is_none());
        let detail = || format!("records of table {id}, which is not there or has runs");
        let found = found.ok_or_else(|| Error::corrupt("manifest", 0, detail()))?;
        let table = TableState { few: Some(few.clone()), ..TableState::clone(found) };
        self.merges.memory.count_few(None, Some(&table));
        next.tables.set(table);
        Ok(())
    }

    /// Applies what the log has besides.
    pub(super) fn apply_replayed(&self, commits: Vec<Replay>) -> Result<()> {
        let (catalog, state) = (self.steps.catalog, self.merges.installer.state);
        let mut hidden = HiddenTables::default();
        for Replay { seq, parts, in_doubt } in commits {
            let mut batch = Batch { durable: true, ..Batch::default() };
            let mut changes = Vec::new();
            for part in parts {
                if let Some(change) = part.change {
                    changes.push(change);
                    continue;
                }
                if part.block.expiring().records > 0 {
                    self.clock.use_it();
                }
                let find = |(id, _): &(u32, Extent)| self.merges.values.segment(*id);
                let segments = part.segments.iter().filter_map(find).collect();
                batch.parts.push(BatchPart {
                    table: part.table,
                    block: part.block,
                    ranges: part.ranges,
                    segments,
                    indexes: None,
                });
            }
            if let Some(name) = catalog.names.refused(&state.load(), &changes) {
                return Err(Error::corrupt("log", 0, format!("two tables have the name {name:?}")));
            }
            changes.iter().filter_map(TableChange::name).for_each(|name| catalog.note_index(name));
            changes.iter().for_each(|change| catalog.note_lifetime(change.ttl_ms(), self.clock));
            hidden.note(&state.load(), &changes);
            batch.tables = TableChanges::of(changes);
            self.steps.apply_recovered(seq, batch, in_doubt)?;
            if !in_doubt {
                self.log.recovered(seq);
            }
        }
        // The log may have records of tables that are gone.
        catalog.operators.retain(&state.load());
        self.attach_replayed(&hidden);
        Ok(())
    }

    /// Notes which tables that the log has made are indexes of which, and which are gone.
    fn attach_replayed(&self, hidden: &HiddenTables) {
        if hidden.made.is_empty() && hidden.dropped.is_empty() {
            return;
        }
        let (state, committer) = (self.merges.installer.state, self.steps.committer);
        let commit = committer.lock();
        let mut next = state.load().copy();
        next.detach_indexes(hidden.dropped.iter().map(|(id, name)| (*id, &**name)));
        next.attach_indexes(hidden.made.iter().map(|(id, name)| (*id, &**name)));
        state.store(Arc::new(next));
        committer.end(commit, state, self.steps.freezer.background);
    }
}
