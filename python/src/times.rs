//! Times as Python has them.

use crate::errors::wrong_argument;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::{Duration, SystemTime};

/// The time of a `datetime`, which has microseconds.
pub fn moment_of(time: &Bound<'_, PyAny>) -> PyResult<SystemTime> {
    if !time.hasattr("timestamp")? {
        return Err(wrong_argument("a datetime", time));
    }
    let seconds: f64 = time.call_method0("timestamp")?.extract()?;
    let wrong = |detail: String| PyValueError::new_err(format!("no time since 1970: {detail}"));
    let since = Duration::try_from_secs_f64(seconds).map_err(|error| wrong(error.to_string()))?;
    // The float is only the nearest one, so it may be some nanoseconds less.
    let micros = (since.subsec_nanos() + 500) / 1000;
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since.as_secs()));
    time.and_then(|time| time.checked_add(Duration::from_micros(micros.into())))
        .ok_or_else(|| wrong(format!("{seconds} seconds after 1970")))
}
