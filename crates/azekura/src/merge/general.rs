//! The merge of records of any widths, with deletes and range deletes.

use super::copy::copy_living;
use super::{FILL_BYTES_MAX, MergeSource, Merger};
use crate::base::error::Result;
use crate::base::key::{head_after, head_of};
use crate::format::block::Block;
use std::cmp::Ordering;

/// The head of a source's next key behind the common prefix, for quick comparison.
fn head(source: &MergeSource, skip: usize) -> u64 {
    if source.block.fixed.is_some() && skip == 0 {
        return source.block.heads[source.at];
    }
    let mut tmp = [0; 8];
    head_after(source.block.key(source.at, &mut tmp), skip)
}

/// Whether source `a` comes before source `b`: by key, then the newer one (the lower number) first.
#[inline(always)]
fn beats(sources: &[MergeSource], heads: &[u64], a: usize, b: usize) -> bool {
    match heads[a].cmp(&heads[b]) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => {
            let (mut x, mut y) = ([0; 8], [0; 8]);
            let (s, t) = (&sources[a], &sources[b]);
            (s.block.key(s.at, &mut x), a) < (t.block.key(t.at, &mut y), b)
        }
    }
}

impl Merger {
    pub(super) fn heads(&self) -> Vec<u64> {
        self.sources.iter().map(|s| head(s, self.skip)).collect()
    }

    pub(super) fn rebuild_general(&mut self) {
        let heads = self.heads();
        let sources = &self.sources;
        self.tree.build(sources.len(), |a, b| beats(sources, &heads, a, b));
    }

    /// Whether a range of a newer source deletes the next record of source `i`. Looks in `hiding`, which also
    /// has the ranges of removed sources.
    pub(super) fn hidden(&self, i: usize) -> bool {
        if !self.any_ranges {
            return false;
        }
        let mut tmp = [0; 8];
        let source = &self.sources[i];
        let key = source.block.key(source.at, &mut tmp);
        self.hiding.iter().any(|(age, ranges)| *age < source.age && ranges.covers(key))
    }

    pub(super) fn fill_general(&mut self, out: &mut Block, limit: usize) -> Result<bool> {
        let (target, heap_target) = (out.len().saturating_add(limit), out.heap.len() + FILL_BYTES_MAX);
        let mut heads = self.heads();
        while !self.sources.is_empty() {
            let winner = self.tree.winner();
            if !self.is_repeat(winner) {
                if out.len() >= target || out.heap.len() >= heap_target {
                    return Ok(false);
                }
                self.remember(winner);
                if !self.hidden(winner) {
                    copy_living(&self.sources[winner], out, self.bottom, self.now);
                }
            }
            if self.advance(winner, &mut heads)? && self.sources[winner].at == 0 && self.crossed(winner) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes on behind the record of a source that was taken. False if that was its last one.
    #[inline(always)]
    pub(super) fn advance(&mut self, winner: usize, heads: &mut Vec<u64>) -> Result<bool> {
        let source = &mut self.sources[winner];
        source.at += 1;
        if source.at == source.block.len() && !source.next_block()? {
            self.remove(winner);
            *heads = self.heads();
            return Ok(false);
        }
        heads[winner] = head(&self.sources[winner], self.skip);
        let sources = &self.sources;
        self.tree.replay(|a, b| beats(sources, heads, a, b));
        Ok(true)
    }

    /// Whether the next record of a source is an older version of the key that was taken last.
    #[inline(always)]
    pub(super) fn is_repeat(&self, i: usize) -> bool {
        let mut tmp = [0; 8];
        let source = &self.sources[i];
        self.any_last && source.block.key(source.at, &mut tmp) == self.last.as_slice()
    }

    #[inline(always)]
    pub(super) fn remember(&mut self, i: usize) {
        let mut tmp = [0; 8];
        let source = &self.sources[i];
        let key = source.block.key(source.at, &mut tmp);
        self.last.clear();
        self.last.extend_from_slice(key);
        self.last_head = head_of(key);
        self.any_last = true;
    }
}
