//! Which figures each workload's table has.

use super::format::Unit;
use super::summary::Better;
use crate::workloads::Workload;

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The figure's name in a measurement.
    pub name: &'static str,
    /// The heading.
    pub title: &'static str,
    /// What the figure is.
    pub unit: Unit,
    /// Which way it is better.
    pub better: Better,
}

const fn rate(name: &'static str, title: &'static str) -> Column {
    Column { name, title, unit: Unit::Rate, better: Better::Higher }
}

const fn less(name: &'static str, title: &'static str, unit: Unit) -> Column {
    Column { name, title, unit, better: Better::Lower }
}

const FILE: Column = less("bytes_per_record", "file\nB/record", Unit::Plain);
const FLUSH: Column = less("flush_s", "flush,\nclose", Unit::Seconds);
const MEMORY: Column = less("peak_rss_bytes", "peak\nmemory", Unit::Bytes);
const CALLS: Column = less("write_calls_per_mib", "calls\n/MiB", Unit::Plain);

const SEQUENTIAL: [Column; 11] = [
    rate("write_per_s", "write"),
    rate("write_flush_per_s", "write\n+ flush"),
    FLUSH,
    rate("read_per_s", "get in\norder"),
    rate("scan_per_s", "scan"),
    FILE,
    Column { name: "overhead_per_record", title: "over\nB/record", unit: Unit::Plain, better: Better::Neither },
    less("written_per_file", "written\n/ file", Unit::Plain),
    less("written_per_raw", "written\n/ raw", Unit::Plain),
    CALLS,
    MEMORY,
];

const RANDOM: [Column; 15] = [
    rate("write_per_s", "insert"),
    rate("write_flush_per_s", "insert\n+ flush"),
    less("batch_p99_ms", "batch\np99", Unit::Milliseconds),
    less("batch_max_ms", "batch\nmax", Unit::Milliseconds),
    less("growth", "last/\nfirst", Unit::Plain),
    rate("present_gets_per_s", "get\npresent"),
    rate("absent_gets_per_s", "get\nabsent"),
    rate("many_gets_per_s", "get_many\nof 100"),
    rate("scan_per_s", "scan"),
    FILE,
    less("file_per_raw", "file\n/ raw", Unit::Plain),
    less("settle_s", "settle", Unit::Seconds),
    less("settled_bytes_per_record", "settled\nB/record", Unit::Plain),
    less("written_per_raw", "written\n/ raw", Unit::Plain),
    MEMORY,
];

const MIXED: [Column; 9] = [
    rate("gets_per_s", "gets"),
    rate("updates_per_s", "updates"),
    less("get_p50_us", "get\np50", Unit::Microseconds),
    less("get_p99_us", "get\np99", Unit::Microseconds),
    less("get_p999_us", "get\np99.9", Unit::Microseconds),
    less("get_max_us", "get\nmax", Unit::Microseconds),
    less("commit_p99_us", "commit\np99", Unit::Microseconds),
    less("commit_max_us", "commit\nmax", Unit::Microseconds),
    MEMORY,
];

const DURABLE: [Column; 5] = [
    rate("commits_per_s", "commits"),
    less("commit_p50_us", "p50", Unit::Microseconds),
    less("commit_p99_us", "p99", Unit::Microseconds),
    less("commit_p999_us", "p99.9", Unit::Microseconds),
    less("commit_max_us", "max", Unit::Microseconds),
];

const OPEN: [Column; 6] = [
    less("open_cold_ms", "open + get,\ncold", Unit::Milliseconds),
    less("open_warm_ms", "open + get,\nwarm", Unit::Milliseconds),
    less("open_memory_bytes", "memory\nto open", Unit::Bytes),
    less("database_bytes", "file", Unit::Bytes),
    less("write_s", "load", Unit::Seconds),
    MEMORY,
];

/// The columns of a workload.
pub fn of(workload: Workload) -> &'static [Column] {
    match workload {
        Workload::Sequential | Workload::Large => &SEQUENTIAL,
        Workload::Random | Workload::Ordinary16 | Workload::Text | Workload::Small => &RANDOM,
        Workload::Mixed => &MIXED,
        Workload::Durable => &DURABLE,
        Workload::Open => &OPEN,
    }
}
