//! Tables: many records in one call.

use crate::arrow::Names;
use crate::batch::{Found, Put, get_all, put_all, put_arrow, put_into};
use crate::errors::{Failure, in_file};
use crate::shared::Shared;
use crate::table::{Table, View};
use azekura::{Savepoint, WriteTxn};
use pyo3::prelude::*;
use pyo3::types::PyList;

#[pymethods]
impl Table {
    /// Sets the values of many keys in one transaction; none if there is an error. Takes a dict, pairs, two
    /// sequences, two buffers with a record in each row, or Arrow data: two columns, or a table with the
    /// columns `key` and `value`.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> from array import array
    /// >>> squares = db.table("squares", key=int, value=int)
    /// >>> squares.put_many({1: 1, 2: 4})
    /// >>> squares.put_many((n, n * n) for n in range(3, 5))
    /// >>> squares.put_many(array("q", range(5, 100)), array("q", (n * n for n in range(5, 100))))
    /// >>> squares.get_many([2, 4, 99, 100])
    /// [4, 16, 9801, None]
    /// >>> db.close()
    #[pyo3(signature = (records, values = None))]
    fn put_many(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyAny>,
        values: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.in_one_step(py, |put| put_all(records, values, (&self.keys, &self.values), put))
    }

    /// Sets the values of many keys from Arrow data, in one transaction; none if there is an error. It is the
    /// way back of `to_arrow`: it takes what gives a stream or a batch by Arrow's PyCapsule interface, or
    /// several such. `key` and `value` are the names of the columns, if these are not called so. Other
    /// columns are passed over. Returns how many records there were.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> squares, copy = db.table("squares", key=int, value=int), db.table("copy", key=int, value=int)
    /// >>> squares.put_many((n, n * n) for n in range(100))
    /// >>> copy.from_arrow(squares.to_arrow(10, 20))
    /// 10
    /// >>> copy.from_arrow(squares.to_arrow(n, n + 1) for n in (30, 40)), copy.count()
    /// (2, 12)
    /// >>> db.close()
    #[pyo3(name = "from_arrow", signature = (data, *, key = None, value = None))]
    fn put_arrow(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        key: Option<&str>,
        value: Option<&str>,
    ) -> PyResult<u64> {
        let names = Names { key, value };
        self.in_one_step(py, |put| put_arrow(data, &names, (&self.keys, &self.values), put))
    }

    /// The values of many keys, in their order, with None for absent keys. Much faster than one by one.
    fn get_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let object = |value: &[u8]| self.values.value_object(keys.py(), value);
        match &self.view {
            View::Write(txn) => get_all(keys, &self.keys, object, |parts, found| {
                let values = txn.with(|txn| txn.get_many(&self.table, parts))?;
                values.iter().enumerate().for_each(|(i, value)| found.set(i, value.as_deref()));
                Ok(())
            }),
            View::Read(txn) => self.get_many_in(txn, keys),
            View::Direct => {
                let txn = Shared::of(&self.db, keys.py().detach(|| self.db.read()));
                self.get_many_in(&txn, keys)
            }
        }
    }
}

/// Undoes what a call has put before it failed. Returns its error.
pub fn undone(py: Python<'_>, txn: &Shared<WriteTxn>, before: &Savepoint, error: PyErr) -> PyErr {
    match py.detach(|| txn.with(|txn| txn.rollback_to(before))) {
        // Whoever gives the records may have ended the transaction. Then there is nothing to undo.
        Ok(()) | Err(Failure::Over) => error,
        Err(failure) => {
            let raised = PyErr::from(failure);
            raised.set_cause(py, Some(error));
            raised
        }
    }
}

impl Table {
    /// Puts many records: all of those that `work` passes on, or none if it fails.
    fn in_one_step<R>(&self, py: Python<'_>, work: impl FnOnce(Put<'_>) -> PyResult<R>) -> PyResult<R> {
        self.expect_writable()?;
        if let View::Write(txn) = &self.view {
            let before = py.detach(|| txn.with(|txn| Ok(txn.savepoint())))?;
            return work(&|some| txn.with(|txn| put_into(txn, &self.table, some)))
                .map_err(|error| undone(py, txn, &before, error));
        }
        let txn = Shared::of(&self.db, self.db.write());
        let done = work(&|some| txn.with(|txn| put_into(txn, &self.table, some)))?;
        py.detach(|| -> Result<(), Failure> { txn.take()?.commit_blind().map_err(in_file(&self.db)) })?;
        Ok(done)
    }

    fn get_many_in<'py>(
        &self,
        txn: &Shared<azekura::ReadTxn>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let object = |value: &[u8]| self.values.value_object(keys.py(), value);
        get_all(keys, &self.keys, object, |parts, found: &mut Found| {
            txn.with(|txn| txn.get_many_with(&self.table, parts, |i, value| found.set(i, value)))
        })
    }
}
