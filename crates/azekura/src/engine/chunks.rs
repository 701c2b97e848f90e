//! The memtable's upkeep: sealing the active buffer, and merging small chunks as they pile up.
//!
//! Chunks are classed by size, each class four times the one below. When four stand side by side and none is
//! of a larger class than the newest, they become one of the next. So a table of small commits has a handful
//! of chunks. Each record is copied a few times between caches. Large chunks wait for the flush, which merges
//! them all at once.
//!
//! Merges that take microseconds are done with the commit that causes them, under its lock. Longer ones are
//! done by the same thread after it has let go of the lock. Those that take milliseconds are left to the
//! thread that flushes, while that has nothing else to do, and writers write little (`commit/rate.rs`). (At
//! 20,000 operations/s on records of 1,000 bytes, half of them updates, such a merge delayed a commit by 5 to
//! 7 ms. Beside a writer at full speed the flushing thread would take a reader's processor: the median of six
//! runs of `mixed` was 1,040K gets/s, and 884K then.)
//!
//! Others commit meanwhile, and a flush may take the chunks. The merged chunk takes their place only if they
//! still stand there, side by side. Newer chunks before them do not matter, since a chunk is as new as its
//! place. Readers see the same records before and after, whichever state they hold.

use super::background::Background;
use super::commit::{Commit, Committer};
use super::state::{ActiveBuf, State, TableState};
use crate::base::codec::usize_of;
use crate::base::error::Result;
use crate::base::fault::fault;
use crate::base::sync::{ArcSwap, CountedArc, MutexGuard};
use crate::format::block::{Block, Tag};
use crate::format::expiry::Content;
use crate::format::operand::{Gathering, is_long};
use crate::format::ranges::Ranges;
use crate::memtable::active::{Active, ActiveCursor, Entry};
use crate::memtable::chunk::Chunk;
use crate::memtable::pool::Pool;
use crate::merge::merge_chunks;
use std::sync::Arc;

/// Chunks that are merged at once while they are small.
const FAN_IN: usize = 4;
/// Chunks of this size together are merged under the commit lock: that costs less than a new state.
const MERGED_BYTES_AT_ONCE: usize = 64 << 10;
/// So much together takes milliseconds to merge.
const MERGED_BYTES_LONG: usize = 1 << 20;
/// The smallest class ends here.
const CLASS_BYTES: usize = 8 << 10;

fn class_of(chunk: &Chunk) -> u32 {
    let times = chunk.bytes() / CLASS_BYTES;
    (usize::BITS - times.leading_zeros()).div_ceil(2)
}

/// Where the newest chunks stand that are to be merged. They get larger with age, so the search ends where
/// they are too large together.
fn mergeable(chunks: &[Arc<Chunk>], bytes_max: usize) -> Option<usize> {
    let fours = || chunks.windows(FAN_IN);
    let small = |four: &&[Arc<Chunk>]| four.iter().map(|c| c.bytes()).sum::<usize>() <= bytes_max;
    fours().take_while(small).position(|four| four.iter().all(|c| class_of(c) <= class_of(&four[0])))
}

/// Where chunks stand side by side in a list, if they do.
fn place_of(chunks: &[Arc<Chunk>], wanted: &[Arc<Chunk>]) -> Option<usize> {
    chunks.windows(wanted.len()).position(|w| w.iter().zip(wanted).all(|(a, b)| Arc::ptr_eq(a, b)))
}

impl TableState {
    /// Adds the newest chunk. The active buffer must have been sealed.
    pub(super) fn push_chunk(&mut self, chunk: Arc<Chunk>) -> Result<()> {
        self.chunks.insert(0, chunk);
        while self.chunks.len() >= FAN_IN && mergeable(&self.chunks[..FAN_IN], MERGED_BYTES_AT_ONCE).is_some()
        {
            let merged = self.merge_chunks(&self.chunks[..FAN_IN])?;
            self.chunks.splice(..FAN_IN, [merged]);
        }
        Ok(())
    }

    pub(super) fn merge_chunks(&self, newest_first: &[Arc<Chunk>]) -> Result<Arc<Chunk>> {
        Ok(Arc::new(self.filtered(merge_chunks(newest_first)?)))
    }

    /// A chunk of the table, with a filter where memtables of the table are read. (Without filters each
    /// lookup searches all chunks. Inserts with an index by 100,000 look up each key: 1.14M/s without, 1.46M
    /// with.)
    pub(super) fn filtered(&self, chunk: Chunk) -> Chunk {
        if self.dials().filters_chunks { chunk.with_filter(self.kind) } else { chunk }
    }

    /// Some chunks that are to be merged outside the commit lock.
    fn mergeable_chunks(&self) -> Option<&[Arc<Chunk>]> {
        mergeable(&self.chunks, self.dials().merged_bytes_max).map(|from| &self.chunks[from..from + FAN_IN])
    }

    /// Makes a chunk of the active buffer, if anything is in it. Gives the buffer back for reuse.
    pub(super) fn seal_active(&mut self, pool: &Arc<Pool>) -> Result<Option<CountedArc<ActiveBuf>>> {
        let Some(active) = self.active.take() else { return Ok(None) };
        if active.list.is_empty() {
            self.active = Some(active);
            return Ok(None);
        }
        let segments = active.segments.lock().clone();
        let chunk = Chunk::new(newest_of(&active.list, pool)?, Ranges::default(), segments).pooled(pool);
        self.push_chunk(Arc::new(self.filtered(chunk)))?;
        Ok(Some(active))
    }
}

/// The newest version of each key, folded with older ones if it is an operand that was not when it came. The
/// rest nobody can see any more.
fn newest_of(list: &Active, pool: &Pool) -> Result<Block> {
    let mut cursor = list.cursor();
    cursor.seek_first();
    let mut block = Block::new(cursor.entry().and_then(|first| first.widths()));
    match block.fixed {
        Some(fixed) => pool.reserve(&mut block, list.len(), list.len() * usize_of(fixed.stride)),
        None => pool.reserve(&mut block, 0, list.used_bytes() / 2),
    }
    let mut last: Option<&[u8]> = None;
    while let Some(entry) = cursor.entry() {
        // The newest version of a key comes first.
        if last != Some(entry.key) {
            if entry.tag() == Tag::Expiring && is_long_operand(entry) {
                if block.fixed.is_some() {
                    block = block.to_general();
                }
                push_folded(&mut block, cursor.clone())?;
            } else {
                if block.fixed.is_some() && block.fixed != entry.widths() {
                    block = block.to_general();
                }
                block.push(entry.key, entry.tag(), entry.value);
            }
            last = Some(entry.key);
        }
        cursor.next();
    }
    Ok(block)
}

fn is_long_operand(entry: Entry<'_>) -> bool {
    let content = Content::of(entry.tag(), entry.value);
    content.tag == Tag::Operand && is_long(content.value)
}

/// Adds what the versions of a key make, at the newest of which a cursor stands.
#[cold]
fn push_folded(block: &mut Block, mut cursor: ActiveCursor<'_>) -> Result<()> {
    let Some(newest) = cursor.entry() else { return Ok(()) };
    let mut gathering = Gathering::begin(Content::of(newest.tag(), newest.value).value)?;
    cursor.next();
    while gathering.goes_on()
        && let Some(older) = cursor.entry().filter(|older| older.key == newest.key)
    {
        gathering.add(Content::of(older.tag(), older.value))?;
        cursor.next();
    }
    let mut bytes = Vec::new();
    let (tag, stored) = gathering.end().stored(&mut bytes);
    block.push(newest.key, tag, stored);
    Ok(())
}

/// Merges chunks of one of these tables, if many have piled up. Called after a commit, outside its lock.
///
/// Best effort: one thread merges at a time, at most one merge per commit. Skipping is safe; the flush merges
/// everything. What takes long is left to the thread that flushes, if `flusher` says that it waits.
pub(super) fn merge_small_chunks(
    committer: &Committer,
    state: &ArcSwap<State>,
    tables: &[u32],
    flusher: Option<&Background>,
) {
    let Some(turn) = committer.chunk_merges.take_turn() else { return };
    let before = state.load_full();
    let crowded = |&id: &u32| before.tables.get(id).and_then(|t| Some((t, t.mergeable_chunks()?)));
    let Some((table, chunks)) = tables.iter().find_map(crowded) else { return };
    let bytes: usize = chunks.iter().map(|c| c.bytes()).sum();
    let is_left = |flusher: &&Background| {
        bytes >= MERGED_BYTES_LONG && committer.rate.is_low() && flusher.is_flusher_waiting()
    };
    if let Some(flusher) = flusher.filter(is_left) {
        drop(turn);
        flusher.ask_for_chunk_merge(table.id);
        return;
    }
    let Ok(merged) = table.merge_chunks(chunks) else { return };
    committer.lock().replace_chunks(state, table.id, chunks, merged);
}

impl Committer {
    /// Lets go of the commit lock, says what was committed, and merges chunks that have piled up under it.
    pub(super) fn end(
        &self,
        mut commit: MutexGuard<'_, Commit>,
        state: &ArcSwap<State>,
        background: &Background,
    ) {
        self.rate.note(commit.cost);
        let chunk_added = std::mem::take(&mut commit.chunk_added);
        drop(commit);
        if !chunk_added.is_empty() {
            merge_small_chunks(self, state, &chunk_added, Some(background));
        }
    }
}

impl Commit {
    /// Puts a chunk in the place of those that it was merged from, unless a flush has taken them or the
    /// table was dropped.
    pub(super) fn replace_chunks(
        &mut self,
        cell: &ArcSwap<State>,
        table: u32,
        old: &[Arc<Chunk>],
        merged: Arc<Chunk>,
    ) {
        let state = cell.load();
        let Ok(current) = state.table(table) else { return };
        let place = place_of(&current.chunks, old);
        let place = place.or_else(|| (fault!("replace_blindly")).then_some(0));
        let Some(from) = place else { return };
        let mut t = TableState::clone(current);
        let before: usize = old.iter().map(|c| c.bytes()).sum();
        self.live_bytes = (self.live_bytes + merged.bytes()).saturating_sub(before);
        let until = (from + old.len()).min(t.chunks.len());
        t.chunks.splice(from..until, [merged]);
        cell.store(Arc::new(state.with_table(t)));
    }
}
