//! Azekura against its peers.
//!
//! `bench-compare [workload…]` runs each workload over each peer. Every measurement has a process of its own,
//! so memory and the kernel's counters are that peer's alone. The peers are interleaved over the repetitions.
//! Every value is verified byte for byte. For each case it prints a table with the median, the range and
//! Azekura's ratio to the best peer. Below it stands each figure that Azekura must reach. `bench-compare
//! page` makes a page with plots from earlier measurements.
//!
//! In reading order: `records` makes keys and values. `peers` drives the stores. `measure` has what is
//! measured. `case` and `job` say what to measure. `child` does so in a process of its own, `workloads` in
//! this one. `warm` wakes its memory. `presets` has the sizes. `runner` interleaves the measurements.
//! `results` keeps them. `report` prints them and draws the page.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod args;
mod case;
mod child;
mod counters;
mod failure;
mod job;
mod measure;
mod numbers;
mod peers;
mod presets;
mod records;
mod report;
mod results;
mod runner;
mod warm;
mod workloads;

use args::{Args, Command};
use clap::Parser as _;
use failure::{Failure, Result};
use report::{documents, gates, machine, markdown, page, table};
use results::{Lines, Results};
use runner::Runner;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if let (Some(child::COMMAND), Some(job)) = (words.next().as_deref(), words.next()) {
        return child::main(&job, workloads::run);
    }
    let args = Args::parse();
    let outcome = match &args.command {
        Some(Command::Page { json, html, markdown, fill }) => {
            page_of(json, html.as_deref(), markdown.as_deref(), fill).map(|()| true)
        }
        None if args.list => {
            list();
            Ok(true)
        }
        None => compare(&args),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("bench-compare: {failure}");
            ExitCode::from(2)
        }
    }
}

/// Runs everything that is asked for. Returns `false` if a measurement failed.
fn compare(args: &Args) -> Result<bool> {
    let (peers, missing) = runner::candidates(&args.peers)?;
    for line in &missing {
        eprintln!("{line}");
    }
    let entrants = |case: &_| runner::entrants_of(case, &peers, &args.peers);
    let cases = args.cases(|case| entrants(case).len());
    let dir = WorkDir::new(args.dir.as_deref())?;

    let mut results = Results::default();
    if let Some(path) = args.json.as_deref().filter(|path| path.exists()) {
        results.read(path)?;
    }
    let mut lines = args.json.as_deref().map(Lines::append).transpose()?;
    let session = machine::session(&dir.path, args.runs(), missing);
    if let Some(lines) = &mut lines {
        lines.session(&session)?;
    }
    results.begin(session);

    let end = args.quick.then(|| Instant::now() + Duration::from_secs_f64(args::QUICK_S));
    let mut runner = Runner::new(args.runs(), Duration::from_secs(args.limit), end, dir.path.clone(), lines);
    runner.warm = args.warm();
    runner.expect(cases.iter().map(|case| entrants(case).len()).sum());
    let mut sound = true;
    for case in &cases {
        runner.run(case, entrants(case), &mut results);
        let Some(result) = results.of(case) else { continue };
        sound &= result.rows.iter().all(|row| row.failure.is_none());
        runner.pause(|| {
            println!("{}", table::render(result));
            gates::lines(&results.cases, case).iter().for_each(|line| println!("{line}"));
            println!();
        });
        write_reports(&results, args.html.as_deref(), args.markdown.as_deref())?;
    }
    runner.finish();
    Ok(sound)
}

/// Makes a page and a summary from files, and fills figures into documents. Nothing is written before all of
/// them are made.
fn page_of(json: &[PathBuf], html: Option<&Path>, markdown: Option<&Path>, fill: &[PathBuf]) -> Result<()> {
    let mut results = Results::default();
    for path in json {
        results.read(path)?;
    }
    if results.cases.is_empty() {
        let names: Vec<String> = json.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::Usage(format!("nothing was measured in {}", names.join(", "))));
    }
    let documents: Vec<String> = fill.iter().map(|path| document(path, &results)).collect::<Result<_>>()?;
    write_reports(&results, html, markdown)?;
    fill.iter().zip(documents).try_for_each(|(path, text)| write(path, text))
}

/// A document with its figures.
fn document(path: &Path, results: &Results) -> Result<String> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(Failure::io(format!("reading {shown}")))?;
    documents::filled(&text, results).map_err(|failure| Failure::Usage(format!("{shown}: {failure}")))
}

fn write(path: &Path, text: String) -> Result<()> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, text)).map_err(Failure::io(format!("writing {}", path.display())))
}

fn write_reports(results: &Results, html: Option<&Path>, summary: Option<&Path>) -> Result<()> {
    html.map(|path| write(path, page::render(results))).transpose()?;
    summary.map(|path| write(path, markdown::render(results))).transpose()?;
    Ok(())
}

fn list() {
    println!("{}", peers::listing::render());
}

/// The directory for databases. It is removed at the end if this program made it.
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
