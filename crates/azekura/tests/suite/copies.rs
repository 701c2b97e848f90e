//! Files as a crash of the process leaves them.

use azekura::storage::{MemStorage, OpenMode, Storage};
use std::path::Path;

/// What a file has at the moment.
pub fn bytes_of(storage: &MemStorage, path: &str) -> Vec<u8> {
    let file = storage.open(Path::new(path), OpenMode::ReadOnly).unwrap();
    loop {
        // All bytes are read at one moment. Threads of the engine may have changed the length before that.
        let len = file.len().unwrap();
        let mut bytes = vec![0; usize::try_from(len).unwrap()];
        if file.read_at(&mut bytes, 0).is_ok() && file.len().unwrap() == len {
            return bytes;
        }
    }
}

/// A copy of a file.
pub fn copy_of(storage: &MemStorage, path: &str) -> MemStorage {
    let copy = MemStorage::default();
    let file = copy.open(Path::new(path), OpenMode::CreateNew).unwrap();
    file.write_at(&bytes_of(storage, path), 0).unwrap();
    copy
}
