//! The feed of changes: the class of its readers, and what the classes of databases call.
//!
//! What a reader gives and what is kept are named tuples of `azekura/_reports.py`.

use crate::codec::Codec;
use crate::errors::in_file;
use crate::shared::Shared;
use crate::table::Table;
use azekura::{Change, ChangeKind, Db, FeedContent, FeedInfo};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// So often a reader that waits looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is told of a table, by its name in Python.
pub fn content_of(name: &str) -> PyResult<FeedContent> {
    match name {
        "keys" => Ok(FeedContent::Keys),
        "values" => Ok(FeedContent::Values),
        "both" => Ok(FeedContent::Both),
        _ => Err(PyValueError::new_err(format!("a feed is of 'keys', 'values' or 'both', not {name:?}"))),
    }
}

fn content_name(content: FeedContent) -> &'static str {
    match content {
        FeedContent::Keys => "keys",
        FeedContent::Values => "values",
        FeedContent::Both => "both",
    }
}

/// What is fed and how much is kept, or None.
pub fn info<'py>(py: Python<'py>, info: Option<FeedInfo>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(info) = info else { return Ok(None) };
    let (tables, cursors) = (PyDict::new(py), PyDict::new(py));
    for table in &info.tables {
        tables.set_item(&table.name, content_name(table.content))?;
    }
    for cursor in &info.cursors {
        cursors.set_item(&cursor.name, cursor.commit)?;
    }
    let age_max = info.age_max.map(|age| age.as_secs_f64());
    let parts = (info.oldest, info.newest, tables, cursors, info.bytes, info.bytes_max, age_max);
    py.import("azekura._reports")?.getattr("FeedInfo")?.call1(parts).map(Some)
}

/// A change, taken from the reader, so that the thread can be attached again.
struct Taken {
    commit: u64,
    time_us: u128,
    /// When the record that was put expires.
    expires_us: Option<u128>,
    table: String,
    kind: &'static str,
    key: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    old: Option<Vec<u8>>,
    /// A table's new name, or what is told of it from now on.
    word: Option<String>,
}

impl Taken {
    fn of(change: &Change<'_>) -> Taken {
        let micros = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros());
        let (time_us, expires_us) = (micros(change.time), change.expires.map(micros));
        let (commit, table) = (change.commit, change.table.to_owned());
        let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        let (key, end, value, old, word) = (None, None, None, None, None);
        let base = Taken { commit, time_us, expires_us, table, kind: "other", key, end, value, old, word };
        match change.kind {
            ChangeKind::Put { key, value, old } => {
                Taken { kind: "put", key: owned(Some(key)), value: owned(value), old: owned(old), ..base }
            }
            ChangeKind::Remove { key, old } => {
                Taken { kind: "remove", key: owned(Some(key)), old: owned(old), ..base }
            }
            ChangeKind::RemoveRange { start, end } => {
                Taken { kind: "remove_range", key: owned(Some(start)), end: owned(end), ..base }
            }
            ChangeKind::Clear => Taken { kind: "clear", ..base },
            ChangeKind::Rename { to } => Taken { kind: "rename", word: Some(to.to_owned()), ..base },
            ChangeKind::Drop => Taken { kind: "drop", ..base },
            ChangeKind::Begin { content } => {
                Taken { kind: "begin", word: Some(content_name(content).to_owned()), ..base }
            }
            ChangeKind::Stop => Taken { kind: "stop", ..base },
            _ => base,
        }
    }
}

/// A reader of the feed of changes: an iterator over what commits have done to the tables that are fed, in
/// their order.
///
/// >>> import azekura, os, tempfile
/// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
/// >>> users = db.table("users", key=str, value=int)
/// >>> users.set_feed("both")
/// >>> feed = db.feed(db.feed_info().newest, tables=[users])
/// >>> users["ada"] = 1
/// >>> users["ada"] = 2
/// >>> [(change.kind, change.key, change.value, change.old) for change in feed]
/// [('put', 'ada', 1, None), ('put', 'ada', 2, 1)]
/// >>> db.set_feed_cursor("search", feed.position)
/// >>> list(db.feed(db.feed_cursor("search")))
/// []
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct Feed {
    feed: Shared<azekura::Feed>,
    /// How the keys and values of tables are read, by name.
    tables: HashMap<String, (Codec, Codec)>,
    wait: Option<f64>,
}

/// Begins to read.
pub fn begin(
    py: Python<'_>,
    db: &Db,
    after: u64,
    tables: Option<Vec<PyRef<'_, Table>>>,
    wait: Option<f64>,
) -> PyResult<Feed> {
    if wait.is_some_and(|seconds| seconds.is_nan() || seconds < 0.0) {
        return Err(PyValueError::new_err("wait is a number of seconds, not below 0"));
    }
    let named = |table: &PyRef<'_, Table>| (table.table.name(), (table.keys.clone(), table.values.clone()));
    let tables = tables.iter().flatten().map(named).collect();
    let feed = py.detach(|| db.feed(after)).map_err(in_file(db))?;
    Ok(Feed { feed: Shared::of(db, feed), tables, wait })
}

impl Feed {
    fn object<'py>(&self, py: Python<'py>, taken: &Taken) -> PyResult<Bound<'py, PyAny>> {
        let codecs = self.tables.get(&taken.table);
        let key = |bytes: &Option<Vec<u8>>| match (bytes, codecs) {
            (None, _) => Ok(py.None().into_bound(py)),
            (Some(bytes), Some((keys, _))) => keys.key_object(py, bytes),
            (Some(bytes), None) => Ok(PyBytes::new(py, bytes).into_any()),
        };
        let value = |bytes: &Option<Vec<u8>>| match (bytes, codecs) {
            (None, _) => Ok(py.None().into_bound(py)),
            (Some(bytes), Some((_, values))) => values.value_object(py, bytes),
            (Some(bytes), None) => Ok(PyBytes::new(py, bytes).into_any()),
        };
        let reports = py.import("azekura._reports")?;
        let utc = |time_us: u128| reports.call_method1("utc", (time_us,));
        let (time, expires) = (utc(taken.time_us)?, taken.expires_us.map(utc).transpose()?);
        // The ends of a range need not be keys.
        let ends = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| PyBytes::new(py, bytes));
        let first = match taken.kind {
            "remove_range" => ends(&taken.key).map(Bound::into_any),
            _ => Some(key(&taken.key)?),
        };
        reports.getattr("Change")?.call1((
            taken.commit,
            time,
            &taken.table,
            taken.kind,
            first,
            value(&taken.value)?,
            value(&taken.old)?,
            ends(&taken.end),
            &taken.word,
            expires,
        ))
    }
}

#[pymethods]
impl Feed {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let began = Instant::now();
        loop {
            let next = || self.feed.with(|feed| Ok(feed.next()?.map(|change| Taken::of(&change))));
            if let Some(taken) = py.detach(next)? {
                return self.object(py, &taken).map(Some);
            }
            let Some(wait) = self.wait else { return Ok(None) };
            let left = wait - began.elapsed().as_secs_f64();
            if left <= 0.0 {
                return Ok(None);
            }
            let pause = Duration::try_from_secs_f64(left).unwrap_or(LOOK_EVERY).min(LOOK_EVERY);
            py.detach(|| self.feed.with(|feed| feed.wait(pause)))?;
            py.check_signals()?;
        }
    }

    /// The newest commit of which all changes were given: from there another reader goes on.
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(py.detach(|| self.feed.with(|feed| Ok(feed.position())))?)
    }

    /// How many durable commits there are beyond the position.
    #[getter]
    fn lag(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(py.detach(|| self.feed.with(|feed| feed.lag()))?)
    }
}

#[pymethods]
impl Table {
    /// Has the feed every change of this table from now on: its 'keys', new 'values' too, or 'both' values,
    /// the new and the old; None ends that. The file remembers it.
    fn set_feed(&self, py: Python<'_>, content: Option<&str>) -> PyResult<()> {
        let content = content.map(content_of).transpose()?;
        Ok(py.detach(|| self.table.set_feed(content)).map_err(in_file(&self.db))?)
    }
}
