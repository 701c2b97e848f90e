//! The database's figures, the pins of followers, and structures that may get more fields.

use crate::call::Caller;
use crate::handles::{azk_db, azk_table};
use crate::memory::Block;
use crate::slots::shared;
use crate::status::{Outcome, azk_status, invalid};
use azekura::{PinStats, Stats};
use std::ptr::NonNull;
use std::time::Duration;

/// A structure of the caller whose first field, a `size_t`, says how large it is. A caller that was built
/// with an older header has fewer fields, and gets only those.
pub(crate) struct Growing<T> {
    at: NonNull<T>,
    size: usize,
}

impl<T: Copy> Growing<T> {
    pub(crate) fn new(c: Caller, at: *mut T, what: &str) -> Outcome<Growing<T>> {
        c.place(at, what)?;
        let &[size] = c.array(at.cast::<usize>().cast_const(), 1, what)? else { return Err(invalid(what)) };
        match NonNull::new(at) {
            Some(at) if size > size_of::<usize>() => Ok(Growing { at, size }),
            _ => Err(invalid(format!("the size field of {what} is {size}: set it to the structure's size"))),
        }
    }

    /// Fills all fields that the caller knows of, except the size.
    pub(crate) fn fill(&mut self, value: T) {
        let bytes = self.size.min(size_of::<T>()) - size_of::<usize>();
        let from = (&raw const value).cast::<u8>();
        // SAFETY: `new` has checked that the structure is not NULL and has more than a size. The caller
        // answers for the room. The copy is within both structures: `bytes` is what the smaller one has
        // behind its size. All fields have 8 bytes, so there is no padding.
        unsafe {
            let to = self.at.as_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(from.add(size_of::<usize>()), to.add(size_of::<usize>()), bytes);
        }
    }
}

/// What the engine counts. Set `size` to sizeof(azk_stats) before the call. Sizes are in bytes. Counts begin
/// at the opening.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_stats {
    /// The size of this structure, as the caller knows it. Later versions may have more fields.
    pub size: usize,
    /// The file's length.
    pub file_bytes: u64,
    /// Bytes of the file that are in use.
    pub live_bytes: u64,
    /// Bytes of the file in holes, which are used again.
    pub free_bytes: u64,
    /// Memory of the memtables.
    pub memtable_bytes: u64,
    /// Memory of the tables themselves, with the records of small ones.
    pub table_bytes: u64,
    /// Bytes of the log, in memory and in the file.
    pub log_bytes: u64,
    /// Commits that opening found in the file's log.
    pub log_commits: u64,
    /// Records of these commits, with deletes.
    pub log_records: u64,
    /// Bytes of large values in the file.
    pub value_bytes: u64,
    /// Partitions of sorted runs, in all tables.
    pub runs: u64,
    /// Memory that is kept for the file's pages.
    pub cache_bytes: u64,
    /// Pages that were read from the file and checked.
    pub cache_misses: u64,
    /// Pages in memory that made room for others.
    pub cache_evictions: u64,
    /// Bytes written to the file.
    pub written_bytes: u64,
    /// Calls that wrote them.
    pub write_calls: u64,
    /// Bytes read from the file.
    pub read_bytes: u64,
    /// Syncs of the file.
    pub syncs: u64,
    /// Bytes of keys and values in commits.
    pub user_bytes: u64,
    /// Commits.
    pub commits: u64,
    /// Flushes of memtables.
    pub flushes: u64,
    /// Merges that have ended.
    pub merges: u64,
    /// Records that merges have read.
    pub merged_records: u64,
    /// The time that merges took, in nanoseconds.
    pub merge_ns: u64,
    /// Commits that were delayed by more than a millisecond.
    pub stalls: u64,
    /// The time of these delays, in nanoseconds.
    pub stall_ns: u64,
    /// The number of the newest checkpoint; in a follower, of the one that it shows.
    pub checkpoint: u64,
    /// How many checkpoints followers of other handles read. azk_db_pins lists them.
    pub pins: u64,
    /// Bytes of the file that are kept for these alone.
    pub pinned_bytes: u64,
    /// For how long there has been a newer checkpoint than the oldest of these, in nanoseconds. 0 in a
    /// follower.
    pub oldest_pin_ns: u64,
    /// Durable commits that returned without a synchronous mirror although there was one.
    pub unmirrored_commits: u64,
}

fn figures_of(stats: &Stats) -> azk_stats {
    azk_stats {
        size: size_of::<azk_stats>(),
        file_bytes: stats.file_bytes,
        live_bytes: stats.live_bytes,
        free_bytes: stats.free_bytes,
        memtable_bytes: stats.memtable_bytes,
        table_bytes: stats.table_bytes,
        log_bytes: stats.log_bytes,
        log_commits: stats.log_commits,
        log_records: stats.log_records,
        value_bytes: stats.value_bytes,
        runs: stats.runs,
        cache_bytes: stats.cache_bytes,
        cache_misses: stats.cache_misses,
        cache_evictions: stats.cache_evictions,
        written_bytes: stats.written_bytes,
        write_calls: stats.write_calls,
        read_bytes: stats.read_bytes,
        syncs: stats.syncs,
        user_bytes: stats.user_bytes,
        commits: stats.commits,
        flushes: stats.flushes,
        merges: stats.merges,
        merged_records: stats.merged_records,
        merge_ns: stats.merge_ns,
        stalls: stats.stalls,
        stall_ns: stats.stall_ns,
        checkpoint: stats.checkpoint,
        pins: stats.pins.len() as u64,
        pinned_bytes: stats.pinned_bytes,
        oldest_pin_ns: stats.pins.first().and_then(|pin| pin.age).map_or(0, nanos),
        unmirrored_commits: stats.unmirrored_commits,
    }
}

/// The database's figures. Zeros in a forked child. Errors: AZK_INVALID if `size` was not set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_stats(db: *const azk_db, stats: *mut azk_stats) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut out = Growing::new(c, stats, "stats")?;
        out.fill(figures_of(&shared(db)?.stats()));
        Ok(())
    })
}

/// A checkpoint that followers of other handles read.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_pin {
    /// Its number.
    pub checkpoint: u64,
    /// For how long there has been a newer one, in nanoseconds, as far as this handle knows, which asks at
    /// each checkpoint. In a handle that does not write: 0 for the newest checkpoint, and UINT64_MAX for
    /// others, since only the writer knows, and where the file cannot be read.
    pub age_ns: u64,
    /// Bytes of the file that cannot be used again because of it. What several keep counts for each. In a
    /// handle that does not write: 0 for the newest checkpoint and for pins that the file says are revoked,
    /// and UINT64_MAX for others. All of them together keep at most what file_bytes of azk_stats has beyond
    /// live_bytes.
    pub bytes: u64,
}

fn nanos(age: Duration) -> u64 {
    u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)
}

fn pin_of(pin: &PinStats) -> azk_pin {
    azk_pin {
        checkpoint: pin.checkpoint,
        age_ns: pin.age.map_or(u64::MAX, nanos),
        bytes: pin.bytes.unwrap_or(u64::MAX),
    }
}

/// The checkpoints that followers of other handles read, the oldest first, in an array of *count elements.
/// Free the array with azk_free, once. On failure *out is NULL. None in a forked child. Errors:
/// AZK_NO_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_pins(
    db: *const azk_db,
    out: *mut *mut azk_pin,
    count: *mut usize,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let (mut out, mut count) = (c.handle_place(out)?, c.place(count, "count")?);
        count.set(0);
        let pins = shared(db)?.stats().pins;
        let mut block = Block::new(pins.len().saturating_mul(size_of::<azk_pin>()))?;
        block.begin_with::<azk_pin>(pins.len());
        pins.iter().enumerate().for_each(|(i, pin)| block.set(i, pin_of(pin)));
        out.set(block.release());
        count.set(pins.len());
        Ok(())
    })
}

/// One table in figures. Set `size` to sizeof(azk_table_figures) before the call. Sizes are in bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_table_figures {
    /// The size of this structure, as the caller knows it. Later versions may have more fields.
    pub size: usize,
    /// About how many records there are. Those that were put again or removed since levels were merged last
    /// count too. azk_table_count counts exactly.
    pub records_estimate: u64,
    /// Levels in the file.
    pub levels: u64,
    /// Their partitions.
    pub runs: u64,
    /// Bytes of the file in runs.
    pub run_bytes: u64,
    /// Bytes of large values to which runs refer.
    pub value_bytes: u64,
    /// Memory of what is in no run yet.
    pub memory_bytes: u64,
    /// Its indexes.
    pub indexes: u64,
    /// Bytes of the file in runs of its indexes. They are not in run_bytes.
    pub index_bytes: u64,
}

/// A table in figures. Nothing is read from the file. Errors: AZK_INVALID if `size` was not set,
/// AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_table_stats(
    table: *const azk_table,
    stats: *mut azk_table_figures,
) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(move |c| {
        let mut out = Growing::new(c, stats, "stats")?;
        let stats = shared(table)?.stats()?;
        out.fill(azk_table_figures {
            size: size_of::<azk_table_figures>(),
            records_estimate: stats.records_estimate,
            levels: stats.levels,
            runs: stats.runs,
            run_bytes: stats.run_bytes,
            value_bytes: stats.value_bytes,
            memory_bytes: stats.memory_bytes,
            indexes: stats.indexes,
            index_bytes: stats.index_bytes,
        });
        Ok(())
    })
}
