//! Places in the list from which a search may begin, by the heads of keys.
//!
//! Each slot stands for a range of heads and names the last node in it. Most searches begin there and have a
//! few steps to go, where one from the top of the list has some thirty, to as many cold lines.
//!
//! A finger is a guess. It names a published node, and whoever uses it looks first whether that node precedes
//! the place it seeks. So no search depends on what the slots say, nor on when a reader sees it change.
//!
//! A slot is stored with `Release` after the node was published, and loaded with `Acquire`: who finds a node
//! here finds all of it, as by a link.

use crate::base::codec::{u32_of, usize_of, usize_of64};
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Link, SetAlone};

/// A slot for this many bytes of the arena: a finger for three records of 8 + 8 bytes. With twice as many
/// slots, such inserts took as long, and those of larger values longer.
const ARENA_BYTES_PER_SLOT: usize = 128;
/// Smaller arenas have no slots: all of their nodes are in the nearest cache.
const ARENA_BYTES_MIN: usize = if cfg!(loom) { 0 } else { 8192 };
/// How many slots are looked through, at most, for a finger.
const REACH: usize = 128;
/// A slot's low bits: one less than how many levels its node has, or than eight.
const LEVELS_MASK: u32 = 7;
/// While there are few records, a slot's range is two to this power times as wide, so that fewer slots are
/// empty.
const COARSE_BITS: u32 = 3;
/// It is so until there is a record for this many slots.
const FINE_FROM: usize = 4;
/// What `shift` is while no finger is to be used.
const OFF: u32 = u64::BITS;

/// The slots of one list. One writer changes them, any number of readers look.
pub(super) struct Fingers {
    slots: Box<[Link]>,
    /// The head with which the first slot begins. Lower ones are in it, too.
    base: AtomicU64,
    /// A slot's range is two to this power, or `OFF`.
    shift: Link,
}

impl Fingers {
    pub(super) fn new(arena_bytes: usize) -> Fingers {
        let count = if arena_bytes < ARENA_BYTES_MIN {
            0
        } else {
            (arena_bytes / ARENA_BYTES_PER_SLOT).max(2).next_power_of_two()
        };
        let slots: Box<[Link]> = (0..count).map(|_| Link::new(0)).collect();
        let shift = Link::new(whole_range(&slots));
        Fingers { slots, base: AtomicU64::new(0), shift }
    }

    /// The memory that they take.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// Makes them those of an empty list.
    pub(super) fn reset(&mut self) {
        for slot in &mut self.slots {
            slot.set_alone(0);
        }
        self.base.set_alone(0);
        self.shift.set_alone(whole_range(&self.slots));
    }

    /// The slot of a head.
    #[inline(always)]
    fn slot_of(&self, head: u64) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let shift = self.shift.load(Ordering::Relaxed);
        let above = head.saturating_sub(self.base.load(Ordering::Relaxed));
        (shift < OFF).then(|| usize_of64(above >> shift).min(self.slots.len() - 1))
    }

    /// A node near a head, of at least `levels` levels, of which `precedes` holds.
    #[inline(always)]
    pub(super) fn start(&self, head: u64, levels: usize, precedes: impl Fn(u32) -> bool) -> Option<u32> {
        let slot = self.slot_of(head)?;
        let reach = &self.slots[slot.saturating_sub(REACH)..=slot];
        let fingers = reach.iter().rev().map(|finger| finger.load(Ordering::Acquire));
        fingers
            .filter(|&f| f != 0 && usize_of(f & LEVELS_MASK) + 1 >= levels)
            .map(|f| f & !LEVELS_MASK)
            .find(|&node| precedes(node))
    }

    /// Notes a node that was published with its levels, if it is the last of its slot. `after` is the head of
    /// the node behind it, if there is one. REQUIRES: the writer calls.
    #[inline(always)]
    pub(super) fn note(&self, node: u32, levels: usize, head: u64, after: Option<u64>) {
        let Some(slot) = self.slot_of(head) else { return };
        if after.is_none_or(|after| self.slot_of(after) != Some(slot)) {
            let finger = node | u32_of(levels - 1).min(LEVELS_MASK);
            self.slots[slot].store(finger, Ordering::Release);
        }
    }

    /// How many records there are when slots become narrower.
    #[inline(always)]
    pub(super) fn fine_from(&self) -> usize {
        self.slots.len() / FINE_FROM
    }

    /// Empties the slots and divides the heads from `first` to `last` among them, for so many `records`.
    /// False if they were divided so before, or if there are none. REQUIRES: the writer calls.
    pub(super) fn aim(&self, first: u64, last: u64, records: usize) -> bool {
        let coarse = if records < self.fine_from() { COARSE_BITS } else { 0 };
        let bits = u64::BITS - last.saturating_sub(first).leading_zeros();
        let shift = (bits + coarse).saturating_sub(self.slots.len().max(1).trailing_zeros());
        let was = (self.base.load(Ordering::Relaxed), self.shift.load(Ordering::Relaxed));
        if self.slots.is_empty() || was == (first, shift) {
            return false;
        }
        self.divide(first, shift);
        true
    }

    /// Empties the slots and makes them narrow. False if they are not used. REQUIRES: the writer calls.
    pub(super) fn refine(&self) -> bool {
        let shift = self.shift.load(Ordering::Relaxed);
        if self.slots.is_empty() || shift == OFF {
            return false;
        }
        self.divide(self.base.load(Ordering::Relaxed), shift.saturating_sub(COARSE_BITS));
        true
    }

    fn divide(&self, base: u64, shift: u32) {
        for slot in &self.slots {
            slot.store(0, Ordering::Relaxed);
        }
        self.base.store(base, Ordering::Relaxed);
        self.shift.store(shift, Ordering::Relaxed);
    }

    /// No finger is used from now on, until `reset`.
    pub(super) fn give_up(&self) {
        self.shift.store(OFF, Ordering::Relaxed);
    }
}

/// The shift with which so many slots, while they are wide, stand for all heads.
fn whole_range(slots: &[Link]) -> u32 {
    if slots.is_empty() { OFF } else { (OFF + COARSE_BITS - slots.len().trailing_zeros()).min(OFF - 1) }
}
