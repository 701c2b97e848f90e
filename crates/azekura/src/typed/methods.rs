//! The methods of tables with types, written once for the table, a snapshot's view and a write transaction's
//! view. Each turns its arguments into bytes, calls the method of that name, and reads the result before
//! anything is committed. So nothing is removed that cannot be given.

use super::codec::{Key, Prefix, Value, in_record};
use super::records::{TypedCursor, TypedRecords, own_record};
use super::table::TypedTable;
use super::views::{TypedRead, TypedWrite};
use crate::base::error::Result;
use crate::cursor::{Cursor, Way};
use std::ops::{Bound, RangeBounds};

type BytesRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A range as bytes.
fn range_bytes<'k, K: Key + ?Sized + 'k>(range: &impl RangeBounds<K::Given<'k>>) -> Result<BytesRange> {
    let bytes = |bound: Bound<&K::Given<'k>>| {
        Ok(match bound {
            Bound::Included(&key) => Bound::Included(K::with_bytes(key, |bytes| Ok(bytes.to_vec()))?),
            Bound::Excluded(&key) => Bound::Excluded(K::with_bytes(key, |bytes| Ok(bytes.to_vec()))?),
            Bound::Unbounded => Bound::Unbounded,
        })
    };
    Ok((bytes(range.start_bound())?, bytes(range.end_bound())?))
}

/// A value, or none, as bytes.
fn option_bytes<V: Value + ?Sized>(value: Option<V::Given<'_>>) -> Result<Option<Vec<u8>>> {
    value.map(|value| V::with_bytes(value, |bytes| Ok(bytes.to_vec()))).transpose()
}

/// What only reads. `$on` is the field that reads; `$table` the field with the table, if that is another.
macro_rules! reads {
    ($of:ty, $on:ident $(, $table:ident)?) => {
        impl<K: Key + ?Sized, V: Value + ?Sized> $of {
            /// The value of a key.
            ///
            /// # Errors
            /// As [`Table::get`](crate::Table::get); `WrongType` if the value has not the form of its type.
            #[inline]
            pub fn get(&self, key: K::Given<'_>) -> Result<Option<V::Owned>> {
                self.get_with(key, V::own)
            }

            /// Calls `f` with the value of a key where it stands, and gives what `f` made of it.
            ///
            /// # Errors
            /// As `get`.
            #[inline]
            pub fn get_with<T>(
                &self,
                key: K::Given<'_>,
                f: impl FnOnce(V::View<'_>) -> T,
            ) -> Result<Option<T>> {
                K::with_bytes(key, |key| {
                    // Apart from what is found, which then fits registers: an error is large to be moved.
                    let mut wrong = None;
                    let found = self.$on.get_with($(self.$table,)? key, |value| {
                        V::view(value).map_err(|e| wrong = Some(e)).ok().map(f)
                    })?;
                    match wrong {
                        None => Ok(found.flatten()),
                        Some(e) => Err(in_record(&self.table, key, e)),
                    }
                })
            }

            /// The values of several keys, in their order. Much faster than one by one.
            ///
            /// # Errors
            /// As `get`.
            pub fn get_many<'k>(
                &self,
                keys: impl IntoIterator<Item = K::Given<'k>>,
            ) -> Result<Vec<Option<V::Owned>>>
            where
                K: 'k,
            {
                let bytes = |key| K::with_bytes(key, |bytes| Ok(bytes.to_vec()));
                let keys = keys.into_iter().map(bytes).collect::<Result<Vec<_>>>()?;
                let found = self.$on.get_many($(self.$table,)? &keys)?;
                let own = |(key, value): (&Vec<u8>, Option<Vec<u8>>)| {
                    let owned = value.map(|value| V::view(&value).map(V::own)).transpose();
                    owned.map_err(|e| in_record(&self.table, key, e))
                };
                keys.iter().zip(found).map(own).collect()
            }

            /// Whether a key is there.
            ///
            /// # Errors
            /// As `get`.
            #[inline]
            pub fn contains(&self, key: K::Given<'_>) -> Result<bool> {
                K::with_bytes(key, |key| self.$on.contains($(self.$table,)? key))
            }

            /// How many records there are. Cheap where runs do not overlap, else a scan.
            ///
            /// # Errors
            /// As `get`.
            pub fn count(&self) -> Result<u64> {
                self.$on.count($(self.$table)?)
            }

            /// The first record, of a hash table any.
            ///
            /// # Errors
            /// As `get`.
            pub fn first(&self) -> Result<Option<(K::Owned, V::Owned)>> {
                self.edge(Way::Forward)
            }

            /// The last record, of a hash table any.
            ///
            /// # Errors
            /// As `get`.
            pub fn last(&self) -> Result<Option<(K::Owned, V::Owned)>> {
                self.edge(Way::Backward)
            }

            fn edge(&self, way: Way) -> Result<Option<(K::Owned, V::Owned)>> {
                self.$on.edge($(self.$table,)? way, |key, value| own_record::<K, V>(&self.table, key, value))
            }

            /// A cursor over the table, before its first record: the fastest way to walk.
            ///
            /// # Errors
            /// As `get`.
            pub fn cursor(&self) -> Result<TypedCursor<K, V>> {
                Ok(TypedCursor::new(self.$on.cursor($(self.$table)?)?, self.table.clone()))
            }

            /// An iterator over copies of the records, from both ends.
            ///
            /// # Errors
            /// As `get`.
            pub fn iter(&self) -> Result<TypedRecords<K, V>> {
                self.$on.cursor($(self.$table)?).map(|cursor| self.records(cursor))
            }

            /// An iterator over copies of the records of a range, from both ends. Ordered tables only.
            ///
            /// ```
            /// # use azekura::{Db, Options, TableDefinition, storage::MemStorage};
            /// # let db = Db::open_on(&MemStorage::default(), "t.azk", Options::new())?;
            /// # let born = db.typed_table(&TableDefinition::<str, u16>::ordered("born"))?;
            /// born.put_many([("ada", 1815), ("alan", 1912), ("grace", 1906)])?;
            /// let mut names = born.range("ada"..="alan")?.map(|record| record.map(|(name, _)| name));
            /// assert_eq!(names.next_back().transpose()?.as_deref(), Some("alan"));
            /// assert_eq!(names.count(), 1);
            /// # Ok::<(), azekura::Error>(())
            /// ```
            ///
            /// # Errors
            /// `WrongType` for a hash table; as `get`.
            pub fn range<'k>(&self, range: impl RangeBounds<K::Given<'k>>) -> Result<TypedRecords<K, V>>
            where
                K: 'k,
            {
                let range = range_bytes::<K>(&range)?;
                self.$on.range($(self.$table,)? range).map(|cursor| self.records(cursor))
            }

            /// An iterator over copies of the records whose keys begin so: with some text or bytes, or the
            /// first parts of a tuple. Ordered tables only.
            ///
            /// ```
            /// # use azekura::{Db, Options, TableDefinition, storage::MemStorage};
            /// # let db = Db::open_on(&MemStorage::default(), "t.azk", Options::new())?;
            /// # let born = db.typed_table(&TableDefinition::<str, u16>::ordered("born"))?;
            /// born.put_many([("ada", 1815), ("alan", 1912), ("grace", 1906)])?;
            /// assert_eq!(born.prefix("a")?.count(), 2);
            /// let heat = db.typed_table(&TableDefinition::<(String, i64), f64>::ordered("heat"))?;
            /// heat.put_many([(("hall", 800), 18.0), (("kitchen", 800), 19.5)])?;
            /// assert_eq!(heat.prefix(("kitchen",))?.count(), 1);
            /// # Ok::<(), azekura::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `range`.
            pub fn prefix(&self, prefix: impl Prefix<K>) -> Result<TypedRecords<K, V>> {
                prefix.with_bytes(|prefix| {
                    self.$on.prefix($(self.$table,)? prefix).map(|cursor| self.records(cursor))
                })
            }

            fn records(&self, cursor: Cursor) -> TypedRecords<K, V> {
                TypedRecords::new(cursor.owned(), self.table.clone())
            }
        }
    };
}

reads!(TypedTable<K, V>, table);
reads!(TypedRead<'_, K, V>, txn, table);
reads!(TypedWrite<'_, K, V>, txn, table);

/// What writes. `$mut` is there where that takes an exclusive reference. `$put` is the put to call.
macro_rules! writes {
    ($of:ty, [$($mut:tt)?], $put:ident, $on:ident $(, $table:ident)?) => {
        impl<K: Key + ?Sized, V: Value + ?Sized> $of {
            /// Sets the value of a key.
            ///
            /// # Errors
            /// As [`Table::put`](crate::Table::put).
            #[inline]
            pub fn put(&$($mut)? self, key: K::Given<'_>, value: V::Given<'_>) -> Result<()> {
                K::with_bytes(key, |key| {
                    V::with_bytes(value, |value| self.$on.$put($(self.$table,)? key, value))
                })
            }

            /// Removes a key, whether it is there or not; nothing is looked at.
            ///
            /// # Errors
            /// As `put`.
            #[inline]
            pub fn remove(&$($mut)? self, key: K::Given<'_>) -> Result<()> {
                K::with_bytes(key, |key| self.$on.remove($(self.$table,)? key))
            }

            /// Removes a key if it is there; whether it was.
            ///
            /// # Errors
            /// As `get` and `put`.
            pub fn remove_existing(&$($mut)? self, key: K::Given<'_>) -> Result<bool> {
                K::with_bytes(key, |key| self.$on.remove_existing($(self.$table,)? key))
            }

            /// Removes a key and gives its value.
            ///
            /// # Errors
            /// As `get` and `put`; `WrongType` if the value has not the form of its type: then it stays.
            pub fn take(&$($mut)? self, key: K::Given<'_>) -> Result<Option<V::Owned>> {
                let table = self.table.clone();
                K::with_bytes(key, |key| {
                    let own = |value: &[u8]| {
                        V::view(value).map(V::own).map_err(|e| in_record(&table, key, e))
                    };
                    self.$on.take_with($(self.$table,)? key, own)
                })
            }

            /// Sets the value of a key only if it is absent; whether it was.
            ///
            /// # Errors
            /// As `get` and `put`.
            pub fn add(&$($mut)? self, key: K::Given<'_>, value: V::Given<'_>) -> Result<bool> {
                K::with_bytes(key, |key| {
                    V::with_bytes(value, |value| self.$on.add($(self.$table,)? key, value))
                })
            }

            /// Sets the value of a key only if it is present; whether it was.
            ///
            /// # Errors
            /// As `get` and `put`.
            pub fn replace(&$($mut)? self, key: K::Given<'_>, value: V::Given<'_>) -> Result<bool> {
                K::with_bytes(key, |key| {
                    V::with_bytes(value, |value| self.$on.replace($(self.$table,)? key, value))
                })
            }

            /// Replaces the value of a key only if it is what is expected (none = absent); whether it was. A
            /// new value of none removes the key.
            ///
            /// # Errors
            /// As `get` and `put`.
            pub fn compare_and_swap(
                &$($mut)? self,
                key: K::Given<'_>,
                expected: Option<V::Given<'_>>,
                new: Option<V::Given<'_>>,
            ) -> Result<bool> {
                let (expected, new) = (option_bytes::<V>(expected)?, option_bytes::<V>(new)?);
                let (expected, new) = (expected.as_deref(), new.as_deref());
                K::with_bytes(key, |key| self.$on.compare_and_swap($(self.$table,)? key, expected, new))
            }

            /// Replaces the value of a key by what `f` makes of it. None stands for an absent key, before and
            /// after. Outside a transaction `f` is run again if another commit has changed the key meanwhile.
            ///
            /// ```
            /// # use azekura::{Db, Options, TableDefinition, storage::MemStorage};
            /// # let db = Db::open_on(&MemStorage::default(), "t.azk", Options::new())?;
            /// # let born = db.typed_table(&TableDefinition::<str, u16>::ordered("born"))?;
            /// born.put("ada", 1814)?;
            /// born.update("ada", |year| year.map(|year| year + 1))?;
            /// born.update("grace", |year| year.or(Some(1906)))?;
            /// assert_eq!(born.get_many(["ada", "grace"])?, [Some(1815), Some(1906)]);
            /// # Ok::<(), azekura::Error>(())
            /// ```
            ///
            /// # Errors
            /// As [`Table::update`](crate::Table::update); `WrongType` if the value is not of the table's
            /// type: then it stays.
            pub fn update(
                &$($mut)? self,
                key: K::Given<'_>,
                mut f: impl FnMut(Option<V::View<'_>>) -> Option<V::Owned>,
            ) -> Result<()> {
                let table = self.table.clone();
                K::with_bytes(key, |key| {
                    self.$on.try_update($(self.$table,)? key, |old| {
                        let old = old.map(V::view).transpose().map_err(|e| in_record(&table, key, e))?;
                        option_bytes::<V>(f(old).as_ref().map(V::lend))
                    })
                })
            }

            /// Removes the first record and gives it, of a hash table any; as
            /// [`Table::pop_first`](crate::Table::pop_first).
            ///
            /// # Errors
            /// As `take`.
            pub fn pop_first(&$($mut)? self) -> Result<Option<(K::Owned, V::Owned)>> {
                self.pop(Way::Forward)
            }

            /// Removes the last record and gives it; as `pop_first`.
            ///
            /// # Errors
            /// As `take`.
            pub fn pop_last(&$($mut)? self) -> Result<Option<(K::Owned, V::Owned)>> {
                self.pop(Way::Backward)
            }

            fn pop(&$($mut)? self, way: Way) -> Result<Option<(K::Owned, V::Owned)>> {
                let table = self.table.clone();
                self.$on.pop_with($(self.$table,)? way, |key, value| own_record::<K, V>(&table, key, value))
            }

            /// Removes all keys of a range. Ordered tables only.
            ///
            /// # Errors
            /// `WrongType` for a hash table; as `put`.
            pub fn remove_range<'k>(&$($mut)? self, range: impl RangeBounds<K::Given<'k>>) -> Result<()>
            where
                K: 'k,
            {
                let range = range_bytes::<K>(&range)?;
                self.$on.remove_range($(self.$table,)? range)
            }

            /// Removes the records of a range for which `f` says false, and tells how many, as
            /// [`Table::retain`](crate::Table::retain).
            ///
            /// # Errors
            /// `WrongType` for a part of a hash table, or if a record is not of the table's types: then all
            /// records stay. As `get` and `put`.
            pub fn retain<'k>(
                &$($mut)? self,
                range: impl RangeBounds<K::Given<'k>>,
                mut f: impl FnMut(K::View<'_>, V::View<'_>) -> bool,
            ) -> Result<u64>
            where
                K: 'k,
            {
                let (range, table) = (range_bytes::<K>(&range)?, self.table.clone());
                self.$on.try_retain($(self.$table,)? range, |key, value| {
                    let (k, v) = (K::view(key), V::view(value));
                    let ask = || Ok(f(k?, v?));
                    ask().map_err(|e| in_record(&table, key, e))
                })
            }

            /// Removes all records.
            ///
            /// # Errors
            /// As `put`.
            pub fn clear(&$($mut)? self) -> Result<()> {
                self.$on.clear($(self.$table)?)
            }
        }

    };
}

writes!(TypedTable<K, V>, [], put, table);
writes!(TypedWrite<'_, K, V>, [mut], put_here, txn, table);

impl<K: Key + ?Sized, V: Value + ?Sized> TypedTable<K, V> {
    /// Sets the values of many keys in one transaction.
    ///
    /// # Errors
    /// As `put`. Nothing is written then, but for `MirrorBehind`.
    pub fn put_many<'a>(&self, records: impl IntoIterator<Item = (K::Given<'a>, V::Given<'a>)>) -> Result<()>
    where
        K: 'a,
        V: 'a,
    {
        let mut txn = self.table.db.write();
        let mut view = self.write_in(&mut txn);
        for (key, value) in records {
            view.put(key, value)?;
        }
        txn.commit_blind()
    }
}

impl<K: Key + ?Sized, V: Value + ?Sized> TypedWrite<'_, K, V> {
    /// Removes a range and gives what was in it, as [`WriteTxn::drain`](crate::WriteTxn::drain). Only in a
    /// transaction, which can be rolled back if a record is not of the table's types.
    ///
    /// # Errors
    /// `WrongType` for a part of a hash table; as `get`.
    pub fn drain<'k>(&mut self, range: impl RangeBounds<K::Given<'k>>) -> Result<TypedRecords<K, V>>
    where
        K: 'k,
    {
        let range = range_bytes::<K>(&range)?;
        Ok(TypedRecords::new(self.txn.drain(self.table, range)?, self.table.clone()))
    }
}

impl<K: Key + ?Sized> TypedTable<K, i64> {
    /// Adds to a number (absent = 0; sums wrap) and gives the sum.
    ///
    /// # Errors
    /// As `get` and `put`.
    pub fn increment(&self, key: K::Given<'_>, delta: i64) -> Result<i64> {
        K::with_bytes(key, |key| self.table.increment(key, delta))
    }
}

impl<K: Key + ?Sized> TypedWrite<'_, K, i64> {
    /// Adds to a number (absent = 0; sums wrap) and gives the sum.
    ///
    /// # Errors
    /// As `get` and `put`.
    pub fn increment(&mut self, key: K::Given<'_>, delta: i64) -> Result<i64> {
        K::with_bytes(key, |key| self.txn.increment(self.table, key, delta))
    }
}
