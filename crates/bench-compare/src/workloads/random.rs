//! Scattered keys: inserted batch by batch, reopened, got at random.

use super::{Case, bench::Bench};
use crate::failure::{Failure, Result};
use crate::measure::Measured;
use crate::peers::{Peer, Store};
use crate::records::{KeyBuffer, Shuffle, to_u64};
use std::path::Path;
use std::time::Instant;

/// Keys in one call of `get_many`.
const MANY: usize = 100;

/// Runs the workload.
pub fn run(peer: &dyn Peer, case: &Case, dir: &Path) -> Result<Measured> {
    let bench = Bench::new(peer, case, dir);
    let mut measured = Measured::default();
    bench.write(&mut measured)?;
    let store = bench.reopen(&mut measured)?;
    bench.read_present(store.as_ref(), &mut measured)?;
    bench.read_absent(store.as_ref(), &mut measured)?;
    read_many(&bench, store.as_ref(), &mut measured)?;
    bench.scan(store.as_ref(), &mut measured)?;
    store.close()?;
    Ok(measured)
}

/// Gets the same records as single gets do, a hundred in a call, from peers that have such a call.
fn read_many(bench: &Bench<'_>, store: &dyn Store, into: &mut Measured) -> Result<()> {
    let order = Shuffle::new(bench.case.records);
    let calls = bench.gets() / to_u64(MANY);
    let mut buffers = [KeyBuffer::default(); MANY];
    let mut indices = [0u64; MANY];
    let mut reader = store.reader()?;
    let mut position = 0;
    let began = Instant::now();
    for _ in 0..calls {
        for (index, buffer) in indices.iter_mut().zip(&mut buffers) {
            *index = order.at(position);
            bench.records.key(*index, buffer);
            position += 1;
        }
        let keys: [&[u8]; MANY] = std::array::from_fn(|at| buffers[at].bytes());
        let (mut wrong, mut answers): (Option<Failure>, usize) = (None, 0);
        let supported = reader.get_many(&keys, &mut |at, got| {
            let expected = bench.records.value(indices[at]);
            if got != Some(expected) {
                wrong = Some(bench.wrong(indices[at], expected, got));
            }
            answers += 1;
        })?;
        if !supported {
            return Ok(());
        }
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        if answers != MANY {
            let text = format!("{answers} answers for {MANY} keys");
            return Err(Failure::peer(bench.peer.about().name, "get_many", &text));
        }
    }
    if calls > 0 {
        into.set_timed("many_gets", position, began.elapsed());
        if let (Some(many), Some(single)) = (into.get("many_gets_per_s"), into.get("present_gets_per_s")) {
            into.set("many_speedup", many / single);
        }
    }
    Ok(())
}
