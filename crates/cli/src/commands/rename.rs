//! `azekura rename`: gives a table another name.

use azekura::Durability;

use crate::bytes;
use crate::failure::Outcome;
use crate::output;
use crate::store::{self, FileArg};

/// Arguments of `rename`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  azekura rename fruit.azk prices old-prices")]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The table
    #[arg(value_name = "FROM")]
    from: String,
    /// Its new name, which no table has
    #[arg(value_name = "TO")]
    to: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `rename`.
pub fn run(args: &Args) -> Outcome {
    store::check_name(&args.to)?;
    let db = store::open_to_write(&args.file.path, Durability::Sync, |db| {
        store::open_table(db, &args.from)?;
        store::must_be_free(db, &args.to)
    })?;
    db.rename_table(&args.from, &args.to)?;
    store::close(db);
    if args.json {
        return output::print_json(&serde_json::json!({ "from": args.from, "to": args.to }));
    }
    output::print_line(&format!("renamed table {} to {}", bytes::quoted(&args.from), bytes::quoted(&args.to)))
}
