//! The class `Database`.

use crate::codec::Codec;
use crate::errors::{Failure, in_file, of_engine};
use crate::feed;
use crate::long;
use crate::shared::Shared;
use crate::table::{Table, View, kind_name, kind_of, time_of};
use crate::transaction::{Snapshot, Transaction};
use azekura::{
    Db, Durability, Error, Freshness, Isolation, Options, PinStats, Progress, TableKind, WriteOptions,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const MEMORY_BYTES: u64 = 256 << 20;

/// A database: one file with any number of tables.
#[pyclass(module = "azekura", frozen, subclass, weakref)]
pub struct Database {
    /// The engine's handle.
    pub db: Db,
    /// Held by whoever closes it.
    closing: Arc<Shared<()>>,
}

fn durability_of(name: &str) -> PyResult<Durability> {
    match name {
        "sync" => Ok(Durability::Sync),
        "eventual" => Ok(Durability::Eventual),
        _ => Err(PyValueError::new_err(format!("durability is 'sync' or 'eventual', not {name:?}"))),
    }
}

fn freshness_of(name: &str) -> PyResult<Freshness> {
    match name {
        "checkpoints" => Ok(Freshness::Checkpoint),
        "log" => Ok(Freshness::Log),
        _ => Err(PyValueError::new_err(format!("follow is 'checkpoints' or 'log', not {name:?}"))),
    }
}

fn seconds(name: &str, number: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(number)
        .map_err(|error| PyValueError::new_err(format!("{name} is {number}: {error}")))
}

fn isolation_of(name: &str) -> PyResult<Isolation> {
    match name {
        "serializable" => Ok(Isolation::Serializable),
        "snapshot" => Ok(Isolation::Snapshot),
        _ => Err(PyValueError::new_err(format!("isolation is 'serializable' or 'snapshot', not {name:?}"))),
    }
}

/// How many bytes there are in the tables that are no single level: about so many a merge of them writes.
fn unmerged_bytes(db: &Db) -> u64 {
    let stats = |name: &str| db.open_table(name).and_then(|table| table.stats());
    let tables = db.tables().into_iter().filter_map(|info| stats(&info.name).ok());
    tables
        .filter(|table| table.levels > 1 || table.memory_bytes > 0)
        .map(|table| table.run_bytes + table.memory_bytes + table.index_bytes)
        .sum()
}

impl Database {
    fn call<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&Db) -> azekura::Result<R> + Send) -> PyResult<R> {
        Ok(py.detach(|| f(&self.db)).map_err(in_file(&self.db))?)
    }
}

#[pymethods]
impl Database {
    #[new]
    #[pyo3(signature = (path, *, memory_bytes = MEMORY_BYTES, durability = "sync", eventual_delay = 1.0,
                        read_only = false, create = true, exclusive = false, mapped = true, follow = None,
                        pinned_bytes_max = None, pinned_age_max = None, mirror_timeout = 10.0,
                        require_mirror = false))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        memory_bytes: u64,
        durability: &str,
        eventual_delay: f64,
        read_only: bool,
        create: bool,
        exclusive: bool,
        mapped: bool,
        follow: Option<&str>,
        pinned_bytes_max: Option<u64>,
        pinned_age_max: Option<f64>,
        mirror_timeout: f64,
        require_mirror: bool,
    ) -> PyResult<Database> {
        let delay = seconds("eventual_delay", eventual_delay)?;
        let mut options = Options::new()
            .memory_bytes(memory_bytes)
            .durability(durability_of(durability)?)
            .eventual_delay(delay)
            .read_only(read_only)
            .create(create && !read_only && follow.is_none())
            .exclusive(exclusive)
            .mapped(mapped)
            .mirror_timeout(seconds("mirror_timeout", mirror_timeout)?)
            .require_mirror(require_mirror);
        if let Some(follow) = follow {
            options = options.freshness(freshness_of(follow)?);
        }
        if let Some(bytes) = pinned_bytes_max {
            options = options.pinned_bytes_max(bytes);
        }
        if let Some(age) = pinned_age_max {
            options = options.pinned_age_max(seconds("pinned_age_max", age)?);
        }
        let db = py.detach(|| options.open(&path)).map_err(|error| of_engine(&error))?;
        let closing = Arc::new(Shared::of(&db, ()));
        Ok(Database { db, closing })
    }

    /// The path of the file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.db.path().to_owned()
    }

    /// The table of a name, made if there is none. Without a kind an existing table has its own, and a new
    /// one is ordered. The types are not stored in the file: give them each time. With a ttl, its records are
    /// gone by themselves so many seconds after they were put. That is stored.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> born = db.table("born", key=str, value=int)
    /// >>> pages = db.table("pages", "hash", value=str, ttl=60)
    /// >>> db.tables()
    /// {'born': 'ordered', 'pages': 'hash'}
    /// >>> db.close()
    #[pyo3(signature = (name, kind = None, *, key = None, value = None, ttl = None))]
    fn table(
        &self,
        py: Python<'_>,
        name: &str,
        kind: Option<&str>,
        key: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        ttl: Option<f64>,
    ) -> PyResult<Table> {
        let kind = kind.map(kind_of).transpose()?;
        let (keys, values) = (Codec::of_key(key)?, Codec::of_value(value)?);
        let ttl = ttl.map(|seconds| time_of(Some(seconds))).transpose()?;
        let table = self.call(py, |db| match (kind, db.open_table(name), ttl) {
            (None, Ok(table), None) => Ok(table),
            (kind, found, ttl) => {
                let found = found.map_or(TableKind::Ordered, |table| table.kind());
                let kind = kind.unwrap_or(found);
                ttl.map_or_else(|| db.table(name, kind), |ttl| db.expiring_table(name, kind, ttl))
            }
        })?;
        Ok(Table { table, db: self.db.clone(), view: View::Direct, keys, values })
    }

    /// The tables' names and kinds, ordered by name.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        for info in py.detach(|| self.db.tables()) {
            tables.set_item(info.name, kind_name(info.kind))?;
        }
        Ok(tables)
    }

    /// Removes a table with all its records.
    fn drop_table(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.call(py, |db| db.drop_table(name))
    }

    /// Renames a table. Its handles stay good.
    fn rename_table(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
        self.call(py, |db| db.rename_table(old, new))
    }

    /// Begins a write transaction. durability: 'sync' or 'eventual', if it is not to be the database's.
    /// isolation: 'serializable' raises Conflict at the commit if anything that this one has read was changed
    /// by another; 'snapshot' only if both have written the same key.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> born = db.table("born", key=str, value=int)
    /// >>> with db.begin(durability="eventual", isolation="snapshot") as tx:
    /// ...     tx.table(born)["ada"] = 1815
    /// >>> tx = db.begin()
    /// >>> tx.table(born).clear()
    /// >>> tx.rollback()
    /// >>> list(born)
    /// ['ada']
    /// >>> db.close()
    #[pyo3(signature = (*, durability = None, isolation = "serializable"))]
    fn begin(&self, py: Python<'_>, durability: Option<&str>, isolation: &str) -> PyResult<Transaction> {
        let durability = durability.map(durability_of).transpose()?;
        let options = WriteOptions { durability, isolation: isolation_of(isolation)? };
        let txn = py.detach(|| self.db.write_with(options));
        Ok(Transaction { db: self.db.clone(), txn: Arc::new(Shared::of(&self.db, txn)) })
    }

    /// A snapshot of the database at this moment. Reads through it do not see later commits.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> born = db.table("born", key=str, value=int)
    /// >>> with db.snapshot() as before:
    /// ...     born["ada"] = 1815
    /// ...     before.table(born).count(), born.count()
    /// (0, 1)
    /// >>> db.close()
    fn snapshot(&self, py: Python<'_>) -> Snapshot {
        let txn = py.detach(|| self.db.read());
        Snapshot { db: self.db.clone(), txn: Arc::new(Shared::of(&self.db, txn)) }
    }

    /// An iterator over what commits after number `after` have done to the tables that are fed
    /// (`Table.set_feed`). It ends when there is no more at present, and goes on when it is asked again. With
    /// `wait` it waits so many seconds for each change before it ends; float("inf"): until there is one. Keys
    /// and values of the given tables are of their types, others are bytes. FeedGap if changes after that
    /// commit are gone.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> born = db.table("born", key=str, value=int)
    /// >>> born.set_feed("values")
    /// >>> feed = db.feed(db.feed_info().newest, tables=[born])
    /// >>> born["ada"] = 1815
    /// >>> [(change.kind, change.key, change.value) for change in feed]
    /// [('put', 'ada', 1815)]
    /// >>> db.close()
    #[pyo3(signature = (after, *, tables = None, wait = None))]
    fn feed(
        &self,
        py: Python<'_>,
        after: u64,
        tables: Option<Vec<PyRef<'_, Table>>>,
        wait: Option<f64>,
    ) -> PyResult<feed::Feed> {
        feed::begin(py, &self.db, after, tables, wait)
    }

    /// What is fed, and how much of it is kept; None if nothing ever was.
    fn feed_info<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let info = self.call(py, Db::feed_info)?;
        feed::info(py, info)
    }

    /// Says how much of the feed is kept: about so many bytes, and nothing older than so many seconds.
    #[pyo3(signature = (bytes_max, age_max = None))]
    fn set_feed_limits(&self, py: Python<'_>, bytes_max: u64, age_max: Option<f64>) -> PyResult<()> {
        let age_max = age_max.map(|age| seconds("age_max", age)).transpose()?;
        self.call(py, |db| db.set_feed_limits(bytes_max, age_max))
    }

    /// Where the cursor of a name stands: the last commit with which its reader has done; None if there is
    /// none.
    fn feed_cursor(&self, py: Python<'_>, name: &str) -> PyResult<Option<u64>> {
        self.call(py, |db| db.feed_cursor(name))
    }

    /// Sets the cursor of a name at a commit, or removes it.
    fn set_feed_cursor(&self, py: Python<'_>, name: &str, commit: Option<u64>) -> PyResult<()> {
        self.call(py, |db| db.set_feed_cursor(name, commit))
    }

    /// Returns when everything committed so far is durable. Ctrl-C ends the call, and the engine goes on by
    /// itself with what it has begun; so it is with all calls that may take long.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db.clone();
        long::run(py, None, move |_| db.sync().map_err(in_file(&db)))
    }

    /// Writes what is in memory to the file's runs. This is never needed.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db.clone();
        long::run(py, None, move |_| db.flush().map_err(in_file(&db)))
    }

    /// Merges until every table is one level, which makes reads fastest. `progress` is called with how many
    /// bytes were written to the file meanwhile, by whomever, and of how many at most; True shows a bar. An
    /// exception that it raises ends the call.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> numbers, seen = db.table("numbers", key=int, value=int), []
    /// >>> numbers.put_many((n, n) for n in range(10_000))
    /// >>> db.compact(lambda done, total: seen.append((done, total)))
    /// >>> seen[-1][0] == seen[-1][1] > 0, numbers.stats()["levels"]
    /// (True, 1)
    /// >>> db.close()
    #[pyo3(signature = (progress = None))]
    fn compact(&self, py: Python<'_>, progress: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let db = self.db.clone();
        if progress.is_none() {
            return long::run(py, None, move |_| db.compact().map_err(in_file(&db)));
        }
        let (total, before) = py.detach(|| (unmerged_bytes(&db), db.stats().written_bytes));
        let watched = db.clone();
        let watch = move || {
            let written = watched.stats().written_bytes.saturating_sub(before);
            Progress { done: written.min(total), total }
        };
        long::run_watched(py, progress, Some(watch), move |tell| {
            tell(Progress { done: 0, total });
            db.compact().map_err(in_file(&db))?;
            tell(Progress { done: total, total });
            Ok::<(), Failure>(())
        })
    }

    /// Gives free space back to the file system. Returns the file's length before and after. `progress` is
    /// called with how many bytes are done, and of how many; True shows a bar. An exception that it raises
    /// ends the call.
    #[pyo3(signature = (progress = None))]
    fn shrink(&self, py: Python<'_>, progress: Option<Bound<'_, PyAny>>) -> PyResult<(u64, u64)> {
        let db = self.db.clone();
        let report = long::run(py, progress, move |tell| db.shrink(tell).map_err(in_file(&db)))?;
        Ok((report.before_bytes, report.after_bytes))
    }

    /// Reads and checks everything. Returns a list with a line for each problem. `progress` as for `shrink`.
    #[pyo3(signature = (progress = None))]
    fn check<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let db = self.db.clone();
        let report = long::run(py, progress, move |tell| db.check(tell).map_err(in_file(&db)))?;
        PyList::new(py, report.problems)
    }

    /// The database's figures. 'pins' has the checkpoints that followers of other handles read, the oldest
    /// first: for how long there has been a newer one ('age', in seconds), and how many bytes of the file it
    /// keeps from being used again. In a database that is open to read these are None, but for the newest
    /// checkpoint: only the writer knows.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.db.stats());
        let figures = [
            ("file_bytes", stats.file_bytes),
            ("live_bytes", stats.live_bytes),
            ("free_bytes", stats.free_bytes),
            ("memtable_bytes", stats.memtable_bytes),
            ("table_bytes", stats.table_bytes),
            ("log_bytes", stats.log_bytes),
            ("log_commits", stats.log_commits),
            ("log_records", stats.log_records),
            ("value_bytes", stats.value_bytes),
            ("runs", stats.runs),
            ("cache_bytes", stats.cache_bytes),
            ("cache_misses", stats.cache_misses),
            ("cache_evictions", stats.cache_evictions),
            ("written_bytes", stats.written_bytes),
            ("write_calls", stats.write_calls),
            ("read_bytes", stats.read_bytes),
            ("syncs", stats.syncs),
            ("user_bytes", stats.user_bytes),
            ("commits", stats.commits),
            ("flushes", stats.flushes),
            ("merges", stats.merges),
            ("merged_records", stats.merged_records),
            ("merge_ns", stats.merge_ns),
            ("stalls", stats.stalls),
            ("stall_ns", stats.stall_ns),
            ("checkpoint", stats.checkpoint),
            ("pinned_bytes", stats.pinned_bytes),
            ("unmirrored_commits", stats.unmirrored_commits),
        ];
        let dict = PyDict::new(py);
        figures.into_iter().try_for_each(|(name, figure)| dict.set_item(name, figure))?;
        let pin = |pin: &PinStats| -> PyResult<_> {
            let dict = PyDict::new(py);
            dict.set_item("checkpoint", pin.checkpoint)?;
            dict.set_item("age", pin.age.map(|age| age.as_secs_f64()))?;
            dict.set_item("bytes", pin.bytes)?;
            dict.set_item("revoked", pin.revoked)?;
            Ok(dict)
        };
        let pins = stats.pins.iter().map(pin).collect::<PyResult<Vec<_>>>()?;
        dict.set_item("pins", pins)?;
        Ok(dict)
    }

    /// Closes the database for everybody who has a handle of it, and makes everything durable. Closing again
    /// is no error. If Ctrl-C has ended the call, the database is closed all the same, and another call waits
    /// for that; so does the end of the program.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let (db, closing) = (self.db.clone(), self.closing.clone());
        long::run(py, None, move |_| match closing.with(|_| db.try_close()) {
            Err(Failure::Engine(Error::Closed, _)) => Ok(()),
            done => done,
        })
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

    fn __repr__(&self) -> String {
        format!("<azekura.Database {:?}>", self.db.path())
    }
}
