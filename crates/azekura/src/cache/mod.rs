//! The page cache, for databases that do not map their file: a fixed number of frames in one mapping, shared
//! by all runs. A page of 4 KiB takes a whole frame too.
//!
//! Each run has a [`PageSlots`]: for each of its pages the name of the frame that holds it, or nothing. So a
//! hit is an array lookup, a pin, and a second look at the slot. There is no hash table and no lock. Each
//! frame has its page's guide beside it.
//!
//! `frame.rs` has the rules between readers, loaders and evictors, and the proof that they are right.
//! `region.rs` has the memory, `page.rs` what readers hold.
//!
//! # A miss
//!
//! 1. Under the clock's mutex, take a frame: a free one, or one that was never used, or one that the clock's
//!    hand finds neither pinned nor read since its last pass. Clear the slot that named the frame.
//! 2. Without any lock, let the caller fill the frame. An error or a panic gives it back.
//! 3. Publish the frame in the page's slot. Two threads may load the same page at once. The second one to
//!    publish gives its frame back and uses the first one's.
//!
//! A page that was just loaded counts as not read. Only a second read protects it from the hand, so one large
//! scan does not evict what is read often. If every frame is pinned, the page goes to a buffer of its own,
//! which is freed when the reference is dropped.
//!
//! # Cost
//!
//! A hit, `get` and drop together, is two locked instructions and little else, beside reading the page's
//! bytes (`cargo test --release -- --nocapture cost_of_a_hit` prints its time).
//!
//! # Lock order
//!
//! The clock's mutex is a leaf: no call goes out while it is held. A run frees its slots only after its
//! frames were released under the mutex. So the evictor may write to slots.

use std::sync::{Arc, OnceLock};

use crate::base::sync::Mutex;

use crate::base::codec::usize_of;
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
use frame::{ABSENT, Frame, FrameSlot, index_of, pin_named, publish};
use page::PageBuffer;
pub(crate) use page::PageRef;
use region::Region;
use std::sync::atomic::AtomicU64;

/// How many slots of a run are released under one hold of the mutex: about 1 µs of work.
const RELEASE_SLOTS: usize = 256;

/// What the cache has done so far. Hits are not counted: counting would cost as much as a hit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CacheStats {
    /// Calls of `get` that had to load their page.
    pub misses: u64,
    /// Pages that were evicted to make room for others.
    pub evictions: u64,
    /// Bytes of frames that hold a page or are being filled.
    pub bytes: u64,
}

/// The frames, and who gets one next.
pub(crate) struct Cache {
    region: Region,
    frames: Box<[Frame]>,
    slow: SlowPath,
    process: Process,
}

/// What only misses touch. It has cache lines of its own, so that misses do not disturb hits.
#[repr(align(128))]
struct SlowPath {
    clock: Mutex<Clock>,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// What the mutex guards. Holding it also gives the right to clear and free slots.
#[derive(Default)]
struct Clock {
    /// The frame that the hand looks at next.
    hand: usize,
    /// Frames from here on were never used.
    untouched: usize,
    /// Frames that were given back. They are `CLAIMED`, and no slot names them.
    free: Vec<usize>,
}

impl Cache {
    /// A cache of as many frames as fit in `bytes`, and at least one. The addresses are reserved at once. The
    /// memory is taken as it is used.
    ///
    /// # Errors
    /// `Io` or `NoSpace` if the system refuses the addresses.
    pub(crate) fn new(bytes: usize) -> Result<Arc<Cache>> {
        // Names have 32 bits, and 0 is reserved. They stay below 2^31 so that sums with them do not wrap.
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

    /// Takes a frame that the caller then owns alone. `None` if all are pinned.
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

    /// Moves the hand to a frame that can be taken. The first round may have to clear every `referenced`.
    /// After two rounds only pinned frames are left.
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

    /// Clears the slot of a frame that was just claimed. REQUIRES: the clock's mutex is held.
    fn drive_out(&self, index: usize) {
        // SAFETY: the mutex is held, and `PageSlots::drop` releases its frames under the mutex before it
        // frees its slots.
        unsafe { self.frames[index].clear_owner() };
        self.slow.evictions.fetch_add(1, Ordering::Relaxed);
    }

    /// See `PageSlots::has_room`.
    fn has_room(&self) -> bool {
        let clock = self.slow.clock.lock();
        !clock.free.is_empty() || clock.untouched < self.frames.len()
    }

    /// Frees the frames of a run's slots. REQUIRES: nobody can reach the slots any more.
    fn release(&self, slots: &[FrameSlot]) {
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

    /// The page in a frame on which the caller holds a pin. The result takes the pin over.
    ///
    /// # Safety
    /// The caller has pinned frame `index`, and passes that pin on.
    #[inline(always)]
    unsafe fn page(&self, index: usize) -> PageRef<'_> {
        self.region.note_read(index);
        // SAFETY: the caller passes its pin on. The region belongs to the same cache, which the result
        // borrows.
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
        // SAFETY: the frame is CLAIMED by this value alone, so nobody else reads or writes its bytes or its
        // guide (`frame.rs`). Both are initialised, since mappings begin as zeros.
        unsafe { (bytes.as_mut(), guide.as_mut()) }
    }

    /// Makes the loaded page the page of `slot`, unless another thread was first. Returns the slot's page.
    fn publish(self, slot: &FrameSlot) -> PageRef<'a> {
        let cache = self.cache;
        // An evictor holds the mutex from its claim until it has cleared the slot.
        let wait = || drop(cache.slow.clock.lock());
        let index = publish(&cache.frames, self.index, slot, wait);
        if index == self.index {
            std::mem::forget(self);
        }
        // SAFETY: `publish` has pinned it for this call.
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
    /// An `Arc` only for its fixed address, which frames keep. Unlike a `Box` it may be moved while raw
    /// pointers into it are in use.
    slots: OnceLock<Arc<[FrameSlot]>>,
    cache: Arc<Cache>,
    pages: u32,
}

impl PageSlots {
    /// Slots for a run of `pages` pages.
    pub(crate) fn new(cache: Arc<Cache>, pages: u32) -> PageSlots {
        PageSlots { slots: OnceLock::new(), cache, pages }
    }

    /// The page, from the cache or through `load`. `load` fills the whole buffer, which holds another page's
    /// bytes before, checks it, and may set its guide. No lock is held meanwhile.
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

    /// Whether the cache can take a page in without an eviction.
    pub(crate) fn has_room(&self) -> bool {
        self.cache.has_room()
    }

    /// Whether any page was asked for yet.
    pub(crate) fn is_used(&self) -> bool {
        self.slots.get().is_some()
    }

    /// The page, if it is in the cache.
    #[inline(always)]
    pub(crate) fn get_cached(&self, page: u32) -> Option<PageRef<'_>> {
        let slot = self.slots.get()?.get(usize_of(page))?;
        let index = pin_named(&self.cache.frames, slot)?;
        // SAFETY: `pin_named` has pinned it for this call.
        Some(unsafe { self.cache.page(index) })
    }

    /// Has the processor fetch the header of a page's frame, its guide, and the line of byte `byte`, if the
    /// page is in the cache. A hint: it waits only for the slot itself.
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

    fn new_slots(&self) -> Arc<[FrameSlot]> {
        (0..self.pages).map(|_| FrameSlot::new(ABSENT)).collect()
    }
}

impl Drop for PageSlots {
    fn drop(&mut self) {
        let Some(slots) = self.slots.get() else {
            return;
        };
        if !self.cache.process.is_current() {
            // Frames name the slots. The thread that held the mutex at the fork does not exist in this
            // process, so nothing can be released: the slots stay.
            std::mem::forget(slots.clone());
            return;
        }
        for slots in slots.chunks(RELEASE_SLOTS) {
            // Acquire: an evictor's last use of the slot is clearing it. That happens before the slot is
            // freed here.
            let is_used = |slot: &FrameSlot| slot.load(Ordering::Acquire) != ABSENT;
            if slots.iter().any(is_used) {
                self.cache.release(slots);
            }
        }
    }
}
