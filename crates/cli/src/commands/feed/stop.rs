//! `azekura feed stop`: feeds a table no longer.

use azekura::Durability;

use crate::bytes::quoted;
use crate::failure::Outcome;
use crate::output;
use crate::store::{self, WholeTableArg};

/// Arguments of `feed stop`.
#[derive(Debug, clap::Args)]
#[command(after_help = "What was fed stays until it is too much or too old.\n\n\
                  Example:\n  azekura feed stop people.azk main")]
pub struct Args {
    #[command(flatten)]
    pub of: WholeTableArg,
}

/// Runs `feed stop`.
pub fn run(Args { of }: &Args) -> Outcome {
    let look = |db: &azekura::Db| store::open_table(db, &of.table).map(|_| ());
    let db = store::open_to_write(&of.file.path, Durability::Sync, look)?;
    store::open_table(&db, &of.table)?.set_feed(None)?;
    store::close(db);
    if of.json.json {
        return output::print_json(&serde_json::json!({ "table": of.table }));
    }
    output::print_line(&format!("table {} is not fed", quoted(&of.table)))
}
