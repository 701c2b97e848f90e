//! Memory: how the budget is divided, and what is known of its use.
//!
//! `divide` is the whole policy. It is a pure function: what it is told of the load is all that it knows.

use super::config::Config;
use crate::base::codec::usize_of64;
use crate::base::heap;
use crate::base::limits::SEGMENT_BYTES;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::memtable::pool::Pool;
use crate::run::Buffers;
use crate::space::Room;
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as Count;

/// Unless the options say otherwise, memtables have this part of the budget, within these bounds.
const MEMTABLE_PART: u64 = 8;
const MEMTABLE_BYTES_MIN: u64 = 1 << 20;
const MEMTABLE_BYTES_MAX: u64 = 64 << 20;
/// On a nearly full disk a memtable is this part of the room, but no less than so many bytes.
const TIGHT_MEMTABLE_PART: u64 = 16;
const TIGHT_MEMTABLE_BYTES_MIN: u64 = 64 << 10;
/// Memtables that hold less than this part of their size are small.
const SMALL_PART: u64 = 16;
/// Memtables that grow by less than this part of their size in a while are hardly written to.
const TRICKLE_PART: u64 = 64;
/// What waits for the log is a bulk from this part of a memtable on. Shorter runs would be merged too often.
const BULK_PART: u64 = 4;
/// The buffers of merges and of large values have this part of the budget, and no more than so many bytes.
const BUFFERS_PART: u64 = 8;
const BUFFERS_BYTES_MAX: u64 = 48 << 20;
/// Each merge reads some ten or twenty runs and writes one. Its write buffer is this part of all buffers.
const WRITE_PART: u64 = 8;
/// The page cache has at least this part of the budget.
const CACHE_PART_MIN: u64 = 4;
/// Guides may take this part of the budget where pages are read in the file's mapping. For pages of 16 KiB
/// that is enough for 64 times as much data as the budget.
const GUIDES_PART: u64 = 4;
/// The few records of small tables may take this part of the budget, and no more than so many bytes, since
/// each checkpoint writes them all. (It is enough for some 100,000 tables of a short record each.)
const FEW_PART: u64 = 4;
const FEW_BYTES_MAX: u64 = 8 << 20;
/// If less than this part of the budget was given back, it was not worth it.
const GIVEN_PART: u64 = 16;

/// All that the division of memory depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// The whole budget.
    pub(super) budget_bytes: u64,
    /// What the options give memtables.
    pub(super) memtable_bytes: u64,
    /// The room that is left on the disk, if that is nearly full.
    pub(super) tight_room_bytes: Option<u64>,
}

/// What each use of memory gets.
#[derive(Clone, Copy)]
pub(super) struct Division {
    /// Memtables that hold so much are frozen, and a flush writes about that. From half of it on writers are
    /// slowed while a flush is under way. Runs, tiers and partitions are measured by it.
    pub(super) flush_bytes: u64,
    /// Writers wait for the flush under way when memtables hold so much.
    pub(super) full_bytes: u64,
    /// See `SMALL_PART`.
    pub(super) small_bytes: u64,
    /// See `TRICKLE_PART`.
    pub(super) trickle_bytes: u64,
    /// See `BULK_PART`.
    pub(super) bulk_bytes: u64,
    /// A log that a flush makes needless may grow to this, however little is in memory.
    pub(super) log_bytes: u64,
    /// Memory of flushed chunks that is kept for those to come.
    pub(super) pool_bytes: u64,
    /// The page cache, where there is one: what memtables and merges leave at their largest.
    pub(super) cache_bytes: u64,
    /// Guides, where the file is mapped.
    pub(super) guides_bytes: u64,
    /// The few records of small tables.
    pub(super) few_bytes: u64,
    /// The buffers of a merge.
    pub(super) buffers: Buffers,
    /// See `GIVEN_PART`.
    pub(super) given_bytes_min: u64,
}

/// What memtables have by default.
pub(crate) fn default_memtable_bytes(budget_bytes: u64) -> u64 {
    (budget_bytes / MEMTABLE_PART).clamp(MEMTABLE_BYTES_MIN, MEMTABLE_BYTES_MAX)
}

/// Divides the memory.
#[inline]
pub(super) fn divide(load: Load) -> Division {
    let Load { budget_bytes, memtable_bytes, tight_room_bytes } = load;
    let flush_bytes = tight_room_bytes.map_or(memtable_bytes, |room| {
        let least = TIGHT_MEMTABLE_BYTES_MIN.min(memtable_bytes);
        (room / TIGHT_MEMTABLE_PART).clamp(least, memtable_bytes)
    });
    let buffer_bytes = (budget_bytes / BUFFERS_PART).min(BUFFERS_BYTES_MAX);
    let write = 1 << (buffer_bytes / WRITE_PART).max(1).ilog2();
    let write = usize_of64(write).clamp(SEGMENT_BYTES / 16, SEGMENT_BYTES);
    // Live and frozen memtables, and what the log's queue and the pool hold of them.
    let elsewhere = memtable_bytes * 7 / 2 + buffer_bytes;
    Division {
        flush_bytes,
        full_bytes: memtable_bytes * 3 / 2,
        small_bytes: memtable_bytes / SMALL_PART,
        trickle_bytes: memtable_bytes / TRICKLE_PART,
        bulk_bytes: memtable_bytes / BULK_PART,
        log_bytes: memtable_bytes / 4 * 3,
        pool_bytes: memtable_bytes,
        cache_bytes: budget_bytes.saturating_sub(elsewhere).max(budget_bytes / CACHE_PART_MIN),
        guides_bytes: budget_bytes / GUIDES_PART,
        few_bytes: (budget_bytes / FEW_PART).min(FEW_BYTES_MAX),
        buffers: Buffers { read: write / 4, write },
        given_bytes_min: budget_bytes / GIVEN_PART,
    }
}

impl Load {
    /// On a disk with room.
    pub(super) fn of(config: &Config) -> Load {
        let Config { memory_bytes, memtable_bytes, .. } = *config;
        Load { budget_bytes: memory_bytes, memtable_bytes, tight_room_bytes: None }
    }
}

/// The budget as it is divided now, and what is known of the memory's use.
pub(crate) struct MemoryBudget {
    /// What the options say.
    load: Load,
    /// What the disk says: memtables are small where it is nearly full.
    room: Arc<Room>,
    /// The memory of chunks that were flushed, for those to come.
    pub(crate) pool: Arc<Pool>,
    /// Bytes of the records of small tables, which stand in the manifest and in memory.
    pub(super) few_bytes: Count,
    /// Memtables have held more than a little since memory was last given back.
    pub(super) loading: AtomicBool,
}

impl MemoryBudget {
    pub(super) fn new(config: &Config, room: Arc<Room>) -> MemoryBudget {
        let load = Load::of(config);
        MemoryBudget {
            load,
            room,
            pool: Pool::new(usize_of64(divide(load).pool_bytes)),
            few_bytes: Count::new(0),
            loading: AtomicBool::new(false),
        }
    }

    /// How memory is divided now, by what the options and the disk say.
    #[inline]
    pub(super) fn division(&self) -> Division {
        let tight_room_bytes = self.room.is_tight().then(|| self.room.bytes());
        divide(Load { tight_room_bytes, ..self.load })
    }

    /// See `Division::flush_bytes`.
    pub(super) fn flush_bytes(&self) -> u64 {
        self.division().flush_bytes
    }

    /// The whole budget.
    pub(super) fn budget_bytes(&self) -> u64 {
        self.load.budget_bytes
    }

    /// What the options give memtables.
    pub(super) fn memtable_bytes(&self) -> u64 {
        self.load.memtable_bytes
    }

    /// Whether memtables that hold so much are small.
    pub(super) fn is_small(&self, memtable_bytes: u64) -> bool {
        memtable_bytes <= self.division().small_bytes
    }

    /// Gives the memory back that a load has needed, if there was one.
    pub(super) fn end_load(&self) {
        if self.loading.swap(false, Ordering::Relaxed) {
            self.pool.clear();
            heap::give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn load(budget_bytes: u64) -> Load {
        let memtable_bytes = default_memtable_bytes(budget_bytes);
        Load { budget_bytes, memtable_bytes, tight_room_bytes: None }
    }

    #[test]
    fn the_budget_is_divided_as_the_table_says() {
        // Budget; memtable, cache, guides, few records, write buffer.
        let table = [
            (8 * MIB, MIB, 3 * MIB + 512 * KIB, 2 * MIB, 2 * MIB, 256 * KIB),
            (64 * MIB, 8 * MIB, 28 * MIB, 16 * MIB, 8 * MIB, MIB),
            (256 * MIB, 32 * MIB, 112 * MIB, 64 * MIB, 8 * MIB, 4 * MIB),
            (1024 * MIB, 64 * MIB, 752 * MIB, 256 * MIB, 8 * MIB, 4 * MIB),
        ];
        for (budget, memtable, cache, guides, few, write) in table {
            let d = divide(load(budget));
            assert_eq!((d.flush_bytes, d.pool_bytes), (memtable, memtable));
            assert_eq!((d.full_bytes, d.log_bytes), (memtable * 3 / 2, memtable / 4 * 3));
            assert_eq!(
                (d.small_bytes, d.trickle_bytes, d.bulk_bytes),
                (memtable / 16, memtable / 64, memtable / 4)
            );
            assert_eq!((d.cache_bytes, d.guides_bytes, d.few_bytes), (cache, guides, few), "{budget}");
            assert_eq!((d.buffers.write as u64, d.buffers.read as u64), (write, write / 4), "{budget}");
            assert_eq!(d.given_bytes_min, budget / 16);
        }
    }

    #[test]
    fn a_memtable_that_was_asked_for_leaves_the_cache_a_quarter() {
        let d = divide(Load { memtable_bytes: 1 << 30, ..load(64 * MIB) });
        assert_eq!((d.flush_bytes, d.cache_bytes), (1 << 30, 16 * MIB));
    }

    #[test]
    fn a_nearly_full_disk_makes_memtables_small() {
        let on = |room| divide(Load { tight_room_bytes: Some(room), ..load(256 * MIB) }).flush_bytes;
        // Room; memtable.
        for (room, flush_bytes) in [(0, 64 * KIB), (MIB, 64 * KIB), (16 * MIB, MIB), (1 << 40, 32 * MIB)] {
            assert_eq!(on(room), flush_bytes, "{room}");
        }
        let small = Load { memtable_bytes: 16 * KIB, tight_room_bytes: Some(0), ..load(8 * MIB) };
        assert_eq!(divide(small).flush_bytes, 16 * KIB, "never more than the options allow");
    }
}
