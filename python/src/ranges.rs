//! Tables: ranges, both ends, and what is done to many records at once.

use crate::codec::Codec;
use crate::errors::{Failure, in_file};
use crate::long;
use crate::records::{Records, Source, What};
use crate::rows::Packed;
use crate::shared::Shared;
use crate::table::{Table, View};
use azekura::{Cursor, Error, Isolation, WriteOptions, WriteTxn};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ops::Bound::{Excluded, Included, Unbounded};

/// So many records are counted within milliseconds. For more a thread is worth its price.
const COUNTED_AT_ONCE: u64 = 100_000;
/// How often `retain` begins again if others change what it removes.
const RETRIES: usize = 100;

/// One end of a range, in bytes.
pub type End<'a> = std::ops::Bound<&'a [u8]>;

/// The two ends of a range, encoded.
pub struct Ends {
    lo: Option<Vec<u8>>,
    hi: Option<Vec<u8>>,
}

impl Ends {
    /// Encodes the arguments `lo` and `hi`.
    pub fn of(keys: &Codec, lo: Option<&Bound<'_, PyAny>>, hi: Option<&Bound<'_, PyAny>>) -> PyResult<Ends> {
        let bytes = |key| keys.bound(key).map(|bytes| bytes.as_ref().to_vec());
        Ok(Ends { lo: lo.map(bytes).transpose()?, hi: hi.map(bytes).transpose()? })
    }

    /// As a range.
    pub fn range(&self) -> (End<'_>, End<'_>) {
        let lo = self.lo.as_deref().map_or(Unbounded, Included);
        (lo, self.hi.as_deref().map_or(Unbounded, Excluded))
    }

    /// Whether all keys are between them.
    pub fn are_all(&self) -> bool {
        self.lo.is_none() && self.hi.is_none()
    }
}

/// A view of a table, by the name of its class in `azekura/_views.py`.
fn view<'py>(table: &Bound<'py, Table>, class: &str, reverse: bool) -> PyResult<Bound<'py, PyAny>> {
    table.py().import("azekura._views")?.getattr(class)?.call1((table, reverse))
}

impl Table {
    fn records(&self, mut cursor: Cursor, what: What, reverse: bool) -> Records {
        if reverse {
            cursor.seek_last();
        }
        Records::new(&self.db, Source::Cursor(cursor, reverse), what, (&self.keys, &self.values))
    }

    /// The engine's cursor over a range.
    pub fn cursor_between(&self, py: Python<'_>, ends: &Ends) -> PyResult<Cursor> {
        let range = ends.range();
        self.reads(py, |t| t.range(range), |txn, t| txn.range(t, range), |txn, t| txn.range(t, range))
    }

    /// The engine's cursor over the keys that begin with `p`.
    pub fn cursor_at(&self, py: Python<'_>, p: &[u8]) -> PyResult<Cursor> {
        self.reads(py, |t| t.prefix(p), |txn, t| txn.prefix(t, p), |txn, t| txn.prefix(t, p))
    }

    /// An iterator over all records.
    pub fn walk(&self, py: Python<'_>, what: What, reverse: bool) -> PyResult<Records> {
        let cursor = self.reads(py, |t| t.cursor(), |txn, t| txn.cursor(t), |txn, t| txn.cursor(t))?;
        Ok(self.records(cursor, what, reverse))
    }

    /// A record as a pair.
    fn pair<'py>(
        &self,
        py: Python<'py>,
        record: Option<(Vec<u8>, Vec<u8>)>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some((key, value)) = record else { return Ok(None) };
        let (key, value) = (self.keys.key_object(py, &key)?, self.values.value_object(py, &value)?);
        PyTuple::new(py, [key, value]).map(Some)
    }

    /// Removes the records of a range for which `keep` returns something false. No lock is held while it
    /// runs.
    fn retain_in(&self, txn: &Shared<WriteTxn>, keep: &Bound<'_, PyAny>, ends: &Ends) -> PyResult<u64> {
        let py = keep.py();
        let cursor = py.detach(|| {
            txn.with(|txn| match ends.are_all() {
                true => txn.cursor(&self.table),
                false => txn.range(&self.table, ends.range()),
            })
        })?;
        let mut gone = Packed::default();
        self.records(cursor, What::Items, false).each(py, |key, value| {
            let record = (self.keys.key_object(py, key)?, self.values.value_object(py, value)?);
            if !keep.call1(record)?.is_truthy()? {
                gone.push(key);
            }
            Ok(())
        })?;
        let remove =
            |txn: &mut WriteTxn| (0..gone.len()).try_for_each(|i| txn.remove(&self.table, gone.get(i)));
        py.detach(|| txn.with(remove))?;
        Ok(gone.len() as u64)
    }
}

#[pymethods]
impl Table {
    /// The records from `lo` on and below `hi`, as pairs. Ordered tables only.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> heat = db.table("heat", key=tuple[str, int], value=float)
    /// >>> heat.put_many([(("oslo", 1), -4.3), (("oslo", 7), 17.7), (("rome", 1), 7.5)])
    /// >>> list(heat.range(("oslo", 5), ("rome",)))        # the first parts of a tuple are enough
    /// [(('oslo', 7), 17.7)]
    /// >>> [key for key, _ in heat.range(hi=("rome",), reverse=True)]
    /// [('oslo', 7), ('oslo', 1)]
    /// >>> db.close()
    #[pyo3(signature = (lo = None, hi = None, reverse = false))]
    fn range(
        &self,
        py: Python<'_>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<Records> {
        let cursor = self.cursor_between(py, &Ends::of(&self.keys, lo, hi)?)?;
        Ok(self.records(cursor, What::Items, reverse))
    }

    /// The records whose keys begin with `prefix`, as pairs. Ordered tables only.
    #[pyo3(signature = (prefix, reverse = false))]
    fn prefix(&self, prefix: &Bound<'_, PyAny>, reverse: bool) -> PyResult<Records> {
        let cursor = self.cursor_at(prefix.py(), self.keys.prefix(prefix)?.as_ref())?;
        Ok(self.records(cursor, What::Items, reverse))
    }

    /// A view of all records, as pairs. It is live, as the views of a dict: each walk over it, `in` and `len`
    /// look at the table as it is then. A walk shows the records as they were when it began.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> born = db.table("born", key=str, value=int)
    /// >>> items = born.items()
    /// >>> born.put_many({"ada": 1815, "alan": 1912})
    /// >>> len(items), ("ada", 1815) in items, list(items), next(reversed(items))
    /// (2, True, [('ada', 1815), ('alan', 1912)], ('alan', 1912))
    /// >>> list(born.items(reverse=True))
    /// [('alan', 1912), ('ada', 1815)]
    /// >>> db.close()
    #[pyo3(signature = (reverse = false))]
    fn items<'py>(slf: &Bound<'py, Self>, reverse: bool) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "Items", reverse)
    }

    /// A live view of all keys, as `items` is one of all records, with the operations of sets.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> born = db.table("born", key=str, value=int)
    /// >>> born.put_many({"ada": 1815, "alan": 1912})
    /// >>> sorted(born.keys() & {"alan", "grace"}), sorted({"grace", "ada"} - born.keys())
    /// (['alan'], ['grace'])
    /// >>> db.close()
    #[pyo3(signature = (reverse = false))]
    fn keys<'py>(slf: &Bound<'py, Self>, reverse: bool) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "Keys", reverse)
    }

    /// A live view of all values, in the order of their keys.
    #[pyo3(signature = (reverse = false))]
    fn values<'py>(slf: &Bound<'py, Self>, reverse: bool) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "Values", reverse)
    }

    /// What a view walks over.
    #[pyo3(name = "_walk")]
    fn walk_for_view(&self, py: Python<'_>, what: &str, reverse: bool) -> PyResult<Records> {
        let what = match what {
            "Keys" => What::Keys,
            "Values" => What::Values,
            _ => What::Items,
        };
        self.walk(py, what, reverse)
    }

    /// How many records there are. Fast if the table has settled, else a scan, which Ctrl-C ends. In a
    /// transaction or a snapshot the scan goes on then, and whoever uses or ends that waits for it.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        let is_short = |t: &azekura::Table| t.stats().is_ok_and(|s| s.records_estimate <= COUNTED_AT_ONCE);
        if py.detach(|| is_short(&self.table)) {
            return self.reads(py, |t| t.count(), |txn, t| txn.count(t), |txn, t| txn.count(t));
        }
        let table = self.table.clone();
        match self.view.clone() {
            View::Direct => long::run(py, None, move |_| table.count()),
            View::Read(txn) => long::run(py, None, move |_| txn.with(|txn| txn.count(&table))),
            View::Write(txn) => long::run(py, None, move |_| txn.with(|txn| txn.count(&table))),
        }
    }

    /// Removes all records.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.writes(py, |t| t.clear(), |txn, t| txn.clear(t))
    }

    /// Removes the records from `lo` on and below `hi`. Ordered tables only.
    #[pyo3(signature = (lo = None, hi = None))]
    fn remove_range(
        &self,
        py: Python<'_>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let ends = Ends::of(&self.keys, lo, hi)?;
        self.writes(py, |t| t.remove_range(ends.range()), |txn, t| txn.remove_range(t, ends.range()))
    }

    /// The first record as a pair, or None. Of a hash table it may be any.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let record = self.reads(py, |t| t.first(), |txn, t| txn.first(t), |txn, t| txn.first(t))?;
        self.pair(py, record)
    }

    /// The last record as a pair, or None.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let record = self.reads(py, |t| t.last(), |txn, t| txn.last(t), |txn, t| txn.last(t))?;
        self.pair(py, record)
    }

    /// Removes the first record and returns it as a pair, or None.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> queue = db.table("queue", key=int, value=str)
    /// >>> queue.put_many({1: "first", 2: "second"})
    /// >>> queue.pop_first(), queue.pop_last(), queue.pop_first()
    /// ((1, 'first'), (2, 'second'), None)
    /// >>> db.close()
    fn pop_first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let record = self.writes(py, |t| t.pop_first(), |txn, t| txn.pop_first(t))?;
        self.pair(py, record)
    }

    /// Removes the last record and returns it as a pair, or None.
    fn pop_last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let record = self.writes(py, |t| t.pop_last(), |txn, t| txn.pop_last(t))?;
        self.pair(py, record)
    }

    /// Removes the records from `lo` on and below `hi` for which `keep(key, value)` is false. Returns how
    /// many they were. If another thread changes one of them meanwhile, all is done again. A hash table has
    /// no ends.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> born = db.table("born", key=str, value=int)
    /// >>> born.put_many({"ada": 1815, "alan": 1912, "grace": 1906})
    /// >>> born.retain(lambda name, year: year > 1900), list(born)
    /// (1, ['alan', 'grace'])
    /// >>> db.close()
    #[pyo3(signature = (keep, lo = None, hi = None))]
    fn retain(
        &self,
        keep: &Bound<'_, PyAny>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        self.expect_writable()?;
        let (py, ends) = (keep.py(), Ends::of(&self.keys, lo, hi)?);
        if let View::Write(txn) = &self.view {
            return self.retain_in(txn, keep, &ends);
        }
        // Only the removed records must not have changed.
        let options = WriteOptions { isolation: Isolation::Snapshot, ..WriteOptions::default() };
        let mut tries = 0;
        loop {
            let txn = Shared::of(&self.db, py.detach(|| self.db.write_with(options)));
            let removed = self.retain_in(&txn, keep, &ends)?;
            match py.detach(|| -> Result<(), Failure> { txn.take()?.commit().map_err(in_file(&self.db)) }) {
                Err(Failure::Engine(Error::Conflict { .. }, _)) if tries < RETRIES => tries += 1,
                done => return Ok(done.map(|()| removed)?),
            }
        }
    }

    /// Removes the records from `lo` on and below `hi`, in one step, and returns an iterator over them, as
    /// pairs. They are gone at once, whether the iterator comes to them or not. A hash table has no ends.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> due = db.table("due", key=str, value=str)
    /// >>> due.put_many({"08:00": "wake", "08:15": "tea", "09:00": "work"})
    /// >>> list(due.drain(hi="09:00")), list(due)
    /// ([('08:00', 'wake'), ('08:15', 'tea')], ['09:00'])
    /// >>> db.close()
    #[pyo3(signature = (lo = None, hi = None))]
    fn drain(
        &self,
        py: Python<'_>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Records> {
        let ends = Ends::of(&self.keys, lo, hi)?;
        let records = self.writes(py, |t| t.drain(ends.range()), |txn, t| txn.drain(t, ends.range()))?;
        Ok(Records::new(&self.db, Source::Drained(records), What::Items, (&self.keys, &self.values)))
    }

    /// The table's figures. `records_estimate` counts some records more than once until levels are merged.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.table.stats()).map_err(in_file(&self.db))?;
        let figures = [
            ("records_estimate", stats.records_estimate),
            ("levels", stats.levels),
            ("runs", stats.runs),
            ("run_bytes", stats.run_bytes),
            ("value_bytes", stats.value_bytes),
            ("memory_bytes", stats.memory_bytes),
            ("indexes", stats.indexes),
            ("index_bytes", stats.index_bytes),
        ];
        let dict = PyDict::new(py);
        figures.into_iter().try_for_each(|(name, figure)| dict.set_item(name, figure))?;
        Ok(dict)
    }
}
