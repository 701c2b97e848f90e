//! Room that can be written to: whatever the allocator gives where the disk has plenty; where it is nearly full
//! (**tight**), only what the file has already.
//!
//! What the file has of the disk and what the disk has left are, together, what the file may come to take. That
//! changes only when others write to the disk, so it is looked at now and then; how much of it is taken the allocator
//! tells.
//!
//! On a tight disk an extent is given out with its blocks, and room that somebody counts on is **secured** first: the
//! file gets blocks behind its end, which nobody else can take. Where the file system cannot reserve, what it says is
//! believed, and a write may find the disk full all the same.
//!
//! Lock order: `growing`, then the space's own; both are leaves to everybody else.

use super::{Extent, Space};
use crate::base::error::{Error, Result};
use crate::base::limits::{ALIGN_BYTES, align_up};
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::storage::{DiskRoom, File};
use std::sync::Arc;

/// The file grows by this part more than is asked for, so that it need not for each commit, but by no more than this.
const AHEAD_PART: u64 = 8;
const AHEAD_BYTES_MAX: u64 = 4 << 20;

/// The room of one file.
pub(crate) struct Room {
    file: Arc<dyn File>,
    pub(crate) space: Arc<Space>,
    /// The disk is tight while less is left.
    tight_below: u64,
    tight: AtomicBool,
    /// What the file may come to take in all, and what it has.
    bytes_max: AtomicU64,
    held_max: AtomicU64,
    /// Where it may end, as far as that is known.
    end_max: AtomicU64,
    /// The file system cannot reserve.
    unreserving: AtomicBool,
    /// Held by whoever changes the file's length, or looks at it.
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
            end_max: unknown(),
            unreserving: AtomicBool::new(false),
            growing: Mutex::new(()),
        })
    }

    /// Whether the disk is nearly full.
    #[inline(always)]
    pub(crate) fn is_tight(&self) -> bool {
        self.tight.load(Ordering::Relaxed)
    }

    /// Bytes of the file that are taken.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.space.taken_and_free().0
    }

    /// Bytes that are left, in the file and beyond it.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed).saturating_sub(self.taken_bytes())
    }

    /// Looks how much the disk has left. What a file system does not say is plenty.
    pub(crate) fn look(&self) {
        let _growing = self.growing.lock();
        self.look_closely();
    }

    /// REQUIRES: `growing`.
    fn look_closely(&self) -> Option<DiskRoom> {
        // What cannot be told is as it was.
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
        found
    }

    /// Bytes of the file that are free and have their blocks.
    fn held_bytes(&self) -> u64 {
        self.held_max.load(Ordering::Relaxed).saturating_sub(self.taken_bytes())
    }

    /// Sees to it that the file has so many free bytes; false if it cannot.
    pub(crate) fn secure(&self, bytes: u64) -> bool {
        if self.held_bytes() >= bytes {
            return true;
        }
        if self.bytes() < bytes {
            return false;
        }
        let _growing = self.growing.lock();
        // Others may have been faster.
        let Some(disk) = self.look_closely().filter(|_| self.held_bytes() < bytes) else {
            return self.held_bytes() >= bytes;
        };
        let missing = align_up(bytes - self.held_bytes());
        let ahead = (bytes / AHEAD_PART).min(AHEAD_BYTES_MAX) / ALIGN_BYTES * ALIGN_BYTES;
        let end = align_up(disk.len).max(self.space.end());
        for more in [missing + ahead, missing] {
            // Whatever it meets, there is no more than there is.
            if let Ok(reserved) = self.file.allocate(end, more) {
                self.note_reserved(reserved);
                break;
            }
        }
        self.look_closely();
        self.held_bytes() >= bytes
    }

    /// Cuts the file behind its last extent, but for what of `kept` bytes is not in holes.
    ///
    /// # Errors
    /// What cutting meets.
    pub(crate) fn cut(&self, kept: u64) -> Result<()> {
        let _growing = self.growing.lock();
        let tail = align_up(kept.saturating_sub(self.space.free_bytes()));
        self.space.with_end(|end| {
            let len = self.file.len().map_err(|e| Error::io("reading the file's length", e))?;
            let end = end.saturating_add(tail);
            if end < len { self.file.set_len(end).map_err(|e| Error::io("shortening the file", e)) } else { Ok(()) }
        })?;
        if kept > 0 {
            self.look_closely();
        }
        Ok(())
    }

    /// Takes the lowest hole of at least `len_min` bytes, or the first `len_max` of it; else `len_max` bytes at the end
    /// of the file. On a tight disk as much as can be had at once with its blocks, and no less than `len_min`.
    ///
    /// # Errors
    /// `NoSpace` on a tight disk. Elsewhere the write meets it.
    pub(crate) fn take(&self, len_min: u64, len_max: u64, during: &'static str) -> Result<Extent> {
        if !self.is_tight() {
            return Ok(self.space.alloc_up_to(len_min, len_max));
        }
        let mut len = len_max.max(len_min);
        loop {
            let mut found = self.space.alloc_up_to(len, len_max);
            let mut reserved = self.reserve(found, during);
            if matches!(reserved, Ok(false)) && found.len > len {
                found = self.space.shrink(found, len);
                reserved = self.reserve(found, during);
            }
            match reserved {
                Ok(true) => return Ok(found),
                Ok(false) if len > len_min => {}
                Ok(false) => {
                    self.space.free(found);
                    return Err(Error::NoSpace { during });
                }
                Err(e) => {
                    self.space.free(found);
                    return Err(e);
                }
            }
            self.space.free(found);
            len = align_up(len / 2).max(len_min);
        }
    }

    /// Sees to it that an extent has its blocks; false if there are none for it.
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
