//! A batch on its way: queued for the log, and made ready for the memtable.

use super::guarded::Commit;
use crate::base::fault::fault;
use crate::engine::batch::{Batch, BatchPart};
use crate::engine::changes::TableChanges;
use crate::engine::dials::Dials;
use crate::engine::feed::TOLD_BYTES_MAX;
use crate::engine::state::State;
use crate::format::frame::{TableChange, write_part, write_table_change};
use crate::format::operand::Folding;
use crate::log::{Log, segment_list};
use crate::memtable::chunk::Chunk;
use crate::memtable::pool::Pool;
use std::sync::Arc;

/// A chunk of this size is logged by reference: if a flush overtakes the log it is never copied.
const BY_REFERENCE_BYTES_MIN: usize = 256 << 10;

/// A part that is logged, and ready for the memtable.
pub(super) enum Ready {
    /// For the active buffer.
    Small(BatchPart),
    Chunk(u32, Arc<Chunk>),
    Tables(Vec<TableChange>),
}

/// From this many bytes on a commit is logged by reference though the one before was to another table. (A
/// piece of the queue for each smaller one would take more than a copy.)
const APART_BYTES_MIN: usize = 256;

/// Of several records each takes this much on average, or they are copied. A shorter one takes more memory in
/// the buffer than it counts in the queue.
const RECORD_BYTES_MIN: usize = 64;

/// The only part of a batch, if the log may refer to what will stand of it in an active buffer.
pub(super) fn take_small(commit: &mut Commit, state: &State, batch: &mut Batch) -> Option<BatchPart> {
    let before = std::mem::take(&mut commit.last_table);
    let [part] = batch.parts.as_slice() else { return None };
    let is_small = is_plain(part) && !part.is_chunk(state.dials(part.table));
    if !is_small || !batch.changes().is_empty() {
        return None;
    }
    commit.last_table = part.table;
    let suits = is_counted(part) && (before == part.table || part.block.bytes() >= APART_BYTES_MIN);
    if suits { batch.parts.pop() } else { None }
}

/// Whether the log may refer to what will stand of a part in an active buffer, if it goes there.
fn is_plain(part: &BatchPart) -> bool {
    // (What stands in the buffer of an operand is more than that.)
    !part.block.is_empty()
        && part.ranges.is_empty()
        && part.segments.is_empty()
        && part.block.folding() == Folding::None
}

/// Whether what the queue counts of a part is about what it takes in the buffer.
fn is_counted(part: &BatchPart) -> bool {
    part.block.len() == 1 || part.block.bytes() >= RECORD_BYTES_MIN * part.block.len()
}

/// The only part of a batch that is not durable at once, if the log may refer to what will stand of it in an
/// active buffer, and of what it tells the feed.
pub(super) fn may_be_told(batch: &Batch) -> Option<&BatchPart> {
    let [part] = batch.parts.as_slice() else { return None };
    let is_alone = !batch.durable && batch.reads.is_none() && batch.changes().is_empty();
    (is_alone && part.block.bytes() < TOLD_BYTES_MAX && is_plain(part) && is_counted(part)).then_some(part)
}

/// Queues a batch for the log and makes its parts ready for the memtable.
pub(super) fn log_batch(log: &Log, state: &State, pool: &Arc<Pool>, seq: u64, batch: Batch) -> Vec<Ready> {
    let bytes: usize = batch.parts.iter().map(|p| p.block.bytes()).sum();
    let is_chunk = |p: &BatchPart| p.is_chunk(state.dials(p.table));
    if bytes >= BY_REFERENCE_BYTES_MIN && batch.changes().is_empty() && batch.parts.iter().any(is_chunk) {
        let into_chunk = |p: BatchPart| (p.table, chunk_of(p, state, pool));
        let chunks: Vec<(u32, Arc<Chunk>)> = batch.parts.into_iter().map(into_chunk).collect();
        log.add_chunks(seq, chunks.clone());
        return chunks.into_iter().map(|(table, chunk)| Ready::Chunk(table, chunk)).collect();
    }
    let large = batch.parts.iter().any(|p| !p.segments.is_empty());
    let changes = logged(batch.changes());
    log.add_small(seq, large, changes.len() + batch.parts.len(), |w| {
        for change in changes {
            write_table_change(w, change);
        }
        for p in &batch.parts {
            write_part(w, p.table, &segment_list(&p.segments), &p.ranges, &p.block);
        }
    });
    let ready = |p: BatchPart| {
        if is_chunk(&p) { Ready::Chunk(p.table, chunk_of(p, state, pool)) } else { Ready::Small(p) }
    };
    changed(batch.tables).into_iter().chain(batch.parts.into_iter().map(ready)).collect()
}

/// The chunk of a part, as its table wants it.
fn chunk_of(part: BatchPart, state: &State, pool: &Arc<Pool>) -> Arc<Chunk> {
    let table = state.table(part.table);
    let chunk = part.into_chunk(pool);
    Arc::new(match table {
        Ok(table) => table.filtered(chunk),
        // It was dropped.
        Err(_) => chunk,
    })
}

/// The parts of a batch that recovery has read from the log, ready for the memtable.
pub(super) fn recovered(pool: &Arc<Pool>, batch: Batch) -> Vec<Ready> {
    let parts = batch.parts.into_iter().map(|p| {
        if p.is_chunk(Dials::of(false)) {
            Ready::Chunk(p.table, Arc::new(p.into_chunk(pool)))
        } else {
            Ready::Small(p)
        }
    });
    changed(batch.tables).into_iter().chain(parts).collect()
}

fn changed(tables: Option<Box<TableChanges>>) -> Option<Ready> {
    tables.filter(|changes| !changes.list.is_empty()).map(|changes| Ready::Tables(changes.list))
}

/// The changes that the log gets: all of them. Under the fault it gets only those that make a table, which
/// stand last in the list. Recovery then knows nothing of the others.
fn logged(changes: &[TableChange]) -> &[TableChange] {
    let made = |change: &TableChange| matches!(change, TableChange::Made(_));
    let first = if fault!("forget_rename") { changes.partition_point(|change| !made(change)) } else { 0 };
    &changes[first..]
}
