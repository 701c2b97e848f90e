//! What a transaction remembers of the entries of indexes.

use crate::base::error::Result;
use crate::cursor::Cursor;
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

/// A walk takes at most so many steps to its next place, which may be near. Then it seeks.
const STEPS_MAX: usize = 16;

/// The entries of an index in a snapshot, gone through in their order.
pub(super) struct Walk {
    cursor: Cursor,
    /// The entry at which it stands. None before it has begun, and at the end.
    at: Option<Vec<u8>>,
    has_begun: bool,
}

impl Walk {
    pub(super) fn new(cursor: Cursor) -> Walk {
        Walk { cursor, at: None, has_begun: false }
    }

    /// Goes to the first entry from a key on. REQUIRES: no key is below the one before.
    pub(super) fn go_to(&mut self, key: &[u8]) -> Result<()> {
        let mut steps = if self.has_begun { STEPS_MAX } else { 0 };
        while self.is_below(key) {
            if steps == 0 {
                self.cursor.seek(key)?;
                return self.step();
            }
            steps -= 1;
            self.step()?;
        }
        Ok(())
    }

    fn is_below(&self, key: &[u8]) -> bool {
        match &self.at {
            Some(at) => at.as_slice() < key,
            None => !self.has_begun,
        }
    }

    /// Goes to the next entry.
    pub(super) fn step(&mut self) -> Result<()> {
        self.has_begun = true;
        match (self.cursor.next()?, &mut self.at) {
            (Some((entry, _)), Some(at)) => {
                at.clear();
                at.extend_from_slice(entry);
            }
            (entry, at) => *at = entry.map(|(entry, _)| entry.to_vec()),
        }
        Ok(())
    }

    /// The entry at which it stands.
    pub(super) fn entry(&self) -> Option<&[u8]> {
        self.at.as_deref()
    }
}
