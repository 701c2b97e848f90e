//! Tables with types in transactions.

use super::codec::Types;
use crate::engine::Table;
use crate::txn::{ReadTxn, WriteTxn};
use std::marker::PhantomData;

/// A [`TypedTable`](super::TypedTable) as a snapshot shows it.
pub struct TypedRead<'a, K: ?Sized, V: ?Sized> {
    pub(super) txn: &'a ReadTxn,
    pub(super) table: &'a Table,
    types: Types<K, V>,
}

impl<'a, K: ?Sized, V: ?Sized> TypedRead<'a, K, V> {
    pub(super) fn new(txn: &'a ReadTxn, table: &'a Table) -> Self {
        TypedRead { txn, table, types: PhantomData }
    }
}

/// A [`TypedTable`](super::TypedTable) in a write transaction. The transaction is borrowed as long as this is
/// used.
pub struct TypedWrite<'a, K: ?Sized, V: ?Sized> {
    pub(super) txn: &'a mut WriteTxn,
    pub(super) table: &'a Table,
    types: Types<K, V>,
}

impl<'a, K: ?Sized, V: ?Sized> TypedWrite<'a, K, V> {
    pub(super) fn new(txn: &'a mut WriteTxn, table: &'a Table) -> Self {
        TypedWrite { txn, table, types: PhantomData }
    }
}
