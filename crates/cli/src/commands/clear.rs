//! `azekura clear`: removes all records of a table.

use azekura::Durability;

use crate::bytes;
use crate::failure::Outcome;
use crate::output;
use crate::store::{self, FileArg};

/// Arguments of `clear`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It does not ask, and what was there is gone. The table is always named: none is cleared by accident.\n\n\
                  Example:\n  azekura clear fruit.azk prices"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The table
    #[arg(value_name = "TABLE")]
    table: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `clear`.
pub fn run(args: &Args) -> Outcome {
    let mut records = None;
    let db = store::open_to_write(&args.file.path, Durability::Sync, |db| {
        records = store::records(&store::open_table(db, &args.table)?);
        Ok(())
    })?;
    store::open_table(&db, &args.table)?.clear()?;
    store::close(db);
    if args.json {
        return output::print_json(&serde_json::json!({ "table": args.table, "records": records }));
    }
    output::print_line(&format!("cleared table {}{}", bytes::quoted(&args.table), store::with_records(records)))
}
