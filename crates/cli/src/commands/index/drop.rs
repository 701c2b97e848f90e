//! `azekura index drop`: removes an index.

use azekura::Durability;

use super::of::{IndexArg, find};
use crate::failure::Outcome;
use crate::output;
use crate::store::{self, JsonArg};

/// Arguments of `index drop`.
#[derive(Debug, clap::Args)]
#[command(after_help = "It does not ask. The records stay; index create makes the index again.\n\n\
                  Example:\n  azekura index drop people.azk main by_email")]
pub struct Args {
    #[command(flatten)]
    pub of: IndexArg,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `index drop`.
pub fn run(Args { of, json }: &Args) -> Outcome {
    let db = store::open_to_write(&of.file.path, Durability::Sync, |db| find(db, of).map(|_| ()))?;
    let (table, info) = find(&db, of)?;
    table.drop_index(&of.name)?;
    drop(table);
    store::close(db);
    if json.json {
        let report = serde_json::json!({ "table": of.table, "index": of.name, "spec": info.spec });
        return output::print_json(&report);
    }
    output::print_line(&format!("dropped {}, which was of {}", of.shown(), info.spec))
}
