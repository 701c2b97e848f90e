//! The workloads. Each is a function that runs in a process of its own and measures one peer.

mod bench;
mod case;
mod cedalss;
mod delete;
mod durable;
mod lookup;
mod mixed;
mod open;
mod pairs;
mod recover;
mod scan;
mod versions;
mod ycsb;
mod zipf;

#[cfg(test)]
mod tests;

pub use case::{Case, Workload, grouped};
pub use durable::RAW_FILES;

use crate::failure::{Failure, Result};
use crate::measure::Measured;
use crate::peers::{self, Peer};
use bench::Bench;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which part of a workload a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// All of it.
    Whole,
    /// Only loads and closes: the first half of [`Workload::Open`], which needs two processes.
    Load,
    /// Loads until it is killed: the first half of [`Workload::Recover`].
    LoadUntilKilled,
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
    /// Which part.
    pub part: Part,
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
    let measured = measure(peer.as_ref(), job)?;
    Ok(Outcome { version: peer.version(), configuration: peer.configuration(), measured })
}

fn measure(peer: &dyn Peer, job: &Job) -> Result<Measured> {
    let bench = &mut Bench::new(peer, &job.case, &job.dir);
    let mut measured = match (job.case.workload, job.part) {
        (Workload::Recover, Part::LoadUntilKilled) => match recover::load(bench)? {},
        (Workload::Recover, _) => recover::run(bench, job),
        (_, Part::Load) => open::load(bench),
        (Workload::Open, _) => open::run(bench, job),
        (Workload::Cedalss, _) => cedalss::run(bench),
        (Workload::Lookup | Workload::Huge | Workload::Text | Workload::Small, _) => lookup::run(bench),
        (Workload::Pairs, _) => pairs::run(bench),
        (Workload::Ycsb, _) => ycsb::run(bench),
        (Workload::Mixed, _) => mixed::run(bench),
        (Workload::Durable, _) => durable::run(bench),
        (Workload::Scan, _) => scan::run(bench),
        (Workload::Delete, _) => delete::run(bench),
    }?;
    bench.report_memory(&mut measured);
    Ok(measured)
}
