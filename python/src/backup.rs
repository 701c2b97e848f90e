//! Backups: of a `Database` into a repository, a stream or a file, and the class `Repository`.
//!
//! What these calls return are named tuples of `azekura/_reports.py`.

use crate::database::Database;
use crate::errors::{in_file, of_engine};
use crate::long;
use crate::times::moment_of;
use azekura::{CopyOptions, Error, Keep, PointInfo, Progress, RestoreReport, Which};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// A named tuple.
fn report<'py>(py: Python<'py>, name: &str, parts: impl PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
    py.import("azekura._reports")?.getattr(name)?.call1(parts)
}

fn point<'py>(py: Python<'py>, info: &PointInfo) -> PyResult<Bound<'py, PyAny>> {
    let utc = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // As a whole number, for a float of seconds may be a microsecond less.
        py.import("azekura._reports")?.call_method1("utc", (since.as_micros(),))
    };
    let (time, last_time) = (utc(info.time)?, utc(info.last_time)?);
    let parts = (info.number, info.commit, time, info.tables, info.bytes, info.first_commit, last_time);
    report(py, "Point", parts)
}

fn restored<'py>(py: Python<'py>, done: &RestoreReport) -> PyResult<Bound<'py, PyAny>> {
    report(py, "RestoreReport", (point(py, &done.point)?, done.bytes))
}

/// A Python file, and progress, for a call that runs in the caller's thread. The first exception is kept, and
/// ends the call.
struct Stream {
    file: Py<PyAny>,
    progress: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Stream {
    fn new(file: &Bound<'_, PyAny>, progress: Option<Bound<'_, PyAny>>) -> PyResult<Stream> {
        let progress = long::callback(file.py(), progress)?.map(Bound::unbind);
        Ok(Stream { file: file.clone().unbind(), progress, raised: None })
    }

    /// Calls Python, unless it has raised an exception before.
    fn call<T>(&mut self, f: impl FnOnce(Python<'_>, &Stream) -> PyResult<T>) -> io::Result<T> {
        if self.raised.is_some() {
            return Err(io::Error::other("the file of the stream has raised an exception"));
        }
        Python::attach(|py| py.check_signals().and_then(|()| f(py, self))).map_err(|raised| {
            let told = io::Error::other(raised.to_string());
            self.raised = Some(raised);
            told
        })
    }

    fn tell(&mut self, step: Progress) {
        // An exception ends the call when it reads or writes next.
        let _ = self.call(|py, stream| {
            stream.progress.as_ref().map(|call| call.call1(py, (step.done, step.total))).transpose()
        });
    }

    /// The outcome of the call.
    fn end<T>(self, done: azekura::Result<T>) -> PyResult<T> {
        match self.raised {
            Some(raised) => Err(raised),
            None => done.map_err(|error| of_engine(&error)),
        }
    }
}

/// A stream for the engine to read or write, and the progress that it tells meanwhile.
#[derive(Clone)]
struct Piped(Arc<std::sync::Mutex<Stream>>);

impl Piped {
    fn of(stream: Stream) -> Piped {
        Piped(Arc::new(std::sync::Mutex::new(stream)))
    }

    fn with<T>(&self, f: impl FnOnce(&mut Stream) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn end<T>(self, done: azekura::Result<T>) -> PyResult<T> {
        match Arc::into_inner(self.0) {
            Some(stream) => stream.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).end(done),
            None => done.map_err(|error| of_engine(&error)),
        }
    }
}

impl Write for Piped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let write = |py: Python<'_>, stream: &Stream| {
            stream.file.call_method1(py, "write", (PyBytes::new(py, bytes),))?.extract::<Option<usize>>(py)
        };
        // A file that does not say how many bytes it took has taken all.
        self.with(|stream| stream.call(write)).map(|written| written.unwrap_or(bytes.len()).min(bytes.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flush = |py: Python<'_>, stream: &Stream| match stream.file.bind(py).hasattr("flush")? {
            true => stream.file.call_method0(py, "flush").map(drop),
            false => Ok(()),
        };
        self.with(|stream| stream.call(flush))
    }
}

impl Read for Piped {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = |py: Python<'_>, stream: &Stream| {
            let given = stream.file.call_method1(py, "read", (into.len(),))?;
            let bytes = given.cast_bound::<PyBytes>(py)?.as_bytes();
            let room = into.get_mut(..bytes.len());
            let room =
                room.ok_or_else(|| PyValueError::new_err("read() has returned more than was asked for"))?;
            room.copy_from_slice(bytes);
            Ok(bytes.len())
        };
        self.with(|stream| stream.call(read))
    }
}

#[pymethods]
impl Database {
    /// Adds a point, the database after its newest commit, to a repository of backups: a directory that is
    /// made if there is none. Others read and write meanwhile. A second backup costs what has changed.
    /// `progress` is called with how many bytes are done, and of how many; True shows a bar.
    /// At most `bytes_per_second` are copied, so that others have their share of the disks: 4,096 or more,
    /// and None for no limit.
    #[pyo3(signature = (repository, progress = None, *, bytes_per_second = None))]
    fn backup<'py>(
        &self,
        py: Python<'py>,
        repository: PathBuf,
        progress: Option<Bound<'py, PyAny>>,
        bytes_per_second: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (db, options) = (self.db.clone(), paced(bytes_per_second));
        let done = long::run(py, progress, move |tell| {
            db.backup_with(repository, options, tell).map_err(in_file(&db))
        })?;
        let figures = (done.point, done.commit, done.chunks, done.bytes, done.new_chunks, done.new_bytes);
        report(py, "BackupReport", figures)
    }

    /// Writes a whole backup to a binary file or pipe. `restore_stream` makes a database of it again. At most
    /// `bytes_per_second` are copied, 4,096 or more.
    #[pyo3(signature = (file, progress = None, *, bytes_per_second = None))]
    fn backup_to<'py>(
        &self,
        file: &Bound<'py, PyAny>,
        progress: Option<Bound<'py, PyAny>>,
        bytes_per_second: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = file.py();
        let piped = Piped::of(Stream::new(file, progress)?);
        let (mut out, told) = (piped.clone(), piped.clone());
        let options = paced(bytes_per_second);
        let tell = move |step| told.with(|s| s.tell(step));
        let done = py.detach(move || self.db.backup_to_with(&mut out, options, tell));
        point(py, &piped.end(done)?)
    }

    /// Copies the database to a new file, while others read and write. The copy has no free space, and a
    /// lineage of its own. At most `bytes_per_second` are copied, 4,096 or more.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> db.table("born", key=str, value=int)["ada"] = 1815
    /// >>> path = os.path.join(tempfile.mkdtemp(), "copy.azk")
    /// >>> db.copy_to(path)
    /// >>> with azekura.Database(path) as copy:
    /// ...     copy.tables()
    /// {'born': 'ordered'}
    /// >>> db.close()
    #[pyo3(signature = (path, progress = None, *, bytes_per_second = None))]
    fn copy_to(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress: Option<Bound<'_, PyAny>>,
        bytes_per_second: Option<u64>,
    ) -> PyResult<()> {
        let (db, options) = (self.db.clone(), paced(bytes_per_second));
        long::run(py, progress, move |tell| db.copy_to_with(path, options, tell).map_err(in_file(&db)))
    }
}

fn paced(bytes_per_second: Option<u64>) -> CopyOptions {
    CopyOptions { bytes_per_second }
}

/// Makes a new database of what `Database.backup_to` has written, from a binary file or pipe.
///
/// >>> import azekura, io, os, tempfile
/// >>> folder, stream = tempfile.mkdtemp(), io.BytesIO()
/// >>> db = azekura.Database(os.path.join(folder, "t.azk"))
/// >>> db.table("born", key=str, value=int)["ada"] = 1815
/// >>> point = db.backup_to(stream)
/// >>> db.close()
/// >>> start = stream.seek(0)
/// >>> azekura.restore_stream(stream, os.path.join(folder, "again.azk")).point == point
/// True
#[pyfunction]
#[pyo3(signature = (file, path, progress = None))]
pub fn restore_stream<'py>(
    file: &Bound<'py, PyAny>,
    path: PathBuf,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = file.py();
    let piped = Piped::of(Stream::new(file, progress)?);
    let (mut from, told) = (piped.clone(), piped.clone());
    let done =
        py.detach(move || azekura::restore_stream(&mut from, &path, |step| told.with(|s| s.tell(step))));
    restored(py, &piped.end(done)?)
}

/// A repository of backups: a directory with any number of points, each of which is a whole database.
///
/// >>> import azekura, os, tempfile
/// >>> folder = tempfile.mkdtemp()
/// >>> db = azekura.Database(os.path.join(folder, "people.azk"))
/// >>> born = db.table("born", key=str, value=int)
/// >>> born["ada"] = 1815
/// >>> saved = os.path.join(folder, "saved")
/// >>> db.backup(saved).point
/// 1
/// >>> born.clear()
/// >>> repository = azekura.Repository(saved)
/// >>> [point.number for point in repository.points()], repository.verify().problems
/// ([1], [])
/// >>> again = os.path.join(folder, "again.azk")
/// >>> repository.restore(again).point.number
/// 1
/// >>> azekura.Database(again).table("born", key=str, value=int)["ada"]
/// 1815
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct Repository {
    repository: Arc<azekura::Repository<'static>>,
    path: PathBuf,
}

#[pymethods]
impl Repository {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Repository> {
        let opened = py.detach(|| azekura::Repository::open(&path)).map_err(|error| of_engine(&error))?;
        Ok(Repository { repository: Arc::new(opened), path })
    }

    /// The path of the directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Its points, from the oldest to the newest. Those that cannot be read are in `damaged`.
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = py.detach(|| self.repository.points()).map_err(|error| of_engine(&error))?;
        let points = list.points.iter().map(|info| point(py, info)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, points)
    }

    /// The numbers of points that cannot be read, each with the reason.
    fn damaged<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = py.detach(|| self.repository.points()).map_err(|error| of_engine(&error))?;
        PyList::new(py, list.damaged.iter().map(|(number, error)| (*number, error.to_string())))
    }

    /// Makes a new database of a point, and verifies each byte on the way. Without a choice it is the newest
    /// point; else the one of a number, of a commit, or the newest that began at a time or before.
    #[pyo3(signature = (path, *, point = None, commit = None, time = None, progress = None))]
    fn restore<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        point: Option<u64>,
        commit: Option<u64>,
        time: Option<Bound<'py, PyAny>>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let which = match (point, commit, time) {
            (None, None, None) => Which::Newest,
            (Some(number), None, None) => Which::Point(number),
            (None, Some(number), None) => Which::Commit(number),
            (None, None, Some(time)) => Which::Time(moment_of(&time)?),
            _ => return Err(PyValueError::new_err("point, commit and time: one of them at most")),
        };
        let repository = self.repository.clone();
        let done = long::run(py, progress, move |tell| repository.restore(which, path, tell))?;
        restored(py, &done)
    }

    /// Reads and verifies every byte that its points name. Damage is no error: it is in the report.
    #[pyo3(signature = (progress = None))]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let repository = self.repository.clone();
        let done = long::run(py, progress, move |tell| repository.verify(tell))?;
        report(py, "VerifyReport", (done.points, done.chunks, done.bytes, done.unused, done.problems))
    }

    /// Removes the points that are not to be kept, and what they alone had. '7d,4w,12m' keeps the newest
    /// point of each of the newest seven days, four weeks and twelve months; '3' the three newest points.
    #[pyo3(signature = (keep, progress = None))]
    fn prune<'py>(
        &self,
        py: Python<'py>,
        keep: &str,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let keep: Keep = keep.parse().map_err(|error: Error| of_engine(&error))?;
        let repository = self.repository.clone();
        let done = long::run(py, progress, move |tell| repository.prune(&keep, tell))?;
        report(py, "PruneReport", (done.kept, done.removed, done.files, done.bytes))
    }

    fn __repr__(&self) -> String {
        format!("<azekura.Repository {:?}>", self.path)
    }
}
