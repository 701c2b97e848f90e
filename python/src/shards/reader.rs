//! The class `ShardedReader`: a version that is read.

use super::builder::Batch;
use super::form::{Form, raised, text_of};
use crate::arrow::abi::{ARRAY, SCHEMA};
use crate::arrow::layout::Column;
use crate::arrow::read::Batches;
use crate::batch::{Found, get_all};
use crate::errors::{missing, wrong_form};
use azekura::Cursor;
use azekura_shards::{ReadOptions, Version};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use std::ops::Bound as End;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

const MEMORY_BYTES: u64 = 256 << 20;
/// How many keys are looked up at a time.
const KEYS_AT_ONCE: usize = 16 << 10;
/// A batch ends early if it has so many bytes.
const BATCH_BYTES: usize = 16 << 20;

/// A version, and how its records are encoded.
struct Held {
    version: Version,
    form: Form,
}

impl Held {
    fn of(version: Version) -> Held {
        let form = Form::of(&version.manifest().spec);
        Held { version, form }
    }
}

/// Reads a set of shards: the newest version, or a chosen one. Threads may share it.
///
/// >>> import azekura, json, os, tempfile
/// >>> folder = tempfile.mkdtemp()
/// >>> db = azekura.Database(os.path.join(folder, "t.azk"))
/// >>> squares = db.table("squares", key=int, value=int)
/// >>> squares.put_many((n, n * n) for n in range(100))
/// >>> column = {"type": "i64", "nullable": False}
/// >>> columns = {"key": [{"name": "key", **column}], "value": [{"name": "value", **column}]}
/// >>> spec = json.dumps({"kind": "ordered", "shards": 1, "hash_seed": "0" * 16, **columns})
/// >>> path = os.path.join(folder, "t.azs")
/// >>> draft = azekura.ShardDraft.begin(path, spec)
/// >>> writer = draft.writer("attempt-1", 0)
/// >>> rows = writer.write(squares.to_arrow())
/// >>> version = draft.commit(writer.finish())
/// >>> reader = azekura.ShardedReader(path)
/// >>> reader[9], reader.get(100), 5 in reader, len(reader), reader.get_many([3, 4, 500])
/// (81, None, True, 100, [9, 16, None])
/// >>> some = db.table("some", key=int, value=int)
/// >>> some.from_arrow(reader.batches(lo=10, hi=13)), list(some)
/// (3, [10, 11, 12])
/// >>> reader.version, reader.refresh()    # nobody has committed another one
/// (1, False)
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct ShardedReader {
    root: PathBuf,
    options: ReadOptions,
    now: Mutex<Arc<Held>>,
}

impl ShardedReader {
    fn held(&self) -> Arc<Held> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find<'py>(&self, held: &Held, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        let bytes = held.form.key.key(key)?;
        let bytes = bytes.as_ref();
        match raised(py.detach(|| held.version.get(bytes)))? {
            Some(value) => value_object(py, &held.form, &value).map(Some),
            None => Ok(None),
        }
    }
}

/// A value as Python's object: that of its one column, or a tuple with None for nulls.
fn value_object<'py>(py: Python<'py>, form: &Form, value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let mut cells = Vec::new();
    let decoded = form.row.decode(value, |_, cell| {
        cells.push(cell);
        Some(())
    });
    decoded.ok_or_else(|| wrong_form(&format!("a value of {} bytes is no row of the set", value.len())))?;
    let mut objects = Vec::with_capacity(cells.len());
    for (cell, codec) in cells.iter().zip(&form.values) {
        objects.push(match cell {
            Some(cell) => codec.value_object(py, cell)?,
            None => py.None().into_bound(py),
        });
    }
    match &*objects {
        [one] => Ok(one.clone()),
        several => Ok(PyTuple::new(py, several)?.into_any()),
    }
}

#[pymethods]
impl ShardedReader {
    #[new]
    #[pyo3(signature = (path, *, version = None, memory_bytes = MEMORY_BYTES))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        version: Option<u32>,
        memory_bytes: u64,
    ) -> PyResult<ShardedReader> {
        let options = ReadOptions { version, memory_bytes };
        let opened = raised(py.detach(|| Version::open(&path, options)))?;
        Ok(ShardedReader { root: path, options, now: Mutex::new(Arc::new(Held::of(opened))) })
    }

    /// The number of the version that is read.
    #[getter]
    fn version(&self) -> u32 {
        self.held().version.number()
    }

    /// What the version has, as JSON text: its manifest.
    #[getter]
    fn manifest(&self) -> PyResult<String> {
        text_of(self.held().version.manifest())
    }

    /// How many records there are.
    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.held().version.manifest().records)?)
    }

    /// Goes to the newest version. Returns whether there was a newer one.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let held = self.held().version.number();
        let (root, options) = (&self.root, self.options);
        let fresh = py.detach(|| {
            let newest = azekura_shards::newest(root)?;
            let is_newer = options.version.is_none() && newest.is_some_and(|newest| newest > held);
            is_newer.then(|| Version::open(root, options)).transpose()
        });
        let Some(fresh) = raised(fresh)? else { return Ok(false) };
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newer = fresh.number() > now.version.number();
        if is_newer {
            *now = Arc::new(Held::of(fresh));
        }
        Ok(is_newer)
    }

    /// The value of a key, or `default`. Several columns are a tuple.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(&self.held(), key)?.or(default))
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.find(&self.held(), key)?.ok_or_else(|| missing(key))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.find(&self.held(), key)?.is_some())
    }

    /// The values of many keys, in their order, with None for absent keys. Takes what `Table.get_many` takes.
    fn get_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let held = self.held();
        let object = |value: &[u8]| value_object(keys.py(), &held.form, value);
        get_all(keys, &held.form.key, object, |parts, found: &mut Found| {
            Ok(held.version.get_many_with(parts, |i, value| found.set(i, value))?)
        })
    }

    /// Looks up the keys of Arrow data, which has the columns of the key. Returns a batch with a row for
    /// each: the columns `columns` of the values (all of them, if none are named), with nulls where the key
    /// is absent, and the column `found`. Keys with nulls or NaN are absent.
    #[pyo3(signature = (keys, columns = None))]
    fn lookup(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Vec<ShardBatch>> {
        let held = self.held();
        let form = &held.form;
        let wanted = wanted(form, columns, form.key_parts.len())?;
        let Some(mut batches) = Batches::of(keys)? else {
            return Err(PyTypeError::new_err("Arrow data are due here"));
        };
        let places = Form::places(&batches.layout, &form.names[..form.key_parts.len()])?;
        let mut found = Vec::new();
        while let Some(array) = batches.next(py)? {
            let batch = Column::of(&batches.layout, &array).map_err(PyValueError::new_err)?;
            found.push(py.detach(|| look_up(&held, &batch, &places, &wanted))?);
            py.check_signals()?;
        }
        Ok(found)
    }

    /// The records of some shards, by their places in the manifest (all of them, if none are named), as
    /// batches of the columns `columns` (all of them, if none are named). The keys of an ordered set may be
    /// limited: `lo` is the first that is wanted, `hi` the first that is not, or `last` the last that is.
    #[pyo3(signature = (places = None, columns = None, *, lo = None, hi = None, last = None, batch_size = 65_536))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn batches(
        &self,
        places: Option<Vec<usize>>,
        columns: Option<Vec<String>>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
        last: Option<&Bound<'_, PyAny>>,
        batch_size: usize,
    ) -> PyResult<ShardBatches> {
        let held = self.held();
        let wanted = wanted(&held.form, columns, 0)?;
        let ends = Ends::of(&held, lo, hi, last)?;
        let mut places = places.unwrap_or_else(|| held.version.places_in(&ends.range()));
        places.reverse();
        let walk = Walk { places, ends, cursor: None };
        Ok(ShardBatches { held, wanted, batch_size: batch_size.max(1), walk: Mutex::new(walk) })
    }

    /// The places in the manifest of the shards that may have the key `key`, or keys of a range, as `batches`
    /// has it.
    #[pyo3(signature = (*, key = None, lo = None, hi = None, last = None))]
    fn places(
        &self,
        key: Option<&Bound<'_, PyAny>>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
        last: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<usize>> {
        let held = self.held();
        if let Some(key) = key {
            let key = held.form.key.key(key)?;
            return Ok(held.version.places_in(&(key.as_ref()..=key.as_ref())));
        }
        Ok(held.version.places_in(&Ends::of(&held, lo, hi, last)?.range()))
    }
}

/// The two ends of a range, encoded.
struct Ends {
    start: End<Vec<u8>>,
    end: End<Vec<u8>>,
}

impl Ends {
    fn of(
        held: &Held,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
        last: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Ends> {
        let is_hash = held.version.manifest().spec.kind == azekura::TableKind::Hash;
        if is_hash && (lo.is_some() || hi.is_some() || last.is_some()) {
            return Err(PyValueError::new_err("a set of hash tables has no ranges"));
        }
        let bytes = |key| held.form.key.bound(key).map(|bytes| bytes.as_ref().to_vec());
        let start = lo.map(bytes).transpose()?.map_or(End::Unbounded, End::Included);
        let end = match (hi, last) {
            (None, None) => End::Unbounded,
            (Some(hi), None) => End::Excluded(bytes(hi)?),
            (None, Some(last)) => End::Included(bytes(last)?),
            (Some(_), Some(_)) => return Err(PyValueError::new_err("a range has one end: hi or last")),
        };
        Ok(Ends { start, end })
    }

    fn range(&self) -> (End<&[u8]>, End<&[u8]>) {
        (self.start.as_ref().map(Vec::as_slice), self.end.as_ref().map(Vec::as_slice))
    }

    fn are_all(&self) -> bool {
        self.range() == (End::Unbounded, End::Unbounded)
    }
}

/// The columns of these names, or all from `first` on.
fn wanted(form: &Form, columns: Option<Vec<String>>, first: usize) -> PyResult<Vec<usize>> {
    let Some(columns) = columns else { return Ok((first..form.names.len()).collect()) };
    let place = |name: &String| {
        let found = form.names.iter().skip(first).position(|own| own == name).map(|place| place + first);
        found.ok_or_else(|| PyValueError::new_err(format!("the set has no such column {name:?}")))
    };
    columns.iter().map(place).collect()
}

fn no_row() -> PyErr {
    wrong_form("a record is not of the types of the set, or a batch would have too many bytes")
}

fn look_up(held: &Held, batch: &Column<'_>, places: &[usize], wanted: &[usize]) -> PyResult<ShardBatch> {
    let columns = places.iter().map(|&place| batch.child(place)).collect::<Result<Vec<_>, _>>();
    let columns = columns.map_err(PyValueError::new_err)?;
    let is_no_key =
        |row| columns.iter().any(|column| column.is_null(row)) || held.form.has_nan(&columns, row);
    let mut out = Batch::of(&held.form, wanted, true);
    let mut found = Found::default();
    let mut from = 0;
    while from < batch.rows() {
        let (keys, count) = held.form.keys_or_any(&columns, from..batch.rows().min(from + KEYS_AT_ONCE))?;
        found.reset(count);
        let got = held.version.get_many_with(&keys.first(count), |i, value| found.set(i, value));
        raised(got)?;
        for i in 0..count {
            let value = found.get(i).filter(|_| !is_no_key(from + i));
            out.push_value(value).ok_or_else(no_row)?;
        }
        from += count;
    }
    Ok(ShardBatch::of(out.schema(), out.finish()))
}

/// A batch, which other libraries take once by Arrow's PyCapsule interface.
#[pyclass(module = "azekura", frozen)]
pub struct ShardBatch {
    made: Mutex<Option<(crate::arrow::abi::Schema, crate::arrow::abi::Array)>>,
}

impl ShardBatch {
    /// A batch of this type.
    pub fn of(schema: crate::arrow::abi::Schema, array: crate::arrow::abi::Array) -> ShardBatch {
        ShardBatch { made: Mutex::new(Some((schema, array))) }
    }
}

#[pymethods]
impl ShardBatch {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // A caller that asks for other types gets these all the same. The protocol allows that.
        let _ = requested_schema;
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (schema, array) = made.ok_or_else(|| PyValueError::new_err("the batch was consumed before"))?;
        Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
    }
}

struct Walk {
    /// Shards that were not walked yet, the next one last.
    places: Vec<usize>,
    ends: Ends,
    /// The one that is walked, and its place.
    cursor: Option<(Cursor, usize)>,
}

/// An iterator over batches of records.
#[pyclass(module = "azekura", frozen)]
pub struct ShardBatches {
    held: Arc<Held>,
    wanted: Vec<usize>,
    batch_size: usize,
    walk: Mutex<Walk>,
}

impl ShardBatches {
    fn next(&self) -> PyResult<Option<ShardBatch>> {
        let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = Batch::of(&self.held.form, &self.wanted, false);
        while batch.size().0 < self.batch_size && batch.size().1 < BATCH_BYTES {
            let Some((cursor, place)) = &mut walk.cursor else {
                let Some(place) = walk.places.pop() else { break };
                let table = raised(self.held.version.table(place))?;
                let cursor =
                    if walk.ends.are_all() { table.cursor() } else { table.range(walk.ends.range()) };
                walk.cursor = Some((raised(cursor)?, place));
                continue;
            };
            let named = |error| self.held.version.named(*place, error);
            match raised(cursor.next().map_err(named))? {
                Some((key, value)) => {
                    let value = raised(value.bytes().map_err(named))?;
                    batch.push(key, value).ok_or_else(no_row)?;
                }
                None => walk.cursor = None,
            }
        }
        let is_empty = batch.size().0 == 0;
        Ok((!is_empty).then(|| ShardBatch::of(batch.schema(), batch.finish())))
    }
}

#[pymethods]
impl ShardBatches {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ShardBatch>> {
        py.detach(|| self.next())
    }
}
