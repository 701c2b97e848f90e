//! What a process is asked to measure, and what it answers.

use crate::case::Case;
use crate::measure::Measured;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which part of a workload a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// All of it.
    Whole,
    /// Only loads and closes: the first half of [`Workload::Open`](crate::case::Workload::Open), which needs
    /// two processes.
    Load,
    /// Loads until it is killed: the first half of [`Workload::Recover`](crate::case::Workload::Recover).
    LoadUntilKilled,
}

/// What a child process is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The case.
    pub case: Case,
    /// The peer's name, or that of one of [`RAW_FILES`](crate::workloads::RAW_FILES).
    pub peer: String,
    /// Which repetition.
    pub run: u32,
    /// An empty directory of its own.
    pub dir: PathBuf,
    /// Which part.
    pub part: Part,
}

/// What is known about the peer that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The library's version.
    pub version: String,
    /// Its configuration in words.
    pub configuration: String,
    /// The figures.
    pub measured: Measured,
}
