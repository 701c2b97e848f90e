//! Indexes of tables: made, listed, looked up.

use crate::codec::{Codec, bytes_of};
use crate::errors::{Failure, in_file, of_engine, wrong_argument};
use crate::long;
use crate::records::{Records, Source, What};
use crate::table::{Table, View};
use azekura::{AnyTxn, Db, Error, IndexRead, IndexRecords, IndexValue, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use std::ops::Bound::{Excluded, Included, Unbounded};

/// A value of a field, taken from Python, so that the thread can be detached.
enum Value {
    Null,
    Bytes(Vec<u8>),
    Text(String),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl Value {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Value> {
        if object.is_none() {
            return Ok(Value::Null);
        }
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Value::Text(text.to_str()?.to_owned()));
        }
        if let Ok(truth) = object.cast::<PyBool>() {
            return Ok(Value::U64(u64::from(truth.is_true())));
        }
        if object.is_instance_of::<PyInt>() {
            return match object.extract() {
                Ok(number) => Ok(Value::I64(number)),
                Err(_) => object.extract().map(Value::U64),
            };
        }
        if let Ok(float) = object.cast::<PyFloat>() {
            return Ok(Value::F64(float.value()));
        }
        match bytes_of(object) {
            Ok(bytes) => Ok(Value::Bytes(bytes.as_ref().to_vec())),
            Err(_) => Err(wrong_argument("None, bytes, str, int, float or bool", object)),
        }
    }

    fn all(objects: &Bound<'_, PyTuple>) -> PyResult<Vec<Value>> {
        objects.iter().map(|object| Value::of(&object)).collect()
    }

    /// One end of a range: a value, or a tuple of them.
    fn end(object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<Value>>> {
        let Some(object) = object else { return Ok(None) };
        match object.cast::<PyTuple>() {
            Ok(values) => Value::all(values).map(Some),
            Err(_) => Ok(Some(vec![Value::of(object)?])),
        }
    }

    fn lent(&self) -> IndexValue<'_> {
        match self {
            Value::Null => IndexValue::Null,
            Value::Bytes(bytes) => IndexValue::Bytes(bytes),
            Value::Text(text) => IndexValue::Text(text),
            Value::U64(number) => IndexValue::U64(*number),
            Value::I64(number) => IndexValue::I64(*number),
            Value::F64(number) => IndexValue::F64(*number),
        }
    }
}

fn lent(values: &[Value]) -> Vec<IndexValue<'_>> {
    values.iter().map(Value::lent).collect()
}

/// What a lookup asks for.
enum Query {
    /// The records with these values in their first fields.
    Equal(Vec<Value>),
    /// Of the last value only the beginning is given.
    Beginning(Vec<Value>),
    /// The records from some values on and below others.
    Between(Option<Vec<Value>>, Option<Vec<Value>>),
}

/// The records of a query by an index, or by one as a transaction sees it.
macro_rules! ask {
    ($query:expr, $index:expr) => {
        match $query {
            Query::Equal(values) => $index.get(&lent(values)),
            Query::Beginning(values) => $index.prefix(&lent(values)),
            Query::Between(lo, hi) => {
                let lo = lo.as_deref().map_or(Unbounded, |values| Included(lent(values)));
                $index.range((lo, hi.as_deref().map_or(Unbounded, |values| Excluded(lent(values)))))
            }
        }
    };
}

/// All of some records in one direction; of keys the values are empty.
fn listed(
    records: IndexRecords<AnyTxn<'_>>,
    keys_only: bool,
    reverse: bool,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let with_nothing = |key: Result<Vec<u8>>| key.map(|key| (key, Vec::new()));
    match (keys_only, reverse) {
        (false, false) => records.collect(),
        (false, true) => records.rev().collect(),
        (true, false) => records.keys().map(with_nothing).collect(),
        (true, true) => records.keys().rev().map(with_nothing).collect(),
    }
}

/// An index of a table: finds records by what is in their values, or keys.
///
/// >>> import azekura, os, tempfile
/// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
/// >>> people = db.table("people", key=str, value="json")
/// >>> people["ada"] = {"email": "Ada@example.org", "born": 1815}
/// >>> people["alan"] = {"email": "alan@example.org", "born": 1912}
/// >>> by_email = people.create_index("by_email", "v./email:lower unique where present")
/// >>> by_email.first("ADA@example.org")
/// ('ada', {'email': 'Ada@example.org', 'born': 1815})
/// >>> by_born = people.create_index("by_born", "v./born:i64")
/// >>> list(by_born.range(1800, 1900, keys_only=True))
/// ['ada']
/// >>> people["grace"] = {"born": 1906}
/// >>> [key for key, value in by_born.get(reverse=True)], by_email.count()
/// (['alan', 'grace', 'ada'], 2)
/// >>> list(by_email.prefix("al", keys_only=True)), people.index("by_born").spec
/// (['alan'], 'v./born:i64')
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct Index {
    index: azekura::Index,
    db: Db,
    view: View,
    keys: Codec,
    values: Codec,
}

impl Index {
    fn of(table: &Table, index: azekura::Index) -> Index {
        let (keys, values) = (table.keys.clone(), table.values.clone());
        Index { index, db: table.db.clone(), view: table.view.clone(), keys, values }
    }

    /// An iterator over the records of a query.
    fn records(&self, py: Python<'_>, query: &Query, reverse: bool, keys_only: bool) -> PyResult<Records> {
        let index = &self.index;
        let source = match &self.view {
            View::Direct => py.detach(|| {
                let records = ask!(query, index).map_err(in_file(&self.db))?;
                Ok::<_, Failure>(match keys_only {
                    true => Source::IndexKeys(records.keys(), reverse),
                    false => Source::Index(records, reverse),
                })
            }),
            View::Read(txn) => py.detach(|| {
                txn.with(|txn| listed(ask!(query, index.read_in(&*txn))?, keys_only, reverse)).map(list)
            }),
            View::Write(txn) => py.detach(|| {
                txn.with(|txn| listed(ask!(query, index.read_in(&*txn))?, keys_only, reverse)).map(list)
            }),
        };
        let what = if keys_only { What::Keys } else { What::Items };
        Ok(Records::new(&self.db, source?, what, (&self.keys, &self.values)))
    }

    /// The first record of a query in one direction, as a pair.
    fn end<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyTuple>,
        last: bool,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let (index, values) = (&self.index, Value::all(values)?);
        let found = py.detach(|| {
            let values = lent(&values);
            let look = |read: IndexRead<'_>| if last { read.last(&values) } else { read.first(&values) };
            match &self.view {
                View::Direct if last => index.last(&values).map_err(in_file(&self.db)),
                View::Direct => index.first(&values).map_err(in_file(&self.db)),
                View::Read(txn) => txn.with(|txn| look(index.read_in(&*txn))),
                View::Write(txn) => txn.with(|txn| look(index.read_in(&*txn))),
            }
        })?;
        let Some((key, value)) = found else { return Ok(None) };
        let pair = [self.keys.key_object(py, &key)?, self.values.value_object(py, &value)?];
        PyTuple::new(py, pair).map(Some)
    }
}

fn list(records: Vec<(Vec<u8>, Vec<u8>)>) -> Source {
    Source::Listed(records.into_iter())
}

#[pymethods]
impl Index {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.index.name()
    }

    /// What it is of: its fields and options.
    #[getter]
    fn spec(&self) -> String {
        self.index.spec().to_string()
    }

    /// The records whose first fields have these values, as pairs; without values all that are in the index.
    /// None is the value of what a record does not have. An iterator over a transaction or a snapshot is of
    /// what is there when it is made, and reads all of it then.
    #[pyo3(signature = (*values, reverse = false, keys_only = false))]
    fn get(&self, values: &Bound<'_, PyTuple>, reverse: bool, keys_only: bool) -> PyResult<Records> {
        self.records(values.py(), &Query::Equal(Value::all(values)?), reverse, keys_only)
    }

    /// As `get`, but of the last value, str or bytes, only the beginning is given.
    #[pyo3(signature = (*values, reverse = false, keys_only = false))]
    fn prefix(&self, values: &Bound<'_, PyTuple>, reverse: bool, keys_only: bool) -> PyResult<Records> {
        self.records(values.py(), &Query::Beginning(Value::all(values)?), reverse, keys_only)
    }

    /// The records from `lo` on and below `hi`, as pairs. An end is a value, or a tuple for the first fields.
    #[pyo3(signature = (lo = None, hi = None, *, reverse = false, keys_only = false))]
    fn range(
        &self,
        py: Python<'_>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
        reverse: bool,
        keys_only: bool,
    ) -> PyResult<Records> {
        self.records(py, &Query::Between(Value::end(lo)?, Value::end(hi)?), reverse, keys_only)
    }

    /// The first record with these values as a pair, or None.
    #[pyo3(signature = (*values))]
    fn first<'py>(&self, values: &Bound<'py, PyTuple>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.end(values.py(), values, false)
    }

    /// The last record with these values as a pair, or None.
    #[pyo3(signature = (*values))]
    fn last<'py>(&self, values: &Bound<'py, PyTuple>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.end(values.py(), values, true)
    }

    /// How many records have these values. No record is read.
    #[pyo3(signature = (*values))]
    fn count(&self, values: &Bound<'_, PyTuple>) -> PyResult<u64> {
        let (py, index, values) = (values.py(), &self.index, Value::all(values)?);
        let count = py.detach(|| match &self.view {
            View::Direct => index.count(&lent(&values)).map_err(in_file(&self.db)),
            View::Read(txn) => txn.with(|txn| index.read_in(&*txn).count(&lent(&values))),
            View::Write(txn) => txn.with(|txn| index.read_in(&*txn).count(&lent(&values))),
        });
        Ok(count?)
    }

    /// For annotations such as `Index[str, int]`.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        types: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        class.py().import("types")?.call_method1("GenericAlias", (class, types))
    }

    fn __repr__(&self) -> String {
        format!("<azekura.Index {:?} of {:?}>", self.index.name(), self.index.table().name())
    }
}

impl Table {
    /// Fails in a transaction or a snapshot.
    fn expect_direct(&self) -> PyResult<()> {
        match self.view {
            View::Direct => Ok(()),
            View::Read(_) | View::Write(_) => Err(of_engine(&Error::Invalid {
                detail: "an index is made and dropped outside of transactions".to_owned(),
            })),
        }
    }
}

#[pymethods]
impl Table {
    /// Makes an index, or opens the one that is there, and returns it when it is complete and durable. From
    /// now on every write to the table keeps it. `spec` names fields between commas, as in `v./email:lower,
    /// k[0..4] unique`: docs/indexes.md has all forms. `progress(done, total)` is called as it is built; True
    /// shows a bar. Raises NotUnique if two records have the same values in a unique index.
    #[pyo3(signature = (name, spec, *, progress = None))]
    fn create_index(
        &self,
        py: Python<'_>,
        name: String,
        spec: String,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Index> {
        self.expect_direct()?;
        let (table, db) = (self.table.clone(), self.db.clone());
        let made = long::run(py, progress, move |tell| {
            table.create_index_with(&name, &spec, tell).map_err(in_file(&db))
        })?;
        Ok(Index::of(self, made))
    }

    /// The index of that name.
    fn index(&self, py: Python<'_>, name: &str) -> PyResult<Index> {
        let found = py.detach(|| self.table.index(name)).map_err(in_file(&self.db))?;
        Ok(Index::of(self, found))
    }

    /// The table's indexes, by name: a dict for each, with `name`, `spec`, whether it is `ready`, and about
    /// how many `entries` it has, with their `bytes`.
    fn indexes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for info in py.detach(|| self.table.indexes()).map_err(in_file(&self.db))? {
            let dict = PyDict::new(py);
            dict.set_item("name", info.name)?;
            dict.set_item("spec", info.spec)?;
            dict.set_item("ready", info.is_ready)?;
            dict.set_item("entries", info.stats.records_estimate)?;
            dict.set_item("bytes", info.stats.run_bytes + info.stats.memory_bytes)?;
            list.append(dict)?;
        }
        Ok(list)
    }

    /// Removes an index; the records stay.
    fn drop_index(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.expect_direct()?;
        Ok(py.detach(|| self.table.drop_index(name)).map_err(in_file(&self.db))?)
    }
}
