//! Reading under pins that the writer may revoke.
//!
//! A writer with limits for what followers keep announces in the file which pins it honours, and only then
//! uses the space of the others. So who reads under such a pin looks at the announcement *after* each read:
//! if the pin was honoured then, nothing that was read had been written over. Else the read fails with
//! `SnapshotTooOld`, whatever it has brought. This holds for copies only. Bytes that somebody goes on to read
//! in a mapping may change at any moment. So such a file gives no mapping.
//!
//! What is read through it may be named by several checkpoints that this handle has pinned, for a follower
//! keeps its runs when it goes on to the next one. One of them that is pinned and honoured is enough. A
//! checkpoint that was pinned after the read began proves nothing of the bytes that were read. So which ones
//! name them is asked before the read, and which of these are pinned after it.

use super::{DiskRoom, File, FileMapping};
use crate::base::error::Error;
use crate::base::process::Process;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Reads from the file which pins its writers honour: those of this checkpoint and of later ones.
type HonouredFrom = fn(&dyn File) -> io::Result<u64>;

/// A file that is read under pins that may be revoked.
pub(crate) struct Watched {
    file: Arc<dyn File>,
    /// How many times the handle has pinned each checkpoint.
    pinned: Arc<Mutex<BTreeMap<u64, u32>>>,
    honoured_from: HonouredFrom,
    /// The newest checkpoint that names what is read through this, and was pinned.
    named_by: AtomicU64,
    process: Process,
}

impl Watched {
    /// For what checkpoint `number` names.
    pub(crate) fn new(file: Arc<dyn File>, honoured_from: HonouredFrom, number: u64) -> Watched {
        let (pinned, named_by) = (Arc::default(), AtomicU64::new(number));
        Watched { file, pinned, honoured_from, named_by, process: Process::current() }
    }

    /// The same file, for what checkpoint `number` names.
    pub(crate) fn of(&self, number: u64) -> Watched {
        let Watched { ref file, ref pinned, honoured_from, process, .. } = *self;
        let named_by = AtomicU64::new(number);
        Watched { file: file.clone(), pinned: pinned.clone(), honoured_from, named_by, process }
    }

    /// The same, for a part of what is read through this.
    pub(crate) fn of_part(&self) -> Watched {
        self.of(self.named_by.load(Ordering::Acquire))
    }

    /// Checkpoint `number` names what is read through this, too, and is pinned.
    pub(crate) fn is_named_by(&self, number: u64) {
        self.named_by.fetch_max(number, Ordering::AcqRel);
    }

    /// An error if the writer may have used the space that is read here.
    pub(crate) fn check(&self) -> io::Result<()> {
        if !self.process.is_current() {
            return Err(io::Error::other(Error::Forked));
        }
        self.check_after(self.named_by.load(Ordering::Acquire), Ok(()))
    }

    fn check_after<T>(&self, named_by: u64, read: io::Result<T>) -> io::Result<T> {
        if !self.process.is_current() {
            // The file below has refused it. The thread that held the lock at the fork may not be there.
            return read;
        }
        // The bytes are in place before the looks, and the pins are looked at before the announcement.
        fence(Ordering::SeqCst);
        let pinned = self.pinned.lock().range(..=named_by).next_back().map(|(&number, _)| number);
        fence(Ordering::SeqCst);
        let honoured_from = (self.honoured_from)(self.file.as_ref())?;
        if pinned.is_some_and(|pinned| pinned >= honoured_from) {
            return read;
        }
        let checkpoint = pinned.unwrap_or(named_by);
        Err(io::Error::other(Error::SnapshotTooOld { checkpoint, honoured_from }))
    }
}

impl File for Watched {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let named_by = self.named_by.load(Ordering::Acquire);
        self.check_after(named_by, self.file.read_at(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(buf, offset)
    }

    fn write_settled_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_settled_at(buf, offset)
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_durable_at(buf, offset)
    }

    fn write_back(&self, offset: u64, len: u64) {
        self.file.write_back(offset, len);
    }

    fn wait_written(&self, offset: u64, len: u64) {
        self.file.wait_written(offset, len);
    }

    fn will_read(&self, offset: u64, len: u64) {
        self.file.will_read(offset, len);
    }

    fn forget(&self, offset: u64, len: u64) {
        self.file.forget(offset, len);
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn len(&self) -> io::Result<u64> {
        let named_by = self.named_by.load(Ordering::Acquire);
        self.check_after(named_by, self.file.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.file.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.punch(offset, len)
    }

    fn disk_room(&self) -> io::Result<Option<DiskRoom>> {
        self.file.disk_room()
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        self.file.try_lock(exclusive)
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn pin(&self, number: u64) -> io::Result<()> {
        self.file.pin(number)?;
        *self.pinned.lock().entry(number).or_insert(0) += 1;
        Ok(())
    }

    fn unpin(&self, number: u64) {
        if !self.process.is_current() {
            // The thread that held the lock at the fork does not exist in this process.
            return;
        }
        {
            let mut pinned = self.pinned.lock();
            if let Some(count) = pinned.get_mut(&number) {
                *count -= 1;
                if *count == 0 {
                    pinned.remove(&number);
                }
            }
        }
        self.file.unpin(number);
    }

    fn pins(&self) -> io::Result<Vec<RangeInclusive<u64>>> {
        self.file.pins()
    }

    /// None: see above.
    fn mapping(&self) -> Option<Arc<FileMapping>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MemStorage, OpenMode, Storage};
    use super::*;
    use std::path::Path;

    /// The announcement stands in the file's first bytes, what is read behind it.
    fn honoured_from(file: &dyn File) -> io::Result<u64> {
        let mut bytes = [0; 8];
        file.read_at(&mut bytes, 0)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn watched(number: u64) -> (Arc<dyn File>, Watched) {
        let storage = MemStorage::default();
        let file = storage.open(Path::new("f"), OpenMode::CreateNew).unwrap();
        file.write_at(&[0; 16], 0).unwrap();
        (file.clone(), Watched::new(file, honoured_from, number))
    }

    fn is_too_old(read: io::Result<()>) -> bool {
        match read.map_err(|e| Error::io("reading", e)) {
            Ok(()) => false,
            Err(Error::SnapshotTooOld { .. }) => true,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_a_revoked_pin_kept_is_not_read() {
        let (file, watched) = watched(5);
        let announce = |number: u64| file.write_at(&number.to_le_bytes(), 0).unwrap();
        watched.pin(5).unwrap();
        let read = |watched: &Watched| watched.read_at(&mut [0; 8], 8);
        assert!(!is_too_old(read(&watched)));
        announce(5);
        assert!(!is_too_old(read(&watched)));
        announce(6);
        assert!(is_too_old(read(&watched)));
        assert!(is_too_old(watched.read_at(&mut [0; 8], 1000)), "the file was cut");
        assert!(is_too_old(watched.len().map(drop)));
        assert!(is_too_old(watched.check()));
    }

    #[test]
    fn one_honoured_pin_of_those_that_name_it_is_enough() {
        let (file, run) = watched(5);
        let announce = |number: u64| file.write_at(&number.to_le_bytes(), 0).unwrap();
        run.pin(5).unwrap();
        let newer = run.of(8);
        newer.pin(8).unwrap();
        announce(7);
        assert!(!is_too_old(newer.check()));
        assert!(is_too_old(run.check()), "checkpoint 8 does not name it");
        run.is_named_by(8);
        assert!(!is_too_old(run.check()) && !is_too_old(run.of_part().check()));
        newer.unpin(8);
        assert!(is_too_old(run.check()), "nobody keeps it");
        announce(4);
        assert!(!is_too_old(run.check()));
        run.unpin(5);
        assert!(is_too_old(run.check()));
    }
}
