//! `azekura drop`: removes a table with all its records.

use azekura::{Db, Durability};

use crate::bytes;
use crate::failure::Outcome;
use crate::output;
use crate::store::{self, WholeTableArg};

/// Arguments of `drop`.
#[derive(Debug, clap::Args)]
#[command(after_help = "It does not ask, and what was there is gone; an export keeps it.\n\n\
                  Example:\n  azekura export fruit.azk old.tsv --table old\n  azekura drop fruit.azk old")]
pub struct Args {
    #[command(flatten)]
    pub of: WholeTableArg,
}

/// Runs `drop`.
pub fn run(Args { of: args }: &Args) -> Outcome {
    remove_records(args, "dropped", |db| Ok(db.drop_table(&args.table)?))
}

/// Removes a table's records by `remove`, and says how many there were.
pub fn remove_records(args: &WholeTableArg, done: &str, remove: impl FnOnce(&Db) -> Outcome) -> Outcome {
    let mut records = None;
    let db = store::open_to_write(&args.file.path, Durability::Sync, |db| {
        records = store::records(&store::open_table(db, &args.table)?);
        Ok(())
    })?;
    remove(&db)?;
    store::close(db);
    if args.json.json {
        return output::print_json(&serde_json::json!({ "table": args.table, "records": records }));
    }
    output::print_line(&format!(
        "{done} table {}{}",
        bytes::quoted(&args.table),
        store::with_records(records)
    ))
}
