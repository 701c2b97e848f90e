//! The calls that differ between systems. The callers have checked that ranges end at or before `OFFSET_MAX`.

#[cfg(target_os = "linux")]
pub(super) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(super) use other::*;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{c_int, c_uint};
    use std::fs;
    use std::io::IoSlice;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use rustix::fs::{CWD, FallocateFlags, RenameFlags};
    use rustix::io::{Errno, ReadWriteFlags};

    /// `SYNC_FILE_RANGE_WAIT_BEFORE`, `_WRITE` and `_WAIT_AFTER` of `linux/fs.h`.
    const WAIT_BEFORE: c_uint = 1;
    const WRITE: c_uint = 2;
    const WAIT_AFTER: c_uint = 4;

    // `rustix` has no `sync_file_range`. glibc and musl, which `std` links, declare it with 64-bit
    // offsets on every architecture.
    unsafe extern "C" {
        fn sync_file_range(fd: c_int, offset: i64, len: i64, flags: c_uint) -> c_int;
    }

    fn sync_range(file: &fs::File, offset: u64, len: u64, flags: c_uint) -> Result<(), Errno> {
        let offset = i64::try_from(offset).map_err(|_| Errno::INVAL)?;
        let len = i64::try_from(len).map_err(|_| Errno::INVAL)?;
        // SAFETY: the call takes no pointers, and `file` keeps the descriptor open throughout.
        if unsafe { sync_file_range(file.as_raw_fd(), offset, len, flags) } == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    pub(in crate::storage) fn write_back(file: &fs::File, offset: u64, len: u64) -> Result<(), Errno> {
        sync_range(file, offset, len, WRITE)
    }

    pub(in crate::storage) fn wait_written(file: &fs::File, offset: u64, len: u64) -> Result<(), Errno> {
        sync_range(file, offset, len, WAIT_BEFORE | WRITE | WAIT_AFTER)
    }

    pub(in crate::storage) fn will_read(file: &fs::File, offset: u64, len: u64) {
        // A length of 0 would mean the whole file. If the system refuses, reads are slower, no more.
        if let Some(len) = std::num::NonZeroU64::new(len) {
            let _refused = rustix::fs::fadvise(file, offset, Some(len), rustix::fs::Advice::WillNeed);
        }
    }

    pub(in crate::storage) fn forget(file: &fs::File, offset: u64, len: u64) {
        // What is not on the disk yet stays, but the system may begin to write it.
        if let Some(len) = std::num::NonZeroU64::new(len) {
            let _refused = rustix::fs::fadvise(file, offset, Some(len), rustix::fs::Advice::DontNeed);
        }
    }

    pub(in crate::storage) fn write_dsync(file: &fs::File, buf: &[u8], offset: u64) -> Result<usize, Errno> {
        let bufs = [IoSlice::new(buf)];
        rustix::io::pwritev2(file, &bufs, offset, ReadWriteFlags::DSYNC)
    }

    pub(in crate::storage) fn allocate(file: &fs::File, offset: u64, len: u64) -> Result<(), Errno> {
        rustix::fs::fallocate(file, FallocateFlags::empty(), offset, len)
    }

    pub(in crate::storage) fn punch(file: &fs::File, offset: u64, len: u64) -> Result<(), Errno> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(file, flags, offset, len)
    }

    pub(in crate::storage) fn rename_no_replace(from: &Path, to: &Path) -> Result<(), Errno> {
        rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
    }

    pub(in crate::storage) fn exchange(a: &Path, b: &Path) -> Result<(), Errno> {
        rustix::fs::renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)
    }
}

/// Other Unixes. What they lack is unsupported, so that the callers fall back.
#[cfg(not(target_os = "linux"))]
mod other {
    use std::fs;
    use std::path::Path;

    use rustix::io::Errno;

    pub(in crate::storage) fn write_back(_: &fs::File, _: u64, _: u64) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    pub(in crate::storage) fn wait_written(_: &fs::File, _: u64, _: u64) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    pub(in crate::storage) fn will_read(_: &fs::File, _: u64, _: u64) {}

    pub(in crate::storage) fn forget(_: &fs::File, _: u64, _: u64) {}

    pub(in crate::storage) fn write_dsync(_: &fs::File, _: &[u8], _: u64) -> Result<usize, Errno> {
        Err(Errno::NOSYS)
    }

    pub(in crate::storage) fn allocate(_: &fs::File, _: u64, _: u64) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    pub(in crate::storage) fn punch(_: &fs::File, _: u64, _: u64) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    pub(in crate::storage) fn rename_no_replace(_: &Path, _: &Path) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    pub(in crate::storage) fn exchange(_: &Path, _: &Path) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }
}
