//! Which figures the table of each workload has, and which of them represent it.

use super::better::Better;
use super::format::Unit;
use crate::case::{Case, Workload};

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The figure's name in a measurement.
    pub name: &'static str,
    /// The heading. It may have a line break.
    pub title: &'static str,
    /// What the figure is.
    pub unit: Unit,
    /// Which way it is better.
    pub better: Better,
    /// It represents the workload where only a few figures are shown.
    pub headline: bool,
}

impl Column {
    /// The heading in one line.
    pub fn heading(&self) -> String {
        self.title.replace(",\n", ", ").replace('\n', " ")
    }
}

const fn rate(name: &'static str, title: &'static str) -> Column {
    Column { name, title, unit: Unit::Rate, better: Better::Higher, headline: false }
}

const fn less(name: &'static str, title: &'static str, unit: Unit) -> Column {
    Column { name, title, unit, better: Better::Lower, headline: false }
}

const fn head(column: Column) -> Column {
    Column { headline: true, ..column }
}

const fn plain(name: &'static str, title: &'static str, unit: Unit) -> Column {
    Column { name, title, unit, better: Better::Neither, headline: false }
}

const FILE: Column = less("bytes_per_record", "file\nB/record", Unit::Plain);
const FLUSH: Column = less("flush_s", "flush,\nclose", Unit::Seconds);
const MEMORY: Column = less("peak_rss_bytes", "peak\nmemory", Unit::Bytes);

const CEDALSS: [Column; 15] = [
    rate("write_per_s", "write"),
    head(rate("write_flush_per_s", "write\n+ flush")),
    FLUSH,
    head(rate("read_per_s", "get in\norder")),
    rate("scan_per_s", "scan"),
    head(FILE),
    plain("overhead_per_record", "over\nB/record", Unit::Plain),
    less("written_per_file", "written\n/ file", Unit::Plain),
    less("written_per_raw", "written\n/ raw", Unit::Plain),
    less("written_bytes", "written", Unit::Bytes),
    less("write_calls", "write\ncalls", Unit::Count),
    less("write_calls_per_mib", "calls\n/MiB", Unit::Plain),
    less("read_bytes", "read by\ngets", Unit::Bytes),
    less("read_calls", "read\ncalls", Unit::Count),
    MEMORY,
];

const LOOKUP: [Column; 21] = [
    rate("write_per_s", "insert"),
    head(rate("write_flush_per_s", "insert\n+ flush")),
    FLUSH,
    less("batch_p99_ms", "batch\np99", Unit::Milliseconds),
    less("batch_max_ms", "batch\nmax", Unit::Milliseconds),
    less("growth", "last/\nfirst", Unit::Plain),
    head(rate("present_gets_per_s", "get\npresent")),
    rate("same_gets_per_s", "get\nthe same"),
    head(rate("absent_gets_per_s", "get\nabsent")),
    head(rate("many_gets_per_s", "gets by\nthe 100")),
    rate("scan_per_s", "scan"),
    FILE,
    head(less("file_per_raw", "file\n/ raw", Unit::Plain)),
    less("settle_s", "settle", Unit::Seconds),
    less("settled_bytes_per_record", "settled\nB/record", Unit::Plain),
    less("written_per_raw", "written\n/ raw", Unit::Plain),
    less("written_bytes", "written", Unit::Bytes),
    less("write_calls", "write\ncalls", Unit::Count),
    less("read_bytes", "read by\ngets", Unit::Bytes),
    less("read_calls", "read\ncalls", Unit::Count),
    MEMORY,
];

const INDEX: [Column; 16] = [
    rate("write_per_s", "insert"),
    head(rate("write_flush_per_s", "insert\n+ flush")),
    FLUSH,
    less("batch_mean_ms", "batch\nmean", Unit::Milliseconds),
    less("batch_max_ms", "batch\nmax", Unit::Milliseconds),
    less("batch_max_per_mean", "max\n/ mean", Unit::Plain),
    less("growth", "last/\nfirst", Unit::Plain),
    head(rate("finds_per_s", "find by\nindex")),
    rate("found_per_s", "records\nfound"),
    plain("found_per_find", "found\neach", Unit::Plain),
    rate("present_gets_per_s", "get"),
    rate("scan_per_s", "scan"),
    FILE,
    head(less("file_per_raw", "file\n/ raw", Unit::Plain)),
    less("written_per_raw", "written\n/ raw", Unit::Plain),
    MEMORY,
];

const PAIRS: [Column; 7] = [
    head(rate("put_per_s", "put")),
    head(rate("get_per_s", "get")),
    FLUSH,
    plain("rounds", "rounds", Unit::Count),
    head(less("file_per_raw", "file\n/ raw", Unit::Plain)),
    less("written_per_raw", "written\n/ put", Unit::Plain),
    MEMORY,
];

const YCSB: [Column; 20] = [
    head(rate("a_ops_per_s", "A: half\nupdates")),
    head(rate("b_ops_per_s", "B: 5 %\nupdates")),
    head(rate("c_ops_per_s", "C: reads\nonly")),
    head(rate("d_ops_per_s", "D: newest,\ninserts")),
    head(rate("e_ops_per_s", "E: scans,\ninserts")),
    head(rate("f_ops_per_s", "F: read and\nwrite")),
    less("a_read_p50_us", "A read\np50", Unit::Microseconds),
    less("a_read_p99_us", "A read\np99", Unit::Microseconds),
    less("a_read_p999_us", "A read\np99.9", Unit::Microseconds),
    less("a_read_max_us", "A read\nmax", Unit::Microseconds),
    less("a_update_p50_us", "A update\np50", Unit::Microseconds),
    less("a_update_p99_us", "A update\np99", Unit::Microseconds),
    less("a_update_p999_us", "A update\np99.9", Unit::Microseconds),
    less("a_update_max_us", "A update\nmax", Unit::Microseconds),
    less("c_read_p99_us", "C read\np99", Unit::Microseconds),
    less("d_insert_p99_us", "D insert\np99", Unit::Microseconds),
    less("e_scan_p99_us", "E scan\np99", Unit::Microseconds),
    less("f_modify_p99_us", "F modify\np99", Unit::Microseconds),
    rate("write_per_s", "load"),
    MEMORY,
];

const MIXED: [Column; 12] = [
    head(rate("gets_per_s", "gets")),
    head(rate("updates_per_s", "updates")),
    less("get_p50_us", "get\np50", Unit::Microseconds),
    less("get_p99_us", "get\np99", Unit::Microseconds),
    head(less("get_p999_us", "get\np99.9", Unit::Microseconds)),
    less("get_max_us", "get\nmax", Unit::Microseconds),
    less("commit_p50_us", "commit\np50", Unit::Microseconds),
    less("commit_p99_us", "commit\np99", Unit::Microseconds),
    less("commit_p999_us", "commit\np99.9", Unit::Microseconds),
    less("commit_max_us", "commit\nmax", Unit::Microseconds),
    rate("write_per_s", "load"),
    MEMORY,
];

const DURABLE: [Column; 5] = [
    head(rate("commits_per_s", "commits")),
    less("commit_p50_us", "p50", Unit::Microseconds),
    less("commit_p99_us", "p99", Unit::Microseconds),
    less("commit_p999_us", "p99.9", Unit::Microseconds),
    less("commit_max_us", "max", Unit::Microseconds),
];

const SCAN: [Column; 7] = [
    head(rate("scan_per_s", "all\nrecords")),
    head(rate("ranges_per_s", "ranges\nof 100")),
    rate("range_records_per_s", "records\nin ranges"),
    head(rate("reverse_per_s", "all in\nreverse")),
    rate("write_per_s", "load"),
    FILE,
    MEMORY,
];

const DELETE: [Column; 8] = [
    head(rate("removes_per_s", "remove")),
    head(rate("kept_gets_per_s", "get what\nis left")),
    rate("removed_gets_per_s", "get what\nis gone"),
    head(less("after_per_before", "file after\n/ before", Unit::Plain)),
    less("settled_per_before", "settled\n/ before", Unit::Plain),
    less("after_bytes", "file\nafter", Unit::Bytes),
    rate("write_per_s", "load"),
    MEMORY,
];

const TTL: [Column; 11] = [
    rate("put_per_s", "put"),
    plain("wanted_per_s", "wanted", Unit::Rate),
    plain("put_percent", "% of what\nis wanted", Unit::Plain),
    head(less("cpu_us_per_put", "processor,\nµs/put", Unit::Plain)),
    less("batch_p99_ms", "batch\np99", Unit::Milliseconds),
    less("batch_max_ms", "batch\nmax", Unit::Milliseconds),
    head(less("file_per_living", "file\n/ living", Unit::Plain)),
    less("file_late_per_early", "file late\n/ early", Unit::Plain),
    less("memory_late_per_early", "memory late\n/ early", Unit::Plain),
    less("file_late_bytes", "file", Unit::Bytes),
    MEMORY,
];

const COUNTERS: [Column; 7] = [
    head(rate("adds_per_s", "adds,\nsynced")),
    head(rate("one_adds_per_s", "to one,\n4 threads")),
    head(rate("gets_per_s", "get\nafterwards")),
    rate("write_per_s", "load"),
    less("written_per_add", "written\nB/add", Unit::Plain),
    less("file_bytes", "file", Unit::Bytes),
    MEMORY,
];

const FEED: [Column; 11] = [
    rate("write_per_s", "write"),
    head(rate("fed_per_s", "write,\ntold")),
    Column {
        better: Better::Higher,
        headline: true,
        ..plain("kept_percent", "% of the\nrate kept", Unit::Plain)
    },
    head(rate("changes_per_s", "changes\ntaken")),
    head(rate("live_per_s", "changes,\nlive")),
    rate("live_write_per_s", "write,\nlive"),
    less("behind_ms", "all taken\nafter", Unit::Milliseconds),
    less("told_bytes_per_change", "file\nB/change", Unit::Plain),
    less("written_per_raw", "written\n/ raw", Unit::Plain),
    less("batch_max_ms", "batch\nmax", Unit::Milliseconds),
    MEMORY,
];

const BACKUP: [Column; 11] = [
    head(less("first_s", "first\nbackup", Unit::Seconds)),
    less("first_per_raw", "written\n/ raw", Unit::Plain),
    head(less("second_s", "after 1 %\nupdated", Unit::Seconds)),
    less("second_per_raw", "written\n/ raw", Unit::Plain),
    head(less("restore_s", "restore", Unit::Seconds)),
    rate("alone_per_s", "updates,\nalone"),
    rate("beside_per_s", "updates,\nbeside"),
    Column {
        better: Better::Higher,
        headline: true,
        ..plain("kept_percent", "% of the\nrate kept", Unit::Plain)
    },
    plain("beside_backups", "backups\nmeanwhile", Unit::Count),
    less("beside_max_ms", "longest\ncommit", Unit::Milliseconds),
    MEMORY,
];

const RECOVER: [Column; 6] = [
    head(less("recover_ms", "open after\nkill", Unit::Milliseconds)),
    plain("kept_percent", "% of trans-\nactions kept", Unit::Plain),
    less("torn", "torn", Unit::Count),
    plain("records", "records\ncommitted", Unit::Count),
    less("killed_bytes", "file", Unit::Bytes),
    MEMORY,
];

const OPEN: [Column; 6] = [
    head(less("open_cold_ms", "open + get,\ncold", Unit::Milliseconds)),
    head(less("open_warm_ms", "open + get,\nwarm", Unit::Milliseconds)),
    less("open_memory_bytes", "memory\nto open", Unit::Bytes),
    less("database_bytes", "file", Unit::Bytes),
    less("write_s", "load", Unit::Seconds),
    MEMORY,
];

/// The figures that represent a case. At a fixed rate everyone who keeps up has the same rate, so there
/// latencies represent it.
pub fn headlines(case: &Case) -> impl Iterator<Item = &'static Column> {
    let fixed_rate = case.rate_per_s.is_some();
    let of_fixed_rate =
        |column: &Column| ["a_read_p99_us", "a_update_p99_us", "c_read_p99_us"].contains(&column.name);
    of(case.workload)
        .iter()
        .filter(move |column| if fixed_rate { of_fixed_rate(column) } else { column.headline })
}

/// The column of a figure, if the workload has it.
pub fn named(workload: Workload, name: &str) -> Option<&'static Column> {
    of(workload).iter().find(|column| column.name == name)
}

/// The columns of a workload.
pub fn of(workload: Workload) -> &'static [Column] {
    match workload {
        Workload::Sequential => &CEDALSS,
        Workload::Lookup | Workload::Huge | Workload::Text | Workload::Small => &LOOKUP,
        Workload::Index => &INDEX,
        Workload::Pairs => &PAIRS,
        Workload::Ycsb => &YCSB,
        Workload::Mixed => &MIXED,
        Workload::Durable => &DURABLE,
        Workload::Scan => &SCAN,
        Workload::Delete => &DELETE,
        Workload::Ttl => &TTL,
        Workload::Counters => &COUNTERS,
        Workload::Feed => &FEED,
        Workload::Backup => &BACKUP,
        Workload::Recover => &RECOVER,
        Workload::Open => &OPEN,
    }
}
