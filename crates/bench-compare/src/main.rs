//! Azekura against its peers.
//!
//! `bench-compare [workload…]` runs each workload over each peer: every measurement in a process of
//! its own (so that memory and the kernel's counters are that peer's alone), the peers interleaved
//! over the repetitions, every value verified byte for byte. It prints a table for each case, with
//! the median, the range and Azekura's ratio to the best peer, and below it each figure that Azekura
//! must reach.
//!
//! In reading order: `records` makes keys and values, `peers` drives the stores, `workloads` measures
//! one store in this process, `child` does so in another, `runner` interleaves them, `report` prints.

mod args;
mod child;
mod failure;
mod measure;
mod peers;
mod records;
mod report;
mod runner;
mod workloads;

use args::Args;
use clap::Parser as _;
use failure::{Failure, Result};
use report::{gates, json::Lines, table};
use runner::Runner;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if let (Some(child::COMMAND), Some(job)) = (words.next().as_deref(), words.next()) {
        return child::main(&job);
    }
    match compare(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("bench-compare: {failure}");
            ExitCode::from(2)
        }
    }
}

/// Runs everything that is asked for; `false` if a measurement failed.
fn compare(args: &Args) -> Result<bool> {
    if args.list {
        list();
        return Ok(true);
    }
    let (peers, missing) = runner::entrants(&args.peers)?;
    for line in &missing {
        eprintln!("{line}");
    }
    let lines = args.json.as_deref().map(Lines::append).transpose()?;
    let dir = WorkDir::new(args.dir.as_deref())?;
    let limit = Duration::from_secs(args.limit);
    let mut runner = Runner::new(args.runs(), limit, dir.path.clone(), lines);

    let cases = args.cases();
    runner.expect(&cases, &peers, &args.peers);
    let mut results = Vec::new();
    for case in &cases {
        let result = runner.run(case, &peers, &args.peers)?;
        results.push(result);
        runner.pause(|| {
            if let Some(result) = results.last() {
                println!("{}", table::render(result));
            }
            for line in gates::lines(&results) {
                println!("{line}");
            }
            println!();
        });
    }
    runner.finish();
    Ok(results.iter().all(|result| result.rows.iter().all(|row| row.failure.is_none())))
}

fn list() {
    println!("{}", peers::listing::render());
}

/// The directory for databases; removed at the end if this program made it.
struct WorkDir {
    path: PathBuf,
    remove: bool,
}

impl WorkDir {
    fn new(asked: Option<&Path>) -> Result<Self> {
        let path = match asked {
            Some(path) => path.to_owned(),
            None => std::env::temp_dir().join(format!("bench-compare-{}", std::process::id())),
        };
        let remove = !path.exists();
        fs::create_dir_all(&path).map_err(Failure::io(format!("creating {}", path.display())))?;
        Ok(Self { path, remove })
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if self.remove
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            eprintln!("bench-compare: removing {}: {error}", self.path.display());
        }
    }
}
