//! Locks that processes take on files of a set.
//!
//! - The set's own, on `set.lock`: whoever makes a version count, or removes anything, holds it alone. So
//!   what was looked at under it stays so until it is given back. Nothing else is locked before it, and
//!   nobody waits for another lock under it.
//! - That of a version, on its manifest: readers share it, and what removes the version asks for it alone.
//!
//! A lock that keeps others out needs a file that is open for writing: over NFS it is one of bytes.

use crate::error::{io, not_there};
use crate::{Result, names};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

/// What is held until it is dropped.
#[must_use]
pub(crate) struct SetLock {
    _file: File,
}

fn open(root: &Path) -> io::Result<File> {
    // It has no bytes. It stays, so that there is one file to lock.
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(root.join(names::LOCK))
}

/// Makes the file that is locked, while there is room.
pub(crate) fn make(root: &Path) -> Result<()> {
    let path = root.join(names::LOCK);
    open(root).map(drop).map_err(|error| io("making the lock of a set of shards", &path, &error))
}

/// Waits until nobody else publishes or removes anything in this set. `Open` if there is no such folder.
pub(crate) fn alone(root: &Path) -> Result<SetLock> {
    let path = root.join(names::LOCK);
    let locked = open(root).and_then(|file| uninterrupted(|| file.lock()).map(|()| SetLock { _file: file }));
    locked.map_err(|error| match error.kind() {
        ErrorKind::NotFound => not_there(root, "there is no such folder"),
        _ => io("locking a set of shards", &path, &error),
    })
}

/// Shares the lock of a version, whose manifest is open, with all who read it. Where the file system has no
/// locks this does nothing: whoever would remove the version gets no lock either, and leaves it.
pub(crate) fn share(manifest: &File) {
    let _or_there_are_none = uninterrupted(|| manifest.lock_shared());
}

/// Asks again after a signal has come.
fn uninterrupted(mut lock: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match lock() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Whether somebody reads a version.
#[derive(Debug)]
pub(crate) enum Held {
    /// Nobody, as long as this file is open.
    Alone(File),
    /// Somebody.
    ByReaders,
    /// Nobody knows: the file system says no, or the file cannot be opened for writing.
    Unknown,
    /// The manifest is gone.
    Gone,
}

/// Asks for the lock of a version alone.
pub(crate) fn ask(manifest: &Path) -> Held {
    match OpenOptions::new().read(true).write(true).open(manifest) {
        Err(error) if error.kind() == ErrorKind::NotFound => Held::Gone,
        Err(_) => Held::Unknown,
        Ok(file) => asked(file),
    }
}

fn asked(file: File) -> Held {
    match file.try_lock() {
        Ok(()) => Held::Alone(file),
        Err(TryLockError::WouldBlock) => Held::ByReaders,
        Err(TryLockError::Error(_)) => Held::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_is_read_is_held() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("manifest-0001.json");
        assert!(matches!(ask(&path), Held::Gone));
        std::fs::write(&path, "{}").expect("a file");
        let reader = File::open(&path).expect("it is there");
        reader.lock_shared().expect("a lock");
        assert!(matches!(ask(&path), Held::ByReaders));
        drop(reader);
        assert!(matches!(ask(&path), Held::Alone(_)));
    }

    /// A descriptor that stands for a place only gets the error that others get from a server without locks.
    #[cfg(target_os = "linux")]
    #[test]
    fn where_there_are_no_locks_nobody_knows() {
        use std::os::unix::fs::OpenOptionsExt;
        const O_PATH: i32 = 0o10_000_000;
        let place = tempfile::tempdir().expect("a folder");
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(O_PATH).open(place.path()).expect("a place");
        assert!(matches!(asked(file), Held::Unknown));
        assert!(matches!(ask(place.path()), Held::Unknown), "a folder is not open for writing");
    }

    #[test]
    fn a_signal_is_no_answer() {
        let mut answers = vec![ErrorKind::Unsupported, ErrorKind::Interrupted, ErrorKind::Interrupted];
        let found = uninterrupted(|| answers.pop().map_or(Ok(()), |kind| Err(kind.into())));
        assert_eq!(found.expect_err("the third answer").kind(), ErrorKind::Unsupported);
        assert!(answers.is_empty());
    }

    #[test]
    fn only_one_has_the_lock_of_a_set() {
        let place = tempfile::tempdir().expect("a folder");
        assert!(matches!(alone(&place.path().join("none")), Err(crate::Error::Open { .. })));
        make(place.path()).expect("room");
        let first = alone(place.path()).expect("nobody else has it");
        let file = open(place.path()).expect("it is there");
        assert!(matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
        drop(first);
        file.try_lock().expect("it is free");
    }
}
