//! The class `RecordBatches`, and `Table.to_arrow`.

use super::abi::{SCHEMA, STREAM};
use super::write::{Producer, schema_of};
use crate::codec::Codec;
use crate::errors::Failure;
use crate::ranges::Ends;
use crate::shared::Shared;
use crate::table::{Table, View};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// Records of a table for libraries that take Arrow data: PyArrow, Polars, DuckDB, pandas and others.
///
/// It shows the table as it was when `to_arrow` was called, as often as it is asked.
///
/// >>> import azekura, os, tempfile
/// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
/// >>> squares, copy = db.table("squares", key=int, value=int), db.table("copy", key=int, value=int)
/// >>> squares.put_many((n, n * n) for n in range(100))
/// >>> batches = squares.to_arrow(10, 12)              # pyarrow.table(batches), polars.DataFrame(batches)…
/// >>> squares.clear()
/// >>> copy.from_arrow(batches), dict(copy.items())
/// (2, {10: 100, 11: 121})
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct RecordBatches {
    table: azekura::Table,
    view: View,
    keys: Codec,
    values: Codec,
    ends: Ends,
    batch_size: usize,
}

#[pymethods]
impl RecordBatches {
    /// A stream of batches with the columns `key` and `value`, as a capsule of Arrow's.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A caller that asks for other types gets these all the same. The protocol allows that.
        let _ = requested_schema;
        let (table, ends) = (&self.table, &self.ends);
        let cursor = py.detach(|| match &self.view {
            View::Read(txn) if ends.are_all() => txn.with(|txn| txn.cursor(table)),
            View::Read(txn) => txn.with(|txn| txn.range(table, ends.range())),
            View::Write(txn) if ends.are_all() => txn.with(|txn| txn.cursor(table)),
            View::Write(txn) => txn.with(|txn| txn.range(table, ends.range())),
            View::Direct => Err(Failure::Over),
        })?;
        let producer = Producer {
            cursor: Some(cursor),
            keys: self.keys.clone(),
            values: self.values.clone(),
            batch_size: self.batch_size,
            failed: None,
        };
        PyCapsule::new_with_value(py, producer.stream(), STREAM)
    }

    /// The types of the two columns, as a capsule of Arrow's.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, schema_of(&self.keys, &self.values), SCHEMA)
    }
}

#[pymethods]
impl Table {
    /// The records from `lo` on and below `hi`, for libraries that take Arrow data: `pyarrow.table(…)`,
    /// `polars.DataFrame(…)`, or a query of DuckDB. The columns are `key` and `value`; a tuple is a
    /// structure. In a transaction it shows the transaction's records, until that is over.
    #[pyo3(signature = (lo = None, hi = None, *, batch_size = 65_536))]
    fn to_arrow(
        &self,
        py: Python<'_>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
        batch_size: usize,
    ) -> PyResult<RecordBatches> {
        if batch_size == 0 {
            return Err(PyValueError::new_err("batch_size is 0: a batch has one record at least"));
        }
        let ends = Ends::of(&self.keys, lo, hi)?;
        let view = match &self.view {
            View::Direct => View::Read(Arc::new(Shared::of(&self.db, py.detach(|| self.db.read())))),
            other => other.clone(),
        };
        // An error of the range is raised here, and not when somebody reads.
        if !ends.are_all() {
            self.reads(
                py,
                |t| t.range(ends.range()).map(drop),
                |txn, t| txn.range(t, ends.range()).map(drop),
                |txn, t| txn.range(t, ends.range()).map(drop),
            )?;
        }
        let (table, keys, values) = (self.table.clone(), self.keys.clone(), self.values.clone());
        Ok(RecordBatches { table, view, keys, values, ends, batch_size })
    }
}
