//! Ascending keys: written, reopened, read in order, scanned.

use super::bench::Bench;
use crate::counters::Io;
use crate::failure::Result;
use crate::measure::Measured;

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    bench.write(&mut measured)?;
    let before = Io::now();
    let store = bench.reopen(&mut measured)?;
    bench.read_in_order(store.as_ref(), &mut measured)?;
    bench.report_reads(before, &mut measured);
    bench.scan(store.as_ref(), &mut measured)?;
    store.close()?;
    Ok(measured)
}
