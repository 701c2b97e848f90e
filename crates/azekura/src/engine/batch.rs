//! What a transaction commits: the writes to each table, sorted.

use super::dials::Dials;
use super::history::{ReadSet, key_mark};
use super::indexes::Indexes;
use crate::format::block::{Block, Tag};
use crate::format::frame::TableChange;
use crate::format::ranges::{Range, Ranges};
use crate::memtable::chunk::Chunk;
use crate::memtable::pool::Pool;
use crate::values::Segment;
use std::sync::Arc;

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
}

/// What a commit changes among the tables, and what it believes of them.
#[derive(Default, Clone)]
pub(crate) struct TableChanges {
    /// Dropped ones come first, then renamed ones, then made ones by their ids. Each table is there once.
    pub(crate) list: Vec<TableChange>,
    /// Names that were looked up, and the tables that had them. They still do, or the commit conflicts.
    pub(crate) seen: Vec<(Arc<str>, Option<u32>)>,
}

impl TableChanges {
    /// Some changes, after nothing was looked up.
    pub(crate) fn of(list: Vec<TableChange>) -> Option<Box<TableChanges>> {
        (!list.is_empty()).then(|| Box::new(TableChanges { list, seen: Vec::new() }))
    }

    /// Whether it makes a table.
    pub(crate) fn makes(&self, id: u32) -> bool {
        let made = &self.list[self.list.partition_point(|change| !matches!(change, TableChange::Made(_)))..];
        made.binary_search_by_key(&id, TableChange::id).is_ok()
    }
}

/// The tables that are dropped.
pub(super) fn dropped(changes: &[TableChange]) -> impl Iterator<Item = u32> {
    changes.iter().filter_map(|c| if let TableChange::Dropped(id) = c { Some(*id) } else { None })
}

impl Batch {
    /// What it changes among the tables.
    pub(super) fn changes(&self) -> &[TableChange] {
        self.tables.as_ref().map_or(&[], |tables| &tables.list)
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
    pub(crate) fn marks(&self) -> Vec<(u32, u64)> {
        let mut tmp = [0; 8];
        (0..self.block.len())
            .map(|i| (self.table, key_mark(self.table, self.block.key(i, &mut tmp))))
            .collect()
    }

    /// And the ranges it deleted.
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
