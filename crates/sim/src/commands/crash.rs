//! Power cuts: the database opens as the state after some commit, no older than the newest one
//! acknowledged as durable, with all tables at the same commit; `check` is clean; and it goes on.
//!
//! First all small workloads, exhaustively (`small`); then long ones at random, without end (`long`).
//! What is counted is a crash image: one distinct choice of what is kept, at one call to the disk, in
//! one workload, that was opened again and judged.

mod bulk;
mod long;
mod small;

use crate::report::{Limits, Run, Verdict};
use crate::watchdog::Watchdog;

/// No trial takes so long.
const HANG_SECONDS: u64 = 120;

/// The limits, and which workloads.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Arguments {
    #[command(flatten)]
    limits: Limits,
    /// Only these workloads.
    #[arg(long, value_enum)]
    only: Option<Workloads>,
}

/// Which workloads to try.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
pub enum Workloads {
    /// All of up to three transactions.
    Small,
    /// Long ones, at random; one in eight is a bulk.
    Long,
    /// Long ones with so much waiting for the log that its segments are reserved.
    Bulk,
}

/// Cuts the power everywhere.
pub fn run(arguments: &Arguments) -> Verdict {
    let run = Run::new(&arguments.limits, "crash images");
    let watchdog = Watchdog::start(HANG_SECONDS);
    if matches!(arguments.only, None | Some(Workloads::Small)) {
        small::run(&run, &watchdog);
    }
    if arguments.only != Some(Workloads::Small) {
        long::run(&run, &watchdog, arguments.only == Some(Workloads::Bulk));
    }
    run.verdict()
}
