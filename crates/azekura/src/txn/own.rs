//! A transaction's own writes to a table as its cursors see them: sorted chunks, which stay for later
//! cursors.
//!
//! A cursor needs the writes sorted, and there may be a cursor between any two writes. So what was sorted
//! before is kept, and only what was written since becomes a chunk, together with the chunks before it that
//! are not twice as long. Each chunk is then at least twice as long as the one after it. So there are few,
//! and a write is sorted anew only when its chunk grows by half.

use crate::memtable::chunk::Chunk;
use std::ops::Range;
use std::sync::Arc;

/// The sorted chunks of a buffer.
#[derive(Clone, Default)]
pub(super) struct OwnChunks {
    /// The oldest first.
    parts: Vec<SortedPart>,
}

/// Writes that came one after the other.
#[derive(Clone)]
struct SortedPart {
    /// Their places among all writes.
    writes: Range<usize>,
    /// The last write of each key.
    sorted: Arc<Chunk>,
}

impl OwnChunks {
    /// How many writes are in them.
    fn end(&self) -> usize {
        self.parts.last().map_or(0, |part| part.writes.end)
    }

    /// Makes chunks of all writes, which are so many now. `sort` makes the chunk of some.
    pub(super) fn extend(&mut self, writes: usize, sort: impl FnOnce(Range<usize>) -> Chunk) {
        let mut start = self.end();
        if start >= writes {
            return;
        }
        while let Some(part) = self.parts.last().filter(|part| part.writes.len() < 2 * (writes - start)) {
            start = part.writes.start;
            self.parts.pop();
        }
        let writes = start..writes;
        self.parts.push(SortedPart { sorted: Arc::new(sort(writes.clone())), writes });
    }

    /// Drops the chunks that hold rolled-back writes. `writes` is how many are left.
    pub(super) fn back_to(&mut self, writes: usize) {
        while self.end() > writes {
            self.parts.pop();
        }
    }

    /// The chunks, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = Arc<Chunk>> {
        self.parts.iter().rev().map(|part| part.sorted.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::block::{Block, Tag};
    use crate::format::ranges::{Range as KeyRange, Ranges};
    use crate::memtable::pool::Pool;
    use crate::txn::buffer::{Mark, TableBuffer};
    use std::collections::{BTreeMap, HashSet};

    /// What a key has: the tag and the value.
    type Model = BTreeMap<Vec<u8>, (Tag, Vec<u8>)>;

    fn random(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut x = seed;
        move |n| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        }
    }

    fn seen(buffer: &TableBuffer) -> Model {
        let mut model = Model::new();
        let mut tmp = [0; 8];
        for chunk in buffer.chunks().iter().rev() {
            let keys: Vec<Vec<u8>> =
                (0..chunk.block.len()).map(|i| chunk.block.key(i, &mut tmp).to_vec()).collect();
            assert!(keys.is_sorted_by(|a, b| a < b), "a chunk is in order, each key once");
            for (i, key) in keys.into_iter().enumerate() {
                let (tag, value) = chunk.record(i);
                model.insert(key, (tag, value.to_vec()));
            }
        }
        model
    }

    fn any_write(
        next: &mut impl FnMut(u64) -> u64,
        buffer: &mut TableBuffer,
        model: &mut Model,
        fixed: bool,
    ) {
        let (key, i) = ((next(200) << 56).to_be_bytes(), next(1000));
        let value = i.to_le_bytes();
        let (tag, value) = match next(8) {
            0 if !fixed => (Tag::Tombstone, &[][..]),
            1 if !fixed => (Tag::Put, &value[..3]),
            _ => (Tag::Put, &value[..]),
        };
        let mut key = key.to_vec();
        if !fixed && next(10) == 0 {
            key.push(7);
            buffer.push(&key, tag, value);
        } else {
            buffer.push8(u64::from_be_bytes(key[..].try_into().expect("eight bytes")), tag, value);
        }
        model.insert(key, (tag, value.to_vec()));
    }

    #[test]
    fn cursors_see_what_was_written_at_any_time() {
        for seed in 0..60 {
            let mut next = random(seed);
            let mut buffer = TableBuffer::new(1, Pool::new(1 << 20));
            let (mut model, mut marks): (Model, Vec<(Mark, Model)>) = Default::default();
            for _ in 0..300 {
                match next(20) {
                    0 => marks.push((buffer.mark(), model.clone())),
                    1 if !marks.is_empty() => {
                        let at = next(marks.len() as u64) as usize;
                        marks.truncate(at + 1);
                        buffer.back_to(&marks[at].0);
                        model = marks[at].1.clone();
                    }
                    2 if seed % 3 == 0 => {
                        let start = vec![next(200) as u8];
                        let range = KeyRange { end: Some(vec![start[0].saturating_add(5)]), start };
                        model.retain(|key, _| !range.covers(key));
                        buffer.remove_range(range);
                    }
                    _ => any_write(&mut next, &mut buffer, &mut model, seed % 4 == 1),
                }
                if next(3) == 0 {
                    assert_eq!(seen(&buffer), model, "seed {seed}");
                }
            }
            assert_eq!(seen(&buffer), model, "seed {seed}");
        }
    }

    /// A walk that writes at each step makes a cursor at each step. All that is sorted for these cursors
    /// together is a few times what was written.
    #[test]
    fn a_cursor_after_each_write_sorts_little() {
        const WRITES: usize = 20_000;
        let mut next = random(5);
        let mut buffer = TableBuffer::new(1, Pool::new(1 << 20));
        let (mut sorted, mut known) = (0, HashSet::new());
        // Chunks stay alive, so that no new one has the address of an old one.
        let mut kept = Vec::new();
        for _ in 0..WRITES {
            buffer.push8(next(u64::MAX), Tag::Put, &[1; 8]);
            let chunks = buffer.chunks();
            assert!(chunks.len() <= WRITES.ilog2() as usize + 1);
            for chunk in chunks {
                if known.insert(Arc::as_ptr(&chunk)) {
                    sorted += chunk.block.len();
                    kept.push(chunk);
                }
            }
        }
        assert!(sorted < WRITES * 25, "{sorted} records were sorted for {WRITES} writes");
        let none = OwnChunks::default();
        assert_eq!(none.newest_first().count(), 0);
        let mut one = OwnChunks::default();
        one.extend(0, |_| Chunk::new(Block::new(None), Ranges::default(), Vec::new()));
        assert_eq!(one.newest_first().count(), 0, "of nothing there is no chunk");
    }
}
