//! Databases in memory.

use azekura::Options;
use azekura::storage::{MemStorage, OpenMode, Storage};
use std::path::Path;

/// The name of the file in memory.
pub(super) const PATH: &str = "fuzz.azk";

/// The options of databases here. They are small and have no threads, so that an input always does the same.
pub fn options() -> Options {
    Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).threads(false)
}

/// A storage with one file of these bytes.
pub fn holding(bytes: &[u8]) -> std::io::Result<MemStorage> {
    let storage = MemStorage::default();
    storage.open(Path::new(PATH), OpenMode::CreateNew)?.write_at(bytes, 0)?;
    Ok(storage)
}

/// The bytes of a storage's only file.
pub fn contents(storage: &MemStorage) -> std::io::Result<Vec<u8>> {
    let file = storage.open(Path::new(PATH), OpenMode::ReadOnly)?;
    let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(0)];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}
