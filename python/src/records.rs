//! Iterators over a table. An iterator sees the table as it was when the iterator was made.
//!
//! Records are fetched some hundred at a time, while the thread is detached. The first fetch is small, so
//! that a caller who wants one record does not wait for many.

use crate::batch::Packed;
use crate::codec::Codec;
use crate::errors::of_engine;
use azekura::Cursor;
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

/// An iterator over keys, values or items of a table.
#[pyclass(module = "azekura")]
pub struct Records {
    /// None after the end. The lock makes the type `Sync`. It is never waited for, since callers have `&mut
    /// self`.
    cursor: Mutex<Option<Cursor>>,
    what: What,
    reverse: bool,
    keys: Codec,
    values: Codec,
    fetched: Packed,
    /// How many parts of `fetched` were yielded.
    given: usize,
    fetch: usize,
}

impl Records {
    /// An iterator over the records of a cursor.
    pub fn new(cursor: Cursor, what: What, reverse: bool, keys: Codec, values: Codec) -> Records {
        let cursor = Mutex::new(Some(cursor));
        Records {
            cursor,
            what,
            reverse,
            keys,
            values,
            fetched: Packed::default(),
            given: 0,
            fetch: FETCH_FIRST,
        }
    }

    /// Fetches the next records. `fetched` stays empty at the end.
    fn fill(&mut self) -> azekura::Result<()> {
        self.fetched.clear();
        self.given = 0;
        let held = self.cursor.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(cursor) = held else { return Ok(()) };
        let mut records = 0;
        while records < self.fetch && self.fetched.bytes() < FETCH_BYTES {
            let record = if self.reverse { cursor.prev()? } else { cursor.next()? };
            let Some((key, value)) = record else {
                // Frees what the cursor holds of the file.
                *held = None;
                break;
            };
            if self.what != What::Values {
                self.fetched.push(key);
            }
            if self.what != What::Keys {
                self.fetched.push(value.bytes()?);
            }
            records += 1;
        }
        self.fetch = (self.fetch * 2).min(FETCH_MAX);
        Ok(())
    }
}

#[pymethods]
impl Records {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.given == self.fetched.len() {
            if let Err(error) = py.detach(|| self.fill()) {
                // An error ends the iterator, as it ends a generator.
                *self.cursor.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
                self.fetched.clear();
                return Err(of_engine(&error));
            }
            if self.fetched.len() == 0 {
                return Ok(None);
            }
        }
        let first = self.fetched.get(self.given);
        self.given += 1;
        match self.what {
            What::Keys => self.keys.key_object(py, first).map(Some),
            What::Values => self.values.value_object(py, first).map(Some),
            What::Items => {
                let key = self.keys.key_object(py, first)?;
                let value = self.values.value_object(py, self.fetched.get(self.given))?;
                self.given += 1;
                Ok(Some(PyTuple::new(py, [key, value])?.into_any()))
            }
        }
    }
}
