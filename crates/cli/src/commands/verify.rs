//! `azekura verify`: whether a repository of backups is what was written.

use std::path::PathBuf;

use azekura::Repository;

use crate::failure::Outcome;
use crate::output::Output;
use crate::progress::{Progress, Unit};
use crate::store::JsonArg;
use crate::style::Paint;
use crate::units;

/// The repository.
#[derive(Debug, clap::Args)]
pub struct RepositoryArg {
    /// The repository of backups
    #[arg(value_name = "REPO")]
    pub path: PathBuf,
}

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Reads every byte that a point names; no database is needed. Exit status 3 when anything is wrong.\n\n\
                  Example:\n  azekura verify saved && echo sound"
)]
pub struct Args {
    #[command(flatten)]
    pub repository: RepositoryArg,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `verify`.
pub fn run(args: &Args) -> Outcome {
    let path = &args.repository.path;
    let mut progress = Progress::new("verifying", Unit::Bytes, 0);
    let report = Repository::open(path)?.verify(|step| progress.set_of(step.done, step.total))?;
    drop(progress);
    let mut output = Output::new();
    if args.json.json {
        output.json(&serde_json::json!({
            "ok": report.problems.is_empty(),
            "points": report.points,
            "chunks": report.chunks,
            "bytes": report.bytes,
            "unused": report.unused,
            "problems": report.problems,
        }))?;
    } else {
        super::print_problems(&report.problems, &mut output)?;
        if report.problems.is_empty() {
            let points = units::counted(report.points, "point");
            let (chunks, size) = (units::counted(report.chunks, "chunk"), units::bytes(report.bytes));
            output.line(&format!("{}: {points}, {chunks}, {size}", Paint::stdout().green("sound")))?;
        }
        if report.unused > 0 {
            let unused = units::counted(report.unused, "file");
            output.line(&format!("{unused} of no point (azekura prune removes them)"))?;
        }
    }
    output.finish()?;
    super::sound_unless(&report.problems, path)
}
