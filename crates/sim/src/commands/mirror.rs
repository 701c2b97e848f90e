//! Mirrors: whatever is cut off, a mirror is its source after some commit, no older than what a step has
//! acknowledged, and no newer than what the source keeps; mirroring goes on from there, to the end.
//!
//! A script runs while a mirror goes on with it, is closed and opened again, and is read. The mirror is on
//! the disk of its source, which loses power with both on it, or on a disk of its own, which does so alone.
//! It reads its source as a file, or through a pipe, which is cut now and then. Or durable commits wait for
//! it (`waited`): then what has returned is in it.

mod cuts;
mod going;
mod kept;
#[cfg(test)]
mod tests;
mod waited;

use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::watchdog::Watchdog;
use std::sync::atomic::{AtomicU64, Ordering};

const HANG_SECONDS: u64 = 120;
/// One in so many scripts is short, and cut at every call.
const EVERYWHERE_PART: u64 = 8;

/// Tries mirrors.
pub fn run(limits: &Limits) -> Verdict {
    let run = Run::new(limits, "mirrors");
    let watchdog = Watchdog::start(HANG_SECONDS);
    let everywhere = AtomicU64::new(0);
    run.on_all_processors(|n| {
        watchdog.at(format!("mirrors {n}"));
        let mut rng = Rng::of(run.seed, n);
        match n % EVERYWHERE_PART {
            1 => {
                let is_whole = cuts::cut_everywhere(&run, &mut rng, n);
                everywhere.fetch_add(u64::from(is_whole), Ordering::Relaxed);
            }
            _ => cuts::cut_off(&run, &mut rng, n),
        }
    });
    run.note(format!("{} short scripts were cut at every call", everywhere.into_inner()));
    let moved_bytes = kept::MOVED_BYTES.load(Ordering::Relaxed);
    run.note(format!("{moved_bytes} bytes that had moved were copied within mirrors"));
    run.verdict()
}
