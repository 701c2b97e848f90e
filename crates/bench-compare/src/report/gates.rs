//! The figures that Azekura must reach, checked in each case that they concern.

use super::format::{Unit, digits, figure};
use super::summary::Better;
use crate::case::{Case, Workload};
use crate::results::CaseResult;

/// What a figure is divided by.
#[derive(Debug, Clone, Copy)]
enum Against {
    /// The same figure of a peer, or of a reference.
    Peer(&'static str),
    /// The same figure of the best peer.
    Best,
    /// Its own figure with one thread, from another case.
    OneThread,
    /// A number.
    One,
}

/// One figure to reach.
#[derive(Debug, Clone, Copy)]
struct Gate {
    /// The cases that it concerns.
    about: fn(&Case) -> bool,
    /// Azekura's kinds of table that it concerns.
    ours: &'static [&'static str],
    figure: &'static str,
    against: Against,
    better: Better,
    bound: f64,
}

const ORDERED: &[&str] = &["azekura-ordered"];
const HASH: &[&str] = &["azekura-hash"];
const BOTH: &[&str] = &["azekura-ordered", "azekura-hash"];

const MILLION: u64 = 1_000_000;

fn sequential(case: &Case) -> bool {
    case.workload == Workload::Sequential && case.value_bytes == 4 && case.records >= MILLION
}
fn large(case: &Case) -> bool {
    case.workload == Workload::Sequential && case.value_bytes == 4096 && case.records >= MILLION / 4
}
fn lookup_10m(case: &Case) -> bool {
    case.workload == Workload::Lookup
        && case.batch == 65_536
        && (10 * MILLION..100 * MILLION).contains(&case.records)
}
fn lookup_100m(case: &Case) -> bool {
    case.workload == Workload::Lookup && case.batch == 65_536 && case.records >= 100 * MILLION
}
fn lookup_by_100(case: &Case) -> bool {
    case.workload == Workload::Lookup && case.batch == 100
}
fn huge_44(case: &Case) -> bool {
    case.workload == Workload::Huge && case.value_bytes == 44
}
fn huge_1524(case: &Case) -> bool {
    case.workload == Workload::Huge && case.value_bytes == 1524
}
fn index_40m(case: &Case) -> bool {
    case.workload == Workload::Index && case.records >= 40 * MILLION
}
fn text(case: &Case) -> bool {
    case.workload == Workload::Text
}
fn small(case: &Case) -> bool {
    case.workload == Workload::Small
}
fn mixed(case: &Case) -> bool {
    case.workload == Workload::Mixed
}
fn durable_1(case: &Case) -> bool {
    case.workload == Workload::Durable && case.threads == 1
}
fn durable_4(case: &Case) -> bool {
    case.workload == Workload::Durable && case.threads == 4
}
fn open(case: &Case) -> bool {
    case.workload == Workload::Open
}

const fn least(
    about: fn(&Case) -> bool,
    ours: &'static [&'static str],
    figure: &'static str,
    bound: f64,
    against: Against,
) -> Gate {
    Gate { about, ours, figure, against, better: Better::Higher, bound }
}

const fn most(
    about: fn(&Case) -> bool,
    ours: &'static [&'static str],
    figure: &'static str,
    bound: f64,
) -> Gate {
    Gate { about, ours, figure, against: Against::One, better: Better::Lower, bound }
}

const GATES: [Gate; 46] = [
    least(sequential, ORDERED, "write_per_s", 20.0, Against::Peer("kyoto-hash")),
    least(sequential, ORDERED, "write_per_s", 3.5, Against::Peer("lmdb")),
    least(sequential, ORDERED, "write_flush_per_s", 20.0, Against::Peer("kyoto-hash")),
    least(sequential, ORDERED, "write_flush_per_s", 3.5, Against::Peer("lmdb")),
    least(sequential, ORDERED, "read_per_s", 4.5, Against::Peer("kyoto-hash")),
    least(sequential, ORDERED, "read_per_s", 4.0, Against::Peer("lmdb")),
    least(sequential, ORDERED, "scan_per_s", 1.0, Against::Peer("lmdb")),
    most(sequential, ORDERED, "bytes_per_record", 6.0),
    most(sequential, ORDERED, "written_per_file", 1.05),
    most(sequential, ORDERED, "write_calls_per_mib", 1.0),
    least(large, BOTH, "write_per_s", 3.0, Against::Best),
    least(large, BOTH, "read_per_s", 1.0, Against::Peer("lmdb")),
    most(large, BOTH, "written_per_raw", 1.02),
    most(large, BOTH, "file_per_raw", 1.01),
    least(lookup_10m, BOTH, "write_per_s", 8e6, Against::One),
    least(lookup_10m, HASH, "present_gets_per_s", 1.5, Against::Peer("kyoto-hash")),
    least(lookup_10m, HASH, "absent_gets_per_s", 1.5, Against::Peer("kyoto-hash")),
    least(lookup_10m, ORDERED, "present_gets_per_s", 2.5, Against::Peer("lmdb")),
    least(lookup_10m, ORDERED, "absent_gets_per_s", 2.5, Against::Peer("lmdb")),
    least(lookup_10m, BOTH, "many_speedup", 2.5, Against::One),
    least(lookup_by_100, BOTH, "write_per_s", 2e6, Against::One),
    least(lookup_100m, BOTH, "write_per_s", 7e6, Against::One),
    most(lookup_100m, BOTH, "growth", 1.3),
    most(lookup_100m, BOTH, "batch_max_ms", 250.0),
    most(lookup_100m, BOTH, "settled_bytes_per_record", 15.0),
    most(lookup_100m, BOTH, "peak_rss_per_budget", 1.25),
    least(huge_44, HASH, "write_per_s", 4.0, Against::Peer("kyoto-hash")),
    least(huge_44, HASH, "present_gets_per_s", 1.0, Against::Peer("kyoto-hash")),
    least(huge_1524, HASH, "write_per_s", 3.0, Against::Peer("kyoto-hash")),
    least(huge_1524, HASH, "present_gets_per_s", 1.0, Against::Peer("kyoto-hash")),
    least(huge_44, ORDERED, "write_per_s", 4.0, Against::Peer("kyoto-hash")),
    least(huge_1524, ORDERED, "write_per_s", 3.0, Against::Peer("kyoto-hash")),
    most(index_40m, BOTH, "batch_max_per_mean", 2.0),
    least(index_40m, BOTH, "write_per_s", 10.0, Against::Peer("codernitydb")),
    least(text, BOTH, "write_per_s", 3.0, Against::Best),
    least(text, BOTH, "present_gets_per_s", 1.2, Against::Best),
    most(text, BOTH, "overhead_per_record", 4.0),
    least(small, BOTH, "write_per_s", 1e6, Against::One),
    least(mixed, BOTH, "gets_per_s", 1.0, Against::Peer("lmdb")),
    least(mixed, BOTH, "updates_per_s", 0.6e6, Against::One),
    most(mixed, BOTH, "get_p999_us", 10.0),
    most(mixed, BOTH, "get_max_us", 5000.0),
    least(durable_1, BOTH, "commits_per_s", 0.9, Against::Peer("raw-append")),
    least(durable_4, BOTH, "commits_per_s", 2.0, Against::OneThread),
    most(open, BOTH, "open_warm_ms", 50.0),
    most(open, BOTH, "open_cold_ms", 50.0),
];

/// How many times better than the best peer the better of Azekura's kinds must be.
struct Asked {
    about: fn(&Case) -> bool,
    figures: &'static [&'static str],
    factor: f64,
}

fn any_scan(case: &Case) -> bool {
    case.workload == Workload::Scan
}
fn huge(case: &Case) -> bool {
    case.workload == Workload::Huge
}
fn ycsb_closed(case: &Case) -> bool {
    case.workload == Workload::Ycsb && case.rate_per_s.is_none()
}
fn ycsb_at_a_rate(case: &Case) -> bool {
    case.workload == Workload::Ycsb && case.rate_per_s.is_some()
}

const ASKED: [Asked; 12] = [
    Asked { about: large, figures: &["read_per_s"], factor: 1.5 },
    Asked { about: lookup_10m, figures: &["present_gets_per_s"], factor: 1.5 },
    Asked { about: huge, figures: &["present_gets_per_s"], factor: 1.4 },
    Asked { about: text, figures: &["present_gets_per_s"], factor: 1.2 },
    Asked { about: any_scan, figures: &["scan_per_s"], factor: 1.2 },
    Asked { about: any_scan, figures: &["ranges_per_s"], factor: 1.5 },
    Asked { about: mixed, figures: &["gets_per_s"], factor: 1.3 },
    Asked { about: mixed, figures: &["get_p999_us"], factor: 1.0 },
    Asked {
        about: ycsb_closed,
        figures: &["a_ops_per_s", "b_ops_per_s", "c_ops_per_s", "d_ops_per_s", "f_ops_per_s"],
        factor: 1.0,
    },
    Asked { about: ycsb_closed, figures: &["e_ops_per_s"], factor: 1.3 },
    // No more than one and a half times the best peer's latency.
    Asked {
        about: ycsb_at_a_rate,
        figures: &["a_read_p99_us", "a_update_p99_us", "c_read_p99_us"],
        factor: 0.67,
    },
    Asked { about: durable_1, figures: &["commits_per_s"], factor: 1.1 },
];

/// How many times better than the best peer a figure must be, if that is asked.
pub fn asked(case: &Case, figure: &str) -> Option<f64> {
    let concerns = |asked: &&Asked| (asked.about)(case) && asked.figures.contains(&figure);
    ASKED.iter().find(concerns).map(|asked| asked.factor)
}

/// A line for each figure that concerns a case and was measured.
pub fn lines(results: &[CaseResult], case: &Case) -> Vec<String> {
    let Some(result) = results.iter().find(|result| result.case == *case) else {
        return Vec::new();
    };
    GATES
        .iter()
        .filter(|gate| (gate.about)(case))
        .flat_map(|gate| gate.ours.iter().filter_map(|ours| line(gate, ours, result, results)))
        .collect()
}

fn line(gate: &Gate, ours: &str, result: &CaseResult, all: &[CaseResult]) -> Option<String> {
    let value = result.figure(ours, gate.figure)?.median;
    let (divisor, what) = match gate.against {
        Against::One => (1.0, String::new()),
        Against::Peer(name) => (result.figure(name, gate.figure)?.median, format!(" × {name}")),
        Against::Best => {
            let (name, best) = result.best_peer(gate.figure, gate.better)?;
            (best, format!(" × {}, the best", name.name))
        }
        Against::OneThread => {
            let before = all.iter().rev().find(|result| durable_1(&result.case))?;
            (before.figure(ours, gate.figure)?.median, " × one thread".to_owned())
        }
    };
    let got = value / divisor;
    let (sign, reached) = match gate.better {
        Better::Lower => ("≤", got <= gate.bound),
        _ => ("≥", got >= gate.bound),
    };
    let mark = if reached { "reached" } else { "SHORT  " };
    let shown = |number: f64| {
        if gate.bound >= 1e5 { figure(number, Unit::Rate) } else { digits(number) }
    };
    Some(format!(
        "  {mark}  {ours} {}: {}{what} (wanted {sign} {})",
        gate.figure,
        shown(got),
        shown(gate.bound)
    ))
}
