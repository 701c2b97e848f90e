//! Pins: how a reader says, without writing to the file, which checkpoint it reads.
//!
//! A pin of checkpoint N is a shared lock of the system on the single byte `PINS_AT + N`, far behind the end
//! of any file. It is a lock of the open file description (`F_OFD_SETLK`). So the system drops it when the
//! last descriptor goes, however its process ends, and whoever asks for locks finds it in every container
//! that has the file. (A forked child shares the description. Its parent's pins stay until both are gone, or
//! have called exec.) Nobody waits for such a lock: shared ones do not exclude each other, and no other kind
//! is ever taken.
//!
//! These locks and those of `flock` do not see each other. A second lock of one description on the same byte
//! is the same lock. So the pins of one handle are counted, and the last one gives the lock up.
//!
//! The order of things, with the fences that the kernel's own locks do not promise: a reader pins, and then
//! reads the superblock once more. A writer writes the superblock, and then asks for pins. So either the
//! writer finds the pin, or the reader finds the newer superblock.

use super::File;
use super::file_system::FileSystem;
use crate::base::fault::fault;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{Ordering, fence};

/// Where the lock of checkpoint 0 would be. Numbers of superblocks are smaller than this, so that every lock
/// lies below the largest offset.
pub(super) const PINS_AT: u64 = 1 << 62;

/// The checkpoints that other handles have pinned. Where the system has no such locks nobody can pin, so
/// there are none.
///
/// # Errors
/// Any other error of the system's. Then there may be pins.
pub(crate) fn pins_of_others(file: &dyn File) -> io::Result<Vec<RangeInclusive<u64>>> {
    if fault!("ignore_pins") {
        return Ok(Vec::new());
    }
    match file.pins() {
        // What `ENOSYS` and `EOPNOTSUPP` become, and `EINVAL`, by which a kernel says that it knows no such
        // call.
        Err(e) if matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => {
            Ok(Vec::new())
        }
        found => found,
    }
}

/// What is left of pins without those of some checkpoints.
pub(crate) fn without(pins: Vec<RangeInclusive<u64>>, revoked: &Range<u64>) -> Vec<RangeInclusive<u64>> {
    if revoked.is_empty() {
        return pins;
    }
    let mut left = Vec::new();
    for pin in pins {
        let (first, last) = (*pin.start(), *pin.end());
        if first < revoked.start {
            left.push(first..=last.min(revoked.start - 1));
        }
        if last >= revoked.end {
            left.push(first.max(revoked.end)..=last);
        }
    }
    left
}

/// The pins of one open file.
#[derive(Default)]
pub(super) struct Pins {
    /// How many times each checkpoint is pinned by this handle.
    counts: Mutex<BTreeMap<u64, u32>>,
    file_system: FileSystem,
}

impl Pins {
    /// Those of a file on this file system, whatever the system says.
    #[cfg(test)]
    pub(super) fn on(file_system: FileSystem) -> Pins {
        Pins { counts: Mutex::default(), file_system }
    }

    /// Pins a checkpoint for this handle.
    pub(super) fn pin(&self, file: &fs::File, number: u64) -> io::Result<()> {
        if number >= PINS_AT {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.file_system.check_locks(file)?;
        let mut counts = self.counts.lock();
        let count = counts.entry(number).or_insert(0);
        if *count == 0
            && let Err(e) = platform::set_lock(file, (PINS_AT + number, PINS_AT + number), true)
        {
            counts.remove(&number);
            return Err(e);
        }
        *count += 1;
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Gives one pin of a checkpoint up.
    pub(super) fn unpin(&self, file: &fs::File, number: u64) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&number);
                // If the system refuses, the lock goes with the descriptor.
                let _kept_longer = platform::set_lock(file, (PINS_AT + number, PINS_AT + number), false);
            }
        }
    }

    /// The checkpoints that other handles have pinned, in ascending order.
    pub(super) fn of_others(file: &fs::File) -> io::Result<Vec<RangeInclusive<u64>>> {
        fence(Ordering::SeqCst);
        let mut found = Vec::new();
        let mut gaps = vec![(0, PINS_AT - 1)];
        // The system names one lock at a time, and none is the first in any order. What is beside it is asked
        // for next. Without pins this is one call.
        while let Some((first, last)) = gaps.pop() {
            let Some((from, to)) = platform::lock_between(file, PINS_AT + first, PINS_AT + last)? else {
                continue;
            };
            let (from, to) = (from.saturating_sub(PINS_AT).max(first), to.saturating_sub(PINS_AT).min(last));
            if from > to {
                return Err(io::ErrorKind::InvalidData.into());
            }
            found.push(from..=to);
            if from > first {
                gaps.push((first, from - 1));
            }
            if to < last {
                gaps.push((to + 1, last));
            }
        }
        found.sort_unstable_by_key(|range| *range.start());
        Ok(found)
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(super) mod platform {
    use std::fs;
    use std::io;
    use std::os::fd::AsRawFd;

    fn request(kind: i32, first: u64, bytes: u64) -> io::Result<libc::flock> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        // SAFETY: all of its fields are numbers, for which zero is a value.
        let mut request: libc::flock = unsafe { std::mem::zeroed() };
        request.l_type = i16::try_from(kind).map_err(invalid)?;
        request.l_whence = i16::try_from(libc::SEEK_SET).map_err(invalid)?;
        request.l_start = i64::try_from(first).map_err(invalid)?;
        request.l_len = i64::try_from(bytes).map_err(invalid)?;
        Ok(request)
    }

    /// Takes a shared lock on the bytes from the first to the last, or gives that up.
    pub(in crate::storage) fn set_lock(
        file: &fs::File,
        (first, last): (u64, u64),
        shared: bool,
    ) -> io::Result<()> {
        let kind = if shared { libc::F_RDLCK } else { libc::F_UNLCK };
        let request = request(kind, first, last - first + 1)?;
        // SAFETY: `file` keeps the descriptor open, and the request lives throughout the call, which reads
        // it.
        let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const request) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The first and the last byte of some lock of others on bytes `first` to `last`.
    pub(in crate::storage) fn lock_between(
        file: &fs::File,
        first: u64,
        last: u64,
    ) -> io::Result<Option<(u64, u64)>> {
        let mut request = request(libc::F_WRLCK, first, last - first + 1)?;
        // SAFETY: as above. The call writes the lock that it has found to the request, which nobody else has.
        let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut request) };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        if i32::from(request.l_type) == libc::F_UNLCK {
            return Ok(None);
        }
        let (start, len) = (request.l_start.unsigned_abs(), request.l_len.unsigned_abs());
        // A length of zero reaches to the largest offset.
        let end = if len == 0 { i64::MAX.unsigned_abs() } else { start.saturating_add(len - 1) };
        Ok(Some((start, end)))
    }
}

/// Elsewhere nobody can pin, and so nobody has.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(super) mod platform {
    use std::fs;
    use std::io;

    pub(in crate::storage) fn set_lock(_: &fs::File, _: (u64, u64), _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(in crate::storage) fn lock_between(_: &fs::File, _: u64, _: u64) -> io::Result<Option<(u64, u64)>> {
        Ok(None)
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;

    fn ranges(file: &fs::File) -> Vec<(u64, u64)> {
        Pins::of_others(file).unwrap().into_iter().map(|range| range.into_inner()).collect()
    }

    #[test]
    fn pins_without_those_that_are_revoked() {
        let pins = || vec![1..=3, 5..=5, 6..=9, 12..=20];
        assert_eq!(without(pins(), &(0..0)), pins());
        assert_eq!(without(pins(), &(9..9)), pins());
        assert_eq!(without(pins(), &(2..8)), [1..=1, 8..=9, 12..=20]);
        assert_eq!(without(pins(), &(7..15)), [1..=3, 5..=5, 6..=6, 15..=20]);
        assert_eq!(without(pins(), &(13..14)), [1..=3, 5..=5, 6..=9, 12..=12, 14..=20]);
        assert_eq!(without(pins(), &(0..21)), []);
    }

    #[test]
    fn pins_are_counted_for_each_handle_and_go_with_it() {
        let path = std::env::temp_dir().join(format!("azekura-pins-{}", std::process::id()));
        let options = fs::File::options().read(true).write(true).create(true).truncate(true).clone();
        let open = || options.open(&path).unwrap();
        let (reader, other, writer) = (open(), fs::File::open(&path).unwrap(), open());
        let (pins, others) = (Pins::default(), Pins::default());
        for number in [5, 5, 6, 9, PINS_AT - 1] {
            pins.pin(&reader, number).unwrap();
        }
        others.pin(&other, 5).unwrap();
        others.pin(&other, 0).unwrap();
        assert!(pins.pin(&reader, PINS_AT).is_err());
        assert_eq!(ranges(&reader), [(0, 0), (5, 5)], "its own are not among them");
        let last = (PINS_AT - 1, PINS_AT - 1);
        let found = ranges(&writer);
        let has = |number: u64| found.iter().any(|range| (range.0..=range.1).contains(&number));
        assert!(
            [0, 5, 6, 9, PINS_AT - 1].into_iter().all(has) && ![1, 4, 7, 8, 10].into_iter().any(has),
            "{found:?}"
        );
        others.unpin(&other, 5);
        pins.unpin(&reader, 5);
        assert_eq!(ranges(&writer), [(0, 0), (5, 6), (9, 9), last]);
        pins.unpin(&reader, 5);
        assert_eq!(ranges(&writer), [(0, 0), (6, 6), (9, 9), last]);
        drop(other);
        let copy = reader.try_clone().unwrap();
        drop(reader);
        assert_eq!(ranges(&writer), [(6, 6), (9, 9), last], "a forked child has the same description");
        drop(copy);
        assert_eq!(ranges(&writer), []);
        fs::remove_file(&path).unwrap();
    }
}
