//! The workloads. Each is a function that runs in a process of its own and measures one peer.

mod bench;
mod durable;
mod mixed;
mod open;
mod random;
mod sequential;

#[cfg(test)]
mod tests;

pub use durable::RAW_FILES;

use crate::failure::{Failure, Result};
use crate::measure::{Measured, count, counters};
use crate::peers;
use crate::records::Shape;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A workload by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Ascending 8-byte keys, small values, 1,000 transactions; reopened, got in order, scanned.
    Sequential,
    /// The same with values of 4,096 bytes.
    Large,
    /// Scattered 8-byte keys with 8-byte values, batch by batch; gets of present and absent keys.
    Random,
    /// Scattered 16-byte keys with values of 44 and 1,524 bytes in batches of 100,000.
    Ordinary16,
    /// Text keys of 8 to 40 bytes with values of 20 to 200 bytes.
    Text,
    /// One record a transaction, not synced.
    Small,
    /// A thread that gets beside a thread that commits transactions of 100 updates.
    Mixed,
    /// One record a transaction, synced, from 1 and 4 threads; beside a file appended and synced.
    Durable,
    /// The time to open a database and get one record.
    Open,
}

/// A workload with its sizes: what is compared between peers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Which.
    pub workload: Workload,
    /// Records loaded.
    pub records: u64,
    /// Records a transaction.
    pub batch: u64,
    /// Bytes of a value; ignored by the text workload.
    pub value_bytes: usize,
    /// Random gets of each kind, at most.
    pub gets: u64,
    /// How long what runs for a time runs.
    pub seconds: f64,
    /// Threads that commit, in the durable workload.
    pub threads: u64,
    /// Memory for the peer.
    pub budget_bytes: u64,
    /// Let peers finish their background work, outside the times, before they are read from.
    pub settle: bool,
}

impl Case {
    /// The shape of its records.
    pub fn shape(&self) -> Shape {
        match self.workload {
            Workload::Sequential | Workload::Large => Shape::Ascending,
            Workload::Ordinary16 => Shape::Random16,
            Workload::Text => Shape::Text,
            _ => Shape::Random8,
        }
    }

    /// The case in words.
    pub fn title(&self) -> String {
        let (records, value) = (grouped(self.records), self.value_bytes);
        let batch = match self.batch {
            1 => "one a transaction".to_owned(),
            batch => format!("{} a transaction", grouped(batch)),
        };
        match self.workload {
            Workload::Sequential => {
                format!("sequential: {records} records of 8 + {value} bytes, {batch}")
            }
            Workload::Large => format!("large: {records} records of 8 + {value} bytes, {batch}"),
            Workload::Random => format!("random: {records} records of 8 + {value} bytes, {batch}"),
            Workload::Ordinary16 => {
                format!("ordinary16: {records} records of 16 + {value} bytes, {batch}")
            }
            Workload::Text => {
                format!("text: {records} records of 8…40 + 20…200 bytes, {batch}")
            }
            Workload::Small => format!("small: {records} records of 8 + {value} bytes, {batch}"),
            Workload::Mixed => format!(
                "mixed: transactions of {} updates beside gets, {records} records of 8 + {value} bytes, {} s",
                grouped(self.batch),
                self.seconds
            ),
            Workload::Durable => format!(
                "durable: synced commits of one record of 8 + {value} bytes, {} thread{}, {} s",
                self.threads,
                if self.threads == 1 { "" } else { "s" },
                self.seconds
            ),
            Workload::Open => format!("open: {records} records of 8 + {value} bytes"),
        }
    }
}

/// A number with its digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What a child process is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The case.
    pub case: Case,
    /// The peer's name, or that of one of [`RAW_FILES`].
    pub peer: String,
    /// Which repetition.
    pub run: u32,
    /// An empty directory of its own.
    pub dir: PathBuf,
    /// Only load and close: the first half of [`Workload::Open`], which needs two processes.
    pub load_only: bool,
}

/// What is known of the peer that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The library's version.
    pub version: String,
    /// Its configuration in words.
    pub configuration: String,
    /// The figures.
    pub measured: Measured,
}

/// Does a job in this process.
pub fn run(job: &Job) -> Result<Outcome> {
    if let Some(raw) = RAW_FILES.iter().find(|raw| raw.name == job.peer) {
        return durable::raw_file(raw, job);
    }
    let peer = peers::all()
        .into_iter()
        .find(|(about, _)| about.name == job.peer)
        .and_then(|(_, peer)| peer)
        .ok_or_else(|| Failure::Usage(format!("there is no peer {:?} here", job.peer)))?;
    let peer = peer.as_ref();
    let mut measured = match job.case.workload {
        Workload::Sequential | Workload::Large => sequential::run(peer, &job.case, &job.dir),
        Workload::Random | Workload::Ordinary16 | Workload::Text | Workload::Small => {
            random::run(peer, &job.case, &job.dir)
        }
        Workload::Mixed => mixed::run(peer, &job.case, &job.dir),
        Workload::Durable => durable::run(peer, &job.case, &job.dir),
        Workload::Open => open::run(peer, job),
    }?;
    let peak = count(counters::peak_rss_bytes());
    measured.set("peak_rss_bytes", peak);
    measured.set("peak_rss_per_budget", peak / count(job.case.budget_bytes));
    Ok(Outcome { version: peer.version(), configuration: peer.configuration(), measured })
}
