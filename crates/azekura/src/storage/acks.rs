//! Acknowledgements: how a synchronous mirror says, without writing to the file, which commits it has.
//!
//! A synchronous mirror holds a shared lock of the system on the byte `ACKS_AT + N` for each commit N that it
//! lacks: from the first of them to the last number that there can be. When it has made more of them durable
//! it gives up the beginning of that range. So a writer asks the system for one byte, the last. If nobody
//! holds it there is no such mirror. Else the lock's beginning tells what its holder has.
//!
//! These are locks of the same kind as pins (`pins.rs`), before these, and far behind the end of any file. So
//! the system drops the lock of a mirror however its process ends, and finds it in every container.

use super::file_system::FileSystem;
use super::pins::{PINS_AT, platform};
use parking_lot::Mutex;
use std::fs;
use std::io;

/// Where the lock of commit 0 would be.
const ACKS_AT: u64 = 1 << 61;
/// Where that of the last possible commit is. The byte behind it is nobody's, so that the system never makes
/// one lock of these and a pin.
const LAST: u64 = PINS_AT - 2;

/// What one open file acknowledges.
#[derive(Default)]
pub(super) struct Acks {
    /// The first commit that it lacks, if it acknowledges any.
    lacks_from: Mutex<Option<u64>>,
    file_system: FileSystem,
}

impl Acks {
    /// Those of a file on this file system, whatever the system says.
    #[cfg(test)]
    pub(super) fn on(file_system: FileSystem) -> Acks {
        Acks { lacks_from: Mutex::default(), file_system }
    }

    /// Acknowledges all commits up to this one, or none any more.
    pub(super) fn acknowledge(&self, file: &fs::File, commit: Option<u64>) -> io::Result<()> {
        let mut lacks_from = self.lacks_from.lock();
        let Some(commit) = commit else {
            if lacks_from.is_some() {
                platform::set_lock(file, (ACKS_AT, LAST), false)?;
                *lacks_from = None;
            }
            return Ok(());
        };
        if commit >= LAST - ACKS_AT {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let next = commit + 1;
        match *lacks_from {
            Some(from) if next <= from => return Ok(()),
            Some(from) => platform::set_lock(file, (ACKS_AT + from, ACKS_AT + commit), false)?,
            None => {
                self.file_system.check_locks(file)?;
                platform::set_lock(file, (ACKS_AT + next, LAST), true)?;
            }
        }
        *lacks_from = Some(next);
        Ok(())
    }

    /// The newest commit that all others have who acknowledge any.
    pub(super) fn of_others(&self, file: &fs::File) -> io::Result<Option<u64>> {
        if !self.file_system.has_local_locks(file) {
            // No mirror is synchronous there.
            return Ok(None);
        }
        let (mut at, mut all_have) = (LAST, None);
        // The system names one lock, of whomever. The next one is asked whether it lacks the last that this
        // one has.
        while let Some((from, _)) = platform::lock_between(file, at, at)? {
            if from > at {
                return Err(io::ErrorKind::InvalidData.into());
            }
            // Another program's lock of the whole file may hide those behind it.
            let Some(has) = from.checked_sub(ACKS_AT + 1) else { return Ok(Some(0)) };
            (at, all_have) = (ACKS_AT + has, Some(has));
        }
        Ok(all_have)
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::super::pins::Pins;
    use super::*;

    #[test]
    fn the_one_that_has_least_counts_and_its_lock_goes_with_it() {
        let path = std::env::temp_dir().join(format!("azekura-acks-{}", std::process::id()));
        let options = fs::File::options().read(true).write(true).create(true).truncate(true).clone();
        let (writer, a, b) = (options.open(&path).unwrap(), fs::File::open(&path).unwrap(), Acks::default());
        let (other, acks) = (fs::File::open(&path).unwrap(), Acks::default());
        let seen = || Acks::default().of_others(&writer).unwrap();
        assert_eq!(seen(), None);
        acks.acknowledge(&a, Some(7)).unwrap();
        assert_eq!(seen(), Some(7));
        assert_eq!(Acks::default().of_others(&a).unwrap(), None, "its own does not count");
        b.acknowledge(&other, Some(3)).unwrap();
        assert_eq!(seen(), Some(3));
        b.acknowledge(&other, Some(9)).unwrap();
        assert_eq!(seen(), Some(7));
        acks.acknowledge(&a, Some(5)).unwrap();
        assert_eq!(seen(), Some(7), "nobody unlearns a commit");
        acks.acknowledge(&a, Some(12)).unwrap();
        assert_eq!(seen(), Some(9));
        drop(other);
        assert_eq!(seen(), Some(12));
        let pins = Pins::default();
        pins.pin(&a, 0).unwrap();
        assert_eq!((seen(), Pins::of_others(&writer).unwrap()), (Some(12), vec![0..=0]));
        acks.acknowledge(&a, None).unwrap();
        assert_eq!((seen(), Pins::of_others(&writer).unwrap()), (None, vec![0..=0]));
        acks.acknowledge(&a, Some(0)).unwrap();
        assert_eq!(seen(), Some(0));
        assert!(acks.acknowledge(&a, Some(LAST - ACKS_AT)).is_err(), "there is no such commit");
        drop(a);
        assert_eq!(seen(), None);
        let whole = fs::File::open(&path).unwrap();
        platform::set_lock(&whole, (0, LAST), true).unwrap();
        assert_eq!(seen(), Some(0), "whoever locks all of the file may hide a mirror");
        fs::remove_file(&path).unwrap();
    }
}
