//! What merges on a nearly full disk are likely to need, and to give back.

use crate::engine::compaction::pick::MergeJob;
use crate::engine::compaction::prefix::ReplaceablePrefix;
use crate::engine::state::Level;
use std::ops::Range;
use std::sync::Arc;

/// At most so many levels side by side are merged as a few, wherever they stand.
const FEW_MAX: usize = 4;

/// Which of `n` levels may be merged where there is little room. All of them; or a half, a quarter and so on,
/// the newest or the oldest; or a few side by side.
pub(super) fn parts(n: usize) -> Vec<Range<usize>> {
    let halves =
        std::iter::successors(Some(n.div_ceil(2)), |&m| Some(m.div_ceil(2))).take_while(|&m| m > FEW_MAX);
    let mut parts: Vec<_> = halves.flat_map(|m| [0..m, n - m..n]).chain(std::iter::once(0..n)).collect();
    parts.extend((2..=FEW_MAX.min(n.saturating_sub(1))).flat_map(|m| (0..=n - m).map(move |i| i..i + m)));
    parts
}

/// What part of what a merge reads is likely to be alive.
pub(super) fn alive_part(job: &MergeJob) -> f64 {
    1.0 - hidden_bytes(&job.inputs) as f64 / sum_of(&job.inputs, |l| l.kept_bytes()).max(1) as f64
}

/// About how much a merge writes before what it has made needless goes, if such a part of it is alive.
pub(super) fn merge_need(job: &MergeJob, alive: f64) -> u64 {
    let Some((oldest, newer)) = job.inputs.split_last() else { return 0 };
    let written = |read: u64| (read as f64 * alive) as u64;
    let all = sum_of(&job.inputs, |l| l.bytes());
    if !job.is_stepwise() {
        return written(all);
    }
    let (mut freed, mut passed, mut most) = (0, 0, 0);
    for run in &oldest.runs {
        let end = run.info.max.as_slice();
        // Half of the runs that are being read.
        let read = job.inputs.iter().flat_map(|l| &l.runs).map(|r| match () {
            () if r.info.max.as_slice() <= end => r.info.bytes(),
            () if r.info.min.as_slice() <= end => r.info.bytes() / 2,
            () => 0,
        });
        most = most.max(written(read.sum()).saturating_sub(freed));
        passed += run.info.bytes();
        freed = passed + ReplaceablePrefix::new(end).bytes(newer);
    }
    most.max(written(all).saturating_sub(freed))
}

pub(super) fn sum_of(levels: &[Arc<Level>], bytes: impl Fn(&Level) -> u64) -> u64 {
    levels.iter().map(|l| bytes(l)).fold(0, u64::saturating_add)
}

/// About how many bytes of some levels the newer ones of them hide, large values included.
pub(super) fn hidden_bytes(levels: &[Arc<Level>]) -> u64 {
    let kept = sum_of(levels, |l| l.kept_bytes());
    let mut older = kept;
    let mut hidden = 0.0;
    let each = kept as f64 / sum_of(levels, |l| l.records()).max(1) as f64;
    for level in levels {
        older = older.saturating_sub(level.kept_bytes());
        hidden += if level.ranges.is_empty() {
            let found = level.deletes() as f64 * each + level.kept_bytes() as f64 * f64::from(level.updates);
            found.min(older as f64)
        } else {
            older as f64
        };
    }
    // No more than there is.
    (hidden as u64).min(kept)
}
