//! A level of a table: runs that do not overlap.

use crate::base::error::Result;
use crate::base::key::{SortKey, TableKind};
use crate::base::sync::atomic::{AtomicU8, Ordering};
use crate::format::block::{Block, Fixed, Tag};
use crate::format::ranges::Ranges;
use crate::run::Run;
use std::sync::Arc;

/// A level: partitions in key order, and their range deletes.
pub(crate) struct Level {
    pub(crate) runs: Vec<Arc<Run>>,
    /// The partitions' smallest keys, to find one by.
    bounds: Block,
    pub(crate) ranges: Ranges,
    /// Its records are older than those of commits after this number. See `run::label`.
    pub(crate) newest: u64,
    /// Which part of its records likely replaces older ones, from 0 to 1. Sampled when it was written.
    pub(crate) updates: f32,
    /// How many of its partitions have joined it since it was merged, as far as this handle knows.
    pub(crate) joined: usize,
    /// How often lookups have found their keys lately: 0 = never, `HIT_RATE_MAX` = always.
    hit_rate: AtomicU8,
}

/// See `Level::hit_rate`.
const HIT_RATE_MAX: u8 = 8;

impl Level {
    /// Whether nearly all lookups have found their keys lately.
    #[inline(always)]
    pub(crate) fn finds(&self) -> bool {
        self.hit_rate.load(Ordering::Relaxed) == HIT_RATE_MAX
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

    /// Whether a run that is newer than these levels may stand in the oldest of them: it meets none of their
    /// runs, and has neither tombstones nor operands. What joins keeps an age of its own (see `run::label`),
    /// which tombstones must not outlive.
    pub(in crate::engine) fn may_join_oldest(levels: &[Arc<Level>], run: &Run) -> bool {
        let info = &run.info;
        let meets = |other: &Arc<Run>| other.overlaps(&info.min, &info.max);
        info.ranges == 0
            && info.deletes == 0
            && info.operands.records == 0
            && !levels.iter().flat_map(|l| &l.runs).any(meets)
    }

    /// The oldest level of a table with runs that have joined it. It keeps its age.
    pub(in crate::engine) fn with_joined(&self, fresh: &[Arc<Run>]) -> Result<Level> {
        let mut runs = [&self.runs, fresh].concat();
        runs.sort_by(|a, b| a.info.min.cmp(&b.info.min));
        Ok(Level::new(runs, self.updates, self.newest)?.joined_by(self.joined + fresh.len()))
    }

    /// The level with some of its runs. The others hid nothing.
    pub(in crate::engine) fn with_only(&self, runs: Vec<Arc<Run>>) -> Result<Level> {
        let mut left = Level::new(runs, self.updates, self.newest)?;
        let part = left.kept_bytes() as f64 / self.kept_bytes().max(1) as f64;
        left.updates = (f64::from(self.updates) / part.max(f64::EPSILON)).min(1.0) as f32;
        Ok(left)
    }

    /// The same level, with another number.
    pub(in crate::engine) fn with_newest(self, newest: u64) -> Level {
        Level { newest, ..self }
    }

    /// The same level, with the number of partitions that have joined it.
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

    /// Bytes of the file that it keeps for records that have likely expired at `now`.
    pub(crate) fn past_bytes(&self, now: u64) -> u64 {
        self.runs.iter().fold(0, |sum, run| sum.saturating_add(run.past_bytes(now)))
    }

    /// Whether some of its records may have expired at `now`.
    pub(crate) fn may_be_past(&self, now: u64) -> bool {
        self.runs.iter().any(|run| run.info.expiring.any_past(now))
    }

    /// Whether some of its records are operands.
    pub(crate) fn has_operands(&self) -> bool {
        self.runs.iter().any(|run| run.info.operands.records > 0)
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

    /// The place of the last partition that begins at or below a key, or of the first one.
    #[inline(always)]
    pub(crate) fn place_for(&self, key: SortKey<'_>) -> usize {
        if self.runs.len() < 2 {
            return 0;
        }
        match self.bounds.lower_bound(key) {
            (i, true) => i,
            (i, false) => i.saturating_sub(1),
        }
    }
}

/// Hands the newest record of a key in some levels to `f`, if there is one. It counts as nobody's reading,
/// and brings no pages into the cache.
pub(in crate::engine) fn look<R>(
    kind: TableKind,
    levels: &[Arc<Level>],
    key: SortKey<'_>,
    f: impl FnOnce(Tag, &[u8]) -> R,
) -> Result<Option<R>> {
    let (hash, mut f) = (kind.filter_hash(key), Some(f));
    for run in levels.iter().filter_map(|level| level.run_for(key)) {
        if let Some(found) = run.look(key, hash, |tag, value| f.take().map(|f| f(tag, value)))? {
            return Ok(found);
        }
    }
    Ok(None)
}
