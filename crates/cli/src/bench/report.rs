//! Output for people: the heading, the table of the sequential order, and a card of labelled figures for each
//! of the other orders.

use std::io::IsTerminal;

use super::args::{Args, Order};
use super::data::KEY_BYTES;
use super::place::BenchPlace;
use super::table::{Column, Layout};
use super::{durable, mixed, random, sequential};
use crate::bytes::harmless;
use crate::failure::Outcome;
use crate::output::Output;
use crate::style::Paint;
use crate::units::{as_f64, bytes, grouped, rate, seconds};

/// Stands for a figure that the operating system does not give.
const UNKNOWN: &str = "-";

/// Prints what is measured, and where.
pub fn print_heading(args: &Args, place: &BenchPlace, output: &mut Output) -> Outcome {
    let paint = Paint::stdout();
    let records = grouped(args.records);
    let what = match args.order {
        Order::Sequential => {
            let transactions = grouped(args.transactions());
            format!("{records} ascending 8-byte keys in {transactions} transactions")
        }
        Order::Random => {
            format!("{records} records in random order, {} to a transaction", grouped(args.batch()))
        }
        Order::Mixed => {
            let batch = grouped(args.batch());
            format!("random gets of {records} records beside transactions of {batch} updates")
        }
        Order::Durable => "one record to a transaction".to_owned(),
    };
    let cache = args.cache.map(|size| format!(", {} of memory", bytes(size)));
    let cache = cache.unwrap_or_default();
    let (table, durability) = (args.table_name(), args.durability_name());
    output.line(&format!("{}  {what}", paint.bold(args.order_name())))?;
    output.line(&format!("{table} table, {durability} commits{cache}"))?;
    output.line(&paint.dim(&harmless(&place.path().display().to_string())))?;
    output.line("")?;
    output.flush()
}

/// Prints where the file is, if it stays.
pub fn print_kept(place: &BenchPlace, output: &mut Output) -> Outcome {
    if place.is_kept() {
        output.line("")?;
        output.line(&harmless(&format!("kept {}", place.path().display())))?;
    }
    Ok(())
}

/// The table of the sequential order, in the classic columns. On a terminal that is too narrow a row has two
/// lines, with sizes in short units.
pub struct SequentialTable {
    layout: Layout,
    is_wide: bool,
}

impl SequentialTable {
    /// Lays the columns out for the sizes that will come.
    pub fn new(args: &Args) -> SequentialTable {
        let largest = args.value_sizes().iter().copied().max().unwrap_or(0);
        let total = args.records.saturating_mul(KEY_BYTES + largest);
        let wide = [amounts(args, grouped(total).len()), speeds(), costs()].concat();
        let layout = Layout::new(wide);
        if terminal_columns().is_none_or(|columns| layout.width() <= columns) {
            return SequentialTable { layout, is_wide: true };
        }
        let narrow = vec![[amounts(args, 7), costs()].concat(), speeds()];
        SequentialTable { layout: Layout::stacked(narrow), is_wide: false }
    }

    /// Prints the heading.
    pub fn print_header(&self, output: &mut Output) -> Outcome {
        self.layout.print_header(output)
    }

    /// Prints one row.
    pub fn print_row(&self, row: &sequential::Row, output: &mut Output) -> Outcome {
        let thousands = |per_second: f64| whole(per_second / 1e3);
        let size = if self.is_wide { grouped } else { bytes };
        let amounts = vec![
            grouped(row.transactions),
            per_transaction(row.records, row.transactions),
            row.value_bytes.to_string(),
            size(row.total_bytes),
            size(row.database_bytes),
            format!("{:.2}", row.overhead_bytes_per_record),
        ];
        let speeds = vec![
            clock(row.write_s),
            clock(row.flush_s),
            clock(row.read_s),
            thousands(row.writes_per_s),
            thousands(row.writes_flushed_per_s),
            thousands(row.reads_per_s),
            thousands(row.scan_per_s),
            whole(row.write_mb_per_s),
            whole(row.read_mb_per_s),
        ];
        let costs = vec![
            known(row.written_bytes, bytes),
            known(row.write_calls, grouped),
            known(row.peak_rss_bytes, bytes),
        ];
        let cells = if self.is_wide { [amounts, speeds, costs] } else { [amounts, costs, speeds] };
        self.layout.print_row(&cells.concat(), output)
    }
}

fn amounts(args: &Args, size_width: usize) -> Vec<Column> {
    let per_txn = per_transaction(args.records, args.transactions());
    vec![
        Column::new("", "txns", grouped(args.transactions()).len()),
        Column::new("records", "per txn", per_txn.len()),
        Column::new("value", "bytes", 5),
        Column::new("data", "bytes", size_width),
        Column::new("database", "bytes", size_width),
        Column::new("overhead", "B/record", 0),
    ]
}

fn speeds() -> Vec<Column> {
    vec![
        Column::new("write", "s", 6),
        Column::new("flush", "s", 6),
        Column::new("read", "s", 6),
        Column::new("write", "kop/s", 6),
        Column::new("+flush", "kop/s", 6),
        Column::new("read", "kop/s", 6),
        Column::new("scan", "kop/s", 6),
        Column::new("write", "MB/s", 5),
        Column::new("read", "MB/s", 5),
    ]
}

fn costs() -> Vec<Column> {
    vec![
        Column::new("bytes", "written", 7),
        Column::new("write", "calls", 6),
        Column::new("peak", "memory", 7),
    ]
}

/// The width of the terminal, if standard output is one.
fn terminal_columns() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

fn per_transaction(records: u64, transactions: u64) -> String {
    if records.is_multiple_of(transactions) {
        grouped(records / transactions)
    } else {
        format!("{:.1}", as_f64(records) / as_f64(transactions))
    }
}

fn clock(duration_s: f64) -> String {
    if duration_s < 100.0 { format!("{duration_s:.3}") } else { format!("{duration_s:.1}") }
}

/// A figure, rounded. A small one keeps a digit.
fn whole(figure: f64) -> String {
    if figure < 9.95 {
        format!("{figure:.1}")
    } else {
        format!("{figure:.0}").parse().map_or_else(|_| UNKNOWN.to_owned(), grouped)
    }
}

fn known(figure: Option<u64>, show: impl Fn(u64) -> String) -> String {
    figure.map_or_else(|| UNKNOWN.to_owned(), show)
}

/// Prints labelled figures, one on a line: the label, the main figure, and the rest.
fn print_card(lines: &[Line], output: &mut Output) -> Outcome {
    let paint = Paint::stdout();
    let label_width = lines.iter().map(|line| line.0.chars().count()).max().unwrap_or(0);
    let figure_width = lines.iter().map(|line| line.1.chars().count()).max().unwrap_or(0);
    for (label, figure, rest) in lines {
        let label = paint.dim(&format!("{label:label_width$}"));
        let figure = paint.cyan(&format!("{figure:>figure_width$}"));
        output.line(format!("  {label}  {figure}   {rest}").trim_end())?;
    }
    output.line("")
}

/// A line of a card: the label, the main figure, and what belongs to it.
type Line = (&'static str, String, String);

/// The card of the random order.
pub fn print_random(row: &random::Row, output: &mut Output) -> Outcome {
    let paint = Paint::stdout();
    let sizes = format!("{} + {} bytes", row.key_bytes, row.value_bytes);
    output.line(&paint.bold(&format!("{} records of {sizes}", grouped(row.records))))?;
    print_card(&[load_lines(row), lookup_lines(row)].concat(), output)
}

fn load_lines(row: &random::Row) -> Vec<Line> {
    let ms = |time: f64| seconds(time / 1e3);
    let settled = row.settle_s.map(|time| format!(", settled in {}", seconds(time)));
    let load = format!(
        "in {}{}, closed in {}",
        seconds(row.write_s),
        settled.unwrap_or_default(),
        seconds(row.flush_s)
    );
    let transactions = format!(
        "mean of {} transactions; p99 {}, longest {}",
        grouped(row.transactions),
        ms(row.batch_p99_ms),
        ms(row.batch_max_ms)
    );
    let growth = "the last 5 % of transactions against the first".to_owned();
    let raw = as_f64(row.total_bytes) / as_f64(row.records);
    let written =
        format!("{} written in {} calls", known(row.written_bytes, bytes), known(row.write_calls, grouped));
    vec![
        ("inserts", rate(row.inserts_per_s), load),
        ("transaction", ms(row.batch_mean_ms), transactions),
        ("growth", format!("{:.2}×", row.growth), growth),
        ("database", bytes(row.database_bytes), per_record(row.bytes_per_record, raw)),
        ("writing", amplification(row.written_bytes, row.total_bytes), written),
    ]
}

fn lookup_lines(row: &random::Row) -> Vec<Line> {
    vec![
        ("opening", seconds(row.open_ms / 1e3), "with a first get".into()),
        ("present", rate(row.present_gets_per_s), "random gets".into()),
        ("absent", rate(row.absent_gets_per_s), "random gets".into()),
        ("get_many", rate(row.get_many_per_s), "present keys, 100 at a time".into()),
        ("scan", rate(row.scan_per_s), "all records".into()),
        ("memory", known(row.peak_rss_bytes, bytes), "at the peak".into()),
        ("times", String::new(), harmless(&row.csv.display().to_string())),
    ]
}

fn mean(figure: f64) -> String {
    if figure.fract() == 0.0 { format!("{figure:.0}") } else { format!("{figure:.1}") }
}

fn per_record(database: f64, raw: f64) -> String {
    format!("{database:.2} bytes a record (raw: {})", mean(raw))
}

fn amplification(written: Option<u64>, total: u64) -> String {
    written.map_or_else(
        || UNKNOWN.to_owned(),
        |written| format!("{:.2}×", as_f64(written) / as_f64(total.max(1))),
    )
}

/// The card of the mixed order.
pub fn print_mixed(row: &mixed::Row, output: &mut Output) -> Outcome {
    let paint = Paint::stdout();
    let sizes = format!("{} + {} bytes", row.key_bytes, row.value_bytes);
    let title = format!("{} records of {sizes}, {}", grouped(row.records), seconds(row.seconds));
    output.line(&paint.bold(&title))?;
    let us = |time: f64| seconds(time / 1e6);
    let updates = format!(
        "{} transactions of {}, the longest {}",
        grouped(row.transactions),
        grouped(row.batch),
        seconds(row.transaction_max_ms / 1e3)
    );
    let written =
        format!("{} written in {} calls", known(row.written_bytes, bytes), known(row.write_calls, grouped));
    print_card(
        &[
            ("gets", rate(row.gets_per_s), "random, each of the newest commit".into()),
            ("updates", rate(row.updates_per_s), updates),
            ("get p50", us(row.get_p50_us), "verifying included".into()),
            ("get p99", us(row.get_p99_us), String::new()),
            ("get p99.9", us(row.get_p99_9_us), String::new()),
            ("get max", us(row.get_max_us), String::new()),
            ("database", bytes(row.database_bytes), written),
            ("memory", known(row.peak_rss_bytes, bytes), "at the peak".into()),
        ],
        output,
    )
}

/// The table of the durable order.
pub fn print_durable(raw: &durable::Run, rows: &[durable::Row], output: &mut Output) -> Outcome {
    let label = |text: &str| format!("{text:<15}");
    let layout = Layout::new(vec![
        Column::new("", "", 15),
        Column::new("", "per s", 8),
        Column::new("", "p50", 8),
        Column::new("", "p99", 8),
        Column::new("", "longest", 8),
        Column::new("against", "append", 7),
        Column::new("against", "1 thread", 8),
    ]);
    layout.print_header(output)?;
    let us = |time: f64| seconds(time / 1e6);
    layout.print_row(
        &[
            label("4 KiB append"),
            whole(raw.per_s()),
            us(raw.at_us(0.5)),
            us(raw.at_us(0.99)),
            us(raw.max_us()),
            "1.00×".to_owned(),
            String::new(),
        ],
        output,
    )?;
    for row in rows {
        let threads = if row.threads == 1 { "thread" } else { "threads" };
        let cells = [
            label(&format!("{} {threads}", row.threads)),
            whole(row.commits_per_s),
            us(row.commit_p50_us),
            us(row.commit_p99_us),
            us(row.commit_max_us),
            format!("{:.2}×", row.ratio_to_raw),
            format!("{:.2}×", row.ratio_to_one_thread),
        ];
        layout.print_row(&cells, output)?;
    }
    output.line("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_what_matters() {
        assert_eq!(whole(0.52), "0.5");
        assert_eq!(whole(24_512.4), "24,512");
        assert_eq!(clock(0.0434), "0.043");
        assert_eq!(clock(123.456), "123.5");
        assert_eq!(per_transaction(1_000_000, 1_000), "1,000");
        assert_eq!(per_transaction(10, 3), "3.3");
        assert_eq!(known(None, bytes), "-");
    }
}
