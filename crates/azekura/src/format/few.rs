//! The few records of a small table, as they stand in the manifest and in memory: the rows of a log record.
//! There are no tombstones among them, since nothing is older, and no references to large values.

use super::block::{Block, Tag};
use super::frame::{ROW_BYTES, read_rows, write_rows};
use crate::base::codec::{Reader, Writer, u32_at, usize_of};
use crate::base::error::Result;
use crate::base::key::SortKey;
use std::sync::Arc;

/// Bytes of the row count.
pub(crate) const HEAD_BYTES: usize = 4;

/// A row count and that many rows, in the order of their sort keys. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Few(Arc<[u8]>);

impl Few {
    /// The records of a block. None if it is empty. REQUIRES: every record has an inline value.
    pub(crate) fn of(block: &Block) -> Option<Few> {
        let mut w = Writer::default();
        write_rows(&mut w, block);
        (!block.is_empty()).then(|| Few(w.bytes.into()))
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Few> {
        let block = read_rows(r)?;
        if (0..block.len()).any(|i| block.tag(i) != Tag::Put) {
            return Err(r.bad("a record of a small table is no value"));
        }
        Few::of(&block).ok_or_else(|| r.bad("a small table without records"))
    }

    /// The bytes as they stand in the manifest.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn records(&self) -> u64 {
        u64::from(u32_at(&self.0, 0))
    }

    /// Each row's sort key and value.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &self.0[HEAD_BYTES..];
        std::iter::from_fn(move || {
            let (head, records) = rest.split_at_checked(ROW_BYTES)?;
            let (key, values) = records.split_at_checked(usize_of(u32_at(head, 1)))?;
            let (value, left) = values.split_at_checked(usize_of(u32_at(head, 5)))?;
            rest = left;
            Some((key, value))
        })
    }

    pub(crate) fn find(&self, key: SortKey<'_>) -> Option<&[u8]> {
        self.rows().find(|row| row.0 == key.bytes).map(|row| row.1)
    }

    pub(crate) fn to_block(&self) -> Block {
        let mut block = Block::new(None);
        self.rows().for_each(|(key, value)| block.push(key, Tag::Put, value));
        block
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::format::block::Fixed;

    #[test]
    fn rows_come_back_and_are_found() {
        for fixed in [None, Some(Fixed { stride: 2, tag: Tag::Put })] {
            let mut block = Block::new(fixed);
            (0..9u64).for_each(|i| block.push(&(i * 7).to_be_bytes(), Tag::Put, &[1, i as u8]));
            let few = Few::of(&block).unwrap();
            assert_eq!(few.records(), 9);
            for i in 0..63u64 {
                let found = few.find(SortKey::new(&i.to_be_bytes()));
                assert_eq!(found, (i % 7 == 0).then_some(&[1, (i / 7) as u8][..]));
            }
            let mut r = Reader::new(few.bytes(), "test", 0);
            assert_eq!(Few::decode(&mut r).unwrap(), few);
            assert_eq!(few.to_block().len(), 9);
        }
        assert!(Few::of(&Block::new(None)).is_none());
    }

    #[test]
    fn deletes_and_nothing_at_all_are_refused() {
        let mut block = Block::new(None);
        for tag in [None, Some(Tag::Tombstone), Some(Tag::Large)] {
            tag.into_iter().for_each(|tag| block.push(b"k", tag, b""));
            let mut w = Writer::default();
            write_rows(&mut w, &block);
            assert!(Few::decode(&mut Reader::new(&w.bytes, "test", 0)).is_err());
            block.reset(None);
        }
    }

    #[test]
    fn keys_that_do_not_ascend_are_refused() {
        for keys in [[&b"b"[..], b"a"], [b"a", b"a"], [b"ab", b"a"]] {
            let mut block = Block::new(None);
            keys.iter().for_each(|key| block.push(key, Tag::Put, b"v"));
            let mut w = Writer::default();
            write_rows(&mut w, &block);
            assert!(Few::decode(&mut Reader::new(&w.bytes, "test", 0)).is_err(), "{keys:?}");
        }
    }
}
