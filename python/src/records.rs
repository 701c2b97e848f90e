//! Iterators over a table. An iterator sees the table as it was when the iterator was made.
//!
//! Records are fetched some hundred at a time, while the thread is detached. The first fetch is small, so
//! that a caller who wants one record does not wait for many.
//!
//! Threads may share an iterator: each record goes to one of them. A thread that is in an iterator may run
//! code of Python's there, when a record is decoded. If that asks the same iterator, it gets an error, for it
//! would wait for itself.

use crate::codec::Codec;
use crate::errors::{in_file, of_engine};
use crate::rows::Packed;
use azekura::{Cursor, Db, Error, IndexKeys, IndexRecords};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyTuple;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

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

/// An iterator over keys, values or items of a table, as it was when the iterator was made.
///
/// >>> import azekura, os, tempfile
/// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
/// >>> born = db.table("born", key=str, value=int)
/// >>> born.put_many({"ada": 1815, "alan": 1912})
/// >>> records = born.range("a")
/// >>> born.clear()
/// >>> next(records), list(records), next(records, None)
/// (('ada', 1815), [('alan', 1912)], None)
/// >>> db.close()
#[pyclass(module = "azekura", frozen)]
pub struct Records {
    state: Mutex<State>,
    /// The thread that is in `state`, as [`this_thread`] has it, or 0.
    inside: AtomicUsize,
    process: u32,
}

/// What an iterator has, and where it is.
struct State {
    /// Whose records they are.
    db: Db,
    /// None after the end.
    source: Option<Source>,
    what: What,
    keys: Codec,
    values: Codec,
    fetched: Packed,
    /// How many parts of `fetched` were yielded.
    given: usize,
    fetch: usize,
}

impl State {
    /// Fetches the next records. `fetched` stays empty at the end.
    fn fill(&mut self) -> azekura::Result<()> {
        self.fetched.clear();
        self.given = 0;
        let Some(source) = &mut self.source else { return Ok(()) };
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
                self.source = None;
                break;
            }
            records += 1;
        }
        self.fetch = (self.fetch * 2).min(FETCH_MAX);
        Ok(())
    }

    /// Fetches the next records. An error ends the iterator, as it ends a generator.
    fn fetch(&mut self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.fill()).map_err(|error| {
            self.source = None;
            self.fetched.clear();
            in_file(&self.db)(error).into()
        })
    }

    /// The next of the fetched records. None if there is none left.
    fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.given == self.fetched.len() {
            return Ok(None);
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

/// The state while a thread has it.
struct Inside<'a> {
    state: MutexGuard<'a, State>,
    inside: &'a AtomicUsize,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.inside.store(0, Ordering::Relaxed);
    }
}

impl Records {
    /// An iterator over the records of a source.
    pub fn new(db: &Db, source: Source, what: What, (keys, values): (&Codec, &Codec)) -> Records {
        let fetched = Packed::default();
        let (db, keys, values) = (db.clone(), keys.clone(), values.clone());
        let source = Some(source);
        let state = State { db, source, what, keys, values, fetched, given: 0, fetch: FETCH_FIRST };
        Records { state: Mutex::new(state), inside: AtomicUsize::new(0), process: std::process::id() }
    }

    /// Waits until no other thread is in the iterator.
    fn enter(&self, py: Python<'_>) -> PyResult<Inside<'_>> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Only this thread can have put its own mark there.
            Err(TryLockError::WouldBlock) if self.inside.load(Ordering::Relaxed) == this_thread() => {
                return Err(PyRuntimeError::new_err("the iterator is being used by this very thread"));
            }
            // The thread that is in there may not exist in this process.
            Err(TryLockError::WouldBlock) if std::process::id() != self.process => {
                return Err(of_engine(&Error::Forked));
            }
            Err(TryLockError::WouldBlock) => {
                self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
            }
        };
        self.inside.store(this_thread(), Ordering::Relaxed);
        Ok(Inside { state, inside: &self.inside })
    }

    /// Calls `f` with the bytes of each key and value. REQUIRES: it yields items, and has yielded none.
    pub fn each(self, py: Python<'_>, mut f: impl FnMut(&[u8], &[u8]) -> PyResult<()>) -> PyResult<()> {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        loop {
            state.fetch(py)?;
            py.check_signals()?;
            if state.fetched.len() == 0 {
                return Ok(());
            }
            for i in (0..state.fetched.len()).step_by(2) {
                f(state.fetched.get(i), state.fetched.get(i + 1))?;
            }
        }
    }
}

#[pymethods]
impl Records {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            let mut inside = self.enter(py)?;
            if let Some(object) = inside.state.next(py)? {
                return Ok(Some(object));
            }
            if inside.state.source.is_none() {
                return Ok(None);
            }
            inside.state.fetch(py)?;
            // A handler of signals may use the iterator, too. If it raises, what was fetched stays.
            drop(inside);
            py.check_signals()?;
        }
    }
}

/// A number for this thread, which no other that lives has.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}
