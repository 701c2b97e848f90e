//! A mirror becomes a database of its own.

use super::load::{load, secure};
use super::names::{open_locked, resolved};
use crate::backup::failed;
use crate::base::error::{Error, Result};
use crate::base::limits::ALIGN_BYTES;
use crate::engine::{Length, Newest, read_newest};
use crate::format::superblock::{Role, Superblock};
use crate::storage::{OsStorage, Storage, pins_of_others};
use std::io;
use std::path::Path;

/// A pin so far above the newest checkpoint is no follower's.
const PINS_ABOVE_MAX: u64 = 1 << 32;

const PROMOTING: &str = "promoting the mirror";

/// Makes a mirror a database of its own, with a lineage of its own: it can be written from then on, and it
/// can never again become a mirror of what it mirrored. It has what it had, the commits in its log among it.
/// Who follows it has to open it again.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("azekura-doc-promote-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let (path, copy) = (dir.join("people.azk"), dir.join("mirror.azk"));
/// # use azekura::{CopyOptions, Db, Mirror, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # db.table("people", TableKind::Ordered)?.put("ada", "1815")?;
/// # db.close()?;
/// # let mut mirror = Mirror::open(&path, &copy, CopyOptions::default())?;
/// # while mirror.step()? {}
/// # drop(mirror);
/// assert!(Db::open(&copy, Options::new()).is_err());
/// azekura::promote(&copy)?;
/// let db = Db::open(&copy, Options::new())?;
/// db.open_table("people")?.put("grace", "1906")?;
/// # db.close()?; std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
///
/// # Errors
/// `Invalid` if it is no mirror, `Locked` while it is kept or read without following, those of opening it,
/// and `Io`. `Corrupt` or `Truncated` if it is damaged as far as opening a database would tell: then it stays
/// a mirror. (`Db::check` looks at all of it.)
pub fn promote(path: impl AsRef<Path>) -> Result<()> {
    promote_on(&OsStorage, resolved(path.as_ref())?)
}

/// As [`promote`], on a disk of the caller's making: for simulators and tests.
///
/// # Errors
/// As [`promote`].
pub fn promote_on(storage: &dyn Storage, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let at = failed(path, PROMOTING);
    let Some(file) = open_locked(storage, path)? else { return Err(at(io::ErrorKind::NotFound.into())) };
    let length = Length { path, file_bytes: file.len().map_err(&at)?, read_only: false };
    let Newest { block, .. } = read_newest(file.as_ref(), &length)?;
    if block.role != Role::Mirror {
        return Err(Error::Invalid { detail: format!("{} is no mirror", path.display()) });
    }
    secure(path, file.as_ref(), &block)?;
    // What opening would refuse stays what it is, and all else is durable before it is a database's.
    load(path, file.clone(), block.clone())?;
    let pins = pins_of_others(file.as_ref()).map_err(&at)?;
    let pinned = pins.iter().map(|pin| *pin.end()).max().unwrap_or(0).min(block.number + PINS_ABOVE_MAX);
    // A number that nobody reads, so that followers see that something has changed.
    let number = block.number.max(pinned) + 1;
    let lineage = storage.random().map_err(&at)?.max(1);
    let bytes = Superblock { role: Role::Database, number, lineage, ..block }.encode();
    file.write_durable_at(&bytes, 0).map_err(&at)?;
    file.write_durable_at(&bytes, ALIGN_BYTES).map_err(&at)?;
    // Its name may have been given to it by a mirror that was cut off before that was durable.
    storage.sync_dir_of(path).map_err(at)
}
