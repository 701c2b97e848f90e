//! Some consecutive records of a page or block, with their keys unpacked: what a cursor walks over.
//!
//! Keys are copied, since pages hold them packed. Values stay where they are.

use super::expiry::{Content, Expiry};
use super::tag::Tag;
use crate::base::codec::{u32_of, usize_of};
use std::ops::Range;

/// Records of one page or block, unpacked.
#[derive(Default)]
pub(crate) struct Unpacked {
    pub(super) keys: Vec<u8>,
    pub(super) records: Vec<Record>,
    /// When records expire: of those up to the last that does.
    expiries: Vec<Expiry>,
}

/// Where a record's key is in `keys`, and where its value is in its page or block.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    value_at: usize,
    value_len: u32,
    key_at: u32,
    key_len: u32,
    pub(crate) tag: Tag,
}

impl Record {
    #[inline(always)]
    pub(super) fn new(key: Range<usize>, value: Range<usize>, tag: Tag) -> Record {
        Record {
            value_at: value.start,
            value_len: u32_of(value.len()),
            key_at: u32_of(key.start),
            key_len: u32_of(key.len()),
            tag,
        }
    }

    /// The record's value. `bytes` are those of its page or block.
    #[inline(always)]
    pub(crate) fn value(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.value_at..][..usize_of(self.value_len)]
    }
}

impl Unpacked {
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.records.clear();
        self.expiries.clear();
    }

    /// The memory that it keeps.
    pub(crate) fn capacity_bytes(&self) -> usize {
        let records = self.records.capacity() * size_of::<Record>();
        self.keys.capacity() + records + self.expiries.capacity() * size_of::<Expiry>()
    }

    /// When a record expires.
    #[inline(always)]
    pub(crate) fn expiry(&self, i: usize) -> Expiry {
        self.expiries.get(i).copied().unwrap_or(Expiry::NEVER)
    }

    /// Appends a record of memory as it is at `now`: one that has expired is a tombstone. What is stored for
    /// it begins at `stored_at`.
    pub(crate) fn push_stored(&mut self, key: &[u8], tag: Tag, stored: &[u8], stored_at: usize, now: u64) {
        let content = Content::of(tag, stored).at(now);
        let value_at = stored_at + stored.len() - content.value.len();
        self.push(key, content.tag, value_at, content.value.len());
        self.expires(self.records.len() - 1, content.expiry);
    }

    /// Makes record `i` what its word says at `now`.
    pub(super) fn settle(&mut self, i: usize, word: u64, now: u64) {
        let (expiry, tag) = Expiry::read(word);
        let is_past = expiry.is_past(now);
        self.records[i].tag = if is_past { Tag::Tombstone } else { tag };
        self.expires(i, if is_past { Expiry::NEVER } else { expiry });
    }

    fn expires(&mut self, i: usize, expiry: Expiry) {
        if expiry != Expiry::NEVER {
            self.expiries.resize(i, Expiry::NEVER);
            self.expiries.push(expiry);
        }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    #[inline(always)]
    pub(crate) fn record(&self, i: usize) -> Record {
        self.records[i]
    }

    #[inline(always)]
    pub(crate) fn key(&self, record: Record) -> &[u8] {
        &self.keys[usize_of(record.key_at)..][..usize_of(record.key_len)]
    }

    /// Appends a record whose value begins at `value_at`.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: &[u8], tag: Tag, value_at: usize, value_len: usize) {
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.push_key_since(start, tag, value_at..value_at + value_len);
    }

    /// Appends a record whose key has just been appended to `keys`, from `start` on.
    #[inline(always)]
    pub(super) fn push_key_since(&mut self, start: usize, tag: Tag, value: Range<usize>) {
        self.records.push(Record::new(start..self.keys.len(), value, tag));
    }

    /// Appends records whose keys are numbers. Their values have `stride` bytes each and stand one after the
    /// other from `value_at` on. REQUIRES: `self` is empty.
    #[inline(always)]
    pub(super) fn push_numbers(
        &mut self,
        numbers: impl ExactSizeIterator<Item = u64>,
        tag: Tag,
        value_at: usize,
        stride: usize,
    ) {
        debug_assert!(self.records.is_empty() && self.keys.is_empty());
        let n = numbers.len();
        self.keys.resize(n * 8, 0);
        for (key, number) in self.keys.as_chunks_mut().0.iter_mut().zip(numbers) {
            *key = number.to_be_bytes();
        }
        let value_len = u32_of(stride);
        let record =
            |(i, at)| Record { value_at: value_at + at * stride, value_len, key_at: i * 8, key_len: 8, tag };
        self.records.extend((0..u32_of(n)).zip(0..).map(record));
    }
}
