//! Iterators over a table. An iterator sees the table as it was when the iterator was made.
//!
//! Records are fetched some hundred at a time, while the thread is detached. The first fetch is small, so
//! that a caller who wants one record does not wait for many.

use crate::codec::Codec;
use crate::errors::of_engine;
use crate::rows::Packed;
use azekura::{Cursor, IndexKeys, IndexRecords};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Mutex, PoisonError};

const FETCH_FIRST: usize = 16;
const FETCH_MAX: usize = 512;
const FETCH_BYTES: usize = 256 << 10;

/// What an iterator yields for each record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Its key.
    Keys,
    /// Its value.
    Values,
    /// Both, as a pair.
    Items,
}

/// Where the records come from.
pub enum Source {
    /// A cursor, and whether it goes backward.
    Cursor(Cursor, bool),
    /// Records that are in the table no more.
    Drained(azekura::Records),
    /// Those of an index, and whether it goes backward.
    Index(IndexRecords, bool),
    /// Their keys alone.
    IndexKeys(IndexKeys, bool),
    /// Records that were read already.
    Listed(std::vec::IntoIter<(Vec<u8>, Vec<u8>)>),
}

impl Source {
    /// Passes the next record to `take`. False at the end.
    fn next(&mut self, take: impl FnOnce(&[u8], &[u8]), values: bool) -> azekura::Result<bool> {
        match self {
            Source::Cursor(cursor, reverse) => {
                let record = if *reverse { cursor.prev()? } else { cursor.next()? };
                let Some((key, value)) = record else { return Ok(false) };
                take(key, if values { value.bytes()? } else { &[] });
            }
            Source::Drained(records) => {
                let Some((key, value)) = records.next().transpose()? else { return Ok(false) };
                take(&key, &value);
            }
            Source::Index(records, reverse) => {
                let record = if *reverse { records.next_back() } else { records.next() };
                let Some((key, value)) = record.transpose()? else { return Ok(false) };
                take(&key, &value);
            }
            Source::IndexKeys(keys, reverse) => {
                let key = if *reverse { keys.next_back() } else { keys.next() };
                let Some(key) = key.transpose()? else { return Ok(false) };
                take(&key, &[]);
            }
            Source::Listed(records) => {
                let Some((key, value)) = records.next() else { return Ok(false) };
                take(&key, &value);
            }
        }
        Ok(true)
    }
}

/// An iterator over keys, values or items of a table.
#[pyclass(module = "azekura")]
pub struct Records {
    /// None after the end. The lock makes the type `Sync`. It is never waited for, since callers have `&mut
    /// self`.
    source: Mutex<Option<Source>>,
    what: What,
    keys: Codec,
    values: Codec,
    fetched: Packed,
    /// How many parts of `fetched` were yielded.
    given: usize,
    fetch: usize,
}

impl Records {
    /// An iterator over the records of a source.
    pub fn new(source: Source, what: What, keys: Codec, values: Codec) -> Records {
        let source = Mutex::new(Some(source));
        Records { source, what, keys, values, fetched: Packed::default(), given: 0, fetch: FETCH_FIRST }
    }

    /// Fetches the next records. `fetched` stays empty at the end.
    fn fill(&mut self) -> azekura::Result<()> {
        self.fetched.clear();
        self.given = 0;
        let held = self.source.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(source) = held else { return Ok(()) };
        let mut records = 0;
        while records < self.fetch && self.fetched.bytes() < FETCH_BYTES {
            let take = |key: &[u8], value: &[u8]| {
                if self.what != What::Values {
                    self.fetched.push(key);
                }
                if self.what != What::Keys {
                    self.fetched.push(value);
                }
            };
            if !source.next(take, self.what != What::Keys)? {
                // Frees what it holds of the file.
                *held = None;
                break;
            }
            records += 1;
        }
        self.fetch = (self.fetch * 2).min(FETCH_MAX);
        Ok(())
    }

    /// Fetches the next records. An error ends the iterator, as it ends a generator.
    fn fetch(&mut self, py: Python<'_>) -> PyResult<()> {
        if let Err(error) = py.detach(|| self.fill()) {
            *self.source.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
            self.fetched.clear();
            return Err(of_engine(&error));
        }
        py.check_signals()
    }

    /// Calls `f` with the bytes of each key and value. REQUIRES: it yields items, and has yielded none.
    pub fn each(mut self, py: Python<'_>, mut f: impl FnMut(&[u8], &[u8]) -> PyResult<()>) -> PyResult<()> {
        loop {
            self.fetch(py)?;
            if self.fetched.len() == 0 {
                return Ok(());
            }
            for i in (0..self.fetched.len()).step_by(2) {
                f(self.fetched.get(i), self.fetched.get(i + 1))?;
            }
        }
    }
}

#[pymethods]
impl Records {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.given == self.fetched.len() {
            self.fetch(py)?;
            if self.fetched.len() == 0 {
                return Ok(None);
            }
        }
        // A record that cannot be decoded is passed over. The next call goes on behind it: drained records
        // are nowhere else.
        let given = self.given;
        self.given += if self.what == What::Items { 2 } else { 1 };
        let first = self.fetched.get(given);
        match self.what {
            What::Keys => self.keys.key_object(py, first).map(Some),
            What::Values => self.values.value_object(py, first).map(Some),
            What::Items => {
                let key = self.keys.key_object(py, first)?;
                let value = self.values.value_object(py, self.fetched.get(given + 1))?;
                Ok(Some(PyTuple::new(py, [key, value])?.into_any()))
            }
        }
    }
}
