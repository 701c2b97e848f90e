//! Merges of numbers, of bytes and of text.

use super::{Key, TypedTable, TypedWrite};
use crate::base::error::Result;
use crate::format::operand::Merge;

/// The merges of a type of numbers: in a table, and in a transaction.
macro_rules! merges {
    ($number:ty, $add:ident, $min:ident, $max:ident) => {
        impl<K: Key + ?Sized> TypedTable<K, $number> {
            /// Adds to a number that is not read, as [`Table::merge`](crate::Table::merge) does (absent = 0).
            ///
            /// # Errors
            /// As `put`.
            pub fn merge_add(&self, key: K::Given<'_>, n: $number) -> Result<()> {
                K::with_bytes(key, |key| self.table.merge(key, Merge::$add(n)))
            }

            /// Makes a number that is not read the smaller of itself and this one.
            ///
            /// # Errors
            /// As `put`.
            pub fn merge_min(&self, key: K::Given<'_>, n: $number) -> Result<()> {
                K::with_bytes(key, |key| self.table.merge(key, Merge::$min(n)))
            }

            /// Makes a number that is not read the larger of itself and this one.
            ///
            /// # Errors
            /// As `put`.
            pub fn merge_max(&self, key: K::Given<'_>, n: $number) -> Result<()> {
                K::with_bytes(key, |key| self.table.merge(key, Merge::$max(n)))
            }
        }

        impl<K: Key + ?Sized> TypedWrite<'_, K, $number> {
            /// Adds to a number that is not read, as [`merge`](crate::WriteTxn::merge) does (absent = 0).
            ///
            /// # Errors
            /// As `put`.
            pub fn merge_add(&mut self, key: K::Given<'_>, n: $number) -> Result<()> {
                K::with_bytes(key, |key| self.txn.merge(self.table, key, Merge::$add(n)))
            }

            /// Makes a number that is not read the smaller of itself and this one.
            ///
            /// # Errors
            /// As `put`.
            pub fn merge_min(&mut self, key: K::Given<'_>, n: $number) -> Result<()> {
                K::with_bytes(key, |key| self.txn.merge(self.table, key, Merge::$min(n)))
            }

            /// Makes a number that is not read the larger of itself and this one.
            ///
            /// # Errors
            /// As `put`.
            pub fn merge_max(&mut self, key: K::Given<'_>, n: $number) -> Result<()> {
                K::with_bytes(key, |key| self.txn.merge(self.table, key, Merge::$max(n)))
            }
        }
    };
}

/// The merges of bytes or text: in a table, and in a transaction.
macro_rules! appends {
    ($of:ty, $bytes:expr) => {
        impl<K: Key + ?Sized> TypedTable<K, $of> {
            /// Puts more behind a value that is not read, as [`Table::merge`](crate::Table::merge) does
            /// (absent = empty).
            ///
            /// # Errors
            /// As `put`.
            pub fn merge_append(&self, key: K::Given<'_>, more: &$of) -> Result<()> {
                K::with_bytes(key, |key| self.table.merge(key, Merge::Append($bytes(more))))
            }
        }

        impl<K: Key + ?Sized> TypedWrite<'_, K, $of> {
            /// Puts more behind a value that is not read, as [`merge`](crate::WriteTxn::merge) does (absent =
            /// empty).
            ///
            /// # Errors
            /// As `put`.
            pub fn merge_append(&mut self, key: K::Given<'_>, more: &$of) -> Result<()> {
                K::with_bytes(key, |key| self.txn.merge(self.table, key, Merge::Append($bytes(more))))
            }
        }
    };
}

appends!([u8], <[u8]>::as_ref);
appends!(str, str::as_bytes);

impl<K: Key + ?Sized> TypedTable<K, [u8]> {
    /// Unites a set that is not read with elements of `width` bytes, as [`Merge::Union`] says (absent =
    /// empty).
    ///
    /// # Errors
    /// As `put`; `Invalid` for elements of which not all are whole.
    pub fn merge_union(&self, key: K::Given<'_>, width: usize, elements: &[u8]) -> Result<()> {
        K::with_bytes(key, |key| self.table.merge(key, Merge::Union { width, elements }))
    }
}

impl<K: Key + ?Sized> TypedWrite<'_, K, [u8]> {
    /// Unites a set that is not read with elements of `width` bytes, as [`Merge::Union`] says (absent =
    /// empty).
    ///
    /// # Errors
    /// As `put`; `Invalid` for elements of which not all are whole.
    pub fn merge_union(&mut self, key: K::Given<'_>, width: usize, elements: &[u8]) -> Result<()> {
        K::with_bytes(key, |key| self.txn.merge(self.table, key, Merge::Union { width, elements }))
    }
}

merges!(i64, AddI64, MinI64, MaxI64);
merges!(u64, AddU64, MinU64, MaxU64);
merges!(f64, AddF64, MinF64, MaxF64);
