//! The database in figures.

use crate::base::error::Result;
use crate::engine::state::{Level, State, TableState};
use crate::engine::{Engine, IndexSlot, Table};
use crate::format::few::Few;
use crate::format::hidden::is_hidden;
use crate::space::PinView;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// One level of a table.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-levelstats-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// t.put_many((0..1_000u32).map(|n| (n.to_be_bytes(), [7; 100])))?;
/// db.compact()?;
/// let levels = db.stats().levels;
/// assert!(levels.iter().any(|level| level.table == "t" && level.records == 1_000));
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelStats {
    /// The table's name.
    pub table: String,
    /// Its place in the order of age: 0 = newest.
    pub level: usize,
    /// Its partitions.
    pub runs: usize,
    /// Bytes of the file.
    pub bytes: u64,
    /// Records, tombstones included.
    pub records: u64,
    /// Records that are tombstones.
    pub deletes: u64,
}

/// A snapshot of what the engine counts. Sizes are in bytes. Counts are since the opening.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-stats-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// t.put("ada", "1815")?;
/// db.flush()?;
/// let stats = db.stats();
/// assert!(stats.file_bytes >= stats.live_bytes && stats.commits >= 1);
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The file's length.
    pub file_bytes: u64,
    /// Bytes of the file in use.
    pub live_bytes: u64,
    /// Bytes of the file that are free, to be used again.
    pub free_bytes: u64,
    /// Memory of the memtables.
    pub memtable_bytes: u64,
    /// Memory of the tables themselves, and of the records of small ones.
    pub table_bytes: u64,
    /// Log waiting in memory, and in the file.
    pub log_bytes: u64,
    /// Commits that opening found in the log and in no run, and the records in them, tombstones included.
    pub log_commits: u64,
    /// See `log_commits`.
    pub log_records: u64,
    /// Value segments in the file.
    pub value_bytes: u64,
    /// Partitions of levels, of all tables.
    pub runs: u64,
    /// The levels, by table, newest first.
    pub levels: Vec<LevelStats>,
    /// What is kept in memory of the file's pages, in bytes: their guides. Where the file is not mapped, the
    /// pages themselves.
    pub cache_bytes: u64,
    /// Pages that had to be read from the file and checked.
    pub cache_misses: u64,
    /// Pages in memory that were given up for others. None where the file is mapped.
    pub cache_evictions: u64,
    /// Bytes written to the file, and calls that wrote them.
    pub written_bytes: u64,
    /// See `written_bytes`.
    pub write_calls: u64,
    /// Bytes read from the file.
    pub read_bytes: u64,
    /// Syncs of the file.
    pub syncs: u64,
    /// Bytes of keys and values in commits. `written_bytes` divided by this is the write amplification.
    pub user_bytes: u64,
    /// Commits.
    pub commits: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Merges done, the records they read, and the time they took, in nanoseconds.
    pub merges: u64,
    /// See `merges`.
    pub merged_records: u64,
    /// See `merges`.
    pub merge_ns: u64,
    /// Commits that were delayed by more than a millisecond, and for how long in all.
    pub stalls: u64,
    /// See `stalls`.
    pub stall_ns: u64,
    /// The number of the newest checkpoint. In a follower, of the one that it shows.
    pub checkpoint: u64,
    /// Checkpoints that followers of other handles read ([`Options::follow`](crate::Options::follow)), the
    /// oldest first. In a handle that does not write those whose pins were revoked
    /// ([`Options::pinned_bytes_max`](crate::Options::pinned_bytes_max)) are among them
    /// ([`PinStats::revoked`]). None are where the system does not tell.
    pub pins: Vec<PinStats>,
    /// Bytes of the file that are kept only for these. 0 in a handle that does not write.
    pub pinned_bytes: u64,
    /// The newest commit that all synchronous mirrors have ([`Mirror::synchronous`](crate::Mirror)). None if
    /// there is none.
    pub mirrored_commit: Option<u64>,
    /// Durable commits that returned without such a mirror although there was one: it has not acknowledged
    /// them within [`Options::mirror_timeout`](crate::Options::mirror_timeout), or the handle was closed.
    pub unmirrored_commits: u64,
}

/// A checkpoint that followers read.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-pinstats-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// use azekura::Freshness;
/// t.put("ada", "1815")?;
/// let follower = Db::open(&path, Options::new().freshness(Freshness::Checkpoint))?;
/// let reading = follower.read();
/// db.flush()?;
/// for pin in db.stats().pins {
///     println!("checkpoint {} keeps {:?} bytes for {:?}", pin.checkpoint, pin.bytes, pin.age);
/// }
/// # drop((reading, follower)); drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinStats {
    /// Its number.
    pub checkpoint: u64,
    /// For how long there has been a newer one, as far as this handle knows. It asks at each checkpoint. In a
    /// handle that does not write: zero for the newest checkpoint, and `None` for others, since only the
    /// writer knows. `None` for all where the file cannot be read, so that the newest one is not known.
    pub age: Option<Duration>,
    /// Bytes of the file that cannot be used again because of it. What several pins keep counts for each. In
    /// a handle that does not write: 0 for the newest checkpoint and for those whose pins were revoked, and
    /// `None` for others. All of them together keep at most what `file_bytes` has beyond `live_bytes`.
    pub bytes: Option<u64>,
    /// Whether the writer has stopped honouring its pins: then they keep nothing, and who reads it gets
    /// `SnapshotTooOld`. A handle that writes does not list such. In others it is what the newest superblock
    /// says. `None` where that cannot be read, and where a writer without limits has written since pins were
    /// revoked: then nothing tells which ones these are.
    pub revoked: Option<bool>,
}

/// One table in figures, as [`Table::stats`] gives them. Sizes are in bytes.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-tablestats-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// t.put_many((0..1_000u32).map(|n| (n.to_be_bytes(), [7; 100])))?;
/// db.compact()?;
/// let stats = t.stats()?;
/// assert_eq!((stats.records_estimate, stats.levels, stats.indexes), (1_000, 1, 0));
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableStats {
    /// About how many records there are. Records that were put again or removed since the last merge count
    /// too. Where all is one level it is right. [`Table::count`] counts them.
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
    /// Bytes of the file in runs of its indexes. They are not in `run_bytes`.
    pub index_bytes: u64,
}

impl Table {
    /// The table in figures. Nothing is read from the file, and no record is looked at.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-table-stats-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let t = db.table("t", TableKind::Ordered)?;
    /// t.put_many((0..10_000u64).map(|i| (i.to_be_bytes(), [7; 100])))?;
    /// assert_eq!(t.stats()?.records_estimate, 10_000);
    /// assert!(t.stats()?.memory_bytes > 1_000_000);
    /// db.compact()?;
    /// let stats = t.stats()?;
    /// assert_eq!((stats.records_estimate, stats.levels, stats.memory_bytes), (10_000, 1, 0));
    /// assert!(stats.run_bytes > 1_000_000);
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoSuchTable` if the table was dropped, `Closed`, `Forked`.
    pub fn stats(&self) -> Result<TableStats> {
        let state = self.db.engine.newest()?;
        let t = self.of(&state)?;
        let indexes = || t.indexes.iter().flat_map(|list| list.iter());
        let bytes_of = |slot: &Arc<IndexSlot>| state.table(slot.id).map_or(0, |t| figures(t).run_bytes);
        Ok(TableStats {
            indexes: indexes().count() as u64,
            index_bytes: indexes().map(bytes_of).fold(0, u64::saturating_add),
            ..figures(t)
        })
    }
}

/// A table in figures, without its indexes.
pub(super) fn figures(t: &TableState) -> TableStats {
    let sum = |of: fn(&Level) -> u64| t.levels.iter().fold(0u64, |sum, level| sum.saturating_add(of(level)));
    let chunks = || t.chunks.iter().chain(t.frozen.iter());
    let active = t.active.as_ref().map_or(0, |active| active.list.len());
    let in_memory = (active + chunks().map(|chunk| chunk.block.len()).sum::<usize>()) as u64;
    // A tombstone is a record in a run, and hides another one.
    let in_runs = sum(Level::records).saturating_sub(sum(Level::deletes).saturating_mul(2));
    let few = t.few.as_ref();
    TableStats {
        records_estimate: in_runs + in_memory + few.map_or(0, Few::records),
        levels: t.levels.len() as u64,
        runs: sum(|level| level.runs.len() as u64),
        run_bytes: sum(Level::bytes),
        value_bytes: sum(Level::large_bytes),
        memory_bytes: (t.live_bytes() + t.frozen.iter().map(|chunk| chunk.bytes()).sum::<usize>()) as u64
            + few.map_or(0, |few| few.bytes().len() as u64),
        ..TableStats::default()
    }
}

/// The levels of all tables that users see.
fn levels_of(state: &State) -> Vec<LevelStats> {
    state
        .tables
        .with_runs()
        .filter(|t| !is_hidden(&t.name))
        .flat_map(|t| {
            t.levels.iter().enumerate().map(|(level, l)| LevelStats {
                table: t.name.to_string(),
                level,
                runs: l.runs.len(),
                bytes: l.bytes(),
                records: l.records(),
                deletes: l.deletes(),
            })
        })
        .collect()
}

pub(super) fn stats(engine: &Engine) -> Stats {
    let state = engine.last_known();
    let whole = engine;
    let engine = whole.behind(&state);
    let (checkpoint, pins) = whole.pins(&state);
    let runs = state.tables.with_runs().flat_map(|t| t.levels.iter()).map(|l| l.runs.len() as u64).sum();
    let (io, counters) = (&engine.counters.io, &engine.counters);
    let get = |n: &std::sync::atomic::AtomicU64| n.load(Ordering::Relaxed);
    let cache = engine.store.pages.stats();
    let (live_bytes, free_bytes) = engine.space.taken_and_free();
    Stats {
        file_bytes: engine.store.file.len().unwrap_or(0),
        live_bytes,
        free_bytes,
        memtable_bytes: engine.pace.memtable_bytes(),
        table_bytes: engine.memory.table_bytes(engine.state.load().tables.len()),
        // Those of earlier handles' chains are counted apart.
        log_bytes: engine.log.queued_bytes() as u64 + engine.log.file_bytes() + get(&counters.old_log_bytes),
        log_commits: get(&counters.log_commits),
        log_records: get(&counters.log_records),
        value_bytes: engine.values.segments().iter().map(|s| s.bytes()).sum(),
        runs,
        levels: levels_of(&state),
        cache_bytes: cache.bytes,
        cache_misses: cache.misses,
        cache_evictions: cache.evictions,
        written_bytes: get(&io.written_bytes),
        write_calls: get(&io.write_calls),
        read_bytes: get(&io.read_bytes),
        syncs: get(&io.syncs),
        user_bytes: get(&counters.user_bytes),
        commits: get(&counters.commits),
        flushes: get(&counters.flushes),
        merges: get(&engine.compactor.merges),
        merged_records: get(&engine.compactor.records),
        merge_ns: get(&engine.compactor.ns),
        stalls: get(&counters.stalls),
        stall_ns: get(&counters.stall_ns),
        checkpoint,
        pins: pins
            .into_iter()
            .map(|PinView { checkpoint, age, bytes, is_revoked: revoked }| PinStats {
                checkpoint,
                age,
                bytes,
                revoked,
            })
            .collect(),
        pinned_bytes: engine.space.kept_bytes(),
        mirrored_commit: whole.mirrored.acknowledged(),
        unmirrored_commits: whole.mirrored.went_without(),
    }
}
