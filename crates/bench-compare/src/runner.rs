//! Runs every peer under a case, each measurement in a child process, peers interleaved over the
//! repetitions so that a slow spell of the machine falls on all of them.

use crate::child;
use crate::failure::{Failure, Result};
use crate::peers::{self, About};
use crate::records::Shape;
use crate::report::json::Lines;
use crate::workloads::{Case, Job, Outcome, RAW_FILES, Workload};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A peer to run, or a reference.
#[derive(Debug, Clone)]
pub struct Entrant {
    /// Name for the command line and for JSON.
    pub name: &'static str,
    /// Name for tables.
    pub title: &'static str,
    /// Whether it is Azekura.
    pub ours: bool,
    /// A plain file, shown for comparison.
    pub reference: bool,
    /// Runs only where keys ascend.
    pub ascending_only: bool,
    /// What sets it apart, or nothing.
    pub caveat: &'static str,
}

impl From<&About> for Entrant {
    fn from(about: &About) -> Self {
        let About { name, title, ours, ascending_only, caveat, .. } = *about;
        Self { name, title, ours, reference: false, ascending_only, caveat }
    }
}

/// What came of one entrant under one case.
#[derive(Debug)]
pub struct Row {
    /// Who.
    pub entrant: Entrant,
    /// One for each repetition that succeeded.
    pub outcomes: Vec<Outcome>,
    /// The first failure; there are no repetitions after it.
    pub failure: Option<String>,
}

/// What came of one case.
#[derive(Debug)]
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// A row for each entrant.
    pub rows: Vec<Row>,
}

/// The peers that are asked for and there, and a line for each that is not there.
pub fn entrants(asked: &[String]) -> Result<(Vec<Entrant>, Vec<String>)> {
    let all = peers::all();
    for name in asked {
        if !all.iter().any(|(about, _)| about.name == name) && !RAW_FILES.iter().any(|raw| raw.name == name) {
            let known: Vec<_> = all.iter().map(|(about, _)| about.name).collect();
            let known = known.join(", ");
            return Err(Failure::Usage(format!("no peer {name:?}; there are {known}")));
        }
    }
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for (about, peer) in &all {
        if !asked.is_empty() && !asked.iter().any(|name| name == about.name) {
            continue;
        }
        match peer {
            Some(_) => here.push(Entrant::from(about)),
            None => missing.push(format!(
                "{} is skipped: it was not there when this program was built ({}, then build again)",
                about.title, about.get
            )),
        }
    }
    Ok((here, missing))
}

/// The entrants of a case: the peers, and for the durable workload the references.
fn entrants_of(case: &Case, peers: &[Entrant], asked: &[String]) -> Vec<Entrant> {
    let ascending = case.shape() == Shape::Ascending;
    let mut entrants: Vec<Entrant> = peers.iter().filter(|peer| ascending || !peer.ascending_only).cloned().collect();
    if case.workload == Workload::Durable {
        let names_one = asked.iter().any(|name| RAW_FILES.iter().any(|raw| raw.name == name));
        let wanted = |name: &str| !names_one || asked.iter().any(|asked| asked == name);
        entrants.extend(RAW_FILES.iter().filter(|raw| wanted(raw.name)).map(|raw| Entrant {
            name: raw.name,
            title: raw.title,
            ours: false,
            reference: true,
            ascending_only: false,
            caveat: "",
        }));
    }
    entrants
}

/// Runs cases.
pub struct Runner {
    /// Repetitions.
    pub runs: u32,
    /// The longest that one measurement may take.
    pub limit: Duration,
    /// Where databases are made and removed.
    pub dir: PathBuf,
    /// Takes every measurement, if there is a file for them.
    pub lines: Option<Lines>,
    /// The bar, over all measurements; hidden where there is no terminal.
    bar: ProgressBar,
}

impl Runner {
    /// A runner of so many measurements.
    pub fn new(runs: u32, limit: Duration, dir: PathBuf, lines: Option<Lines>) -> Self {
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} [{elapsed_precise}] {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(0).with_style(style);
        Self { runs, limit, dir, lines, bar }
    }

    /// Announces work to come, for the bar.
    pub fn expect(&self, cases: &[Case], peers: &[Entrant], asked: &[String]) {
        let each: usize = cases.iter().map(|case| entrants_of(case, peers, asked).len()).sum();
        self.bar.set_length(crate::records::to_u64(each) * u64::from(self.runs));
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    /// Hides the bar while something is printed.
    pub fn pause<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Runs a case.
    pub fn run(&mut self, case: &Case, peers: &[Entrant], asked: &[String]) -> Result<CaseResult> {
        let mut rows: Vec<Row> = entrants_of(case, peers, asked)
            .into_iter()
            .map(|entrant| Row { entrant, outcomes: Vec::new(), failure: None })
            .collect();
        for run in 0..self.runs {
            // Every other repetition goes the other way, so that no peer always follows the same one.
            let mut order: Vec<&mut Row> = rows.iter_mut().collect();
            if run % 2 == 1 {
                order.reverse();
            }
            for row in order {
                self.bar.set_message(format!("{} · {}", case.title(), row.entrant.title));
                if row.failure.is_none() {
                    self.measure(case, row, run)?;
                }
                self.bar.inc(1);
            }
        }
        Ok(CaseResult { case: case.clone(), rows })
    }

    fn measure(&mut self, case: &Case, row: &mut Row, run: u32) -> Result<()> {
        let dir = self.dir.join(format!("{}-{run}", row.entrant.name));
        clear(&dir)?;
        fs::create_dir_all(&dir).map_err(Failure::io(format!("creating {}", dir.display())))?;
        let job =
            Job { case: case.clone(), peer: row.entrant.name.to_owned(), run, dir: dir.clone(), load_only: false };
        let result = child::run(&job, Some(self.limit));
        clear(&dir)?;
        settle_disk(&self.dir)?;
        if let Some(lines) = &mut self.lines {
            lines.measurement(&job, &result)?;
        }
        match result {
            Ok(outcome) => row.outcomes.push(outcome),
            Err(failure) => row.failure = Some(failure.to_string()),
        }
        Ok(())
    }
}

fn clear(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(Failure::io(format!("removing {}", dir.display()))),
    }
}

/// Waits until what the last measurement left to the disk is done, so that the next does not pay.
fn settle_disk(dir: &Path) -> Result<()> {
    let doing = || Failure::io(format!("syncing the file system of {}", dir.display()));
    let handle = File::open(dir).map_err(doing())?;
    rustix::fs::syncfs(&handle).map_err(|error| doing()(error.into()))
}
