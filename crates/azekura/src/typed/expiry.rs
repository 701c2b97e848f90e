//! Tables with types: records with a time to live.

use super::codec::{Key, Value};
use super::table::TypedTable;
use super::views::{TypedRead, TypedWrite};
use crate::base::error::Result;
use crate::txn::Lifetime;
use std::time::{Duration, SystemTime};

/// As `reads` and `writes` of the other methods.
macro_rules! ttl {
    ($of:ty, $on:ident $(, $table:ident)?) => {
        impl<K: Key + ?Sized, V: Value + ?Sized> $of {
            /// How long a record will be there; none if it is not. See [`Table::ttl`](crate::Table::ttl).
            ///
            /// # Errors
            /// As `get`.
            pub fn ttl(&self, key: K::Given<'_>) -> Result<Option<Lifetime>> {
                K::with_bytes(key, |key| self.$on.ttl($(self.$table,)? key))
            }
        }
    };
}

impl<K: Key + ?Sized, V: Value + ?Sized> TypedTable<K, V> {
    /// How long the table's records live if the put does not say otherwise. See
    /// [`Table::usual_ttl`](crate::Table::usual_ttl).
    pub fn usual_ttl(&self) -> Option<Duration> {
        self.table.usual_ttl()
    }

    /// Says how long the table's records live from now on. See
    /// [`Table::set_usual_ttl`](crate::Table::set_usual_ttl).
    ///
    /// # Errors
    /// As that.
    pub fn set_usual_ttl(&self, ttl: Option<Duration>) -> Result<()> {
        self.table.set_usual_ttl(ttl)
    }
}

impl<K: Key + ?Sized, V: Value + ?Sized> TypedWrite<'_, K, V> {
    /// Says how long the table's records live from now on. See
    /// [`WriteTxn::set_usual_ttl`](crate::WriteTxn::set_usual_ttl).
    ///
    /// # Errors
    /// As that.
    pub fn set_usual_ttl(&mut self, ttl: Option<Duration>) -> Result<()> {
        self.txn.set_usual_ttl(self.table, ttl)
    }
}

ttl!(TypedTable<K, V>, table);
ttl!(TypedRead<'_, K, V>, txn, table);
ttl!(TypedWrite<'_, K, V>, txn, table);

macro_rules! lives {
    ($of:ty, [$($mut:tt)?], $on:ident $(, $table:ident)?) => {
        impl<K: Key + ?Sized, V: Value + ?Sized> $of {
            /// Sets the value of a key for some time, after which the record is gone by itself. See
            /// [`Table::put_for`](crate::Table::put_for).
            ///
            /// # Errors
            /// As `put`.
            pub fn put_for(&$($mut)? self, key: K::Given<'_>, value: V::Given<'_>, ttl: Duration) -> Result<()> {
                K::with_bytes(key, |key| {
                    V::with_bytes(value, |value| self.$on.put_for($(self.$table,)? key, value, ttl))
                })
            }

            /// Sets the value of a key until a time. See [`Table::put_until`](crate::Table::put_until).
            ///
            /// # Errors
            /// As `put`.
            pub fn put_until(&$($mut)? self, key: K::Given<'_>, value: V::Given<'_>, time: SystemTime) -> Result<()> {
                K::with_bytes(key, |key| {
                    V::with_bytes(value, |value| self.$on.put_until($(self.$table,)? key, value, time))
                })
            }

            /// Gives a record that is there another time to live, from now on. True if it was there.
            ///
            /// # Errors
            /// As `get` and `put`.
            pub fn expire(&$($mut)? self, key: K::Given<'_>, ttl: Duration) -> Result<bool> {
                K::with_bytes(key, |key| self.$on.expire($(self.$table,)? key, ttl))
            }

            /// Lets a record that is there stay until it is removed. True if it was there.
            ///
            /// # Errors
            /// As `get` and `put`.
            pub fn persist(&$($mut)? self, key: K::Given<'_>) -> Result<bool> {
                K::with_bytes(key, |key| self.$on.persist($(self.$table,)? key))
            }
        }
    };
}

lives!(TypedTable<K, V>, [], table);
lives!(TypedWrite<'_, K, V>, [mut], txn, table);
