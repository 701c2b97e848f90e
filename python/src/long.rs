//! Calls that may take long: how far they are, and Ctrl-C.
//!
//! The engine works on a thread of its own. So the caller's thread can look for signals and tell the progress
//! while it waits. If a signal or the callback raises an exception, the call ends at once. The engine goes on
//! by itself, until it is done or the database is closed. It can be ended at any moment without harm.

use crate::errors::{Failure, wrong_argument};
use azekura::Progress;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How often the callback is told, and signals are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

enum Told<T, E> {
    Progress(Progress),
    Done(Result<T, E>),
}

/// Does `work` and tells its progress.
pub fn run<T: Send + 'static, E: Into<Failure> + Send + 'static>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<T, E> + Send + 'static,
) -> PyResult<T> {
    run_watched(py, progress, None::<fn() -> Progress>, work)
}

/// Does `work`. The progress is what it tells, and what `watch` sees from time to time.
pub fn run_watched<T: Send + 'static, E: Into<Failure> + Send + 'static>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    watch: Option<impl Fn() -> Progress + Sync>,
    work: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<T, E> + Send + 'static,
) -> PyResult<T> {
    let callback = callback(py, progress)?;
    let say = |step: Progress| callback.as_ref().map(|call| call.call1((step.done, step.total))).transpose();
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
    let worker = begin(py, job);
    loop {
        match wait(py, &mut told) {
            Ok(Told::Done(done)) => return done.map_err(|error| Into::<Failure>::into(error).into()),
            Ok(Told::Progress(step)) => drop(say(step)?),
            Err(RecvTimeoutError::Timeout) => {
                let look = watch.as_ref().filter(|_| callback.is_some());
                look.map(|look| say(py.detach(look))).transpose()?;
            }
            Err(RecvTimeoutError::Disconnected) => match worker.map(JoinHandle::join) {
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                // The job sends its outcome before it ends.
                _ => unreachable!("a job has ended without a word"),
            },
        }
        py.check_signals()?;
    }
}

/// Does a job on a thread of its own. If the system gives none, it is done here, and cannot be interrupted.
fn begin<F: FnOnce() + Send + 'static>(py: Python<'_>, job: F) -> Option<JoinHandle<()>> {
    let held = Arc::new(Mutex::new(Some(job)));
    let theirs = held.clone();
    let begun = Builder::new().name("azekura-python".into()).spawn(move || run_once(&theirs));
    if begun.is_err() {
        py.detach(|| run_once(&held));
    }
    begun.ok()
}

fn run_once(held: &Mutex<Option<impl FnOnce()>>) {
    let job = held.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(job) = job {
        job();
    }
}

fn wait<T: Send, E: Send>(
    py: Python<'_>,
    told: &mut Receiver<Told<T, E>>,
) -> Result<Told<T, E>, RecvTimeoutError> {
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
