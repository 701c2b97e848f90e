//! A table, at this moment or as a transaction sees it.

use crate::codec::Codec;
use crate::errors::{in_file, missing};
use crate::numbers::Number;
use crate::records::{Records, What};
use crate::shared::Shared;
use crate::times::moment_of;
use azekura::{Db, Error, Lifetime, ReadTxn, Result, TableKind, WriteTxn};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::Arc;
use std::time::Duration;

/// How a table is read and written.
#[derive(Clone)]
pub enum View {
    /// Each call is a transaction of its own.
    Direct,
    /// A snapshot.
    Read(Arc<Shared<ReadTxn>>),
    /// A write transaction.
    Write(Arc<Shared<WriteTxn>>),
}

/// A table: a mapping from keys to values, in the order of the keys or of their hashes.
///
/// >>> import azekura, os, tempfile
/// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
/// >>> heights = db.table("heights", key=tuple[str, int], value=float)
/// >>> heights.put_many({("ada", 10): 1.40, ("ada", 20): 1.65, ("bob", 10): 1.38})
/// >>> heights["ada", 20], heights.get(("bob", 20)), ("bob", 10) in heights
/// (1.65, None, True)
/// >>> list(heights.prefix(("ada",)))
/// [(('ada', 10), 1.4), (('ada', 20), 1.65)]
/// >>> list(heights.range(("ada", 20), ("bob", 11), reverse=True))
/// [(('bob', 10), 1.38), (('ada', 20), 1.65)]
/// >>> heights.get_many([("bob", 10), ("eve", 1)])
/// [1.38, None]
/// >>> visits = db.table("visits", "hash", key=str, value=int)
/// >>> visits.increment("home"), visits.increment("home", 5), visits.add("home", 1)
/// (1, 6, False)
/// >>> visits.compare_and_swap("home", 6, 7), visits.take("home"), visits.count()
/// (True, 7, 0)
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct Table {
    /// The engine's handle.
    pub table: azekura::Table,
    /// The table's database.
    pub db: Db,
    /// How it is read and written.
    pub view: View,
    /// The encoding of its keys.
    pub keys: Codec,
    /// The encoding of its values.
    pub values: Codec,
}

/// Values up to this length are copied without an allocation.
const SMALL_MAX: usize = 128;

/// A value on its way from the engine, which works while the thread is detached, to an object.
struct Copied {
    small: [u8; SMALL_MAX],
    /// How much of `small` it is, if it is there.
    len: usize,
    large: Option<Vec<u8>>,
}

impl Copied {
    fn new() -> Copied {
        Copied { small: [0; SMALL_MAX], len: 0, large: None }
    }

    fn set(&mut self, value: &[u8]) {
        match self.small.get_mut(..value.len()) {
            Some(place) => {
                place.copy_from_slice(value);
                self.len = value.len();
            }
            None => self.large = Some(value.to_vec()),
        }
    }
}

impl AsRef<[u8]> for Copied {
    fn as_ref(&self) -> &[u8] {
        self.large.as_deref().unwrap_or(&self.small[..self.len])
    }
}

/// A time to live in seconds; None does not end.
pub fn time_of(seconds: Option<f64>) -> PyResult<Duration> {
    match seconds {
        None => Ok(Duration::MAX),
        Some(seconds) if seconds >= 0.0 => Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
        Some(seconds) => Err(PyValueError::new_err(format!("{seconds} is no time to live"))),
    }
}

impl Table {
    /// Reads in whatever way the table is read.
    pub fn reads<R: Send>(
        &self,
        py: Python<'_>,
        direct: impl FnOnce(&azekura::Table) -> Result<R> + Send,
        read: impl FnOnce(&ReadTxn, &azekura::Table) -> Result<R> + Send,
        write: impl FnOnce(&mut WriteTxn, &azekura::Table) -> Result<R> + Send,
    ) -> PyResult<R> {
        let table = &self.table;
        let done = match &self.view {
            View::Direct => py.detach(|| direct(table).map_err(in_file(&self.db))),
            View::Read(txn) => py.detach(|| txn.with(|txn| read(txn, table))),
            View::Write(txn) => py.detach(|| txn.with(|txn| write(txn, table))),
        };
        Ok(done?)
    }

    /// Writes in whatever way the table is written.
    pub fn writes<R: Send>(
        &self,
        py: Python<'_>,
        direct: impl FnOnce(&azekura::Table) -> Result<R> + Send,
        write: impl FnOnce(&mut WriteTxn, &azekura::Table) -> Result<R> + Send,
    ) -> PyResult<R> {
        self.reads(py, direct, |_, _| Err(Error::ReadOnly), write)
    }

    fn find<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, table) = (key.py(), &self.table);
        let bytes = self.keys.key(key)?;
        let (k, mut copy) = (bytes.as_ref(), Copied::new());
        let found = match &self.view {
            View::Direct => py.detach(|| table.get_with(k, |v| copy.set(v)).map_err(in_file(&self.db))),
            View::Read(txn) => py.detach(|| txn.with(|txn| txn.get_with(table, k, |v| copy.set(v)))),
            View::Write(txn) => py.detach(|| txn.with(|txn| txn.get_with(table, k, |v| copy.set(v)))),
        };
        match found? {
            Some(()) => self.values.value_object(py, copy.as_ref()).map(Some),
            None => Ok(None),
        }
    }

    fn contains(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = self.keys.key(key)?;
        let k = bytes.as_ref();
        self.reads(key.py(), |t| t.contains(k), |txn, t| txn.contains(t, k), |txn, t| txn.contains(t, k))
    }

    /// Fails if nothing can be written.
    pub fn expect_writable(&self) -> PyResult<()> {
        match self.view {
            View::Read(_) => Err(in_file(&self.db)(Error::ReadOnly).into()),
            View::Direct | View::Write(_) => Ok(()),
        }
    }

    /// Fails if the values of this table do not allow the operation.
    pub fn expect_value(&self, operation: &str, fits: &[Codec]) -> PyResult<()> {
        if fits.contains(&self.values) {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "{operation} is not for values of this table's type, {}",
            self.values.name()
        )))
    }
}

#[pymethods]
impl Table {
    /// The table's name; empty if it was dropped.
    #[getter]
    fn name(&self, py: Python<'_>) -> String {
        py.detach(|| self.table.name())
    }

    /// 'ordered' or 'hash'.
    #[getter]
    fn kind(&self) -> &'static str {
        kind_name(self.table.kind())
    }

    /// The value of a key, or `default`.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(key)?.or(default))
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.find(key)?.ok_or_else(|| missing(key))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.contains(key)
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = self.keys.key(key)?;
        let k = bytes.as_ref();
        match self.writes(key.py(), |t| t.remove_existing(k), |txn, t| txn.remove_existing(t, k))? {
            true => Ok(()),
            false => Err(missing(key)),
        }
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Records> {
        self.walk(py, What::Keys, false)
    }

    /// Sets the value of a key.
    fn put(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key_bytes, value_bytes) = (self.keys.key(key)?, self.values.value(value)?);
        let (k, v) = (key_bytes.as_ref(), value_bytes.as_ref());
        self.writes(key.py(), |t| t.put(k, v), |txn, t| txn.put(t, k, v))
    }

    /// Sets the value of a key for so many seconds. After that the record is gone by itself. None: it stays.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> sessions = db.table("sessions", key=int, value=str)
    /// >>> sessions.put_for(4711, "ada", 3600)
    /// >>> 3500 < sessions.ttl(4711) <= 3600, sessions.expire(4711, 0), 4711 in sessions
    /// (True, True, False)
    /// >>> db.close()
    fn put_for(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        seconds: Option<f64>,
    ) -> PyResult<()> {
        let (key_bytes, value_bytes) = (self.keys.key(key)?, self.values.value(value)?);
        let (k, v, ttl) = (key_bytes.as_ref(), value_bytes.as_ref(), time_of(seconds)?);
        self.writes(key.py(), |t| t.put_for(k, v, ttl), |txn, t| txn.put_for(t, k, v, ttl))
    }

    /// Sets the value of a key until a time, a datetime. None: it stays. So a record that comes from
    /// elsewhere keeps its time, as the feed of changes tells it. A time that has come leaves no record.
    ///
    /// >>> import azekura, datetime, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> soups = db.table("soups", key=str, value=str)
    /// >>> soups.put_until("leek", "hot", datetime.datetime.now() + datetime.timedelta(minutes=1))
    /// >>> 50 < soups.ttl("leek") <= 60
    /// True
    /// >>> db.close()
    fn put_until(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        time: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (key_bytes, value_bytes) = (self.keys.key(key)?, self.values.value(value)?);
        let (k, v) = (key_bytes.as_ref(), value_bytes.as_ref());
        match time.as_ref().map(moment_of).transpose()? {
            Some(time) => {
                self.writes(key.py(), |t| t.put_until(k, v, time), |txn, t| txn.put_until(t, k, v, time))
            }
            None => {
                let ever = Duration::MAX;
                self.writes(key.py(), |t| t.put_for(k, v, ever), |txn, t| txn.put_for(t, k, v, ever))
            }
        }
    }

    /// Gives a record another time to live, in seconds from now on; None: it stays. Returns whether it was
    /// there.
    fn expire(&self, key: &Bound<'_, PyAny>, seconds: Option<f64>) -> PyResult<bool> {
        let (bytes, ttl) = (self.keys.key(key)?, time_of(seconds)?);
        let k = bytes.as_ref();
        self.writes(key.py(), |t| t.expire(k, ttl), |txn, t| txn.expire(t, k, ttl))
    }

    /// How many seconds a record will still be there, math.inf if until it is removed, and None if it is not
    /// there.
    fn ttl(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let bytes = self.keys.key(key)?;
        let k = bytes.as_ref();
        let found = self.reads(key.py(), |t| t.ttl(k), |txn, t| txn.ttl(t, k), |txn, t| txn.ttl(t, k))?;
        Ok(found.map(|lifetime| match lifetime {
            Lifetime::Unlimited => f64::INFINITY,
            Lifetime::Left(left) => left.as_secs_f64(),
        }))
    }

    /// How many seconds records live if the put does not say otherwise; None if until they are removed.
    fn usual_ttl(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let found =
            self.reads(py, |t| Ok(t.usual_ttl()), |_, t| Ok(t.usual_ttl()), |txn, t| Ok(txn.usual_ttl(t)))?;
        Ok(found.map(|ttl| ttl.as_secs_f64()))
    }

    /// How many seconds those live that are put from now on, unless the put says otherwise; None: until they
    /// are removed. What is there keeps its time.
    fn set_usual_ttl(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        let ttl = seconds.map(|seconds| time_of(Some(seconds))).transpose()?;
        self.writes(py, |t| t.set_usual_ttl(ttl), |txn, t| txn.set_usual_ttl(t, ttl))
    }

    /// Removes a key, whether it is there or not.
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = self.keys.key(key)?;
        let k = bytes.as_ref();
        self.writes(key.py(), |t| t.remove(k), |txn, t| txn.remove(t, k))
    }

    /// Sets the value of a key only if the key is absent. Returns whether it was.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> born = db.table("born", key=str, value=int)
    /// >>> born.add("ada", 1815), born.add("ada", 1816), born.replace("ada", 1817), born.replace("alan", 1912)
    /// (True, False, True, False)
    /// >>> list(born.items())
    /// [('ada', 1817)]
    /// >>> db.close()
    fn add(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (key_bytes, value_bytes) = (self.keys.key(key)?, self.values.value(value)?);
        let (k, v) = (key_bytes.as_ref(), value_bytes.as_ref());
        self.writes(key.py(), |t| t.add(k, v), |txn, t| txn.add(t, k, v))
    }

    /// Sets the value of a key only if the key is present. Returns whether it was.
    fn replace(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (key_bytes, value_bytes) = (self.keys.key(key)?, self.values.value(value)?);
        let (k, v) = (key_bytes.as_ref(), value_bytes.as_ref());
        self.writes(key.py(), |t| t.replace(k, v), |txn, t| txn.replace(t, k, v))
    }

    /// Appends to the value of a key. An absent value counts as empty.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> log = db.table("log", key=str, value=str)
    /// >>> log.append("today", "rain, "), log.append("today", "then sun"), log["today"]
    /// (None, None, 'rain, then sun')
    /// >>> db.close()
    fn append(&self, key: &Bound<'_, PyAny>, suffix: &Bound<'_, PyAny>) -> PyResult<()> {
        self.expect_value("append", &[Codec::Bytes, Codec::Str])?;
        let (key_bytes, value_bytes) = (self.keys.key(key)?, self.values.value(suffix)?);
        let (k, v) = (key_bytes.as_ref(), value_bytes.as_ref());
        self.writes(key.py(), |t| t.append(k, v), |txn, t| txn.append(t, k, v))
    }

    /// Adds to a number and returns the sum. The number is an int, or eight bytes, little-endian. An absent
    /// one is 0. Sums wrap.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> visits = db.table("visits", "hash", key=str, value=int)
    /// >>> visits.increment("home"), visits.increment("home", 10), visits.increment("about", -1)
    /// (1, 11, -1)
    /// >>> db.close()
    #[pyo3(signature = (key, delta = 1))]
    fn increment(&self, key: &Bound<'_, PyAny>, delta: i64) -> PyResult<i64> {
        self.expect_value("increment", &[Codec::Bytes, Codec::Number(Number::INT)])?;
        let bytes = self.keys.key(key)?;
        let k = bytes.as_ref();
        self.writes(key.py(), |t| t.increment(k, delta), |txn, t| txn.increment(t, k, delta))
    }

    /// Replaces the value of a key by `new` only if it is `expected`. Returns whether it was. None means an
    /// absent key.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> jobs = db.table("jobs", key=int, value=str)
    /// >>> jobs[7] = "waiting"
    /// >>> jobs.compare_and_swap(7, "waiting", "mine"), jobs.compare_and_swap(7, "waiting", "mine too")
    /// (True, False)
    /// >>> jobs.compare_and_swap(7, "mine", None), 7 in jobs       # removed
    /// (True, False)
    /// >>> db.close()
    fn compare_and_swap(
        &self,
        key: &Bound<'_, PyAny>,
        expected: Option<&Bound<'_, PyAny>>,
        new: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let bytes = self.keys.key(key)?;
        let expected = expected.map(|value| self.values.value(value)).transpose()?;
        let new = new.map(|value| self.values.value(value)).transpose()?;
        let (k, e, n) =
            (bytes.as_ref(), expected.as_ref().map(AsRef::as_ref), new.as_ref().map(AsRef::as_ref));
        self.writes(key.py(), |t| t.compare_and_swap(k, e, n), |txn, t| txn.compare_and_swap(t, k, e, n))
    }

    /// Replaces the value of a key by what `fn` returns for it, and returns that. None means an absent key,
    /// before and after. If another thread changes the value meanwhile, `fn` is called again.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> tags = db.table("tags", key=str, value="json")
    /// >>> tags.update("ada", lambda old: (old or []) + ["poet's daughter"])
    /// ["poet's daughter"]
    /// >>> tags.update("ada", lambda old: None), "ada" in tags
    /// (None, False)
    /// >>> db.close()
    #[pyo3(signature = (key, r#fn))]
    fn update<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        r#fn: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        self.expect_writable()?;
        let bytes = self.keys.key(key)?;
        let k = bytes.as_ref();
        loop {
            let old = self.reads(py, |t| t.get(k), |txn, t| txn.get(t, k), |txn, t| txn.get(t, k))?;
            let object = old.as_deref().map(|value| self.values.value_object(py, value)).transpose()?;
            let new = r#fn.call1((object,))?;
            let new = if new.is_none() { None } else { Some(new) };
            let encoded = new.as_ref().map(|value| self.values.value(value)).transpose()?;
            let (e, n) = (old.as_deref(), encoded.as_ref().map(AsRef::as_ref));
            let swapped =
                self.writes(py, |t| t.compare_and_swap(k, e, n), |txn, t| txn.compare_and_swap(t, k, e, n))?;
            if swapped {
                return Ok(new.clone());
            }
        }
    }

    /// Removes a key and returns its value, or `default` if the key was absent.
    #[pyo3(signature = (key, default = None))]
    fn take<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let bytes = self.keys.key(key)?;
        let k = bytes.as_ref();
        let found = self.writes(key.py(), |t| t.take(k), |txn, t| txn.take(t, k))?;
        Ok(found.map(|value| self.values.value_object(key.py(), &value)).transpose()?.or(default))
    }

    /// For annotations such as `Table[str, int]`.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        types: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        class.py().import("types")?.call_method1("GenericAlias", (class, types))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<azekura.Table {:?} ({})>", self.name(py), self.kind())
    }
}

/// The kind that a name stands for.
pub fn kind_of(name: &str) -> PyResult<TableKind> {
    match name {
        "ordered" => Ok(TableKind::Ordered),
        "hash" => Ok(TableKind::Hash),
        _ => Err(PyValueError::new_err(format!("a table's kind is 'ordered' or 'hash', not {name:?}"))),
    }
}

/// Python's name for a kind.
pub fn kind_name(kind: TableKind) -> &'static str {
    match kind {
        TableKind::Ordered => "ordered",
        TableKind::Hash => "hash",
    }
}
