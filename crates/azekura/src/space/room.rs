//! Room that can be written to. Where the disk has plenty, that is whatever the allocator gives. On a
//! **tight** disk, one that is nearly full, it is only what the file has already.
//!
//! The file may come to take what it has of the disk plus what the disk has left. This sum changes only when
//! others write to the disk, so it is looked up now and then. The allocator knows how much of it is taken.
//!
//! On a tight disk an extent is given out with its blocks. Room that somebody counts on is **secured** first:
//! the file gets blocks behind its end, which nobody else can take. Where the file system cannot reserve
//! blocks, its free space is believed, and a write may still find the disk full.
//!
//! Lock order: `growing`, then the space's lock. For everybody else both are leaves.

use super::{Extent, Space};
use crate::base::error::{Error, Result};
use crate::base::limits::{ALIGN_BYTES, align_up};
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Mutex, Rank};
use crate::storage::{BLOCK_BYTES, DiskRoom, File};
use std::sync::Arc;

/// The file grows by an eighth more than was asked for, so that it need not grow for each commit. Below, the
/// most that it grows ahead.
const AHEAD_PART: u64 = 8;
const AHEAD_BYTES_MAX: u64 = 4 << 20;
/// The file is cut by so many bytes at a time, where nothing is kept. (One call for all was seen to take
/// 75 ms, in which nobody gets space.)
const CUT_BYTES: u64 = 8 << 20;

/// The room of one file.
pub(crate) struct Room {
    file: Arc<dyn File>,
    pub(crate) space: Arc<Space>,
    /// The disk is tight while fewer bytes are left.
    tight_below: u64,
    tight: AtomicBool,
    /// How many bytes the file may come to take.
    bytes_max: AtomicU64,
    held_max: AtomicU64,
    /// See `most_bytes`.
    most_bytes: AtomicU64,
    /// Where the file may end, as far as that is known.
    end_max: AtomicU64,
    /// Whether the file system cannot reserve blocks.
    unreserving: AtomicBool,
    /// Held while the file's length is changed or looked up.
    growing: Mutex<()>,
}

impl Room {
    pub(crate) fn new(file: Arc<dyn File>, space: Arc<Space>, tight_below: u64) -> Arc<Room> {
        let unknown = || AtomicU64::new(u64::MAX);
        Arc::new(Room {
            file,
            space,
            tight_below,
            tight: AtomicBool::new(false),
            bytes_max: unknown(),
            held_max: unknown(),
            most_bytes: AtomicU64::new(0),
            end_max: unknown(),
            unreserving: AtomicBool::new(false),
            growing: Mutex::ranked(Rank::Growing, ()),
        })
    }

    /// Whether the disk is nearly full.
    #[inline(always)]
    pub(crate) fn is_tight(&self) -> bool {
        self.tight.load(Ordering::Relaxed)
    }

    /// Bytes of the file that are taken.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.space.taken_bytes()
    }

    /// Bytes that are left to take, in the file and beyond it.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed).saturating_sub(self.taken_bytes())
    }

    /// Bytes that are left, and those that are when nobody reads any more what is needless.
    pub(crate) fn bytes_soon(&self) -> u64 {
        self.bytes().saturating_add(self.space.needless_bytes())
    }

    /// The most of `bytes_soon` since `forget_most_bytes`, as far as anybody looked.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.most_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn forget_most_bytes(&self) {
        self.most_bytes.store(0, Ordering::Relaxed);
    }

    fn note_bytes(&self) {
        self.most_bytes.fetch_max(self.bytes_soon(), Ordering::Relaxed);
    }

    /// Looks up how much the disk has left. If the file system cannot say, there is plenty.
    pub(crate) fn look(&self) {
        let _growing = self.growing.lock();
        self.look_closely();
    }

    /// REQUIRES: `growing`.
    fn look_closely(&self) -> Option<DiskRoom> {
        // If the lookup fails, the last values stay.
        let Ok(found) = self.file.disk_room() else { return None };
        let reserves = !self.unreserving.load(Ordering::Relaxed);
        let (bytes, held, end) = found.map_or((u64::MAX, u64::MAX, u64::MAX), |disk| {
            let bytes = disk.taken_bytes.saturating_add(disk.free_bytes);
            let held = if reserves { disk.taken_bytes } else { bytes };
            (bytes, held, disk.len.saturating_add(disk.free_bytes))
        });
        self.bytes_max.store(bytes, Ordering::Relaxed);
        self.held_max.store(held, Ordering::Relaxed);
        self.end_max.store(end, Ordering::Relaxed);
        self.tight.store(self.bytes() < self.tight_below, Ordering::Relaxed);
        self.note_bytes();
        found
    }

    /// Free bytes of the file that have blocks.
    fn held_bytes(&self) -> u64 {
        self.held_max.load(Ordering::Relaxed).saturating_sub(self.taken_bytes())
    }

    /// Makes sure that the file has this many free bytes with blocks. False if it cannot.
    pub(crate) fn secure(&self, bytes: u64) -> bool {
        self.note_bytes();
        if self.held_bytes() >= bytes {
            return true;
        }
        if self.bytes() < bytes {
            return false;
        }
        let _growing = self.growing.lock();
        // Another thread may have grown the file meanwhile.
        let Some(disk) = self.look_closely().filter(|_| self.held_bytes() < bytes) else {
            return self.held_bytes() >= bytes;
        };
        // Extents that were taken and not yet written have no blocks either.
        let missing =
            align_up((bytes + self.taken_bytes()).saturating_sub(self.held_max.load(Ordering::Relaxed)));
        let ahead = (bytes / AHEAD_PART).min(AHEAD_BYTES_MAX) / ALIGN_BYTES * ALIGN_BYTES;
        let end = align_up(disk.len).max(self.space.end());
        for more in [missing + ahead, missing] {
            // An error of any kind means that there is no more room.
            if let Ok(reserved) = self.file.allocate(end, more) {
                self.note_reserved(reserved);
                break;
            }
        }
        self.look_closely();
        self.held_bytes() >= bytes
    }

    /// Cuts the file behind its last extent. Keeps `kept` free bytes with blocks: those that holes do not
    /// have stay behind the last extent.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn cut(&self, kept: u64) -> Result<()> {
        let _growing = self.growing.lock();
        if kept > 0 {
            self.look_closely();
        }
        let held = self.held_bytes();
        while !self.cut_step(held, kept)? {}
        if kept > 0 {
            self.look_closely();
        }
        Ok(())
    }

    /// Cuts what stands behind the last extent, or a part of it if nothing is kept: what is kept must be
    /// counted in the moment in which all else goes. True if that was all. Nobody gets space meanwhile.
    fn cut_step(&self, held: u64, kept: u64) -> Result<bool> {
        self.space.with_end(|end| {
            let len = self.file.len().map_err(|e| Error::io("reading the file's length", e))?;
            // Holes may have no blocks. So their blocks are counted: all that is held, less what is behind
            // the end.
            let in_holes = held.saturating_sub(len.saturating_sub(end));
            let goal = end.saturating_add(align_up(kept.saturating_sub(in_holes)));
            if goal >= len {
                return Ok(true);
            }
            let part = len.saturating_sub(CUT_BYTES) / ALIGN_BYTES * ALIGN_BYTES;
            let to = if kept == 0 { goal.max(part) } else { goal };
            self.file.set_len(to).map_err(|e| Error::io("shortening the file", e))?;
            Ok(to == goal)
        })
    }

    /// Lets the system drop from memory what is free of these extents, and of the blocks that they have parts
    /// of.
    pub(crate) fn forget_free(&self, mut extents: Vec<Extent>) {
        extents.sort_unstable();
        let mut done = 0;
        for extent in extents {
            let end = extent.end().div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES);
            let from = (extent.offset / BLOCK_BYTES * BLOCK_BYTES).max(done);
            if extent.len > 0 && from < end {
                self.forget_free_while(Extent { offset: from, len: end - from }, || true);
                done = end;
            }
        }
    }

    /// Lets the system drop from memory what it has of holes, as long as `go_on` says so.
    pub(crate) fn forget_holes(&self, go_on: impl Fn() -> bool) {
        self.forget_free_while(Extent { offset: 0, len: self.space.end() }, go_on);
    }

    /// One block at a time, for nobody gets space meanwhile.
    fn forget_free_while(&self, range: Extent, go_on: impl Fn() -> bool) {
        self.space.with_free(range, BLOCK_BYTES, |free| {
            let goes_on = go_on();
            if goes_on {
                self.file.forget(free.offset, free.len);
            }
            goes_on
        });
    }

    /// Takes at most `len_max` bytes, of the lowest hole with at least `len_min` bytes, else at the end of
    /// the file. On a tight disk it takes as much as it can get with its blocks in one place, and no less
    /// than `len_min`.
    ///
    /// # Errors
    /// `NoSpace` on a tight disk. Elsewhere the write reports it.
    pub(crate) fn take(&self, len_min: u64, len_max: u64, during: &'static str) -> Result<Extent> {
        if !self.is_tight() {
            return Ok(self.space.alloc_up_to(len_min, len_max));
        }
        let mut refused = Vec::new();
        let taken = self.take_reserved(len_min, len_max, during, &mut refused);
        refused.into_iter().for_each(|extent| self.space.free(extent));
        taken
    }

    /// As `take`. A hole may get no blocks while others, or the end of the file, have them. So refused
    /// extents stay taken until the search is over, lest they be found again.
    fn take_reserved(
        &self,
        len_min: u64,
        len_max: u64,
        during: &'static str,
        refused: &mut Vec<Extent>,
    ) -> Result<Extent> {
        let mut len = len_max.max(len_min);
        loop {
            let mut found = self.space.alloc_up_to(len, len_max);
            let mut reserved = self.reserve(found, during);
            if matches!(reserved, Ok(false)) && found.len > len {
                found = self.space.shrink(found, len);
                reserved = self.reserve(found, during);
            }
            if matches!(reserved, Ok(true)) {
                return Ok(found);
            }
            let is_last = found.end() >= self.space.end();
            refused.push(found);
            reserved?;
            if is_last && len == len_min {
                return Err(Error::NoSpace { during });
            }
            if is_last {
                refused.drain(..).for_each(|extent| self.space.free(extent));
                len = align_up(len / 2).max(len_min);
            }
        }
    }

    /// Makes sure that an extent has its blocks. False if there are none for it.
    fn reserve(&self, extent: Extent, during: &'static str) -> Result<bool> {
        if !self.unreserving.load(Ordering::Relaxed) {
            let reserved = self.file.allocate(extent.offset, extent.len);
            match reserved.map_err(|e| Error::io(during, e)) {
                Ok(reserved) => self.note_reserved(reserved),
                Err(Error::NoSpace { .. }) => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(!self.unreserving.load(Ordering::Relaxed) || extent.end() <= self.end_max.load(Ordering::Relaxed))
    }

    fn note_reserved(&self, reserved: bool) {
        if !reserved {
            self.unreserving.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::io;

    /// A file that has only some of its blocks, on a disk that has some left.
    #[derive(Default)]
    struct Sparse {
        blocks: parking_lot::Mutex<(BTreeSet<u64>, u64)>,
        len: AtomicU64,
        forgotten: parking_lot::Mutex<Vec<Extent>>,
    }

    impl File for Sparse {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
            Ok(())
        }
        fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
            Ok(())
        }
        fn write_durable_at(&self, _: &[u8], _: u64) -> io::Result<()> {
            Ok(())
        }
        fn write_back(&self, _: u64, _: u64) {}
        fn wait_written(&self, _: u64, _: u64) {}
        fn forget(&self, offset: u64, len: u64) {
            self.forgotten.lock().push(Extent { offset, len });
        }
        fn sync_data(&self) -> io::Result<()> {
            Ok(())
        }
        fn sync_all(&self) -> io::Result<()> {
            Ok(())
        }
        fn len(&self) -> io::Result<u64> {
            Ok(self.len.load(Ordering::Relaxed))
        }
        fn set_len(&self, len: u64) -> io::Result<()> {
            self.len.store(len, Ordering::Relaxed);
            self.blocks.lock().0.retain(|block| block * ALIGN_BYTES < len);
            Ok(())
        }
        fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
            let (there, free) = &mut *self.blocks.lock();
            for block in offset / ALIGN_BYTES..(offset + len).div_ceil(ALIGN_BYTES) {
                if !there.contains(&block) {
                    *free = free.checked_sub(1).ok_or(io::Error::from(rustix::io::Errno::NOSPC))?;
                    there.insert(block);
                }
            }
            self.len.fetch_max(offset + len, Ordering::Relaxed);
            Ok(true)
        }
        fn punch(&self, _: u64, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn disk_room(&self) -> io::Result<Option<DiskRoom>> {
            let (there, free) = &*self.blocks.lock();
            let (taken_bytes, free_bytes) = (there.len() as u64 * ALIGN_BYTES, free * ALIGN_BYTES);
            Ok(Some(DiskRoom { len: self.len()?, taken_bytes, free_bytes }))
        }
        fn try_lock(&self, _: bool) -> io::Result<bool> {
            Ok(true)
        }
        fn unlock(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A file of 100 blocks. Ten blocks at its end are taken, eight near its beginning, and one in the
    /// middle. The two holes between them have no blocks.
    fn sparse(free: u64) -> (Arc<Sparse>, Arc<Room>) {
        let file = Arc::new(Sparse::default());
        let extent =
            |from: u64, to: u64| Extent { offset: from * ALIGN_BYTES, len: (to - from) * ALIGN_BYTES };
        let live = vec![extent(2, 10), extent(50, 51), extent(90, 100)];
        file.blocks.lock().1 = u64::MAX;
        live.iter().chain(&[extent(0, 2)]).for_each(|e| drop(file.allocate(e.offset, e.len)));
        file.blocks.lock().1 = free;
        let space = Space::from_live(2 * ALIGN_BYTES, live).map_err(drop).unwrap();
        let room = Room::new(file.clone(), Arc::new(space), u64::MAX);
        room.look();
        (file, room)
    }

    #[test]
    fn what_was_secured_is_found_behind_holes_without_blocks() {
        let (file, room) = sparse(30);
        assert!(room.is_tight() && room.secure(20 * ALIGN_BYTES));
        // Other programs take the rest of the disk.
        file.blocks.lock().1 = 0;
        room.look();
        let mut taken = 0;
        while let Ok(extent) = room.take(ALIGN_BYTES, 4 * ALIGN_BYTES, "a test") {
            assert!(extent.offset >= 100 * ALIGN_BYTES, "{extent:?} has no blocks");
            taken += extent.len;
        }
        assert!(taken >= 20 * ALIGN_BYTES, "{taken} bytes of what was secured");
        assert_eq!(room.taken_bytes(), 21 * ALIGN_BYTES + taken, "what was refused is free again");
    }

    #[test]
    fn what_is_kept_is_not_cut_off_because_of_holes_without_blocks() {
        let (file, room) = sparse(30);
        assert!(room.secure(20 * ALIGN_BYTES));
        room.cut(20 * ALIGN_BYTES).unwrap();
        file.blocks.lock().1 = 0;
        room.look();
        assert!(room.secure(20 * ALIGN_BYTES), "{} bytes are left of it", room.held_bytes());
        room.cut(0).unwrap();
        assert_eq!(file.len().unwrap(), 100 * ALIGN_BYTES);
    }

    #[test]
    fn extents_that_are_not_written_yet_do_not_count_as_held() {
        let (_file, room) = sparse(100);
        // Taken while the disk had plenty of room.
        let ahead = room.space.alloc(60 * ALIGN_BYTES);
        assert!(room.secure(10 * ALIGN_BYTES), "beside {ahead:?}");
        assert!(room.held_bytes() >= 10 * ALIGN_BYTES);
    }

    #[test]
    fn a_block_that_has_become_free_in_parts_is_forgotten_whole_and_what_is_taken_is_not() {
        let (file, extent) =
            (Arc::new(Sparse::default()), |offset: u64, end: u64| Extent { offset, len: end - offset });
        let (middle, end) = (BLOCK_BYTES + 5 * ALIGN_BYTES, 2 * BLOCK_BYTES);
        let (left, right) = (extent(BLOCK_BYTES, middle), extent(middle, end));
        let (below, above) = (extent(ALIGN_BYTES, BLOCK_BYTES), extent(end, end + 3 * ALIGN_BYTES));
        let space = Space::from_live(ALIGN_BYTES, vec![below, left, right, above]).map_err(drop).unwrap();
        let room = Room::new(file.clone(), Arc::new(space), u64::MAX);
        let forgotten = || std::mem::take(&mut *file.forgotten.lock());
        room.forget_free(vec![left]);
        room.forget_holes(|| true);
        assert!(forgotten().iter().all(|e| e.offset >= above.end()), "all is taken");
        room.space.free(left);
        room.forget_free(vec![left]);
        assert_eq!(forgotten(), [left]);
        room.space.free(right);
        room.forget_free(vec![right]);
        assert_eq!(forgotten(), [extent(BLOCK_BYTES, end)]);
        room.forget_free(vec![right, left, right]);
        assert_eq!(forgotten(), [extent(BLOCK_BYTES, end)], "once");
        room.forget_holes(|| false);
        room.forget_free(vec![Extent { offset: left.offset, len: 0 }]);
        assert!(forgotten().is_empty());
        room.forget_holes(|| true);
        assert_eq!(forgotten()[0], extent(BLOCK_BYTES, end));
    }
}
