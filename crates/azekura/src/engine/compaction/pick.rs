//! Choosing what to merge next: a pure function of the levels of a table.
//!
//! Levels stand newest first. Flushes make runs of the lowest tier. Eight of a tier become one of the next,
//! eight times as large. The oldest of them are left out while they are more than eight times as large as
//! all that is newer. So programs that put a record and end do not write a table of a few memtables anew each
//! time. The oldest run, the bottom, takes in all that is above it when that is estimated to hide half of it.
//! So the file is at most half garbage, however long the table is overwritten, and loads of new keys never
//! rewrite the bottom before its turn. When nothing happens, everything is merged into one run for readers.

use super::sizes::partition_bytes;
use crate::engine::state::{Level, State, TableState};
use std::sync::Arc;

/// How many runs of a tier make one of the next.
const FAN_IN: usize = 8;
/// The same on a nearly full disk.
const TIGHT_FAN_IN: usize = 4;
/// A bottom of fewer memtables is not merged for what newer levels hide of it.
const BOTTOM_MEMTABLES_MIN: u64 = 4;
/// The bottom takes in the rest when this part of it is estimated to be hidden.
const GARBAGE_PART: f64 = 0.5;
/// Partitions smaller than this part of what a merge would make are joined when many have come side by side.
pub(in crate::engine) const SMALL_PARTITION_PART: u64 = 16;
const SMALL_PARTITIONS: usize = 16;
/// Idle time writes a table anew when this part of it has likely expired.
const PAST_PART: u64 = 4;

/// A merge to be done.
pub(in crate::engine) struct MergeJob {
    pub(in crate::engine) table: u32,
    /// Contiguous, newest first.
    pub(in crate::engine) inputs: Vec<Arc<Level>>,
    /// Nothing older exists.
    pub(in crate::engine) bottom: bool,
    /// Value segments to be emptied, beside those that are mostly dead.
    pub(in crate::engine) drain: Vec<u32>,
    /// So much of what is alive there may be copied.
    pub(in crate::engine) copies_max: u64,
    /// It is a part of closing. It goes on when the engine stops.
    pub(in crate::engine) closing: bool,
    /// It is one of several, and the caller writes a checkpoint after them. A short one needs none of its
    /// own.
    pub(in crate::engine) together: bool,
    /// It is to make room. On a nearly full disk it may take what is held back for that.
    pub(in crate::engine) urgent: bool,
    /// It is of idle time or `compact`. What it frees is not likely to be written to soon, so that goes from
    /// the system's memory.
    pub(in crate::engine) at_rest: bool,
}

impl MergeJob {
    pub(in crate::engine) fn new(table: u32, inputs: Vec<Arc<Level>>, bottom: bool) -> MergeJob {
        let drain = Vec::new();
        MergeJob {
            table,
            inputs,
            bottom,
            drain,
            copies_max: u64::MAX,
            closing: false,
            together: false,
            urgent: false,
            at_rest: false,
        }
    }

    /// Which part of its inputs is alive at `now`, as far as records say when they expire.
    pub(in crate::engine) fn alive(&self, now: u64) -> f64 {
        let kept: u64 = self.inputs.iter().map(|l| l.kept_bytes()).fold(0, u64::saturating_add);
        let past: u64 = self.inputs.iter().map(|l| l.past_bytes(now)).fold(0, u64::saturating_add);
        if self.bottom && past > 0 { 1.0 - past as f64 / kept.max(past) as f64 } else { 1.0 }
    }

    /// Whether nobody waits for it.
    pub(in crate::engine) fn is_background(&self) -> bool {
        !self.closing && !self.together && !self.urgent
    }

    /// Whether inputs go as the merge goes on.
    pub(in crate::engine) fn is_stepwise(&self) -> bool {
        let carries_ranges = || !self.bottom && self.inputs.iter().any(|l| !l.ranges.is_empty());
        // An operand that is folded in the output must not stand in what is left of an input.
        let has_operands = || self.inputs.iter().any(|l| l.has_operands());
        self.inputs.last().is_some_and(|l| l.runs.len() > 1) && !carries_ranges() && !has_operands()
    }
}

/// Classes of jobs, each with a thread of its own so that long merges never hold up short ones.
pub(in crate::engine) const CLASSES: usize = 3;

/// The tier of a run of `bytes` where flushes write about `flush_bytes`.
fn tier_of(bytes: u64, flush_bytes: u64) -> u32 {
    let mut tier = 0;
    let mut limit = flush_bytes.saturating_mul(3);
    while bytes >= limit && tier < 20 {
        tier += 1;
        limit = limit.saturating_mul(FAN_IN as u64);
    }
    tier
}

/// On a nearly full disk each run makes a merge of all need more room.
pub(super) fn fan_in(few_runs: bool) -> usize {
    if few_runs { TIGHT_FAN_IN } else { FAN_IN }
}

fn class_of(inputs: &[Arc<Level>], flush_bytes: u64) -> usize {
    let total: u64 = inputs.iter().map(|l| l.bytes()).sum();
    match total / flush_bytes.max(1) {
        0..=12 => 0,
        13..=100 => 1,
        _ => 2,
    }
}

/// The sizes by which merges are picked.
pub(in crate::engine) struct Sizes {
    /// What flushes write, about.
    pub(in crate::engine) flush_bytes: u64,
    /// The fewer runs the better.
    pub(in crate::engine) few_runs: bool,
    /// What has expired by then is garbage. 0: nothing is.
    pub(in crate::engine) now: u64,
}

/// The next merge of a table, of the given class, that touches no busy run.
pub(in crate::engine) fn pick(
    table: &TableState,
    class: usize,
    &Sizes { flush_bytes, few_runs, now }: &Sizes,
    busy: impl Fn(&Arc<Level>) -> bool,
) -> Option<MergeJob> {
    let levels = &table.levels;
    let make = |from: usize, to: usize| {
        let inputs = levels[from..to].to_vec();
        let fits = class_of(&inputs, flush_bytes) == class && !inputs.iter().any(&busy);
        fits.then(|| MergeJob::new(table.id, inputs, to == levels.len()))
    };
    if let Some(job) = past_levels(table, now, &busy).filter(|_| class == 0) {
        return Some(job);
    }
    let sizes: Vec<Option<u64>> = levels.iter().map(|l| (!busy(l)).then(|| l.bytes())).collect();
    let full = full_tiers(&sizes, flush_bytes, fan_in(few_runs));
    if let Some(job) = full.into_iter().find_map(|(from, to)| make(from, to)) {
        return Some(job);
    }
    if hides_the_bottom(levels, flush_bytes.saturating_mul(BOTTOM_MEMTABLES_MIN))
        || needs_purge(levels)
        || has_small_partitions(levels, flush_bytes)
    {
        return make(0, levels.len());
    }
    let bottom = levels.last().filter(|bottom| bottom.may_be_past(now))?;
    let is_past = |part: f64| bottom.past_bytes(now) as f64 >= bottom.kept_bytes() as f64 * part;
    if is_past(GARBAGE_PART) { make(levels.len() - 1, levels.len()) } else { None }
}

/// The oldest levels, if all that they say has expired. They go without being read.
fn past_levels(table: &TableState, now: u64, busy: impl Fn(&Arc<Level>) -> bool) -> Option<MergeJob> {
    let levels = &table.levels;
    let is_past = |l: &&Arc<Level>| now > 0 && l.runs.iter().all(|run| run.is_past(now)) && !busy(l);
    let past = levels.iter().rev().take_while(is_past).count();
    (past > 0).then(|| MergeJob::new(table.id, levels[levels.len() - past..].to_vec(), true))
}

/// The merge that idle time does: everything into one run, unless little would be gained.
pub(in crate::engine) fn pick_idle(
    table: &TableState,
    force: bool,
    now: u64,
    busy: impl Fn(&Arc<Level>) -> bool,
) -> Option<MergeJob> {
    let levels = &table.levels;
    let bottom = levels.last()?;
    let above: u64 = levels[..levels.len() - 1].iter().map(|l| l.bytes()).sum();
    let is_past =
        || bottom.may_be_past(now) && (force || bottom.past_bytes(now) * PAST_PART >= bottom.kept_bytes());
    let purge = levels.len() == 1 && (bottom.deletes() > 0 || !bottom.ranges.is_empty() || is_past());
    let worth = force || levels.len() > FAN_IN || above * 16 >= bottom.bytes() || bottom.bytes() < 1 << 30;
    let due = levels.len() > 1 && worth || purge;
    let job = || MergeJob { at_rest: true, ..MergeJob::new(table.id, levels.to_vec(), true) };
    (due && !levels.iter().any(busy)).then(job)
}

/// Whether a merge of this class, or of idle time, is due. Merges under way are ignored.
pub(in crate::engine) fn is_due(state: &State, class: usize, sizes: &Sizes, idle: bool) -> bool {
    let due = |t: &Arc<TableState>| {
        pick(t, class, sizes, |_| false).is_some()
            || idle && pick_idle(t, false, sizes.now, |_| false).is_some()
    };
    state.tables.with_runs().any(due)
}

/// Where `fan_in` or more contiguous runs of one tier stand, the lowest tier first. Smaller ones among them
/// are taken along, and the oldest are left out while they are much larger than all that is newer. A run that
/// is being merged, which has no size, ends such a stretch. It gets smaller as it is read up, and would else
/// seem to belong to what has come since.
pub(super) fn full_tiers(sizes: &[Option<u64>], flush_bytes: u64, fan_in: usize) -> Vec<(usize, usize)> {
    let tiers: Vec<Option<u32>> = sizes.iter().map(|size| size.map(|b| tier_of(b, flush_bytes))).collect();
    let trimmed = |(from, to): (usize, usize)| {
        let bytes: Vec<u64> = sizes[from..to].iter().flatten().copied().collect();
        let len = without_large(&bytes, fan_in as u64);
        (len >= fan_in).then_some((from, from + len))
    };
    stretches(&tiers, fan_in).into_iter().filter_map(trimmed).collect()
}

/// How many sizes are left, newest first, without the oldest that are more than `factor` times as large as
/// all newer ones together.
pub(super) fn without_large(bytes: &[u64], factor: u64) -> usize {
    let mut newer = bytes.iter().copied().fold(0, u64::saturating_add);
    let is_large = |&bytes: &&u64| {
        newer = newer.saturating_sub(*bytes);
        *bytes > newer.saturating_mul(factor)
    };
    bytes.len() - bytes.iter().rev().take_while(is_large).count()
}

/// As `full_tiers`, by the tiers of runs that are not busy.
fn stretches(tiers: &[Option<u32>], fan_in: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for tier in 0..=tiers.iter().flatten().copied().max().unwrap_or(0) {
        let mut at = 0;
        while let Some(from) = (at..tiers.len()).find(|&i| tiers[i] == Some(tier)) {
            let to = (from..tiers.len()).find(|&i| tiers[i].is_none_or(|t| t > tier)).unwrap_or(tiers.len());
            if tiers[from..to].iter().filter(|&&t| t == Some(tier)).count() >= fan_in {
                found.push((from, to));
            }
            at = to;
        }
    }
    found
}

fn hides_the_bottom(levels: &[Arc<Level>], bottom_min: u64) -> bool {
    let Some((bottom, above)) = levels.split_last() else { return false };
    // A record of a large value is short, but as long as it is there the value stays.
    if above.is_empty() || bottom.kept_bytes() < bottom_min {
        return false;
    }
    let hidden: f64 = above
        .iter()
        .map(|l| {
            let deletes = l.deletes() as f64 / l.records().max(1) as f64;
            l.kept_bytes() as f64 * f64::from(l.updates).max(deletes)
        })
        .sum();
    let ranges = above.iter().any(|l| !l.ranges.is_empty());
    hidden >= bottom.kept_bytes() as f64 * GARBAGE_PART || ranges && above.len() >= 2
}

/// A single run that is mostly tombstones has nothing left to hide.
fn needs_purge(levels: &[Arc<Level>]) -> bool {
    levels.len() == 1 && levels[0].deletes() * 4 > levels[0].records()
}

/// Many small partitions side by side in the bottom, as many short sessions leave them. What a merge has made
/// counts only when as many have joined it since. So no merge takes only its own result in again.
fn has_small_partitions(levels: &[Arc<Level>], flush_bytes: u64) -> bool {
    let [only] = levels else { return false };
    are_small(only.runs.iter().map(|r| r.info.bytes()), only.joined, flush_bytes)
}

/// As `has_small_partitions`, by the partitions' sizes.
fn are_small(sizes: impl Iterator<Item = u64> + Clone, joined: usize, flush_bytes: u64) -> bool {
    let small = partition_bytes(flush_bytes, sizes.clone().sum(), false) / SMALL_PARTITION_PART;
    joined > SMALL_PARTITIONS && sizes.filter(|&bytes| bytes < small).count() > SMALL_PARTITIONS
}

#[cfg(test)]
mod tests {
    use super::{are_small, stretches, without_large};

    #[test]
    fn what_is_large_is_left_out_from_the_oldest_on() {
        assert_eq!(without_large(&[1, 1, 1, 25], 8), 3);
        assert_eq!(without_large(&[1, 1, 1, 24], 8), 4);
        assert_eq!(without_large(&[1, 1, 17, 2000], 8), 2);
        assert_eq!(without_large(&[100, 1, 1, 1], 8), 4);
        assert_eq!(without_large(&[u64::MAX, u64::MAX], 8), 0);
        assert_eq!((without_large(&[5], 8), without_large(&[], 8)), (0, 0));
    }

    #[test]
    fn what_a_merge_has_made_is_not_joined_again() {
        // A merge ends partitions from a third of the largest on, 128 MiB with the largest memtables.
        let made = [43u64, 60, 97, 100].map(|mib| mib << 20).repeat(10);
        for flush_bytes in [64 << 10, 1 << 20, 64 << 20, 512 << 20, 1 << 30] {
            assert!(!are_small(made.iter().copied(), made.len(), flush_bytes), "{flush_bytes}");
            assert!(!are_small([4096; 40].into_iter(), 0, flush_bytes), "none has joined");
            assert!(are_small([4096; 40].into_iter(), 40, flush_bytes.max(1 << 20)));
        }
    }

    #[test]
    fn a_merge_under_way_does_not_hide_what_has_come_since() {
        let (flushed, busy, large) = ([Some(0); 8], [None; 7], [None]);
        assert_eq!(stretches(&[flushed.as_slice(), &busy, &large].concat(), 8), [(0, 8)]);
        assert_eq!(stretches(&[busy.as_slice(), &flushed, &[Some(2)]].concat(), 8), [(7, 15)]);
        assert!(stretches(&[&flushed[..4], &[None], &flushed[..4]].concat(), 8).is_empty());
    }

    #[test]
    fn the_lowest_full_tier_comes_first_and_smaller_ones_go_along() {
        let tiers = [1, 1, 0, 1, 1, 2].map(Some);
        assert_eq!(stretches(&tiers, 4), [(0, 5)]);
        let tiers = [0, 0, 1, 1].map(Some);
        assert_eq!(stretches(&tiers, 2), [(0, 2), (2, 4)]);
        assert!(stretches(&[], 2).is_empty());
    }
}
