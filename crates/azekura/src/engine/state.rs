//! What readers see: an immutable description of every table, swapped as a whole.
//!
//! A reader loads the state and then its `visible` number. Commits up to that number are in the state.
//! Later ones are not in its chunks and runs, and carry a higher number in its active buffers. A change of
//! structure makes a new state with a `visible` of its own, under the commit lock. So an old state stays at
//! the snapshot that its readers took, and no chunk and no run needs sequence numbers.

use super::dials::Dials;
use super::follow::Followed;
use super::indexes::Indexes;
use super::tableset::Tables;
use crate::base::error::{Error, Result};
use crate::base::key::{SortKey, TableKind};
use crate::base::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use crate::base::sync::{ArcSwap, CountedArc, Mutex};
use crate::format::block::{Block, Fixed, Tag};
use crate::format::few::Few;
use crate::format::ranges::Ranges;
use crate::memtable::active::Active;
use crate::memtable::chunk::Chunk;
use crate::run::Run;
use crate::run::label::Origin;
use crate::storage::Lease;
use crate::values::Segment;
use std::sync::{Arc, LazyLock};

/// The buffer of small commits of one table.
pub(crate) struct ActiveBuf {
    pub(crate) list: Active,
    /// The value segments that its records refer to.
    pub(crate) segments: Mutex<Vec<Arc<Segment>>>,
}

impl ActiveBuf {
    pub(crate) fn new(capacity_bytes: usize) -> ActiveBuf {
        ActiveBuf { list: Active::new(capacity_bytes), segments: Mutex::new(Vec::new()) }
    }

    /// The memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.list.memory_bytes() + size_of::<ActiveBuf>() + ACTIVE_OVERHEAD_BYTES
    }
}

/// What the allocator adds to an active buffer, and the state to a table that has one.
const ACTIVE_OVERHEAD_BYTES: usize = 128;

/// The tag of an entry of the active buffer.
pub(crate) fn tag_of(kind: u8) -> Tag {
    Tag::from_code(kind).unwrap_or(Tag::Tombstone)
}

/// A level: partitions in key order, and their range deletes.
pub(crate) struct Level {
    pub(crate) runs: Vec<Arc<Run>>,
    /// The partitions' smallest keys, to find one by.
    bounds: Block,
    pub(crate) ranges: Ranges,
    /// What it says is older than what commits behind this number say. See `run::label`.
    pub(crate) newest: u64,
    /// The part of its records that likely replace older ones, 0 to 1. Sampled when it was written.
    pub(crate) updates: f32,
    /// How many of its partitions have joined it since it was merged, as far as this handle knows.
    pub(crate) joined: usize,
    /// How often lookups have found their keys lately: 0 = never, `HIT_RATE_MAX` = always.
    hit_rate: AtomicU8,
}

/// See `Level::hit_rate`.
const HIT_RATE_MAX: u8 = 8;

/// What lookups in a level have met lately.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HitRate {
    /// Nearly all found their keys.
    Finds,
    Mixed,
    /// Most did not.
    Misses,
}

impl Level {
    #[inline(always)]
    pub(crate) fn hit_rate(&self) -> HitRate {
        match self.hit_rate.load(Ordering::Relaxed) {
            HIT_RATE_MAX => HitRate::Finds,
            hit_rate if hit_rate > HIT_RATE_MAX / 2 => HitRate::Mixed,
            _ => HitRate::Misses,
        }
    }

    /// A lookup found its key, at `place` of a page. One in sixteen counts, so that readers seldom
    /// write to a shared line, and the hash is not needed.
    #[inline(always)]
    pub(crate) fn record_hit_at(&self, place: usize) {
        if place & 15 == 0 {
            self.set_hit_rate(|hit_rate| (hit_rate + 1).min(HIT_RATE_MAX));
        }
    }

    /// A key of this hash is not there. One in sixteen counts.
    #[inline(always)]
    pub(crate) fn record_miss(&self, hash: u64) {
        if hash & 15 == 0 {
            self.record_vain_search();
        }
    }

    /// A page was searched in vain, and the filter would have said so.
    #[inline(always)]
    pub(crate) fn record_vain_search(&self) {
        self.set_hit_rate(|hit_rate| hit_rate.saturating_sub(1));
    }

    #[inline(always)]
    fn set_hit_rate(&self, change: impl FnOnce(u8) -> u8) {
        let hit_rate = self.hit_rate.load(Ordering::Relaxed);
        let next = change(hit_rate);
        if next != hit_rate {
            self.hit_rate.store(next, Ordering::Relaxed);
        }
    }

    pub(crate) fn new(runs: Vec<Arc<Run>>, updates: f32, newest: u64) -> Result<Level> {
        let mut ranges = Ranges::default();
        for run in runs.iter().filter(|r| r.info.ranges > 0) {
            ranges.add_all(&run.meta()?.ranges);
        }
        let fixed = runs.iter().all(|r| r.info.min.len() == 8).then_some(Fixed { stride: 0, tag: Tag::Put });
        let mut bounds = Block::new(fixed);
        for run in &runs {
            bounds.push(&run.info.min, Tag::Put, &[]);
        }
        bounds.index();
        Ok(Level { runs, bounds, ranges, newest, updates, joined: 0, hit_rate: AtomicU8::new(HIT_RATE_MAX) })
    }

    /// The same, of whose partitions so many have joined it.
    pub(crate) fn joined_by(self, joined: usize) -> Level {
        Level { joined, ..self }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.runs.iter().map(|r| r.info.bytes()).sum()
    }

    /// Bytes of the file that it keeps: its own, and the large values to which it refers.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.bytes().saturating_add(self.large_bytes())
    }

    /// Bytes of the large values to which it refers, as its manifest says. (A forged one may say anything.)
    pub(crate) fn large_bytes(&self) -> u64 {
        self.runs.iter().flat_map(|r| &r.info.large).fold(0, |sum, l| sum.saturating_add(l.1))
    }

    /// Whether it refers to a value segment.
    pub(crate) fn refers_to(&self, segment: u32) -> bool {
        self.runs.iter().flat_map(|r| &r.info.large).any(|l| l.0 == segment)
    }

    pub(crate) fn records(&self) -> u64 {
        self.runs.iter().map(|r| r.info.records).sum()
    }

    pub(crate) fn deletes(&self) -> u64 {
        self.runs.iter().map(|r| r.info.deletes).sum()
    }

    /// The partition that may hold a key.
    #[inline(always)]
    pub(crate) fn run_for(&self, key: SortKey<'_>) -> Option<&Arc<Run>> {
        match self.runs.as_slice() {
            [] => None,
            [one] => Some(one),
            runs => match self.bounds.lower_bound(key) {
                (i, true) => Some(&runs[i]),
                (i, false) => runs.get(i.wrapping_sub(1)),
            },
        }
    }
}

/// Hands the newest record of a key in some levels to `f`, if there is one. Nobody's reading: it brings no
/// pages into the cache.
pub(super) fn look<R>(
    kind: TableKind,
    levels: &[Arc<Level>],
    key: SortKey<'_>,
    f: impl FnOnce(Tag, &[u8]) -> R,
) -> Result<Option<R>> {
    let (hash, mut f) = (kind.filter_hash(key), Some(f));
    for run in levels.iter().filter_map(|level| level.run_for(key)) {
        if run.may_contain(hash)?
            && let Some(found) = run.look(key, |tag, value| f.take().map(|f| f(tag, value)))?
        {
            return Ok(found);
        }
    }
    Ok(None)
}

/// One table at one moment.
#[derive(Clone)]
pub(crate) struct TableState {
    pub(crate) id: u32,
    pub(crate) kind: TableKind,
    pub(crate) name: Arc<str>,
    pub(crate) active: Option<CountedArc<ActiveBuf>>,
    /// Newest first, older than `active`.
    pub(crate) chunks: Vec<Arc<Chunk>>,
    /// Being flushed. Newest first, older than `chunks`.
    pub(crate) frozen: Arc<Vec<Arc<Chunk>>>,
    /// Newest first, older than `frozen`.
    pub(crate) levels: Arc<Vec<Arc<Level>>>,
    /// What there is instead of runs in a small table, older than `frozen`.
    pub(crate) few: Option<Few>,
    /// Whether somebody reads the memtable. Noted anew for each memtable. None before the first.
    pub(crate) read: Option<Arc<AtomicBool>>,
    /// Whether somebody has read the memtable before this one.
    pub(crate) was_read: bool,
    /// How large the next active buffer is to be, by what has come so far.
    pub(crate) active_bytes: u32,
    pub(crate) indexes: Indexes,
}

/// The first active buffer of a table. If there are many tables, most get a record only now and then.
const ACTIVE_BYTES_MIN: u32 = 1 << 10;
/// The largest: it stays in the processor's caches.
const ACTIVE_BYTES_MAX: u32 = 2 << 20;
/// How much larger the buffer after a full one is.
const ACTIVE_GROWTH: u32 = 8;

/// An empty list, which tables share: an allocation of its own would be a good part of a table.
fn nothing<T>(shared: &'static LazyLock<Arc<Vec<T>>>) -> Arc<Vec<T>> {
    (**shared).clone()
}

static NO_CHUNKS: LazyLock<Arc<Vec<Arc<Chunk>>>> = LazyLock::new(Arc::default);
static NO_LEVELS: LazyLock<Arc<Vec<Arc<Level>>>> = LazyLock::new(Arc::default);

impl TableState {
    pub(crate) fn new(id: u32, kind: TableKind, name: Arc<str>) -> TableState {
        TableState {
            id,
            kind,
            name,
            active: None,
            chunks: Vec::new(),
            frozen: nothing(&NO_CHUNKS),
            levels: nothing(&NO_LEVELS),
            few: None,
            read: None,
            was_read: false,
            active_bytes: ACTIVE_BYTES_MIN,
            indexes: None,
        }
    }

    /// What a run of the table says of itself that has all commits up to `newest`. `oldest`: nothing is
    /// older.
    pub(crate) fn origin(&self, newest: u64, oldest: bool) -> Origin {
        Origin { table: self.id, kind: self.kind, name: self.name.clone(), newest, oldest }
    }

    /// The active buffer was too small: the next is larger.
    pub(super) fn active_is_full(&mut self) {
        self.active_bytes = (self.active_bytes * ACTIVE_GROWTH).min(ACTIVE_BYTES_MAX);
    }

    /// A table that is about to get something into a memtable that was empty.
    pub(super) fn begin_memtable(&mut self) {
        self.read.get_or_insert_default();
    }

    /// Freezes the sealed memtable of a table in which `live_bytes` were.
    pub(super) fn freeze(&mut self, live_bytes: usize) {
        // If it is there, it is empty. The next writer must find that nothing is live.
        self.active = None;
        self.frozen = Arc::new(std::mem::take(&mut self.chunks));
        self.was_read = self.read.as_ref().is_some_and(|r| r.load(Ordering::Relaxed));
        self.read = Some(Arc::default());
        let enough = u32::try_from(live_bytes.next_power_of_two()).unwrap_or(ACTIVE_BYTES_MAX);
        self.active_bytes = self.active_bytes.min(enough).max(ACTIVE_BYTES_MIN);
    }

    /// Other tables were frozen. The memtable is empty, and all that is known of its readers is what was
    /// known of the one before.
    pub(super) fn pass_freeze(&mut self) {
        self.was_read = self.read.as_ref().is_some_and(|r| r.load(Ordering::Relaxed));
        self.read = self.was_read.then(Arc::default);
    }

    /// What was frozen is in runs.
    pub(super) fn thaw(&mut self) {
        self.frozen = nothing(&NO_CHUNKS);
    }

    /// Whether nothing is in memory.
    pub(crate) fn memtable_is_empty(&self) -> bool {
        self.active.as_ref().is_none_or(|a| a.list.is_empty())
            && self.chunks.is_empty()
            && self.frozen.is_empty()
    }

    /// Whether somebody has looked into the table's memtables lately.
    pub(crate) fn is_read(&self) -> bool {
        self.was_read || self.read.as_ref().is_some_and(|r| r.load(Ordering::Relaxed))
    }

    /// How its memtables and runs are looked after.
    pub(crate) fn dials(&self) -> &'static Dials {
        Dials::of(self.is_read())
    }

    /// Memory of the live part of the memtable.
    pub(crate) fn live_bytes(&self) -> usize {
        self.active.as_ref().map_or(0, |a| a.bytes()) + self.chunks.iter().map(|c| c.bytes()).sum::<usize>()
    }
}

/// All tables at one moment.
pub(crate) struct State {
    pub(crate) visible: AtomicU64,
    pub(crate) tables: Tables,
    /// Every commit up to here is in runs.
    pub(crate) flushed_seq: u64,
    /// Every commit up to here is in runs or frozen.
    pub(crate) frozen_seq: u64,
    /// The tables whose memtables wait for a flush, or are being flushed. None if nothing does.
    pub(crate) frozen: Option<Arc<[u32]>>,
    /// The id of the next table. Those of all tables that ever were are below it.
    pub(crate) next_table: u32,
    /// Where runs are read in the file's mapping, who has the state may read them. None once it is closed.
    pub(crate) lease: Option<Arc<Lease>>,
    /// In a follower, what it has found in the file. The state is that of an engine of its own.
    pub(crate) followed: Option<Arc<Followed>>,
    /// Why a follower could not find what is newest. Such a state has no tables.
    pub(crate) failure: Option<Arc<Error>>,
}

impl State {
    /// No tables yet, and everything up to a commit in runs.
    pub(crate) fn new(flushed_seq: u64) -> State {
        State {
            visible: AtomicU64::new(flushed_seq),
            tables: Tables::default(),
            flushed_seq,
            frozen_seq: flushed_seq,
            frozen: None,
            next_table: 1,
            lease: None,
            followed: None,
            failure: None,
        }
    }

    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// The table of an id, unless it was dropped.
    #[inline(always)]
    pub(crate) fn table(&self, id: u32) -> Result<&Arc<TableState>> {
        self.tables.get(id).ok_or_else(|| self.missing(id))
    }

    #[cold]
    fn missing(&self, id: u32) -> Error {
        self.failure.as_deref().cloned().unwrap_or_else(|| dropped(id))
    }

    /// Whether memtables wait for a flush, or are being flushed.
    pub(crate) fn has_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// The tables whose memtables wait for a flush, or are being flushed.
    pub(crate) fn frozen_tables(&self) -> impl Iterator<Item = &Arc<TableState>> {
        self.frozen.iter().flat_map(|ids| ids.iter()).filter_map(|&id| self.tables.get(id))
    }

    /// The dials of a table. Nobody reads one that was dropped.
    pub(super) fn dials(&self, table: u32) -> &'static Dials {
        Dials::of(self.table(table).is_ok_and(|t| t.is_read()))
    }

    /// Whether somebody has looked into the memtables of any table lately.
    pub(crate) fn is_read(&self) -> bool {
        self.tables.iter().any(|t| t.is_read())
    }

    /// A copy with one table replaced.
    pub(crate) fn with_table(&self, table: TableState) -> State {
        let mut next = self.copy();
        next.tables.set(table);
        next
    }

    /// A copy without a table.
    pub(crate) fn without_table(&self, id: u32) -> State {
        let mut next = self.copy();
        if let Some(table) = self.tables.get(id) {
            next.detach_index(id, &table.name);
        }
        next.tables.remove(id);
        let left: Vec<u32> =
            self.frozen.iter().flat_map(|ids| ids.iter().copied()).filter(|&f| f != id).collect();
        next.frozen = (!left.is_empty()).then(|| left.into());
        next
    }

    /// A copy, to be changed before anybody sees it.
    pub(crate) fn copy(&self) -> State {
        State {
            visible: AtomicU64::new(self.visible()),
            tables: self.tables.clone(),
            flushed_seq: self.flushed_seq,
            frozen_seq: self.frozen_seq,
            frozen: self.frozen.clone(),
            next_table: self.next_table,
            lease: self.lease.clone(),
            followed: self.followed.clone(),
            failure: self.failure.clone(),
        }
    }
}

fn dropped(id: u32) -> Error {
    Error::NoSuchTable { name: format!("(dropped table {id})") }
}

/// Makes commit `seq` visible, all of it at once: by the next state, or in the one there is, whose active
/// buffers have it already. REQUIRES: the commit lock.
pub(super) fn publish(cell: &ArcSwap<State>, seq: u64, next: Option<State>) {
    match next {
        Some(state) => {
            state.visible.store(seq, Ordering::Release);
            cell.store(Arc::new(state));
        }
        None => cell.load().visible.store(seq, Ordering::Release),
    }
}
