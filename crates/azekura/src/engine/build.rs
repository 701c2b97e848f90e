//! An engine of what a file says: its parts, its tables, and what its log has besides.
//!
//! Opening builds one, and a follower one for each checkpoint that it reads.

use super::background::Background;
use super::bound::Bound;
use super::catalog::Catalog;
use super::checkpoint::Checkpointer;
use super::commit::Committer;
use super::compaction::compactor::Compactor;
use super::counters::Counters;
use super::crew::Crew;
use super::fed::Feeding;
use super::flusher::Flusher;
use super::follower::{Following, Looked};
use super::found::{Found, Logs, Replayed, read_logs};
use super::ids::Ids;
use super::length::{Length, named_bytes, value_end};
use super::load::FoundRuns;
use super::memory::{Division, Load, MemoryBudget, divide};
use super::mirrored::Mirrored;
use super::pace::Pace;
use super::relief::{Relief, tight_below};
use super::state::State;
use super::{Engine, Opened};
use crate::base::codec::usize_of64;
use crate::base::error::{Error, Result};
use crate::base::life::Life;
use crate::base::limits::{ALIGN_BYTES, SUPERBLOCKS_BYTES, align_up};
use crate::base::poison::Poison;
use crate::base::sync::atomic::AtomicBool;
use crate::base::sync::{ArcSwap, Mutex};
use crate::cache::Cache;
use crate::engine::config::Config;
use crate::format::manifest::{Manifest, ValueInfo};
use crate::format::superblock::Role;
use crate::log::Log;
use crate::run::{Guides, PageSource, Run, Store};
use crate::space::{Extent, Room, Space};
use crate::storage::{BulkWrites, File, FileMapping, IoCounters, Lease, Watched, pins_of_others, without};
use crate::values::{Segment, ValueStore};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

const ASKING_FOR_PINS: &str = "asking which checkpoints others have pinned";
/// A pin so far above the newest checkpoint is no follower's.
const LOST_CHECKPOINTS_MAX: u64 = 1 << 32;

pub(super) fn len_of(file: &dyn File) -> Result<u64> {
    file.len().map_err(|e| Error::io("reading the file's length", e))
}

/// What the file says, once its logs were read. Nothing is written yet.
struct Recovered {
    replayed: Replayed,
    /// Value segments that somebody refers to, cut to what is used of them.
    values: BTreeMap<u32, ValueInfo>,
    space: Arc<Space>,
    /// How long the file must be for all that was named.
    least_bytes: u64,
}

/// Reads the logs, and finds which parts of the file are taken.
fn recover(file: &dyn File, length: &Length<'_>, found: &Found, logs: Logs) -> Result<Recovered> {
    let replayed = read_logs(file, length, found, logs)?;
    let values = referred_values(&found.manifest, &replayed);
    let least_bytes =
        values.values().map(value_end).fold(named_bytes(&found.manifest, found.extent), u64::max);
    length.expect(least_bytes)?;
    let space = Arc::new(claim(found, &replayed, &values)?);
    if !length.read_only {
        let pins = pins_of_others(file).map_err(|e| Error::io(ASKING_FOR_PINS, e))?;
        check_pins(&pins, found.block.number, length)?;
        let pins = without(pins, &found.block.pins.revoked());
        space.pins_found_at_open(found.block.number, &pins, length.file_bytes);
    }
    Ok(Recovered { replayed, values, space, least_bytes })
}

/// A checkpoint that is pinned may be newer than the file's newest one, if that one's superblock was lost.
/// The next numbers are larger than all that are pinned, so one that no file comes to would use them up.
fn check_pins(pins: &[RangeInclusive<u64>], newest: u64, length: &Length<'_>) -> Result<()> {
    let highest = pins.iter().map(|range| *range.end()).max().unwrap_or(0);
    if highest <= newest.saturating_add(LOST_CHECKPOINTS_MAX) {
        return Ok(());
    }
    let detail =
        format!("another process has pinned checkpoint {highest}, and the file's newest is {newest}");
    Err(Error::open(length.path, io::ErrorKind::Other, detail))
}

/// The file as the engine has it, and who looks after it.
pub(super) struct Disk {
    pub(super) file: Arc<dyn File>,
    pub(super) life: Arc<Life>,
    pub(super) io: Arc<IoCounters>,
    /// What a follower has of the file already.
    pub(super) seen: Option<Seen>,
}

/// What a follower knows of the file before it looks at a newer checkpoint.
pub(super) struct Seen {
    pub(super) pages: PageSource,
    /// The runs of the newest state, by their ids.
    pub(super) runs: HashMap<u64, Arc<Run>>,
    /// The pin of the checkpoint that it looks at.
    pub(super) pin: Arc<Lease>,
    /// What the file is then, if the pin may be revoked.
    pub(super) watched: Option<Arc<Watched>>,
}

impl Disk {
    pub(super) fn new(file: Arc<dyn File>, life: Arc<Life>, io: Arc<IoCounters>) -> Disk {
        Disk { file, life, io, seen: None }
    }
}

/// The engine in the state that was recovered.
pub(super) fn build(
    length: &Length<'_>,
    config: Config,
    mut disk: Disk,
    found: &Found,
    logs: Logs,
    id_gap: u64,
) -> Result<Engine> {
    // Before anything is written behind what the manifest names.
    let mut recovered = recover(disk.file.as_ref(), length, found, logs)?;
    config.clock_found(found.manifest.clock_ms, recovered.replayed.clock);
    let seen = disk.seen.take();
    let pages = seen.as_ref().map(|seen| seen.pages.clone());
    let mut engine = Engine::new(length.path, disk, config, found, &recovered, pages)?;
    engine.ids = Ids::from(found.manifest.next_id.saturating_add(id_gap));
    // The log may lead to values for which its writer has made the file longer meanwhile.
    let follows = matches!(logs, Logs::Follow | Logs::FollowTo(_));
    let file_bytes = if follows { len_of(engine.store.file.as_ref())? } else { length.file_bytes };
    let adopt = |v: &ValueInfo| {
        let segment = engine.values.adopt(v.id, v.extents.clone(), align_up(v.used).min(v.bytes()));
        segment.found_in(file_bytes);
        if let Some(seen) = &seen {
            segment.place().read_under(seen.pin.clone());
        }
        segment
    };
    engine.store.watched = seen.as_ref().and_then(|seen| seen.watched.clone());
    let held: Vec<Arc<Segment>> = recovered.values.values().map(adopt).collect();
    let known = seen.map_or_else(HashMap::new, |seen| seen.runs);
    // An older file does not say which commits its tables show. It does not know them when it is opened, and
    // after that all of them are shown.
    let last_seq = recovered.replayed.commits.last().map_or(found.manifest.flushed_seq, |commit| commit.seq);
    let tables_seq = found.manifest.tables_seq.unwrap_or(last_seq);
    let runs = FoundRuns { number: found.block.number, file_bytes: length.file_bytes, known: &known };
    engine.table_loader().load(found, tables_seq, runs)?;
    engine.checkpointer.found_logs(recovered.replayed.logs);
    if recovered.replayed.is_torn {
        // That part is not applied again. The writer makes it whole, though nobody commits anything.
        let at_checkpoint = engine.state.load_full();
        engine.state.store(Arc::new(State { joint_seq: tables_seq, ..at_checkpoint.copy() }));
    }
    engine.table_loader().apply_replayed(recovered.replayed.commits)?;
    engine.store.room.look();
    // All that is found counts as alive.
    engine.bound.note_all_alive(engine.merges().survey().in_place());
    if engine.config.follow.is_some() {
        // Its runs are those of other checkpoints too, so they do not hold the segments.
        let tail = Mutex::new(recovered.replayed.tail.take());
        let looked = Looked { _segments: held, block: Box::new(found.block.clone()), tail };
        engine.following = Following::Checkpoint(looked);
    }
    Ok(engine)
}

/// What stands between an engine and its file.
struct Parts {
    poison: Arc<Poison>,
    values: Arc<ValueStore>,
    log: Log,
    store: Store,
}

impl Parts {
    fn new(
        file: &Arc<dyn File>,
        config: &Config,
        division: &Division,
        room: &Arc<Room>,
        found: &Found,
        recovered: &Recovered,
        pages: Option<PageSource>,
    ) -> Result<Parts> {
        let (file_id, lineage, hash_seed) = (found.block.file_id, found.block.lineage, found.block.hash_seed);
        let poison = Arc::new(Poison::default());
        let bulk = BulkWrites::new(file.clone(), config.threads);
        let mapping = if config.mapped { file.mapping() } else { None };
        let pages = pages.map_or_else(|| page_source(mapping.clone(), division), Ok)?;
        let shared = || (file.clone(), bulk.clone(), room.clone(), poison.clone());
        let next = recovered.values.keys().next_back().map_or(1, |id| id + 1);
        let (f, b, r, p) = shared();
        let values = Arc::new(ValueStore::new(f, mapping, b, r, p, next));
        let (f, b, r, p) = shared();
        let clock = config.clock.clone();
        let log = Log::new(f, b, r, p, values.clone(), (file_id, clock.clone()), found.manifest.flushed_seq)
            .beside(config.memtable_bytes);
        let (file, bulk, room, poison) = shared();
        let buffers = division.buffers;
        let store =
            Store { file, bulk, room, pages, file_id, lineage, hash_seed, buffers, clock, watched: None };
        Ok(Parts { poison, values, log, store })
    }
}

impl Engine {
    /// An engine without tables.
    fn new(
        path: &Path,
        disk: Disk,
        config: Config,
        found: &Found,
        recovered: &Recovered,
        pages: Option<PageSource>,
    ) -> Result<Engine> {
        let Disk { file, life, io, .. } = disk;
        let flushed = found.manifest.flushed_seq;
        let space = recovered.space.clone();
        let room = Room::new(file.clone(), space.clone(), tight_below(&config));
        let division = divide(Load::of(&config));
        let Parts { poison, values, log, store } =
            Parts::new(&file, &config, &division, &room, found, recovered, pages)?;
        let relief = Relief::new(room.clone(), config.memtable_bytes);
        let mirrored = Mirrored::new(file.clone(), config.mirror_timeout, config.require_mirror);
        let checkpointer = Checkpointer::new(file, room.clone(), found, config.pins, config.clock.clone());
        let (path, is_mirror) = (path.to_path_buf(), found.block.role == Role::Mirror);
        let opened = Opened { path, is_mirror, least_bytes: recovered.least_bytes };
        let crew = Crew::new(config.threads && !config.read_only, config.background_merges);
        Ok(Engine {
            opened,
            store,
            life,
            space,
            relief,
            values,
            log,
            state: ArcSwap::from_pointee(State::new(flushed)),
            poison,
            catalog: Catalog::new(),
            committer: Committer::new(flushed + 1, usize_of64(config.memtable_bytes)),
            memory: MemoryBudget::new(&config, room),
            pace: Pace::new(),
            flusher: Flusher::new(),
            checkpointer,
            compactor: Compactor::default(),
            ids: Ids::from(0),
            bound: Bound::new(config.memtable_bytes, config.threads && config.background_merges),
            background: Background::new(crew),
            mirrored,
            reads_wait: AtomicBool::new(false),
            feed: Feeding::new(),
            counters: Counters::of(&recovered.replayed, io),
            following: Following::No,
            config,
        })
    }
}

/// Where the pages of runs will be read.
pub(super) fn page_source(mapping: Option<Arc<FileMapping>>, division: &Division) -> Result<PageSource> {
    if let Some(mapping) = mapping {
        let guides = Guides::new(usize_of64(division.guides_bytes));
        return Ok(PageSource::Mapped { mapping, guides });
    }
    Ok(PageSource::Cached(Cache::new(usize_of64(division.cache_bytes))?))
}

/// The value segments to which somebody refers, cut to what is used of them.
pub(super) fn referred_values(manifest: &Manifest, replayed: &Replayed) -> BTreeMap<u32, ValueInfo> {
    let mut values: BTreeMap<u32, ValueInfo> = manifest.values.iter().map(|v| (v.id, v.clone())).collect();
    for (id, seen) in &replayed.segments {
        let known = values.entry(*id).or_insert_with(|| seen.clone());
        known.used = known.used.max(seen.used).min(known.bytes());
    }
    keep_referred(&mut values, manifest, replayed);
    for value in values.values_mut() {
        // Nothing is added to it any more. What it had beyond may have been given back when it was closed,
        // and be somebody else's now. The log or the manifest need not have said so.
        value.cut(align_up(value.used).max(ALIGN_BYTES));
    }
    values
}

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
        let detail =
            format!("extents {}+{} and {}+{} overlap or are impossible", a.offset, a.len, b.offset, b.len);
        Error::corrupt("manifest", 0, detail)
    })
}
