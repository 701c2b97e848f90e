//! A new database. Its file is whole from the moment that it has its name. It may also be made in an empty
//! file that is there.

use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::limits::SUPERBLOCKS_BYTES;
use crate::engine::config::Config;
use crate::format::manifest::Manifest;
use crate::format::superblock::{ManifestAt, PinRules, Role, Superblock};
use crate::storage::read_error;
use crate::storage::{File, OpenMode, Storage};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// An error of the system on the file itself, which says which file. A full disk stays what it is.
pub(super) fn named(path: &Path, during: &'static str, source: io::Error) -> Error {
    match Error::io(during, source) {
        Error::Io { source, .. } => Error::open(path, source.kind(), format!("{during}: {source}")),
        other => other,
    }
}

/// Opens the file, or makes a new database under another name and renames it into place. So a crash leaves a
/// whole database or none.
pub(super) fn open_file(storage: &dyn Storage, path: &Path, config: &Config) -> Result<Arc<dyn File>> {
    let exists = storage.exists(path).map_err(|e| named(path, "looking for the database file", e))?;
    if exists && config.exclusive {
        return Err(Error::open(path, io::ErrorKind::AlreadyExists, "the file exists already"));
    }
    if !exists {
        if !config.create || config.read_only {
            return Err(Error::open(path, io::ErrorKind::NotFound, "the file does not exist"));
        }
        create(storage, path, config)?;
    }
    let mode = if config.read_only { OpenMode::ReadOnly } else { OpenMode::ReadWrite };
    storage.open(path, mode).map_err(|e| named(path, "opening the database file", e))
}

fn create(storage: &dyn Storage, path: &Path, config: &Config) -> Result<()> {
    let during = "creating the database file";
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".new-{}-{:016x}", std::process::id(), random(storage)?));
    let fresh = path.with_file_name(name);
    let made = (|| {
        let file = storage.open(&fresh, OpenMode::CreateNew).map_err(|e| named(path, during, e))?;
        let block = first_superblock(storage, config)?;
        file.write_at(&[&*block, &*block].concat(), 0).map_err(|e| named(path, during, e))?;
        file.sync_all().map_err(|e| named(path, during, e))?;
        storage
            .rename(&fresh, path, false)
            .or_else(|e| {
                // Somebody else was faster, and their database is as good.
                if e.kind() == io::ErrorKind::AlreadyExists { storage.remove(&fresh) } else { Err(e) }
            })
            .map_err(|e| named(path, during, e))?;
        sync_name(storage, path)
    })();
    if made.is_err() && storage.exists(&fresh).unwrap_or(false) {
        // The first error is the one to report.
        let _left_behind = storage.remove(&fresh);
    }
    made
}

/// Makes the file's name durable.
pub(super) fn sync_name(storage: &dyn Storage, path: &Path) -> Result<()> {
    if fault!("forget_name") {
        return Ok(());
    }
    storage.sync_dir_of(path).map_err(|e| named(path, "making the file's name durable", e))
}

pub(super) fn random(storage: &dyn Storage) -> Result<u64> {
    storage.random().map_err(|e| Error::io("drawing random numbers", e))
}

/// Whether nothing was ever stored in a file. It has no bytes, or just the room for superblocks: that is what
/// `fill_empty` leaves when it is cut off.
pub(super) fn is_empty(file: &dyn File) -> Result<bool> {
    let len = file.len().map_err(|e| Error::io("reading the file's length", e))?;
    if len != SUPERBLOCKS_BYTES {
        return Ok(len == 0);
    }
    let mut bytes = vec![0; usize_of64(len)];
    file.read_at(&mut bytes, 0).map_err(|e| read_error(e, 0))?;
    Ok(bytes.iter().all(|&b| b == 0))
}

/// Makes a database of an empty file, which may have links, rights and an owner that are to stay. Its
/// length comes first. All that the first superblock says stands in 512 bytes, which disks write as a whole
/// or not at all. So a crash leaves a database or an empty file.
pub(super) fn fill_empty(storage: &dyn Storage, file: &dyn File, config: &Config) -> Result<()> {
    let during = "writing the first superblock";
    let block = first_superblock(storage, config)?;
    debug_assert!(block[512..].iter().all(|&b| b == 0), "the first manifest is small");
    file.set_len(SUPERBLOCKS_BYTES).map_err(|e| Error::io(during, e))?;
    file.sync_all().map_err(|e| Error::io(during, e))?;
    file.write_at(&[&*block, &*block].concat(), 0).map_err(|e| Error::io(during, e))?;
    file.sync_all().map_err(|e| Error::io(during, e))
}

fn first_superblock(storage: &dyn Storage, config: &Config) -> Result<Vec<u8>> {
    let manifest = Manifest { next_id: 1, next_table: 1, ..Manifest::default() };
    let block = Superblock {
        file_id: random(storage)?,
        lineage: 0,
        number: 1,
        hash_seed: config.hash_seed.map_or_else(|| random(storage), Ok)?,
        manifest: ManifestAt::Inline(manifest.encode()),
        pins: PinRules::default(),
        version: manifest.version(),
        role: Role::Database,
    };
    Ok(block.encode())
}
