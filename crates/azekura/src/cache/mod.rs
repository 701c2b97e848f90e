//! The page cache: a fixed number of page frames in one mapping, shared by all runs of a database that
//! have pages of one size. (How the two caches of a database share its memory: `shares.rs`.)
//!
//! Each run has a [`PageSlots`]: for each of its pages, the name of the frame the page is in, or
//! nothing. So a hit is an array lookup, a pin, and a second look; there is no hash table and no lock.
//! Beside each page stands what is known of it without looking into it, its guide.
//! The rules between readers, loaders and evictors, and the argument that they are right, are in
//! `frame.rs`; the memory is in `region.rs`, what readers hold in `page.rs`.
//!
//! # A miss
//!
//! 1. Under the clock's mutex take a free frame (`stock.rs` sees to it that there are some that have
//!    their memory already), or one that was never used, or let the clock's hand find one that is not
//!    pinned and was not read since it last passed, and clear the slot that named it.
//! 2. Without any lock, let the caller fill it. An error or a panic gives the frame back.
//! 3. Publish it in the page's slot. Two threads may load the same page at once; the second to publish
//!    gives its frame back and uses the first one's.
//!
//! A page that was just loaded counts as not read: only a second read protects it when the hand comes
//! by, so one large scan does not drive out what is read often. If every frame is pinned, the page
//! goes to a buffer of its own, which the caller frees by dropping the reference.
//!
//! # Its size
//!
//! The cache may be made smaller and larger while it is in use ([`Cache::set_bytes`]): memtables and
//! merges take what readers do not need, and give it back. Frames beyond the limit are *parked*: they
//! are `CLAIMED`, no slot names them, and their memory has gone back to the system. One that was
//! pinned while the limit came down is parked when the hand finds it free.
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

use crate::base::sync::{Mutex, MutexGuard};

use crate::base::codec::{u32_of, usize_of};
use crate::base::error::{Error, Result};
use crate::format::guide::Guide;

mod frame;
mod kept;
#[cfg(all(test, loom))]
mod models;
mod page;
mod region;
mod shares;
mod stock;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::base::process::Process;
use crate::base::sync::atomic::Ordering;
use frame::{ABSENT, Frame, Slot, pin_named, publish};
pub(crate) use kept::KeptPages;
use page::PageBuffer;
pub(crate) use page::PageRef;
use region::Region;
pub(crate) use shares::{Caches, LiveBytes};
use std::sync::atomic::AtomicU64;
use stock::Stocker;

/// Memory that is given back under one holding of the mutex: a huge page.
const SHRINK_BYTES: usize = 2 << 20;
/// How many slots of a run are released under one taking of the mutex: about 1 µs' worth.
const RELEASE_SLOTS: usize = 256;

/// What a frame takes of the cache's bytes: its page, beside which its guide is little, or else that and its header.
fn cost_of(frame_bytes: usize) -> usize {
    if frame_bytes == 0 { size_of::<Guide>() + size_of::<Frame>() } else { frame_bytes }
}

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
    /// Frames that hold a page, or are being filled.
    pub frames_used: u64,
    /// Frames in all.
    pub frames: u64,
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
    /// The thread that touches frames in advance, if there may be one.
    stocker: Option<Stocker>,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// What the mutex guards, besides the right to clear and free slots.
struct Clock {
    /// The frame the hand looks at next.
    hand: usize,
    /// Frames from here on were never used.
    untouched: usize,
    /// Frames that were given back or touched in advance. They are `CLAIMED`, and no slot names them.
    free: Vec<usize>,
    /// Frames that were parked and may be used again. They too are `CLAIMED`, and have no memory.
    cold: Vec<usize>,
    /// Whether a thread adds to the free ones, and how many it is touching.
    stocking: bool,
    touching: usize,
    /// Frames at and after this one may not be used.
    limit: usize,
    /// Frames from `limit` on that were used before. They too are `CLAIMED`, and have no memory.
    parked: Vec<usize>,
}

impl Clock {
    fn new(frames: usize) -> Clock {
        let (free, cold, parked) = (Vec::new(), Vec::new(), Vec::new());
        Clock { hand: 0, untouched: 0, free, cold, stocking: false, touching: 0, limit: frames, parked }
    }

    /// Frames that hold a page, or are being filled.
    fn frames_used(&self) -> usize {
        self.untouched - self.free.len() - self.cold.len() - self.parked.len() - self.touching
    }
}

impl Cache {
    /// A cache of as many frames of `frame_bytes` as `bytes` hold, and at least one; of guides alone if a frame has
    /// no bytes. The memory is reserved now, and taken as it is used, or by a thread a little before that if it may
    /// `stock` frames.
    ///
    /// # Errors
    /// `Io` or `NoSpace` if the system refuses the addresses.
    pub(crate) fn new(bytes: usize, frame_bytes: usize, stock: bool) -> Result<Arc<Cache>> {
        // Names are 32 bits with one reserved, and positive so that sums with them do not wrap.
        let frames = (bytes / cost_of(frame_bytes)).clamp(1, usize_of(u32::MAX >> 1));
        Ok(Arc::new(Cache {
            region: Region::new(frames, frame_bytes)?,
            frames: Frame::fresh(frames),
            slow: SlowPath {
                clock: Mutex::new(Clock::new(frames)),
                stocker: stock.then(Stocker::default),
                misses: AtomicU64::new(0),
                evictions: AtomicU64::new(0),
            },
            process: Process::current(),
        }))
    }

    /// What the cache has done so far.
    pub(crate) fn stats(&self) -> CacheStats {
        let frames_used = self.slow.clock.lock().frames_used();
        CacheStats {
            misses: self.slow.misses.load(Ordering::Relaxed),
            evictions: self.slow.evictions.load(Ordering::Relaxed),
            frames_used: u64::from(u32_of(frames_used)),
            frames: u64::from(u32_of(self.frames.len())),
        }
    }

    /// Takes a frame that the caller then owns alone; `None` if all are pinned.
    fn claim(self: &Arc<Cache>) -> Option<Claim<'_>> {
        let mut clock = self.slow.clock.lock();
        let index = match clock.free.pop().or_else(|| clock.cold.pop()) {
            Some(index) => index,
            None if clock.untouched < clock.limit => {
                clock.untouched += 1;
                self.frames[clock.untouched - 1].begin();
                clock.untouched - 1
            }
            None => self.evict(&mut clock)?,
        };
        let wants_stock = self.slow.stocker.is_some() && clock.wants_stock(self.frame_bytes());
        drop(clock);
        if wants_stock {
            self.start_stocking();
        }
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
                if index < clock.limit {
                    return Some(index);
                }
                self.park(clock, index);
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

    /// Gives the memory of a frame beyond the limit, which the caller owns alone, back.
    fn park(&self, clock: &mut Clock, index: usize) {
        self.region.give_back(index, 1);
        clock.parked.push(index);
    }

    /// Lets the cache have as many frames as `bytes` hold, at least one and at most those it was made
    /// with. Making it smaller drives out what is in the last frames, 2 MiB at a time.
    pub(crate) fn set_bytes(&self, bytes: usize) {
        let wanted = (bytes / cost_of(self.frame_bytes())).clamp(1, self.frames.len());
        let step = SHRINK_BYTES / cost_of(self.frame_bytes());
        let mut clock = self.slow.clock.lock();
        if wanted >= clock.limit {
            clock.limit = wanted;
            let (back, parked) = std::mem::take(&mut clock.parked).into_iter().partition(|&index| index < wanted);
            clock.parked = parked;
            let back: Vec<usize> = back;
            clock.cold.extend(back);
            return;
        }
        while clock.limit > wanted {
            let from = wanted.max((clock.limit - 1) / step * step);
            self.shrink(&mut clock, from);
            // Readers that miss take their turn.
            MutexGuard::bump(&mut clock);
        }
    }

    /// Brings the limit down to `from`, a little lower.
    fn shrink(&self, clock: &mut Clock, from: usize) {
        let end = clock.limit;
        clock.limit = from;
        // Only frames that are ours now may lose their memory: a loader may be filling another.
        let mut ours = vec![false; end - from];
        let mut keep = |&index: &usize| {
            if index >= from {
                ours[index - from] = true;
            }
            index < from
        };
        clock.free.retain(&mut keep);
        clock.cold.retain(&mut keep);
        for index in from..end.min(clock.untouched) {
            if self.frames[index].try_claim_read() {
                self.drive_out(index);
                ours[index - from] = true;
            }
        }
        let mut at = 0;
        for run in ours.chunk_by(|a, b| a == b) {
            if run[0] {
                self.region.give_back(from + at, run.len());
                clock.parked.extend(from + at..from + at + run.len());
            }
            at += run.len();
        }
    }

    /// Takes a frame back from one that owned it alone.
    fn give_frame(&self, clock: &mut Clock, index: usize) {
        if index < clock.limit { clock.free.push(index) } else { self.park(clock, index) }
    }

    /// The size of a page.
    #[inline(always)]
    pub(crate) fn frame_bytes(&self) -> usize {
        self.region.frame_bytes()
    }

    /// How many frames may be used now.
    #[cfg(all(test, not(loom)))]
    fn limit(&self) -> usize {
        self.slow.clock.lock().limit
    }

    /// See `PageSlots::has_room`.
    fn has_room(&self) -> bool {
        let clock = self.slow.clock.lock();
        !clock.free.is_empty() || !clock.cold.is_empty() || clock.untouched < clock.limit || clock.touching > 0
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
                self.give_frame(&mut clock, index);
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
        let (mut bytes, mut guide) = (self.cache.region.bytes(self.index), self.cache.region.guide(self.index));
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
        let mut clock = self.cache.slow.clock.lock();
        self.cache.give_frame(&mut clock, self.index);
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
    pub(crate) fn get(&self, page: u32, load: impl FnOnce(&mut [u8], &mut Guide) -> Result<()>) -> Result<PageRef<'_>> {
        match self.peek(page) {
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
    pub(crate) fn peek(&self, page: u32) -> Option<PageRef<'_>> {
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
                if byte < self.cache.frame_bytes() {
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
                let len = self.cache.frame_bytes();
                load(&mut buffer.bytes[..len], &mut buffer.guide)?;
                Ok(PageRef::private(buffer, len))
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
            // Frames name the slots, and who held the mutex when this process was forked is not here to let go
            // of it: so they stay.
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

/// Has the processor fetch a line. Only a hint, whatever the address.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn prefetch_line(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch has no effect but on speed, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn prefetch_line(_line: *const u8) {}
