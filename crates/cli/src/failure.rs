//! How a command can fail, what it then says, and the exit status that tells scripts.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::style;

/// The exit status when a key was not found.
pub const EXIT_NOT_FOUND: u8 = 1;
/// The exit status of a usage error, and of every error that is none of the others.
pub const EXIT_USAGE: u8 = 2;
/// The exit status when the file is corrupt or no database.
pub const EXIT_CORRUPT: u8 = 3;

/// The outcome of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// The key is not there.
    NotFound(String),
    /// The arguments, the input or the operating system: nothing is wrong with the database.
    Usage(String),
    /// The database, or what was read from it, is not what was written.
    Corrupt(String),
    /// The engine's own error.
    Engine(azekura::Error),
    /// Whoever read our output has gone. Nobody is left to be told.
    BrokenPipe,
}

impl Failure {
    /// An error of the operating system on a file of ours, with what was being done to it.
    pub fn io(during: &str, path: &Path, source: &io::Error) -> Failure {
        Failure::Usage(format!("{during} {}: {source}", path.display()))
    }

    /// An error while writing to standard output.
    pub fn stdout(source: &io::Error) -> Failure {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::Usage(format!("writing to standard output: {source}")),
        }
    }

    /// The exit status that tells of this failure.
    fn status(&self) -> u8 {
        use azekura::Error;
        match self {
            Failure::BrokenPipe => 0,
            Failure::NotFound(_) => EXIT_NOT_FOUND,
            Failure::Usage(_) => EXIT_USAGE,
            Failure::Corrupt(_) => EXIT_CORRUPT,
            Failure::Engine(Error::Corrupt { .. } | Error::NotADatabase { .. }) => EXIT_CORRUPT,
            Failure::Engine(_) => EXIT_USAGE,
        }
    }

    /// Says on standard error what went wrong and returns the exit status.
    pub fn report(&self) -> ExitCode {
        if !matches!(self, Failure::BrokenPipe) {
            let paint = style::Paint::stderr();
            write_stderr(&format!("{} {self}\n", paint.red("azekura:")));
        }
        ExitCode::from(self.status())
    }
}

/// Writes to standard error; unlike `eprintln!`, does not panic when it is closed.
pub fn write_stderr(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotFound(text) | Failure::Usage(text) | Failure::Corrupt(text) => f.write_str(text),
            Failure::Engine(error) => error.fmt(f),
            Failure::BrokenPipe => f.write_str("broken pipe"),
        }
    }
}

impl From<azekura::Error> for Failure {
    fn from(error: azekura::Error) -> Failure {
        Failure::Engine(error)
    }
}
