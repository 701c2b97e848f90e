//! Which plots each workload has.

use super::ceda;
use super::palette::{self, Look};
use crate::case::{Case, Workload};
use crate::measure::count;
use crate::measure::latency::PERCENTILES;
use crate::numbers::grouped;
use crate::records::to_u64;
use crate::report::columns::{self, Column};
use crate::report::format::{Unit, figure, tick};
use crate::report::plot::{Axis, Bar, Bars, Dot, LinePlot, Scale, Series};
use crate::report::summary::{Better, Figure};
use crate::results::{CaseResult, Entrant, Row};

/// If less is better and the figures differ by at least this factor, they are shown on a logarithmic scale.
const FAR_APART: f64 = 20.0;

/// A plot on the page.
#[derive(Debug)]
pub struct Plot {
    /// The heading.
    pub title: String,
    /// The case, or what the cases have in common.
    pub note: String,
    /// The drawing.
    pub svg: String,
    /// The legend: a look and a title for each peer. Empty if the drawing names its peers.
    pub keys: Vec<(Look, String)>,
}

/// The plots of a workload.
pub fn of(workload: Workload, cases: &[&CaseResult]) -> Vec<Plot> {
    match workload {
        Workload::Sequential => sequential(cases),
        Workload::Lookup => lookup(cases),
        Workload::Huge => huge(cases),
        Workload::Index => index(cases),
        Workload::Pairs => pairs(cases),
        Workload::Ycsb => ycsb(cases),
        Workload::Mixed => mixed(cases),
        Workload::Durable => durable(cases),
        Workload::Text
        | Workload::Small
        | Workload::Scan
        | Workload::Delete
        | Workload::Ttl
        | Workload::Counters
        | Workload::Feed
        | Workload::Backup
        | Workload::Recover
        | Workload::Open => cases.iter().flat_map(|case| headlines(case)).collect(),
    }
}

fn sequential(cases: &[&CaseResult]) -> Vec<Plot> {
    let by_size = alike(cases, |case| case.value_bytes);
    let smallest = cases.iter().map(|result| result.case.value_bytes).min().unwrap_or(0);
    let by_records: Vec<&CaseResult> =
        cases.iter().copied().filter(|r| r.case.value_bytes == smallest).collect();
    let size = Over { published: true, ..Over::new("value, bytes", |case| count(to_u64(case.value_bytes))) };
    let records = Over::new("records", |case| count(case.records));
    let note = |fixed: &str| format!("Ascending 8-byte keys, 1,000 transactions; {fixed}.");
    let of_size = note("close, reopen, get all in order");
    let of_records = note(&format!("values of {smallest} bytes"));
    let plots = [
        over("Write, by size of the value", &of_size, &by_size, "write_flush_per_s", &size),
        over("Get in order, by size of the value", &of_size, &by_size, "read_per_s", &size),
        over("Overhead in the file, by size of the value", &of_size, &by_size, "overhead_per_record", &size),
        over("Bytes written, by size of the value", &of_size, &by_size, "written_per_raw", &size),
        over("Write, by number of records", &of_records, &by_records, "write_flush_per_s", &records),
        over("Get in order, by number of records", &of_records, &by_records, "read_per_s", &records),
    ];
    plots.into_iter().flatten().collect()
}

fn lookup(cases: &[&CaseResult]) -> Vec<Plot> {
    let records = Over::new("records", |case| count(case.records));
    let largest = cases.iter().copied().max_by_key(|result| result.case.records);
    let mut plots: Vec<Plot> = largest.and_then(batch_times).into_iter().collect();
    for (title, name) in [
        ("Insert, by number of records", "write_flush_per_s"),
        ("Get a present key, by number of records", "present_gets_per_s"),
        ("Get an absent key, by number of records", "absent_gets_per_s"),
    ] {
        plots.extend(over(title, "Scattered 8-byte keys, 8-byte values.", cases, name, &records));
    }
    plots.extend(largest.into_iter().flat_map(headlines));
    plots
}

fn huge(cases: &[&CaseResult]) -> Vec<Plot> {
    let mut plots: Vec<Plot> = cases.iter().filter_map(|case| batch_times(case)).collect();
    for case in cases {
        for name in ["write_flush_per_s", "present_gets_per_s", "same_gets_per_s"] {
            plots.extend(bars(case, name));
        }
    }
    plots
}

fn index(cases: &[&CaseResult]) -> Vec<Plot> {
    let plots = cases.iter().flat_map(|case| batch_times(case).into_iter().chain(headlines(case)));
    plots.collect()
}

fn pairs(cases: &[&CaseResult]) -> Vec<Plot> {
    let pairs = Over::new("pairs in the list", |case| count(case.records));
    let plots = [
        ("Put, by length of the list", "put_per_s"),
        ("Get, by length of the list", "get_per_s"),
        ("Size on disk, by length of the list", "file_per_raw"),
    ];
    let note = "Text keys, values of 730 bytes, put and got over and over.";
    plots.into_iter().filter_map(|(title, name)| over(title, note, cases, name, &pairs)).collect()
}

fn ycsb(cases: &[&CaseResult]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for case in cases {
        if case.case.rate_per_s.is_none() {
            plots.extend(mixes(case));
        }
        let how = match case.case.rate_per_s {
            Some(rate) => format!("at {} operations/s", grouped(rate)),
            None if case.case.threads == 1 => "1 thread".to_owned(),
            None => format!("{} threads", case.case.threads),
        };
        plots.extend(percentiles(case, "a_read", &format!("Mix A, latency of reads, {how}")));
        plots.extend(percentiles(case, "a_update", &format!("Mix A, latency of updates, {how}")));
    }
    plots
}

fn mixed(cases: &[&CaseResult]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for case in cases {
        plots.extend(bars(case, "gets_per_s"));
        plots.extend(bars(case, "updates_per_s"));
        plots.extend(percentiles(case, "get", "Latency of a get beside the writer"));
        plots.extend(percentiles(case, "commit", "Latency of a transaction beside the reader"));
    }
    plots
}

fn durable(cases: &[&CaseResult]) -> Vec<Plot> {
    let threads = Over::new("threads", |case| count(case.threads));
    let note = "One record a transaction, synced before the commit returns.";
    let mut plots: Vec<Plot> =
        over("Durable commits, by number of threads", note, cases, "commits_per_s", &threads)
            .into_iter()
            .collect();
    let ends = [cases.iter().min_by_key(|r| r.case.threads), cases.iter().max_by_key(|r| r.case.threads)];
    let mut seen = 0;
    for case in ends
        .into_iter()
        .flatten()
        .filter(|result| std::mem::replace(&mut seen, result.case.threads) != result.case.threads)
    {
        let plural = if case.case.threads == 1 { "" } else { "s" };
        plots.extend(percentiles(
            case,
            "commit",
            &format!("Latency of a durable commit, {} thread{plural}", case.case.threads),
        ));
    }
    plots
}

/// One case for each value of a parameter. Among several it takes the one whose number of records most others
/// have, or else the one with the most records.
fn alike<'a>(cases: &[&'a CaseResult], key: impl Fn(&Case) -> usize) -> Vec<&'a CaseResult> {
    let common = |records: u64| cases.iter().filter(|other| other.case.records == records).count();
    let mut chosen: Vec<&CaseResult> = Vec::new();
    for case in cases {
        let rank = |result: &CaseResult| (common(result.case.records), result.case.records);
        match chosen.iter_mut().find(|other| key(&other.case) == key(&case.case)) {
            Some(other) if rank(case) > rank(other) => *other = case,
            Some(_) => {}
            None => chosen.push(case),
        }
    }
    chosen
}

/// A parameter over which a figure is plotted.
struct Over {
    label: &'static str,
    of: fn(&Case) -> f64,
    /// Published figures exist for one of its values.
    published: bool,
}

impl Over {
    fn new(label: &'static str, of: fn(&Case) -> f64) -> Self {
        Self { label, of, published: false }
    }

    fn axis(&self, cases: &[&CaseResult]) -> Axis {
        let mut values: Vec<f64> = cases.iter().map(|result| (self.of)(&result.case)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        // Powers of two stay whole.
        let name =
            |value: f64| if value < 10_000.0 { figure(value, Unit::Count) } else { tick(value, Unit::Rate) };
        let ticks = values.into_iter().map(|value| (value, name(value))).collect();
        Axis::with_ticks(self.label, Scale::Log, ticks)
    }
}

/// The entrants of cases in the order in which to draw them. Azekura comes last, and so on top.
fn entrants<'a>(cases: &[&'a CaseResult]) -> Vec<&'a Entrant> {
    let mut entrants: Vec<&Entrant> = Vec::new();
    for row in cases.iter().flat_map(|result| &result.rows) {
        if !entrants.iter().any(|entrant| entrant.name == row.entrant.name) {
            entrants.push(&row.entrant);
        }
    }
    entrants.sort_by_key(|entrant| (entrant.ours, !entrant.reference));
    entrants
}

/// The axis of a figure.
fn axis_of(column: &Column, scale: Scale) -> Axis {
    let what = match (column.unit, column.name) {
        (Unit::Rate, _) => "a second",
        (_, "overhead_per_record") => "overhead, B/record",
        (_, "bytes_per_record") => "bytes a record",
        (_, "written_per_raw") => "written / raw",
        (_, "file_per_raw") => "file / raw",
        (_, "after_per_before") => "file after / file before",
        (_, "file_per_living") => "file / what is alive",
        (_, "cpu_us_per_put") => "µs of processor time a put",
        (_, "kept_percent") => "% of the rate",
        _ => "time",
    };
    let better = match column.better {
        Better::Higher => " (more is better)",
        Better::Lower => " (less is better)",
        Better::Neither if column.name == "overhead_per_record" => " (less is better)",
        Better::Neither => "",
    };
    Axis::new(format!("{what}{better}"), column.unit, scale)
}

/// A figure over a parameter. `None` if the parameter has only one value.
fn over(title: &str, note: &str, cases: &[&CaseResult], name: &str, parameter: &Over) -> Option<Plot> {
    let column = columns::named(cases.first()?.case.workload, name)?;
    let x = parameter.axis(cases);
    if x.ticks.as_ref().is_none_or(|ticks| ticks.len() < 2) {
        return None;
    }
    let scale = if name == "overhead_per_record" { Scale::SymLog } else { Scale::Log };
    let (mut series, mut keys) = (Vec::new(), Vec::new());
    for entrant in entrants(cases) {
        let mut dots: Vec<Dot> = cases
            .iter()
            .filter_map(|result| dot(result, entrant, column, (parameter.of)(&result.case)))
            .collect();
        dots.sort_by(|a, b| a.x.total_cmp(&b.x));
        if !dots.is_empty() {
            keys.push((palette::look(&entrant.name), entrant.title.clone()));
            series.push(Series { look: palette::look(&entrant.name), dots, marked: true });
        }
    }
    for published in ceda::SERIES.into_iter().filter(|_| parameter.published) {
        let dots: Vec<Dot> = cases
            .iter()
            .filter_map(|result| {
                let y = published.scaled(result, name)?;
                let told =
                    format!("{}: {} ({})", published.title, figure(y, column.unit), published.told(name));
                Some(Dot { x: (parameter.of)(&result.case), y, range: None, told })
            })
            .collect();
        if !dots.is_empty() {
            keys.push((palette::look(published.name), published.title.to_owned()));
            series.push(Series { look: palette::look(published.name), dots, marked: true });
        }
    }
    let y = axis_of(column, scale);
    drawn(title, note, LinePlot { label: title.to_owned(), x, y, series }, keys)
}

fn dot(result: &CaseResult, entrant: &Entrant, column: &Column, x: f64) -> Option<Dot> {
    let row = result.row(&entrant.name)?;
    let value = Figure::in_row(row, column.name)?;
    Some(Dot { x, y: value.median, range: value.range(), told: told(row, column, value) })
}

/// The text that a point or a bar shows when the pointer is on it.
fn told(row: &Row, column: &Column, value: Figure) -> String {
    let range = value.range().map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", figure(low, column.unit), figure(high, column.unit))
    });
    let stopped = if row.load_stopped() { ", its load was stopped when its time was over" } else { "" };
    format!(
        "{}: {}, {}{range}{stopped}",
        row.entrant.title,
        column.heading(),
        figure(value.median, column.unit)
    )
}

/// Makes a plot from lines. Our own come first in the legend.
fn drawn(title: &str, note: &str, plot: LinePlot, mut keys: Vec<(Look, String)>) -> Option<Plot> {
    keys.sort_by_key(|(look, _)| !look.ours());
    Some(Plot { title: title.to_owned(), note: note.to_owned(), svg: plot.draw()?, keys })
}

/// The time of each batch over the course of the load.
fn batch_times(result: &CaseResult) -> Option<Plot> {
    let (mut series, mut keys) = (Vec::new(), Vec::new());
    for entrant in entrants(&[result]) {
        let row = result.row(&entrant.name)?;
        let Some(outcome) = row.outcomes.first().filter(|outcome| outcome.measured.series.len() > 1) else {
            continue;
        };
        let dots = outcome.measured.series.iter().map(|point| Dot {
            x: count(point.records),
            y: point.mean_ms,
            range: None,
            told: format!(
                "{}: {} a batch at the end",
                entrant.title,
                figure(point.mean_ms, Unit::Milliseconds)
            ),
        });
        series.push(Series { look: palette::look(&entrant.name), dots: dots.collect(), marked: false });
        keys.push((palette::look(&entrant.name), entrant.title.clone()));
    }
    let title = format!("Time of a batch, values of {} bytes", grouped(to_u64(result.case.value_bytes)));
    let plot = LinePlot {
        label: title.clone(),
        x: Axis::new("records inserted", Unit::Rate, Scale::Linear),
        y: Axis::new(
            format!("batch of {} (less is better)", grouped(result.case.batch)),
            Unit::Milliseconds,
            Scale::Log,
        ),
        series,
    };
    drawn(&title, &result.case.detail(), plot, keys)
}

/// Percentiles of latency, by rank.
fn percentiles(result: &CaseResult, prefix: &str, title: &str) -> Option<Plot> {
    const SHOWN: [&str; 6] = ["50 %", "90 %", "99 %", "99.9 %", "99.99 %", "longest"];
    let names: Vec<String> = PERCENTILES
        .iter()
        .map(|(name, _)| *name)
        .chain(["max"])
        .map(|name| format!("{prefix}_{name}_us"))
        .collect();
    let places: Vec<f64> = (0u32..).map(f64::from).take(SHOWN.len()).collect();
    let (mut series, mut keys) = (Vec::new(), Vec::new());
    for entrant in entrants(&[result]) {
        let row = result.row(&entrant.name)?;
        let points = places.iter().zip(&names).zip(SHOWN);
        let dots: Vec<Dot> = points
            .filter_map(|((x, name), shown)| {
                let value = Figure::in_row(row, name)?;
                let told =
                    format!("{}: {shown}, {}", entrant.title, figure(value.median, Unit::Microseconds));
                Some(Dot { x: *x, y: value.median, range: value.range(), told })
            })
            .collect();
        if !dots.is_empty() {
            series.push(Series { look: palette::look(&entrant.name), dots, marked: true });
            keys.push((palette::look(&entrant.name), entrant.title.clone()));
        }
    }
    let ticks = places.iter().copied().zip(SHOWN.map(str::to_owned)).collect();
    let plot = LinePlot {
        label: title.to_owned(),
        x: Axis::with_ticks("of all operations took at most", Scale::Linear, ticks),
        y: Axis::new("latency (less is better)", Unit::Microseconds, Scale::Log),
        series,
    };
    drawn(title, &result.case.detail(), plot, keys)
}

/// The rates of the six mixes.
fn mixes(result: &CaseResult) -> Option<Plot> {
    let columns: Vec<&Column> = columns::of(result.case.workload)
        .iter()
        .filter(|column| column.name.ends_with("_ops_per_s"))
        .collect();
    let places: Vec<f64> = (0u32..).map(f64::from).take(columns.len()).collect();
    let (mut series, mut keys) = (Vec::new(), Vec::new());
    for entrant in entrants(&[result]) {
        let dots: Vec<Dot> =
            places.iter().zip(&columns).filter_map(|(x, column)| dot(result, entrant, column, *x)).collect();
        if !dots.is_empty() {
            series.push(Series { look: palette::look(&entrant.name), dots, marked: true });
            keys.push((palette::look(&entrant.name), entrant.title.clone()));
        }
    }
    let letter = |column: &&Column| column.name.chars().take(1).collect::<String>().to_uppercase();
    let ticks = places.iter().copied().zip(columns.iter().map(letter)).collect();
    let plural = if result.case.threads == 1 { "" } else { "s" };
    let title = format!("Rate by mix, {} thread{plural}", result.case.threads);
    let plot = LinePlot {
        label: title.clone(),
        x: Axis::with_ticks("mix", Scale::Linear, ticks),
        y: Axis::new("operations a second (more is better)", Unit::Rate, Scale::Log),
        series,
    };
    drawn(&title, &result.case.detail(), plot, keys)
}

/// Bars for each headline figure of a case.
fn headlines(result: &CaseResult) -> Vec<Plot> {
    columns::headlines(&result.case).filter_map(|column| bars(result, column.name)).collect()
}

/// Bars for a figure.
fn bars(result: &CaseResult, name: &str) -> Option<Plot> {
    let column = columns::named(result.case.workload, name)?;
    let mut bars: Vec<Bar> = result
        .rows
        .iter()
        .filter_map(|row| {
            let value = Figure::in_row(row, column.name)?;
            let marker = if row.load_stopped() { " †" } else { "" };
            Some(Bar {
                look: palette::look(&row.entrant.name),
                title: row.entrant.title.clone(),
                value: value.median,
                range: value.range(),
                shown: format!("{}{marker}", figure(value.median, column.unit)),
                told: told(row, column, value),
                ours: row.entrant.ours,
            })
        })
        .collect();
    bars.sort_by(|a, b| match column.better {
        Better::Lower => a.value.total_cmp(&b.value),
        _ => b.value.total_cmp(&a.value),
    });
    // Times and some sizes differ by factors of thousands. Rates always start at zero.
    let far_apart =
        bars.first().zip(bars.last()).is_some_and(|(first, last)| last.value > FAR_APART * first.value);
    let scale = if column.better == Better::Lower && far_apart { Scale::Log } else { Scale::Linear };
    let heading = column.heading();
    let mut letters = heading.chars();
    let title =
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect());
    let mut axis = axis_of(column, scale);
    if scale == Scale::Log {
        axis.label = axis.label.replace(" (less", " (logarithmic; less");
    }
    let drawing = Bars { label: format!("{title}: {}", result.case.title()), axis, bars };
    Some(Plot { title, note: result.case.detail(), svg: drawing.draw()?, keys: Vec::new() })
}
