//! `azekura create`: a new database with one table, or one more table in a database.

use azekura::{Db, Kind, Options};

use crate::failure::Outcome;
use crate::store::{FileArg, TableArg, kind_name};

/// Arguments of `create`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  azekura create fruit.azk\n  azekura create fruit.azk --table prices --hash")]
pub struct Args {
    #[command(flatten)]
    file: FileArg,
    #[command(flatten)]
    table: TableArg,
    /// A table in hash order: the fastest for single keys, without ranges
    #[arg(long, conflicts_with = "ordered")]
    hash: bool,
    /// A table in the order of its keys, with ranges and prefixes (the default)
    #[arg(long)]
    ordered: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `create`. An existing table is an error, whatever its kind.
pub fn run(args: &Args) -> Outcome {
    let kind = if args.hash { Kind::Hash } else { Kind::Ordered };
    let db = Db::open(&args.file.path, Options::new())?;
    db.create_table(&args.table.table, kind)?;
    db.close()?;
    if args.json {
        let report = serde_json::json!({ "table": args.table.table, "kind": kind_name(kind) });
        return crate::output::print_json(&report);
    }
    Ok(())
}
