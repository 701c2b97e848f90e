//! Scattered keys: inserted batch by batch, then reopened and read at random.

use super::bench::Bench;
use crate::case::Workload;
use crate::counters::Io;
use crate::failure::Result;
use crate::measure::{Measured, Watch};
use crate::peers::Store;
use crate::records::{Shuffle, to_u64};

/// Keys in one call of `get_many`.
const MANY: usize = 100;

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    bench.write(&mut measured)?;
    let before = Io::now();
    let store = bench.reopen(&mut measured)?;
    bench.read_present(store.as_ref(), &mut measured)?;
    bench.report_reads(before, &mut measured);
    bench.read_absent(store.as_ref(), &mut measured)?;
    if bench.case.workload == Workload::Huge {
        let same = bench.loaded / 2;
        bench.time_gets(store.as_ref(), "same_gets", bench.gets(), |_| same, &mut measured)?;
    }
    read_many(bench, store.as_ref(), &mut measured)?;
    bench.scan(store.as_ref(), &mut measured)?;
    store.close()?;
    Ok(measured)
}

/// Gets the same records as the single gets, a hundred per call, from peers that have such a call.
fn read_many(bench: &Bench<'_>, store: &dyn Store, into: &mut Measured) -> Result<()> {
    let order = Shuffle::new(bench.loaded);
    let calls = bench.gets() / to_u64(MANY);
    let mut reader = store.reader()?;
    let deadline = bench.deadline();
    let watch = Watch::start(store);
    let mut done = 0;
    while done < calls && (done == 0 || !deadline.passed()) {
        let first = done * to_u64(MANY);
        let indices: [u64; MANY] = std::array::from_fn(|at| order.at(first + to_u64(at)));
        if !bench.check_many(&indices, |keys, each| reader.get_many(keys, each))? {
            return Ok(());
        }
        done += 1;
    }
    if done > 0 {
        into.set_timed("many_gets", done * to_u64(MANY), watch.elapsed());
        into.note_stopped("many_gets", done * to_u64(MANY), calls * to_u64(MANY));
        if let (Some(many), Some(single)) = (into.get("many_gets_per_s"), into.get("present_gets_per_s")) {
            into.set("many_speedup", many / single);
        }
    }
    Ok(())
}
