//! Power cuts. Afterwards the database opens in the state after some commit, with all tables at the same
//! commit. That commit is no older than the newest one acknowledged as durable. `check` is clean, and the
//! database can be used on.
//!
//! First all small workloads are tried, exhaustively (`small`). Then long ones are tried at random, without
//! end (`long`). What is counted are crash images: a choice of what is kept, at a call to the disk, in a
//! workload. Each was opened again and judged.

mod bulk;
mod long;
mod small;

use crate::report::{Limits, Run, Verdict};
use crate::watchdog::Watchdog;

/// No trial takes this long.
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
    /// All workloads of up to three transactions.
    Small,
    /// Long random ones. One in eight is a bulk.
    Long,
    /// Long ones in which so much waits for the log that its segments are reserved.
    Bulk,
}

/// Cuts the power at all places.
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
