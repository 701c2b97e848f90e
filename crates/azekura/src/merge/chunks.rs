//! Merges chunks of a memtable into one.

use super::{MergeSource, Merger};
use crate::base::error::Result;
use crate::format::block::Block;
use crate::memtable::chunk::Chunk;
use crate::values::Segment;
use std::sync::Arc;

/// One chunk from several, given newest first. Tombstones stay, since older runs may hold their keys.
pub(crate) fn merge_chunks(newest_first: &[Arc<Chunk>]) -> Result<Chunk> {
    let sources = newest_first.iter().map(|c| MergeSource::chunk(c.clone())).collect();
    let mut merger = Merger::new(sources, false, 0)?;
    let records = newest_first.iter().map(|c| c.block.len()).sum();
    let heap = newest_first.iter().map(|c| c.block.heap.len()).sum();
    let pool = newest_first.iter().find_map(|c| c.pool().cloned());
    let mut block = Block::new(merger.fixed());
    match &pool {
        Some(pool) if block.fixed.is_some() => pool.reserve(&mut block, records, heap),
        Some(pool) => pool.reserve(&mut block, 0, heap),
        None => block = Block::with_capacity(merger.fixed(), records, heap),
    }
    while !merger.fill(&mut block, usize::MAX)? {}
    let ranges = merger.ranges();
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    for segment in newest_first.iter().flat_map(|c| &c.segments) {
        if !segments.iter().any(|s| Arc::ptr_eq(s, segment)) {
            segments.push(segment.clone());
        }
    }
    let merged = Chunk::new(block, ranges, segments);
    Ok(match &pool {
        Some(pool) => merged.pooled(pool),
        None => merged,
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::format::block::Tag;
    use crate::format::ranges::Ranges;

    /// More than one `fill` gives: the merge goes on until all is there.
    #[test]
    fn chunks_of_many_bytes_are_merged_to_the_end() {
        let value = vec![7; 1_000];
        // One after the other, or into each other.
        for (first, step) in [(1_500, 1), (1, 4)] {
            let chunk = |n: u64| {
                let mut block = Block::new(None);
                for i in 0..1_500 {
                    let key = format!("a longer key {:08}", n * first + i * step);
                    block.push(key.as_bytes(), Tag::Put, &value);
                }
                Arc::new(Chunk::new(block, Ranges::default(), Vec::new()))
            };
            let merged = merge_chunks(&[chunk(0), chunk(1), chunk(2), chunk(3)]).unwrap();
            assert_eq!(merged.block.len(), 6_000);
        }
    }
}
