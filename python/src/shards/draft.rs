//! The classes `ShardDraft` and `ShardWriter`: a version that is written.

use super::form::{Form, ROWS_AT_ONCE, raised, spec_of, text_of};
use crate::arrow::layout::{Column, Layout};
use crate::arrow::read::Batches;
use crate::rows::Rows;
use crate::shared::Shared;
use azekura::{Error, TableKind};
use azekura_shards::{Draft, ShardFile, Unpacker, hash_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A version of a set of shards that is being written, by any number of processes.
///
/// >>> import azekura, json, os, tempfile
/// >>> folder = tempfile.mkdtemp()
/// >>> db = azekura.Database(os.path.join(folder, "t.azk"))
/// >>> squares = db.table("squares", key=int, value=int)
/// >>> squares.put_many((n, n * n) for n in range(100))
/// >>> column = {"type": "i64", "nullable": False}
/// >>> columns = {"key": [{"name": "key", **column}], "value": [{"name": "value", **column}]}
/// >>> spec = json.dumps({"kind": "ordered", "shards": 2, "hash_seed": "0" * 16, **columns})
/// >>> path, files = os.path.join(folder, "t.azs"), []
/// >>> draft = azekura.ShardDraft.begin(path, spec)
/// >>> for shard, (lo, hi) in enumerate([(0, 50), (50, 100)]):    # two tasks, wherever they run
/// ...     writer = azekura.ShardDraft.resume(path, draft.id).writer(f"attempt-{shard}", shard)
/// ...     rows = writer.write(squares.to_arrow(lo, hi))
/// ...     files += writer.finish()
/// >>> draft.commit(files), azekura.ShardedReader(path)[9]
/// (1, 81)
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct ShardDraft {
    draft: Draft,
}

#[pymethods]
impl ShardDraft {
    /// Begins a version of the set in the folder `path`. `spec` is JSON text: kind, shards, hash_seed, key,
    /// value.
    #[staticmethod]
    fn begin(py: Python<'_>, path: PathBuf, spec: &str) -> PyResult<ShardDraft> {
        let spec = spec_of(spec)?;
        let draft = raised(py.detach(|| Draft::begin(path, &spec)))?;
        Ok(ShardDraft { draft })
    }

    /// A draft that was begun elsewhere, by its `id`.
    #[staticmethod]
    fn resume(py: Python<'_>, path: PathBuf, id: &str) -> PyResult<ShardDraft> {
        let draft = raised(py.detach(|| Draft::resume(path, id)))?;
        Ok(ShardDraft { draft })
    }

    /// What other processes resume it by.
    #[getter]
    fn id(&self) -> &str {
        self.draft.id()
    }

    /// What the set is, as JSON text.
    #[getter]
    fn spec(&self) -> PyResult<String> {
        text_of(self.draft.spec())
    }

    /// A writer of one attempt. It writes the shards of a set of hash tables one after the other, as their
    /// rows come; of a set of ordered tables it writes the shard `shard`.
    #[pyo3(signature = (attempt, shard = None))]
    fn writer(&self, attempt: &str, shard: Option<u32>) -> PyResult<ShardWriter> {
        let spec = self.draft.spec();
        if (spec.kind == TableKind::Ordered) != shard.is_some() {
            return Err(PyValueError::new_err("the writer of an ordered set, and only that, has a number"));
        }
        let form = Form::of(spec);
        let draft = self.draft.clone();
        let state = Writing { draft, now: None, files: Vec::new(), failed: None, unpacker: None };
        Ok(ShardWriter { form, attempt: attempt.to_owned(), shard, state: Shared::new(state) })
    }

    /// Makes these files a version, and returns its number. They are what writers' `finish` has returned.
    fn commit(&self, py: Python<'_>, files: Vec<String>) -> PyResult<u32> {
        let file = |text: &String| {
            serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("a shard: {error}")))
        };
        let files = files.iter().map(file).collect::<PyResult<Vec<ShardFile>>>()?;
        raised(py.detach(|| self.draft.commit(&files)))
    }

    /// Removes the draft with all that was written.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        raised(py.detach(|| self.draft.abort()))
    }
}

struct Writing {
    draft: Draft,
    now: Option<azekura_shards::ShardWriter>,
    files: Vec<ShardFile>,
    /// What has gone wrong before: rows are missing then.
    failed: Option<Error>,
    /// Packs that were not written yet.
    unpacker: Option<Unpacker>,
}

impl Writing {
    /// Writes what is left.
    fn finish(&mut self, attempt: &str) -> azekura::Result<()> {
        if let (Some(unpacker), None) = (self.unpacker.take(), &self.failed) {
            unpacker.finish(|shard, key, value| self.put_one(shard, key, value, attempt))?;
        }
        self.close()
    }

    fn put_pack(&mut self, pack: &[u8], attempt: &str) -> azekura::Result<()> {
        let mut unpacker = match self.unpacker.take() {
            Some(unpacker) => unpacker,
            None => Unpacker::new(self.draft.spec())?,
        };
        let put = unpacker.add(pack, |shard, key, value| self.put_one(shard, key, value, attempt));
        self.unpacker = Some(unpacker);
        put
    }

    /// Closes the shard at hand.
    fn close(&mut self) -> azekura::Result<()> {
        let now = self.now.take();
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.files.extend(now.map(azekura_shards::ShardWriter::finish).transpose()?);
        Ok(())
    }

    fn put(&mut self, (keys, values): (&Rows, &Rows), count: usize, of: &ShardWriter) -> azekura::Result<()> {
        for i in 0..count {
            let key = keys.get(i);
            let shard = self.draft.spec().shard_of(key).or(of.shard).unwrap_or(0);
            self.put_one(shard, key, values.get(i), &of.attempt)?;
        }
        Ok(())
    }

    #[inline]
    fn put_one(&mut self, shard: u32, key: &[u8], value: &[u8], attempt: &str) -> azekura::Result<()> {
        if self.now.as_ref().is_none_or(|now| now.shard() != shard) {
            self.turn_to(shard, attempt)?;
        }
        self.now.as_mut().map_or(Ok(()), |now| now.put(key, value))
    }

    fn turn_to(&mut self, shard: u32, attempt: &str) -> azekura::Result<()> {
        let before = self.now.as_ref().map(azekura_shards::ShardWriter::shard);
        if let Some(before) = before.filter(|&before| before > shard) {
            return Err(Error::Invalid {
                detail: format!(
                    "a row of shard {shard} comes after one of shard {before}: the rows have to be divided and sorted \
                     first, as azekura.spark.prepare does it"
                ),
            });
        }
        self.close()?;
        self.now = Some(self.draft.writer(shard, attempt)?);
        Ok(())
    }
}

/// Writes the rows of one attempt. Used by one thread at a time.
///
/// >>> import azekura, json, os, tempfile
/// >>> folder = tempfile.mkdtemp()
/// >>> db = azekura.Database(os.path.join(folder, "t.azk"))
/// >>> squares = db.table("squares", key=int, value=int)
/// >>> squares.put_many((n, n * n) for n in range(100))
/// >>> column = {"type": "i64", "nullable": False}
/// >>> columns = {"key": [{"name": "key", **column}], "value": [{"name": "value", **column}]}
/// >>> spec = json.dumps({"kind": "ordered", "shards": 1, "hash_seed": "0" * 16, **columns})
/// >>> draft = azekura.ShardDraft.begin(os.path.join(folder, "t.azs"), spec)
/// >>> writer = draft.writer("attempt-1", 0)
/// >>> writer.write(squares.to_arrow(hi=30)), writer.write(squares.to_arrow(30))    # in their order
/// (30, 70)
/// >>> draft.commit(writer.finish())
/// 1
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct ShardWriter {
    form: Form,
    attempt: String,
    shard: Option<u32>,
    state: Shared<Writing>,
}

#[pymethods]
impl ShardWriter {
    /// Adds rows, in the order of their keys (or of the hashes of these), from Arrow data with the set's
    /// columns. Returns how many there were.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.or_failed(py, self.write_all(py, data))
    }

    /// Adds the packs of a `ShardPacker`, in the order of their slices: a column of bytes, which is the last
    /// one.
    fn write_packed(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        self.or_failed(py, self.write_packs(py, data))
    }

    /// Makes what was written durable. Returns a description of each shard, for `ShardDraft.commit`. Raises
    /// what went wrong before.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let mut state = py.detach(|| self.state.take())?;
        raised(py.detach(|| state.finish(&self.attempt)))?;
        state.files.iter().map(text_of).collect()
    }

    /// Removes the shard at hand, and ends the writer, which may be over already. What it has written before
    /// goes with the draft.
    fn abandon(&self, py: Python<'_>) {
        let _over = py.detach(|| self.state.take().map(drop));
    }
}

impl ShardWriter {
    /// After an error rows are missing, so nothing can be finished.
    fn or_failed<T>(&self, py: Python<'_>, outcome: PyResult<T>) -> PyResult<T> {
        outcome.inspect_err(|error| {
            let detail = format!("an earlier write has failed: {error}");
            let _over = py.detach(|| {
                self.state.with(|state| {
                    state.failed.get_or_insert(Error::Invalid { detail });
                    Ok(())
                })
            });
        })
    }

    fn write_packs(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(mut batches) = Batches::of(data)? else {
            return Err(PyTypeError::new_err("Arrow data are due here"));
        };
        let last = match &batches.layout {
            Layout::Struct(fields) if !fields.is_empty() => fields.len() - 1,
            _ => return Err(PyTypeError::new_err("a table of Arrow data is due, not one column")),
        };
        while let Some(array) = batches.next(py)? {
            let batch = Column::of(&batches.layout, &array).map_err(PyValueError::new_err)?;
            let packs = columns(&batch, &[last])?[0];
            packs.expect_rows().map_err(PyValueError::new_err)?;
            if !matches!(packs.layout(), Layout::Bytes { .. } | Layout::View) {
                return Err(PyTypeError::new_err("packs are a column of bytes"));
            }
            for row in 0..batch.rows() {
                let pack = packs.bytes(row).map_err(PyValueError::new_err)?;
                let put = py.detach(|| self.state.with(|state| state.put_pack(pack, &self.attempt)));
                put.map_err(PyErr::from)?;
            }
            py.check_signals()?;
        }
        Ok(())
    }

    fn write_all(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        let Some(mut batches) = Batches::of(data)? else {
            return Err(PyTypeError::new_err("Arrow data are due here"));
        };
        let places = Form::places(&batches.layout, &self.form.names)?;
        let mut rows = 0;
        while let Some(array) = batches.next(py)? {
            let batch = Column::of(&batches.layout, &array).map_err(PyValueError::new_err)?;
            let columns = columns(&batch, &places)?;
            py.detach(|| self.add(&columns, batch.rows()))?;
            rows += batch.rows() as u64;
            py.check_signals()?;
        }
        Ok(rows)
    }

    fn add(&self, columns: &[Column<'_>], rows: usize) -> PyResult<()> {
        self.form.encode(columns, rows, |keys, values, count| {
            Ok(self.state.with(|state| state.put((keys, values), count, self))?)
        })
    }
}

/// The columns at these places of a batch.
pub fn columns<'a>(batch: &Column<'a>, places: &[usize]) -> PyResult<Vec<Column<'a>>> {
    let columns = batch.expect_rows().and_then(|()| places.iter().map(|&place| batch.child(place)).collect());
    columns.map_err(PyValueError::new_err)
}

/// The hash of each row's key, for sets of hash tables, as numbers of 64 bits with the sign flipped: so they
/// are in the order of the hashes. `data` has the columns of the key. The result is the bytes of native
/// numbers; those of keys with nulls or NaN mean nothing.
#[pyfunction]
pub fn shard_hashes<'py>(
    py: Python<'py>,
    data: &Bound<'_, PyAny>,
    spec: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let spec = spec_of(spec)?;
    let form = Form::of(&spec);
    let Some(mut batches) = Batches::of(data)? else {
        return Err(PyTypeError::new_err("Arrow data are due here"));
    };
    let is_struct = matches!(batches.layout, Layout::Struct(_));
    let names = &form.names[..form.key_parts.len()];
    let places = if is_struct { Form::places(&batches.layout, names)? } else { Vec::new() };
    let mut hashes = Vec::new();
    while let Some(array) = batches.next(py)? {
        let batch = Column::of(&batches.layout, &array).map_err(PyValueError::new_err)?;
        let columns = if is_struct { columns(&batch, &places)? } else { vec![batch] };
        py.detach(|| {
            let mut from = 0;
            while from < batch.rows() {
                let (keys, count) =
                    form.keys_or_any(&columns, from..batch.rows().min(from + ROWS_AT_ONCE))?;
                for i in 0..count {
                    let hash = hash_of(keys.get(i), spec.hash_seed) ^ 1 << 63;
                    hashes.extend_from_slice(&hash.to_ne_bytes());
                }
                from += count;
            }
            Ok::<_, PyErr>(())
        })?;
    }
    Ok(PyBytes::new(py, &hashes))
}
