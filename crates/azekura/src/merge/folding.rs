//! The merge of records among which are operands: of each key the newest ones are folded onto the first older
//! record that is none.

use super::copy::copy_living;
use super::fixed::rank;
use super::pending::Pending;
use super::{FILL_BYTES_MAX, MergeSource, Merger};
use crate::base::error::Result;
use crate::base::fault::fault;
use crate::format::block::{Block, Tag};
use crate::format::expiry::Content;
use crate::format::operand::{ABSENT, Operand, STORED_BYTES};

impl Merger {
    /// As `fill_fixed`, of records of which some are operands. (A record of this length that is none has a
    /// value of nine bytes, so that what is folded onto it is as long, too.)
    pub(super) fn fill_folding_fixed(&mut self, out: &mut Block, limit: usize) -> Result<bool> {
        let target = out.heads.len().saturating_add(limit);
        let ranks_of = |sources: &[MergeSource]| -> Vec<u128> {
            sources.iter().enumerate().map(|(i, s)| rank(s.block.heads[s.at], i)).collect()
        };
        let mut ranks = ranks_of(&self.sources);
        while !self.sources.is_empty() {
            let winner = self.tree.winner();
            let source = &mut self.sources[winner];
            let head = source.block.heads[source.at];
            let stored = &source.block.heap[source.at * STORED_BYTES..][..STORED_BYTES];
            // All records of a key come one after the other, so the last one is still there.
            if self.any_last && head == self.last_head {
                fold_last(out, stored)?;
            } else {
                if out.heads.len() >= target {
                    return Ok(false);
                }
                (self.last_head, self.any_last) = (head, true);
                out.heads.push(head);
                out.heap.extend_from_slice(stored);
            }
            source.at += 1;
            if source.at == source.block.heads.len() && !source.next_block()? {
                self.remove(winner);
                ranks = ranks_of(&self.sources);
                continue;
            }
            ranks[winner] = rank(source.block.heads[source.at], winner);
            self.tree.replay(|a, b| ranks[a] < ranks[b]);
        }
        Ok(true)
    }

    /// As `fill_general`. An operand is given out when the next key comes, or none.
    pub(super) fn fill_folding(&mut self, out: &mut Block, limit: usize) -> Result<bool> {
        let (target, heap_target) = (out.len().saturating_add(limit), out.heap.len() + FILL_BYTES_MAX);
        let mut heads = self.heads();
        while !self.sources.is_empty() {
            let winner = self.tree.winner();
            if self.is_repeat(winner) {
                self.fold(winner)?;
            } else {
                self.give_pending(out)?;
                if out.len() >= target || out.heap.len() >= heap_target {
                    return Ok(false);
                }
                self.remember(winner);
                self.take(winner, out)?;
            }
            self.advance(winner, &mut heads)?;
        }
        self.give_pending(out)?;
        Ok(true)
    }

    /// Takes the newest record of a key.
    fn take(&mut self, winner: usize, out: &mut Block) -> Result<()> {
        if self.hidden(winner) {
            return Ok(());
        }
        let source = &self.sources[winner];
        let content = source.block.content(source.at);
        if content.tag == Tag::Operand {
            self.pending = Some(Pending::begin(content.value)?);
        } else {
            copy_living(source, out, self.bottom, self.now);
        }
        Ok(())
    }

    /// Folds the pending operand onto an older record of its key.
    fn fold(&mut self, older: usize) -> Result<()> {
        if self.pending.is_none() || fault!("lose_operand") {
            return Ok(());
        }
        // What hides it is no newer than the operand, which would be hidden too.
        let base = if self.hidden(older) {
            ABSENT
        } else {
            let source = &self.sources[older];
            source.block.content(source.at).at(self.now)
        };
        self.pending.as_mut().map_or(Ok(()), |pending| pending.add(base))
    }

    /// Gives out what has become of the pending operand.
    fn give_pending(&mut self, out: &mut Block) -> Result<()> {
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        if self.bottom {
            pending.add(ABSENT)?;
        }
        match pending {
            Pending::Number(folded) => {
                let mut bytes = [0; STORED_BYTES];
                let (tag, stored) = folded.stored(&mut bytes);
                out.push(&self.last, tag, stored);
            }
            Pending::Long(gathering) => {
                let mut bytes = Vec::new();
                let (tag, stored) = gathering.end().stored(&mut bytes);
                out.push(&self.last, tag, stored);
            }
        }
        Ok(())
    }
}

/// Folds the last record of a block of operands onto an older one, if it is an operand.
fn fold_last(out: &mut Block, older: &[u8]) -> Result<()> {
    let at = out.heap.len() - STORED_BYTES;
    let newer = Content::of(Tag::Expiring, &out.heap[at..]);
    if newer.tag != Tag::Operand || fault!("lose_operand") {
        return Ok(());
    }
    let mut bytes = [0; STORED_BYTES];
    let folded = Operand::decode(newer.value)?.onto(Content::of(Tag::Expiring, older))?;
    let (_, stored) = folded.stored(&mut bytes);
    debug_assert_eq!(stored.len(), STORED_BYTES, "a value of nine bytes is no number");
    out.heap.truncate(at);
    out.heap.extend_from_slice(stored);
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::format::block::{Block, Fixed, Tag};
    use crate::format::expiry::{Content, Expiry};
    use crate::format::operand::{Given, Merge, Operand};
    use crate::format::ranges::{Range, Ranges};
    use crate::memtable::chunk::Chunk;
    use crate::merge::{MergeSource, Merger, merge_chunks};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    /// What a key has, one after the other: an operand, a value, or nothing.
    #[derive(Clone, Copy, Debug)]
    enum Write {
        Add(i64),
        Put(i64),
        Remove,
    }

    fn add(n: i64) -> [u8; 17] {
        let mut bytes = [0; 17];
        Given::of(Merge::AddI64(n)).unwrap().stored(&mut bytes);
        bytes
    }

    type Model = BTreeMap<Vec<u8>, i64>;

    fn chunk_of(writes: &BTreeMap<Vec<u8>, Write>, ranges: Ranges) -> Arc<Chunk> {
        let mut block = Block::new(None);
        for (key, write) in writes {
            match write {
                Write::Add(n) => block.push(key, Tag::Expiring, &add(*n)),
                Write::Put(n) => block.push(key, Tag::Put, &n.to_le_bytes()),
                Write::Remove => block.push(key, Tag::Tombstone, &[]),
            }
        }
        Arc::new(Chunk::new(block, ranges, Vec::new()))
    }

    fn apply(model: &mut Model, writes: &BTreeMap<Vec<u8>, Write>, ranges: &Ranges) {
        model.retain(|key, _| !ranges.covers(key));
        for (key, write) in writes {
            match write {
                Write::Add(n) => *model.entry(key.clone()).or_default() += n,
                Write::Put(n) => drop(model.insert(key.clone(), *n)),
                Write::Remove => drop(model.remove(key)),
            }
        }
    }

    fn merged(newest_first: &[Arc<Chunk>], limit: usize) -> Model {
        let sources = newest_first.iter().cloned().map(MergeSource::chunk).collect();
        let mut merger = Merger::new(sources, true, 0).unwrap();
        let mut block = Block::new(merger.fixed());
        while !merger.fill(&mut block, limit).unwrap() {}
        let mut tmp = [0; 8];
        (0..block.len())
            .map(|i| {
                assert_eq!(block.tag(i), Tag::Put, "nothing is older, so all are values");
                (block.key(i, &mut tmp).to_vec(), i64::from_le_bytes(block.value(i).try_into().unwrap()))
            })
            .collect()
    }

    #[test]
    fn in_whatever_parts_sources_are_merged_each_operand_counts_once() {
        let mut x = 1u64;
        let mut next = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for round in 0..400 {
            let (mut model, mut chunks) = (Model::new(), Vec::new());
            for _ in 0..2 + next(6) {
                let mut writes = BTreeMap::new();
                for _ in 0..next(30) {
                    let key = if next(8) == 0 {
                        vec![next(20) as u8]
                    } else {
                        (next(20) << 40).to_be_bytes().to_vec()
                    };
                    let n = next(1000).cast_signed() - 500;
                    let write =
                        [Write::Add(n), Write::Add(n), Write::Put(n), Write::Remove][next(4) as usize];
                    writes.insert(key, write);
                }
                let mut ranges = Ranges::default();
                if next(3) == 0 {
                    let start = vec![0, 0, next(20) as u8];
                    ranges.add(Range { end: Some(vec![0, 0, next(20) as u8 + 1]), start });
                }
                apply(&mut model, &writes, &ranges);
                chunks.insert(0, chunk_of(&writes, ranges));
            }
            // All at once, and after some neighbours were merged where something older stands below.
            assert_eq!(merged(&chunks, 1 + next(9) as usize), model, "round {round}");
            while chunks.len() > 1 {
                let from = next(chunks.len() as u64 - 1) as usize;
                let to = from + 2 + next((chunks.len() - from - 1) as u64) as usize;
                let one = Arc::new(merge_chunks(&chunks[from..to]).unwrap());
                chunks.splice(from..to, [one]);
                assert_eq!(merged(&chunks, usize::MAX), model, "round {round}");
            }
        }
    }

    #[test]
    fn operands_of_one_width_are_folded_too() {
        let mut x = 5u64;
        let mut next = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for round in 0..100 {
            let (mut model, mut chunks) = (Model::new(), Vec::new());
            for _ in 0..1 + next(6) {
                let mut block = Block::new(Some(Fixed::OPERANDS));
                let keys: std::collections::BTreeSet<u64> = (0..1 + next(2000)).map(|_| next(3000)).collect();
                for key in keys {
                    let n = next(1000).cast_signed();
                    block.push(&key.to_be_bytes(), Tag::Expiring, &add(n));
                    *model.entry(key.to_be_bytes().to_vec()).or_default() += n;
                }
                chunks.insert(0, Arc::new(Chunk::new(block, Ranges::default(), Vec::new())));
            }
            let one = Arc::new(merge_chunks(&chunks).unwrap());
            assert_eq!(one.block.fixed, Some(Fixed::OPERANDS));
            assert_eq!(merged(&[one], usize::MAX), model, "round {round}");
            // A step at a time, and a base below.
            let sources = chunks.iter().cloned().map(MergeSource::chunk).collect();
            let mut merger = Merger::new(sources, false, 0).unwrap();
            let (mut all, mut step) = (Block::new(merger.fixed()), Block::new(merger.fixed()));
            let mut ends = false;
            while !ends {
                step.reset(merger.fixed());
                ends = merger.fill(&mut step, 7).unwrap();
                assert!(step.len() <= 7);
                all.append_same(&step, 0, step.len());
            }
            let base: BTreeMap<Vec<u8>, Write> =
                model.keys().step_by(3).map(|key| (key.clone(), Write::Put(1000))).collect();
            base.keys().for_each(|key| *model.get_mut(key).unwrap() += 1000);
            let all = Arc::new(Chunk::new(all, Ranges::default(), Vec::new()));
            assert_eq!(merged(&[all, chunk_of(&base, Ranges::default())], 100), model, "round {round}");
        }
    }

    #[test]
    fn a_clash_stays_until_the_key_is_put() {
        let of = |key: &[u8], tag, stored: &[u8]| {
            let mut block = Block::new(None);
            block.push(key, tag, stored);
            Arc::new(Chunk::new(block, Ranges::default(), Vec::new()))
        };
        let add = add(1);
        let chunks =
            [of(b"k", Tag::Expiring, &add), of(b"k", Tag::Expiring, &add), of(b"k", Tag::Put, b"text")];
        let one = merge_chunks(&chunks).unwrap();
        let Content { tag, value, expiry } = one.block.content(0);
        assert_eq!((tag, expiry), (Tag::Operand, Expiry::NEVER));
        assert!(Operand::decode(value).unwrap().is_clash());
        let sources = vec![MergeSource::chunk(of(b"k", Tag::Put, b"new")), MergeSource::chunk(Arc::new(one))];
        let mut merger = Merger::new(sources, true, 0).unwrap();
        let mut block = Block::new(merger.fixed());
        while !merger.fill(&mut block, usize::MAX).unwrap() {}
        assert_eq!((block.len(), block.tag(0), block.value(0)), (1, Tag::Put, &b"new"[..]));
    }
}
