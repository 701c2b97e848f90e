//! What each thread announces: the handles that its current call uses.
//!
//! A call stores its handle in its thread's seat, and then checks that the handle is good (`slots`). A thread
//! that frees a handle first marks it, and then looks at all seats. One of the two must see the other, which
//! takes a barrier between store and look on both sides. Calls are many and frees are few. So a thread that
//! frees has the system make the barrier for all threads (`membarrier`), and a call makes none. A locked
//! instruction takes 12 ns, the rest of a call's frame 5 (`cargo bench --package azekura-capi`).
//!
//! Seats are never given back to the allocator. A thread that ends leaves its seat to the next thread that
//! begins.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

/// A thread's announcements.
pub(crate) struct Seat {
    /// The seat's number, unique and at least 1.
    pub(crate) id: u32,
    /// The handle in use that other threads may use too. 0: none.
    pub(crate) shared: AtomicU64,
    /// The handle in use that only this thread may use. 0: none.
    pub(crate) own: AtomicU64,
    /// The number of the file of the handle that was used last (`files`). Only the seat's thread uses it.
    pub(crate) file: AtomicU32,
    /// One free slot for each type of handle, plus one; 0: none. Only the seat's thread uses it.
    pub(crate) spare: [AtomicU32; SPARES],
    /// Whether calls need no barrier of their own.
    light: bool,
    is_taken: AtomicBool,
    next: *const Seat,
}

/// More than there are types of handles.
pub(crate) const SPARES: usize = 16;

// SAFETY: `next` is never written after the seat is published, and names a seat that stays for good. The
// other fields are atomic or never change.
unsafe impl Sync for Seat {}

/// The newest seat. Each seat knows the one before it.
static SEATS: AtomicPtr<Seat> = AtomicPtr::new(null_mut());

thread_local! {
    static MINE: Cell<Option<&'static Seat>> = const { Cell::new(None) };
    static LEAVES: Leaves = const { Leaves };
}

/// Gives the seat back when its thread ends.
struct Leaves;

impl Drop for Leaves {
    fn drop(&mut self) {
        if let Some(seat) = MINE.take() {
            seat.is_taken.store(false, Ordering::Release);
        }
    }
}

/// The seat of this thread.
#[inline(always)]
pub(crate) fn mine() -> &'static Seat {
    match MINE.get() {
        Some(seat) => seat,
        None => sit_down(),
    }
}

#[cold]
fn sit_down() -> &'static Seat {
    let seat = all().find(|seat| !seat.is_taken.swap(true, Ordering::AcqRel)).unwrap_or_else(add);
    MINE.set(Some(seat));
    // If the thread is ending already, the seat stays taken.
    let _ending = LEAVES.try_with(|_| ());
    seat
}

fn add() -> &'static Seat {
    static NEXT_ID: AtomicU32 = AtomicU32::new(1);
    let mut first = SEATS.load(Ordering::Acquire);
    let seat = Box::leak(Box::new(Seat {
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        shared: AtomicU64::new(0),
        own: AtomicU64::new(0),
        file: AtomicU32::new(0),
        spare: [const { AtomicU32::new(0) }; SPARES],
        light: is_asymmetric(),
        is_taken: AtomicBool::new(true),
        next: first,
    }));
    loop {
        match SEATS.compare_exchange(first, seat, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return seat,
            Err(newer) => {
                first = newer;
                seat.next = newer;
            }
        }
    }
}

/// All seats.
pub(crate) fn all() -> impl Iterator<Item = &'static Seat> {
    // SAFETY: such a seat was leaked. After it was published only its atomics are written.
    let at = |seat: *const Seat| unsafe { seat.as_ref() };
    std::iter::successors(at(SEATS.load(Ordering::Acquire)), move |seat| at(seat.next))
}

impl Seat {
    /// The barrier between an announcement and the check of the handle.
    #[inline(always)]
    pub(crate) fn barrier(&self) {
        if self.light {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }
}

/// The barrier between the mark of a handle and the look at the seats. False if the system refuses.
pub(crate) fn barrier_for_all() -> bool {
    fence(Ordering::SeqCst);
    !is_asymmetric() || system::barrier()
}

/// Whether the system makes barriers for all threads of the process.
fn is_asymmetric() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| system::register() && system::barrier())
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};

    pub(super) fn register() -> bool {
        membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED)
            && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    }

    pub(super) fn barrier() -> bool {
        // A forked child may have to register again.
        let once = || membarrier(MembarrierCommand::PrivateExpedited).is_ok();
        once() || register() && once()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn barrier() -> bool {
        false
    }
}
