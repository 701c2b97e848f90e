//! The steps of a commit, under the commit lock: its number, the log, the memtables.

use super::apply::Memtables;
use super::committer::Committer;
use super::guarded::Commit;
use super::order;
use super::queue::{Ready, log_batch, may_be_told, recovered, take_small};
use crate::base::error::Result;
use crate::base::life::Life;
use crate::base::poison::Poison;
use crate::engine::batch::{Batch, BatchPart};
use crate::engine::catalog::Catalog;
use crate::engine::changes::dropped;
use crate::engine::checkpoint::{Checkpointer, PendingFree};
use crate::engine::fed::Feeding;
use crate::engine::freeze::Freezer;
use crate::engine::mirrored::Mirrored;
use crate::engine::state::{State, TableState};
use crate::format::feed::part_key;
use std::sync::Arc;

/// Brings commits to the log and the memtables. It writes nothing to the file but, for a group, the log.
pub(in crate::engine) struct CommitSteps<'a> {
    pub(in crate::engine) freezer: Freezer<'a>,
    pub(in crate::engine) committer: &'a Committer,
    pub(in crate::engine) catalog: &'a Catalog,
    pub(in crate::engine) feed: &'a Feeding,
    pub(in crate::engine) checkpointer: &'a Checkpointer,
    pub(in crate::engine) life: &'a Life,
    pub(in crate::engine) poison: &'a Poison,
    pub(in crate::engine) mirrored: &'a Mirrored,
}

impl CommitSteps<'_> {
    /// All steps of a commit that is not durable when it is visible.
    pub(super) fn commit_one(&self, commit: &mut Commit, mut batch: Batch) -> Result<u64> {
        let seq = self.sequence(commit, &mut batch)?;
        let Freezer { state, log, .. } = self.freezer;
        let state = state.load();
        if let Some(part) = take_small(commit, &state, &mut batch) {
            commit.apply_small(&self.memtables(true), &state, log, seq, part)?;
        } else {
            let ready = self.log_batch(seq, batch);
            self.apply(commit, seq, ready)?;
        }
        self.freezer.rotate_if_full(commit)?;
        Ok(seq)
    }

    /// Gives a commit its number, or refuses it.
    pub(super) fn sequence(&self, commit: &mut Commit, batch: &mut Batch) -> Result<u64> {
        if let Some(changes) = &batch.tables {
            // To commit it again would be in vain.
            order::check_changes(&self.freezer.state.load(), &self.catalog.names, changes)?;
        }
        let sequenced = self.try_sequence(commit, batch);
        if sequenced.is_err() {
            batch.give_back();
        }
        sequenced
    }

    fn try_sequence(&self, commit: &mut Commit, batch: &mut Batch) -> Result<u64> {
        self.committer.check_open()?;
        let state = self.freezer.state.load();
        if let Some(reads) = &batch.reads
            && !self.life.is_still(reads.since)
        {
            order::expect_tables(&state, batch, reads, |id| self.catalog.gone.name_of(id))?;
        }
        self.feed.expect(&state, &commit.history, batch)?;
        self.catalog.operators.expect(&state, batch)?;
        let seq = commit.sequence(&state, batch)?;
        commit.feed(seq, batch);
        Ok(seq)
    }

    /// All steps of a small commit that is not durable when it is visible, and of which the feed is told, or
    /// none of them: what it tells is gathered here, if it is as little as one record. `hash_seed` is the
    /// file's.
    pub(super) fn commit_told(
        &self,
        commit: &mut Commit,
        batch: &mut Batch,
        hash_seed: u64,
    ) -> Result<Option<u64>> {
        self.committer.check_open()?;
        let Freezer { state, log, .. } = self.freezer;
        let state = state.load();
        let small = |part: &&BatchPart| !part.is_chunk(state.dials(part.table));
        let Some(part) = may_be_told(batch).filter(small) else { return Ok(None) };
        let told = self.feed.with(|fed| commit.tell(&state, fed, part, hash_seed))?;
        let Some(told) = told else { return Ok(None) };
        let sequenced =
            self.catalog.operators.expect(&state, batch).and_then(|()| commit.sequence(&state, batch));
        let seq = sequenced.inspect_err(|_| batch.give_back())?;
        commit.feed.total_bytes = told.now.total_bytes;
        let part = batch.parts.swap_remove(0);
        commit.last_table = part.table;
        let key = part_key(told.now.commit, 0);
        commit.apply_told(&self.memtables(true), &state, log, seq, (part, told.table, &key))?;
        self.freezer.rotate_if_full(commit)?;
        Ok(Some(seq))
    }

    /// Queues a commit for the log, and makes its parts ready for the memtables.
    pub(super) fn log_batch(&self, seq: u64, batch: Batch) -> Vec<Ready> {
        let Freezer { state, log, memory, .. } = self.freezer;
        log_batch(log, &state.load(), &memory.pool, seq, batch)
    }

    /// Puts a commit into the memtables and makes it visible.
    pub(super) fn apply(&self, commit: &mut Commit, seq: u64, ready: Vec<Ready>) -> Result<()> {
        self.apply_to(commit, seq, ready, true)
    }

    fn apply_to(&self, commit: &mut Commit, seq: u64, ready: Vec<Ready>, attaches: bool) -> Result<()> {
        let to = self.memtables(attaches);
        let Some(Ready::Tables(changes)) = ready.first() else { return commit.apply(&to, seq, ready) };
        let gone: Vec<u32> = dropped(changes).collect();
        let before = self.freezer.state.load_full();
        commit.apply(&to, seq, ready)?;
        // Only recovery does not attach.
        self.tables_are_gone(commit, &before, &gone, !attaches);
        Ok(())
    }

    fn memtables(&self, attaches: bool) -> Memtables<'_> {
        let Freezer { state, memory, .. } = self.freezer;
        Memtables { state, names: &self.catalog.names, pool: &memory.pool, attaches }
    }

    /// Applies a commit that recovery found in the log, but for the lists of indexes. `relog`: and queues it
    /// for the log once more.
    pub(in crate::engine) fn apply_recovered(&self, seq: u64, batch: Batch, relog: bool) -> Result<()> {
        let Freezer { state, memory, background, .. } = self.freezer;
        let mut commit = self.committer.lock();
        batch.parts.iter().for_each(|part| self.catalog.operators.note(part));
        let ready = if relog { self.log_batch(seq, batch) } else { recovered(&memory.pool, batch) };
        self.apply_to(&mut commit, seq, ready, false)?;
        commit.next_seq = seq + 1;
        self.committer.end(commit, state, background);
        Ok(())
    }
}

/// What a commit, or a checkpoint, has dropped.
impl CommitSteps<'_> {
    /// Lets go of what a commit has dropped. The newest checkpoint names its runs, and the log behind that
    /// refers to its large values. The rest of its memory goes with the next checkpoint too, when nobody
    /// waits for it. `at_once`: it goes now. (A log may make and drop very many tables.)
    fn tables_are_gone(&self, commit: &mut Commit, before: &State, gone: &[u32], at_once: bool) {
        if gone.is_empty() {
            return;
        }
        self.life.note_dropped();
        for table in gone.iter().filter_map(|&id| before.tables.get(id)) {
            self.forget_table(commit, before, table);
            let runs = table.levels.iter().flat_map(|l| &l.runs).cloned();
            self.checkpointer.free_later(runs.map(PendingFree::whole));
            if !at_once {
                self.checkpointer.free_later([PendingFree::memory(table.clone())]);
                continue;
            }
            let segments = table.segments();
            let held = (!segments.is_empty()).then(|| PendingFree::memory(Arc::new(segments)));
            self.checkpointer.free_later(held);
        }
        self.note_memory(commit);
    }

    /// Lets go of what a checkpoint has dropped. No durable one names it any more. Recovery passes over the
    /// log's records of unknown tables, so values may go too.
    pub(in crate::engine) fn tables_were_removed(&self, commit: &mut Commit, before: &State, gone: &[u32]) {
        self.life.note_dropped();
        for table in gone.iter().filter_map(|&id| before.tables.get(id)) {
            self.catalog.names.remove(&table.name);
            self.forget_table(commit, before, table);
            table.levels.iter().flat_map(|l| &l.runs).for_each(|run| run.free_on_drop());
        }
        self.note_memory(commit);
    }

    /// A table is in no state any more, and its memory no part of the memtables.
    fn forget_table(&self, commit: &mut Commit, before: &State, table: &TableState) {
        self.catalog.gone.add(table.id, before.name_when_gone(table.id));
        self.freezer.memory.count_few(Some(table), None);
        self.catalog.operators.forget(table.id);
        commit.live_bytes -= table.live_bytes().min(commit.live_bytes);
    }

    /// What memtables hold, after tables have gone.
    fn note_memory(&self, commit: &Commit) {
        let Freezer { state, pace, background, .. } = self.freezer;
        pace.set_live(self.freezer.held_bytes(commit));
        if !state.load().has_frozen() {
            pace.set_frozen(0);
            background.forget_flush_error();
        }
    }
}
