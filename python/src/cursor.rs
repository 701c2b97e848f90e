//! Cursors: places in a table that go to and fro, and show the record at which they stand.
//!
//! The engine's cursor stands between two records, so the first step after a turn gives the same record
//! again. Here it stands at a record, and such a step is made twice. A value is read only when it is asked
//! for.

use crate::codec::Codec;
use crate::ranges::Ends;
use crate::shared::Shared;
use crate::table::Table;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

/// A cursor: a place in a table, as it was when the cursor was made.
///
/// `first`, `last`, `seek`, `next` and `prev` go to a record, and say whether there is one. `key`, `value`
/// and `item` give what it stands at, or None. A value is read only when it is asked for. A new cursor stands
/// before the first record. `next` that finds none stands after the last one, so `prev` comes to that; and
/// the other way round.
///
/// >>> import azekura, os, tempfile
/// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
/// >>> born = db.table("born", key=str, value=int)
/// >>> born.put_many({"ada": 1815, "alan": 1912, "edsger": 1930, "grace": 1906})
/// >>> cursor = born.cursor()
/// >>> cursor.seek("b"), cursor.key(), cursor.value()    # the first key from "b" on
/// (True, 'edsger', 1930)
/// >>> cursor.prev(), cursor.item()                      # so this is the last one below it
/// (True, ('alan', 1912))
/// >>> cursor.last(), cursor.key(), cursor.next(), cursor.key()
/// (True, 'grace', False, None)
/// >>> cursor.prev(), cursor.key()
/// (True, 'grace')
/// >>> cursor = born.cursor(prefix="a")
/// >>> while cursor.next():
/// ...     print(cursor.key())
/// ada
/// alan
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct Cursor {
    walk: Shared<Walk>,
    keys: Codec,
    values: Codec,
}

/// The engine's cursor, and how it came to where it stands.
struct Walk {
    cursor: azekura::Cursor,
    /// The direction of the last step.
    forward: bool,
    /// Whether that has come to a record.
    is_at_record: bool,
}

impl Walk {
    fn go(&mut self, forward: bool) -> azekura::Result<bool> {
        let record = if forward { self.cursor.next()? } else { self.cursor.prev()? };
        Ok(record.is_some())
    }

    /// Goes to the next record in a direction.
    fn step(&mut self, forward: bool) -> azekura::Result<bool> {
        let turns = self.is_at_record && self.forward != forward;
        self.is_at_record = false;
        self.forward = forward;
        if turns {
            // The record at which it stands.
            self.go(forward)?;
        }
        self.is_at_record = self.go(forward)?;
        Ok(self.is_at_record)
    }

    /// Goes to the record next to a place to which the cursor was sent.
    fn arrive(&mut self, forward: bool) -> azekura::Result<bool> {
        self.is_at_record = false;
        self.step(forward)
    }
}

type Record = (Option<Vec<u8>>, Option<Vec<u8>>);

impl Cursor {
    fn move_by(
        &self,
        py: Python<'_>,
        step: impl FnOnce(&mut Walk) -> azekura::Result<bool> + Send,
    ) -> PyResult<bool> {
        Ok(py.detach(|| self.walk.with(step))?)
    }

    /// Copies what is asked for of the record at which it stands.
    fn copy(&self, py: Python<'_>, key: bool, value: bool) -> PyResult<Record> {
        let copied = py.detach(|| {
            self.walk.with(|walk| {
                let Some((its_key, its_value)) = walk.cursor.current()? else { return Ok((None, None)) };
                let key = key.then(|| its_key.to_vec());
                let value = if value { Some(its_value.bytes()?.to_vec()) } else { None };
                Ok((key, value))
            })
        });
        Ok(copied?)
    }
}

#[pymethods]
impl Cursor {
    /// Goes to the first record. Returns whether there is one.
    fn first(&self, py: Python<'_>) -> PyResult<bool> {
        self.move_by(py, |walk| {
            walk.cursor.seek_first();
            walk.arrive(true)
        })
    }

    /// Goes to the last record. Returns whether there is one.
    fn last(&self, py: Python<'_>) -> PyResult<bool> {
        self.move_by(py, |walk| {
            walk.cursor.seek_last();
            walk.arrive(false)
        })
    }

    /// Goes to the first record whose key is `key` or above it; of a tuple the first parts are enough.
    /// Returns whether there is one. Ordered tables only.
    fn seek(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = self.keys.bound(key)?;
        let k = bytes.as_ref();
        self.move_by(key.py(), |walk| {
            walk.cursor.seek(k)?;
            walk.arrive(true)
        })
    }

    /// Goes to the next record. Returns whether there is one.
    fn next(&self, py: Python<'_>) -> PyResult<bool> {
        self.move_by(py, |walk| walk.step(true))
    }

    /// Goes to the record before. Returns whether there is one.
    fn prev(&self, py: Python<'_>) -> PyResult<bool> {
        self.move_by(py, |walk| walk.step(false))
    }

    /// The key of the record at which it stands, or None.
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (key, _) = self.copy(py, true, false)?;
        key.map(|key| self.keys.key_object(py, &key)).transpose()
    }

    /// The value of the record at which it stands, or None.
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (_, value) = self.copy(py, false, true)?;
        value.map(|value| self.values.value_object(py, &value)).transpose()
    }

    /// For annotations such as `Cursor[str, int, str]`.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        types: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        class.py().import("types")?.call_method1("GenericAlias", (class, types))
    }

    /// The record at which it stands as a pair, or None.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let (Some(key), Some(value)) = self.copy(py, true, true)? else { return Ok(None) };
        let pair = [self.keys.key_object(py, &key)?, self.values.value_object(py, &value)?];
        PyTuple::new(py, pair).map(Some)
    }
}

#[pymethods]
impl Table {
    /// A cursor over the records from `lo` on and below `hi`, or over those whose keys begin with `prefix`.
    /// It shows them as they are now, in a transaction with what that has written. A hash table has no such
    /// bounds.
    #[pyo3(signature = (lo = None, hi = None, *, prefix = None))]
    fn cursor(
        &self,
        py: Python<'_>,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Cursor> {
        let ends = Ends::of(&self.keys, lo, hi)?;
        let cursor = match prefix {
            Some(_) if !ends.are_all() => {
                return Err(PyValueError::new_err("a cursor has a prefix or ends, not both"));
            }
            Some(prefix) => self.cursor_at(py, self.keys.prefix(prefix)?.as_ref())?,
            None if ends.are_all() => {
                self.reads(py, |t| t.cursor(), |txn, t| txn.cursor(t), |txn, t| txn.cursor(t))?
            }
            None => self.cursor_between(py, &ends)?,
        };
        let walk = Walk { cursor, forward: true, is_at_record: false };
        Ok(Cursor { walk: Shared::of(&self.db, walk), keys: self.keys.clone(), values: self.values.clone() })
    }
}
