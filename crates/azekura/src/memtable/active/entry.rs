//! What stands in the list, and where.

use crate::base::codec::u32_of;
use crate::format::block::{Fixed, Tag};

/// One version of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// The key.
    pub(crate) key: &'a [u8],
    /// The sequence number of the commit that wrote it.
    pub(crate) seq: u64,
    /// What the writer says it is: a value, a tombstone, a reference.
    pub(crate) kind: u8,
    /// The value.
    pub(crate) value: &'a [u8],
}

impl Entry<'_> {
    /// The kind, if it is a record's tag.
    #[inline(always)]
    pub(crate) fn tag(&self) -> Tag {
        Tag::from_code(self.kind).unwrap_or(Tag::Tombstone)
    }

    /// The widths of a block that begins with this record, if it may be a fixed one.
    pub(crate) fn widths(&self) -> Option<Fixed> {
        let tag = self.tag();
        (self.key.len() == 8 && tag != Tag::Tombstone)
            .then(|| Fixed { stride: u32_of(self.value.len()), tag })
    }
}

/// Where a buffer keeps an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node(pub(super) u32);
