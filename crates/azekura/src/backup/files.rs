//! Small files of a repository, and errors that say which file.

use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::storage::{OpenMode, Storage};
use std::io;
use std::path::Path;

/// An error of the system that says which file. A full disk stays `NoSpace`.
pub(crate) fn failed(path: &Path, during: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| match Error::io(during, source) {
        Error::Io { source, .. } => Error::open(path, source.kind(), format!("{during}: {source}")),
        other => other,
    }
}

/// The same error. If it is about damage, it says in which file.
pub(super) fn inside(path: &Path) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Corrupt { what, offset, detail } => {
            Error::Corrupt { what, offset, detail: format!("{}: {detail}", path.display()) }
        }
        other => other,
    }
}

/// No head or point is longer than this. A head has some bytes, a point 45 for each 8 MiB of a database.
const BYTES_MAX: u64 = 1 << 30;

/// All bytes of a head or a point.
pub(super) fn read(storage: &dyn Storage, path: &Path, during: &'static str) -> Result<Vec<u8>> {
    let at = failed(path, during);
    let file = storage.open(path, OpenMode::ReadOnly).map_err(&at)?;
    let len = file.len().map_err(&at)?;
    if len > BYTES_MAX {
        return Err(inside(path)(Error::corrupt("repository", 0, format!("it has {len} bytes"))));
    }
    let mut bytes = vec![0; usize_of64(len)];
    file.read_at(&mut bytes, 0).map_err(&at)?;
    Ok(bytes)
}

/// Writes a file that gets its name when it is whole and durable. False if there is a file of that name.
pub(super) fn publish(
    storage: &dyn Storage,
    path: &Path,
    bytes: &[u8],
    during: &'static str,
) -> Result<bool> {
    match write_named(storage, path, bytes, false) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        named => named.map(|()| true).map_err(failed(path, during)),
    }
}

/// Writes a file that takes the place of the one of its name, when it is whole and durable.
pub(super) fn replace(storage: &dyn Storage, path: &Path, bytes: &[u8], during: &'static str) -> Result<()> {
    write_named(storage, path, bytes, true).map_err(failed(path, during))
}

fn write_named(storage: &dyn Storage, path: &Path, bytes: &[u8], replace: bool) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".new-{:016x}", storage.random()?));
    let fresh = path.with_file_name(name);
    let named = (|| {
        let file = storage.open(&fresh, OpenMode::CreateNew)?;
        file.write_at(bytes, 0)?;
        file.sync_all()?;
        storage.rename(&fresh, path, replace)?;
        storage.sync_dir_of(path)
    })();
    if named.is_err() && storage.exists(&fresh).unwrap_or(false) {
        // The first error is the one to report, and pruning removes what stays.
        let _left_behind = storage.remove(&fresh);
    }
    named
}
