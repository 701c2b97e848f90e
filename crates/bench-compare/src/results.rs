//! The results of measurements, kept in memory during a run and in a file of JSON lines.
//!
//! The first line of a run describes the machine and the command. Each line after it is one measurement. A
//! file may hold several runs: a measurement of a later run replaces the same one of an earlier run. So a
//! comparison can be made piece by piece.

use crate::case::Case;
use crate::failure::{Failure, Result};
use crate::job::Outcome;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A peer to run, or a reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entrant {
    /// Name for the command line and for JSON.
    pub name: String,
    /// Name for tables.
    pub title: String,
    /// Whether it is Azekura.
    pub ours: bool,
    /// A plain file, shown for comparison.
    pub reference: bool,
    /// What makes it different, or empty.
    pub caveat: String,
}

/// The results of one entrant in one case.
#[derive(Debug)]
pub struct Row {
    /// The entrant.
    pub entrant: Entrant,
    /// One for each repetition that succeeded.
    pub outcomes: Vec<Outcome>,
    /// The first failure; there are no repetitions after it.
    pub failure: Option<String>,
}

/// The results of one case.
#[derive(Debug)]
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// A row for each entrant.
    pub rows: Vec<Row>,
}

/// When, where and how a run was started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Seconds since 1970.
    pub time_s: u64,
    /// The processor's name, where the system tells.
    pub cpu: Option<String>,
    /// Hardware threads.
    pub cores: u64,
    /// Memory of the machine.
    pub memory_bytes: Option<u64>,
    /// The kernel's version.
    pub kernel: String,
    /// The kind of file system that the databases were on.
    pub file_system: String,
    /// The command as one would type it.
    pub command: String,
    /// Repetitions of each measurement.
    pub runs: u32,
    /// A line for each missing peer, which says how to get it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// One measurement, or its failure.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measurement {
    /// The entrant that was measured.
    pub entrant: Entrant,
    /// Which repetition.
    pub run: u32,
    /// The case.
    pub case: Case,
    /// What was measured.
    #[serde(flatten)]
    pub outcome: Option<Outcome>,
    /// Why nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Session(Session),
    Measurement(Box<Measurement>),
}

/// All known results.
#[derive(Debug, Default)]
pub struct Results {
    /// The runs, in order.
    pub sessions: Vec<Session>,
    /// The cases, in the order in which they were first measured.
    pub cases: Vec<CaseResult>,
    /// For each row of `cases`, its session.
    row_sessions: Vec<Vec<usize>>,
}

impl Results {
    /// Begins a run.
    pub fn begin(&mut self, session: Session) {
        self.sessions.push(session);
    }

    /// Adds a measurement of the run that began last.
    pub fn add(&mut self, measurement: Measurement) {
        let Measurement { entrant, case, outcome, error, .. } = measurement;
        let at = self.cases.iter().position(|result| result.case == case).unwrap_or_else(|| {
            self.cases.push(CaseResult { case, rows: Vec::new() });
            self.row_sessions.push(Vec::new());
            self.cases.len() - 1
        });
        let (rows, sessions) = (&mut self.cases[at].rows, &mut self.row_sessions[at]);
        let place = rows.iter().position(|row| row.entrant.name == entrant.name).unwrap_or_else(|| {
            rows.push(Row { entrant: entrant.clone(), outcomes: Vec::new(), failure: None });
            sessions.push(self.sessions.len());
            rows.len() - 1
        });
        let row = &mut rows[place];
        if sessions[place] != self.sessions.len() {
            *row = Row { entrant, outcomes: Vec::new(), failure: None };
            sessions[place] = self.sessions.len();
        }
        row.outcomes.extend(outcome);
        if row.failure.is_none() {
            row.failure = error;
        }
    }

    /// Whether an entrant has already failed in a case in this run.
    pub fn has_failed(&self, case: &Case, entrant: &str) -> bool {
        let Some(at) = self.cases.iter().position(|result| result.case == *case) else { return false };
        let Some(place) = self.cases[at].rows.iter().position(|row| row.entrant.name == entrant) else {
            return false;
        };
        self.row_sessions[at][place] == self.sessions.len() && self.cases[at].rows[place].failure.is_some()
    }

    /// The results of a case.
    pub fn of(&self, case: &Case) -> Option<&CaseResult> {
        self.cases.iter().find(|result| result.case == *case)
    }

    /// Adds the content of lines, as if it were measured after everything so far.
    pub fn append(&mut self, text: &str) -> Result<()> {
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let parsed = serde_json::from_str(line)
                .map_err(|error| Failure::Usage(format!("line {number}: {error}")))?;
            match parsed {
                Line::Session(session) => self.begin(session),
                Line::Measurement(measurement) => self.add(*measurement),
            }
        }
        Ok(())
    }

    /// Adds the content of a file of lines.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        let text = fs::read_to_string(path).map_err(Failure::io(format!("reading {}", path.display())))?;
        self.append(&text).map_err(|failure| Failure::Usage(format!("{}: {failure}", path.display())))
    }
}

/// A file of lines that grows as results come.
#[derive(Debug)]
pub struct Lines {
    file: File,
    path: PathBuf,
}

impl Lines {
    /// Appends to a file.
    pub fn append(path: &Path) -> Result<Self> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .map_err(Failure::io(format!("opening {}", path.display())))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Adds the beginning of a run.
    pub fn session(&mut self, session: &Session) -> Result<()> {
        self.write(&Line::Session(session.clone()))
    }

    /// Adds a measurement.
    pub fn measurement(&mut self, measurement: &Measurement) -> Result<()> {
        self.write(&Line::Measurement(Box::new(measurement.clone())))
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        let text = serde_json::to_string(line).map_err(|error| Failure::Usage(error.to_string()))?;
        let written = self.file.write_all(format!("{text}\n").as_bytes());
        written.map_err(Failure::io(format!("writing {}", self.path.display())))
    }
}
