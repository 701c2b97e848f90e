//! `azekura prune`: removes points of a repository of backups, and what they alone have.

use azekura::{Keep, Repository};

use super::verify::RepositoryArg;
use crate::failure::Outcome;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::store::JsonArg;
use crate::units;

/// Arguments of `prune`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "--keep 7d,4w keeps the newest point of each of the 7 newest days that have one, and of the 4 newest\n\
                  weeks; h, d, w, m and y are hours, days, weeks, months and years (UTC), and 3 alone the three newest\n\
                  points. The newest point always stays.\n\n\
                  Example:\n  azekura prune saved --keep 7d,4w,12m"
)]
pub struct Args {
    #[command(flatten)]
    pub repository: RepositoryArg,
    /// Which points stay
    #[arg(long, value_name = "RULES")]
    keep: Keep,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `prune`.
pub fn run(args: &Args) -> Outcome {
    let mut progress = Progress::new("pruning", Unit::Records, 0);
    let repository = Repository::open(&args.repository.path)?;
    let report = repository.prune(&args.keep, |step| progress.set_of(step.done, step.total))?;
    drop(progress);
    if args.json.json {
        return output::print_json(&serde_json::json!({
            "kept": report.kept,
            "removed": report.removed,
            "files": report.files,
            "bytes": report.bytes,
        }));
    }
    output::print_line(&format!(
        "points: {} removed, {} kept; {} and {} given back",
        report.removed.len(),
        report.kept.len(),
        units::counted(report.files, "file"),
        units::bytes(report.bytes),
    ))
}
