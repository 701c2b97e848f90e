//! Which parts of the file are taken, and where the next extent goes: always to the lowest offset that fits.
//! So the file stays short, and its tail can be given back.
//!
//! # Invariants
//!
//! 1. Between `start` and `end` every byte is either in a hole or allocated, never both. Holes are disjoint,
//!    not adjacent, and multiples of [`ALIGN_BYTES`].
//! 2. No hole touches `end`: free space at the tail is dropped at once, and `end` moves down.
//!
//! Nothing here is durable. Free space is what the manifest does not name; [`Space::from_live`] computes it
//! when the file is opened. `free` makes an extent available at once, so the caller must know that nobody of
//! this process needs it. What readers in other processes may need is kept (`pinned.rs`).
//!
//! Lock order: the one mutex is a leaf. Those who are called under it (`with_end`, `with_holes`, `with_free`)
//! may change the file, and take no other lock than that of closing (`Life`).

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};

use crate::base::limits::{ALIGN_BYTES, align_up};
use crate::base::process::Process;
use crate::base::sync::Instant;
use std::ops::RangeInclusive;

mod extent;
mod holes;
mod pinned;
mod room;
pub(crate) mod scattered;
#[cfg(test)]
mod tests;

pub(crate) use extent::Extent;
use extent::{END_MAX, between};
use holes::Holes;
use pinned::Pinned;
pub(crate) use pinned::{PinLimits, PinView};
pub(crate) use room::Room;

/// The allocator of one file.
pub(crate) struct Space {
    map: Mutex<Map>,
    /// The taken bytes after the last change of the map.
    taken: AtomicU64,
    /// Those of them that are not kept for readers alone: neither by a pin of a follower, nor for readers of
    /// this process.
    used: AtomicU64,
    /// The least value of `used` since the last `take_least`.
    least: AtomicU64,
    /// Bytes that no checkpoint names, and that somebody in this process may still read. Changed under the
    /// map's lock.
    needless: AtomicU64,
    process: Process,
}

/// What the mutex guards. Offsets below `start` are never handed out.
struct Map {
    start: u64,
    end: u64,
    holes: Holes,
    pinned: Pinned,
}

impl Space {
    /// The allocator of a file in which exactly the extents of `live` are taken. The rest is free, from
    /// `start` (a multiple of [`ALIGN_BYTES`]) to the end of the last live extent.
    ///
    /// # Errors
    /// Two extents that overlap. Or one extent, given twice, that is misaligned, empty, below `start` or past
    /// the largest file offset.
    pub(crate) fn from_live(start: u64, live: Vec<Extent>) -> Result<Space, (Extent, Extent)> {
        debug_assert!(start.is_multiple_of(ALIGN_BYTES));
        let mut live = live;
        live.sort_unstable();
        let mut holes = Holes::default();
        let mut end = start;
        let mut before: Option<Extent> = None;
        for extent in live {
            if !extent.is_valid(start) {
                return Err((extent, extent));
            }
            if let Some(before) = before
                && extent.offset < end
            {
                return Err((before, extent));
            }
            if end < extent.offset {
                holes.insert(between(end, extent.offset));
            }
            end = extent.end();
            before = Some(extent);
        }
        let taken = AtomicU64::new(end - holes.bytes());
        let used = AtomicU64::new(end - holes.bytes());
        let map = Mutex::new(Map { start, end, holes, pinned: Pinned::default() });
        let (least, needless) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        Ok(Space { map, taken, used, least, needless, process: Process::current() })
    }

    /// Takes `len` bytes of the lowest hole that fits, else at the end of the file.
    #[cfg(test)]
    pub(crate) fn alloc(&self, len: u64) -> Extent {
        self.alloc_up_to(len, len)
    }

    /// Takes at most `len_max` bytes, of the lowest hole with at least `len_min` bytes. Without such a hole
    /// it takes `len_max` bytes at the end of the file.
    pub(crate) fn alloc_up_to(&self, len_min: u64, len_max: u64) -> Extent {
        let len_min = checked_len(len_min);
        let len_max = checked_len(len_max).max(len_min);
        let mut map = self.map.lock();
        let taken = match map.holes.first_fit(len_min) {
            Some(hole) => {
                let len = hole.len.min(len_max);
                let taken = Extent { len, ..hole };
                map.holes.remove(taken);
                taken
            }
            None => {
                let offset = map.end;
                // An end that wraps would need 2^63 bytes of file. The write there fails first.
                map.end = offset.saturating_add(len_max);
                Extent { offset, len: len_max }
            }
        };
        map.pinned.took(taken);
        self.note_taken(&map);
        taken
    }

    /// Takes `len` bytes of the lowest hole that fits, if they end at or before `limit`. Never extends the
    /// file. This is for moving the tail of the file down.
    pub(crate) fn alloc_below(&self, len: u64, limit: u64) -> Option<Extent> {
        let len = checked_len(len);
        let mut map = self.map.lock();
        // If the lowest hole that fits ends too high, so do all others.
        let hole = map.holes.first_fit(len)?;
        let taken = Extent { len, ..hole };
        if taken.end() > limit {
            return None;
        }
        map.holes.remove(taken);
        map.pinned.took(taken);
        self.note_taken(&map);
        Some(taken)
    }

    /// Whether `alloc_below` would find room.
    pub(crate) fn fits_below(&self, len: u64, limit: u64) -> bool {
        self.map.lock().holes.first_fit(checked_len(len)).is_some_and(|hole| hole.offset + len <= limit)
    }

    /// Keeps the first `new_len` bytes of an allocated extent and frees the rest.
    pub(crate) fn shrink(&self, extent: Extent, new_len: u64) -> Extent {
        debug_assert!(new_len <= extent.len, "{extent:?} shrunk to {new_len}");
        let len = checked_len(new_len);
        if len >= extent.len {
            return extent;
        }
        let kept = Extent { len, ..extent };
        self.free(between(kept.end(), extent.end()));
        kept
    }

    /// Frees an allocated extent, once no pin means it. A part of it that is free already stays free; that is
    /// an error of the caller, and debug builds panic.
    pub(crate) fn free(&self, extent: Extent) {
        if !self.process.is_current() {
            // The thread that held the lock at the fork does not exist in this process, and cannot release
            // it.
            return;
        }
        let mut map = self.map.lock();
        map.give_back(extent);
        self.note_taken(&map);
    }

    /// These extents become free when nobody in this process reads them any more. Those of `before` were
    /// counted so, and are not any more.
    pub(crate) fn note_needless(&self, extents: &[Extent], before: &[Extent]) {
        if !self.process.is_current() {
            return;
        }
        let map = self.map.lock();
        self.needless.fetch_add(bytes_of(extents), Ordering::Relaxed);
        self.needless.fetch_sub(bytes_of(before), Ordering::Relaxed);
        self.note_taken(&map);
    }

    /// Frees extents that were needless, as [`free`](Space::free) does.
    pub(crate) fn free_needless(&self, extents: &[Extent]) {
        if extents.is_empty() || !self.process.is_current() {
            return;
        }
        let mut map = self.map.lock();
        extents.iter().for_each(|&extent| map.give_back(extent));
        self.needless.fetch_sub(bytes_of(extents), Ordering::Relaxed);
        self.note_taken(&map);
    }

    /// Bytes that become free when nobody in this process reads them any more.
    pub(crate) fn needless_bytes(&self) -> u64 {
        self.needless.load(Ordering::Relaxed)
    }

    /// Checkpoint `newest` is durable, and these are pinned, as was found after that. (None: that is not
    /// known, and each may be.) What no pin means any more is free.
    pub(crate) fn pins_found(&self, newest: u64, pins: Option<&[RangeInclusive<u64>]>, now: Instant) {
        let mut map = self.map.lock();
        for extent in map.pinned.found(newest, pins, now) {
            let was_allocated = map.free_allocated_part(extent);
            debug_assert!(was_allocated, "{extent:?} was kept, and not wholly allocated");
        }
        self.note_taken(&map);
    }

    /// As `pins_found`, when the file was just opened. It has `file_bytes`. A pin of another checkpoint
    /// than the newest may mean anything that the newest does not name: all of it is kept until that pin is
    /// gone.
    pub(crate) fn pins_found_at_open(&self, newest: u64, pins: &[RangeInclusive<u64>], file_bytes: u64) {
        let mut map = self.map.lock();
        let map = &mut *map;
        map.pinned.found(newest, Some(pins), Instant::now());
        if map.pinned.has_others() {
            let mut free: Vec<Extent> = map.holes.iter().collect();
            let end = align_up(file_bytes.min(END_MAX / 2));
            if map.end < end {
                free.push(between(map.end, end));
                map.end = end;
            }
            map.holes = Holes::default();
            map.pinned.keep_unknown(free);
            self.note_taken(map);
        }
    }

    /// Pins of this checkpoint and of later ones are to be honoured. Then pins keep no more than the limits
    /// allow. Pins from `from` on may be revoked, but for those of the newest checkpoint.
    pub(crate) fn honoured_from(&self, from: u64, limits: PinLimits) -> u64 {
        self.map.lock().pinned.honoured_from(from, limits, Instant::now())
    }

    /// The pins that were found last, and what they keep.
    pub(crate) fn pins(&self) -> Vec<PinView> {
        self.map.lock().pinned.view(Instant::now())
    }

    /// The highest number that is pinned, or 0.
    pub(crate) fn highest_pin(&self) -> u64 {
        self.map.lock().pinned.highest()
    }

    /// Bytes that only pins keep.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.map.lock().pinned.kept_bytes()
    }

    /// The offset after the last allocated byte, or `start` if there is none.
    pub(crate) fn end(&self) -> u64 {
        self.map.lock().end
    }

    /// Calls `f` with the end, and allows no allocation meanwhile, so that the file can be cut there.
    pub(crate) fn with_end<T>(&self, f: impl FnOnce(u64) -> T) -> T {
        let map = self.map.lock();
        f(map.end)
    }

    /// Calls `f` with each hole until `f` fails, and allows no allocation meanwhile.
    pub(crate) fn with_holes<E>(&self, f: impl FnMut(Extent) -> Result<(), E>) -> Result<(), E> {
        let map = self.map.lock();
        map.holes.iter().try_for_each(f)
    }

    /// Calls `f` with what is free of `range`, in pieces that end at multiples of `piece_bytes` at the
    /// latest, until it says that it wants no more. During each call nothing is allocated, and in between
    /// others may.
    pub(crate) fn with_free(&self, range: Extent, piece_bytes: u64, mut f: impl FnMut(Extent) -> bool) {
        let mut at = range.offset;
        loop {
            let map = self.map.lock();
            let Some(free) = map.first_free(at).filter(|free| free.offset < range.end()) else { return };
            let end = (free.offset / piece_bytes + 1).saturating_mul(piece_bytes);
            let piece = between(free.offset, end.min(free.end()).min(range.end()));
            if !f(piece) {
                return;
            }
            at = piece.end();
        }
    }

    /// The taken bytes and the bytes in holes, at one moment.
    pub(crate) fn taken_and_free(&self) -> (u64, u64) {
        let map = self.map.lock();
        let free = map.holes.bytes();
        (map.end - free, free)
    }

    /// The taken bytes. Takes no lock, since every commit asks.
    #[inline(always)]
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The taken bytes without those that are kept for readers alone: the database's own.
    #[inline(always)]
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The least that was used since the last call. For one watcher only: the call starts a new watch.
    pub(crate) fn take_least(&self) -> u64 {
        let _map = self.map.lock();
        self.least.swap(self.used_bytes(), Ordering::Relaxed)
    }

    /// REQUIRES: the map's lock.
    fn note_taken(&self, map: &Map) {
        let bytes = map.end.saturating_sub(map.holes.bytes());
        self.taken.store(bytes, Ordering::Relaxed);
        let used = bytes.saturating_sub(map.pinned.kept_bytes()).saturating_sub(self.needless_bytes());
        self.used.store(used, Ordering::Relaxed);
        if used < self.least.load(Ordering::Relaxed) {
            self.least.store(used, Ordering::Relaxed);
        }
    }

    /// The bytes in holes.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.map.lock().holes.bytes()
    }

    #[cfg(test)]
    /// The holes, by offset.
    pub(crate) fn free_extents(&self) -> Vec<Extent> {
        self.map.lock().holes.iter().collect()
    }
}

fn bytes_of(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.len).sum()
}

impl Map {
    /// Frees what of an extent no pin means. The caller notes what is taken then.
    fn give_back(&mut self, extent: Extent) {
        if self.pinned.is_idle() {
            self.free_allocated(extent);
        } else {
            self.pinned.give_back(extent).into_iter().for_each(|part| self.free_allocated(part));
        }
    }

    /// What is free at `offset`, or the first that is behind it.
    fn first_free(&self, offset: u64) -> Option<Extent> {
        let behind_all = Extent { offset: self.end, len: END_MAX.saturating_sub(self.end) };
        let free = self.holes.first_ending_after(offset).unwrap_or(behind_all);
        let from = free.offset.max(offset);
        (from < free.end()).then(|| between(from, free.end()))
    }

    fn free_allocated(&mut self, extent: Extent) {
        let was_allocated = self.free_allocated_part(extent);
        debug_assert!(was_allocated, "{extent:?} was not wholly allocated");
    }

    /// Frees the allocated parts of `extent`. Returns whether all of it was allocated. The caller notes what
    /// is taken then.
    fn free_allocated_part(&mut self, extent: Extent) -> bool {
        if !extent.is_valid(self.start) {
            return false;
        }
        let mut freed_bytes = 0;
        let limit = extent.end().min(self.end);
        let mut at = extent.offset;
        while at < limit {
            let hole = self.holes.first_ending_after(at);
            let allocated_end = hole.map_or(limit, |hole| hole.offset.clamp(at, limit));
            if at < allocated_end {
                self.holes.insert(between(at, allocated_end));
                freed_bytes += allocated_end - at;
            }
            at = hole.map_or(limit, |hole| hole.end().max(allocated_end));
        }
        if let Some(last) = self.holes.last()
            && last.end() == self.end
        {
            self.holes.remove(last);
            self.end = last.offset;
        }
        freed_bytes == extent.len
    }
}

/// A length that a caller asks for. The caller must align it; release builds align it up otherwise.
fn checked_len(len: u64) -> u64 {
    debug_assert!(len > 0 && len.is_multiple_of(ALIGN_BYTES), "length {len}");
    align_up(len.clamp(1, END_MAX))
}
