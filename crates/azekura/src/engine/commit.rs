//! Committing: check for conflicts, take a sequence number, log, apply, publish.
//!
//! Everything that can be done alone (sorting, copying, storing large values) was done before. The
//! commit lock then orders commits. Durable commits queue, and one of them leads: it commits all that
//! wait with one sync (group commit) and hands the lead on, so that none waits for more than the
//! sync under way and its own. Nothing is visible before it is logged, and a durable commit not
//! before it is durable.

mod group;
mod sync;

pub(super) use group::Waiting;

use super::Engine;
use super::batch::{Batch, BatchPart};
use super::history::{History, conflict_error, own_error};
use super::state::{ActiveBuf, State, TableState, publish};
use super::within;
use crate::base::codec::usize_of;
use crate::base::error::Result;
use crate::base::sync::{CountedArc, MutexGuard};
use crate::format::frame::{NewTable, write_new_table, write_part};
use crate::log::segment_list;
use crate::memtable::chunk::Chunk;
use crate::values::Segment;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A chunk of this size is logged by reference: if a flush overtakes the log it is never copied.
const BY_REFERENCE_BYTES_MIN: usize = 256 << 10;
/// Active buffers that wait to be used again.
const SPARES_MAX: usize = 4;
/// One of more than this many times the size wanted waits for a table that needs it.
const SPARE_TIMES_MAX: usize = 4;
/// What waits for the log is a bulk from this part of a memtable on: shorter runs would be merged too often.
const BULK_PART: u64 = 4;

/// The part of the engine that the commit lock guards.
pub(super) struct Commit {
    pub(super) next_seq: u64,
    pub(super) history: History,
    /// Memory of the live memtables.
    pub(super) live_bytes: usize,
    /// What the log had been given at the last freeze.
    pub(super) queued_before: u64,
    /// Bytes of the commits with large values since the last freeze.
    pub(super) large_bytes: u64,
    /// Active buffers to be used again once no reader holds them.
    pub(super) spare: Vec<CountedArc<ActiveBuf>>,
    /// Tables that have a chunk more, and may now have too many.
    chunk_added: Vec<u32>,
    /// Tables whose memtables were empty at the last freeze and are not now.
    pub(super) touched: Vec<u32>,
    /// Tables of which is known whether their memtables were read.
    pub(super) noted: Vec<u32>,
    /// A table was made since the last freeze: the log before it is needed until a manifest names it.
    pub(super) created: bool,
}

impl Commit {
    pub(super) fn new(next_seq: u64) -> Commit {
        Commit {
            next_seq,
            history: History::default(),
            live_bytes: 0,
            queued_before: 0,
            large_bytes: 0,
            spare: Vec::new(),
            chunk_added: Vec::new(),
            touched: Vec::new(),
            noted: Vec::new(),
            created: false,
        }
    }

    /// Lets go of the value segments that buffers of the past refer to.
    pub(super) fn clear_spares(&mut self) {
        // One that a reader still holds is not worth waiting for. It goes even if the reader lets go of it at
        // this moment, for what it refers to stays in the file as long as it is kept.
        self.spare.retain_mut(|spare| match CountedArc::get_mut(spare) {
            Some(buf) => {
                buf.segments.get_mut().clear();
                true
            }
            None => false,
        });
    }

    /// Keeps a buffer to be used again.
    pub(super) fn keep_spare(&mut self, spare: Option<CountedArc<ActiveBuf>>) {
        self.spare.extend(spare);
        if self.spare.len() > SPARES_MAX
            && let Some((smallest, _)) =
                self.spare.iter().enumerate().min_by_key(|(_, a)| a.list.capacity_bytes())
        {
            self.spare.swap_remove(smallest);
        }
    }

    /// An empty active buffer of about `size` bytes, with room for `bytes` in `records`.
    pub(super) fn new_active(&mut self, size: usize, records: usize, bytes: usize) -> CountedArc<ActiveBuf> {
        let size = size.max((bytes + records * 64 + 256) * 2);
        let suits = |a: &ActiveBuf| (size..=size * SPARE_TIMES_MAX).contains(&a.list.capacity_bytes());
        let found = self.spare.iter_mut().position(|a| CountedArc::get_mut(a).is_some_and(|a| suits(a)));
        if let Some(i) = found {
            let mut spare = self.spare.swap_remove(i);
            if let Some(buf) = CountedArc::get_mut(&mut spare) {
                buf.list.reset();
                buf.segments.get_mut().clear();
                return spare;
            }
        }
        CountedArc::new(ActiveBuf::new(size))
    }
}

/// A part on its way into the memtable.
enum Ready {
    Small(BatchPart),
    Chunk(u32, Arc<Chunk>),
    Tables(Vec<NewTable>),
}

impl Engine {
    /// Commits a batch and gives its sequence number.
    pub(crate) fn commit(&self, mut batch: Batch) -> Result<u64> {
        self.check_writable()?;
        self.check_open()?;
        // Whose delay nobody would watch is durable at once.
        batch.durable |= !self.look_after();
        if self.log.is_long() {
            self.shorten_log()?;
        }
        let _admitted = self.admit_batch(&batch)?;
        self.pace_writer(batch.user_bytes)?;
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.counters.user_bytes.fetch_add(batch.user_bytes, Ordering::Relaxed);
        let done = if batch.durable { self.commit_durable(batch) } else { self.commit_eventual(batch) };
        if let Ok(seq) = done {
            within::note(self, seq);
        }
        done
    }

    fn commit_eventual(&self, batch: Batch) -> Result<u64> {
        if self.log.is_full() {
            // Nothing more is promised to be durable soon before what waits is.
            self.sync()?;
        }
        let mut commit = self.commit.lock();
        self.poison.check()?;
        let armed = self.poison.armed("committing");
        let done = self.commit_one(&mut commit, batch);
        armed.disarm();
        self.end_commit(commit);
        done
    }

    /// Lets go of the commit lock, and does what the commits under it have left to be done without.
    fn end_commit(&self, mut commit: MutexGuard<'_, Commit>) {
        let chunk_added = std::mem::take(&mut commit.chunk_added);
        drop(commit);
        if !chunk_added.is_empty() {
            self.merge_small_chunks(&chunk_added);
        }
    }

    fn commit_one(&self, commit: &mut Commit, batch: Batch) -> Result<u64> {
        let seq = self.sequence(commit, &batch)?;
        let ready = self.log_batch(seq, batch);
        self.apply(commit, seq, ready)?;
        self.rotate_if_full(commit)?;
        Ok(seq)
    }

    /// Checks for conflicts and gives the commit its number.
    fn sequence(&self, commit: &mut Commit, batch: &Batch) -> Result<u64> {
        self.check_open()?;
        self.check_reads(commit, batch)?;
        let state = self.state.load();
        for part in &batch.parts {
            state.table(part.table)?;
        }
        let seq = commit.next_seq;
        commit.next_seq += 1;
        if batch.parts.iter().any(|p| !p.segments.is_empty()) {
            commit.large_bytes += batch.user_bytes;
        }
        if commit.history.wanted() {
            for part in &batch.parts {
                let mut tmp = [0; 8];
                let keys = (0..part.block.len()).map(|i| part.block.key(i, &mut tmp).to_vec()).collect();
                commit.history.record(seq, part.table, keys, part.ranges.clone());
            }
        }
        Ok(seq)
    }

    fn check_reads(&self, commit: &Commit, batch: &Batch) -> Result<()> {
        let Some(set) = &batch.reads else { return Ok(()) };
        match commit.history.conflict(set) {
            None => Ok(()),
            Some((table, seq)) => {
                let state = self.state.load();
                let name = state.table(table).map_or("", |t| &*t.name);
                Err(if set.own.commits.iter().any(|own| own.contains(&seq)) {
                    own_error(name)
                } else {
                    conflict_error(name)
                })
            }
        }
    }

    /// Whether somebody looks into a table's memtable.
    fn is_read(&self, table: u32) -> bool {
        self.state.load().table(table).is_ok_and(|t| t.is_read())
    }

    /// Queues a batch for the log and makes its parts ready for the memtable.
    fn log_batch(&self, seq: u64, batch: Batch) -> Vec<Ready> {
        let bytes: usize = batch.parts.iter().map(|p| p.block.bytes()).sum();
        let as_chunks = batch.parts.iter().any(|p| p.is_chunk(self.is_read(p.table)));
        if as_chunks && bytes >= BY_REFERENCE_BYTES_MIN && batch.created.is_empty() {
            let chunks: Vec<(u32, Arc<Chunk>)> =
                batch.parts.into_iter().map(|p| (p.table, Arc::new(p.into_chunk(&self.pool)))).collect();
            self.log.add_chunks(seq, chunks.clone());
            return chunks.into_iter().map(|(table, chunk)| Ready::Chunk(table, chunk)).collect();
        }
        let large = batch.parts.iter().any(|p| !p.segments.is_empty());
        self.log.add_small(seq, large, batch.created.len() + batch.parts.len(), |w| {
            for table in &batch.created {
                write_new_table(w, table);
            }
            for p in &batch.parts {
                write_part(w, p.table, &segment_list(&p.segments), &p.ranges, &p.block);
            }
        });
        let ready = |p: BatchPart| {
            if as_chunks {
                Ready::Chunk(p.table, Arc::new(p.into_chunk(&self.pool)))
            } else {
                Ready::Small(p)
            }
        };
        let created = (!batch.created.is_empty()).then_some(Ready::Tables(batch.created));
        created.into_iter().chain(batch.parts.into_iter().map(ready)).collect()
    }

    /// Puts a commit's parts into the memtable and makes them visible.
    fn apply(&self, commit: &mut Commit, seq: u64, ready: Vec<Ready>) -> Result<()> {
        let mut next: Option<State> = None;
        let state_now = self.state.load();
        for part in ready {
            match part {
                Ready::Chunk(table, chunk) => {
                    let state = next.get_or_insert_with(|| state_now.copy());
                    let mut t = self.seal_for(commit, state.table(table)?)?;
                    t.push_chunk(chunk)?;
                    commit.live_bytes += t.live_bytes();
                    state.tables.set(t);
                }
                Ready::Tables(created) if created.is_empty() => {}
                Ready::Tables(created) => {
                    let state = next.get_or_insert_with(|| state_now.copy());
                    commit.created = true;
                    created.into_iter().for_each(|table| self.add_table(state, table));
                }
                Ready::Small(part) => self.apply_small(commit, seq, part, &state_now, &mut next)?,
            }
        }
        publish(&self.state, seq, next);
        Ok(())
    }

    /// A table whose active buffer is sealed, so that something newer may come; its bytes are not among the
    /// live ones.
    fn seal_for(&self, commit: &mut Commit, table: &TableState) -> Result<TableState> {
        let mut t = TableState::clone(table);
        commit.live_bytes -= t.live_bytes().min(commit.live_bytes);
        if t.active.is_none() && t.chunks.is_empty() {
            commit.touched.push(t.id);
            t.begin_memtable();
        }
        commit.keep_spare(t.seal_active(&self.pool)?);
        commit.chunk_added.push(t.id);
        Ok(t)
    }

    fn apply_small(
        &self,
        commit: &mut Commit,
        seq: u64,
        part: BatchPart,
        state_now: &State,
        next: &mut Option<State>,
    ) -> Result<()> {
        let (records, bytes) = (part.block.len(), part.block.bytes());
        let table = next.as_ref().unwrap_or(state_now).table(part.table)?;
        let active = match table.active.as_ref().filter(|a| a.list.fits(records, bytes)).cloned() {
            Some(active) => active,
            None => {
                let was_full = table.active.is_some();
                let mut t = self.seal_for(commit, table)?;
                if was_full {
                    t.active_is_full();
                }
                let active = commit.new_active(usize_of(t.active_bytes), records, bytes);
                t.active = Some(active.clone());
                commit.live_bytes += t.live_bytes();
                next.get_or_insert_with(|| state_now.copy()).tables.set(t);
                active
            }
        };
        if !part.segments.is_empty() {
            hold(&mut active.segments.lock(), part.segments);
        }
        let before = active.bytes();
        let mut tmp = [0; 8];
        for i in 0..records {
            let (key, tag) = (part.block.key(i, &mut tmp), part.block.tag(i));
            // SAFETY: the commit lock is held (`commit` is what it guards), so this is the only
            // insert, and the last one happened before the lock was taken.
            let fitted = unsafe { active.list.insert(key, seq, tag as u8, part.block.value(i)) };
            debug_assert!(fitted, "`fits` promised room");
        }
        commit.live_bytes += active.bytes() - before;
        Ok(())
    }

    /// Applies a commit that recovery found in the log. `relog`: and queues it for the log once more.
    pub(super) fn apply_recovered(&self, seq: u64, batch: Batch, relog: bool) -> Result<()> {
        let mut commit = self.commit.lock();
        if relog {
            let ready = self.log_batch(seq, batch);
            self.apply(&mut commit, seq, ready)?;
            commit.next_seq = seq + 1;
            self.end_commit(commit);
            return Ok(());
        }
        let parts = batch.parts.into_iter().map(|p| {
            if p.is_chunk(false) {
                Ready::Chunk(p.table, Arc::new(p.into_chunk(&self.pool)))
            } else {
                Ready::Small(p)
            }
        });
        let ready: Vec<Ready> = std::iter::once(Ready::Tables(batch.created)).chain(parts).collect();
        self.apply(&mut commit, seq, ready)?;
        commit.next_seq = seq + 1;
        self.end_commit(commit);
        Ok(())
    }

    pub(super) fn lock_commit(&self) -> MutexGuard<'_, Commit> {
        self.commit.lock()
    }

    /// A snapshot for a transaction that reads before it writes: later commits leave a trace.
    /// The number is the snapshot's, and what ends with `leave`: the state itself may show more later.
    pub(crate) fn track_snapshot(&self) -> (Arc<State>, u64) {
        let mut commit = self.commit.lock();
        let state = self.state.load_full();
        let seq = state.visible();
        commit.history.track_snapshot(seq);
        (state, seq)
    }

    /// Ends what `enter` began.
    pub(crate) fn untrack_snapshot(&self, snapshot: u64) {
        self.commit.lock().history.untrack_snapshot(snapshot);
    }
}

/// Adds segments to a list that holds each once.
fn hold(list: &mut Vec<Arc<Segment>>, more: Vec<Arc<Segment>>) {
    for segment in more {
        if !list.iter().any(|s| Arc::ptr_eq(s, &segment)) {
            list.push(segment);
        }
    }
}
