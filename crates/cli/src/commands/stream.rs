//! `azekura stream`: the source of a mirror on another machine, at the end of a pipe.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use azekura::MirrorReport;

use crate::failure::{self, Failure, Outcome};
use crate::store::{self, FileArg};
use crate::units;

/// How often is said what the mirror has.
const LINES: Duration = Duration::from_secs(1);

/// Arguments of `stream`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "azekura follow starts it, and talks with it over its standard input and output. It only reads FILE,\n\
                  beside whoever writes it, and ends when its input does.\n\n\
                  Example:\n  azekura follow fruit.azk --from 'ssh host azekura stream /data/fruit.azk'"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// Say on standard error, once a second at most, which commit the mirror has, and how far it is behind
    #[arg(long)]
    report: bool,
}

/// What the mirror has and lacks.
fn said(report: &MirrorReport) -> String {
    let commit = units::grouped(report.commit);
    if report.level {
        return format!("the mirror has commit {commit}, level");
    }
    let commits = units::counted(report.behind_commits, "commit");
    let (bytes, seconds) = (units::bytes(report.behind_bytes), units::seconds(report.behind.as_secs_f64()));
    format!("the mirror has commit {commit}, {commits}, {bytes} and {seconds} behind")
}

/// Runs `stream`.
pub fn run(args: &Args) -> Outcome {
    store::must_exist(&args.file.path)?;
    let failed = |e: io::Error| Failure::Usage(format!("standard input and output: {e}"));
    // Past the buffers that are made for lines.
    let mut from = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    let mut to = File::from(io::stdout().as_fd().try_clone_to_owned().map_err(failed)?);
    let mut next = Instant::now();
    azekura::stream_mirror(&args.file.path, &mut from, &mut to, &mut |report| {
        if args.report && Instant::now() >= next {
            next = Instant::now() + LINES;
            failure::write_stderr(&format!("{}\n", said(&report)));
        }
    })?;
    Ok(())
}
