//! The header of a page frame, and the lock-free rules by which readers pin the frame and the clock takes it
//! away. All atomics of the read path are in this file, and nothing else is, so that a model checker can run
//! it alone. Its atomics are those of `base/sync.rs`.
//!
//! # The parts
//!
//! A **slot** belongs to a page of a run. It holds the name of the frame that the page is in, or [`ABSENT`].
//! A frame's `state` counts its pins. It also has the bit [`CLAIMED`], set while one owner has the frame
//! alone: the evictor that takes it, the loader that fills it, or the list of free frames. The count is right
//! with the bit set too: late readers add to it and subtract what they added. So the bit is only changed by
//! arithmetic that leaves the count alone.
//!
//! ```text
//!            try_claim: CAS 0 -> CLAIMED                    open: state -= CLAIMED - 1
//!  published ----------------------------> claimed (filled) ------------------> pinned by loader
//!      ^       then the slot is cleared                                               |
//!      +----------------------------- slot: CAS ABSENT -> name ----------------------+
//! ```
//!
//! A reader loads the slot, adds a pin to the frame that it names, and looks again. It has the page if
//! `CLAIMED` was not set when it added the pin, and the slot still names the frame. Otherwise it takes its
//! pin back. A loader opens its frame, pinned, *before* it publishes it, so no reader ever waits for a
//! loader.
//!
//! # Why a successful pin holds the right bytes
//!
//! Let R be the reader's `fetch_add` on `state`, and S its second load of the slot, which returned
//! this frame's name.
//!
//! 1. *No claim follows R while the pin is held.* `try_claim` succeeds only from 0, and after R in the
//!    modification order of `state` the count is at least 1. (`close` and `seize` do not check this. They are
//!    used only on a frame that no slot names, or whose slot nobody can read: see there.)
//! 2. *Every claim C before R had its slot cleared before S.* R saw no `CLAIMED`, so the `open` O that ended
//!    C is between C and R. All changes from O to R are read-modify-writes, so R, an Acquire, synchronises
//!    with O, a Release. The clearing of the slot happens before O: the claiming thread does it, and hands
//!    the frame to the loader either itself or through the clock's mutex. So S cannot return what the slot
//!    held before the clearing. It returns `ABSENT`, another name, or a later publication of this frame in
//!    this slot.
//! 3. So the publication P that S returned is newer than every claim before R, and by 1 no claim comes after:
//!    the frame holds what P's loader put there. P is a Release and S an Acquire (and P's `open` is before R
//!    as in 2), so the loader's writes happen before the reader's reads.
//!
//! # Why a claimed frame may be written
//!
//! `try_claim` reads 0 with Acquire. Each pin was taken back by a Release `fetch_sub`, and `state` changes
//! only by read-modify-writes. So the claim synchronises with every one of these: all reads through earlier
//! pins happen before the claimer's writes. A late reader's pin may come and go meanwhile, but by the rule
//! above that reader does not read a byte.
//!
//! `referenced` is a hint for the clock and plays no part in this. It is Relaxed.

use crate::base::codec::{u32_of, usize_of};
use crate::base::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// What a slot holds while its page is in no frame. Frame `i` has the name `i + 1`.
pub(super) const ABSENT: u32 = 0;

/// The bit of a state that says that one owner has the frame alone.
const CLAIMED: u32 = 1 << 31;

/// How often a reader tries again when the frame was taken away meanwhile. Then it treats the page as absent:
/// a page that is evicted and loaded again and again is not worth spinning for.
const PIN_ATTEMPTS: u32 = 4;

/// Names the frame of a page.
pub(super) type FrameSlot = AtomicU32;

/// The header of one frame. Four of them share a cache line. For 512 MiB of frames they take 512 KiB, which
/// stays in the second-level cache. With a line each they would take 2 MiB, which would not.
pub(super) struct Frame {
    /// Pins, and `CLAIMED`.
    state: AtomicU32,
    /// Whether the frame was read since the clock last passed: 0 or 1.
    referenced: AtomicU32,
    /// The slot that names the frame; null while none does. Only the frame's sole owner writes it. It is
    /// followed only under the clock's mutex, under which slots are also freed.
    owner: AtomicPtr<FrameSlot>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<AtomicU32>() != 4 || size_of::<Frame>() == 16);

impl Frame {
    /// Frames that were never used. They are all zeros, so that their memory is taken as they are used.
    #[cfg(not(loom))]
    pub(super) fn fresh(n: usize) -> Box<[Frame]> {
        // SAFETY: a frame begins as zeros: no pins, not read, no owner.
        unsafe { Box::new_zeroed_slice(n).assume_init() }
    }

    /// As above. Under loom an atomic is more than its bytes.
    #[cfg(loom)]
    pub(super) fn fresh(n: usize) -> Box<[Frame]> {
        let frame = |_| Frame {
            state: AtomicU32::new(0),
            referenced: AtomicU32::new(0),
            owner: AtomicPtr::new(std::ptr::null_mut()),
        };
        (0..n).map(frame).collect()
    }

    /// Uses the frame for the first time: the caller owns it alone. REQUIRES: no slot ever named it.
    pub(super) fn begin(&self) {
        self.state.store(CLAIMED, Ordering::Relaxed);
    }

    /// Pins the frame if `slot` still names it by `name` and nobody owns it alone.
    #[inline(always)]
    fn try_pin(&self, slot: &FrameSlot, name: u32) -> bool {
        let before = self.state.fetch_add(1, Ordering::Acquire);
        if before & CLAIMED == 0 && slot.load(Ordering::Acquire) == name {
            // Stored only when it changes: that saves a write, and readers keep sharing the line.
            if self.referenced.load(Ordering::Relaxed) == 0 {
                self.referenced.store(1, Ordering::Relaxed);
            }
            return true;
        }
        self.unpin();
        false
    }

    /// Takes one pin back.
    #[inline(always)]
    pub(super) fn unpin(&self) {
        let before = self.state.fetch_sub(1, Ordering::Release);
        debug_assert!(before & !CLAIMED != 0, "unpinned without a pin");
    }

    /// Claims the frame for eviction, unless it is pinned, owned, or was read since the clock's last pass.
    /// REQUIRES: the caller holds the clock's mutex, and calls [`clear_owner`](Frame::clear_owner) before it
    /// releases the mutex.
    pub(super) fn try_claim(&self) -> bool {
        if self.state.load(Ordering::Relaxed) != 0 {
            return false;
        }
        if self.referenced.load(Ordering::Relaxed) != 0 {
            self.referenced.store(0, Ordering::Relaxed);
            return false;
        }
        self.state.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Clears the slot that names a frame that was just claimed.
    ///
    /// # Safety
    /// The caller holds the clock's mutex, and the slots of every run are freed only after their
    /// frames were released under it.
    pub(super) unsafe fn clear_owner(&self) {
        let owner = self.owner.swap(std::ptr::null_mut(), Ordering::Relaxed);
        if !owner.is_null() {
            // SAFETY: an owner that is not null names this frame in its slot, so its run has not released the
            // frame yet. It cannot do so before the caller releases the mutex.
            let slot = unsafe { &*owner };
            // Release: a run that finds the slot absent may free it without the mutex.
            slot.store(ABSENT, Ordering::Release);
        }
    }

    /// Turns sole ownership into one pin. The owner, which has filled the frame, calls this.
    pub(super) fn open(&self, slot: &FrameSlot) {
        let owner = std::ptr::from_ref(slot).cast_mut();
        self.owner.store(owner, Ordering::Relaxed);
        self.referenced.store(0, Ordering::Relaxed);
        let before = self.state.fetch_sub(CLAIMED - 1, Ordering::Release);
        debug_assert!(before & CLAIMED != 0, "opened without a claim");
    }

    /// Turns one pin into sole ownership again. For a frame that was never published: only the caller can
    /// have a lasting pin.
    pub(super) fn close(&self) {
        self.owner.store(std::ptr::null_mut(), Ordering::Relaxed);
        let before = self.state.fetch_add(CLAIMED - 1, Ordering::AcqRel);
        debug_assert!(before & CLAIMED == 0 && before != 0, "closed while {before:#x}");
    }

    /// Takes the frame from its slot when the run is dropped. REQUIRES: the caller holds the clock's mutex,
    /// and nobody can reach the run's slots any more. Any pins belong to late readers of other runs.
    pub(super) fn seize(&self) {
        self.owner.store(std::ptr::null_mut(), Ordering::Relaxed);
        let before = self.state.fetch_add(CLAIMED, Ordering::AcqRel);
        debug_assert!(before & CLAIMED == 0, "seized while {before:#x}");
    }
}

/// The index of the frame of that name. For `ABSENT` it is an index that no frame has.
#[inline(always)]
pub(super) fn index_of(name: u32) -> usize {
    usize_of(name.wrapping_sub(1))
}

/// The name of the frame of that index.
pub(super) fn name_of(index: usize) -> u32 {
    u32_of(index + 1)
}

/// Pins the frame that `slot` names, and returns its index. `None` if it names none, or if its frames keep
/// being taken away.
#[inline(always)]
pub(super) fn pin_named(frames: &[Frame], slot: &FrameSlot) -> Option<usize> {
    for _ in 0..PIN_ATTEMPTS {
        // Relaxed: a guess, which `try_pin` confirms.
        let name = slot.load(Ordering::Relaxed);
        // The name `ABSENT` wraps to an index that no frame has.
        let index = index_of(name);
        if frames.get(index)?.try_pin(slot, name) {
            return Some(index);
        }
    }
    None
}

/// Opens frame `index`, which the caller owns alone and has filled with `slot`'s page, and publishes it. If
/// another loader's frame is there first, pins that one instead. Returns the pinned frame. If it is not
/// `index`, then `index` is the caller's alone again. `wait` returns once any eviction that was under way
/// when it was called has cleared its slot.
pub(super) fn publish(frames: &[Frame], index: usize, slot: &FrameSlot, wait: impl Fn()) -> usize {
    let name = name_of(index);
    let frame = &frames[index];
    frame.open(slot);
    loop {
        // Release on success: see point 3 above. After a failure nothing is concluded from the value.
        let swap = slot.compare_exchange(ABSENT, name, Ordering::Release, Ordering::Relaxed);
        if swap.is_ok() {
            return index;
        }
        if let Some(other) = pin_named(frames, slot) {
            frame.close();
            return other;
        }
        wait();
    }
}
