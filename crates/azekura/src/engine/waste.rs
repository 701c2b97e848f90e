//! How much of the file is dead, and what must be written anew so that it goes. Closing, idle time and
//! compaction follow this rule.
//!
//! Dead are tombstones, records whose keys newer levels have too, and values to which no record of a run
//! refers. Dead values are known exactly. In a table all may be dead but what its newest level puts. Where
//! that would be too much, a closer look follows. If newer runs have few keys, all of them are looked up in
//! the older runs. Else some records of every run are looked up in the newer ones. Tables whose merge costs
//! little are merged without a look.
//!
//! First the tables with the most dead bytes are chosen, then the emptiest segments, until no more than a
//! part of the whole is left dead.
//!
//! A `Survey` is such a look. It holds a state, and with it the runs and segments that the state names. So a
//! thread of the background makes one only where it is counted (`Background::look_at_runs`), or where it
//! holds merges back itself.

use super::compaction::pick::{MergeJob, SMALL_PARTITION_PART};
use super::compaction::sizes::partition_bytes;
use super::state::{Level, State, TableState, look};
use crate::base::codec::usize_of64;
use crate::base::error::Result;
use crate::base::key::SortKey;
use crate::base::sync::ArcSwap;
use crate::format::block::{Block, Tag};
use crate::format::operand::reference;
use crate::run::Run;
use crate::run::reader::RunReader;
use crate::values::{Segment, ValuePointer, ValueStore};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// This part of what tables keep may be dead, and so many bytes.
const DEAD_PART: u64 = 16;
const DEAD_BYTES_MIN: u64 = 8 << 10;
/// The log, and values to which no run refers yet, may take this part of what tables keep, and so much.
const LOG_PART: u64 = 32;
const LOG_BYTES_MIN: u64 = 40 << 10;
/// Tables whose runs have no more than this are merged rather than looked at.
const CHEAP_BYTES: u64 = 1 << 20;
/// If newer runs have no more keys than this, each of them is looked up. Else some records of so many pages
/// are.
const KEYS_MAX: u64 = 1024;
const PAGES: u64 = 256;
const RECORDS_OF_PAGE: usize = 4;
/// While others write, fewer pages are looked at, but some of each table that counts.
const PAGES_SOON: u64 = 64;
const PAGES_OF_TABLE: u64 = 8;
/// A table counts if this part of all that is in place may be dead in it.
const TABLE_PART: u64 = 256;
/// While others write, only things of which this part is dead are written anew. So copying two bytes frees
/// one at least.
const WORTH_PART: u64 = 3;
/// So many references must have been seen for their sample to count.
const LARGE_MIN: u32 = 32;
/// What a partition has beside its records, about: free space in its last page, and its meta block. It counts
/// where it is an eighth of the partition.
const BESIDE_BYTES: u64 = 6 << 10;
const BESIDE_PART: u64 = 8;

/// A value segment of which a part is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sparse {
    pub(super) id: u32,
    pub(super) dead_bytes: u64,
    pub(super) bytes: u64,
}

/// What is to be written anew.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Excess {
    /// Tables to be merged into one level, in ascending order.
    tables: Vec<u32>,
    /// Value segments to be emptied, through the tables that refer to them.
    sparse: Vec<u32>,
}

/// What a look at a file that is written to has found.
pub(super) struct Found {
    /// See `Survey::in_place`.
    pub(super) in_place: u64,
    /// What of runs, and of the values to which they refer, is alive.
    pub(super) alive: u64,
    /// What of them, and of their segments, is not.
    pub(super) dead: u64,
    /// What is worth being written anew.
    pub(super) excess: Excess,
}

impl Sparse {
    pub(super) fn live_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.dead_bytes)
    }
}

impl Excess {
    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.sparse.is_empty()
    }

    /// Whether a table has something to do with it.
    pub(super) fn concerns(&self, table: &TableState) -> bool {
        let listed = self.tables.binary_search(&table.id).is_ok();
        !table.levels.is_empty() && (listed || self.sparse.iter().any(|&id| table.refers_to(id)))
    }

    /// What a table has to do with it.
    pub(super) fn job(&self, table: &TableState) -> Option<MergeJob> {
        let drain = self.sparse.iter().copied().filter(|&id| table.refers_to(id)).collect();
        let inputs = table.levels.to_vec();
        self.concerns(table).then(|| MergeJob { drain, ..MergeJob::new(table.id, inputs, true) })
    }
}

/// How many of the `allowed` dead bytes may be in tables: what dead values leave of them, and at least half.
fn allowed_in_tables(allowed: u64, sparse: &[Sparse]) -> u64 {
    allowed - sparse.iter().map(|s| s.dead_bytes).sum::<u64>().min(allowed / 2)
}

/// Chooses so much that no more than `allowed` dead bytes are left.
fn choose(mut tables: Vec<(u32, u64)>, mut sparse: Vec<Sparse>, allowed: u64) -> Excess {
    let share = allowed_in_tables(allowed, &sparse);
    tables.sort_by_key(|t| std::cmp::Reverse(t.1));
    let emptier = |a: &Sparse, b: &Sparse| {
        let part = |s: &Sparse| s.dead_bytes as f64 / s.bytes.max(1) as f64;
        part(b).total_cmp(&part(a))
    };
    sparse.sort_by(emptier);
    let mut in_tables = sum(tables.iter().map(|t| t.1));
    let mut in_values: u64 = sparse.iter().map(|s| s.dead_bytes).sum();
    let mut excess = Excess::default();
    for (id, dead) in tables {
        if in_tables <= share {
            break;
        }
        in_tables = in_tables.saturating_sub(dead);
        excess.tables.push(id);
    }
    excess.tables.sort_unstable();
    for s in sparse {
        if in_tables.saturating_add(in_values) <= allowed {
            break;
        }
        in_values -= s.dead_bytes;
        excess.sparse.push(s.id);
    }
    excess
}

/// A sum of lengths, some of which a forged manifest may have made up.
fn sum(lengths: impl Iterator<Item = u64>) -> u64 {
    lengths.fold(0, u64::saturating_add)
}

/// Bytes of large values to which the runs of a state refer.
fn large_bytes(state: &State) -> u64 {
    sum(state.tables.iter().flat_map(|t| t.levels.iter()).map(|l| l.large_bytes()))
}

/// The same, by segment.
fn referred(state: &State) -> HashMap<u32, u64> {
    let mut live = HashMap::new();
    for run in state.tables.iter().flat_map(|t| t.levels.iter()).flat_map(|l| &l.runs) {
        for &(id, bytes) in &run.info.large {
            let sum: &mut u64 = live.entry(id).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    live
}

/// Segments to which memtables refer.
fn segments_in_memory(state: &State) -> HashSet<u32> {
    let mut found = HashSet::new();
    for table in state.tables.iter().filter(|t| !t.memtable_is_empty()) {
        let chunks = table.chunks.iter().chain(table.frozen.iter());
        found.extend(chunks.flat_map(|c| &c.segments).map(|s| s.id));
        if let Some(active) = &table.active {
            found.extend(active.segments.lock().iter().map(|s| s.id));
        }
    }
    found
}

/// What some records of a table take, and how much of that is dead.
#[derive(Default)]
struct Sample {
    bytes: f64,
    dead: f64,
    /// How many of them have large values.
    large: u32,
}

/// A look at the runs of a state, and at the value segments, for what is dead.
pub(super) struct Survey<'a> {
    state: Arc<State>,
    values: &'a ValueStore,
    /// See `Division::flush_bytes`.
    flush_bytes: u64,
    /// What has expired by then is dead. 0: nothing is.
    now: u64,
}

impl<'a> Survey<'a> {
    /// Looks at the newest state.
    pub(super) fn of(
        state: &ArcSwap<State>,
        values: &'a ValueStore,
        flush_bytes: u64,
        now: u64,
    ) -> Survey<'a> {
        Survey { state: state.load_full(), values, flush_bytes, now }
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// The tables that have something to do with an excess.
    pub(super) fn due(&self, excess: &Excess) -> Vec<u32> {
        self.state.tables.with_runs().filter(|t| excess.concerns(t)).map(|t| t.id).collect()
    }

    /// Segments to which runs refer and nothing is added any more, with what of them is dead.
    pub(super) fn sparse_segments(&self) -> Vec<Sparse> {
        let live = referred(&self.state);
        let segments = self.values.closed_segments();
        let sparse = segments.iter().filter_map(|s| {
            let bytes = s.bytes();
            let dead_bytes = bytes.saturating_sub(*live.get(&s.id)?);
            (dead_bytes > 0).then_some(Sparse { id: s.id, dead_bytes, bytes })
        });
        sparse.collect()
    }

    /// What must be written anew so that little of what tables keep is dead.
    pub(super) fn excess(&self) -> Excess {
        self.excess_while(&|| true)
    }

    /// As `excess`, looked for only as long as `go_on` says so. Afterwards some may be missing.
    pub(super) fn excess_while(&self, go_on: &dyn Fn() -> bool) -> Excess {
        let state = &self.state;
        let sparse = self.sparse_segments();
        let in_values: u64 = sparse.iter().map(|s| s.dead_bytes).sum();
        let runs: u64 = state.tables.iter().flat_map(|t| t.levels.iter()).map(|l| l.bytes()).sum();
        let allowed =
            runs.saturating_add(large_bytes(state)).saturating_add(in_values) / DEAD_PART + DEAD_BYTES_MIN;
        let (flush_bytes, now) = (self.flush_bytes, self.now);
        let at_most = |t: &Arc<TableState>| (t.id, dead_at_most(&t.levels, flush_bytes, now));
        let mut tables: Vec<(u32, u64)> = state.tables.iter().map(at_most).filter(|t| t.1 > 0).collect();
        if sum(tables.iter().map(|t| t.1)) > allowed_in_tables(allowed, &sparse) {
            for (id, dead) in &mut tables {
                if let Ok(table) = state.table(*id) {
                    *dead = dead_bytes(table, *dead, flush_bytes, allowed, now, go_on);
                }
            }
        }
        choose(tables, sparse, allowed)
    }

    /// What levels take, and closed value segments to which they refer.
    pub(super) fn in_place(&self) -> u64 {
        let live = referred(&self.state);
        let segments = self.values.closed_segments();
        let values = sum(segments.iter().filter(|s| live.contains_key(&s.id)).map(|s| s.bytes()));
        sum(self.state.tables.with_runs().flat_map(|t| t.levels.iter()).map(|l| l.bytes()))
            .saturating_add(values)
    }

    /// How much is dead while others write, by a few pages of each table that counts. It looks as long as
    /// `go_on` says so. Segments to which memtables refer are left alone: a flush may find all of them dead.
    pub(super) fn look_beside_writers(&self, go_on: &dyn Fn() -> bool) -> Found {
        let state = &self.state;
        let mut sparse = self.sparse_segments();
        let in_segments = sum(sparse.iter().map(|s| s.dead_bytes));
        let kept = |t: &TableState| sum(t.levels.iter().map(|l| l.kept_bytes()));
        let all = sum(state.tables.with_runs().map(|t| kept(t)));
        let (mut in_tables, mut tables) = (0u64, Vec::new());
        for table in state.tables.with_runs() {
            let (at_most, bytes) = (dead_at_most(&table.levels, self.flush_bytes, self.now), kept(table));
            if at_most <= all / TABLE_PART {
                continue;
            }
            let pages = (PAGES_SOON as f64 * bytes as f64 / all as f64) as u64;
            // What cannot be read cannot be merged either.
            let sampled = sampled(table, pages.max(PAGES_OF_TABLE), u64::MAX, self.now, go_on).unwrap_or(0);
            let dead = sampled.min(at_most);
            in_tables = in_tables.saturating_add(dead);
            if dead >= bytes / WORTH_PART {
                tables.push(table.id);
            }
        }
        let young = segments_in_memory(state);
        sparse.retain(|s| s.dead_bytes >= s.bytes / WORTH_PART && !young.contains(&s.id));
        let excess = Excess { tables, sparse: sparse.iter().map(|s| s.id).collect() };
        let (alive, dead) = (all.saturating_sub(in_tables), in_tables.saturating_add(in_segments));
        Found { in_place: self.in_place(), alive, dead, excess }
    }

    /// Whether an idle file has too much beside its runs: log, the segment that is being filled, and values
    /// to which no run refers.
    pub(super) fn log_is_long(&self, log_bytes: u64) -> bool {
        let state = &self.state;
        let bytes = |segments: Vec<Arc<Segment>>| segments.iter().map(|s| s.bytes()).sum::<u64>();
        let (all, closed) = (bytes(self.values.segments()), bytes(self.values.closed_segments()));
        let large = large_bytes(state);
        let in_memory = state.tables.iter().any(|t| !t.memtable_is_empty());
        let unreferred = if in_memory { closed.saturating_sub(large) } else { 0 };
        let kept = sum(state.tables.iter().flat_map(|t| t.levels.iter()).map(|l| l.kept_bytes()));
        log_bytes + all.saturating_sub(closed) + unreferred > kept / LOG_PART + LOG_BYTES_MIN
    }
}

/// How much of a table is dead, of which `at_most` may be.
fn dead_bytes(
    table: &TableState,
    at_most: u64,
    flush_bytes: u64,
    allowed: u64,
    now: u64,
    go_on: &dyn Fn() -> bool,
) -> u64 {
    let levels = &table.levels;
    let bytes: u64 = levels.iter().map(|l| l.bytes()).sum();
    if levels.len() < 2 || bytes <= CHEAP_BYTES || at_most <= allowed / 64 {
        return at_most;
    }
    let above = &levels[..levels.len() - 1];
    let few = above.iter().map(|l| l.records()).sum::<u64>() <= KEYS_MAX;
    let found = if few && levels.iter().all(|l| l.ranges.is_empty()) {
        looked_up(table, go_on)
    } else {
        sampled(table, PAGES, allowed, now, go_on)
    };
    let past = sum(levels.iter().map(|l| l.past_bytes(now)));
    let found = found.map(|dead| dead.saturating_add(beside_records(levels, flush_bytes)));
    // What cannot be read cannot be merged either.
    found.unwrap_or(0).max(past).min(at_most)
}

/// By some records of `pages` pages of all levels. A record is dead if a newer level has something of its
/// key.
fn sampled(table: &TableState, pages: u64, allowed: u64, now: u64, go_on: &dyn Fn() -> bool) -> Result<u64> {
    let levels = &table.levels;
    let runs: Vec<(usize, &Arc<Run>)> =
        levels.iter().enumerate().flat_map(|(n, l)| l.runs.iter().map(move |r| (n, r))).collect();
    let total: u64 = runs.iter().map(|(_, r)| r.info.data_bytes).sum();
    let step = (total / pages).max(1);
    let (mut before, mut at) = (0, step / 2);
    let mut sample = Sample::default();
    let mut block = Block::new(None);
    for (n, run) in runs {
        while at < before + run.info.data_bytes && go_on() {
            let pages = run.meta()?.pages() as u64;
            let page = (at - before) / (run.info.data_bytes / pages.max(1)).max(1);
            run.decode_page(usize_of64(page.min(pages.saturating_sub(1))), &mut block)?;
            look_at(table, n, &block, now, &mut sample)?;
            at += step;
        }
        before += run.info.data_bytes;
    }
    let kept = sum(levels.iter().map(|l| l.kept_bytes()));
    let dead = (kept as f64 * sample.dead / sample.bytes.max(1.0)) as u64;
    let large = sum(levels.iter().skip(1).map(|l| l.large_bytes()));
    // Values that the sample has hardly met may all be dead.
    let unseen = if sample.large < LARGE_MIN && large > allowed / 2 { large } else { 0 };
    Ok(dead.max(unseen))
}

/// What small partitions have beside their records. Merged, they would be one.
fn beside_records(levels: &[Arc<Level>], flush_bytes: u64) -> u64 {
    let bytes = sum(levels.iter().map(|l| l.bytes()));
    let small =
        (partition_bytes(flush_bytes, bytes, false) / SMALL_PARTITION_PART).min(BESIDE_BYTES * BESIDE_PART);
    let partitions = levels.iter().flat_map(|l| &l.runs).filter(|r| r.info.bytes() < small).count() as u64;
    partitions.saturating_sub(1) * BESIDE_BYTES
}

/// Bytes of a table's levels that may be dead: all but what the newest level puts, what small partitions
/// have beside their records, and what has likely expired.
fn dead_at_most(levels: &[Arc<Level>], flush_bytes: u64, now: u64) -> u64 {
    let Some((newest, older)) = levels.split_first() else { return 0 };
    let deletes =
        (newest.bytes() / newest.records().max(1)).saturating_mul(newest.deletes()).min(newest.bytes());
    let beside =
        deletes.saturating_add(beside_records(levels, flush_bytes)).saturating_add(newest.past_bytes(now));
    sum(older.iter().map(|l| l.kept_bytes())).saturating_add(beside)
}

/// By all keys of all but the oldest level. Each hides its next older version.
fn looked_up(table: &TableState, go_on: &dyn Fn() -> bool) -> Result<u64> {
    let mut dead = 0;
    let mut block = Block::new(None);
    let mut tmp = [0; 8];
    for (n, level) in table.levels[..table.levels.len() - 1].iter().enumerate() {
        let mut reader = RunReader::new(level.runs.clone());
        while go_on() && reader.next_block(&mut block)? {
            // Each key may cost a read of the disk.
            for i in (0..block.len()).take_while(|_| go_on()) {
                let key = block.key(i, &mut tmp);
                if block.tag(i) == Tag::Tombstone {
                    dead += key.len() as u64;
                }
                dead += next_version_bytes(table, n + 1, SortKey::new(key))?;
            }
        }
    }
    Ok(dead)
}

/// What the newest version of a key takes in the levels from `from` on, if it is no tombstone.
fn next_version_bytes(table: &TableState, from: usize, key: SortKey<'_>) -> Result<u64> {
    let found = look(table.kind, &table.levels[from..], key, |tag, value| match tag {
        Tag::Tombstone => Ok(0),
        tag => Ok(key.bytes.len() as u64 + value_bytes(tag, value)?),
    });
    found?.unwrap_or(Ok(0))
}

/// What a record's value takes, in its run and in its segment.
fn value_bytes(tag: Tag, value: &[u8]) -> Result<u64> {
    let reference = match tag {
        Tag::Large => Some(value),
        Tag::Operand => reference(value),
        _ => None,
    };
    let large = reference.map(ValuePointer::decode).transpose()?.map_or(0, |at| u64::from(at.len));
    Ok(value.len() as u64 + large)
}

/// Adds some records of a page of level `n`. They stand for all of the page.
fn look_at(table: &TableState, n: usize, block: &Block, now: u64, sample: &mut Sample) -> Result<()> {
    let newer = &table.levels[..n];
    let taken = block.len().min(RECORDS_OF_PAGE);
    let mut tmp = [0; 8];
    for i in 0..taken {
        let i = i * block.len() / taken;
        let (key, content) = (block.key(i, &mut tmp), block.content(i));
        let tag = content.tag;
        let bytes =
            (key.len() as u64 + value_bytes(tag, content.value)?) as f64 * block.len() as f64 / taken as f64;
        let dead = tag == Tag::Tombstone
            || content.expiry.is_past(now)
            || newer.iter().any(|l| l.ranges.covers(key))
            || look(table.kind, newer, SortKey::new(key), |_, _| ())?.is_some();
        sample.bytes += bytes;
        sample.dead += if dead { bytes } else { 0.0 };
        sample.large += u32::from(tag == Tag::Large);
    }
    Ok(())
}

impl TableState {
    /// Whether a level refers to a value segment.
    fn refers_to(&self, segment: u32) -> bool {
        self.levels.iter().any(|l| l.refers_to(segment))
    }
}

#[cfg(test)]
mod tests {
    use super::{Excess, Sparse, choose};

    fn sparse(id: u32, dead_bytes: u64, bytes: u64) -> Sparse {
        Sparse { id, dead_bytes, bytes }
    }

    #[test]
    fn nothing_is_written_anew_for_what_may_be_dead() {
        assert!(choose(vec![(1, 20), (2, 30)], vec![sparse(1, 50, 60)], 100).is_empty());
        assert!(choose(Vec::new(), Vec::new(), 0).is_empty());
    }

    #[test]
    fn the_most_dead_tables_and_the_emptiest_segments_go_first() {
        let segments = vec![sparse(1, 50, 500), sparse(2, 40, 41), sparse(3, 30, 60)];
        let chosen = choose(vec![(1, 20), (2, 300), (3, 40)], segments.clone(), 130);
        assert_eq!(chosen, Excess { tables: vec![2], sparse: vec![2, 3] });
        let all = choose(vec![(1, 20), (2, 300), (3, 40)], segments, 0);
        assert_eq!(all, Excess { tables: vec![1, 2, 3], sparse: vec![2, 3, 1] });
    }
}
