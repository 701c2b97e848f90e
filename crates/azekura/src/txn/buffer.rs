//! The writes of a transaction to one table, before anybody else sees them.
//!
//! Writes are appended in the order in which they come. While all of them are values of one length under keys
//! of eight bytes they are kept as two plain columns. A sort turns these into a chunk. (When the keys came in
//! ascending order they are one already.) The first write that does not fit makes them general records.
//! Sorting is by the head with the place of the write beside it, so that of two writes of one key the later
//! wins.

mod folding;
mod index;
mod sort;

use super::own::OwnChunks;
use crate::base::codec::usize_of;
use crate::base::hash::hash_bytes;
use crate::base::life::Moment;
use crate::engine::{BatchPart, Indexes};
use crate::format::block::{Block, Fixed, Tag};
use crate::format::operand::Operator;
use crate::format::ranges::{Range, Ranges};
use crate::memtable::chunk::Chunk;
use crate::memtable::pool::Pool;
use crate::values::Segment;
use folding::sort;
use index::{Index, NONE};
use std::cell::{OnceCell, RefCell};
use std::ops;
use std::sync::Arc;

/// The writes to one table so far.
#[derive(Clone)]
pub(crate) struct TableBuffer {
    pub(crate) table: u32,
    /// When the table was there.
    pub(crate) seen: Moment,
    /// The table's indexes when it was first written to. They are kept with it.
    pub(crate) indexes: Indexes,
    /// The operator of its operands, if there are some.
    pub(crate) operator: Option<Operator>,
    /// How long the table's records live if nothing else is said, in milliseconds. 0: until they are removed.
    pub(crate) ttl_ms: u64,
    /// The same, before the transaction said otherwise.
    pub(crate) found_ttl_ms: u64,
    /// The writes in order; keys may repeat. `block.fixed` tells which form.
    ops: Block,
    last_head: u64,
    ascending: bool,
    pub(crate) ranges: Ranges,
    pub(crate) segments: Vec<Arc<Segment>>,
    /// Where to find a key among the writes; made when one is first looked for.
    index: OnceCell<Index>,
    /// The writes as cursors see them.
    own: RefCell<OwnChunks>,
    pub(crate) user_bytes: u64,
    /// Counts the times that `ops` was made anew rather than appended to.
    generation: u32,
    /// A savepoint was set, so what `ops` was before it is made anew must be kept.
    marked: bool,
    before: Vec<TableBuffer>,
    pool: Arc<Pool>,
}

/// The first fixed records get room for so many, or for fewer if their values take so many bytes. Most
/// transactions with values of middling length have one record.
const FIRST_RECORDS: usize = 64;
const FIRST_VALUE_BYTES: usize = 1 << 10;

/// Doubles the room for fixed records.
#[cold]
#[inline(never)]
fn grow(ops: &mut Block, pool: &Pool) {
    let stride = ops.fixed.map_or(0, |f| usize_of(f.stride));
    // A power of two, as batches are.
    let first = 1 << (FIRST_VALUE_BYTES / stride.max(1)).clamp(1, FIRST_RECORDS).ilog2();
    let records = (ops.heads.len() * 2).max(first);
    pool.grow(ops, records, records * stride);
}

/// How far a buffer had come when a savepoint was set.
#[derive(Clone)]
pub(crate) struct Mark {
    generation: u32,
    records: usize,
    heap_bytes: usize,
    last_head: u64,
    ascending: bool,
    segments: usize,
    user_bytes: u64,
}

impl TableBuffer {
    pub(crate) fn new(table: u32, pool: Arc<Pool>) -> TableBuffer {
        TableBuffer {
            table,
            seen: Moment::default(),
            indexes: None,
            operator: None,
            ttl_ms: 0,
            found_ttl_ms: 0,
            ops: Block::default(),
            last_head: 0,
            ascending: true,
            ranges: Ranges::default(),
            segments: Vec::new(),
            index: OnceCell::new(),
            own: RefCell::default(),
            user_bytes: 0,
            generation: 0,
            marked: false,
            before: Vec::new(),
            pool,
        }
    }

    /// The same, of a table with these indexes, whose records live so long.
    pub(crate) fn of(self, indexes: Indexes, ttl_ms: u64) -> TableBuffer {
        TableBuffer { indexes, ttl_ms, found_ttl_ms: ttl_ms, ..self }
    }

    /// Whether a write is its record and nothing else.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.indexes.is_none() && self.ttl_ms == 0
    }

    /// One without writes, for the same table and the same indexes of it.
    pub(crate) fn anew(&self) -> TableBuffer {
        let found_ttl_ms = self.found_ttl_ms;
        let same = TableBuffer::new(self.table, self.pool.clone()).of(self.indexes.clone(), self.ttl_ms);
        TableBuffer { found_ttl_ms, ..same }
    }

    /// A write to a key of eight bytes, given as a number.
    #[inline(always)]
    pub(crate) fn push8(&mut self, head: u64, tag: Tag, value: &[u8]) {
        let fixed = Fixed { stride: value.len() as u32, tag };
        let ops = &mut self.ops;
        if ops.heads.is_empty() && ops.recs.is_empty() && tag != Tag::Tombstone {
            ops.fixed = Some(fixed);
        }
        if ops.fixed != Some(fixed) {
            return self.push(&head.to_be_bytes(), tag, value);
        }
        if ops.heads.len() == ops.heads.capacity() || ops.heap.len() + value.len() > ops.heap.capacity() {
            grow(ops, &self.pool);
        }
        self.ascending &= head > self.last_head || ops.heads.is_empty();
        self.last_head = head;
        ops.heads.push(head);
        ops.heap.extend_from_slice(value);
        self.user_bytes += 8 + value.len() as u64;
        if self.index.get().is_some() {
            self.note(&head.to_be_bytes());
        }
    }

    /// A write to any key.
    pub(crate) fn push(&mut self, key: &[u8], tag: Tag, value: &[u8]) {
        if self.ops.fixed.is_some() {
            self.generalise();
        }
        self.user_bytes += (key.len() + value.len()) as u64;
        let ops = &mut self.ops;
        let end = ops.heap.len() + key.len() + value.len();
        if end > ops.heap.capacity() {
            self.pool.grow(ops, 0, (end * 2).max(256));
        }
        if let Some(last) = ops.recs.len().checked_sub(1) {
            self.ascending = self.ascending && ops.general_key(last) < key;
        }
        ops.push(key, tag, value);
        if self.index.get().is_some() {
            self.note(key);
        }
    }

    /// Adds a value segment to which a write refers.
    pub(crate) fn hold(&mut self, segment: Arc<Segment>) {
        if !self.segments.iter().any(|s| Arc::ptr_eq(s, &segment)) {
            self.segments.push(segment);
        }
    }

    fn generalise(&mut self) {
        self.keep_before();
        self.ops = self.ops.to_general();
        self.own = RefCell::default();
        self.generation += 1;
    }

    /// Keeps a copy of the buffer for savepoints set so far.
    fn keep_before(&mut self) {
        if self.marked {
            let kept = std::mem::take(&mut self.before);
            let copy = self.clone();
            self.before = kept;
            self.before.push(copy);
            self.marked = false;
        }
    }

    /// Deletes a range: the writes in it so far, and all that is older.
    pub(crate) fn remove_range(&mut self, range: Range) {
        self.keep_before();
        let before = std::mem::take(&mut self.before);
        let (generation, operator) = (self.generation + 1, self.operator);
        let (ttl_ms, found_ttl_ms) = (self.ttl_ms, self.found_ttl_ms);
        let pool = self.pool.clone();
        let sorted = std::mem::replace(self, TableBuffer::new(self.table, pool.clone())).sorted();
        let TableBufferSorted { table, block, ranges, segments, indexes, user_bytes } = sorted;
        let mut kept = Block::new(None);
        let mut tmp = [0; 8];
        for i in 0..block.len() {
            let key = block.key(i, &mut tmp);
            if !range.covers(key) {
                kept.push(key, block.tag(i), block.value(i));
            }
        }
        *self = TableBuffer {
            ops: kept,
            ranges,
            segments,
            indexes,
            ttl_ms,
            found_ttl_ms,
            user_bytes,
            generation,
            operator,
            before,
            ..TableBuffer::new(table, pool)
        };
        self.ranges.add(range);
    }

    /// Remembers how far the buffer has come.
    pub(crate) fn mark(&mut self) -> Mark {
        self.marked = true;
        Mark {
            generation: self.generation,
            records: self.ops.len(),
            heap_bytes: self.ops.heap.len(),
            last_head: self.last_head,
            ascending: self.ascending,
            segments: self.segments.len(),
            user_bytes: self.user_bytes,
        }
    }

    /// Forgets what came after a mark. REQUIRES: the buffer was not brought back to an older one since, for
    /// then it may have been made anew in another form.
    pub(crate) fn back_to(&mut self, mark: &Mark) {
        if let Some(i) = self.before.iter().position(|b| b.generation >= mark.generation) {
            let mut kept = std::mem::take(&mut self.before);
            kept.truncate(i + 1);
            if let Some(old) = kept.pop() {
                *self = TableBuffer { before: kept, marked: true, ..old };
            }
        }
        self.ops.heads.truncate(mark.records);
        self.ops.recs.truncate(mark.records);
        self.ops.heap.truncate(mark.heap_bytes);
        self.last_head = mark.last_head;
        self.ascending = mark.ascending;
        self.segments.truncate(mark.segments);
        self.user_bytes = mark.user_bytes;
        self.own.get_mut().back_to(mark.records);
        self.index = OnceCell::new();
    }

    /// The newest write of a key: its tag and value.
    pub(crate) fn find(&self, key: &[u8]) -> Option<(Tag, &[u8])> {
        if self.ops.is_empty() || self.is_next(key) {
            return None;
        }
        let index = self.index.get_or_init(|| self.build_index());
        let mut at = *index.newest.get(&hash_bytes(key, 0))?;
        let mut tmp = [0; 8];
        while at != NONE {
            let i = usize_of(at);
            if self.ops.key(i, &mut tmp) == key {
                return Some((self.ops.tag(i), self.ops.value(i)));
            }
            at = index.before[i];
        }
        None
    }

    /// All writes of a key, the newest first.
    pub(crate) fn writes_of<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = (Tag, &'a [u8])> {
        let index = (!self.ops.is_empty()).then(|| self.index.get_or_init(|| self.build_index()));
        let mut at = index.and_then(|index| index.newest.get(&hash_bytes(key, 0))).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            while at != NONE {
                let (i, mut tmp) = (usize_of(at), [0; 8]);
                at = index.map_or(NONE, |index| index.before[i]);
                if self.ops.key(i, &mut tmp) == key {
                    return Some((self.ops.tag(i), self.ops.value(i)));
                }
            }
            None
        })
    }

    /// Whether all writes came in ascending order and below a key. Then nobody need look for it, and who
    /// loads records in order makes no index.
    fn is_next(&self, key: &[u8]) -> bool {
        let last = self.ops.len() - 1;
        self.ascending && self.index.get().is_none() && self.ops.key(last, &mut [0; 8]) < key
    }

    fn build_index(&self) -> Index {
        let mut index = Index::default();
        let mut tmp = [0; 8];
        for i in 0..self.ops.len() {
            index.add(self.ops.key(i, &mut tmp));
        }
        index
    }

    fn note(&mut self, key: &[u8]) {
        if let Some(index) = self.index.get_mut() {
            index.add(key);
        }
    }

    /// The writes for a cursor, the newest first: chunks of records, then what ranges hide of the snapshot.
    pub(crate) fn chunks(&self) -> Vec<Arc<Chunk>> {
        let mut own = self.own.borrow_mut();
        own.extend(self.ops.len(), |writes| {
            Chunk::new(self.sorted_part(writes), Ranges::default(), self.segments.clone())
        });
        // A write into a range came after it, for those before it are gone. So the ranges are the oldest.
        let ranges = (!self.ranges.is_empty())
            .then(|| Arc::new(Chunk::new(Block::new(None), self.ranges.clone(), Vec::new())));
        own.newest_first().chain(ranges).collect()
    }

    /// Some of the writes sorted, the last of each key.
    fn sorted_part(&self, writes: ops::Range<usize>) -> Block {
        let mut part = Block::new(self.ops.fixed);
        part.append_same(&self.ops, writes.start, writes.end);
        if self.ascending { part } else { sort(part, &self.pool, self.folds()) }
    }

    /// Bytes of the writes so far, as they stand in memory.
    pub(super) fn heap_bytes(&self) -> usize {
        self.ops.heap.len()
    }

    /// Whether operands are folded with older writes of their keys when all are sorted.
    fn folds(&self) -> bool {
        self.operator.is_some_and(Operator::is_long)
    }

    /// The writes sorted, the last of each key.
    pub(crate) fn sorted(self) -> TableBufferSorted {
        let folds = self.folds();
        // What cursors had of it is a second copy.
        drop(self.own);
        let block = if self.ascending { self.ops } else { sort(self.ops, &self.pool, folds) };
        TableBufferSorted {
            table: self.table,
            block,
            ranges: self.ranges,
            segments: self.segments,
            indexes: self.indexes,
            user_bytes: self.user_bytes,
        }
    }

    /// Whether nothing was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.ops.is_empty() && self.ranges.is_empty()
    }
}

/// A table's writes in their final order.
pub(crate) struct TableBufferSorted {
    pub(crate) table: u32,
    pub(crate) block: Block,
    pub(crate) ranges: Ranges,
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) indexes: Indexes,
    pub(crate) user_bytes: u64,
}

impl TableBufferSorted {
    pub(crate) fn into_part(self) -> BatchPart {
        let TableBufferSorted { table, block, ranges, segments, indexes, .. } = self;
        BatchPart { table, block, ranges, segments, indexes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn sorting_keeps_the_last_write_of_each_key() {
        let mut x = 11u64;
        let mut next = move || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            x >> 11
        };
        for (n, spread) in [
            (2u64, 1u64),
            (10, 4),
            (1000, 1 << 40),
            (70_000, u64::MAX),
            (70_000, 1000),
            (65_536, u64::MAX),
            (5000, 1 << 50),
        ] {
            for general in [false, true] {
                let mut buffer = TableBuffer::new(1, Pool::new(1 << 20));
                let mut model = BTreeMap::new();
                for i in 0..n {
                    let key = next() % spread;
                    let mut value = i.to_le_bytes().to_vec();
                    if general && i % 3 == 0 {
                        value.push(7);
                    }
                    buffer.push8(key, Tag::Put, &value);
                    model.insert(key.to_be_bytes(), value);
                }
                if n <= 1000 {
                    for (k, v) in &model {
                        assert_eq!(buffer.find(k), Some((Tag::Put, v.as_slice())));
                    }
                }
                let sorted = buffer.sorted();
                assert_eq!(sorted.block.len(), model.len());
                let mut tmp = [0; 8];
                for (i, (k, v)) in model.iter().enumerate() {
                    assert_eq!(sorted.block.key(i, &mut tmp), k);
                    assert_eq!(sorted.block.value(i), v);
                }
            }
        }
    }

    #[test]
    fn one_record_takes_no_room_for_many() {
        for (value_bytes, heap_bytes_max) in
            [(8, 1 << 10), (300, 1 << 10), (1000, 1 << 10), (100_000, 100_000)]
        {
            let mut buffer = TableBuffer::new(1, Pool::new(1 << 20));
            buffer.push8(7, Tag::Put, &vec![1; value_bytes]);
            let found = buffer.ops.heap.capacity();
            assert!((value_bytes..=heap_bytes_max).contains(&found), "{found} for {value_bytes}");
        }
    }

    #[test]
    fn keys_of_every_shape_are_sorted() {
        let mut x = 3u64;
        let mut next = move |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            (x >> 33) % n
        };
        let prefixes: [&[u8]; 5] =
            [b"", b"http://www.example.com/", b"\0", b"\0\0\0\0\0\0\0\0\0", b"aaaaaaaa"];
        for _ in 0..200 {
            let mut buffer = TableBuffer::new(1, Pool::new(1 << 20));
            let mut model = BTreeMap::new();
            for i in 0..next(300) {
                let mut key = prefixes[next(5) as usize].to_vec();
                key.extend((0..next(20)).map(|_| next(2) as u8));
                buffer.push(&key, Tag::Put, &i.to_le_bytes());
                model.insert(key, i.to_le_bytes());
            }
            let block = buffer.sorted().block;
            assert_eq!(block.len(), model.len());
            for (i, (key, value)) in model.iter().enumerate() {
                assert_eq!((block.general_key(i), block.value(i)), (key.as_slice(), value.as_slice()));
            }
        }
    }
}
