//! The names of a mirror and of the file in which it is built.
//!
//! A name may come to lead to another file at any moment, so it is looked at again whenever that matters:
//! what is locked must still have the name, and what loses it to a mirror that was built anew must be the
//! mirror that was opened.

use crate::backup::failed;
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES};
use crate::engine::{Length, read_newest};
use crate::format::superblock::{self, Parsed, Role, Superblock};
use crate::storage::{File, OpenMode, Storage, is_named};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const OPENING: &str = "opening the mirror";
pub(super) const NAMING: &str = "giving the mirror its name";
/// What a mirror that is being built has behind its name.
const BESIDE: &str = ".mirror-new";
/// How often a name may lead to another file once that is locked.
const LOOKS: u32 = 20;

/// The name of the file in which a mirror is built.
pub(super) fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(BESIDE);
    path.with_file_name(name)
}

/// Where a name leads that may be a symbolic link: what is built beside a mirror stands in the same
/// directory.
pub(super) fn resolved(path: &Path) -> Result<PathBuf> {
    match std::fs::symlink_metadata(path) {
        Ok(there) if there.file_type().is_symlink() => {
            path.canonicalize().map_err(failed(path, "following the link"))
        }
        _ => Ok(path.to_path_buf()),
    }
}

/// Opens the file of a name to write to it, and takes its lock. None if there is no such file.
pub(super) fn open_locked(storage: &dyn Storage, path: &Path) -> Result<Option<Arc<dyn File>>> {
    let at = failed(path, OPENING);
    for _ in 0..LOOKS {
        let file = match storage.open(path, OpenMode::ReadWrite) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(&at)?,
        };
        lock(path, file.as_ref())?;
        if is_named(storage, path, file.as_ref()).map_err(&at)? {
            return Ok(Some(file));
        }
    }
    Err(Error::open(path, io::ErrorKind::Other, "its name leads to another file at each look"))
}

/// Takes the lock of who writes.
pub(super) fn lock(path: &Path, file: &dyn File) -> Result<()> {
    match file.try_lock(true).map_err(failed(path, "locking the mirror"))? {
        true => Ok(()),
        false => Err(Error::Locked { path: path.display().to_string(), exclusive: true }),
    }
}

/// Gives the file `beside` the name `path`, which `old` has until now. A file that has come to have it
/// meanwhile keeps it.
///
/// # Errors
/// `Open` if so, and those of the system.
pub(super) fn take_name(storage: &dyn Storage, beside: &Path, path: &Path, old: &dyn File) -> Result<()> {
    let at = failed(path, NAMING);
    let taken = || {
        let detail = "another file has its name since it was opened";
        Err(Error::open(path, io::ErrorKind::AlreadyExists, detail))
    };
    match storage.exchange(beside, path) {
        Ok(()) if is_named(storage, beside, old).unwrap_or(false) => {
            // If it stays there the next mirror finds it, and builds in it.
            let _left_behind = storage.remove(beside);
            Ok(())
        }
        Ok(()) => {
            storage.exchange(beside, path).map_err(at)?;
            taken()
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => storage.rename(beside, path, false).map_err(at),
        // There the look comes first: nothing better is to be had.
        Err(e) if e.kind() == io::ErrorKind::Unsupported => {
            if is_named(storage, path, old).unwrap_or(false) {
                storage.rename(beside, path, true).map_err(at)
            } else {
                taken()
            }
        }
        Err(e) => Err(at(e)),
    }
}

/// Removes an unfinished mirror of which nobody knows what is durable: who builds the next one must not
/// believe what it reads there.
pub(super) fn throw_away(storage: &dyn Storage, beside: &Path, file: &dyn File) {
    // What was wrong is reported already.
    if is_named(storage, beside, file).unwrap_or(false) && storage.remove(beside).is_err() {
        let _left_behind = file.set_len(0);
    }
}

/// Says in a file that has lost its name that nothing will come to it any more.
pub(super) fn mark_replaced(path: &Path, file: &dyn File) -> Result<()> {
    let at = failed(path, NAMING);
    let length = Length { path, file_bytes: file.len().map_err(&at)?, read_only: true };
    let block = read_newest(file, &length)?.block;
    let block = Superblock { role: Role::Replaced, number: block.number + 1, ..block }.encode();
    file.write_at(&block, 0).and_then(|()| file.write_at(&block, ALIGN_BYTES)).map_err(at)
}

/// Whether a file is what building a mirror leaves when it is cut off: a mirror already, also one that has
/// lost its name to another, or nothing stands where the second superblock will be, which is written last.
pub(super) fn is_left_behind(path: &Path, file: &dyn File) -> Result<bool> {
    let at = failed(path, OPENING);
    let len = file.len().map_err(&at)?;
    let mut bytes = vec![0; usize_of64(len.min(SUPERBLOCKS_BYTES))];
    file.read_at(&mut bytes, 0).map_err(at)?;
    if len < SUPERBLOCKS_BYTES {
        return Ok(bytes.iter().all(|byte| *byte == 0));
    }
    let (a, b) = bytes.split_at(superblock::BYTES);
    let role = |bytes: &[u8]| match Superblock::parse(bytes) {
        Ok(Parsed::Valid(block)) => Some(block.role),
        _ => None,
    };
    match role(a).or(role(b)) {
        Some(role) => Ok(role != Role::Database),
        None => Ok(b.iter().all(|byte| *byte == 0)),
    }
}

/// Makes what was left behind a file in which nothing is named, durably. What else it has stays: it may be
/// right. At each moment it is known again as what it is.
pub(super) fn forget_names(path: &Path, file: &dyn File) -> Result<()> {
    let at = failed(path, OPENING);
    if file.len().map_err(&at)? < SUPERBLOCKS_BYTES {
        // Durably, since a file of another length is not known again.
        file.set_len(SUPERBLOCKS_BYTES).and_then(|()| file.sync_data()).map_err(&at)?;
    }
    let nothing = vec![0; superblock::BYTES];
    for copy in [ALIGN_BYTES, 0] {
        file.write_at(&nothing, copy).and_then(|()| file.sync_data()).map_err(&at)?;
    }
    Ok(())
}
