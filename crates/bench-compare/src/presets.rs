//! The cases of each workload, with its own sizes unless others are asked for.
//!
//! A full run has the sizes of the published comparisons, as far as one machine can run them in a night. The
//! largest must be asked for: `sequential --records 100M`, `lookup --records 1700M`, `huge --records 40M`.

use crate::case::{Case, Workload};

/// What replaces the choices of a preset.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// Smaller sizes.
    pub quick: bool,
    /// Records to load.
    pub records: Option<u64>,
    /// Transactions over which `sequential` spreads its records.
    pub transactions: u64,
    /// Records per transaction.
    pub batch: Vec<u64>,
    /// Bytes of a value.
    pub value_size: Vec<usize>,
    /// Random gets of each kind.
    pub gets: u64,
    /// Seconds, for workloads that run for a time.
    pub seconds: Option<f64>,
    /// Threads of the workloads that have several.
    pub threads: Vec<u64>,
    /// Operations a second of the open loop.
    pub rate: u64,
    /// Memory for each peer.
    pub budget: u64,
    /// Seconds after which a phase is stopped.
    pub phase: Option<f64>,
    /// Let peers finish their background work.
    pub settle: bool,
    /// What is run before the store is opened to be read.
    pub before_reads: Option<String>,
}

/// Bytes of a value, with the number of records of that size.
type Sizes = &'static [(usize, u64)];

/// A workload's own choices.
struct Preset {
    sizes: Sizes,
    batch: u64,
    seconds: f64,
}

const K: u64 = 1000;
const M: u64 = 1_000_000;

fn preset(workload: Workload, quick: bool) -> Preset {
    let (full, small, batch): (Sizes, Sizes, u64) = match workload {
        // Above 256 bytes there are fewer records, so that no file is much larger than a gigabyte.
        Workload::Sequential => (
            &[
                (4, M),
                (16, M),
                (64, M),
                (256, M),
                (1024, M),
                (4096, 250 * K),
                (8192, 125 * K),
                (4, 100 * K),
                (4, 10 * M),
            ],
            &[(4, 100 * K), (64, 100 * K), (1024, 20 * K), (8192, 4 * K), (4, 10 * K), (4, M)],
            1,
        ),
        Workload::Lookup => (&[(8, 10 * M), (8, M)], &[(8, M), (8, 100 * K)], 65_536),
        Workload::Huge => (
            &[(44, 5 * M), (1524, M)],
            &[(44, 400 * K), (1524, 40 * K)],
            if quick { 10 * K } else { 100 * K },
        ),
        Workload::Index => (&[(36, 5 * M)], &[(36, 400 * K)], if quick { 10 * K } else { 100 * K }),
        Workload::Pairs => {
            (&[(730, 10), (730, 10 * K), (730, 100 * K)], &[(730, 10), (730, K), (730, 10 * K)], 1)
        }
        Workload::Text => (&[(0, 5 * M)], &[(0, 200 * K)], 65_536),
        Workload::Small => (&[(8, M)], &[(8, 100 * K)], 1),
        Workload::Ycsb => (&[(1000, M)], &[(1000, 20 * K)], 1),
        Workload::Mixed => (&[(100, M)], &[(100, 100 * K)], 100),
        Workload::Durable => (&[(8, M)], &[(8, M)], 1),
        Workload::Scan => (&[(100, M)], &[(100, 200 * K)], 10 * K),
        Workload::Delete => (&[(100, M)], &[(100, 100 * K)], K),
        Workload::Ttl => (&[(24, M)], &[(24, 20 * K)], K),
        Workload::Counters => (&[(8, 10 * M)], &[(8, 100 * K)], K),
        Workload::Feed => (&[(44, 3 * M)], &[(44, 50 * K)], 100),
        Workload::Backup => (&[(100, 3 * M)], &[(100, 50 * K)], 100),
        Workload::Recover => (&[(100, 10 * M)], &[(100, M)], K),
        Workload::Open => (&[(8, 10 * M)], &[(8, M)], 65_536),
    };
    let (slow, fast) = match workload {
        Workload::Durable => (3.0, 0.3),
        Workload::Ycsb => (5.0, 0.2),
        Workload::Pairs => (5.0, 0.3),
        Workload::Recover => (5.0, 1.2),
        Workload::Ttl => (60.0, 1.0),
        Workload::Counters => (10.0, 0.5),
        _ => (10.0, 1.0),
    };
    Preset { sizes: if quick { small } else { full }, batch, seconds: if quick { fast } else { slow } }
}

/// The cases of a workload.
pub fn cases(workload: Workload, choices: &Choices) -> Vec<Case> {
    let preset = preset(workload, choices.quick);
    let mut cases = Vec::new();
    for (value_bytes, preset_records) in sizes(&preset, choices) {
        let records = choices.records.unwrap_or(preset_records).max(1);
        for batch in batches(workload, &preset, choices, records) {
            for (threads, rate_per_s) in threads(workload, choices) {
                cases.push(Case {
                    workload,
                    records,
                    batch,
                    value_bytes,
                    gets: choices.gets,
                    seconds: choices.seconds.unwrap_or(preset.seconds),
                    threads,
                    rate_per_s,
                    budget_bytes: choices.budget,
                    phase_s: choices.phase,
                    settle: choices.settle,
                    before_reads: choices.before_reads.clone(),
                });
            }
        }
    }
    // Sizes that differ only in the number of records become one case when that number is given.
    let mut distinct: Vec<Case> = Vec::new();
    for case in cases {
        if !distinct.contains(&case) {
            distinct.push(case);
        }
    }
    distinct
}

fn sizes(preset: &Preset, choices: &Choices) -> Vec<(usize, u64)> {
    match choices.value_size.as_slice() {
        [] => preset.sizes.to_vec(),
        sizes => {
            let records = preset.sizes.first().map_or(0, |(_, records)| *records);
            sizes.iter().map(|size| (*size, records)).collect()
        }
    }
}

fn batches(workload: Workload, preset: &Preset, choices: &Choices, records: u64) -> Vec<u64> {
    match (workload, choices.batch.as_slice()) {
        (Workload::Sequential, _) => vec![records.div_ceil(choices.transactions.max(1)).max(1)],
        (Workload::Pairs, _) => vec![records],
        (Workload::Small | Workload::Durable | Workload::Ycsb, _) => vec![1],
        (_, []) => vec![preset.batch],
        (_, batches) => batches.iter().map(|batch| (*batch).max(1)).collect(),
    }
}

/// The threads, and the rate at which operations are due.
fn threads(workload: Workload, choices: &Choices) -> Vec<(u64, Option<u64>)> {
    let chosen = |own: &[u64]| -> Vec<u64> {
        let chosen = if choices.threads.is_empty() { own } else { &choices.threads };
        chosen.iter().map(|threads| (*threads).max(1)).collect()
    };
    match workload {
        Workload::Durable => chosen(&[1, 2, 4, 8]).into_iter().map(|threads| (threads, None)).collect(),
        Workload::Ycsb => {
            let threads = chosen(&[1, 2]);
            let most = threads.iter().copied().max().unwrap_or(1);
            let closed = threads.into_iter().map(|threads| (threads, None));
            closed.chain((choices.rate > 0).then_some((most, Some(choices.rate)))).collect()
        }
        _ => vec![(1, None)],
    }
}

/// How long the phases of a case take at most in all, if each takes the given time.
pub fn phases_s(case: &Case, phase_s: f64) -> f64 {
    match case.workload {
        Workload::Sequential | Workload::Open => 2.0 * phase_s,
        Workload::Lookup | Workload::Text | Workload::Small | Workload::Scan | Workload::Delete => {
            4.0 * phase_s
        }
        Workload::Index => 3.0 * phase_s,
        Workload::Huge => 5.0 * phase_s,
        Workload::Pairs => 2.0 * phase_s + case.seconds,
        Workload::Ycsb => phase_s + 6.0 * case.seconds,
        Workload::Mixed => phase_s + case.seconds,
        Workload::Durable | Workload::Ttl => case.seconds,
        Workload::Counters => 2.0 * phase_s + 1.5 * case.seconds,
        Workload::Feed => 4.0 * phase_s,
        Workload::Backup => phase_s + case.seconds,
        Workload::Recover => case.seconds + phase_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    #[test]
    fn every_workload_has_cases_of_both_sizes() {
        for workload in Workload::value_variants() {
            for quick in [false, true] {
                let choices = Choices { quick, transactions: 1000, rate: 1000, ..Choices::default() };
                let cases = cases(*workload, &choices);
                assert!(!cases.is_empty() && cases.iter().all(|case| case.batch > 0), "{workload:?}");
            }
        }
    }

    #[test]
    fn the_gates_have_their_cases() {
        let choices = Choices { transactions: 1000, ..Choices::default() };
        let has = |workload, value, records| {
            cases(workload, &choices).iter().any(|case| case.value_bytes == value && case.records == records)
        };
        assert!(has(Workload::Sequential, 4, M) && has(Workload::Sequential, 4096, 250 * K));
        assert!(
            has(Workload::Lookup, 8, 10 * M)
                && has(Workload::Huge, 44, 5 * M)
                && has(Workload::Huge, 1524, M)
        );
    }
}
