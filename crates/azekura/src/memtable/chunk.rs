//! A chunk: a sorted, immutable piece of a table's memtable.

use super::pool::Pool;
use crate::base::codec::usize_of64;
use crate::base::key::{SortKey, TableKind};
use crate::base::prefetch::prefetch_lines;
use crate::format::block::{Block, Fixed, Tag};
use crate::format::expiry::Expiring;
use crate::format::operand::Folding;
use crate::format::ranges::Ranges;
use crate::run::filter::{BLOCK_BYTES, block_contains, block_of, blocks_for};
use crate::values::Segment;
use std::sync::Arc;

/// Chunks of fewer records have no filter: their heads are in the processor's cache anyway.
const FILTER_RECORDS_MIN: usize = 4096;

/// Records of one or more commits, the newest version of each key, with the ranges that these commits
/// deleted.
pub(crate) struct Chunk {
    pub(crate) block: Block,
    pub(crate) ranges: Ranges,
    /// The value segments that the records refer to.
    pub(crate) segments: Vec<Arc<Segment>>,
    /// What must be done to fold the records.
    pub(crate) folding: Folding,
    filter: Vec<[u8; BLOCK_BYTES]>,
    /// Receives the block's memory when the chunk is dropped.
    pool: Option<Arc<Pool>>,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give(&mut self.block);
        }
    }
}

impl Chunk {
    /// REQUIRES: `block` is sorted.
    pub(crate) fn new(mut block: Block, ranges: Ranges, segments: Vec<Arc<Segment>>) -> Chunk {
        block.index();
        let folding = block.folding();
        Chunk { block, ranges, segments, folding, filter: Vec::new(), pool: None }
    }

    /// The pool that receives the chunk's memory.
    pub(crate) fn pool(&self) -> Option<&Arc<Pool>> {
        self.pool.as_ref()
    }

    /// Gives the memory to `pool` when the chunk is dropped.
    pub(crate) fn pooled(mut self, pool: &Arc<Pool>) -> Chunk {
        self.pool = Some(pool.clone());
        self
    }

    /// The memory that the chunk takes.
    pub(crate) fn bytes(&self) -> usize {
        self.block.bytes() + self.filter.len() * BLOCK_BYTES + self.ranges.len() * 128 + 256
    }

    /// Adds a filter, if the chunk is large enough to need one.
    pub(crate) fn with_filter(mut self, kind: TableKind) -> Chunk {
        let n = self.block.len();
        if n < FILTER_RECORDS_MIN {
            return self;
        }
        let blocks = blocks_for(n as u64);
        let mut filter = vec![[0; BLOCK_BYTES]; usize_of64(blocks)];
        let mut tmp = [0; 8];
        for i in 0..n {
            let hash = kind.filter_hash(SortKey::new(self.block.key(i, &mut tmp)));
            crate::run::filter::block_add(&mut filter[usize_of64(block_of(hash, blocks))], hash);
        }
        self.filter = filter;
        self
    }

    /// Has the processor fetch the line of the filter that `find` will read.
    #[inline(always)]
    pub(crate) fn prefetch_filter(&self, hash: u64) {
        if !self.filter.is_empty() {
            prefetch_lines(&self.filter[usize_of64(block_of(hash, self.filter.len() as u64))]);
        }
    }

    /// The index of a key's record, if there is one.
    #[inline(always)]
    pub(crate) fn find(&self, key: SortKey<'_>, hash: u64) -> Option<usize> {
        if !self.filter.is_empty() {
            let block = block_of(hash, self.filter.len() as u64);
            if !block_contains(&self.filter[usize_of64(block)], hash) {
                return None;
            }
        }
        match self.block.lower_bound(key) {
            (i, true) => Some(i),
            _ => None,
        }
    }

    /// The widths that all records share, if they do.
    pub(crate) fn fixed(&self) -> Option<Fixed> {
        self.block.fixed
    }

    /// The smallest and the largest key. None without records.
    pub(crate) fn bounds(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let n = self.block.len();
        let (mut a, mut b) = ([0; 8], [0; 8]);
        (n > 0).then(|| (self.block.key(0, &mut a).to_vec(), self.block.key(n - 1, &mut b).to_vec()))
    }

    /// Of the records that expire.
    pub(crate) fn expiring(&self) -> Expiring {
        self.block.expiring()
    }

    /// The tag and value of a record.
    #[inline(always)]
    pub(crate) fn record(&self, i: usize) -> (Tag, &[u8]) {
        (self.block.tag(i), self.block.value(i))
    }
}
