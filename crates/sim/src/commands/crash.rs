//! Power cuts: the database opens as the state after some commit, no older than the newest one
//! acknowledged as durable, with all tables at the same commit; `check` is clean; and it goes on.
//!
//! First all small workloads, exhaustively ([`small`]); then long ones at random, without end ([`long`]).
//! What is counted is a crash image: one distinct choice of what is kept, at one call to the disk, in
//! one workload, that was opened again and judged.

mod long;
mod small;

use crate::report::{Limits, Run, Verdict};
use crate::watchdog::Watchdog;

/// No trial takes so long.
const HANG_SECONDS: u64 = 120;

/// Cuts the power everywhere.
pub fn run(limits: &Limits) -> Verdict {
    let run = Run::new(limits, "crash images");
    let watchdog = Watchdog::start(HANG_SECONDS);
    small::run(&run, &watchdog);
    long::run(&run, &watchdog);
    run.verdict()
}
