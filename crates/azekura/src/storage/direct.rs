//! Small durable writes that bypass the system's page cache (`O_DIRECT`), through a second descriptor of the
//! file.
//!
//! Bytes that must be durable when the call returns need not be copied to the page cache first. Over blocks
//! that were written before, 4 KiB take some nine tenths of the time of a cached write, and less still beside
//! a bulk write to the same file (`benches/durable.rs`).
//!
//! **Readers see the same bytes.** The system writes back and drops its cached copy of these blocks, with
//! all of a folio in which they are, before such a write, and drops it again afterwards, in mappings too. If
//! it cannot drop a page, because somebody has dirtied a part of it, it writes through the page cache itself,
//! as durably. Nobody may dirty the same pages *during* the write: the next sync would then report an error
//! for bytes that may be stale. Nobody does. Mappings are read-only here, and on ext4 and XFS the kernel's
//! lock of the file keeps cached and direct writes apart. Of other file systems this is not known, so on
//! those all writes go through the page cache.
//!
//! **No error is missed.** The call reports its own failure. A write-back failure of other writes is reported
//! to each descriptor, so the first one still learns of it.
//!
//! Where the system has no such writes, or refuses the second descriptor, all writes go through the page
//! cache.

use super::range::len_of;
use super::uninterrupted;
use parking_lot::Mutex;
use rustix::io::Errno;
use std::fs;
use std::io::{self, IoSlice, Seek, SeekFrom};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The unit of offsets, lengths and addresses. No disk wants a larger one, and frames of the log are
/// multiples of it.
const BLOCK_BYTES: usize = 4096;
/// Longer writes gain little, and would need a longer buffer.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// The file's length, by a seek. If the file's state is asked for, the system gives the next write a time of
/// its own, and records it in the file system's journal. A durable write then waits for the journal too.
/// (Reads and writes here name their places, so the descriptor's own place is not used.)
fn file_bytes(mut file: &fs::File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

/// A block at an address from which disks can read.
#[derive(Clone)]
#[repr(C, align(4096))]
struct Block([u8; BLOCK_BYTES]);

/// The second descriptor of a file.
#[derive(Default)]
pub(super) struct Direct {
    /// Opened by the first write. None where that is refused.
    file: OnceLock<Option<fs::File>>,
    /// Whether the file system has refused such a write.
    refused: AtomicBool,
    /// Aligned memory for the bytes of a write. It grows to the longest write.
    blocks: Mutex<Vec<Block>>,
}

impl Direct {
    /// Whether there is a second descriptor.
    #[cfg(test)]
    pub(super) fn is_in_use(&self) -> bool {
        self.file.get().is_some_and(Option::is_some)
    }

    /// Writes durably, and says whether it did. If not, nothing is promised, and the caller writes everything
    /// in another way.
    pub(super) fn write(&self, file: &fs::File, buf: &[u8], offset: u64) -> io::Result<bool> {
        let is_small = (1..=WRITE_BYTES_MAX).contains(&buf.len());
        let is_whole =
            buf.len().is_multiple_of(BLOCK_BYTES) && offset.is_multiple_of(len_of(&[0; BLOCK_BYTES]));
        if !is_small || !is_whole || self.refused.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let Some(direct) = self.file.get_or_init(|| platform::reopen(file).ok()) else { return Ok(false) };
        // A write that makes the file longer goes the other way: before Linux 6.8 ext4 might forget the new
        // length.
        if file_bytes(direct)? < offset + len_of(buf) {
            return Ok(false);
        }
        let mut blocks = self.blocks.lock();
        let wanted = buf.len() / BLOCK_BYTES;
        if blocks.len() < wanted {
            blocks.resize(wanted, Block([0; BLOCK_BYTES]));
        }
        for (block, bytes) in blocks.iter_mut().zip(buf.chunks_exact(BLOCK_BYTES)) {
            block.0.copy_from_slice(bytes);
        }
        let parts: Vec<IoSlice<'_>> = blocks[..wanted].iter().map(|block| IoSlice::new(&block.0)).collect();
        match uninterrupted(|| Ok(platform::write(direct, &parts, offset)?)) {
            // After a short write the caller repeats the write through the page cache, and meets the reason
            // there.
            Ok(written) => Ok(written == buf.len()),
            Err(e) if Errno::from_io_error(&e).is_some_and(super::unsupported::is_unsupported) => {
                self.refused.store(true, Ordering::Relaxed);
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use rustix::fs::OFlags;
    use rustix::io::{Errno, ReadWriteFlags};
    use std::fs;
    use std::io::{self, IoSlice};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

    /// `EXT4_SUPER_MAGIC` and `XFS_SUPER_MAGIC` of `linux/magic.h`.
    const EXT4: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;

    /// Opens the same file again, even if it was renamed.
    pub(super) fn reopen(file: &fs::File) -> io::Result<fs::File> {
        let kind = u64::try_from(rustix::fs::fstatfs(file)?.f_type).unwrap_or(0);
        if kind != EXT4 && kind != XFS {
            return Err(Errno::OPNOTSUPP.into());
        }
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = OFlags::DIRECT.bits().cast_signed();
        let direct = fs::OpenOptions::new().write(true).custom_flags(flags).open(path)?;
        let (one, other) = (file.metadata()?, direct.metadata()?);
        if (one.dev(), one.ino()) == (other.dev(), other.ino()) {
            Ok(direct)
        } else {
            Err(Errno::NOENT.into())
        }
    }

    pub(super) fn write(file: &fs::File, parts: &[IoSlice<'_>], offset: u64) -> Result<usize, Errno> {
        rustix::io::pwritev2(file, parts, offset, ReadWriteFlags::DSYNC)
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use rustix::io::Errno;
    use std::fs;
    use std::io::{self, IoSlice};

    pub(super) fn reopen(_: &fs::File) -> io::Result<fs::File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn write(_: &fs::File, _: &[IoSlice<'_>], _: u64) -> Result<usize, Errno> {
        Err(Errno::NOSYS)
    }
}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn file(name: &str) -> fs::File {
        let path = std::env::temp_dir().join(format!("azekura-direct-{name}-{}", std::process::id()));
        let file =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        file
    }

    /// `n` blocks, each filled with another byte.
    fn blocks(n: usize, first: u8) -> Vec<u8> {
        (0..n).flat_map(|i| [first.wrapping_add(i as u8); BLOCK_BYTES]).collect()
    }

    /// Past the test runner, which keeps back what is printed by tests that pass.
    fn say_that_it_was_not_tried() {
        use std::io::Write as _;
        let folder = std::env::temp_dir();
        let line = format!("not tried: files in {} take no direct writes\n", folder.display());
        io::stderr().write_all(line.as_bytes()).unwrap();
    }

    #[test]
    fn what_is_written_past_the_systems_memory_is_read_through_it() {
        let file = file("read");
        let direct = Direct::default();
        file.write_all_at(&blocks(32, 0), 0).unwrap();
        for (n, at) in [(1, 3), (16, 8), (1, 3), (2, 31)] {
            // The system has older, dirty bytes of these blocks in its page cache.
            file.write_all_at(&blocks(n, 100), (at * BLOCK_BYTES) as u64).unwrap();
            let bytes = blocks(n, 200);
            if !direct.write(&file, &bytes, (at * BLOCK_BYTES) as u64).unwrap() {
                assert!(direct.refused.load(Ordering::Relaxed) || direct.file.get().unwrap().is_none());
                return say_that_it_was_not_tried();
            }
            let mut found = vec![0; bytes.len()];
            file.read_exact_at(&mut found, (at * BLOCK_BYTES) as u64).unwrap();
            assert!(found == bytes, "{n} blocks at {at}");
        }
        let mut before = [0; BLOCK_BYTES];
        file.read_exact_at(&mut before, 2 * BLOCK_BYTES as u64).unwrap();
        assert_eq!(before, [2; BLOCK_BYTES], "what is beside it stays");
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_mapping_shows_what_is_written_past_the_systems_memory() {
        let file = std::sync::Arc::new(file("mapped"));
        let (direct, mapping) = (Direct::default(), super::super::FileMapping::new(file.clone()));
        file.write_all_at(&blocks(64, 0), 0).unwrap();
        file.sync_all().unwrap();
        let at = mapping.at(0, 64 * BLOCK_BYTES).unwrap();
        // SAFETY: the file is long enough. It is written to only between two looks, and never through `at`.
        let seen = |block: usize| unsafe { at.as_ptr().add(block * BLOCK_BYTES).read_volatile() };
        for round in 1..50u8 {
            assert!(
                (0..64).all(
                    |block| seen(block) == if block == 7 && round > 1 { round + 99 } else { block as u8 }
                )
            );
            let bytes = blocks(1, round + 100);
            if !direct.write(&file, &bytes, 7 * BLOCK_BYTES as u64).unwrap() {
                return say_that_it_was_not_tried();
            }
            assert_eq!(seen(7), round + 100);
        }
    }

    #[test]
    fn what_is_not_whole_or_not_small_goes_another_way() {
        let file = file("whole");
        let direct = Direct::default();
        for (len, at) in [(0, 0), (100, 0), (BLOCK_BYTES, 512), (WRITE_BYTES_MAX + BLOCK_BYTES, 0)] {
            assert!(!direct.write(&file, &vec![1; len], at).unwrap(), "{len} at {at}");
        }
        assert_eq!(file.metadata().unwrap().len(), 0, "nothing was written");
    }

    #[test]
    fn a_file_that_refuses_is_asked_once() {
        let direct = Direct { file: OnceLock::from(None), ..Direct::default() };
        assert!(!direct.write(&file("refused"), &blocks(1, 0), 0).unwrap());
        let direct = Direct { refused: AtomicBool::new(true), ..Direct::default() };
        assert!(!direct.write(&file("refused"), &blocks(1, 0), 0).unwrap());
        assert!(direct.file.get().is_none(), "nor is it opened");
    }
}
