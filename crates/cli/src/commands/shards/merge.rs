//! `azekura shards merge`: the next version of a set, from several sets or with another number of shards.

use std::path::PathBuf;

use super::of::SetArg;
use crate::failure::Outcome;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::store::JsonArg;
use crate::units;

/// Arguments of `shards merge`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The new version has the records of the set's newest version, and of the newest versions of the others;\n\
                  of records with one key that of the last set counts. All have one kind, hash seed, and columns.\n\n\
                  Example:\n  azekura shards merge t.azs monday.azs tuesday.azs\n  azekura shards merge t.azs --shards 64"
)]
pub struct Args {
    #[command(flatten)]
    pub set: SetArg,
    /// Other sets
    #[arg(value_name = "OTHER")]
    others: Vec<PathBuf>,
    /// How many shards the new version has [default: as many as the set]
    #[arg(long, value_name = "N")]
    shards: Option<u32>,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `shards merge`.
pub fn run(args: &Args) -> Outcome {
    let mut progress = Progress::new("merging", Unit::Records, 0);
    let tell = |done, total| progress.set_of(done, total);
    let report = azekura_shards::merge(&args.set.path, &args.others, args.shards, tell)?;
    drop(progress);
    if args.json.json {
        return output::print_json(&serde_json::json!({
            "version": report.version,
            "records": report.records,
            "replaced": report.replaced,
        }));
    }
    let records = units::counted(report.records, "record");
    let replaced = units::grouped(report.replaced);
    output::print_line(&format!("version {}: {records}, {replaced} replaced", report.version))
}
