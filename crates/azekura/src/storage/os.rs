//! The operating system's files, through `pread`, `pwrite` and their kin.
//!
//! Two traps of Linux shape this file.
//!
//! 1. A failed `fdatasync` marks the pages that it could not write as clean, so a second one succeeds. So a
//!    failure is kept, and every later sync of the handle reports it again.
//! 2. `sync_file_range`, used here as a hint and to bound dirty pages, *consumes* a pending write-back error
//!    when it waits: the next `fdatasync` of the same handle would return `Ok` for lost bytes. So its errors
//!    are kept too, and the next sync reports them.
//!
//! What the platform lacks is replaced by something slower that keeps the same promise. The few calls that
//! differ between platforms are in `system.rs`.
//!
//! Lock order: `growth` is a leaf.

use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::base::codec::usize_of64;

use super::acks::Acks;
use super::direct::Direct;
#[cfg(all(test, not(loom)))]
use super::file_system::FileSystem;
use super::mapping::cached::has_dirty;
use super::pins::Pins;
use super::range::{end_of, len_of};
use super::system;
use super::unsupported::is_unsupported;
use super::{
    BLOCK_BYTES, DiskRoom, File, FileMapping, OpenMode, Storage, read_fully, uninterrupted, write_fully,
};

/// The unit in which the system counts the disk space of a file.
const STAT_BLOCK_BYTES: u64 = 512;

/// The most bytes that one call writes, unless they are to be durable when it returns, or are to stay. On a
/// machine that has been up for a while, a file system with large folios (ext4, XFS) must put free memory
/// together for a megabyte or more at once. Loads are 1.6 times (text) to twice (values of 4 KiB) as fast as
/// with calls of 4 MiB. A call also keeps its processor until it ends: readers beside updates at a fixed rate
/// have a fifth of the p99.
const CALL_BYTES_MAX: usize = 256 << 10;

/// What is to stay goes in calls of this length that begin at multiples of it. Where the file system has
/// large folios and such a piece of memory is free, it is one folio, which one entry maps: random gets take
/// 0.7 to 0.9 of the time (text, records of 44 bytes). On a machine whose host takes free pieces of this size
/// back, the calls take twice as long, so loads go in short ones.
const SETTLED_CALL_BYTES: usize = BLOCK_BYTES as usize;

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsStorage;

impl OsStorage {
    fn open_file(path: &Path, mode: OpenMode) -> io::Result<OsFile> {
        // Opening a named pipe would wait for its other end, so check first.
        if mode != OpenMode::CreateNew && !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut options = fs::OpenOptions::new();
        match mode {
            OpenMode::ReadOnly => options.read(true),
            OpenMode::ReadWrite => options.read(true).write(true),
            OpenMode::CreateNew => options.read(true).write(true).create_new(true),
        };
        Ok(OsFile::new(options.open(path)?))
    }

    /// Opens a file as if it stood on a file system of this kind.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn open_on_kind(path: &Path, mode: OpenMode, kind: u64) -> io::Result<Arc<dyn File>> {
        let mut file = OsStorage::open_file(path, mode)?;
        file.pins = Pins::on(FileSystem::of_kind(kind));
        file.acks = Acks::on(FileSystem::of_kind(kind));
        Ok(Arc::new(file))
    }
}

impl Storage for OsStorage {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(OsStorage::open_file(path, mode)?))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
        if replace {
            return fs::rename(from, to);
        }
        match system::rename_no_replace(from, to) {
            Err(errno) if is_unsupported(errno) => link_then_unlink(from, to),
            result => result.map_err(io::Error::from),
        }
    }

    fn exchange(&self, a: &Path, b: &Path) -> io::Result<()> {
        match system::exchange(a, b) {
            Err(errno) if is_unsupported(errno) => Err(io::ErrorKind::Unsupported.into()),
            result => result.map_err(io::Error::from),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir_of(&self, path: &Path) -> io::Result<()> {
        fs::File::open(parent_of(path))?.sync_all()
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made,
        }
    }

    fn names_in(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }
}

/// The directory that holds `path`. A bare name is in the current directory.
fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// A rename that never replaces, for systems without such a call: a hard link is refused if `to` exists.
pub(super) fn link_then_unlink(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from).inspect_err(|_| {
        // Back to one name, as before. If that fails too, both names remain, of the same file.
        let _ = fs::remove_file(to);
    })
}

/// An open file of the operating system.
struct OsFile {
    file: Arc<fs::File>,
    mapping: OnceLock<Arc<FileMapping>>,
    direct: Direct,
    /// The first failure to write bytes to the disk. Once it is set, no sync of this handle succeeds.
    failure: OnceLock<Errno>,
    /// Set once the system was found to lack `RWF_DSYNC`.
    no_durable_write: AtomicBool,
    /// Held while the length changes, so that growing by `set_len` never cuts the file.
    growth: Mutex<()>,
    /// The process that has locked the file. 0: none has.
    locked_by: AtomicU32,
    pins: Pins,
    acks: Acks,
}

/// Releases the lock. A lock belongs to the open file description, which forked processes share until they
/// call exec, or longer. So closing the descriptor is not enough: the process that took the lock releases it
/// here.
impl Drop for OsFile {
    fn drop(&mut self) {
        // If this fails: the file is closed next, which releases the lock too if nobody shares it.
        let _closed_next = self.unlock();
    }
}

impl OsFile {
    fn new(file: fs::File) -> OsFile {
        OsFile {
            file: Arc::new(file),
            mapping: OnceLock::new(),
            direct: Direct::default(),
            failure: OnceLock::new(),
            no_durable_write: AtomicBool::new(false),
            growth: Mutex::new(()),
            locked_by: AtomicU32::new(0),
            pins: Pins::default(),
            acks: Acks::default(),
        }
    }

    fn check_failure(&self) -> io::Result<()> {
        match self.failure.get() {
            Some(&errno) => Err(errno.into()),
            None => Ok(()),
        }
    }

    /// Keeps a sync's failure, so that no later sync succeeds.
    fn keep_failure<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            let _ = self.failure.set(Errno::from_io_error(error).unwrap_or(Errno::IO));
        })
    }

    /// Keeps a hint's failure. That the platform lacks the call is no failure: no bytes were lost.
    fn keep_hint_failure(&self, result: Result<(), Errno>) {
        match result {
            Err(errno) if !is_unsupported(errno) && errno != Errno::SPIPE => {
                let _ = self.failure.set(errno);
            }
            _ => {}
        }
    }

    /// Extends the file with a hole; never cuts it.
    fn grow_to(&self, end: u64) -> io::Result<()> {
        let _growth = self.growth.lock();
        if self.file.metadata()?.len() < end {
            self.file.set_len(end)?;
        }
        Ok(())
    }

    /// Writes with `RWF_DSYNC`. Returns `false` if the platform lacks it; then nothing is promised.
    fn try_write_dsync(&self, buf: &[u8], offset: u64) -> io::Result<bool> {
        let done = write_fully(buf, offset, |b, at| Ok(system::write_dsync(&self.file, b, at)?));
        match done {
            Err(e) if Errno::from_io_error(&e).is_some_and(is_unsupported) => Ok(false),
            done => done.map(|()| true),
        }
    }

    fn write_all(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        write_fully(buf, offset, |b, at| self.file.write_at(&b[..b.len().min(CALL_BYTES_MAX)], at))
    }

    /// Writes a block by one call. What the system has of these bytes in smaller pieces is dropped first, if
    /// all of it is on the disk, so far as no other process maps it.
    fn write_block(&self, block: &[u8], offset: u64) -> io::Result<()> {
        self.forget(offset, len_of(block));
        write_fully(block, offset, |b, at| self.file.write_at(b, at))
    }
}

impl File for OsFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        end_of(offset, len_of(buf))?;
        read_fully(buf, offset, |b, at| self.file.read_at(b, at))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        end_of(offset, len_of(buf))?;
        self.write_all(buf, offset)
    }

    fn write_settled_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        end_of(offset, len_of(buf))?;
        let (mut rest, mut at) = (buf, offset);
        while !rest.is_empty() {
            let to_multiple = SETTLED_CALL_BYTES - usize_of64(at % SETTLED_CALL_BYTES as u64);
            let (part, after) = rest.split_at(to_multiple.min(rest.len()));
            if part.len() == SETTLED_CALL_BYTES {
                self.write_block(part, at)?;
            } else {
                self.write_all(part, at)?;
            }
            (rest, at) = (after, at + len_of(part));
        }
        Ok(())
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        end_of(offset, len_of(buf))?;
        self.check_failure()?;
        if !self.no_durable_write.load(Ordering::Relaxed) {
            if self.keep_failure(self.direct.write(&self.file, buf, offset))? {
                return Ok(());
            }
            if self.keep_failure(self.try_write_dsync(buf, offset))? {
                return Ok(());
            }
            self.no_durable_write.store(true, Ordering::Relaxed);
        }
        self.keep_failure(self.write_all(buf, offset))?;
        self.keep_failure(self.file.sync_data())
    }

    fn write_back(&self, offset: u64, len: u64) {
        if len > 0 && end_of(offset, len).is_ok() {
            self.keep_hint_failure(system::write_back(&self.file, offset, len));
        }
    }

    fn wait_written(&self, offset: u64, len: u64) {
        if len > 0 && end_of(offset, len).is_ok() {
            self.keep_hint_failure(system::wait_written(&self.file, offset, len));
        }
    }

    fn will_read(&self, offset: u64, len: u64) {
        if end_of(offset, len).is_ok() {
            system::will_read(&self.file, offset, len);
        }
    }

    /// Only whole blocks go. Taking out a part of one that the system maps by one entry would take out the
    /// rest, which is read, and free nothing. Where the system says that something is not on the disk yet,
    /// all stays: it would begin to write that, which took up to 146 ms (66 µs for a block that is on the
    /// disk).
    fn forget(&self, offset: u64, len: u64) {
        let start = offset.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES);
        let end = offset.saturating_add(len) / BLOCK_BYTES * BLOCK_BYTES;
        let len = end.saturating_sub(start);
        if len == 0 || end_of(start, len).is_err() || has_dirty(&self.file, start, len) {
            return;
        }
        if let Some(mapping) = self.mapping.get() {
            mapping.leave(start, len);
        }
        system::forget(&self.file, start, len);
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check_failure()?;
        self.keep_failure(self.file.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.check_failure()?;
        self.keep_failure(self.file.sync_all())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn identity(&self) -> io::Result<Option<[u64; 2]>> {
        let metadata = self.file.metadata()?;
        Ok(Some([metadata.dev(), metadata.ino()]))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        end_of(len, 0)?;
        let _growth = self.growth.lock();
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        let end = end_of(offset, len)?;
        if len == 0 {
            return Ok(true);
        }
        match uninterrupted(|| Ok(system::allocate(&self.file, offset, len)?)) {
            Err(e) if Errno::from_io_error(&e).is_some_and(is_unsupported) => {
                self.grow_to(end).map(|()| false)
            }
            done => done.map(|()| true),
        }
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        end_of(offset, len)?;
        if len == 0 {
            return Ok(());
        }
        match uninterrupted(|| Ok(system::punch(&self.file, offset, len)?)) {
            Err(e) if Errno::from_io_error(&e).is_some_and(is_unsupported) => Ok(()),
            done => done,
        }
    }

    fn disk_room(&self) -> io::Result<Option<DiskRoom>> {
        // The file first: bytes that are written between the two calls are missed, and not counted twice.
        let file = self.file.metadata()?;
        let disk = rustix::fs::fstatvfs(&self.file)?;
        let taken_bytes = file.blocks().saturating_mul(STAT_BLOCK_BYTES);
        let free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
        Ok(Some(DiskRoom { len: file.len(), taken_bytes, free_bytes }))
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        let operation = if exclusive {
            FlockOperation::NonBlockingLockExclusive
        } else {
            FlockOperation::NonBlockingLockShared
        };
        match uninterrupted(|| Ok(rustix::fs::flock(&self.file, operation)?)) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
            done => {
                done?;
                self.locked_by.store(std::process::id(), Ordering::Relaxed);
                Ok(true)
            }
        }
    }

    fn unlock(&self) -> io::Result<()> {
        if self.locked_by.load(Ordering::Relaxed) == std::process::id() {
            self.locked_by.store(0, Ordering::Relaxed);
            rustix::fs::flock(&self.file, FlockOperation::Unlock)?;
        }
        Ok(())
    }

    fn pin(&self, number: u64) -> io::Result<()> {
        self.pins.pin(&self.file, number)
    }

    fn unpin(&self, number: u64) {
        self.pins.unpin(&self.file, number);
    }

    fn pins(&self) -> io::Result<Vec<RangeInclusive<u64>>> {
        Pins::of_others(&self.file)
    }

    fn acknowledge(&self, commit: Option<u64>) -> io::Result<()> {
        self.acks.acknowledge(&self.file, commit)
    }

    fn acknowledged(&self) -> io::Result<Option<u64>> {
        self.acks.of_others(&self.file)
    }

    fn mapping(&self) -> Option<Arc<FileMapping>> {
        let mapping = self.mapping.get_or_init(|| Arc::new(FileMapping::new(self.file.clone())));
        // Not every system and file system can map files.
        mapping.at(0, 1).is_some().then(|| mapping.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch_file(name: &str) -> OsFile {
        let path = std::env::temp_dir().join(format!("azekura-os-{}-{name}", std::process::id()));
        let file = fs::File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        OsFile::new(file)
    }

    #[test]
    fn small_durable_writes_go_past_the_systems_memory_where_they_can() {
        let file = scratch_file("direct");
        file.write_at(&[0; 8192], 0).unwrap();
        let can = Direct::default().write(&file.file, &[1; 4096], 0).unwrap();
        file.write_durable_at(b"short", 0).unwrap();
        assert!(!file.direct.is_in_use());
        file.write_durable_at(&[2; 4096], 4096).unwrap();
        assert_eq!(file.direct.is_in_use(), can);
        assert!(
            !Direct::default().write(&file.file, &[3; 4096], 8192).unwrap(),
            "it would make the file longer"
        );
        file.write_durable_at(&[3; 4096], 8192).unwrap();
        assert_eq!(file.len().unwrap(), 12_288);
    }

    #[test]
    fn a_failure_seen_by_a_hint_fails_every_later_sync() {
        let file = scratch_file("hint");
        file.keep_hint_failure(Err(Errno::NOSYS));
        file.keep_hint_failure(Err(Errno::SPIPE));
        file.keep_hint_failure(Ok(()));
        file.sync_data().unwrap();
        file.keep_hint_failure(Err(Errno::IO));
        for _ in 0..2 {
            let io = Some(Errno::IO.raw_os_error());
            assert_eq!(file.sync_data().unwrap_err().raw_os_error(), io);
            assert_eq!(file.sync_all().unwrap_err().raw_os_error(), io);
            let durable = file.write_durable_at(b"x", 0);
            assert_eq!(durable.unwrap_err().raw_os_error(), io);
        }
        file.write_at(b"x", 0).unwrap();
    }

    #[test]
    fn without_its_flag_a_durable_write_still_writes() {
        let file = scratch_file("plain");
        file.no_durable_write.store(true, Ordering::Relaxed);
        file.write_durable_at(b"xyz", 5).unwrap();
        assert_eq!(file.len().unwrap(), 8);
    }

    #[test]
    fn growing_without_reservation_never_cuts() {
        let file = scratch_file("grow");
        file.grow_to(100).unwrap();
        file.grow_to(50).unwrap();
        assert_eq!(file.len().unwrap(), 100);
    }

    /// A fork copies the handle as a clone does: both have the same open file description.
    #[test]
    fn a_copy_of_the_handle_in_a_forked_process_keeps_no_lock() {
        let path = std::env::temp_dir().join(format!("azekura-forked-lock-{}", std::process::id()));
        let options = fs::File::options().read(true).write(true).create(true).truncate(true).clone();
        let open = || OsFile::new(options.open(&path).unwrap());
        let first = open();
        assert!(first.try_lock(true).unwrap());
        let copy = first.file.try_clone().unwrap();
        assert!(!open().try_lock(true).unwrap());
        drop(first);
        assert!(open().try_lock(true).unwrap());
        drop(copy);
        fs::remove_file(&path).unwrap();
    }
}
