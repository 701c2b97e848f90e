//! `azekura rename`: gives a table another name.

use azekura::Durability;

use crate::bytes;
use crate::failure::Outcome;
use crate::output;
use crate::store::{self, FromToArg, JsonArg};

/// Arguments of `rename`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  azekura rename fruit.azk prices old-prices")]
pub struct Args {
    #[command(flatten)]
    pub names: FromToArg,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `rename`.
pub fn run(Args { names: args, json }: &Args) -> Outcome {
    store::check_name(&args.to)?;
    let db = store::open_to_write(&args.file.path, Durability::Sync, |db| {
        store::open_table(db, &args.from)?;
        store::must_be_free(db, &args.to)
    })?;
    db.rename_table(&args.from, &args.to)?;
    store::close(db);
    if json.json {
        return output::print_json(&serde_json::json!({ "from": args.from, "to": args.to }));
    }
    output::print_line(&format!("renamed table {} to {}", bytes::quoted(&args.from), bytes::quoted(&args.to)))
}
