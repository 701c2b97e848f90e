//! The flush: frozen memtables become runs, and the log before them is forgotten.

use super::checkpoint::PendingFree;
use super::compaction::install::Installer;
use super::compaction::merges::Merges;
use super::compaction::output::{OutputWriter, UninstalledRuns};
use super::config::Config;
use super::counters::Counters;
use super::crew::Role;
use super::few::few_of;
use super::flusher::Flusher;
use super::freeze::Freezer;
use super::state::{Level, TableState, look};
use crate::base::codec::usize_of64;
use crate::base::error::Result;
use crate::base::key::SortKey;
use crate::base::life::Life;
use crate::base::limits::INLINE_VALUE_BYTES_MAX;
use crate::format::few::Few;
use crate::format::hidden::is_hidden;
use crate::memtable::chunk::Chunk;
use crate::merge::Merger;
use crate::values::VALUE_POINTER_BYTES;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Keys looked up in older runs to learn how many of a flush's records replace others.
const SAMPLE_KEYS: u64 = 64;

/// A run of which a larger part replaces older records will soon be merged.
const UPDATES_FEW: f32 = 0.125;

/// A caller who waits for a flush looks around this often.
const WAIT: Duration = Duration::from_millis(20);

/// A table, what was frozen of it, and what this has become.
type Flushed = (u32, Arc<Vec<Arc<Chunk>>>, Output);

/// What a memtable becomes, with what a small table had before.
enum Output {
    Runs(FlushedRuns),
    /// So little that it stands in the manifest.
    Few(Option<Few>),
}

/// The runs of a memtable.
struct FlushedRuns {
    runs: UninstalledRuns,
    /// What part of the records likely replaces older ones.
    updates: f32,
}

/// Flushes, and waits for flushes.
#[derive(Clone, Copy)]
pub(super) struct Flush<'a> {
    pub(super) merges: Merges<'a>,
    pub(super) freezer: Freezer<'a>,
    pub(super) flusher: &'a Flusher,
    pub(super) counters: &'a Counters,
    pub(super) config: &'a Config,
    pub(super) life: &'a Life,
}

impl Flush<'_> {
    /// Flushes what is frozen, if anything is.
    pub(super) fn flush_frozen(&self) -> Result<()> {
        self.merges.poison.catch("flushing", || self.flush_all_frozen()).inspect_err(|_| {
            // If no run is in place, no record refers to what was stored apart. Closing its segment lets that
            // be freed.
            let _forgotten = self.merges.values.close_open();
        })
    }

    fn flush_all_frozen(&self) -> Result<()> {
        let _flushing = self.flusher.begin();
        let Freezer { state: newest, memory, pace, background, .. } = self.freezer;
        let state = newest.load_full();
        if !state.has_frozen() {
            return Ok(());
        }
        self.merges.store.room.look();
        let started = std::time::Instant::now();
        let frozen_bytes: u64 =
            state.frozen_tables().flat_map(|t| t.frozen.iter()).map(|c| c.bytes() as u64).sum();
        let mut outputs = Vec::new();
        let mut few_bytes = memory.few_bytes.load(Ordering::Relaxed);
        for table in state.frozen_tables() {
            let large_from = self.large_from(table);
            let few = few_of(table, &mut few_bytes, memory.division().few_bytes, self.now(), large_from)?;
            let output = match few {
                Some(few) => Output::Few(few),
                None => Output::Runs(self.flush_table(table, state.frozen_seq, large_from)?),
            };
            if let Output::Runs(output) = &output
                && newest.load().dials(table.id).warms_runs
            {
                output.runs.warm();
            }
            outputs.push((table.id, table.frozen.clone(), output));
        }
        // All that was committed before the freeze is frozen, and nothing older is in memory elsewhere. So
        // the file now holds every commit up to this number. (Not up to the newest state's: if all these
        // tables were dropped meanwhile, others may have been frozen since.)
        self.install_flush(outputs, state.frozen_seq)?;
        self.merges.checkpoints.write()?;
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        pace.note_flush(frozen_bytes, started.elapsed());
        // Done here, where a flush is waited for, since both look at the state.
        self.merges.note_levels();
        self.note_growth();
        background.wake();
        Ok(())
    }

    /// Asks for a sweep if much has grown: more may be in place than is alive.
    fn note_growth(&self) {
        let Freezer { bound, background, .. } = self.freezer;
        if !bound.is_kept(&self.merges.store.room) || bound.is_due() {
            return;
        }
        if bound.has_grown(self.merges.survey().in_place()) {
            // If there is no thread, the next flush or the next writer that waits asks again.
            let _later = background.ask_for_sweep(&bound.look);
        }
    }

    /// What has expired by then is not flushed.
    fn now(&self) -> u64 {
        self.merges.store.clock.now_if_used()
    }

    /// From which length on values of a table stand apart in runs. Those of the engine's own tables stand in
    /// their records.
    fn large_from(&self, table: &TableState) -> usize {
        if is_hidden(&table.name) { INLINE_VALUE_BYTES_MAX } else { self.config.large_value_bytes }
    }

    fn flush_table(&self, table: &TableState, newest: u64, large_from: usize) -> Result<FlushedRuns> {
        let sources = table.flush_sources();
        let few = table.few.as_ref().map_or(0, |few| few.records());
        let records = table.frozen.iter().map(|c| c.block.len() as u64).sum::<u64>() + few;
        let (mut bytes, mut held, mut large) = (0, 0, 0);
        for chunk in table.frozen.iter() {
            let (long_bytes, long) = chunk.block.bytes_from(large_from);
            bytes += (chunk.block.bytes() - long_bytes + long * VALUE_POINTER_BYTES) as u64;
            held += chunk.block.bytes() as u64;
            large += long;
        }
        let mut merger = Merger::new(sources, table.levels.is_empty(), self.now())?;
        let apart = merger.is_chain() && stands_apart(table, &table.frozen);
        let origin = table.origin(newest, table.levels.is_empty());
        // Only an estimate: an older run that cannot be read must not hold up the flush.
        let updates = if apart { 0.0 } else { sample_updates(table, &table.frozen).unwrap_or(0.0) };
        // What replaces others will be merged, and is to go in small parts then. On a nearly full disk all
        // is.
        let fine = updates > UPDATES_FEW || self.merges.store.room.is_tight();
        let mut output = OutputWriter::new(self.merges.outlet(), origin, !apart, fine, records, bytes);
        if large > 0 {
            output.store_apart(large_from, held / records.max(1));
            let _else_written_here = self.freezer.background.crew.need(Role::Values);
        }
        while !output.step(&mut merger)? {}
        Ok(FlushedRuns { runs: output.finish(&merger.ranges())?, updates })
    }

    /// Puts the runs in place of the frozen chunks.
    fn install_flush(&self, outputs: Vec<Flushed>, flushed_seq: u64) -> Result<()> {
        let Installer { state: newest, committer, background, checkpointer } = self.merges.installer;
        let Freezer { memory, pace, .. } = self.freezer;
        let mut commit = committer.lock();
        // Held until the state is stored: no merge takes a bottom that is about to be replaced.
        let work = background.lock();
        let state = newest.load_full();
        let mut next = state.copy();
        let mut placed = Vec::new();
        for (id, frozen, output) in outputs {
            // A table dropped meanwhile needs its runs no more.
            let Some(table) = state.tables.get(id) else { continue };
            let mut t = TableState::clone(table);
            debug_assert!(Arc::ptr_eq(&t.frozen, &frozen), "only the flush changes what is frozen");
            t.thaw();
            match output {
                Output::Few(few) => t.few = few,
                Output::Runs(output) => {
                    t.few = None;
                    t.levels = Arc::new(place(
                        &t.levels,
                        &output,
                        flushed_seq,
                        work.turns.bottom_is_free(&t.levels),
                    )?);
                    placed.push(output.runs);
                }
            }
            memory.count_few(Some(table), Some(&t));
            next.tables.set(t);
        }
        // (Where all these tables were dropped meanwhile, others may have been frozen since.)
        if next.frozen_seq == flushed_seq {
            next.frozen = None;
        }
        next.flushed_seq = next.flushed_seq.max(flushed_seq);
        let all = !next.has_frozen();
        commit.clear_spares();
        newest.store(Arc::new(next));
        placed.into_iter().for_each(UninstalledRuns::installed);
        checkpointer.free_later([PendingFree::memory(state)]);
        if all {
            pace.set_frozen(0);
        }
        Ok(())
    }

    /// Flushes everything committed so far and waits for it.
    pub(super) fn flush(&self) -> Result<()> {
        self.flush_while(|| true)
    }

    /// As `flush`, but waits only as long as `go_on` says so.
    pub(super) fn flush_while(&self, go_on: impl Fn() -> bool) -> Result<()> {
        let Installer { state, committer, background, checkpointer } = self.merges.installer;
        self.check_writable()?;
        let goal = state.load().visible();
        // An earlier flush may have failed on a disk that has room by now. Its error does not count.
        let before = background.flushes_begun();
        while state.load().flushed_seq < goal {
            self.check_writable()?;
            let mut commit = committer.lock();
            let rotated = self.freezer.rotate(&mut commit)?;
            drop(commit);
            if !rotated && !self.freezer.has_frozen() && self.flush_nothing()? {
                return Ok(());
            }
            self.wait(before)?;
            if !go_on() {
                return Ok(());
            }
        }
        // The runs are in place, but the checkpoint that names them may still be on its way.
        if checkpointer.lock().flushed_seq < goal {
            self.merges.checkpoints.write()?;
        }
        Ok(())
    }

    fn check_writable(&self) -> Result<()> {
        self.life.check()?;
        self.config.check_writable()?;
        self.merges.poison.check()
    }

    /// Where nothing is in memory, though commits were made (to tables since dropped), the file holds all.
    pub(super) fn flush_nothing(&self) -> Result<bool> {
        let Installer { state: newest, committer, .. } = self.merges.installer;
        let commit = committer.lock();
        let state = newest.load_full();
        if state.has_frozen() || !self.freezer.nothing_is_live(&commit, &state) {
            return Ok(false);
        }
        if state.flushed_seq < state.visible() {
            let mut next = state.copy();
            next.flushed_seq = next.visible();
            next.frozen_seq = next.visible();
            newest.store(Arc::new(next));
            drop(commit);
            self.merges.checkpoints.write()?;
        }
        Ok(true)
    }

    /// Waits until a flush has ended or a moment has passed. Without a thread for it, flushes. An error if a
    /// flush that began after number `after` has failed.
    pub(super) fn wait(&self, after: u64) -> Result<()> {
        let background = self.freezer.background;
        self.merges.poison.check()?;
        if !self.config.threads || background.crew.need(Role::Flush).is_err() {
            return self.flush_frozen();
        }
        let mut work = background.lock();
        work.check_flushes(after)?;
        if self.freezer.has_frozen() {
            background.wait(&mut work, WAIT);
        }
        Ok(())
    }
}

/// What part of the frozen records likely replaces older ones. A few of them are looked up.
fn sample_updates(table: &TableState, frozen: &[Arc<Chunk>]) -> Result<f32> {
    if table.levels.is_empty() {
        return Ok(0.0);
    }
    let total: u64 = frozen.iter().map(|c| c.block.len() as u64).sum();
    let (mut asked, mut found) = (0u32, 0u32);
    let mut tmp = [0; 8];
    for chunk in frozen {
        let n = chunk.block.len();
        let share = (n as u64 * SAMPLE_KEYS / total.max(1)).max(1);
        let step = (n as u64 / share).max(1);
        for i in (0..n as u64).step_by(usize_of64(step)).take(SAMPLE_KEYS as usize) {
            let key = SortKey::new(chunk.block.key(usize_of64(i), &mut tmp));
            asked += 1;
            found += u32::from(look(table.kind, &table.levels, key, |_, _| ())?.is_some());
        }
    }
    Ok(if asked == 0 { 0.0 } else { found as f32 / asked as f32 })
}

/// Whether the frozen keys meet no run of the table.
fn stands_apart(table: &TableState, frozen: &[Arc<Chunk>]) -> bool {
    let bounds: Vec<_> = frozen.iter().filter_map(|c| c.bounds()).collect();
    let min = bounds.iter().map(|b| &b.0).min();
    let max = bounds.iter().map(|b| &b.1).max();
    let (Some(min), Some(max)) = (min, max) else { return false };
    table.levels.iter().flat_map(|l| &l.runs).all(|r| !r.overlaps(min, max))
}

/// The levels with a flush's runs. If these meet nothing, and the oldest level is free (not being merged),
/// they join it, so that ascending loads are written once. Else they are the newest level.
fn place(levels: &[Arc<Level>], output: &FlushedRuns, newest: u64, free: bool) -> Result<Vec<Arc<Level>>> {
    let (mut levels, fresh) = (levels.to_vec(), output.runs.runs());
    if fresh.is_empty() {
        return Ok(levels);
    }
    if !free || levels.is_empty() || !fresh.iter().all(|run| Level::may_join_oldest(&levels, run)) {
        levels.insert(0, Arc::new(Level::new(fresh.to_vec(), output.updates, newest)?));
        return Ok(levels);
    }
    let Some(bottom) = levels.pop() else { return Ok(levels) };
    levels.push(Arc::new(bottom.with_joined(fresh)?));
    Ok(levels)
}
