//! Merges of numbers.

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

merges!(i64, AddI64, MinI64, MaxI64);
merges!(u64, AddU64, MinU64, MaxU64);
merges!(f64, AddF64, MinF64, MaxF64);
