//! One sorted source of a merge: a chunk in memory, or the partitions of a level.

use crate::base::error::Result;
use crate::format::block::{Block, Fixed};
use crate::format::expiry::Expiring;
use crate::format::operand::Folding;
use crate::format::ranges::Ranges;
use crate::memtable::chunk::Chunk;
use crate::run::Run;
use crate::run::reader::RunReader;
use std::collections::HashSet;
use std::sync::Arc;

/// How many records of a chunk are taken at a time, and about how many bytes, so that a merge of many chunks
/// stays in the processor's cache.
const WINDOW_RECORDS: usize = 1024;
const WINDOW_BYTES: usize = 16 << 10;

enum Feed {
    /// So many records are taken at a time.
    Chunk {
        chunk: Arc<Chunk>,
        next: usize,
        window: usize,
    },
    Run(RunReader),
}

/// A source, and the part of it that is being merged.
pub(crate) struct MergeSource {
    /// The current records. `at`: the next one to take.
    pub(crate) block: Block,
    pub(crate) at: usize,
    /// Its place in the order of age. 0: newest.
    pub(crate) age: usize,
    feed: Feed,
    fixed: Option<Fixed>,
    bounds: Option<(Vec<u8>, Vec<u8>)>,
    ranges: Ranges,
    /// Of a level's records; none if those of a chunk were not looked at.
    expiring: Option<Expiring>,
    folding: Folding,
}

impl MergeSource {
    pub(crate) fn chunk(chunk: Arc<Chunk>) -> MergeSource {
        let record_bytes = chunk.block.bytes() / chunk.block.len().max(1);
        let window = (WINDOW_BYTES / record_bytes.max(1)).clamp(1, WINDOW_RECORDS);
        MergeSource {
            block: Block::new(chunk.fixed()),
            at: 0,
            age: 0,
            fixed: chunk.fixed(),
            bounds: chunk.bounds(),
            ranges: chunk.ranges.clone(),
            expiring: None,
            folding: chunk.folding,
            feed: Feed::Chunk { chunk, next: 0, window },
        }
    }

    /// The partitions of one level, in key order. Those that are `skipped`, by their ids, are not read.
    pub(crate) fn runs(all: Vec<Arc<Run>>, skipped: &HashSet<u64>) -> Result<MergeSource> {
        let is_read = |run: &&Arc<Run>| !skipped.contains(&run.info.id);
        let runs: Vec<Arc<Run>> = all.iter().filter(is_read).cloned().collect();
        let mut ranges = Ranges::default();
        for run in runs.iter().filter(|r| r.info.ranges > 0) {
            ranges.add_all(&run.meta()?.ranges);
        }
        let fixed = match runs.first() {
            Some(first) if runs.iter().all(|r| r.info.fixed == first.info.fixed) => first.info.fixed,
            _ => None,
        };
        let mut filled = runs.iter().filter(|r| r.info.records > 0);
        let first = filled.next();
        let last = filled.next_back().or(first);
        let bounds = first.zip(last).map(|(a, b)| (a.info.min.clone(), b.info.max.clone()));
        Ok(MergeSource {
            block: Block::new(fixed),
            at: 0,
            age: 0,
            fixed,
            bounds,
            ranges,
            expiring: Some(runs.iter().fold(Expiring::default(), |sum, run| sum.and(run.info.expiring))),
            folding: runs.iter().map(|run| run.info.operands.folding()).max().unwrap_or(Folding::None),
            feed: Feed::Run(RunReader::new(all).without(skipped)),
        })
    }

    pub(crate) fn fixed(&self) -> Option<Fixed> {
        self.fixed
    }

    pub(crate) fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// Of the records that expire, if some may have at `now`.
    pub(crate) fn expiring(&self, now: u64) -> Expiring {
        match (&self.feed, self.expiring) {
            (_, Some(known)) => known,
            (Feed::Chunk { chunk, .. }, None) if now > 0 => chunk.expiring(),
            _ => Expiring::default(),
        }
    }

    /// What must be done to fold the records.
    pub(crate) fn folding(&self) -> Folding {
        self.folding
    }

    /// The smallest and the largest key. None if the source is empty.
    pub(crate) fn bounds(&self) -> Option<(&[u8], &[u8])> {
        self.bounds.as_ref().map(|(a, b)| (a.as_slice(), b.as_slice()))
    }

    /// Reads the first records. False if there are none.
    pub(crate) fn start(&mut self) -> Result<bool> {
        self.next_block()
    }

    /// Reads the next records. False at the end.
    pub(crate) fn next_block(&mut self) -> Result<bool> {
        self.at = 0;
        match &mut self.feed {
            Feed::Run(reader) => reader.next_block(&mut self.block),
            Feed::Chunk { chunk, next, window } => {
                let to = (*next + *window).min(chunk.block.len());
                self.block.reset(chunk.block.fixed);
                self.block.append_same(&chunk.block, *next, to);
                let any = *next < to;
                *next = to;
                Ok(any)
            }
        }
    }

    /// How many partitions have been given out completely, for a source of runs.
    pub(crate) fn runs_read(&self) -> usize {
        match &self.feed {
            Feed::Run(reader) => reader.run_index(),
            Feed::Chunk { .. } => 0,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::codec::u32_of;
    use crate::format::block::Tag;

    #[test]
    fn a_chunk_is_taken_in_windows_of_few_bytes_and_all_of_it() {
        // Bytes of a value; the records of a window.
        for (value_bytes, window) in [(0, WINDOW_RECORDS), (1000, 16), (5000, 3), (100_000, 1)] {
            let records = window * 3 + 1;
            let value = vec![7; value_bytes];
            let fixed = Fixed { stride: u32_of(value_bytes), tag: Tag::Put };
            let mut block = Block::new(Some(fixed));
            (0..records as u64).for_each(|i| block.push(&i.to_be_bytes(), Tag::Put, &value));
            let chunk = Chunk::new(block, Ranges::default(), Vec::new());
            let mut source = MergeSource::chunk(Arc::new(chunk));
            let (mut heads, mut windows) = (Vec::new(), 0);
            while source.next_block().unwrap() {
                assert!(source.block.len() <= window, "{} of {value_bytes} bytes", source.block.len());
                heads.extend_from_slice(&source.block.heads);
                windows += 1;
            }
            assert_eq!((heads, windows), ((0..records as u64).collect::<Vec<u64>>(), 4), "{value_bytes}");
        }
    }
}
