//! `azekura feed start`: feeds what is done to a table.

use azekura::{Durability, FeedContent};

use crate::bytes::quoted;
use crate::failure::Outcome;
use crate::output;
use crate::store::{self, WholeTableArg};

/// Arguments of `feed start`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every commit to the table writes its changes twice from then on, once for the feed.\n\n\
                  Example:\n  azekura feed start people.azk main\n  azekura feed start people.azk main --keys-only"
)]
pub struct Args {
    #[command(flatten)]
    pub of: WholeTableArg,
    /// Feed keys without their values
    #[arg(long, conflicts_with = "old_values")]
    keys_only: bool,
    /// Feed the values before, too
    #[arg(long)]
    old_values: bool,
}

/// Runs `feed start`.
pub fn run(Args { of, keys_only, old_values }: &Args) -> Outcome {
    let content = match (keys_only, old_values) {
        (true, _) => FeedContent::Keys,
        (_, true) => FeedContent::Both,
        _ => FeedContent::Values,
    };
    let look = |db: &azekura::Db| store::open_table(db, &of.table).map(|_| ());
    let db = store::open_to_write(&of.file.path, Durability::Sync, look)?;
    store::open_table(&db, &of.table)?.set_feed(Some(content))?;
    let newest = db.feed_info()?.map_or(0, |info| info.newest);
    store::close(db);
    if of.json.json {
        return output::print_json(&serde_json::json!({ "table": of.table, "commit": newest }));
    }
    output::print_line(&format!("table {} is fed after commit {newest}", quoted(&of.table)))
}
