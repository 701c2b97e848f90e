//! The memtable's upkeep: sealing the active buffer, and merging small chunks as they pile up.
//!
//! Chunks are classed by size, each class four times the one below; when four of a class stand at
//! the newest end they become one of the next. So a table of small commits has a handful of chunks,
//! each record is copied a few times between caches, and large chunks wait for the flush, which
//! merges them all at once.

use super::state::{ActiveBuf, TableState, tag_of};
use crate::base::error::Result;
use crate::base::sync::CountedArc;
use crate::format::block::Block;
use crate::memtable::chunk::Chunk;
use crate::memtable::ranges::Ranges;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Chunks that are merged at once while they are small.
const FAN_IN: usize = 4;
/// Chunks of this size are left for the flush: merging them takes milliseconds.
const MERGED_BYTES_MAX: usize = 2 << 20;
/// Where somebody reads beside the writer, larger ones are merged too: each chunk costs each get.
const MERGED_BYTES_MAX_READ: usize = 8 << 20;
/// The smallest class ends here.
const CLASS_BYTES: usize = 8 << 10;

fn class_of(chunk: &Chunk) -> u32 {
    let times = chunk.bytes() / CLASS_BYTES;
    (usize::BITS - times.leading_zeros()).div_ceil(2)
}

impl TableState {
    /// Adds the newest chunk. The active buffer must have been sealed.
    pub(super) fn push_chunk(&mut self, chunk: Arc<Chunk>) -> Result<()> {
        self.chunks.insert(0, chunk);
        let read = self.read.load(Ordering::Relaxed);
        let bytes_max = if read { MERGED_BYTES_MAX_READ } else { MERGED_BYTES_MAX };
        while self.chunks.len() >= FAN_IN {
            let class = class_of(&self.chunks[0]);
            let newest = &self.chunks[..FAN_IN];
            let total: usize = newest.iter().map(|c| c.bytes()).sum();
            if total > bytes_max || newest.iter().any(|c| class_of(c) > class) {
                break;
            }
            let mut merged = Chunk::merge(newest)?;
            if read {
                merged = merged.with_filter(self.kind);
            }
            self.chunks.splice(..FAN_IN, [Arc::new(merged)]);
        }
        Ok(())
    }

    /// Makes a chunk of the active buffer, if anything is in it. Gives the buffer back for reuse.
    pub(super) fn seal_active(&mut self) -> Result<Option<CountedArc<ActiveBuf>>> {
        let Some(active) = self.active.take() else { return Ok(None) };
        if active.list.is_empty() {
            self.active = Some(active);
            return Ok(None);
        }
        let mut block = Block::with_capacity(None, active.list.len(), active.list.used_bytes() / 2);
        let mut cursor = active.list.cursor();
        cursor.seek_first();
        let mut last: Option<&[u8]> = None;
        while let Some(entry) = cursor.entry() {
            // The newest version of a key comes first; the rest nobody can see any more.
            if last != Some(entry.key) {
                block.push(entry.key, tag_of(entry.kind), entry.value);
                last = Some(entry.key);
            }
            cursor.next();
        }
        let segments = active.segments.lock().clone();
        let mut chunk = Chunk::new(block, Ranges::default(), segments);
        if self.read.load(Ordering::Relaxed) {
            chunk = chunk.with_filter(self.kind);
        }
        self.push_chunk(Arc::new(chunk))?;
        Ok(Some(active))
    }
}
