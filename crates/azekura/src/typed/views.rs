//! Tables with types in transactions.

use super::codec::Types;
use crate::engine::Table;
use crate::txn::{ReadTxn, WriteTxn};
use std::marker::PhantomData;

/// A [`TypedTable`](super::TypedTable) as a snapshot shows it.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-typedread-{}.azk", std::process::id()));
/// # use azekura::{Db, Options};
/// # let db = Db::open(&path, Options::new())?;
/// use azekura::TableDefinition;
/// const BORN: TableDefinition<str, u16> = TableDefinition::ordered("born");
/// let born = db.typed_table(&BORN)?;
/// born.put("ada", 1815)?;
/// let before = db.read();
/// born.put("ada", 1816)?;
/// assert_eq!(born.read_in(&before).get("ada")?, Some(1815));
/// # drop((before, born)); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
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
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-typedwrite-{}.azk", std::process::id()));
/// # use azekura::{Db, Options};
/// # let db = Db::open(&path, Options::new())?;
/// use azekura::TableDefinition;
/// const BORN: TableDefinition<str, u16> = TableDefinition::ordered("born");
/// let born = db.typed_table(&BORN)?;
/// let mut txn = db.write();
/// born.write_in(&mut txn).put("ada", 1815)?;
/// txn.commit()?;
/// assert_eq!(born.get("ada")?, Some(1815));
/// # drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
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
