//! Where the bench puts its files, and that they are gone afterwards: also when it fails, and
//! when it is interrupted, because they may have taken gigabytes.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::args::Args;
use crate::failure::{Failure, Outcome};

/// The exit status of a program that a signal ended, as shells give it for an interrupt.
const EXIT_INTERRUPTED: i32 = 130;

/// Files to remove should the program be interrupted.
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The list, also when a thread died with it in hand: it is whole at any time.
fn scratch() -> MutexGuard<'static, Vec<PathBuf>> {
    SCRATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is removed when this is dropped, and when the program is interrupted.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Takes charge of a file that does not exist yet.
    pub fn new(path: &Path) -> Scratch {
        static HANDLER: Once = Once::new();
        // Without a handler an interrupt leaves the file behind, which is no reason not to run.
        HANDLER.call_once(|| drop(ctrlc::set_handler(interrupted)));
        scratch().push(path.to_path_buf());
        Scratch { path: path.to_path_buf() }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing can be done about a file that stays, and nothing depends on it.
        let _ = std::fs::remove_file(&self.path);
        scratch().retain(|path| *path != self.path);
    }
}

/// Runs on a thread of its own when the user has had enough.
fn interrupted() {
    for path in scratch().iter() {
        let _ = std::fs::remove_file(path);
    }
    crate::failure::write_stderr("\n");
    std::process::exit(EXIT_INTERRUPTED);
}

/// The database file of a bench, removed afterwards unless it is to be kept.
pub struct Place {
    path: PathBuf,
    scratch: Option<Scratch>,
}

impl Place {
    /// The file asked for, which must not exist, or one of our own in the temporary directory.
    pub fn new(args: &Args) -> Outcome<Place> {
        let path = args
            .path
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join(format!("azekura-bench-{}.azk", std::process::id())));
        if path.exists() {
            let text = format!("{} exists already: bench makes a new file", path.display());
            return Err(Failure::Usage(text));
        }
        let scratch = (!args.keep).then(|| Scratch::new(&path));
        Ok(Place { path, scratch })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file stays.
    pub fn is_kept(&self) -> bool {
        self.scratch.is_none()
    }

    /// Removes the file of the row before.
    pub fn clear(&self) -> Outcome {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::io("removing", &self.path, &error))
            }
            _ => Ok(()),
        }
    }

    /// The file's size in bytes.
    pub fn size(&self) -> Outcome<u64> {
        let metadata = std::fs::metadata(&self.path);
        Ok(metadata.map_err(|error| Failure::io("reading", &self.path, &error))?.len())
    }

    /// A file beside the database: its name with another extension, and with `mark` in it when
    /// there are several.
    pub fn beside(&self, mark: Option<u64>, extension: &str) -> PathBuf {
        match mark {
            None => self.path.with_extension(extension),
            Some(mark) => self.path.with_extension(format!("{mark}.{extension}")),
        }
    }
}
