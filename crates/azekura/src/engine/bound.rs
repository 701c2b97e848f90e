//! The figures of the file's bound: what is alive, what is in place, and where writers wait. `sweep.rs` tells
//! what they are for. What is *taken* is here without what is kept for readers alone (`Space::used_bytes`).

use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::space::Room;

/// What is in place may grow by this part of what is alive, or of a memtable, before it is looked at. That is
/// early, so that a load of new keys is recognised before it comes to the limit.
const GROWTH_PART: u64 = 4;
/// So much may be dead before a sweep is worth its while.
const DEAD_PART: u64 = 2;
/// Merges and flushes under way write before they free anything. For that the limit leaves these parts of a
/// memtable and of what is alive below the bound.
const MEMTABLE_MARGIN_PART: u64 = 2;
const ALIVE_MARGIN_PART: u64 = 2;
/// After a sweep there are these parts of a memtable, or of what is alive, to be written before the next.
const MEMTABLE_STEP_PART: u64 = 2;
const ALIVE_STEP_PART: u64 = 8;

/// How much the file may take.
pub(super) struct Bound {
    memtable_bytes: u64,
    /// Whether there is a thread that may sweep.
    has_sweep: bool,
    /// How many bytes in place were alive at the last look.
    alive: AtomicU64,
    /// How many bytes were in place then.
    seen: AtomicU64,
    /// Writers wait when more of the file is taken. Zero until the tables are loaded: nobody writes before.
    limit: AtomicU64,
    /// A look is wanted, or under way.
    pub(super) look: AtomicBool,
    /// Somebody waits for room. Set until a sweep that was begun for that has ended, or a look has found that
    /// nobody need wait.
    pub(super) room: AtomicBool,
}

impl Bound {
    /// `has_sweep`: whether there is a thread that may sweep.
    pub(super) fn new(memtable_bytes: u64, has_sweep: bool) -> Bound {
        Bound {
            memtable_bytes,
            has_sweep,
            alive: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            limit: AtomicU64::new(0),
            look: AtomicBool::new(false),
            room: AtomicBool::new(false),
        }
    }

    pub(super) fn alive(&self) -> u64 {
        self.alive.load(Ordering::Relaxed)
    }

    /// Whether a thread may sweep. On a nearly full disk none does.
    pub(super) fn is_kept(&self, room: &Room) -> bool {
        self.has_sweep && !room.is_tight()
    }

    pub(super) fn is_room_wanted(&self) -> bool {
        self.room.load(Ordering::Relaxed)
    }

    /// Whether a sweep is wanted, or under way.
    pub(super) fn is_due(&self) -> bool {
        self.look.load(Ordering::Relaxed) || self.is_room_wanted()
    }

    /// Whether writers wait where so much of the file is taken.
    #[inline(always)]
    pub(super) fn is_reached(&self, taken: u64) -> bool {
        taken > self.limit.load(Ordering::Relaxed)
    }

    /// All that is in place counts as alive.
    pub(super) fn note_all_alive(&self, in_place: u64) {
        self.note_look(in_place, in_place);
    }

    /// A look has found so much in place, and so much of it alive.
    pub(super) fn note_look(&self, in_place: u64, alive: u64) {
        self.seen.store(in_place, Ordering::Relaxed);
        self.alive.store(alive, Ordering::Relaxed);
        let margin = self.memtable_bytes / MEMTABLE_MARGIN_PART + alive / ALIVE_MARGIN_PART;
        self.limit.store(self.most().saturating_sub(margin), Ordering::Relaxed);
    }

    /// So much is in place after a flush. True if it has grown by so much that it is to be looked at.
    pub(super) fn has_grown(&self, in_place: u64) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        if in_place < self.alive() {
            // Less is in place: tables were dropped, or the estimate was too high.
            self.note_all_alive(in_place);
        } else if in_place < seen {
            // Less is in place, by merges.
            self.seen.store(in_place, Ordering::Relaxed);
        } else {
            return in_place - seen > self.alive().saturating_add(self.memtable_bytes) / GROWTH_PART;
        }
        false
    }

    /// The bound itself.
    fn most(&self) -> u64 {
        self.alive().saturating_add(self.memtable_bytes).saturating_mul(2)
    }

    /// How much may be dead.
    pub(super) fn dead_max(&self) -> u64 {
        self.alive().saturating_add(self.memtable_bytes) / DEAD_PART
    }

    /// How much a sweep may copy before it frees anything, where so much is taken.
    pub(super) fn copies_max(&self, taken: u64) -> u64 {
        (self.most().saturating_sub(taken) / 2).max(self.step())
    }

    /// How much is written or copied before more is done for room.
    fn step(&self) -> u64 {
        (self.memtable_bytes / MEMTABLE_STEP_PART).max(self.alive() / ALIVE_STEP_PART)
    }

    /// Whether more is in place than at the last look.
    pub(super) fn is_more(&self, in_place: u64) -> bool {
        in_place > self.seen.load(Ordering::Relaxed)
    }

    /// A look has found that nobody need wait.
    pub(super) fn let_go_on(&self) {
        self.look.store(false, Ordering::Relaxed);
        self.room.store(false, Ordering::Relaxed);
    }

    /// A sweep for room has ended, while no less than `least` was taken. If there was hardly any room at any
    /// time, the limit is raised above what is `taken` now.
    pub(super) fn end_wait_for_room(&self, least: u64, taken: u64) {
        let (step, limit) = (self.step(), self.limit.load(Ordering::Relaxed));
        if least.saturating_add(step / 4) > limit {
            self.limit.store(taken.max(limit).saturating_add(step), Ordering::Relaxed);
        }
        self.room.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn writers_wait_below_twice_what_is_alive_and_two_memtables() {
        // Alive; where writers wait, with memtables of 8 MiB.
        for (alive, limit) in [(0, 12 * MIB), (16 * MIB, 36 * MIB), (1024 * MIB, 1548 * MIB)] {
            let bound = Bound::new(8 * MIB, true);
            bound.note_all_alive(alive);
            assert!(!bound.is_reached(limit) && bound.is_reached(limit + 1), "{alive}");
            assert_eq!(bound.dead_max(), (alive + 8 * MIB) / 2);
        }
    }

    #[test]
    fn a_look_is_due_when_a_quarter_has_come() {
        let bound = Bound::new(8 * MIB, true);
        bound.note_all_alive(24 * MIB);
        assert!(!bound.has_grown(32 * MIB) && bound.has_grown(32 * MIB + 1));
        bound.note_look(40 * MIB, 24 * MIB);
        assert!(!bound.has_grown(30 * MIB), "merged");
        assert!(bound.has_grown(38 * MIB + 1), "and grown again since");
        assert!(!bound.has_grown(10 * MIB));
        assert_eq!(bound.alive(), 10 * MIB, "dropped");
    }

    #[test]
    fn the_limit_is_raised_only_where_there_was_no_room() {
        let bound = Bound::new(8 * MIB, true);
        bound.note_all_alive(16 * MIB);
        bound.room.store(true, Ordering::Relaxed);
        bound.end_wait_for_room(20 * MIB, 40 * MIB);
        assert!(bound.is_reached(40 * MIB) && !bound.is_room_wanted(), "there was room");
        bound.end_wait_for_room(36 * MIB, 40 * MIB);
        assert!(!bound.is_reached(44 * MIB) && bound.is_reached(44 * MIB + 1));
    }
}
