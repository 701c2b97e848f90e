//! `azekura count`: the exact number of records of a table.

use crate::failure::Outcome;
use crate::output;
use crate::store::{self, FileArg, FollowArg, JsonArg, TableArg};

/// Arguments of `count`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  azekura count fruit.azk --table prices")]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    json: JsonArg,
    #[command(flatten)]
    follow: FollowArg,
}

/// Runs `count`.
pub fn run(args: &Args) -> Outcome {
    let db = args.follow.open(&args.file.path)?;
    let records = store::open_table(&db, &args.table.table)?.count()?;
    if args.json.json {
        let report = serde_json::json!({ "table": args.table.table, "records": records });
        return output::print_json(&report);
    }
    output::print_line(&records.to_string())
}
