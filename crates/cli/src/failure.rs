//! How a command can fail, what it then says, and the exit status that tells scripts.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{bytes, foreign, style};

/// The exit status of a program that a signal ended, as shells give it for an interrupt.
pub const EXIT_INTERRUPTED: u8 = 130;
/// The exit status when a key was not found.
pub const EXIT_NOT_FOUND: u8 = 1;
/// The exit status of a usage error, and of every error that is none of the others.
pub const EXIT_USAGE: u8 = 2;
/// The exit status when the database is corrupt.
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
    /// The engine's own error about a file that it does not name.
    File(PathBuf, azekura::Error),
    /// The user, or the system, wants the program to end.
    Interrupted(String),
    /// Another failure, of that exit status, with what there is to add.
    Noted(u8, String),
    /// Whoever read our output has gone. Nobody is left to be told.
    BrokenPipe,
}

impl Failure {
    /// An error of the operating system on a file of ours, with what was being done to it.
    pub fn io(during: &str, path: &Path, source: &io::Error) -> Failure {
        Failure::Usage(format!("{during} {}: {source}", path.display()))
    }

    /// The same failure with the database named that it is about, if it does not name it already.
    pub fn at(self, path: &Path) -> Failure {
        use azekura::Error;
        match self {
            Failure::Engine(Error::NotADatabase { .. }) => Failure::Usage(foreign::no_database(path)),
            Failure::Engine(error) if names_file(&error) => Failure::Engine(error),
            Failure::Engine(error) => Failure::File(path.to_path_buf(), error),
            other => other,
        }
    }

    /// The same failure with something to add.
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

    /// The exit status that tells of this failure.
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

    /// Says on standard error what went wrong and returns the exit status.
    pub fn report(&self) -> ExitCode {
        if !matches!(self, Failure::BrokenPipe) {
            let paint = style::Paint::stderr();
            write_stderr(&format!("{} {}\n", paint.red("azekura:"), bytes::harmless(&self.to_string())));
        }
        ExitCode::from(self.status())
    }
}

/// Says on standard error what did not go as it should, though the command did what it was asked.
pub fn warn(text: &str) {
    let paint = style::Paint::stderr();
    write_stderr(&format!("{} {}\n", paint.red("azekura: warning:"), bytes::harmless(text)));
}

/// Whether an error of the engine names the file, or is about none.
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

/// Writes to standard error; unlike `eprintln!`, does not panic when it is closed.
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

/// The engine's words, with names as people can read them.
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
