//! `azekura tables`: the tables of a database.

use azekura::{Db, TableInfo};
use serde::Serialize;

use crate::bytes::shown_name;
use crate::failure::Outcome;
use crate::output::Output;
use crate::store::{self, FileArg, FollowArg, kind_name};
use crate::style::Paint;
use crate::units;

/// Arguments of `tables`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  azekura tables fruit.azk --count")]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// Count the records of each as well
    #[arg(long)]
    count: bool,
    /// Print one JSON object a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    follow: FollowArg,
}

/// One table, as JSON.
#[derive(Serialize)]
struct Row<'a> {
    table: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
}

/// Runs `tables`.
pub fn run(args: &Args) -> Outcome {
    let db = args.follow.open(&args.file.path)?;
    let tables = db.tables();
    let mut output = Output::new();
    if args.json {
        for table in &tables {
            output.json(&row(&db, table, args.count)?)?;
        }
        return output.finish();
    }
    let width = tables.iter().map(|table| shown_name(&table.name).chars().count()).max();
    let width = width.unwrap_or(0).max("table".len());
    let paint = Paint::stdout();
    let count_head = if args.count { "           records" } else { "" };
    if !tables.is_empty() {
        output.line(&paint.bold(format!("{:width$}  kind   {count_head}", "table").trim_end()))?;
    }
    for table in &tables {
        let row = row(&db, table, args.count)?;
        let records = row.records.map(|count| format!("{:>18}", units::grouped(count)));
        let name = shown_name(row.table);
        let records = records.unwrap_or_default();
        output.line(format!("{name:width$}  {:7}{records}", row.kind).trim_end())?;
    }
    output.finish()
}

fn row<'a>(db: &Db, table: &'a TableInfo, count: bool) -> Outcome<Row<'a>> {
    let records = if count { Some(store::open_table(db, &table.name)?.count()?) } else { None };
    Ok(Row { table: &table.name, kind: kind_name(table.kind), records })
}
