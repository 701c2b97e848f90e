//! The merge of records of one width with eight-byte keys: the engine's hottest loop.

use super::Merger;
use crate::base::codec::usize_of;
use crate::base::error::Result;
use crate::format::block::Block;

/// A key and its source as one number, so that one comparison orders both.
#[inline(always)]
pub(super) fn rank(head: u64, source: usize) -> u128 {
    (u128::from(head) << 32) | source as u128
}

impl Merger {
    pub(super) fn rebuild_fixed(&mut self) {
        let ranks: Vec<u128> =
            self.sources.iter().enumerate().map(|(i, s)| rank(s.block.heads[s.at], i)).collect();
        self.tree.build(self.sources.len(), |a, b| ranks[a] < ranks[b]);
    }

    pub(super) fn fill_fixed(&mut self, out: &mut Block, limit: usize) -> Result<bool> {
        let start = out.len();
        let done = self.fill_any_stride(out, limit);
        if self.bottom {
            out.drop_past(start, self.now);
        }
        done
    }

    fn fill_any_stride(&mut self, out: &mut Block, limit: usize) -> Result<bool> {
        match self.fixed.map_or(0, |f| usize_of(f.stride)) {
            4 => self.fill_stride::<4>(4, out, limit),
            8 => self.fill_stride::<8>(8, out, limit),
            16 => self.fill_stride::<16>(16, out, limit),
            stride => self.fill_stride::<0>(stride, out, limit),
        }
    }

    /// `N` is the stride, for strides that are worth a copy of the loop, else 0.
    fn fill_stride<const N: usize>(&mut self, stride: usize, out: &mut Block, limit: usize) -> Result<bool> {
        let target = out.heads.len().saturating_add(limit);
        let mut ranks: Vec<u128> =
            self.sources.iter().enumerate().map(|(i, s)| rank(s.block.heads[s.at], i)).collect();
        while !self.sources.is_empty() {
            let winner = self.tree.winner();
            let source = &mut self.sources[winner];
            let head = source.block.heads[source.at];
            if !(self.any_last && head == self.last_head) {
                if out.heads.len() >= target {
                    return Ok(false);
                }
                self.last_head = head;
                self.any_last = true;
                out.heads.push(head);
                if N > 0 {
                    let start = source.at * N;
                    let mut value = [0; N];
                    value.copy_from_slice(&source.block.heap[start..start + N]);
                    out.heap.extend_from_slice(&value);
                } else {
                    let start = source.at * stride;
                    out.heap.extend_from_slice(&source.block.heap[start..start + stride]);
                }
            }
            source.at += 1;
            if source.at == source.block.heads.len() && !source.next_block()? {
                self.remove(winner);
                ranks = self.sources.iter().enumerate().map(|(i, s)| rank(s.block.heads[s.at], i)).collect();
                continue;
            }
            ranks[winner] = rank(source.block.heads[source.at], winner);
            self.tree.replay(|a, b| ranks[a] < ranks[b]);
            if self.sources[winner].at == 0 && self.crossed(winner) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
