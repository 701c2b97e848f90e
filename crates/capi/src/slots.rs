//! Handles: numbers in the form of pointers. They name slots whose memory is never given back.
//!
//! ```text
//! bits  63..56  0xA7, with which no address of a program begins
//!       55..52  the type
//!       51..24  the slot's generation: it changes when the handle is freed
//!       23..0   the slot
//! ```
//!
//! Nothing is read through such a pointer. So whatever a caller passes can be checked before it is used. A
//! handle that was freed, one of another type, or any other pointer is an error. A slot that has used up its
//! generations is not used again.
//!
//! A slot's word has the generation and the owner. The owner is nobody (the slot is free), all threads
//! (tables and databases), or one thread's seat (transactions, cursors, options). Another thread takes a slot
//! over from its seat if the slot is not in use. A thread that changes the owner first marks the slot as
//! [`TAKEN`], and then looks at the seats (`seat`). If the slot is in use, the change is refused and the slot
//! stays as it was. So only threads whose seats say so read what a slot holds, and it is taken out only when
//! no seat of another thread names it. A thread that frees its own slot needs no mark, for its seat names the
//! slot. Another thread that marks it meanwhile finds it in use, and takes its mark back if that is still
//! there.

use crate::seat::{self, Seat};
use crate::status::{Failure, Outcome, azk_status, failure};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const MAGIC: u64 = 0xA7;
const GENERATION_BITS: u32 = 28;
const INDEX_BITS: u32 = 24;
const GENERATION_MAX: u32 = (1 << GENERATION_BITS) - 1;
const SLOTS_MAX: u32 = 1 << INDEX_BITS;
/// Chunks of 64, 128, 256 slots and so on. So many chunks have room for all slots.
const CHUNKS: usize = 19;
const FIRST_CHUNK: u32 = 64;

/// Owners that are no seats.
const NOBODY: u32 = 0;
const TAKEN: u32 = u32::MAX;
const SHARED: u32 = u32::MAX - 1;

/// A type of handle.
pub(crate) trait Handle: Sized + 'static {
    /// What slots of this type hold.
    type Held: Send + 'static;
    /// The type's number within handles.
    const TAG: u8;
    /// The slots of this type.
    fn slots() -> &'static HandleSlots<Self::Held>;
}

struct HandleSlot<T> {
    /// The generation, and the owner in the lower half.
    word: AtomicU64,
    /// The next free slot, plus one.
    next: AtomicU32,
    /// The number of the file that the handle is of (`files`). It is set before the word is.
    file: AtomicU32,
    held: UnsafeCell<Option<T>>,
}

// SAFETY: `held` is reached as the module says. Several threads reach it only under a shared handle, for
// which `shared` demands `T: Sync`.
unsafe impl<T: Send> Sync for HandleSlot<T> {}

/// All slots of one type of handle.
pub(crate) struct HandleSlots<T> {
    chunks: [OnceLock<Box<[HandleSlot<T>]>>; CHUNKS],
    made: AtomicU32,
    /// The first free slot, plus one. The upper half counts how often it has changed.
    free: AtomicU64,
}

fn pack(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn unpack(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_be_bytes();
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}

/// The lower half of a word.
fn low(word: u64) -> u32 {
    unpack(word).1
}

impl<T> HandleSlots<T> {
    pub(crate) const fn new() -> HandleSlots<T> {
        let chunks = [const { OnceLock::new() }; CHUNKS];
        HandleSlots { chunks, made: AtomicU32::new(0), free: AtomicU64::new(0) }
    }

    /// The chunk of a slot, and its index there.
    #[inline(always)]
    fn place(index: u32) -> (usize, usize) {
        let nth = index / FIRST_CHUNK + 1;
        let chunk = nth.ilog2();
        let at = index - FIRST_CHUNK * ((1 << chunk) - 1);
        (usize::try_from(chunk).unwrap_or(CHUNKS), usize::try_from(at).unwrap_or(usize::MAX))
    }

    #[inline(always)]
    fn get(&self, index: u32) -> Option<&HandleSlot<T>> {
        let (chunk, at) = Self::place(index);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    /// A slot that nobody else has: this thread's spare one, one that was freed, or a new one.
    #[inline(always)]
    fn take(&self, tag: u8, seat: &Seat) -> Option<u32> {
        let spare = &seat.spare[usize::from(tag)];
        if let Some(index) = spare.load(Ordering::Relaxed).checked_sub(1) {
            spare.store(0, Ordering::Relaxed);
            return Some(index);
        }
        self.pop().or_else(|| self.make())
    }

    fn pop(&self) -> Option<u32> {
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let (count, first) = unpack(head);
            let index = first.checked_sub(1)?;
            let next = self.get(index)?.next.load(Ordering::Relaxed);
            let after = pack(count.wrapping_add(1), next);
            match self.free.compare_exchange_weak(head, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(index),
                Err(newer) => head = newer,
            }
        }
    }

    fn make(&self) -> Option<u32> {
        let more = |made: u32| (made < SLOTS_MAX).then(|| made + 1);
        let index = self.made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        let (chunk, _) = Self::place(index);
        self.chunks.get(chunk)?.get_or_init(|| {
            let slots = usize::try_from(FIRST_CHUNK).unwrap_or(1) << chunk;
            let empty = || HandleSlot {
                word: AtomicU64::new(pack(1, NOBODY)),
                next: AtomicU32::new(0),
                file: AtomicU32::new(0),
                held: UnsafeCell::new(None),
            };
            (0..slots).map(|_| empty()).collect()
        });
        Some(index)
    }

    /// Makes a slot free for other handles.
    #[inline(always)]
    fn give_back(&self, tag: u8, index: u32, seat: &Seat) {
        let spare = &seat.spare[usize::from(tag)];
        if spare.load(Ordering::Relaxed) == 0 {
            spare.store(index + 1, Ordering::Relaxed);
        } else {
            self.push(index);
        }
    }

    #[cold]
    fn push(&self, index: u32) {
        let Some(slot) = self.get(index) else { return };
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            let (count, first) = unpack(head);
            slot.next.store(first, Ordering::Relaxed);
            let after = pack(count.wrapping_add(1), index + 1);
            match self.free.compare_exchange_weak(head, after, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(newer) => head = newer,
            }
        }
    }
}

/// The number of a handle.
fn number(tag: u8, generation: u32, index: u32) -> u64 {
    MAGIC << 56 | u64::from(tag) << 52 | u64::from(generation) << INDEX_BITS | u64::from(index)
}

/// A slot, and what the handle expects of it.
struct Found<H: Handle> {
    slot: &'static HandleSlot<H::Held>,
    number: u64,
    generation: u32,
    index: u32,
}

impl<H: Handle> Found<H> {
    #[inline(always)]
    fn of(handle: *const H) -> Outcome<Found<H>> {
        let number = u64::try_from(handle.addr()).unwrap_or(0);
        let index = low(number) & (SLOTS_MAX - 1);
        let generation = low(number >> INDEX_BITS) & GENERATION_MAX;
        if number >> 52 == MAGIC << 4 | u64::from(H::TAG)
            && let Some(slot) = H::slots().get(index)
        {
            return Ok(Found { slot, number, generation, index });
        }
        Err(crate::wrong::refuse(H::TAG, number))
    }

    #[inline(always)]
    fn word(&self, owner: u32) -> u64 {
        pack(self.generation, owner)
    }

    /// The error for a slot's word that is not as expected.
    #[cold]
    fn refuse(&self, word: u64) -> Failure {
        if unpack(word) == (self.generation, TAKEN) { busy::<H>() } else { crate::wrong::stale(H::TAG) }
    }
}

/// The error for a handle of one thread that is used in a callback of a call that has another one.
#[cold]
fn within_another<H: Handle>() -> Failure {
    let what = crate::wrong::name(H::TAG);
    let why = "the call around this callback keeps another handle to itself";
    failure(azk_status::AZK_BUSY, format!("the {what} cannot be used here: {why}"))
}

#[cold]
fn busy<H: Handle>() -> Failure {
    let what = crate::wrong::name(H::TAG);
    failure(azk_status::AZK_BUSY, format!("the {what} is in use by a call under way"))
}

/// A new handle that all threads may use at once.
#[inline(always)]
pub(crate) fn share<H: Handle>(held: H::Held) -> Outcome<*mut H>
where
    H::Held: Sync,
{
    put(|| Some(held), SHARED, seat::mine())
}

/// A new handle that one thread uses at a time.
#[inline(always)]
pub(crate) fn own<H: Handle>(held: H::Held) -> Outcome<*mut H> {
    own_made(|| Some(held))
}

/// The same, made next to where it will stand. `make` gives Some, as the slot holds it: each move of a read
/// transaction costs 2 to 4 ns.
#[inline(always)]
pub(crate) fn own_made<H: Handle>(make: impl FnOnce() -> Option<H::Held>) -> Outcome<*mut H> {
    let seat = seat::mine();
    put(make, seat.id, seat)
}

/// If `make` panics the slot is not used again.
#[inline(always)]
fn put<H: Handle>(make: impl FnOnce() -> Option<H::Held>, owner: u32, seat: &Seat) -> Outcome<*mut H> {
    let slots = H::slots();
    let Some((index, slot)) = slots.take(H::TAG, seat).and_then(|index| Some((index, slots.get(index)?)))
    else {
        let what = crate::wrong::name(H::TAG);
        return Err(failure(azk_status::AZK_NO_MEMORY, format!("every {what} that there can be is open")));
    };
    let generation = unpack(slot.word.load(Ordering::Relaxed)).0;
    // SAFETY: `take` has given the slot to this thread alone. Its word says that it is free, so no call gets
    // in. Its former contents were dropped when it was freed.
    unsafe { slot.held.get().write(make()) };
    slot.file.store(seat.file.load(Ordering::Relaxed), Ordering::Relaxed);
    slot.word.store(pack(generation, owner), Ordering::Release);
    let number = number(H::TAG, generation, index);
    Ok(std::ptr::without_provenance_mut(usize::try_from(number).unwrap_or(0)))
}

/// A shared handle, while a call uses it.
pub(crate) struct Shared<'a, T> {
    held: &'a T,
    seat: &'static Seat,
    /// It must stay in the thread of its seat.
    _here: PhantomData<*const ()>,
}

impl<T> Deref for Shared<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.held
    }
}

impl<T> Drop for Shared<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.seat.shared.store(0, Ordering::Release);
    }
}

/// Uses a handle that other threads may use at the same time.
#[inline(always)]
pub(crate) fn shared<'a, H: Handle>(handle: *const H) -> Outcome<Shared<'a, H::Held>>
where
    H::Held: Sync,
{
    let found = Found::of(handle)?;
    let seat = seat::mine();
    if seat.shared.load(Ordering::Relaxed) != 0 {
        return Err(busy::<H>());
    }
    seat.shared.store(found.number, Ordering::Release);
    seat.barrier();
    let word = found.slot.word.load(Ordering::Acquire);
    if word == found.word(SHARED) {
        // SAFETY: the seat announced the handle before the word was read. From then on a thread that frees
        // the handle sees the seat and leaves the slot alone. Nothing else writes to it.
        if let Some(held) = unsafe { &*found.slot.held.get() } {
            seat.file.store(found.slot.file.load(Ordering::Relaxed), Ordering::Relaxed);
            return Ok(Shared { held, seat, _here: PhantomData });
        }
    }
    seat.shared.store(0, Ordering::Release);
    Err(found.refuse(word))
}

/// A handle of one thread, while a call uses it.
pub(crate) struct Owned<'a, H: Handle> {
    held: &'a mut H::Held,
    seat: &'static Seat,
    _here: PhantomData<*const ()>,
}

impl<H: Handle> Deref for Owned<'_, H> {
    type Target = H::Held;

    #[inline(always)]
    fn deref(&self) -> &H::Held {
        self.held
    }
}

impl<H: Handle> DerefMut for Owned<'_, H> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut H::Held {
        self.held
    }
}

impl<H: Handle> Drop for Owned<'_, H> {
    #[inline(always)]
    fn drop(&mut self) {
        self.seat.own.store(0, Ordering::Release);
    }
}

/// Uses a handle that nobody else uses meanwhile.
#[inline(always)]
pub(crate) fn owned<'a, H: Handle>(handle: *const H) -> Outcome<Owned<'a, H>> {
    let found = Found::of(handle)?;
    let seat = enter(&found)?;
    // SAFETY: the slot is this thread's, and its seat says so. `enter` refuses a handle that is in use
    // already. Other threads that want the slot see the seat and leave the slot alone.
    match unsafe { &mut *found.slot.held.get() } {
        Some(held) => Ok(Owned { held, seat, _here: PhantomData }),
        None => {
            seat.own.store(0, Ordering::Release);
            Err(crate::wrong::stale(H::TAG))
        }
    }
}

/// Announces a handle of one thread. Takes it over if it was another thread's.
#[inline(always)]
fn enter<H: Handle>(found: &Found<H>) -> Outcome<&'static Seat> {
    let seat = seat::mine();
    match seat.own.load(Ordering::Relaxed) {
        0 => {}
        own if own == found.number => return Err(busy::<H>()),
        _ => return Err(within_another::<H>()),
    }
    seat.own.store(found.number, Ordering::Release);
    seat.barrier();
    let word = found.slot.word.load(Ordering::Acquire);
    if word != found.word(seat.id)
        && let Err(failure) = take_over(found, seat, word)
    {
        seat.own.store(0, Ordering::Release);
        return Err(failure);
    }
    seat.file.store(found.slot.file.load(Ordering::Relaxed), Ordering::Relaxed);
    Ok(seat)
}

/// Makes another thread's slot this thread's, unless the other thread is using it.
#[cold]
fn take_over<H: Handle>(found: &Found<H>, seat: &Seat, word: u64) -> Outcome<()> {
    let (generation, owner) = unpack(word);
    if generation != found.generation || [NOBODY, TAKEN, SHARED].contains(&owner) {
        return Err(found.refuse(word));
    }
    let (slot, taken) = (&found.slot.word, found.word(TAKEN));
    if slot.compare_exchange(word, taken, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return Err(busy::<H>());
    }
    let used = |other: &Seat| other.id != seat.id && other.own.load(Ordering::Acquire) == found.number;
    let is_free = seat::barrier_for_all() && !seat::all().any(used);
    let after = if is_free { found.word(seat.id) } else { word };
    // The owner may have freed the handle meanwhile, which leaves no mark.
    let is_marked = slot.compare_exchange(taken, after, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if !is_marked {
        return Err(gone::<H>());
    }
    if is_free { Ok(()) } else { Err(busy::<H>()) }
}

/// Frees a handle of one thread, and drops what it held.
pub(crate) fn end<H: Handle>(handle: *const H) -> Outcome<()> {
    end_with(handle, |held| *held = None)
}

/// Frees a handle of one thread, and returns what it held.
pub(crate) fn take<H: Handle>(handle: *const H) -> Outcome<H::Held> {
    end_with(handle, Option::take)?.ok_or_else(gone::<H>)
}

/// Frees a handle of one thread. `f` must empty its slot.
#[inline(always)]
fn end_with<H: Handle, T>(handle: *const H, f: impl FnOnce(&mut Option<H::Held>) -> T) -> Outcome<T> {
    let found = Found::of(handle)?;
    let seat = enter(&found)?;
    let leave = Leave(seat);
    // SAFETY: the slot is this thread's, and its seat says so, so no other thread reaches the slot.
    let out = f(unsafe { &mut *found.slot.held.get() });
    // While the seat says so, too: else another thread could take the slot over before it is free. One that
    // has marked the slot meanwhile changes it only if its mark is still there.
    let is_reusable = retire(&found);
    drop(leave);
    if is_reusable {
        H::slots().give_back(H::TAG, found.index, seat);
    }
    Ok(out)
}

/// On drop, takes a seat's announcement back, also after a panic.
struct Leave(&'static Seat);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.own.store(0, Ordering::Release);
    }
}

/// Frees a shared handle, and drops what it held. Refused while a call uses it.
pub(crate) fn end_shared<H: Handle>(handle: *const H) -> Outcome<()>
where
    H::Held: Sync,
{
    let found = Found::of(handle)?;
    let slot = &found.slot.word;
    if let Err(word) =
        slot.compare_exchange(found.word(SHARED), found.word(TAKEN), Ordering::AcqRel, Ordering::Acquire)
    {
        return Err(found.refuse(word));
    }
    let used = |other: &Seat| other.shared.load(Ordering::Acquire) == found.number;
    if !seat::barrier_for_all() || seat::all().any(used) {
        slot.store(found.word(SHARED), Ordering::Release);
        return Err(busy::<H>());
    }
    // SAFETY: this thread has set the word to `TAKEN`, so no call gets in, and no seat has the handle.
    let held = unsafe { &mut *found.slot.held.get() }.take();
    if retire(&found) {
        H::slots().give_back(H::TAG, found.index, seat::mine());
    }
    // This may take long: the last handle of a database closes it.
    drop(held);
    Ok(())
}

/// Gives an emptied slot its next generation. Returns whether another handle may have it.
#[inline(always)]
fn retire<H: Handle>(found: &Found<H>) -> bool {
    let generation = found.generation.saturating_add(1).min(GENERATION_MAX);
    found.slot.word.store(pack(generation, NOBODY), Ordering::Release);
    found.generation < GENERATION_MAX - 1
}

/// The error for a handle whose slot is empty.
#[cold]
pub(crate) fn gone<H: Handle>() -> Failure {
    crate::wrong::stale(H::TAG)
}

#[cfg(test)]
mod tests;
