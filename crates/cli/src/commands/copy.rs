//! `azekura copy`: the database as a new file, without free space.

use std::path::PathBuf;

use azekura::{Db, Options};

use super::backup::{RateArg, of_whole};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::output_file::check_target;
use crate::progress::{Progress, Unit};
use crate::store::{self, FileArg, JsonArg};
use crate::units;

/// Arguments of `copy`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "OUT is there when it is whole. Of a database that a program has open it has every durable commit.\n\
                  (copy-table copies one table.)\n\n\
                  Example:\n  azekura copy fruit.azk fruit-monday.azk --compact"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The database to make
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Merge what is in the copy, so that nothing that was replaced or removed is left in it
    #[arg(long)]
    compact: bool,
    /// Replace OUT if it is there (and no database)
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    rate: RateArg,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `copy`.
pub fn run(args: &Args) -> Outcome {
    let unfinished = check_target(&args.out, &[&args.file.path], args.force)?.unfinished()?;
    let mut progress = Progress::new("copying", Unit::Bytes, 0);
    let mut told = |step: azekura::Progress| progress.set_of(step.done, step.total);
    let mut copy = |db: &Db| db.copy_to_with(unfinished.path(), args.rate.options(), &mut told);
    of_whole(&args.file, &mut copy)?;
    drop(progress);
    if args.compact {
        let at_out = |error: azekura::Error| Failure::from(error).at(&args.out);
        let db = Db::open(unfinished.path(), Options::new().create(false)).map_err(at_out)?;
        db.compact().map_err(at_out)?;
        store::close(db);
    }
    unfinished.publish()?;
    let bytes = std::fs::metadata(&args.out).map_or(0, |metadata| metadata.len());
    if args.json.json {
        return output::print_json(&serde_json::json!({ "bytes": bytes }));
    }
    output::print_line(&format!("copied {}", units::bytes(bytes)))
}
