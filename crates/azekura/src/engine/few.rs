//! The few records of a small table.
//!
//! A run takes at least two blocks of the file and a good part of a KiB of memory. If a table's records are
//! far shorter than that, and it has no runs, its records stand in the manifest. In memory they stand as
//! they do there. They are few, so a lookup goes through all of them. A walk or a merge makes a chunk of
//! them.
//!
//! Each checkpoint writes them again, and they are always in memory. So there is a limit for all tables
//! together (`Division::few_bytes`). What does not fit gets a run. (A file that was written with a larger
//! limit keeps what it has, until the tables change.)

use super::memory::MemoryBudget;
use super::state::TableState;
use crate::base::codec::usize_of64;
use crate::base::error::Result;
use crate::format::block::Block;
use crate::format::few::{Few, HEAD_BYTES};
use crate::format::frame::ROW_BYTES;
use crate::format::ranges::Ranges;
use crate::memtable::chunk::Chunk;
use crate::merge::{MergeSource, Merger};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Records of so many bytes, as rows, are few.
const FEW_BYTES_MAX: usize = 512;
/// What a table takes in memory besides them, about: itself, its name, and its place among the others.
const TABLE_BYTES: u64 = 256;

/// The bytes of a table's few records.
fn bytes_of(table: &TableState) -> u64 {
    table.few.as_ref().map_or(0, |few| few.bytes().len() as u64)
}

/// The records that a flush leaves a small table, if they are few enough to have no run. `all` is the sum of
/// all tables' bytes, with what this flush has changed of it so far. It may be `all_max`.
pub(super) fn few_of(
    table: &TableState,
    all: &mut u64,
    all_max: u64,
    now: u64,
    large_value_bytes: usize,
) -> Result<Option<Option<Few>>> {
    let rows = |c: &Arc<Chunk>| c.block.bytes() + c.block.len() * ROW_BYTES;
    let bytes = HEAD_BYTES.max(usize_of64(bytes_of(table))) + table.frozen.iter().map(rows).sum::<usize>();
    *all = all.saturating_sub(bytes_of(table));
    let is_large = |c: &Arc<Chunk>| !c.segments.is_empty() || c.block.bytes_from(large_value_bytes).1 > 0;
    let no_room = *all + bytes as u64 > all_max;
    if !table.levels.is_empty() || bytes > FEW_BYTES_MAX || no_room || table.frozen.iter().any(is_large) {
        return Ok(None);
    }
    let mut merger = Merger::new(table.flush_sources(), true, now)?;
    let mut block = Block::new(merger.fixed());
    while !merger.fill(&mut block, usize::MAX)? {}
    if block.has_words() {
        return Ok(None);
    }
    let few = Few::of(&block);
    *all += few.as_ref().map_or(0, |few| few.bytes().len() as u64);
    Ok(Some(few))
}

impl MemoryBudget {
    /// Counts what a table has in place of what it had. REQUIRES: the commit lock.
    pub(super) fn count_few(&self, before: Option<&TableState>, after: Option<&TableState>) {
        let bytes = self.few_bytes.load(Ordering::Relaxed) + after.map_or(0, bytes_of);
        self.few_bytes.store(bytes.saturating_sub(before.map_or(0, bytes_of)), Ordering::Relaxed);
    }

    /// The memory that so many tables take, their few records included, but not memtables and runs.
    pub(crate) fn table_bytes(&self, tables: usize) -> u64 {
        tables as u64 * TABLE_BYTES + self.few_bytes.load(Ordering::Relaxed)
    }
}

impl TableState {
    /// What a flush merges: what is frozen, and the few records that have no run.
    pub(super) fn flush_sources(&self) -> Vec<MergeSource> {
        self.frozen.iter().cloned().chain(self.few_chunk()).map(MergeSource::chunk).collect()
    }

    /// The few records that have no run, to be walked or merged.
    pub(crate) fn few_chunk(&self) -> Option<Arc<Chunk>> {
        let few = self.few.as_ref()?;
        Some(Arc::new(Chunk::new(few.to_block(), Ranges::default(), Vec::new())))
    }
}
