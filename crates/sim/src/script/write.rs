//! The writes of which the transactions of a script consist.

/// A value's origin and length. The bytes follow from them, or are the number itself (`NUMBER`), so many
/// equal bytes (`LIST`), or an element for each bit (`SET`).
pub type Stamp = (u32, u32);
/// In place of the length of a number.
pub const NUMBER: u32 = u32::MAX;
/// Of a list.
pub const LIST: u32 = u32::MAX - 1;
/// Of a set.
pub const SET: u32 = u32::MAX - 2;

/// A write of a transaction: the table's number, and what is done.
#[derive(Clone, Debug)]
pub enum Write {
    /// Stores a value under a key.
    Put(usize, Vec<u8>, Stamp),
    /// Stores one that expires long after the run.
    PutFor(usize, Vec<u8>, Stamp),
    /// Stores one that has expired already: the key is gone.
    Expired(usize, Vec<u8>),
    /// Adds to a number, appends to a list, or unites a set.
    Merge(usize, Vec<u8>, u32),
    /// Removes a key.
    Remove(usize, Vec<u8>),
    /// Removes the keys from the first to below the second.
    Range(usize, Vec<u8>, Vec<u8>),
    /// Removes all keys.
    Clear(usize),
    /// Makes the table, or drops it if it is there.
    Toggle(usize),
    /// Makes a table by another name, drops the one that there is, and gives the new one its name.
    Replace(usize),
    /// Gives each of two tables the other's name.
    Exchange(usize, usize),
    /// What is put into the table from then on lives for so many times of long; 0: until it is removed.
    Lives(usize, u32),
}

impl Write {
    /// The table that is written to. None if tables are changed themselves.
    pub(super) fn table(&self) -> Option<usize> {
        match self {
            Write::Put(t, ..) | Write::PutFor(t, ..) | Write::Expired(t, _) => Some(*t),
            Write::Merge(t, ..) | Write::Remove(t, _) | Write::Range(t, ..) | Write::Clear(t) => Some(*t),
            Write::Toggle(_) | Write::Replace(_) | Write::Exchange(..) | Write::Lives(..) => None,
        }
    }
}
