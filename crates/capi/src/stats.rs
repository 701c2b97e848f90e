//! The database in figures, and structures that may grow.

use crate::call::Caller;
use crate::handles::azk_db;
use crate::slots::shared;
use crate::status::{Outcome, azk_status, invalid};
use azekura::Stats;
use std::ptr::NonNull;

/// A structure of the caller's that says in its first field, a `size_t`, how large it is: a caller that was
/// built with an older header has fewer fields, and gets those.
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

    /// Fills the fields that the caller knows of, but for the size.
    pub(crate) fn fill(&mut self, value: T) {
        let bytes = self.size.min(size_of::<T>()) - size_of::<usize>();
        let from = (&raw const value).cast::<u8>();
        // SAFETY: `new` has seen that the structure is not NULL and has more than a size; the caller answers
        // for the room. What is copied is within both, for `bytes` is what is left of the smaller one. All
        // fields are of 8 bytes, so there is nothing between them that was never written.
        unsafe {
            let to = self.at.as_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(from.add(size_of::<usize>()), to.add(size_of::<usize>()), bytes);
        }
    }
}

/// What the engine counts. Set `size` to sizeof(azk_stats) before the call. Sizes are in bytes; counts are
/// since the opening.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct azk_stats {
    /// The size of this structure, as the caller knows it: later versions may have more fields.
    pub size: usize,
    /// The file's length.
    pub file_bytes: u64,
    /// Bytes of the file in use.
    pub live_bytes: u64,
    /// Bytes of the file in holes, to be used again.
    pub free_bytes: u64,
    /// Memory of the memtables.
    pub memtable_bytes: u64,
    /// Memory of the tables themselves, the records of small ones included.
    pub table_bytes: u64,
    /// Log waiting in memory, and in the file.
    pub log_bytes: u64,
    /// Commits that opening has found in the file's log.
    pub log_commits: u64,
    /// The records in them, deletes included.
    pub log_records: u64,
    /// Large values in the file.
    pub value_bytes: u64,
    /// Partitions of sorted runs, of all tables.
    pub runs: u64,
    /// What is kept in memory of the file's pages.
    pub cache_bytes: u64,
    /// Pages that had to be read from the file and checked.
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
    /// Memtables flushed.
    pub flushes: u64,
    /// Merges done.
    pub merges: u64,
    /// The records that they read.
    pub merged_records: u64,
    /// The time that they took, in nanoseconds.
    pub merge_ns: u64,
    /// Commits that were delayed by more than a millisecond.
    pub stalls: u64,
    /// For how long in all, in nanoseconds.
    pub stall_ns: u64,
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
    }
}

/// The database in figures; zeros in a forked child. Errors: AZK_INVALID if `size` was not set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn azk_db_stats(db: *const azk_db, stats: *mut azk_stats) -> azk_status {
    // SAFETY: as the header demands of the caller.
    unsafe { Caller::trusted() }.run(|c| {
        let mut out = Growing::new(c, stats, "stats")?;
        out.fill(figures_of(&shared(db)?.stats()));
        Ok(())
    })
}
