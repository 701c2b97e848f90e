//! Which merges closing does.
//!
//! Programs that put some records and end leave a run each, and most of them end before a thread has merged
//! any. So closing merges full tiers, up to 8 MiB in all. A table in which that was not enough has many
//! levels by then. For each eight of them it may be four times as much, up to 512 MiB, and from 32 on
//! whatever tiers they are of. So most closes take no longer, and the number of levels is bounded by the
//! logarithm of the table's size until it is some gigabytes. What is larger is left to sessions that last.

use super::pick::{MergeJob, Sizes, fan_in, full_tiers, without_large};
use crate::engine::state::TableState;

/// What one close may merge, large values aside, where tables have few levels.
const BYTES_MAX: u64 = 8 << 20;
/// The same, however many they have. It takes a second or two.
const BYTES_MOST: u64 = 512 << 20;
/// A table may have so many. For each as many more, closing may merge `1 << GROWTH_BITS` times as much.
const LEVELS_FEW: usize = 16;
const LEVELS_STEP: usize = 8;
const GROWTH_BITS: usize = 2;
/// With more, runs are merged that are no full tier: those about as large as a tier's limit are now of the
/// one, now of the other.
const LEVELS_MANY: usize = 32;

/// The next merge of a table by a close that has merged `spent` bytes.
pub(in crate::engine) fn pick_for_closing(table: &TableState, sizes: &Sizes, spent: u64) -> Option<MergeJob> {
    let levels = &table.levels;
    let bytes: Vec<u64> = levels.iter().map(|l| l.bytes()).collect();
    let (from, to) = stretch(&bytes, sizes.flush_bytes, fan_in(sizes.few_runs), spent)?;
    let job = MergeJob::new(table.id, levels[from..to].to_vec(), to == levels.len());
    Some(MergeJob { closing: true, together: true, ..job })
}

/// The newest part of the lowest full tier that may be merged, if it is long enough.
fn stretch(sizes: &[u64], flush_bytes: u64, fan_in: usize, spent: u64) -> Option<(usize, usize)> {
    let left = bytes_max(sizes.len()).saturating_sub(spent);
    let idle: Vec<Option<u64>> = sizes.iter().copied().map(Some).collect();
    let part = |(from, to): (usize, usize)| {
        let within = prefix_within(&sizes[from..to], left);
        let len = without_large(&sizes[from..from + within], fan_in as u64);
        (len >= fan_in).then_some((from, from + len))
    };
    let all = (sizes.len() > LEVELS_MANY).then_some((0, sizes.len()));
    full_tiers(&idle, flush_bytes, fan_in).into_iter().chain(all).find_map(part)
}

/// What a close may merge if a table has so many levels.
fn bytes_max(levels: usize) -> u64 {
    let steps = levels.saturating_sub(LEVELS_FEW).div_ceil(LEVELS_STEP);
    1u64.checked_shl(u32::try_from(steps * GROWTH_BITS).unwrap_or(u32::MAX))
        .map_or(BYTES_MOST, |times| BYTES_MAX.saturating_mul(times).min(BYTES_MOST))
}

/// How many of the first sizes are `max` together at most.
fn prefix_within(sizes: &[u64], max: u64) -> usize {
    let sums = sizes.iter().scan(0u64, |sum, &bytes| {
        *sum = sum.saturating_add(bytes);
        Some(*sum)
    });
    sums.take_while(|&sum| sum <= max).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What sessions have led to.
    #[derive(Default, Debug)]
    struct Seen {
        levels: usize,
        /// The most that one close has merged, and all of them.
        at_once: u64,
        merged: u64,
        put: u64,
    }

    /// A run takes two blocks at least.
    const RUN_BYTES_MIN: u64 = 8 << 10;

    /// Sessions that put `session` bytes each, or about as many if they are `varied`, into a table that has
    /// `runs`.
    fn sessions(session: u64, varied: bool, runs: &[u64], flush_bytes: u64, fan_in: usize) -> Seen {
        let (mut runs, mut seen) = (runs.to_vec(), Seen::default());
        let size = |bytes: u64| bytes.max(RUN_BYTES_MIN);
        for n in 0..2000 {
            let put = if varied { session + session * (n % 7) / 3 } else { session };
            runs.insert(0, put);
            seen.put += size(put);
            let mut spent = 0;
            for _ in 0..4 {
                let sizes: Vec<u64> = runs.iter().copied().map(size).collect();
                let Some((from, to)) = stretch(&sizes, flush_bytes, fan_in, spent) else { break };
                let bytes = runs.drain(from..to).sum();
                runs.insert(from, bytes);
                spent += sizes[from..to].iter().sum::<u64>();
            }
            seen.merged += spent;
            seen.at_once = seen.at_once.max(spent);
            seen.levels = seen.levels.max(runs.len());
        }
        seen
    }

    #[test]
    fn sessions_of_any_size_leave_few_levels_and_merge_each_byte_a_few_times() {
        for session in [100, 8 << 10, 100 << 10, 900 << 10, 1100 << 10, 3500 << 10] {
            for runs in [&[5 << 20][..], &[20 << 20, 20 << 20], &[300 << 20, 1 << 30], &[]] {
                for (flush_bytes, fan_in) in [(1 << 20, 8), (8 << 20, 8), (32 << 20, 8), (32 << 20, 4)] {
                    for varied in [false, true] {
                        let seen = sessions(session, varied, runs, flush_bytes, fan_in);
                        let what =
                            format!("{session}, {varied}, {runs:?}, {flush_bytes}, {fan_in}: {seen:?}");
                        assert!(seen.levels <= 60 && seen.at_once <= BYTES_MOST, "{what}");
                        assert!(seen.merged <= seen.put * 16, "{what}");
                        assert!(session > 8 << 10 || seen.levels <= 20, "{what}");
                        assert!(session > 8 << 10 || seen.at_once <= BYTES_MAX * 4, "{what}");
                        assert!(session > 100 || seen.levels <= 12 && seen.at_once <= BYTES_MAX, "{what}");
                    }
                }
            }
        }
    }

    /// Larger sessions may leave more levels, one for as much as a close may merge. No close takes longer.
    #[test]
    fn large_sessions_are_merged_as_far_as_a_close_may() {
        let seen = sessions(16 << 20, true, &[], 32 << 20, 8);
        assert!(seen.at_once <= BYTES_MOST, "{seen:?}");
        assert!((seen.levels as u64) < 60 + seen.put / (BYTES_MOST / 4), "{seen:?}");
    }

    #[test]
    fn many_levels_may_cost_more() {
        let mib = |levels| bytes_max(levels) >> 20;
        assert_eq!([8, 16, 17, 24, 25, 33, 41, usize::MAX / 4].map(mib), [8, 8, 32, 32, 128, 512, 512, 512]);
    }

    #[test]
    fn what_was_spent_counts_and_older_large_runs_are_not_taken_again() {
        let small = [1 << 20; 8];
        assert_eq!(stretch(&small, 32 << 20, 8, 0), Some((0, 8)));
        assert_eq!(stretch(&small, 32 << 20, 8, 1), None);
        // With both of 20 MiB none would be too large for what is newer. Without them the eighth is.
        let two = [&[8 << 10; 7][..], &[600 << 10, 20 << 20, 20 << 20]].concat();
        assert_eq!(stretch(&two, 32 << 20, 8, 0), None);
        assert_eq!(prefix_within(&[3, 4, 5], 7), 2);
        assert_eq!(prefix_within(&[3, u64::MAX, 5], u64::MAX), 3);
    }
}
