//! Ascending keys: written, reopened, got in order, scanned.

use super::{Case, bench::Bench};
use crate::failure::Result;
use crate::measure::Measured;
use crate::peers::Peer;
use std::path::Path;

/// Runs the workload.
pub fn run(peer: &dyn Peer, case: &Case, dir: &Path) -> Result<Measured> {
    let bench = Bench::new(peer, case, dir);
    let mut measured = Measured::default();
    bench.write(&mut measured)?;
    let store = bench.reopen(&mut measured)?;
    bench.read_in_order(store.as_ref(), &mut measured)?;
    bench.scan(store.as_ref(), &mut measured)?;
    store.close()?;
    Ok(measured)
}
