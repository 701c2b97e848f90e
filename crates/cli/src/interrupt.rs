//! What happens on Ctrl-C, or when the system asks the program to end.
//!
//! Half-written files are removed ([`Scratch`]), and the program ends with the status that shells have for an
//! interrupt. A command that must finish something first says so with [`Deferred`]. A second Ctrl-C ends it
//! in any case. The process has one handler, which is set when it is first needed. A program that `nohup`
//! started gets no handler, because the handler would undo `nohup`.

use crate::failure::EXIT_INTERRUPTED;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// What the handler must do.
struct Duties {
    scratch: Vec<PathBuf>,
    finish: Option<Box<dyn FnOnce() + Send>>,
}

static DUTIES: Mutex<Duties> = Mutex::new(Duties { scratch: Vec::new(), finish: None });

/// The duties, also if a thread has panicked while it held them: they are consistent at any time.
fn duties() -> MutexGuard<'static, Duties> {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        if !hangups_are_ignored() {
            // Without a handler an interrupt leaves files behind. That is no reason not to run.
            drop(ctrlc::set_handler(interrupted));
        }
    });
    DUTIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the program shall outlive the terminal, as after `nohup`.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is the first signal.
    mask.is_some_and(|mask| mask & 1 == 1)
}

/// The handler. It runs on a thread of its own.
fn interrupted() {
    let mut duties = duties();
    if io::stderr().is_terminal() {
        // Behind the `^C` that terminals show.
        crate::failure::write_stderr("\n");
    }
    if let Some(finish) = duties.finish.take() {
        // On another thread, since this one waits for the next signal.
        drop(std::thread::spawn(finish));
        return;
    }
    duties.scratch.iter().for_each(|path| remove_with_unfinished(path));
    std::process::exit(i32::from(EXIT_INTERRUPTED));
}

/// The beginning of names that were drawn at random.
pub const DRAWN: &str = ".azekura-";

/// Removes a file. If its name was drawn at random, also removes the engine's unfinished files for it, for
/// then nobody else has such names.
fn remove_with_unfinished(path: &Path) {
    let _ = std::fs::remove_file(path);
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    if !name.starts_with(DRAWN) {
        return;
    }
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let unfinished = format!("{name}.new-");
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(unfinished.as_bytes()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A file that is removed when this is dropped or the program is interrupted. It may have taken gigabytes.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Takes charge of a file that does not exist yet.
    pub fn new(path: &Path) -> Scratch {
        duties().scratch.push(path.to_path_buf());
        Scratch { path: path.to_path_buf() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `f`. An interrupt waits until `f` has returned.
    pub fn undisturbed<T>(&self, f: impl FnOnce() -> T) -> T {
        let _waited_for = duties();
        f()
    }

    /// Keeps the file.
    pub fn keep(self) {
        duties().scratch.retain(|path| *path != self.path);
        std::mem::forget(self);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing can be done if the file stays, and nothing depends on it.
        let _ = std::fs::remove_file(&self.path);
        duties().scratch.retain(|path| *path != self.path);
    }
}

/// While this lives, an interrupt lets the command finish something first.
pub struct Deferred;

impl Deferred {
    /// `finish` runs once, on a thread of its own. The program goes on unless `finish` ends it.
    pub fn new(finish: impl FnOnce() + Send + 'static) -> Deferred {
        duties().finish = Some(Box::new(finish));
        Deferred
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        duties().finish = None;
    }
}
