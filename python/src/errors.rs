//! The engine's errors as exceptions. The classes are in `azekura/_errors.py`, with the bases that Python
//! programmers expect. They are found here by the error's stable number.

use azekura::{Db, Error};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Numbers that are no error of the engine.
const OVER: u32 = 1000;
const WRONG_FORM: u32 = 13;

/// Why a call failed.
pub enum Failure {
    /// An error of the engine, and the database's file if it is known.
    Engine(Error, Option<PathBuf>),
    /// The transaction was committed or rolled back.
    Over,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error, None)
    }
}

/// What an error of a database becomes.
pub fn in_file(db: &Db) -> impl Fn(Error) -> Failure + '_ {
    |error| Failure::Engine(error, Some(db.path().to_owned()))
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Engine(error, file) => of_file(&error, file.as_deref()),
            Failure::Over => {
                raised(OVER, "the transaction is over: it was committed or rolled back", None, None)
            }
        }
    }
}

/// The exception for an error of the engine that is about no open database, or names its file.
pub fn of_engine(error: &Error) -> PyErr {
    of_file(error, None)
}

/// The exception for an error of the engine, about this file.
fn of_file(error: &Error, file: Option<&Path>) -> PyErr {
    let errno = match error {
        Error::Io { source, .. } => source.raw_os_error(),
        Error::Open { kind, .. } => errno_of(*kind),
        _ => None,
    };
    raised(error.code(), &error.to_string(), errno, file)
}

/// The system's number for why a file could not be opened. Every Unix has these numbers.
fn errno_of(kind: ErrorKind) -> Option<i32> {
    match kind {
        ErrorKind::NotFound => Some(2),
        ErrorKind::PermissionDenied => Some(13),
        ErrorKind::AlreadyExists => Some(17),
        ErrorKind::NotADirectory => Some(20),
        ErrorKind::IsADirectory => Some(21),
        _ => None,
    }
}

/// The error for bytes in the file that do not fit the table's types.
pub fn wrong_form(detail: &str) -> PyErr {
    raised(WRONG_FORM, &format!("wrong type: {detail}"), None, None)
}

/// The error for an argument of a wrong type.
pub fn wrong_argument(due: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let found = given.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{due} is due here, not {found}"))
}

fn raised(number: u32, message: &str, errno: Option<i32>, file: Option<&Path>) -> PyErr {
    Python::attach(|py| match exception(py, number, message, errno, file) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    })
}

fn exception<'py>(
    py: Python<'py>,
    number: u32,
    message: &str,
    errno: Option<i32>,
    file: Option<&Path>,
) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make =
        MAKE.get_or_try_init(py, || py.import("azekura._errors")?.getattr("make").map(Bound::unbind))?;
    let file = file.map(Path::to_string_lossy);
    make.bind(py).call((number, message, errno, file), None::<&Bound<'py, PyDict>>)
}

/// The exception for a missing key, as mappings raise it.
pub fn missing(key: &Bound<'_, PyAny>) -> PyErr {
    // In a tuple, for a key that is itself a tuple would be taken for several arguments.
    match PyTuple::new(key.py(), [key]) {
        Ok(arguments) => pyo3::exceptions::PyKeyError::new_err(arguments.unbind()),
        Err(error) => error,
    }
}
