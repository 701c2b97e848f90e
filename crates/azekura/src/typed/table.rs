//! A table with types.

use super::codec::{Key, Types, Value};
use super::views::{TypedRead, TypedWrite};
use crate::base::error::Result;
use crate::base::key::TableKind;
use crate::engine::{Db, Table};
use crate::txn::{ReadTxn, WriteTxn};
use std::fmt;
use std::marker::PhantomData;

/// A table's name, kind and types in one place. It is a constant of the program, and [`Db::typed_table`]
/// makes the table from it.
///
/// ```
/// use azekura::TableDefinition;
///
/// /// When people were born.
/// const BORN: TableDefinition<str, u16> = TableDefinition::ordered("born");
/// /// Who has seen which page, and when.
/// const SEEN: TableDefinition<(String, u64), f64> = TableDefinition::hash("seen");
/// # let _ = (BORN, SEEN);
/// ```
pub struct TableDefinition<K: ?Sized, V: ?Sized> {
    name: &'static str,
    kind: TableKind,
    types: Types<K, V>,
}

impl<K: ?Sized, V: ?Sized> TableDefinition<K, V> {
    /// Of an ordered table.
    pub const fn ordered(name: &'static str) -> Self {
        TableDefinition { name, kind: TableKind::Ordered, types: PhantomData }
    }

    /// Of a hash table.
    pub const fn hash(name: &'static str) -> Self {
        TableDefinition { name, kind: TableKind::Hash, types: PhantomData }
    }
}

impl Db {
    /// The table of a definition, made if there is none.
    ///
    /// # Errors
    /// As [`table`](Db::table).
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-typed-{}.azk", std::process::id()));
    /// use azekura::{Db, Options, TableDefinition};
    ///
    /// const BORN: TableDefinition<str, u16> = TableDefinition::ordered("born");
    ///
    /// let db = Db::open(&path, Options::new())?;
    /// let born = db.typed_table(&BORN)?;
    /// born.put("ada", 1815)?;
    /// assert_eq!(born.get("ada")?, Some(1815));
    /// # drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn typed_table<K: Key + ?Sized, V: Value + ?Sized>(
        &self,
        definition: &TableDefinition<K, V>,
    ) -> Result<TypedTable<K, V>> {
        self.table(definition.name, definition.kind).map(TypedTable::over)
    }
}

/// A [`Table`] whose keys and values have types. Its methods are those of the table. Each is a transaction of
/// its own.
///
/// In a transaction, [`read_in`](TypedTable::read_in) and [`write_in`](TypedTable::write_in) give the same
/// methods:
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-typedtable-{}.azk", std::process::id()));
/// use azekura::{Db, Options, TableDefinition};
///
/// const HEAT: TableDefinition<(String, i64), f64> = TableDefinition::ordered("heat");
///
/// let db = Db::open(&path, Options::new())?;
/// let heat = db.typed_table(&HEAT)?;
/// heat.put(("kitchen", 800), 19.5)?;
///
/// let mut txn = db.write();
/// let mut kitchen = heat.write_in(&mut txn);
/// kitchen.put(("kitchen", 900), 21.0)?;
/// kitchen.update(("kitchen", 800), |was| was.map(|degrees| degrees + 0.25))?;
/// txn.commit()?;
///
/// let snapshot = db.read();
/// let seen = heat.read_in(&snapshot);
/// assert_eq!(seen.last()?, Some((("kitchen".to_owned(), 900), 21.0)));
/// assert_eq!(seen.get(("kitchen", 800))?, Some(19.75));
/// assert_eq!(seen.prefix(("kitchen",))?.count(), 2);
/// assert_eq!(heat.range(("kitchen", 850)..)?.count(), 1);
/// # drop(snapshot); drop(heat); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
///
/// The file does not record the types. Reading a record of another type is an error that names the table and
/// the key. Nothing is changed then.
pub struct TypedTable<K: ?Sized, V: ?Sized> {
    pub(super) table: Table,
    types: Types<K, V>,
}

impl<K: Key + ?Sized, V: Value + ?Sized> TypedTable<K, V> {
    /// An open table with types: one that was opened by its name, or that a transaction makes.
    ///
    /// ```
    /// # use azekura::{Db, Options, TableKind, TypedTable, storage::MemStorage};
    /// # let db = Db::open_on(&MemStorage::default(), "t.azk", Options::new())?;
    /// let mut txn = db.write();
    /// let prices: TypedTable<str, f64> = TypedTable::over(txn.table("prices", TableKind::Ordered)?);
    /// prices.write_in(&mut txn).put("tea", 3.5)?;
    /// txn.commit()?;
    /// assert_eq!(prices.get("tea")?, Some(3.5));
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn over(table: Table) -> TypedTable<K, V> {
        TypedTable { table, types: PhantomData }
    }

    /// The table of plain bytes.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The table as a snapshot shows it.
    pub fn read_in<'a>(&'a self, txn: &'a ReadTxn) -> TypedRead<'a, K, V> {
        TypedRead::new(txn, &self.table)
    }

    /// The table in a write transaction.
    pub fn write_in<'a>(&'a self, txn: &'a mut WriteTxn) -> TypedWrite<'a, K, V> {
        TypedWrite::new(txn, &self.table)
    }
}

impl<K: ?Sized, V: ?Sized> Clone for TypedTable<K, V> {
    fn clone(&self) -> Self {
        TypedTable { table: self.table.clone(), types: PhantomData }
    }
}

impl<K: ?Sized, V: ?Sized> fmt::Debug for TypedTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Typed{:?}", self.table)
    }
}

impl<K: ?Sized, V: ?Sized> fmt::Debug for TableDefinition<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableDefinition({:?}, {:?})", self.name, self.kind)
    }
}
