//! How a command can fail, what it then prints, and its exit status.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{bytes, foreign, style};

/// The exit status after an interrupt, as shells have it.
pub const EXIT_INTERRUPTED: u8 = 130;
/// The exit status when a key was not found.
pub const EXIT_NOT_FOUND: u8 = 1;
/// The exit status of a usage error, and of every other error.
pub const EXIT_USAGE: u8 = 2;
/// The exit status when the database is corrupt.
pub const EXIT_CORRUPT: u8 = 3;

/// The outcome of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a command has failed.
#[derive(Debug)]
pub enum Failure {
    /// The key is absent.
    NotFound(String),
    /// The arguments, the input or the operating system. Nothing is wrong with the database.
    Usage(String),
    /// The database, or what was read from it, differs from what was written.
    Corrupt(String),
    /// The engine's own error.
    Engine(azekura::Error),
    /// The engine's own error, which does not name the file.
    File(PathBuf, azekura::Error),
    /// The user, or the system, wants the program to end.
    Interrupted(String),
    /// Another failure with that exit status, and an addition.
    Noted(u8, String),
    /// The reader of standard output has gone. Nobody is left to be told.
    BrokenPipe,
}

impl Failure {
    /// An error of the operating system on a file, and what was being done to it.
    pub fn io(during: &str, path: &Path, source: &io::Error) -> Failure {
        Failure::Usage(format!("{during} {}: {source}", path.display()))
    }

    /// The same failure with the database's name, unless it already has that.
    pub fn at(self, path: &Path) -> Failure {
        use azekura::Error;
        match self {
            Failure::Engine(Error::NotADatabase { .. }) => Failure::Usage(foreign::no_database(path)),
            Failure::Engine(error) if names_file(&error) => Failure::Engine(error),
            Failure::Engine(error) => Failure::File(path.to_path_buf(), error),
            other => other,
        }
    }

    /// The same failure with an addition.
    pub fn noted(self, note: &str) -> Failure {
        Failure::Noted(self.status(), format!("{self}; {note}"))
    }

    /// An error while writing to standard output.
    pub fn stdout(source: &io::Error) -> Failure {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::Usage(format!("writing to standard output: {source}")),
        }
    }

    /// The exit status of this failure.
    fn status(&self) -> u8 {
        use azekura::Error;
        match self {
            Failure::BrokenPipe => 0,
            Failure::NotFound(_) => EXIT_NOT_FOUND,
            Failure::Usage(_) => EXIT_USAGE,
            Failure::Corrupt(_) => EXIT_CORRUPT,
            Failure::Engine(error) | Failure::File(_, error)
                if matches!(error, Error::Corrupt { .. } | Error::Truncated { .. }) =>
            {
                EXIT_CORRUPT
            }
            Failure::Engine(_) | Failure::File(..) => EXIT_USAGE,
            Failure::Interrupted(_) => EXIT_INTERRUPTED,
            Failure::Noted(status, _) => *status,
        }
    }

    /// Prints the failure on standard error, and returns the exit status.
    pub fn report(&self) -> ExitCode {
        if !matches!(self, Failure::BrokenPipe) {
            let paint = style::Paint::stderr();
            write_stderr(&format!("{} {}\n", paint.red("azekura:"), bytes::harmless(&self.to_string())));
        }
        ExitCode::from(self.status())
    }
}

/// Prints a warning on standard error: the command has done its work, but something else went wrong.
pub fn warn(text: &str) {
    let paint = style::Paint::stderr();
    write_stderr(&format!("{} {}\n", paint.red("azekura: warning:"), bytes::harmless(text)));
}

/// Whether an error of the engine names the file, or is about no file.
fn names_file(error: &azekura::Error) -> bool {
    use azekura::Error;
    matches!(
        error,
        Error::Locked { .. }
            | Error::Open { .. }
            | Error::Truncated { .. }
            | Error::TooLarge { .. }
            | Error::WrongType { .. }
            | Error::Invalid { .. }
    )
}

/// Writes to standard error. Unlike `eprintln!` it does not panic if that is closed.
pub fn write_stderr(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotFound(text) | Failure::Usage(text) | Failure::Corrupt(text) => f.write_str(text),
            Failure::Interrupted(text) | Failure::Noted(_, text) => f.write_str(text),
            Failure::Engine(error) => fmt_engine(error, f),
            Failure::File(path, error) => {
                write!(f, "{}: ", path.display())?;
                fmt_engine(error, f)
            }
            Failure::BrokenPipe => f.write_str("broken pipe"),
        }
    }
}

/// The engine's message, with names in a readable form.
fn fmt_engine(error: &azekura::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    use azekura::Error;
    match error {
        Error::NoSuchTable { name } => write!(f, "no table named {}", bytes::quoted(name)),
        Error::TableExists { name } => write!(f, "a table named {} exists already", bytes::quoted(name)),
        Error::Truncated { path, .. } => {
            write!(
                f,
                "{error}: get, scan and export give what is there, and azekura salvage {path} OUT saves it"
            )
        }
        other => fmt::Display::fmt(other, f),
    }
}

impl From<azekura::Error> for Failure {
    fn from(error: azekura::Error) -> Failure {
        Failure::Engine(error)
    }
}
