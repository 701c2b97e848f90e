//! What a transaction remembers of the entries of indexes.

use crate::format::block::Tag;

/// What a transaction remembers of indexes.
#[derive(Default)]
pub(super) struct Indexed {
    /// What is about to be written to hidden tables, and its bytes.
    pub(super) changes: Vec<Change>,
    pub(super) bytes: Vec<u8>,
    /// Entries that were added to unique indexes.
    pub(super) added: Vec<Added>,
}

/// An entry that comes or goes.
pub(super) struct Change {
    pub(super) slot: usize,
    pub(super) tag: Tag,
    pub(super) entry: std::ops::Range<usize>,
    /// So many bytes of it are to be unique.
    pub(super) checked: usize,
}

/// An entry of a unique index, by the number of the index.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Added {
    pub(super) id: u32,
    pub(super) entry: Vec<u8>,
    pub(super) fields: usize,
}

impl Added {
    pub(super) fn fields(&self) -> &[u8] {
        &self.entry[..self.fields]
    }

    /// The key of the record.
    pub(super) fn key(&self) -> &[u8] {
        &self.entry[self.fields..]
    }
}
