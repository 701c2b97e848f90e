//! `azekura shards verify`: whether a version of a set is what was written.

use super::of::SetArg;
use crate::failure::Outcome;
use crate::output::Output;
use crate::progress::{Progress, Unit};
use crate::store::JsonArg;
use crate::style::Paint;
use crate::units;

/// Arguments of `shards verify`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Reads every byte of the version: the digest of each file, all that azekura check looks at, and whether\n\
                  each key is in its shard. Each problem begins with the shard's file. Exit status 3 when anything is\n\
                  wrong.\n\n\
                  Example:\n  azekura shards verify t.azs && echo sound"
)]
pub struct Args {
    #[command(flatten)]
    pub set: SetArg,
    /// The version [default: the newest]
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `shards verify`.
pub fn run(args: &Args) -> Outcome {
    let path = &args.set.path;
    let mut progress = Progress::new("verifying", Unit::Records, 0);
    let report = azekura_shards::verify(path, args.version, |done, total| progress.set_of(done, total))?;
    drop(progress);
    let mut output = Output::new();
    if args.json.json {
        output.json(&serde_json::json!({
            "ok": report.problems.is_empty(),
            "version": report.version,
            "shards": report.shards,
            "records": report.records,
            "bytes": report.bytes,
            "problems": report.problems,
        }))?;
    } else {
        super::super::print_problems(&report.problems, &mut output)?;
        if report.problems.is_empty() {
            let (shards, records) =
                (units::counted(report.shards, "shard"), units::counted(report.records, "record"));
            let (version, size) = (report.version, units::bytes(report.bytes));
            let sound = Paint::stdout().green("sound");
            output.line(&format!("{sound}: version {version}, {shards}, {records}, {size}"))?;
        }
    }
    output.finish()?;
    super::super::sound_unless(&report.problems, path)
}
