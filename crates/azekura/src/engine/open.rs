//! Opening: create, or recover what is there.
//!
//! Recovery reads the newest valid superblock and its manifest, claims the extents that it names,
//! and replays the log chains into fresh memtables, which stay in the manifest until a flush has made
//! them needless; new commits get a chain of their own. So the time to open depends on the log's
//! length, which the memtable's size bounds, and on nothing else.
//!
//! Of the last frames of a log nobody knows whether they are on the disk: the process may have been
//! killed before its sync, or the sync may have failed, and the system shows them all the same. They may
//! hold acknowledged commits, so their blocks are not touched either. Their commits are logged anew in
//! the handle's own chain, and a checkpoint that names it ends the old one before them (`secure`).
//! Only if there is no room for that are they written again where they stand.

use super::balance::Balance;
use super::checkpoint::{Checkpoint, OldLog, old_log_bytes};
use super::commit::{Batch, BatchPart, Commit};
use super::crowd::Crowd;
use super::length::{Length, named_bytes, value_end};
use super::memory::Tidying;
use super::pace::Pace;
use super::poison::Poison;
use super::state::{SortedRun, State, TableState};
use super::tables::Names;
use super::{Counters, Engine};
use crate::api::Config;
use crate::base::checksum::crc;
use crate::base::codec::{usize_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::life::Life;
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES, align_up};
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::thread::JoinHandle;
use crate::base::sync::{ArcSwap, Condvar, Mutex};
use crate::cache::Caches;
use crate::format::frame::Part;
use crate::format::manifest::{LogChain, Manifest, RunInfo, ValueInfo};
use crate::format::superblock::{self, ManifestAt, Parsed, Superblock};
use crate::log::Log;
use crate::log::recovery::replay;
use crate::memtable::pool::Pool;
use crate::run::{FilterBudget, Run, Store, read_error};
use crate::space::{Extent, Space};
use crate::storage::{BulkWrites, File, Gate, IoCounters, Metered, OpenMode, Storage};
use crate::values::{Segment, ValueRef, ValueStore};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What the superblocks say.
struct Found {
    block: Superblock,
    /// The other copy of the superblock, unless it is the same.
    stale_copy: Option<u64>,
    manifest: Manifest,
    extent: Option<Extent>,
}

/// Opens a database and starts its threads.
pub(crate) fn open(storage: &dyn Storage, path: &Path, config: Config) -> Result<(Arc<Engine>, Vec<JoinHandle<()>>)> {
    let io = Arc::new(IoCounters::default());
    let raw = open_file(storage, path, &config)?;
    let life = Arc::new(Life::new());
    let metered = Arc::new(Metered::new(raw, io.clone()));
    let file: Arc<dyn File> = Arc::new(Gate::new(metered, life.clone()));
    let name = || path.display().to_string();
    let lock = file.try_lock(!config.read_only).map_err(|e| named(path, "locking the database file", e))?;
    if !lock {
        return Err(Error::Locked { path: name(), exclusive: !config.read_only });
    }
    if is_empty(file.as_ref())? {
        if config.read_only || !config.create {
            return Err(Error::NotADatabase { path: name(), reason: "the file is empty".into() });
        }
        fill_empty(storage, file.as_ref())?;
    }
    let file_bytes = file.len().map_err(|e| Error::io("reading the file's length", e))?;
    let length = Length { path, file_bytes, read_only: config.read_only };
    let found = read_superblocks(file.as_ref(), &length)?;
    length.expect(named_bytes(&found.manifest, found.extent))?;
    if found.block.number == 1 && !config.read_only {
        // Whoever made the file may have died before its name was durable.
        sync_name(storage, path)?;
    }
    let found = Arc::new(found);
    let gate = || (file.clone(), life.clone());
    let build = |logs| {
        // Each has ids of its own: what one has written before it failed is no other's.
        let gap = if config.read_only { 0 } else { ID_GAP + (random(storage)? >> 32) };
        build(&length, config.clone(), gate(), io.clone(), &found, logs, gap).map(Arc::new)
    };
    if config.read_only {
        return Ok((build(Logs::Leave)?, Vec::new()));
    }
    let mut engine = build(Logs::Copy)?;
    match engine.secure(&found) {
        Err(Error::NoSpace { .. }) => {
            engine = build(Logs::Rewrite)?;
            engine.file.sync_data().map_err(|e| Error::io("syncing the log", e))?;
        }
        done => done?,
    }
    let threads = engine.start_threads()?;
    Ok((engine, threads))
}

/// An error of the system on the file itself, which says which file. A full disk stays what it is.
fn named(path: &Path, during: &'static str, source: io::Error) -> Error {
    match Error::io(during, source) {
        Error::Io { source, .. } => {
            Error::Open { path: path.display().to_string(), detail: format!("{during}: {source}") }
        }
        other => other,
    }
}

/// What happens to the frames of a log of which nobody knows whether they are durable.
#[derive(Clone, Copy, PartialEq)]
enum Logs {
    /// Nothing: the file is only read.
    Leave,
    /// Their commits are logged anew, elsewhere.
    Copy,
    /// They are written again where they stand.
    Rewrite,
}

/// Opens the file, or makes a new database beside it and renames it into place, so that a crash
/// leaves a whole database or none.
fn open_file(storage: &dyn Storage, path: &Path, config: &Config) -> Result<Arc<dyn File>> {
    let refuse = |detail: &str| Error::Open { path: path.display().to_string(), detail: detail.into() };
    let exists = storage.exists(path).map_err(|e| named(path, "looking for the database file", e))?;
    if exists && config.exclusive {
        return Err(refuse("the file exists already"));
    }
    if !exists {
        if !config.create || config.read_only {
            return Err(refuse("the file does not exist"));
        }
        create(storage, path)?;
    }
    let mode = if config.read_only { OpenMode::ReadOnly } else { OpenMode::ReadWrite };
    storage.open(path, mode).map_err(|e| named(path, "opening the database file", e))
}

fn create(storage: &dyn Storage, path: &Path) -> Result<()> {
    let during = "creating the database file";
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".new-{}-{:016x}", std::process::id(), random(storage)?));
    let fresh = path.with_file_name(name);
    let made = (|| {
        let file = storage.open(&fresh, OpenMode::CreateNew).map_err(|e| named(path, during, e))?;
        let block = first_superblock(storage)?;
        file.write_at(&[&*block, &*block].concat(), 0).map_err(|e| named(path, during, e))?;
        file.sync_all().map_err(|e| named(path, during, e))?;
        storage
            .rename(&fresh, path, false)
            .or_else(|e| {
                // Somebody else was faster: theirs is as good as ours.
                if e.kind() == io::ErrorKind::AlreadyExists { storage.remove(&fresh) } else { Err(e) }
            })
            .map_err(|e| named(path, during, e))?;
        sync_name(storage, path)
    })();
    if made.is_err() && storage.exists(&fresh).unwrap_or(false) {
        // The first error is the one to report.
        let _left_behind = storage.remove(&fresh);
    }
    made
}

/// Makes the file's name durable.
fn sync_name(storage: &dyn Storage, path: &Path) -> Result<()> {
    #[cfg(azekura_canary)]
    if crate::base::canary::sings("forget_name") {
        return Ok(());
    }
    storage.sync_dir_of(path).map_err(|e| named(path, "making the file's name durable", e))
}

fn random(storage: &dyn Storage) -> Result<u64> {
    storage.random().map_err(|e| Error::io("drawing random numbers", e))
}

/// Whether nothing was ever stored in a file: it has no bytes, or just the room for superblocks, as
/// `fill_empty` leaves it when it is cut off.
fn is_empty(file: &dyn File) -> Result<bool> {
    let len = file.len().map_err(|e| Error::io("reading the file's length", e))?;
    if len != SUPERBLOCKS_BYTES {
        return Ok(len == 0);
    }
    let mut bytes = vec![0; usize_of64(len)];
    file.read_at(&mut bytes, 0).map_err(|e| read_error(e, 0))?;
    Ok(bytes.iter().all(|&b| b == 0))
}

/// Makes a database of an empty file, which may have links, rights and an owner that are to stay. Its
/// length comes first. Then all that the first superblock says stands in 512 bytes, which disks write
/// as a whole or not at all, so that a crash leaves a database or an empty file.
fn fill_empty(storage: &dyn Storage, file: &dyn File) -> Result<()> {
    let during = "writing the first superblock";
    let block = first_superblock(storage)?;
    debug_assert!(block[512..].iter().all(|&b| b == 0), "the first manifest is small");
    file.set_len(SUPERBLOCKS_BYTES).map_err(|e| Error::io(during, e))?;
    file.sync_all().map_err(|e| Error::io(during, e))?;
    file.write_at(&[&*block, &*block].concat(), 0).map_err(|e| Error::io(during, e))?;
    file.sync_all().map_err(|e| Error::io(during, e))
}

fn first_superblock(storage: &dyn Storage) -> Result<Vec<u8>> {
    let manifest = Manifest { next_id: 1, next_table: 1, ..Manifest::default() };
    let block = Superblock {
        file_id: random(storage)?,
        number: 1,
        hash_seed: random(storage)?,
        manifest: ManifestAt::Inline(manifest.encode()),
    };
    Ok(block.encode())
}

fn read_superblocks(file: &dyn File, length: &Length<'_>) -> Result<Found> {
    let len = length.file_bytes;
    let mut best: Option<Superblock> = None;
    let mut copies = 0;
    let (mut damaged, mut newer) = (false, None);
    let mut best_at = 0;
    for at in [0, ALIGN_BYTES] {
        if at + ALIGN_BYTES > len {
            continue;
        }
        let mut bytes = vec![0; superblock::BYTES];
        file.read_at(&mut bytes, at).map_err(|e| read_error(e, at))?;
        match Superblock::parse(&bytes) {
            Ok(Parsed::Valid(b)) if best.as_ref() == Some(&b) => copies += 1,
            Ok(Parsed::Valid(b)) if best.as_ref().is_none_or(|x| b.number > x.number) => {
                (best, best_at, copies) = (Some(b), at, 1);
            }
            Ok(Parsed::Valid(_)) => {}
            Ok(Parsed::Damaged) => damaged = true,
            Ok(Parsed::Foreign) => {}
            Err(e) => newer = Some(e),
        }
    }
    if let Some(e) = newer {
        return Err(e);
    }
    let Some(block) = best else {
        if len < ALIGN_BYTES && begins_as_superblock(file, len)? {
            length.expect(SUPERBLOCKS_BYTES)?;
            return Err(Error::corrupt("superblock", 0, format!("the file was cut within it, after {len} bytes")));
        }
        return Err(if damaged {
            Error::corrupt("superblock", 0, "neither copy is whole")
        } else {
            let path = length.path.display().to_string();
            Error::NotADatabase { path, reason: "no superblock at its start".into() }
        });
    };
    let (manifest, extent) = read_manifest(file, &block.manifest, length)?;
    let stale_copy = (copies < 2).then_some(ALIGN_BYTES - best_at);
    Ok(Found { block, stale_copy, manifest, extent })
}

/// Whether what there is of a first superblock begins as one.
fn begins_as_superblock(file: &dyn File, len: u64) -> Result<bool> {
    let mut bytes = vec![0; usize_of64(len.min(superblock::MAGIC.len() as u64))];
    file.read_at(&mut bytes, 0).map_err(|e| read_error(e, 0))?;
    Ok(bytes == superblock::MAGIC)
}

fn read_manifest(file: &dyn File, at: &ManifestAt, length: &Length<'_>) -> Result<(Manifest, Option<Extent>)> {
    match at {
        ManifestAt::Inline(bytes) => Ok((Manifest::decode(bytes, 64)?, None)),
        ManifestAt::Extent { offset, len, crc: expected } => {
            let extent = Extent { offset: *offset, len: align_up(u64::from(*len)) };
            length.expect(extent.end())?;
            if extent.end() > length.file_bytes || offset % ALIGN_BYTES != 0 {
                return Err(Error::corrupt("superblock", 0, format!("manifest at {offset}+{len} is outside the file")));
            }
            let mut bytes = vec![0; usize_of(*len)];
            file.read_at(&mut bytes, *offset).map_err(|e| read_error(e, *offset))?;
            let found = crc(0, &bytes);
            if found != *expected && !crate::base::checksum::is_ignored() {
                let detail = format!("checksum {found:08x}, expected {expected:08x}");
                return Err(Error::corrupt("manifest", *offset, detail));
            }
            Ok((Manifest::decode(&bytes, *offset)?, Some(extent)))
        }
    }
}

/// A commit that was read from a log.
struct Replay {
    seq: u64,
    parts: Vec<Part>,
    /// It ends in a frame that may not be durable.
    in_doubt: bool,
}

/// What the log chains hold, before there is an engine to apply it to.
#[derive(Default)]
struct Replayed {
    commits: Vec<Replay>,
    logs: Vec<OldLog>,
    /// Segments that commits refer to.
    segments: BTreeMap<u32, ValueInfo>,
}

impl Replayed {
    /// Records of its commits, deletes included.
    fn records(&self) -> u64 {
        self.commits.iter().flat_map(|c| &c.parts).map(|p| p.block.len() as u64).sum()
    }
}

fn read_logs(file: &dyn File, length: &Length<'_>, found: &Found, logs: Logs) -> Result<Replayed> {
    let mut out = Replayed::default();
    let flushed = found.manifest.flushed_seq;
    let mut tables: BTreeSet<u32> = found.manifest.tables.iter().map(|t| t.id).collect();
    let mut next_table = found.manifest.next_table;
    let mut last = flushed;
    for log in &found.manifest.logs {
        let mut ends = Vec::new();
        let (commits, segments) = (&mut out.commits, &mut out.segments);
        let first = commits.len();
        let done = replay(file, found.block.file_id, found.block.number, log, |frame, seq, mut parts| {
            ends.push((frame, seq));
            if seq <= last {
                return Ok(());
            }
            last = seq;
            // A table that the manifest does not know was dropped after the commit, and the values
            // that the commit stored for it may have made room for others. So was one that was made by a commit
            // and whose id the manifest counts.
            parts.retain(|p| match p.created {
                Some(_) if p.table >= next_table => {
                    next_table = p.table + 1;
                    tables.insert(p.table)
                }
                Some(_) => false,
                None => tables.contains(&p.table),
            });
            for part in &parts {
                note_segments(segments, part)?;
            }
            commits.push(Replay { seq, parts, in_doubt: false });
            Ok(())
        });
        let done = done.map_err(|e| length.or_cut(e))?;
        let end_frame = if logs == Logs::Copy { done.safe_below } else { done.end_frame };
        if logs == Logs::Rewrite {
            done.rewrite(file)?;
        }
        // What the chain holds before its end: nothing else keeps it in the manifest.
        let last_seq = ends.iter().filter(|e| e.0 < end_frame).map(|e| e.1).max().unwrap_or(0);
        commits[first..].iter_mut().for_each(|c| c.in_doubt = c.seq > last_seq);
        let chain = LogChain { end_frame, ..log.clone() };
        out.logs.push(OldLog { chain, segments: done.segments, last_seq });
    }
    Ok(out)
}

/// Remembers the segments of a part, and how far its references reach into them.
fn note_segments(segments: &mut BTreeMap<u32, ValueInfo>, part: &Part) -> Result<()> {
    for &(id, extent) in &part.segments {
        segments.entry(id).or_insert(ValueInfo { id, extents: vec![extent], used: 0 });
    }
    if part.segments.is_empty() {
        return Ok(());
    }
    for i in 0..part.block.len() {
        if part.block.tag(i) == crate::format::block::Tag::Large {
            let at = ValueRef::decode(part.block.value(i))?;
            if let Some(s) = segments.get_mut(&at.segment) {
                s.used = s.used.max(u64::from(at.offset) + u64::from(at.len));
            }
        }
    }
    Ok(())
}

fn build(
    length: &Length<'_>,
    config: Config,
    (file, life): (Arc<dyn File>, Arc<Life>),
    io: Arc<IoCounters>,
    found: &Found,
    logs: Logs,
    id_gap: u64,
) -> Result<Engine> {
    // Before anything is written behind what the manifest names.
    let file_len = length.file_bytes;
    let replayed = read_logs(file.as_ref(), length, found, logs)?;
    let mut values: BTreeMap<u32, ValueInfo> = found.manifest.values.iter().map(|v| (v.id, v.clone())).collect();
    for (id, seen) in &replayed.segments {
        let known = values.entry(*id).or_insert_with(|| seen.clone());
        known.used = known.used.max(seen.used).min(known.bytes());
    }
    keep_referred(&mut values, &found.manifest, &replayed);
    for value in values.values_mut() {
        // Nothing is added to it any more. What it has beyond was perhaps given back when it was
        // closed, after the log or the manifest last spoke of it, and is somebody else's now.
        value.cut(align_up(value.used).max(ALIGN_BYTES));
    }
    let least_bytes = values.values().map(value_end).fold(named_bytes(&found.manifest, found.extent), u64::max);
    length.expect(least_bytes)?;
    let space = Arc::new(claim(found, &replayed, &values)?);
    let poison = Arc::new(Poison::default());
    let next_segment = values.keys().next_back().map_or(1, |id| id + 1);
    let bulk = BulkWrites::new(file.clone(), config.threads);
    let store = ValueStore::new(file.clone(), bulk.clone(), space.clone(), poison.clone(), next_segment);
    let values_store = Arc::new(store);
    let adopt = |v: &ValueInfo| {
        let segment = values_store.adopt(v.id, v.extents.clone(), align_up(v.used).min(v.bytes()));
        segment.found_in(file_len);
        segment
    };
    let held: Vec<Arc<Segment>> = values.values().map(adopt).collect();
    let (file_id, hash_seed) = (found.block.file_id, found.block.hash_seed);
    let flushed = found.manifest.flushed_seq;
    let log =
        Log::new(file.clone(), bulk.clone(), space.clone(), poison.clone(), values_store.clone(), file_id, flushed);
    let cache_bytes = usize_of64(config.cache_bytes_reading());
    let filters = FilterBudget::new(cache_bytes / FILTERS_PART);
    // Without the thread that takes from the cache what filters keep, they have a part for good.
    let has_flusher = config.threads && !config.read_only;
    let caches =
        Caches::new(if has_flusher { cache_bytes } else { cache_bytes - cache_bytes / FILTERS_PART }, config.threads)?;
    let buffers = config.buffers();
    let counters = Counters::default();
    counters.log_commits.store(replayed.commits.len() as u64, Ordering::Relaxed);
    counters.log_records.store(replayed.records(), Ordering::Relaxed);
    counters.old_log_bytes.store(old_log_bytes(&replayed.logs), Ordering::Relaxed);
    let engine = Engine {
        path: length.path.to_path_buf(),
        least_bytes,
        store: Store { file: file.clone(), bulk, space: space.clone(), caches, filters, file_id, hash_seed, buffers },
        file,
        life,
        io,
        space,
        hash_seed,
        values: values_store,
        log,
        state: ArcSwap::from_pointee(State::new(flushed)),
        poison,
        commit: Mutex::new(Commit::new(flushed + 1)),
        tidying: Tidying::default(),
        waiting: Mutex::default(),
        flushing: Mutex::default(),
        checkpoint: Mutex::new(Checkpoint {
            number: found.block.number,
            manifest: found.extent,
            old_logs: replayed.logs,
            flushed_seq: flushed,
            clean: found.manifest.logs.is_empty(),
            opened: found.block.number,
        }),
        retired: Mutex::new(Vec::new()),
        next_id: AtomicU64::new(found.manifest.next_id.saturating_add(id_gap)),
        changing_tables: Mutex::default(),
        names: Names::default(),
        pace: Pace::new(config.memtable_bytes),
        large_bytes: Default::default(),
        few_bytes: Default::default(),
        balance: Balance::new(),
        crowd: Crowd::new(),
        work: Mutex::default(),
        work_changed: Condvar::new(),
        stop: AtomicBool::new(false),
        closed: AtomicBool::new(false),
        counters,
        pool: Pool::new(usize_of64(config.memtable_bytes)),
        config,
    };
    engine.load_tables(&found.manifest, file_len)?;
    engine.apply_replayed(replayed.commits)?;
    engine.share_cache();
    drop(held);
    Ok(engine)
}

/// Ids given out after the last checkpoint, before a crash, must not be given out again: a page of
/// an unfinished run could otherwise pass for one of its namesake, and a frame of a chain that no
/// checkpoint came to name for one of the next. Whoever finds the same checkpoint skips another random
/// number of them besides.
const ID_GAP: u64 = 1 << 20;
/// The part of the page cache's budget that filters may keep for themselves.
const FILTERS_PART: usize = 8;

/// Forgets segments to which nothing refers.
fn keep_referred(values: &mut BTreeMap<u32, ValueInfo>, manifest: &Manifest, replayed: &Replayed) {
    let runs = manifest.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs));
    let mut referred: BTreeSet<u32> = runs.flat_map(|r| r.large.iter().map(|l| l.0)).collect();
    referred.extend(replayed.segments.keys());
    values.retain(|id, _| referred.contains(id));
}

/// The allocator in which everything that the manifest and the log name is taken.
fn claim(found: &Found, replayed: &Replayed, values: &BTreeMap<u32, ValueInfo>) -> Result<Space> {
    let mut live: Vec<Extent> = found.extent.into_iter().collect();
    live.extend(replayed.logs.iter().flat_map(|l| l.segments.iter().copied()));
    let runs = found.manifest.tables.iter().flat_map(|t| t.levels.iter().flat_map(|l| &l.runs));
    live.extend(runs.flat_map(|r| r.extents.iter().copied()));
    live.extend(values.values().flat_map(|v| v.extents.iter().copied()));
    Space::from_live(SUPERBLOCKS_BYTES, live).map_err(|(a, b)| {
        let detail = format!("extents {}+{} and {}+{} overlap or are impossible", a.offset, a.len, b.offset, b.len);
        Error::corrupt("manifest", 0, detail)
    })
}

impl Engine {
    fn load_tables(&self, manifest: &Manifest, file_len: u64) -> Result<()> {
        let mut next = self.state.load().copy();
        next.next_table = manifest.next_table.max(1);
        for info in &manifest.tables {
            let mut table = TableState::new(info.id, info.kind, info.name.clone());
            let mut levels = Vec::new();
            for level in &info.levels {
                let open = |r: &RunInfo| Ok(Arc::new(self.open_run(r.clone())?.found_in(file_len)));
                let runs: Vec<Arc<Run>> = level.runs.iter().map(open).collect::<Result<_>>()?;
                if runs.windows(2).any(|w| w[0].info.max >= w[1].info.min) {
                    return Err(Error::corrupt("manifest", 0, format!("table {:?}: partitions overlap", info.name)));
                }
                let joined = runs.len();
                levels.push(Arc::new(SortedRun::new(runs, 1.0, level.newest)?.joined_by(joined)));
            }
            if !levels.is_empty() {
                table.levels = Arc::new(levels);
            }
            if self.names.insert(table.name.clone(), table.id) || next.tables.get(table.id).is_some() {
                return Err(Error::corrupt("manifest", 0, "two tables have the same name or id"));
            }
            next.next_table = next.next_table.max(table.id + 1);
            next.tables.set(table);
        }
        for (id, few) in &manifest.few {
            let found = next.tables.get(*id).filter(|t| t.levels.is_empty() && t.few.is_none());
            let bad =
                || Error::corrupt("manifest", 0, format!("records of table {id}, which is not there or has runs"));
            let table = TableState { few: Some(few.clone()), ..TableState::clone(found.ok_or_else(bad)?) };
            self.count_few(None, Some(&table));
            next.tables.set(table);
        }
        self.state.store(Arc::new(next));
        Ok(())
    }

    fn apply_replayed(&self, commits: Vec<Replay>) -> Result<()> {
        for Replay { seq, parts, in_doubt } in commits {
            let mut batch = Batch { durable: true, ..Batch::default() };
            for part in parts {
                if let Some(table) = part.created {
                    if self.names.get(&table.name).is_some() {
                        return Err(Error::corrupt("log", 0, format!("two tables have the name {:?}", table.name)));
                    }
                    batch.created.push(table);
                    continue;
                }
                let find = |(id, _): &(u32, Extent)| self.values.segment(*id);
                let segments = part.segments.iter().filter_map(find).collect();
                batch.parts.push(BatchPart { table: part.table, block: part.block, ranges: part.ranges, segments });
            }
            self.apply_recovered(seq, batch, in_doubt)?;
            if !in_doubt {
                self.log.recovered(seq);
            }
        }
        Ok(())
    }

    /// Makes durable what recovery has read, before anything is built on it: a copy of the superblock, if
    /// there is one only, which the next checkpoint must not write over; and the commits of which nobody
    /// knows whether they are durable, by a chain of their own.
    fn secure(&self, found: &Found) -> Result<()> {
        if let Some(at) = found.stale_copy {
            let written = self.file.write_durable_at(&found.block.encode(), at);
            written.map_err(|e| Error::io("writing the superblock", e))?;
        }
        if self.log.queued_bytes() == 0 {
            return Ok(());
        }
        // First the frames, then the checkpoint that names them and ends the old chain before its own.
        self.log.set_checkpoint(found.block.number);
        {
            let _checkpoint = self.checkpoint.lock();
            self.log.begin_chain(self.new_id())?;
        }
        self.log.write(u64::MAX)?;
        self.publish_log()
    }

    /// Closes, and lets others open the file: whoever still has a handle gets `Closed` from it, and no read that
    /// is under way believes what comes after this (`storage/gate.rs`). If there is no room for what is not durable,
    /// the handle stays open and keeps its threads, unless this is the `last` of it: then what was saved is saved.
    pub(crate) fn close(&self, threads: &mut Option<Vec<JoinHandle<()>>>, last: bool) -> Result<()> {
        let closed = self.finish(threads, last);
        if threads.is_some() {
            return closed;
        }
        self.life.close();
        let unlocked = self.file.unlock().map_err(|e| Error::io("unlocking the database file", e));
        closed.and(unlocked)
    }

    /// Flushes, ends the threads and the log, and cuts the file to its length. The threads are left if nothing was
    /// closed.
    fn finish(&self, threads: &mut Option<Vec<JoinHandle<()>>>, last: bool) -> Result<()> {
        if self.config.read_only {
            drop(threads.take());
            self.store.caches.stop();
            return Ok(());
        }
        if !last && self.poison.check().is_ok() {
            // Mostly all there is to do, and others can still commit if there is no room for it.
            if let Err(e @ Error::NotDurable { .. }) = self.save_all() {
                return Err(e);
            }
        }
        // Every commit is before this, and saved, or refused.
        let commit = self.lock_commit();
        self.closed.store(true, Ordering::Release);
        drop(commit);
        let saved = self.poison.check().and_then(|()| self.save_all());
        if !last && matches!(saved, Err(Error::NotDurable { .. })) {
            self.closed.store(false, Ordering::Release);
            return saved.map(drop);
        }
        self.stop_threads(threads.take().unwrap_or_default());
        if !saved? {
            // The log has what could not be flushed, and the next handle reads it.
            return self.trim();
        }
        // Whoever settles or compacts notices at his next step.
        let _paused = self.pause_merges();
        self.values.close_open()?;
        self.lock_commit().clear_spares();
        self.end_load();
        let (clean, changed) = {
            let checkpoint = self.checkpoint.lock();
            (checkpoint.clean && self.retired.lock().is_empty(), checkpoint.number != checkpoint.opened)
        };
        if !clean {
            self.checkpoint(super::checkpoint::Purpose::Close)?;
        }
        if !clean || changed {
            // All is safe. What this cannot do, for want of room, the next handle does.
            let _shrunk = self.shrink_for_closing();
        }
        self.trim()
    }
}
