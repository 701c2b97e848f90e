//! Runs every peer in a case, each measurement in a child process. Peers are interleaved over the
//! repetitions, so that a slow spell of the machine affects all of them.
//!
//! A failed measurement is reported in its row, whatever the reason, and does not affect the others. Each
//! result goes to the JSON file as soon as it exists.

use crate::case::{Case, Workload};
use crate::child;
use crate::failure::{Failure, Result};
use crate::job::{Job, Outcome, Part};
use crate::peers::{self, About, PeerPlace};
use crate::results::{Entrant, Lines, Measurement, Results};
use crate::warm;
use crate::workloads::RAW_FILES;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An available peer.
#[derive(Debug, Clone)]
pub struct Candidate {
    about: About,
    entrant: Entrant,
}

impl From<&About> for Candidate {
    fn from(about: &About) -> Self {
        let mut caveats = Vec::new();
        match about.place {
            PeerPlace::Here => {}
            PeerPlace::Helper(language) => {
                caveats.push(format!("runs in a {language} process, by whose clock its calls are measured"));
            }
            PeerPlace::Server => caveats.push("a server; times are those that its client sees".to_owned()),
        }
        if !about.transactions {
            caveats.push("no transactions".to_owned());
        }
        if !about.bounded {
            caveats.push("memory not bounded by the budget".to_owned());
        }
        if !about.caveat.is_empty() {
            caveats.push(about.caveat.to_owned());
        }
        let entrant = Entrant {
            name: about.name.to_owned(),
            title: about.title.to_owned(),
            ours: about.ours,
            reference: false,
            caveat: caveats.join("; "),
        };
        Self { about: *about, entrant }
    }
}

/// The peers that are asked for and available, and a line for each missing one.
pub fn candidates(asked: &[String]) -> Result<(Vec<Candidate>, Vec<String>)> {
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
            Some(_) => here.push(Candidate::from(about)),
            None => missing.push(format!(
                "{} is skipped: it was not there when this program was built ({}, then build again)",
                about.title, about.get
            )),
        }
    }
    Ok((here, missing))
}

/// The entrants of a case: the peers that suit it, and the references if the workload is durable.
pub fn entrants_of(case: &Case, peers: &[Candidate], asked: &[String]) -> Vec<Entrant> {
    let suited = peers.iter().filter(|peer| case.suits(&peer.about));
    let mut entrants: Vec<Entrant> = suited.map(|peer| peer.entrant.clone()).collect();
    if case.workload == Workload::Durable {
        let names_one = asked.iter().any(|name| RAW_FILES.iter().any(|raw| raw.name == name));
        let wanted = |name: &str| !names_one || asked.iter().any(|asked| asked == name);
        entrants.extend(RAW_FILES.iter().filter(|raw| wanted(raw.name)).map(|raw| Entrant {
            name: raw.name.to_owned(),
            title: raw.title.to_owned(),
            ours: false,
            reference: true,
            caveat: String::new(),
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
    /// No measurement begins after this.
    pub end: Option<Instant>,
    /// Where databases are made and removed.
    pub dir: PathBuf,
    /// The file that takes every measurement, if there is one.
    pub lines: Option<Lines>,
    /// Bytes of memory to touch before each measurement.
    pub warm: u64,
    /// The bar over all measurements. It is hidden where there is no terminal.
    bar: ProgressBar,
}

impl Runner {
    /// A runner that makes `runs` repetitions.
    pub fn new(runs: u32, limit: Duration, end: Option<Instant>, dir: PathBuf, lines: Option<Lines>) -> Self {
        let style =
            ProgressStyle::with_template("{bar:24} {pos}/{len} [{elapsed_precise}, {eta} left] {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(0).with_style(style);
        Self { runs, limit, end, dir, lines, warm: 0, bar }
    }

    /// Tells the bar about this many measurements.
    pub fn expect(&self, measurements: usize) {
        self.bar.set_length(crate::records::to_u64(measurements) * u64::from(self.runs));
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    /// Hides the bar while something is printed.
    pub fn pause<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Runs a case. Each measurement is added to the results as soon as it is done.
    pub fn run(&mut self, case: &Case, mut entrants: Vec<Entrant>, results: &mut Results) {
        for run in 0..self.runs {
            // Every other repetition goes the other way, so that no peer always follows the same one.
            if run > 0 {
                entrants.reverse();
            }
            for entrant in &entrants {
                self.bar.set_message(format!("{} · {}", case.title(), entrant.title));
                if !results.has_failed(case, &entrant.name) {
                    let measurement = self.measure(case, entrant, run);
                    if let Some(lines) = &mut self.lines
                        && let Err(failure) = lines.measurement(&measurement)
                    {
                        self.bar.suspend(|| eprintln!("bench-compare: {failure}"));
                    }
                    results.add(measurement);
                }
                self.bar.inc(1);
            }
        }
    }

    fn measure(&self, case: &Case, entrant: &Entrant, run: u32) -> Measurement {
        let dir = self.dir.join(format!("{}-{run}", entrant.name));
        let job = Job { case: case.clone(), peer: entrant.name.clone(), run, dir, part: Part::Whole };
        let result = if self.end.is_some_and(|end| Instant::now() >= end) {
            Err(Failure::Usage("not measured: the time of a quick run was over".to_owned()))
        } else {
            self.in_clean_directory(&job)
        };
        let (outcome, error) = match result {
            Ok(outcome) => (Some(outcome), None),
            Err(failure) => (None, Some(failure.to_string())),
        };
        Measurement { entrant: entrant.clone(), run, case: case.clone(), outcome, error }
    }

    fn in_clean_directory(&self, job: &Job) -> Result<Outcome> {
        clear(&job.dir)?;
        fs::create_dir_all(&job.dir).map_err(Failure::io(format!("creating {}", job.dir.display())))?;
        warm::touch(self.warm)?;
        let result = child::run(job, Some(self.limit));
        clear(&job.dir)?;
        settle_disk(&self.dir)?;
        result
    }
}

fn clear(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(Failure::io(format!("removing {}", dir.display()))),
    }
}

/// Waits until the disk has finished the work of the last measurement, so that the next does not pay for it.
fn settle_disk(dir: &Path) -> Result<()> {
    let doing = || Failure::io(format!("syncing the file system of {}", dir.display()));
    let handle = File::open(dir).map_err(doing())?;
    rustix::fs::syncfs(&handle).map_err(|error| doing()(error.into()))
}
