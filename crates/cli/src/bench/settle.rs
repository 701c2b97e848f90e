//! Waiting for background merging.

use std::time::Instant;

use azekura::Db;

use super::args::Args;
use crate::failure::Outcome;

/// Waits until background merging has nothing left to do, if `args` asks for that. Returns the seconds.
pub fn settle_if_asked(args: &Args, db: &Db) -> Outcome<Option<f64>> {
    if !args.settles() {
        return Ok(None);
    }
    let started = Instant::now();
    db.compact()?;
    Ok(Some(started.elapsed().as_secs_f64()))
}
