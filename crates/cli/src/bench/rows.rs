//! The rows of a job, one for each value size.

use serde::Serialize;

use super::args::Args;
use super::place::BenchPlace;
use super::report;
use crate::failure::Outcome;
use crate::output::Output;

/// Runs a job for each value size, and prints its row as JSON, or for people by `print`. `head` prints what
/// comes before all rows for people.
pub fn run<R: Serialize>(
    args: &Args,
    place: &BenchPlace,
    head: impl FnOnce(&mut Output) -> Outcome,
    mut job: impl FnMut(u64) -> Outcome<R>,
    mut print: impl FnMut(&R, &mut Output) -> Outcome,
) -> Outcome {
    let mut output = Output::new();
    if !args.json {
        report::print_heading(args, place, &mut output)?;
        head(&mut output)?;
    }
    for &value_bytes in args.value_sizes() {
        place.clear()?;
        let row = job(value_bytes)?;
        if args.json {
            output.json(&row)?;
        } else {
            print(&row, &mut output)?;
        }
        output.flush()?;
    }
    if !args.json {
        report::print_kept(place, &mut output)?;
    }
    output.finish()
}
