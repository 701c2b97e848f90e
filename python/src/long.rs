//! Calls that may take long: how far they are, and Ctrl-C.
//!
//! The engine works on a thread of its own. So the caller's thread can look for signals and tell the progress
//! while it waits. If a signal or the callback raises an exception, the call ends at once. The engine goes on
//! by itself, until it is done or the database is closed. It can be ended at any moment without harm.

use crate::errors::{of_engine, wrong_argument};
use azekura::Progress;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often the callback is told, and signals are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

enum Told<T> {
    Progress(Progress),
    Done(azekura::Result<T>),
}

/// Does `work` and tells its progress.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(Progress)) -> azekura::Result<T> + Send + 'static,
) -> PyResult<T> {
    let callback = callback(py, progress)?;
    let (tell, mut told) = channel();
    let job = move || {
        let (mut last_told, mut untold) = (None::<Instant>, None);
        // Nobody listens any more if the caller was interrupted.
        let done = work(&mut |step| {
            untold = Some(step);
            if last_told.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
                last_told = Some(Instant::now());
                let _ = tell.send(Told::Progress(step));
                untold = None;
            }
        });
        untold.map(|step| tell.send(Told::Progress(step)));
        let _ = tell.send(Told::Done(done));
    };
    let worker = std::thread::Builder::new().name("azekura-python".into()).spawn(job)?;
    loop {
        match wait(py, &mut told) {
            Ok(Told::Done(done)) => return done.map_err(|error| of_engine(&error)),
            Ok(Told::Progress(step)) => {
                callback.as_ref().map(|call| call.call1((step.done, step.total))).transpose()?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                // The thread sends its outcome before it ends.
                Ok(()) => unreachable!("a thread has ended without a word"),
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
        py.check_signals()?;
    }
}

fn wait<T: Send>(py: Python<'_>, told: &mut Receiver<Told<T>>) -> Result<Told<T>, RecvTimeoutError> {
    py.detach(move || told.recv_timeout(LOOK_EVERY))
}

/// The argument `progress`: a callable, or True for a bar on the terminal.
pub fn callback<'py>(
    py: Python<'py>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match progress {
        Some(given) if given.is_instance_of::<PyBool>() => match given.is_truthy()? {
            true => py.import("azekura._progress")?.call_method0("bar").map(Some),
            false => Ok(None),
        },
        Some(given) if !given.is_callable() => Err(wrong_argument("a callable or True", &given)),
        other => Ok(other),
    }
}
