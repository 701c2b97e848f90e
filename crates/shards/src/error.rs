//! The engine's errors, for what is wrong with a set.

use azekura::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// An error of the system on a file of a set.
pub(crate) fn io(during: &'static str, path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::NoSpace { during },
        kind => {
            let source = io::Error::new(kind, format!("{}: {error}", path.display()));
            Error::Io { during, source: Arc::new(source) }
        }
    }
}

/// A manifest, or what else describes a set, is not what was written.
pub(crate) fn damaged(path: &Path, detail: impl std::fmt::Display) -> Error {
    Error::Corrupt { what: "set of shards", offset: 0, detail: format!("{}: {detail}", path.display()) }
}

/// A set, or a version of it, that cannot be opened.
pub(crate) fn not_there(path: &Path, detail: impl Into<String>) -> Error {
    Error::Open { path: path.display().to_string(), kind: io::ErrorKind::NotFound, detail: detail.into() }
}

/// An argument that has no meaning, or a record that a shard does not take.
pub(crate) fn invalid(detail: String) -> Error {
    Error::Invalid { detail }
}

/// An error of a shard, with the shard's file.
pub(crate) fn of_shard(error: Error, path: &Path) -> Error {
    match error {
        Error::Corrupt { what, offset, detail } => {
            Error::Corrupt { what, offset, detail: format!("{detail}, in {}", path.display()) }
        }
        Error::Io { during, source } => io(during, path, &source),
        other => other,
    }
}
