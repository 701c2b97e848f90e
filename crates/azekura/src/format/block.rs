//! Records in memory, sorted, in columns. A page decodes to a block, a merge reads and writes blocks, and a
//! memtable chunk is one.
//!
//! `Fixed`: every key has eight bytes, every value `stride` bytes, every record the same `Tag`. `heads[i]` is
//! the key, and `heap` holds only the values. So fixed-width records have no per-record overhead, and merges
//! need not look at lengths. `General`: `recs[i]` says where in `heap` record `i` begins: its whole key, then
//! its value.

pub(crate) use super::tag::Tag;

use super::expiry::{Content, Expiring, OPERAND_WORD, WORD_BYTES};
use super::operand::{Folding, Operands, STORED_BYTES, reference};
use super::unpacked::Unpacked;
use crate::base::codec::{u32_of, u64_at, usize_of};
use crate::base::key::{SortKey, head_after, head_of};
use std::cmp::Ordering;
use std::ops::Range;

/// The widths that all records of a fixed block share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) stride: u32,
    pub(crate) tag: Tag,
}

impl Fixed {
    /// Those of operands under keys of eight bytes.
    pub(crate) const OPERANDS: Fixed = Fixed { stride: STORED_BYTES as u32, tag: Tag::Expiring };

    /// The length of each value in a page, where the words of expiring records are a column of their own.
    pub(crate) fn page_stride(self) -> usize {
        usize_of(self.stride) - if self.tag == Tag::Expiring { WORD_BYTES } else { 0 }
    }
}

/// The place of a general record in its block's heap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rec {
    /// Where the key begins in the heap.
    pub(crate) offset: u32,
    /// The key's length in the low 24 bits, the tag in the high 8.
    key_and_tag: u32,
}

impl Rec {
    #[inline(always)]
    pub(crate) fn new(offset: usize, key_len: usize, tag: Tag) -> Rec {
        Rec { offset: u32_of(offset), key_and_tag: u32_of(key_len) | ((tag as u32) << 24) }
    }

    #[inline(always)]
    pub(crate) fn key_len(self) -> usize {
        usize_of(self.key_and_tag & 0xff_ffff)
    }

    #[inline(always)]
    pub(crate) fn tag(self) -> Tag {
        match self.key_and_tag >> 24 {
            0 => Tag::Put,
            1 => Tag::Large,
            3 => Tag::Expiring,
            _ => Tag::Tombstone,
        }
    }
}

/// A sorted sequence of records with distinct keys.
#[derive(Debug, Default, Clone)]
pub(crate) struct Block {
    /// Fixed: the keys. General: the heads of the keys after `prefix_len` bytes, or empty before `index`.
    pub(crate) heads: Vec<u64>,
    /// The common widths. None: the block is general.
    pub(crate) fixed: Option<Fixed>,
    /// General only.
    pub(crate) recs: Vec<Rec>,
    /// Fixed: the values. General: key and value of each record.
    pub(crate) heap: Vec<u8>,
    /// General only: how many leading bytes all keys share. `heads` leaves them out.
    pub(crate) prefix_len: usize,
    /// The density of `heads`, once `index` has been called.
    density: super::search::Density,
}

impl Block {
    /// An empty block. It is fixed if widths are given.
    pub(crate) fn new(fixed: Option<Fixed>) -> Block {
        Block { fixed, ..Block::default() }
    }

    pub(crate) fn with_capacity(fixed: Option<Fixed>, records: usize, heap_bytes: usize) -> Block {
        let (heads, recs) = if fixed.is_some() { (records, 0) } else { (0, records) };
        Block {
            heads: Vec::with_capacity(heads),
            recs: Vec::with_capacity(recs),
            heap: Vec::with_capacity(heap_bytes),
            fixed,
            prefix_len: 0,
            density: super::search::Density::default(),
        }
    }

    /// Removes all records and keeps the memory.
    pub(crate) fn reset(&mut self, fixed: Option<Fixed>) {
        self.heads.clear();
        self.recs.clear();
        self.heap.clear();
        self.prefix_len = 0;
        self.fixed = fixed;
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        if self.fixed.is_some() { self.heads.len() } else { self.recs.len() }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How much memory the records take.
    pub(crate) fn bytes(&self) -> usize {
        self.heads.len() * 8 + self.recs.len() * 8 + self.heap.len()
    }

    /// The key of record `i`. `tmp` receives it where the block keeps keys as numbers.
    #[inline(always)]
    pub(crate) fn key<'a>(&'a self, i: usize, tmp: &'a mut [u8; 8]) -> &'a [u8] {
        if self.fixed.is_some() {
            *tmp = self.heads[i].to_be_bytes();
            tmp
        } else {
            self.general_key(i)
        }
    }

    /// The key of record `i` of a general block.
    #[inline(always)]
    pub(crate) fn general_key(&self, i: usize) -> &[u8] {
        let rec = self.recs[i];
        let start = usize_of(rec.offset);
        &self.heap[start..start + rec.key_len()]
    }

    /// Appends the records of `some` to `out`, which must be empty, as they are at `now`. Their values are in
    /// `heap`.
    pub(crate) fn unpack_some(&self, some: Range<usize>, now: u64, out: &mut Unpacked) {
        if let Some(f) = self.fixed.filter(|f| f.tag != Tag::Expiring) {
            let stride = usize_of(f.stride);
            let heads = self.heads[some.clone()].iter().copied();
            return out.push_numbers(heads, f.tag, some.start * stride, stride);
        }
        for i in some {
            let (mut tmp, value) = ([0; 8], self.value(i));
            let value_at = self.value_at(i);
            out.push_stored(self.key(i, &mut tmp), self.tag(i), value, value_at, now);
        }
    }

    /// Where the value of record `i` begins in the heap.
    fn value_at(&self, i: usize) -> usize {
        match self.fixed {
            Some(f) => i * usize_of(f.stride),
            None => usize_of(self.recs[i].offset) + self.recs[i].key_len(),
        }
    }

    /// What record `i` says, whether it has expired or not.
    #[inline(always)]
    pub(crate) fn content(&self, i: usize) -> Content<'_> {
        Content::of(self.tag(i), self.value(i))
    }

    /// The word of record `i`, if it has one.
    #[inline(always)]
    pub(crate) fn word(&self, i: usize) -> Option<u64> {
        if self.tag(i) != Tag::Expiring {
            return None;
        }
        let value = self.value(i);
        (value.len() >= WORD_BYTES).then(|| u64_at(value, 0))
    }

    /// Whether some records have words: they expire, or are operands.
    pub(crate) fn has_words(&self) -> bool {
        match self.fixed {
            Some(f) => f.tag == Tag::Expiring,
            None => self.recs.iter().any(|r| r.tag() == Tag::Expiring),
        }
    }

    /// Whether some records may refer to value segments.
    pub(crate) fn may_refer(&self) -> bool {
        let may = |tag| matches!(tag, Tag::Large | Tag::Expiring);
        match self.fixed {
            Some(f) => may(f.tag),
            None => self.recs.iter().any(|r| may(r.tag())),
        }
    }

    /// The reference of record `i`, if its value is in a value segment, or what its operand appends or
    /// unites.
    #[inline(always)]
    pub(crate) fn reference(&self, i: usize) -> Option<&[u8]> {
        let content = self.content(i);
        match content.tag {
            Tag::Large => Some(content.value),
            Tag::Operand => reference(content.value),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn reference_mut(&mut self, i: usize) -> Option<&mut [u8]> {
        let at = self.reference(i)?;
        let start = at.as_ptr().addr() - self.heap.as_ptr().addr();
        let range = start..start + at.len();
        Some(&mut self.heap[range])
    }

    #[inline(always)]
    fn record_end(&self, i: usize) -> usize {
        self.recs.get(i + 1).map_or(self.heap.len(), |r| usize_of(r.offset))
    }

    /// Key and value of record `i` of a general block, one after the other.
    #[inline(always)]
    pub(crate) fn general_bytes(&self, i: usize) -> &[u8] {
        &self.heap[usize_of(self.recs[i].offset)..self.record_end(i)]
    }

    #[inline(always)]
    pub(crate) fn value(&self, i: usize) -> &[u8] {
        if let Some(f) = self.fixed {
            let stride = usize_of(f.stride);
            return &self.heap[i * stride..(i + 1) * stride];
        }
        let rec = self.recs[i];
        &self.heap[usize_of(rec.offset) + rec.key_len()..self.record_end(i)]
    }

    #[inline(always)]
    pub(crate) fn tag(&self, i: usize) -> Tag {
        match self.fixed {
            Some(f) => f.tag,
            None => self.recs[i].tag(),
        }
    }

    /// Appends a record. REQUIRES: its key is above the last one; in a fixed block it has the block's widths.
    pub(crate) fn push(&mut self, key: &[u8], tag: Tag, value: &[u8]) {
        if self.fixed.is_some() {
            debug_assert!(key.len() == 8 && self.fixed == Some(Fixed { stride: u32_of(value.len()), tag }));
            self.heads.push(head_of(key));
        } else {
            self.recs.push(Rec::new(self.heap.len(), key.len(), tag));
            self.heap.extend_from_slice(key);
        }
        self.heap.extend_from_slice(value);
    }

    /// The same records in the general form, with room for one more.
    pub(crate) fn to_general(&self) -> Block {
        let mut general = Block::with_capacity(None, self.len() + 1, self.bytes());
        let mut tmp = [0; 8];
        for i in 0..self.len() {
            general.push(self.key(i, &mut tmp), self.tag(i), self.value(i));
        }
        general
    }

    /// Prepares the block for searches. Fills the `heads` of a general block.
    pub(crate) fn index(&mut self) {
        if self.fixed.is_none() && !self.recs.is_empty() {
            self.index_general();
        }
        if let (Some(&first), Some(&last)) = (self.heads.first(), self.heads.last()) {
            self.density = super::search::Density::of(self.heads.len(), first, last);
        }
    }

    fn index_general(&mut self) {
        let (first, last) = (self.general_key(0), self.general_key(self.recs.len() - 1));
        self.prefix_len = crate::base::key::common_prefix(first, last);
        let skip = self.prefix_len;
        let mut heads = std::mem::take(&mut self.heads);
        heads.clear();
        heads.extend((0..self.recs.len()).map(|i| head_after(self.general_key(i), skip)));
        self.heads = heads;
    }

    /// Compares record `i` with a key.
    #[inline]
    pub(crate) fn compare(&self, i: usize, key: SortKey<'_>) -> Ordering {
        if self.fixed.is_some() {
            // The heads are equal: then a shorter key is a prefix of ours, and ours is a prefix of a longer
            // one.
            self.heads[i].cmp(&key.head).then(8.cmp(&key.bytes.len()))
        } else {
            self.general_key(i).cmp(key.bytes)
        }
    }

    /// The first record at or above `key`, and whether it is equal to it. REQUIRES: `index` was called.
    #[inline]
    pub(crate) fn lower_bound(&self, key: SortKey<'_>) -> (usize, bool) {
        let n = self.len();
        if n == 0 {
            return (0, false);
        }
        let Some(wanted) = self.head_for(key) else {
            let above = self.compare(0, key) == Ordering::Greater;
            return (if above { 0 } else { n }, false);
        };
        let heads = self.heads.as_slice();
        let first = heads[0];
        let i = if wanted <= first {
            0
        } else {
            let guess = self.density.places(wanted - first).min(n - 1);
            super::search::lower_bound_from(n, wanted, guess, |d| self.density.places(d), |i| heads[i])
        };
        if self.fixed.is_some() && key.bytes.len() == 8 {
            return (i, i < n && self.heads[i] == wanted);
        }
        self.lower_bound_among(key, wanted, i)
    }

    /// As `lower_bound`, from `first` on: the first record whose head is not below the key's, `wanted`. Among
    /// equal heads the rest of the keys decides.
    #[inline(always)]
    pub(crate) fn lower_bound_among(&self, key: SortKey<'_>, wanted: u64, first: usize) -> (usize, bool) {
        let (n, mut i, mut end) = (self.len(), first, first);
        let mut step = 1;
        while end < n && self.heads[end] == wanted {
            end = (end + step).min(n);
            step *= 2;
        }
        while i < end {
            let middle = i + (end - i) / 2;
            match self.compare(middle, key) {
                Ordering::Less => i = middle + 1,
                Ordering::Equal => return (middle, true),
                Ordering::Greater => end = middle,
            }
        }
        (i, false)
    }

    /// The head to search for, or none if the key lies outside the common prefix.
    #[inline(always)]
    pub(crate) fn head_for(&self, key: SortKey<'_>) -> Option<u64> {
        let skip = self.prefix_len;
        if skip == 0 {
            return Some(key.head);
        }
        let inside = key.bytes.len() >= skip && key.bytes[..skip] == self.general_key(0)[..skip];
        inside.then(|| head_after(key.bytes, skip))
    }
}

impl Block {
    /// Appends records `from..to` of a general block to this general block.
    pub(crate) fn append_general(&mut self, other: &Block, from: usize, to: usize) {
        if from >= to {
            return;
        }
        let start = usize_of(other.recs[from].offset);
        let end = other.recs.get(to).map_or(other.heap.len(), |r| usize_of(r.offset));
        let shift = self.heap.len();
        self.heap.extend_from_slice(&other.heap[start..end]);
        self.recs.extend(
            other.recs[from..to].iter().map(|r| Rec {
                offset: u32_of(usize_of(r.offset) - start + shift),
                key_and_tag: r.key_and_tag,
            }),
        );
    }

    /// Appends records `from..to` of a block of the same form.
    pub(crate) fn append_same(&mut self, other: &Block, from: usize, to: usize) {
        match self.fixed {
            None => self.append_general(other, from, to),
            Some(f) => {
                let stride = usize_of(f.stride);
                self.heads.extend_from_slice(&other.heads[from..to]);
                self.heap.extend_from_slice(&other.heap[from * stride..to * stride]);
            }
        }
    }

    /// Removes those records from `start` on that have expired at `now`. REQUIRES: a fixed block.
    pub(crate) fn drop_past(&mut self, start: usize, now: u64) {
        let Some(f) = self.fixed.filter(|f| now > 0 && f.tag == Tag::Expiring) else { return };
        let (stride, mut kept) = (usize_of(f.stride), start);
        for i in start..self.heads.len() {
            if !self.content(i).expiry.is_past(now) {
                self.heads[kept] = self.heads[i];
                self.heap.copy_within(i * stride..(i + 1) * stride, kept * stride);
                kept += 1;
            }
        }
        self.heads.truncate(kept);
        self.heap.truncate(kept * stride);
    }

    /// Of the records that expire.
    pub(crate) fn expiring(&self) -> Expiring {
        let mut expiring = Expiring::default();
        if self.has_words() {
            let words = (0..self.len()).filter_map(|i| self.word(i));
            words.filter(|&word| word < OPERAND_WORD).for_each(|word| expiring.add(word));
        }
        expiring
    }

    /// Of the records that are operands.
    pub(crate) fn operands(&self) -> Operands {
        let mut operands = Operands::default();
        if self.has_words() {
            let is_operand = |i: &usize| self.word(*i).is_some_and(|word| word >= OPERAND_WORD);
            (0..self.len()).filter(is_operand).for_each(|i| operands.add(&self.value(i)[WORD_BYTES..]));
        }
        operands
    }

    /// What must be done to fold the records. (All operands of a block have one operator.)
    pub(crate) fn folding(&self) -> Folding {
        if !self.has_words() {
            return Folding::None;
        }
        let mut operands = Operands::default();
        for i in 0..self.len() {
            if self.word(i).is_some_and(|word| word >= OPERAND_WORD) {
                operands.add(&self.value(i)[WORD_BYTES..]);
                if operands.operator.is_some() {
                    break;
                }
            }
        }
        operands.folding()
    }

    /// Whether the value of record `i`, without its word, has so many bytes.
    #[inline(always)]
    pub(crate) fn is_from(&self, i: usize, bytes: usize) -> bool {
        let len = self.value(i).len();
        len >= bytes && (self.tag(i) != Tag::Expiring || len >= bytes + WORD_BYTES)
    }

    /// The bytes of the values that have so many or more, and how many these are.
    pub(crate) fn bytes_from(&self, bytes: usize) -> (usize, usize) {
        match self.fixed {
            Some(_) if self.is_empty() || !self.is_from(0, bytes) => (0, 0),
            Some(_) => (self.heap.len(), self.len()),
            None if self.heap.len() < bytes => (0, 0),
            None => {
                let long = (0..self.len()).filter(|&i| self.is_from(i, bytes));
                long.fold((0, 0), |(sum, n), i| (sum + self.value(i).len(), n + 1))
            }
        }
    }

    /// Removes the first `n` records.
    pub(crate) fn drop_front(&mut self, n: usize) {
        if let Some(f) = self.fixed {
            self.heads.drain(..n);
            self.heap.drain(..n * usize_of(f.stride));
            return;
        }
        let cut = self.recs.get(n).map_or(self.heap.len(), |r| usize_of(r.offset));
        self.heap.drain(..cut);
        self.recs.drain(..n);
        for rec in &mut self.recs {
            rec.offset -= u32_of(cut);
        }
    }
}

impl Block {
    /// Overwrites the reference of record `i`, which has one.
    pub(crate) fn replace_reference(&mut self, i: usize, reference: &[u8]) {
        let end = self.value_at(i) + self.value(i).len();
        self.heap[end - reference.len()..end].copy_from_slice(reference);
    }
}
