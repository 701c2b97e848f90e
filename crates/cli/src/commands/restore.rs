//! `azekura restore`: a database of a point of a repository, or of what `backup FILE -` has written.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use azekura::{PointInfo, Repository, RestoreReport, Which};

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::output_file::check_target;
use crate::progress::{Progress, Unit};
use crate::store::JsonArg;
use crate::{times, units};

/// Arguments of `restore`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "OUT is there when it is whole and every byte of it was verified. It has a lineage of its own, so its\n\
                  backups go to another repository.\n\n\
                  Example:\n  azekura restore saved fruit.azk\n  azekura restore saved older.azk --point 3\n  \
                  azekura restore saved older.azk --time 2026-03-01T10:30\n  \
                  azekura restore saved older.azk --commit 81234"
)]
pub struct Args {
    /// The repository, or - for standard input
    #[arg(value_name = "REPO")]
    pub repository: PathBuf,
    /// The database to make
    #[arg(value_name = "OUT")]
    out: PathBuf,
    #[command(flatten)]
    which: WhichArg,
    /// Replace OUT if it is there (and no database)
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// Which point; without any the newest.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct WhichArg {
    /// The point of this number
    #[arg(long, value_name = "N")]
    point: Option<u64>,
    /// The database with exactly the commits up to this one (`points` lists which there are)
    #[arg(long, value_name = "C")]
    commit: Option<u64>,
    /// The newest point that began at this time (UTC) or before; of one whose log was kept, the last commit
    /// that was in it by then
    #[arg(long, value_name = "T", value_parser = times::parse)]
    time: Option<SystemTime>,
}

impl WhichArg {
    fn which(&self) -> Which {
        let commit = self.commit.map(Which::Commit).or(self.time.map(Which::Time));
        self.point.map(Which::Point).or(commit).unwrap_or(Which::Newest)
    }
}

/// Runs `restore`.
pub fn run(args: &Args) -> Outcome {
    let from_stdin = args.repository == Path::new("-");
    if from_stdin && args.which.which() != Which::Newest {
        return Err(Failure::Usage(
            "a stream has one point: --point, --commit and --time need REPO".to_owned(),
        ));
    }
    let inputs: &[&Path] = if from_stdin { &[] } else { &[&args.repository] };
    let unfinished = check_target(&args.out, inputs, args.force)?.unfinished()?;
    let mut progress = Progress::new("restoring", Unit::Bytes, 0);
    let step = |step: azekura::Progress| progress.set_of(step.done, step.total);
    let report = if from_stdin {
        azekura::restore_stream(&mut io::stdin().lock(), unfinished.path(), step)
            .map_err(|e| Failure::from(e).at(Path::new("standard input")))?
    } else {
        let repository = Repository::open(&args.repository)?;
        repository.restore(args.which.which(), unfinished.path(), step)?
    };
    drop(progress);
    unfinished.publish()?;
    print(&report, args)
}

fn print(RestoreReport { point, bytes }: &RestoreReport, args: &Args) -> Outcome {
    let PointInfo { number, commit, time, .. } = point;
    if args.json.json {
        return output::print_json(&serde_json::json!({
            "point": (*number > 0).then_some(number),
            "commit": commit,
            "time": times::utc(*time),
            "bytes": bytes,
        }));
    }
    let which = if *number > 0 { format!("point {number}: ") } else { String::new() };
    let (commit, bytes) = (units::grouped(*commit), units::bytes(*bytes));
    output::print_line(&format!("restored {which}commit {commit}, of {}, {bytes}", times::utc(*time)))
}
