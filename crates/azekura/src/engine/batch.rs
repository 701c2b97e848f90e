//! What a transaction commits: the writes to each table, sorted.

use super::changes::TableChanges;
use super::dials::Dials;
use super::gathered::Gathered;
use super::history::{ReadSet, key_mark};
use super::indexes::Indexes;
use crate::base::sync::Mutex;
use crate::format::block::{Block, Tag};
use crate::format::frame::TableChange;
use crate::format::ranges::{Range, Ranges};
use crate::memtable::chunk::Chunk;
use crate::memtable::pool::Pool;
use crate::values::Segment;
use std::sync::Arc;

/// A record costs flush and merges as much as so many bytes, besides its own.
const RECORD_BYTES: u64 = 32;

/// One table's writes, sorted, one record a key.
pub(crate) struct BatchPart {
    pub(crate) table: u32,
    pub(crate) block: Block,
    pub(crate) ranges: Ranges,
    pub(crate) segments: Vec<Arc<Segment>>,
    /// The indexes of the table that the transaction knew and has kept.
    pub(crate) indexes: Indexes,
}

/// A transaction's writes, ready to be committed.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) parts: Vec<BatchPart>,
    /// What the commit changes among the tables. It is durable then, before anybody sees it.
    pub(crate) tables: Option<Box<TableChanges>>,
    pub(crate) durable: bool,
    pub(crate) reads: Option<ReadSet>,
    pub(crate) user_bytes: u64,
    /// If the commit is refused, its parts go here, so that it can be made again.
    pub(crate) refused: Option<Arc<Refused>>,
    /// What the feed is to have of it.
    pub(crate) feed: Option<Box<Gathered>>,
    /// If that is not what the feed is to have any more, the batch goes here, to be gathered anew.
    pub(crate) again: Option<Arc<Again>>,
}

/// The parts of a commit that was refused, but not for the names of tables.
#[derive(Default)]
pub(crate) struct Refused(Mutex<Option<Vec<BatchPart>>>);

impl Refused {
    pub(crate) fn take(&self) -> Option<Vec<BatchPart>> {
        self.0.lock().take()
    }
}

/// Where a batch goes whose changes are to be gathered anew.
#[derive(Default)]
pub(crate) struct Again(Mutex<Option<Batch>>);

impl Again {
    pub(crate) fn take(&self) -> Option<Batch> {
        self.0.lock().take()
    }
}

impl Batch {
    /// Its changes are to be gathered anew.
    pub(super) fn give_anew(&mut self) {
        if let Some(again) = self.again.clone() {
            *again.0.lock() = Some(std::mem::take(self));
        }
    }

    /// The commit was refused.
    pub(crate) fn give_back(&mut self) {
        if let Some(refused) = &self.refused {
            *refused.0.lock() = Some(std::mem::take(&mut self.parts));
        }
    }
}

impl Batch {
    /// Whether it puts nothing.
    pub(crate) fn only_deletes(&self) -> bool {
        self.parts.iter().all(|p| (0..p.block.len()).all(|i| p.block.tag(i) == Tag::Tombstone))
    }

    /// What flush and merges will have to do for it, in bytes.
    pub(super) fn cost(&self) -> u64 {
        let records: usize = self.parts.iter().map(|part| part.block.len() + part.ranges.len()).sum();
        self.user_bytes.saturating_add((records as u64).saturating_mul(RECORD_BYTES))
    }

    /// What it changes among the tables.
    pub(crate) fn changes(&self) -> &[TableChange] {
        self.tables.as_ref().map_or(&[], |tables| &tables.list)
    }

    /// How many snapshots it has read from.
    pub(super) fn snapshots(&self) -> usize {
        let feed = self.feed.as_ref().is_some_and(|feed| feed.reads.is_some());
        usize::from(self.reads.is_some()) + usize::from(feed)
    }

    /// Whether it makes, renames or drops tables.
    pub(crate) fn changes_tables(&self) -> bool {
        !self.changes().is_empty()
    }
}

impl BatchPart {
    /// Whether it is large enough to be a chunk of its own.
    pub(super) fn is_chunk(&self, dials: &Dials) -> bool {
        self.block.len() >= dials.chunk_records_min
            || self.block.bytes() >= dials.chunk_bytes_min
            || !self.ranges.is_empty()
    }

    pub(super) fn into_chunk(self, pool: &Arc<Pool>) -> Chunk {
        Chunk::new(self.block, self.ranges, self.segments).pooled(pool)
    }

    /// The keys that it writes. Under snapshot isolation no commit since the snapshot may have written them.
    /// An operand is no such write, for nothing that others have written is lost by it.
    pub(crate) fn marks(&self) -> Vec<(u32, u64)> {
        let mut tmp = [0; 8];
        (0..self.block.len())
            .filter(|&i| self.block.content(i).tag != Tag::Operand)
            .map(|i| (self.table, key_mark(self.table, self.block.key(i, &mut tmp))))
            .collect()
    }

    /// And the ranges that it deleted.
    pub(crate) fn range_marks(&self) -> Vec<(u32, Range)> {
        self.ranges.iter().map(|r| (self.table, r.clone())).collect()
    }

    /// A part with a single record, without sorting or copying.
    pub(crate) fn single(table: u32, key: &[u8], tag: Tag, value: &[u8]) -> BatchPart {
        let mut block = Block::with_capacity(None, 1, key.len() + value.len());
        block.push(key, tag, value);
        BatchPart { table, block, ranges: Ranges::default(), segments: Vec::new(), indexes: None }
    }
}
