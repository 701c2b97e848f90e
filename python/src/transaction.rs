//! Write transactions and snapshots.

use crate::codec::Codec;
use crate::errors::{Failure, in_file, wrong_argument};
use crate::shared::Shared;
use crate::table::{Table, View, kind_of};
use azekura::{Db, ReadTxn, WriteTxn};
use pyo3::prelude::*;
use std::sync::Arc;

/// The table of a name or of a handle, as a transaction sees it. A handle keeps its types.
fn within(
    db: &Db,
    table: &Bound<'_, PyAny>,
    key: Option<&Bound<'_, PyAny>>,
    value: Option<&Bound<'_, PyAny>>,
    view: View,
    open: impl FnOnce(&str) -> Result<azekura::Table, Failure> + Send,
) -> PyResult<Table> {
    if let Ok(handle) = table.cast::<Table>() {
        let handle = handle.get();
        let keys = key.map_or_else(|| Ok(handle.keys.clone()), |spec| Codec::of_key(Some(spec)))?;
        let values = value.map_or_else(|| Ok(handle.values.clone()), |spec| Codec::of_value(Some(spec)))?;
        return Ok(Table { table: handle.table.clone(), db: handle.db.clone(), view, keys, values });
    }
    let name: String = table.extract().map_err(|_| wrong_argument("a table or its name", table))?;
    let (keys, values) = (Codec::of_key(key)?, Codec::of_value(value)?);
    let found = table.py().detach(|| open(&name))?;
    Ok(Table { table: found, db: db.clone(), view, keys, values })
}

/// A write transaction: all of it happens, or nothing.
///
/// As a context manager it commits at the end of the block. If an exception leaves the block, it rolls back.
///
/// >>> import azekura, os, tempfile
/// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
/// >>> accounts = db.table("accounts", key=str, value=int)
/// >>> with db.begin() as tx:
/// ...     view = tx.table(accounts)
/// ...     view["alice"], view["bob"] = -5, 5
/// >>> list(accounts.items())
/// [('alice', -5), ('bob', 5)]
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct Transaction {
    /// The database.
    pub db: Db,
    /// The engine's transaction.
    pub txn: Arc<Shared<WriteTxn>>,
}

impl Transaction {
    fn end(&self) -> Result<(), Failure> {
        self.txn.take()?.commit().map_err(in_file(&self.db))
    }
}

#[pymethods]
impl Transaction {
    /// The table of a name or of a Table, as this transaction sees it. Writes to it belong to the
    /// transaction. With a kind, a table that is not there is made, as `create_table` does.
    #[pyo3(signature = (table, kind = None, *, key = None, value = None))]
    fn table(
        &self,
        table: &Bound<'_, PyAny>,
        kind: Option<&str>,
        key: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        let kind = kind.map(kind_of).transpose()?;
        if kind.is_some() && table.cast::<Table>().is_ok() {
            return Err(wrong_argument("the name of a table, where a kind is given,", table));
        }
        let open = |name: &str| {
            self.txn.with(|txn| match kind {
                None => txn.open_table(name),
                Some(kind) => txn.table(name, kind),
            })
        };
        within(&self.db, table, key, value, View::Write(self.txn.clone()), open)
    }

    /// Makes a table, which is there when the transaction is committed, and before that for this transaction
    /// alone. Conflict, here or at the commit, if another transaction makes one of this name meanwhile.
    #[pyo3(signature = (name, kind = "ordered", *, key = None, value = None))]
    fn create_table(
        &self,
        py: Python<'_>,
        name: &str,
        kind: &str,
        key: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        let (kind, keys, values) = (kind_of(kind)?, Codec::of_key(key)?, Codec::of_value(value)?);
        let table = py.detach(|| self.txn.with(|txn| txn.create_table(name, kind)))?;
        Ok(Table { table, db: self.db.clone(), view: View::Write(self.txn.clone()), keys, values })
    }

    /// Renames a table. Its handles stay good.
    fn rename_table(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
        Ok(py.detach(|| self.txn.with(|txn| txn.rename_table(old, new)))?)
    }

    /// Removes a table with all its records and its indexes. Handles of it are of no use in this transaction
    /// from now on, and anywhere after the commit.
    fn drop_table(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        Ok(py.detach(|| self.txn.with(|txn| txn.drop_table(name)))?)
    }

    /// Sets a cursor of the feed at a commit, or removes it, together with what else is written here.
    fn set_feed_cursor(&self, py: Python<'_>, name: &str, commit: Option<u64>) -> PyResult<()> {
        Ok(py.detach(|| self.txn.with(|txn| txn.set_feed_cursor(name, commit)))?)
    }

    /// Remembers the writes so far, and what was done with tables. `rollback()` of the savepoint returns to
    /// them; so does the end of its `with` block if an exception leaves the block.
    fn savepoint(&self, py: Python<'_>) -> PyResult<Savepoint> {
        let savepoint = py.detach(|| self.txn.with(|txn| Ok(txn.savepoint())))?;
        Ok(Savepoint { savepoint, txn: self.txn.clone() })
    }

    /// Makes all writes visible at once, and durable. Raises Conflict and writes nothing if another
    /// transaction has changed what this one has read.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.end())?)
    }

    /// Drops all writes.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.txn.take().map(WriteTxn::rollback))?)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let ended = match kind.is_none() {
            true => py.detach(|| self.end()),
            false => py.detach(|| self.txn.take().map(WriteTxn::rollback)),
        };
        match ended {
            // It is fine if the block has ended the transaction itself.
            Ok(()) | Err(Failure::Over) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// A place in a write transaction to which it can return, as often as it likes.
///
/// >>> import azekura, os, tempfile
/// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
/// >>> table = db.table("t", key=str, value=int)
/// >>> with db.begin() as tx:
/// ...     view = tx.table(table)
/// ...     view["a"] = 1
/// ...     try:
/// ...         with tx.savepoint():
/// ...             view["b"] = 2
/// ...             view["c"] = 1 // 0
/// ...     except ZeroDivisionError:
/// ...         pass                     # "a" stays
/// >>> list(table)
/// ['a']
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct Savepoint {
    savepoint: azekura::Savepoint,
    txn: Arc<Shared<WriteTxn>>,
}

#[pymethods]
impl Savepoint {
    /// Undoes the transaction's writes since this savepoint. Savepoints that were set after it are gone.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.txn.with(|txn| txn.rollback_to(&self.savepoint)))?)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        if kind.is_none() {
            return Ok(false);
        }
        match py.detach(|| self.txn.with(|txn| txn.rollback_to(&self.savepoint))) {
            // There is nothing to undo if the block has ended the transaction.
            Ok(()) | Err(Failure::Over) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// The database at one moment.
///
/// >>> import azekura, os, tempfile
/// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
/// >>> table = db.table("t")
/// >>> with db.snapshot() as before:
/// ...     table["a"] = "1"
/// ...     "a" in before.table(table), "a" in table
/// (False, True)
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct Snapshot {
    /// The database.
    pub db: Db,
    /// The engine's transaction.
    pub txn: Arc<Shared<ReadTxn>>,
}

#[pymethods]
impl Snapshot {
    /// The table of a name or of a Table, as the snapshot has it.
    #[pyo3(signature = (table, *, key = None, value = None))]
    fn table(
        &self,
        table: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        let open = |name: &str| -> Result<azekura::Table, Failure> {
            self.db.open_table(name).map_err(in_file(&self.db))
        };
        within(&self.db, table, key, value, View::Read(self.txn.clone()), open)
    }

    /// Ends the snapshot, and frees the space that it holds.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match py.detach(|| self.txn.take().map(drop)) {
            Ok(()) | Err(Failure::Over) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }
}
