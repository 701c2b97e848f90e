//! `azekura clear`: removes all records of a table.

use azekura::Durability;

use crate::bytes;
use crate::failure::Outcome;
use crate::output;
use crate::store::{self, WholeTableArg};

/// Arguments of `clear`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It does not ask, and what was there is gone. The table is always named: none is cleared by accident.\n\n\
                  Example:\n  azekura clear fruit.azk prices"
)]
pub struct Args {
    #[command(flatten)]
    pub of: WholeTableArg,
}

/// Runs `clear`.
pub fn run(Args { of: args }: &Args) -> Outcome {
    let mut records = None;
    let db = store::open_to_write(&args.file.path, Durability::Sync, |db| {
        records = store::records(&store::open_table(db, &args.table)?);
        Ok(())
    })?;
    store::open_table(&db, &args.table)?.clear()?;
    store::close(db);
    if args.json.json {
        return output::print_json(&serde_json::json!({ "table": args.table, "records": records }));
    }
    output::print_line(&format!(
        "cleared table {}{}",
        bytes::quoted(&args.table),
        store::with_records(records)
    ))
}
