//! `azekura index list`: the indexes of a table, or of all.

use serde::Serialize;

use crate::bytes::{harmless, shown_name};
use crate::failure::Outcome;
use crate::output::Output;
use crate::store::{self, FileArg, FollowArg};
use crate::style::Paint;
use crate::units;

/// Arguments of `index list`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "An index that is not ready was interrupted while it was made: index create goes on with it.\n\
                  The number of entries is an estimate until what was changed is merged.\n\n\
                  Example:\n  azekura index list people.azk"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The table [default: all of them]
    #[arg(value_name = "TABLE")]
    table: Option<String>,
    /// Print one JSON object an index
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    follow: FollowArg,
}

/// One index.
#[derive(Serialize)]
struct Row {
    table: String,
    index: String,
    spec: String,
    ready: bool,
    /// About how many entries it has.
    entries: u64,
    bytes: u64,
}

/// Runs `index list`.
pub fn run(args: &Args) -> Outcome {
    let db = args.follow.open(&args.file.path)?;
    let tables = match &args.table {
        Some(name) => vec![name.clone()],
        None => db.tables().into_iter().map(|table| table.name).collect(),
    };
    let mut rows = Vec::new();
    for table in tables {
        for info in store::open_table(&db, &table)?.indexes()? {
            rows.push(Row {
                table: table.clone(),
                index: info.name,
                spec: info.spec,
                ready: info.is_ready,
                entries: info.stats.records_estimate,
                bytes: info.stats.run_bytes + info.stats.memory_bytes,
            });
        }
    }
    let mut output = Output::new();
    if args.json {
        for row in &rows {
            output.json(row)?;
        }
        return output.finish();
    }
    let width = |head: &str, name: fn(&Row) -> &str| {
        let names = rows.iter().map(|row| shown_name(name(row)).chars().count());
        names.max().unwrap_or(0).max(head.len())
    };
    let (of_table, of_index) = (width("table", |row| &row.table), width("index", |row| &row.index));
    if !rows.is_empty() {
        let head = format!(
            "{:of_table$}  {:of_index$}  ready  {:>14}  {:>10}  spec",
            "table", "index", "entries", "size"
        );
        output.line(&Paint::stdout().bold(&head))?;
    }
    for row in &rows {
        let (table, index) = (shown_name(&row.table), shown_name(&row.index));
        let ready = if row.ready { "yes" } else { "no" };
        let (entries, size, spec) =
            (units::grouped(row.entries), units::bytes(row.bytes), harmless(&row.spec));
        output.line(&format!(
            "{table:of_table$}  {index:of_index$}  {ready:5}  {entries:>14}  {size:>10}  {spec}"
        ))?;
    }
    output.finish()
}
