//! The disk, as a trait. Every byte that the engine reads or writes passes through [`File`]. Every name that
//! it creates or removes passes through [`Storage`]. So a simulator can put a lying disk underneath, and a
//! test can do without a disk.
//!
//! - [`OsStorage`] is the operating system's file system.
//! - [`MemStorage`] keeps files in memory, for tests. Its clones share them.
//! - [`Metered`] wraps any file and counts what passes through, in [`IoCounters`].
//!
//! # Invariants every implementation keeps
//!
//! 1. Offsets and lengths are in bytes, and no range ends after [`OFFSET_MAX`].
//! 2. Bytes are durable only after a `sync_*` that began after their write returned `Ok`, or after their own
//!    `write_durable_at` did. `write_back` and `wait_written` promise nothing.
//! 3. The next `sync_*` or `write_durable_at` of the file reports a write-back failure that was not reported
//!    before. In [`OsStorage`] such a failure then stays: every later sync of that handle fails too, since
//!    the kernel has already marked the lost pages clean.
//!
//! Lock order: the locks of each file and each storage are leaves. No method calls out while it holds one,
//! except that `MemStorage` locks a name table before the file that it names.

use crate::base::error::Error;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

mod acks;
mod bulk;
mod direct;
mod file_system;
pub(crate) mod forward;
mod gate;
mod lease;
mod mapping;
mod memory;
mod metered;
mod os;
mod pins;
mod random;
mod range;
mod retry;
mod system;
#[cfg(test)]
mod tests;
mod unsupported;
mod watched;

pub(crate) use bulk::BulkWrites;
pub(crate) use gate::Gate;
pub(crate) use lease::Lease;
pub(crate) use mapping::ENTER_BYTES;
pub use mapping::FileMapping;
pub use memory::MemStorage;
pub use metered::{IoCounters, Metered};
pub use os::OsStorage;
pub(crate) use pins::{pins_of_others, without};
pub(crate) use range::BLOCK_BYTES;
pub use range::OFFSET_MAX;
pub use retry::{read_fully, uninterrupted, write_fully};
pub(crate) use watched::Watched;

/// One open file. Several threads may call its methods at once. The caller orders writes to overlapping
/// ranges. Dropping the last reference closes the file and releases its lock.
///
/// ```
/// use azekura::storage::{File, MemStorage, OpenMode, Storage};
/// let file = MemStorage::default().open("a".as_ref(), OpenMode::CreateNew)?;
/// file.write_at(b"hello", 3)?;
/// file.sync_all()?;
/// let mut bytes = [1; 8];
/// file.read_at(&mut bytes, 0)?;
/// assert_eq!((&bytes, file.len()?), (b"\0\0\0hello", 8));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// [`Storage`] has an example of one that wraps another.
pub trait File: Send + Sync {
    /// Fills `buf` from `offset`. Interruptions are retried.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends first (`buf` is then unspecified), or the system's error.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `buf` at `offset`, growing the file if need be. Interruptions and short writes
    /// are continued.
    ///
    /// # Errors
    /// The system's error; any part of the range may then hold old or new bytes.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;

    /// As [`write_at`](File::write_at), of many bytes that are to stay and be read, in a range of which
    /// nobody needs what it has. Blocks of 2 MiB, at multiples of 2 MiB, are to stand in memory so that the
    /// system can map them by one entry each, where it can. That may take longer. The default is
    /// [`write_at`](File::write_at).
    ///
    /// # Errors
    /// As for [`write_at`](File::write_at).
    fn write_settled_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(buf, offset)
    }

    /// As [`write_at`](File::write_at), but returns when these bytes are durable. Other writes may not be.
    ///
    /// # Errors
    /// The system's error, also for an earlier write-back failure of the same file. The range may then hold
    /// anything. The write must not be tried again as if the file were clean.
    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;

    /// Asks the system to begin writing the dirty pages of a range to the disk, and returns. A hint.
    fn write_back(&self, offset: u64, len: u64);

    /// Waits until the dirty pages of a range have been handed to the disk. This bounds how many dirty pages
    /// there are. It does not make them durable. A failure is kept for the next sync to report.
    fn wait_written(&self, offset: u64, len: u64);

    /// Tells the system that a range will be read soon, so that it can begin to. A hint.
    fn will_read(&self, _offset: u64, _len: u64) {}

    /// Tells the system that nobody will read what a range has, so that it need not keep it in memory. The
    /// range then has any bytes. A hint. (Files of the system forget whole blocks of 2 MiB, at multiples of
    /// 2 MiB. Files in memory zero the range.)
    fn forget(&self, _offset: u64, _len: u64) {}

    /// Makes all earlier writes, and the length, durable. Never retried on failure.
    ///
    /// # Errors
    /// The system's error. What was written since the last success may then be lost.
    fn sync_data(&self) -> io::Result<()>;

    /// As [`sync_data`](File::sync_data), with all of the file's metadata.
    ///
    /// # Errors
    /// As for [`sync_data`](File::sync_data).
    fn sync_all(&self) -> io::Result<()>;

    /// The file's length in bytes.
    ///
    /// # Errors
    /// The system's error.
    fn len(&self) -> io::Result<u64>;

    /// What tells the file from all others that there are now, whatever names it has. None if that is not
    /// known.
    ///
    /// # Errors
    /// The system's error.
    fn identity(&self) -> io::Result<Option<[u64; 2]>> {
        Ok(None)
    }

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// The system's error.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file to `len` bytes, or extends it with zeros.
    ///
    /// # Errors
    /// The system's error.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reserves disk space for a range, and extends the file to the range's end if it is shorter. Existing
    /// bytes stay; the rest reads as zeros. Returns `false` where the file system cannot reserve: then the
    /// file is only extended, and a later write may still find the disk full.
    ///
    /// # Errors
    /// The system's error, a full disk among them; the file may have been extended in part.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool>;

    /// Gives the disk space of a range back. The range then reads as zeros, and the file's length stays.
    /// Where the system does not support this, nothing happens **and the bytes remain**.
    ///
    /// # Errors
    /// The system's error.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;

    /// What the file takes of the disk, and what the disk has left, as far as the system says. The limit of a
    /// quota does not show here.
    ///
    /// # Errors
    /// The system's error.
    fn disk_room(&self) -> io::Result<Option<DiskRoom>> {
        Ok(None)
    }

    /// Takes the file's advisory lock for this handle, alone or shared with other shared holders. Does not
    /// wait. Returns `false` if another handle, of any process, holds the lock in a way that forbids that. A
    /// handle that already has the lock changes its kind. If that fails, the handle may have lost the lock
    /// that it had.
    ///
    /// # Errors
    /// The system's error, for example where the file system has no locks.
    fn try_lock(&self, exclusive: bool) -> io::Result<bool>;

    /// Releases the lock, if this handle has it, while the handle stays in use. The default does nothing:
    /// where only handles hold a file's lock, the drop of the handle releases it.
    ///
    /// # Errors
    /// The system's error.
    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }

    /// Pins checkpoint `number` for this handle: until [`unpin`](File::unpin), or until the handle is
    /// dropped, other handles find it among [`pins`](File::pins). A handle may pin one several times. When
    /// this returns, nothing that is read afterwards is older than what others had written before they last
    /// asked for pins and did not find this one.
    ///
    /// # Errors
    /// `Unsupported` where there is no such thing, which is the default; the system's error.
    fn pin(&self, _number: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Gives up one pin of checkpoint `number`.
    fn unpin(&self, _number: u64) {}

    /// The checkpoints that other handles, of any process, have pinned, in ascending order. Where nobody can
    /// pin there are none.
    ///
    /// # Errors
    /// The system's error.
    fn pins(&self) -> io::Result<Vec<RangeInclusive<u64>>> {
        Ok(Vec::new())
    }

    /// Says that whoever has this handle has, durably and elsewhere, all commits up to this one. `None`: that
    /// is of no interest any more. Until then, or until the handle is dropped, other handles hear of it
    /// ([`acknowledged`](File::acknowledged)). A commit that was acknowledged once stays so.
    ///
    /// # Errors
    /// `Unsupported` where there is no such thing, which is the default; the system's error.
    fn acknowledge(&self, _commit: Option<u64>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The newest commit that all other handles, of any process, have acknowledged that acknowledge any. None
    /// if none does.
    ///
    /// # Errors
    /// The system's error.
    fn acknowledged(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }

    /// The file's bytes where the system keeps them, if it can map them.
    fn mapping(&self) -> Option<Arc<FileMapping>> {
        None
    }
}

/// What [`File::disk_room`] tells.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-room-{}.azk", std::process::id()));
/// use azekura::storage::{OpenMode, OsStorage, Storage};
/// let file = OsStorage.open(&path, OpenMode::CreateNew)?;
/// file.write_at(&[7; 4096], 0)?;
/// if let Some(room) = file.disk_room()? {
///     println!("{} of {} bytes take room, {} are left", room.taken_bytes, room.len, room.free_bytes);
///     assert_eq!(room.len, 4096);
/// }
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRoom {
    /// The file's length.
    pub len: u64,
    /// Bytes of the disk that the file takes: fewer than its length where it has holes, more where room is
    /// reserved behind its end.
    pub taken_bytes: u64,
    /// Bytes that the file system has left, for all files.
    pub free_bytes: u64,
}

/// How [`Storage::open`] opens a file.
///
/// ```
/// use azekura::storage::{MemStorage, OpenMode, Storage};
/// let (disk, path) = (MemStorage::default(), "a".as_ref());
/// assert!(disk.open(path, OpenMode::ReadWrite).is_err(), "there is none");
/// disk.open(path, OpenMode::CreateNew)?;
/// assert!(disk.open(path, OpenMode::CreateNew).is_err(), "there is one");
/// assert!(disk.open(path, OpenMode::ReadOnly)?.write_at(b"x", 0).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading only.
    ReadOnly,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A file that must not exist yet, for reading and writing.
    CreateNew,
}

/// A place where files have names. One that wraps another sees all that the engine does with its disk:
///
/// ```
/// use azekura::storage::{File, IoCounters, MemStorage, Metered, OpenMode, Storage};
/// use azekura::{Db, Options, TableKind};
/// use std::path::Path;
/// use std::sync::{Arc, atomic::Ordering};
///
/// /// Files that count what passes through them. (A `File` of one's own could fail, or forget, instead.)
/// #[derive(Default)]
/// struct Counted {
///     files: MemStorage,
///     counters: Arc<IoCounters>,
/// }
///
/// impl Storage for Counted {
///     fn open(&self, path: &Path, mode: OpenMode) -> std::io::Result<Arc<dyn File>> {
///         Ok(Arc::new(Metered::new(self.files.open(path, mode)?, self.counters.clone())))
///     }
///
///     fn exists(&self, path: &Path) -> std::io::Result<bool> {
///         self.files.exists(path)
///     }
///
///     fn rename(&self, from: &Path, to: &Path, replace: bool) -> std::io::Result<()> {
///         self.files.rename(from, to, replace)
///     }
///
///     fn remove(&self, path: &Path) -> std::io::Result<()> {
///         self.files.remove(path)
///     }
///
///     fn sync_dir_of(&self, path: &Path) -> std::io::Result<()> {
///         self.files.sync_dir_of(path)
///     }
/// }
///
/// let disk = Counted::default();
/// let db = Db::open_on(&disk, "t.azk", Options::new())?;
/// let t = db.table("t", TableKind::Ordered)?;
/// let before = disk.counters.syncs.load(Ordering::Relaxed);
/// t.put("ada", "1815")?;
/// assert!(disk.counters.syncs.load(Ordering::Relaxed) > before, "it is durable");
/// # Ok::<(), azekura::Error>(())
/// ```
pub trait Storage: Send + Sync {
    /// Opens a regular file.
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists` for [`OpenMode::CreateNew`], `InvalidInput` for what is not a
    /// regular file, or the system's error.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// Whether the name exists.
    ///
    /// # Errors
    /// The system's error, if it cannot say.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Renames the file `from` to `to`, atomically. An existing `to` is replaced if `replace`. The change is
    /// durable after [`sync_dir_of`](Storage::sync_dir_of) of both.
    ///
    /// # Errors
    /// `NotFound`; `AlreadyExists` if `to` exists and `replace` is false; the system's error.
    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()>;

    /// Swaps the names of two files, atomically. The change is durable after
    /// [`sync_dir_of`](Storage::sync_dir_of) of both.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` where there is no such call, which is the default; the system's error.
    fn exchange(&self, _a: &Path, _b: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file's name. Open handles stay usable.
    ///
    /// # Errors
    /// `NotFound`, or the system's error.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the creations, renames and removals in the directory that holds `path` durable.
    ///
    /// # Errors
    /// The system's error.
    fn sync_dir_of(&self, path: &Path) -> io::Result<()>;

    /// Makes a directory, unless it is there. It is durable after [`sync_dir_of`](Storage::sync_dir_of).
    ///
    /// # Errors
    /// The system's error; `Unsupported` where there are no directories to be made, which is the default.
    fn create_dir(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The names in a directory, in no order. What is no UTF-8 is left out.
    ///
    /// # Errors
    /// The system's error; `Unsupported` where directories are not listed, which is the default.
    fn names_in(&self, _dir: &Path) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// A random number, for ids of files, seeds of hashes, and names that nobody else uses. It comes from the
    /// system. A simulator gives its own, to repeat a run byte by byte.
    ///
    /// # Errors
    /// The system's error.
    fn random(&self) -> io::Result<u64> {
        random::random()
    }
}

/// Whether a name leads to this file now. Where files cannot be told from each other, whether it leads to
/// one.
///
/// # Errors
/// The system's, but for a name that leads to no file.
pub(crate) fn is_named(storage: &dyn Storage, path: &Path, file: &dyn File) -> io::Result<bool> {
    match storage.open(path, OpenMode::ReadOnly) {
        Ok(there) => Ok(there.identity()? == file.identity()?),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Turns a failed read into the engine's error. A file that ends too early is damaged; the device is not to
/// blame.
pub(crate) fn read_error(e: std::io::Error, offset: u64) -> Error {
    if e.kind() == std::io::ErrorKind::UnexpectedEof {
        Error::corrupt("file", offset, "the file ends before this place")
    } else {
        Error::io("reading the database file", e)
    }
}
