//! Who may take how much where the disk is nearly full.
//!
//! `Relief` knows the room and what was let pass. What is in memory it does not know. So its methods are
//! given what a flush of that may need (`flush_need`).

use super::estimates::merge_need;
use crate::base::sync::{Mutex, MutexGuard, Rank};
use crate::engine::compaction::pick::MergeJob;
use crate::engine::compaction::sizes::partition_bytes;
use crate::engine::config::Config;
use crate::engine::pace::Pace;
use crate::engine::state::State;
use crate::engine::waste::Sparse;
use crate::space::Room;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The reserve is this part of what the file holds.
const RESERVE_PART: u64 = 6;
/// It is no less than this. For a large file it is at most so many memtables, or so many bytes if that is
/// more.
const RESERVE_BYTES_MIN: u64 = 64 << 10;
const RESERVE_MEMTABLES_MAX: u64 = 6;
const RESERVE_BYTES_MAX: u64 = 16 << 20;
/// Merges leave the first part of it, and those that are to make room the second. What flushes take must be
/// in one piece, and merges leave small ones.
const MERGES_PART: u64 = 2;
const URGENT_PART: u64 = 16;
/// A record needs more in a run than in memory (filter, fence, the rest of a page): this part of it.
pub(super) const RUN_OVERHEAD_PART: u64 = 4;
/// Any flush needs a manifest and a segment of the log. For each table it needs a run, or a place in the
/// manifest.
const FLUSH_BYTES_MIN: u64 = 64 << 10;
const TABLE_RUN_BYTES: u64 = 12 << 10;
pub(super) const TABLE_BYTES: u64 = 64;
/// Merges are worth their while if this part of what the file holds is garbage.
const GARBAGE_PART: u64 = 32;
pub(super) const GAIN_BYTES_MIN: u64 = 64 << 10;
/// On a tight disk a value segment's values are moved when this part of it is dead, and no less than this.
const TIGHT_DEAD_PART: u64 = 8;
const TIGHT_DEAD_BYTES_MIN: u64 = 16 << 10;

fn reserve_bytes_max(memtable_bytes: u64) -> u64 {
    (memtable_bytes * RESERVE_MEMTABLES_MAX).max(RESERVE_BYTES_MAX)
}

/// With less room than this a disk is tight. It is the reserve, and what may be written before anybody looks
/// again.
pub(in crate::engine) fn tight_below(config: &Config) -> u64 {
    reserve_bytes_max(config.memtable_bytes) + 4 * config.memtable_bytes + (64 << 20)
}

/// What was left when room was looked for in vain, so that it is not tried again and again.
#[derive(Default)]
pub(super) struct Vain {
    /// What was looked at. As long as it is the same, another search is in vain too. `None` if the last
    /// search found room.
    pub(super) mark: Option<[u64; 3]>,
    /// How much room there was, or was to come, when merges were last tried.
    room: u64,
    /// So much garbage was left. Merges are tried again when there is more.
    pub(super) garbage: u64,
    /// So many levels of a table were left. Merges are tried again when there are more.
    pub(super) levels: usize,
    /// Tables that could not be read. Commits to other tables are not refused for that.
    pub(super) damaged: Vec<u32>,
}

/// The reserve, and what was let pass.
pub(in crate::engine) struct Relief {
    room: Arc<Room>,
    /// What the options give memtables.
    memtable_bytes: u64,
    /// Held while room is made.
    vain: Mutex<Vain>,
    /// What commits that are under way may come to take.
    admitted: AtomicU64,
    /// What merges that are under way may come to take.
    merging: AtomicU64,
    /// How many records have been removed since the last flush for that.
    removes: AtomicU64,
}

/// Bytes reserved for a commit or a value. The reservation ends when this is dropped: by then they count as
/// used space.
pub(in crate::engine) struct Admitted<'a> {
    count: &'a AtomicU64,
    bytes: u64,
}

impl<'a> Admitted<'a> {
    /// Also gives what others were let pass with.
    fn new(count: &'a AtomicU64, bytes: u64) -> (Admitted<'a>, u64) {
        (Admitted { count, bytes }, if bytes > 0 { count.fetch_add(bytes, Ordering::Relaxed) } else { 0 })
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.count.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl Relief {
    pub(in crate::engine) fn new(room: Arc<Room>, memtable_bytes: u64) -> Relief {
        Relief {
            room,
            memtable_bytes,
            vain: Mutex::ranked(Rank::Relieving, Vain::default()),
            admitted: AtomicU64::new(0),
            merging: AtomicU64::new(0),
            removes: AtomicU64::new(0),
        }
    }

    /// Held while room is made.
    pub(super) fn lock(&self) -> MutexGuard<'_, Vain> {
        self.vain.lock()
    }

    pub(in crate::engine) fn reserve_bytes(&self) -> u64 {
        let max = reserve_bytes_max(self.memtable_bytes);
        (self.room.taken_bytes() / RESERVE_PART).clamp(RESERVE_BYTES_MIN.min(max), max)
    }

    /// What a flush of all that is in memory may need.
    pub(in crate::engine) fn flush_need(&self, pace: &Pace, state: &State) -> u64 {
        let (bytes, tables) = (pace.memtable_bytes(), state.tables.len() as u64);
        let runs = (tables * TABLE_RUN_BYTES).min(self.reserve_bytes() / 2);
        bytes + bytes / RUN_OVERHEAD_PART + FLUSH_BYTES_MIN + runs + tables * TABLE_BYTES
    }

    /// Lets a commit pass that nobody measures: the disk has room.
    #[inline(always)]
    pub(in crate::engine) fn unmeasured(&self) -> Admitted<'_> {
        Admitted { count: &self.admitted, bytes: 0 }
    }

    /// Lets so many bytes of a commit pass, if there is room for them. What is kept, what memory needs and
    /// what others were admitted with is not room.
    pub(super) fn admit(&self, bytes: u64, kept: u64, flush_need: u64) -> Option<Admitted<'_>> {
        let (admitted, others) = Admitted::new(&self.admitted, bytes);
        let need = kept.saturating_add(flush_need).saturating_add(others).saturating_add(bytes);
        self.room.secure(need).then_some(admitted)
    }

    /// Whether there is much more or much less room than when merges were last tried, or was much more in
    /// between. Then merges that were in vain may find some, or have less to do.
    pub(super) fn room_has_changed(&self, vain: &Vain) -> bool {
        let (now, most) = (self.room.bytes_soon(), self.room.most_bytes());
        // A tight disk has little more than the reserve, however large the file is.
        let much = self.gain_worth().min(self.reserve_bytes() / 2);
        now.abs_diff(vain.room).max(most.saturating_sub(vain.room)) >= much
    }

    /// Notes how much room there is when merges have been tried. REQUIRES: merges are held back.
    pub(super) fn note_room(&self, vain: &mut Vain) {
        self.room.forget_most_bytes();
        vain.room = self.room.bytes_soon();
    }

    /// Lets a merge pass that is likely to find room, if such a part of what it reads is alive. One that ends
    /// half-way takes more than it gives back. `flush_bytes` is what flushes write, about.
    pub(in crate::engine) fn claim(
        &self,
        job: &MergeJob,
        alive: f64,
        flush_bytes: u64,
        flush_need: impl FnOnce() -> u64,
    ) -> Option<Admitted<'_>> {
        if !self.room.is_tight() {
            return Some(Admitted { count: &self.merging, bytes: 0 });
        }
        let need = merge_need(job, alive) + partition_bytes(flush_bytes, 0, false) / 2;
        let (claim, others) = Admitted::new(&self.merging, need);
        (need.saturating_add(others) <= self.merges_room(job.urgent, flush_need())).then_some(claim)
    }

    /// What merges may take.
    fn merges_room(&self, urgent: bool, flush_need: u64) -> u64 {
        let held_back = self.reserve_bytes() / if urgent { URGENT_PART } else { MERGES_PART };
        self.room.bytes().saturating_sub(flush_need + held_back)
    }

    /// Whether a merge that is under way has left what it must.
    pub(in crate::engine) fn leaves_room(&self, urgent: bool, flush_need: impl FnOnce() -> u64) -> bool {
        !self.room.is_tight() || self.merges_room(urgent, flush_need()) > 0
    }

    /// How much of what is alive in value segments may be copied before these are free.
    pub(in crate::engine) fn draining_room(&self, flush_need: impl FnOnce() -> u64) -> u64 {
        if self.room.is_tight() { self.room.bytes().saturating_sub(flush_need()) / 2 } else { u64::MAX }
    }

    /// Whether a value segment is worth emptying where the disk is tight.
    pub(in crate::engine) fn is_sparse(&self, s: &Sparse) -> bool {
        s.dead_bytes >= (s.bytes / TIGHT_DEAD_PART).max(TIGHT_DEAD_BYTES_MIN)
    }

    /// So much garbage is worth a merge.
    pub(super) fn gain_worth(&self) -> u64 {
        (self.room.taken_bytes() / GARBAGE_PART).max(GAIN_BYTES_MIN)
    }

    /// Counts records that were removed: a flush may free what they hid.
    pub(super) fn note_removes(&self, records: u64) {
        self.removes.fetch_add(records, Ordering::Relaxed);
    }

    /// How many records have been removed since the last flush for that.
    pub(super) fn removes(&self) -> u64 {
        self.removes.load(Ordering::Relaxed)
    }

    /// A flush has taken so many of them.
    pub(super) fn forget_removes(&self, records: u64) {
        self.removes.fetch_sub(records, Ordering::Relaxed);
    }
}
