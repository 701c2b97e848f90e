//! The page cache of databases whose pages are not read where they stand: a fixed number of frames in one
//! mapping, shared by all runs. A page of 4 KiB takes a frame as one of 16 KiB does.
//!
//! Each run has a [`PageSlots`]: for each of its pages, the name of the frame the page is in, or
//! nothing. So a hit is an array lookup, a pin, and a second look; there is no hash table and no lock.
//! Beside each page stands what is known of it without looking into it, its guide.
//! The rules between readers, loaders and evictors, and the argument that they are right, are in
//! `frame.rs`; the memory is in `region.rs`, what readers hold in `page.rs`.
//!
//! # A miss
//!
//! 1. Under the clock's mutex take a free frame, or one that was never used, or let the clock's hand find
//!    one that is not pinned and was not read since it last passed, and clear the slot that named it.
//! 2. Without any lock, let the caller fill it. An error or a panic gives the frame back.
//! 3. Publish it in the page's slot. Two threads may load the same page at once; the second to publish
//!    gives its frame back and uses the first one's.
//!
//! A page that was just loaded counts as not read: only a second read protects it when the hand comes
//! by, so one large scan does not drive out what is read often. If every frame is pinned, the page
//! goes to a buffer of its own, which the caller frees by dropping the reference.
//!
//! # Cost
//!
//! A hit, `get` and drop together, is two locked instructions and little else: 5 to 10 ns among 1 to
//! 16,384 cached pages on a shared core of an AMD EPYC, uncontended, the page's bytes not read
//! (`cargo test --release -- --nocapture cost_of_a_hit`).
//!
//! # Lock order
//!
//! The clock's mutex is a leaf: nothing is called out to while it is held. A run's slots are freed only
//! after its frames were released under it, which is what lets the evictor write to slots.

use std::sync::{Arc, OnceLock};

use crate::base::sync::Mutex;

use crate::base::codec::{u32_of, usize_of};
use crate::base::error::{Error, Result};
use crate::base::limits::PAGE_BYTES;
use crate::format::guide::Guide;

mod frame;
#[cfg(all(test, loom))]
mod models;
mod page;
mod region;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::base::prefetch::prefetch_line;
use crate::base::process::Process;
use crate::base::sync::atomic::Ordering;
use frame::{ABSENT, Frame, Slot, pin_named, publish};
use page::PageBuffer;
pub(crate) use page::PageRef;
use region::Region;
use std::sync::atomic::AtomicU64;

/// How many slots of a run are released under one taking of the mutex: about 1 µs' worth.
const RELEASE_SLOTS: usize = 256;

/// The index of the frame of that name; for `ABSENT`, one that no frame has.
#[inline(always)]
fn index_of(name: u32) -> usize {
    usize_of(name.wrapping_sub(1))
}

/// The name of the frame of that index.
fn name_of(index: usize) -> u32 {
    u32_of(index + 1)
}

/// What the cache has done so far. Hits are not counted: that would cost as much as a hit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CacheStats {
    /// Calls of `get` that had to load their page.
    pub misses: u64,
    /// Pages that were driven out by others.
    pub evictions: u64,
    /// Bytes of frames that hold a page, or are being filled.
    pub bytes: u64,
}

/// The frames, and who gets one next.
pub(crate) struct Cache {
    region: Region,
    frames: Box<[Frame]>,
    slow: SlowPath,
    process: Process,
}

/// What only misses touch, on cache lines of its own so that they do not disturb hits.
#[repr(align(128))]
struct SlowPath {
    clock: Mutex<Clock>,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// What the mutex guards, besides the right to clear and free slots.
#[derive(Default)]
struct Clock {
    /// The frame the hand looks at next.
    hand: usize,
    /// Frames from here on were never used.
    untouched: usize,
    /// Frames that were given back. They are `CLAIMED`, and no slot names them.
    free: Vec<usize>,
}

impl Cache {
    /// A cache of as many frames as `bytes` hold, and at least one. The memory is reserved now, and taken as
    /// it is used.
    ///
    /// # Errors
    /// `Io` or `NoSpace` if the system refuses the addresses.
    pub(crate) fn new(bytes: usize) -> Result<Arc<Cache>> {
        // Names are 32 bits with one reserved, and positive so that sums with them do not wrap.
        let frames = (bytes / PAGE_BYTES).clamp(1, usize_of(u32::MAX >> 1));
        Ok(Arc::new(Cache {
            region: Region::new(frames)?,
            frames: Frame::fresh(frames),
            slow: SlowPath {
                clock: Mutex::new(Clock::default()),
                misses: AtomicU64::new(0),
                evictions: AtomicU64::new(0),
            },
            process: Process::current(),
        }))
    }

    /// What the cache has done so far.
    pub(crate) fn stats(&self) -> CacheStats {
        let frames_used = {
            let clock = self.slow.clock.lock();
            clock.untouched - clock.free.len()
        };
        CacheStats {
            misses: self.slow.misses.load(Ordering::Relaxed),
            evictions: self.slow.evictions.load(Ordering::Relaxed),
            bytes: (frames_used * PAGE_BYTES) as u64,
        }
    }

    /// Takes a frame that the caller then owns alone; `None` if all are pinned.
    fn claim(self: &Arc<Cache>) -> Option<Claim<'_>> {
        let mut clock = self.slow.clock.lock();
        let index = match clock.free.pop() {
            Some(index) => index,
            None if clock.untouched < self.frames.len() => {
                clock.untouched += 1;
                self.frames[clock.untouched - 1].begin();
                clock.untouched - 1
            }
            None => self.evict(&mut clock)?,
        };
        Some(Claim { cache: self, index })
    }

    /// Moves the hand to a frame that can be had. The first time round it may have to clear every
    /// `referenced`, each set by a hit since; after two rounds only pinned frames are left.
    fn evict(&self, clock: &mut Clock) -> Option<usize> {
        for _ in 0..2 * clock.untouched {
            let index = clock.hand;
            clock.hand = if index + 1 < clock.untouched { index + 1 } else { 0 };
            if self.frames[index].try_claim() {
                self.drive_out(index);
                return Some(index);
            }
        }
        None
    }

    /// Clears the slot of a frame just claimed. REQUIRES: the clock's mutex is held.
    fn drive_out(&self, index: usize) {
        // SAFETY: the mutex is held, and `PageSlots::drop` releases its frames under it before it
        // frees its slots.
        unsafe { self.frames[index].clear_owner() };
        self.slow.evictions.fetch_add(1, Ordering::Relaxed);
    }

    /// See `PageSlots::has_room`.
    fn has_room(&self) -> bool {
        let clock = self.slow.clock.lock();
        !clock.free.is_empty() || clock.untouched < self.frames.len()
    }

    /// Frees the frames of the slots of a run that nobody can reach any more.
    fn release(&self, slots: &[Slot]) {
        let mut clock = self.slow.clock.lock();
        for slot in slots {
            let name = slot.load(Ordering::Relaxed);
            if name != ABSENT {
                let index = index_of(name);
                self.frames[index].seize();
                slot.store(ABSENT, Ordering::Relaxed);
                clock.free.push(index);
            }
        }
    }

    /// The page in a frame on which the caller holds a pin, which it passes on.
    ///
    /// # Safety
    /// The caller has pinned frame `index`, and passes that pin on.
    #[inline(always)]
    unsafe fn page(&self, index: usize) -> PageRef<'_> {
        self.region.note_read(index);
        // SAFETY: the pin is the caller's to pass on; the region belongs to the same cache, and the
        // result borrows that.
        unsafe { PageRef::pinned(&self.frames[index], self.region.bytes(index), self.region.guide(index)) }
    }
}

/// A frame that its holder owns alone. Dropping it gives the frame back, also when a load panics.
struct Claim<'a> {
    cache: &'a Cache,
    index: usize,
}

impl<'a> Claim<'a> {
    fn parts(&mut self) -> (&mut [u8], &mut Guide) {
        let (mut bytes, mut guide) =
            (self.cache.region.bytes(self.index), self.cache.region.guide(self.index));
        self.cache.region.note_write(self.index);
        // SAFETY: the frame is CLAIMED by this value alone, so nobody else reads or writes its bytes
        // or its guide (`frame.rs`); they are initialised, as mappings begin as zeros.
        unsafe { (bytes.as_mut(), guide.as_mut()) }
    }

    /// Makes what was loaded the page of `slot`, unless another thread was first; gives the page.
    fn publish(self, slot: &Slot) -> PageRef<'a> {
        let cache = self.cache;
        // An evictor holds the mutex from its claim until the slot is cleared.
        let wait = || drop(cache.slow.clock.lock());
        let index = publish(&cache.frames, self.index, slot, wait);
        if index == self.index {
            std::mem::forget(self);
        }
        // SAFETY: `publish` has pinned it for us.
        unsafe { cache.page(index) }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.cache.slow.clock.lock().free.push(self.index);
    }
}

/// One run's pages in the cache. The array of slots is made at the first use.
pub(crate) struct PageSlots {
    /// Shared ownership only for its fixed address, which frames keep: an `Arc`, unlike a `Box`, may
    /// be moved while raw pointers into it are in use.
    slots: OnceLock<Arc<[Slot]>>,
    cache: Arc<Cache>,
    pages: u32,
}

impl PageSlots {
    /// Slots for a run of `pages` pages.
    pub(crate) fn new(cache: Arc<Cache>, pages: u32) -> PageSlots {
        PageSlots { slots: OnceLock::new(), cache, pages }
    }

    /// The page, from the cache, or else through `load`, which fills the whole of the buffer (it
    /// holds bytes of some other page before), checks it and may set its guide. No lock is held
    /// meanwhile.
    ///
    /// # Errors
    /// What `load` returns; `Invalid` if the run has no such page.
    #[inline(always)]
    pub(crate) fn get(
        &self,
        page: u32,
        load: impl FnOnce(&mut [u8], &mut Guide) -> Result<()>,
    ) -> Result<PageRef<'_>> {
        match self.get_cached(page) {
            Some(page) => Ok(page),
            None => self.load(page, load),
        }
    }

    /// Whether a page can be taken in without driving another out.
    pub(crate) fn has_room(&self) -> bool {
        self.cache.has_room()
    }

    /// Whether any page was ever asked for.
    pub(crate) fn is_used(&self) -> bool {
        self.slots.get().is_some()
    }

    /// The page if it is in the cache.
    #[inline(always)]
    pub(crate) fn get_cached(&self, page: u32) -> Option<PageRef<'_>> {
        let slot = self.slots.get()?.get(usize_of(page))?;
        let index = pin_named(&self.cache.frames, slot)?;
        // SAFETY: `pin_named` has pinned it for us.
        Some(unsafe { self.cache.page(index) })
    }

    /// Has the processor fetch the header of a page's frame, its guide, and the line of byte `byte`,
    /// if the page is in the cache. Only a hint: it waits for nothing but the slot itself.
    #[inline(always)]
    pub(crate) fn prefetch(&self, page: u32, byte: usize) {
        let slots = self.slots.get();
        if let Some(slot) = slots.and_then(|slots| slots.get(usize_of(page))) {
            let index = index_of(slot.load(Ordering::Relaxed));
            if let Some(frame) = self.cache.frames.get(index) {
                prefetch_line(std::ptr::from_ref(frame).cast());
                prefetch_line(self.cache.region.guide(index).as_ptr().cast());
                if byte < PAGE_BYTES {
                    prefetch_line(self.cache.region.frame(index).as_ptr().wrapping_add(byte));
                }
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn load(&self, page: u32, load: impl FnOnce(&mut [u8], &mut Guide) -> Result<()>) -> Result<PageRef<'_>> {
        let slots = self.slots.get_or_init(|| self.new_slots());
        let Some(slot) = slots.get(usize_of(page)) else {
            let detail = format!("page {page} of a run of {} pages", self.pages);
            return Err(Error::Invalid { detail });
        };
        self.cache.slow.misses.fetch_add(1, Ordering::Relaxed);
        match self.cache.claim() {
            Some(mut claim) => {
                let (bytes, guide) = claim.parts();
                load(bytes, guide)?;
                Ok(claim.publish(slot))
            }
            None => {
                let mut buffer = Box::new(PageBuffer::zeroed());
                load(&mut buffer.bytes, &mut buffer.guide)?;
                Ok(PageRef::private(buffer))
            }
        }
    }

    fn new_slots(&self) -> Arc<[Slot]> {
        (0..self.pages).map(|_| Slot::new(ABSENT)).collect()
    }
}

impl Drop for PageSlots {
    fn drop(&mut self) {
        let Some(slots) = self.slots.get() else {
            return;
        };
        if !self.cache.process.is_current() {
            // Frames name the slots, and who held the mutex when this process was forked is not here to let
            // go of it: so they stay.
            std::mem::forget(slots.clone());
            return;
        }
        for slots in slots.chunks(RELEASE_SLOTS) {
            // Acquire: an evictor's clearing of the slot, its last use, happens before we free it.
            let is_used = |slot: &Slot| slot.load(Ordering::Acquire) != ABSENT;
            if slots.iter().any(is_used) {
                self.cache.release(slots);
            }
        }
    }
}
