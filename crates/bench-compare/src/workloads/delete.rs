//! Half of the records are removed at random. Then the size of the rest and its gets are measured.

use super::bench::Bench;
use crate::failure::{Failure, Result};
use crate::measure::{Measured, Watch, count};
use crate::peers::Store;
use crate::records::{KeyBuffer, Shuffle};

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    bench.write(&mut measured)?;
    let before = count(bench.peer.file_bytes(bench.dir));
    // The first half of this order is removed.
    let order = Shuffle::new(bench.loaded);

    let store = bench.open(false, false)?;
    let watch = Watch::start(store.as_ref());
    let removed = remove(bench, store.as_ref(), &order)?;
    let took = watch.elapsed();
    store.sync()?;
    store.close()?;
    let (half, after) = (bench.loaded / 2, count(bench.peer.file_bytes(bench.dir)));
    measured.set_timed("removes", removed, took);
    measured.note_stopped("removes", removed, half);
    measured.set_count("removed", removed);
    measured.set("after_bytes", after);
    measured.set("after_per_before", after / before);

    let store = bench.reopen(&mut measured)?;
    let kept = bench.loaded - removed;
    let gets = bench.case.gets;
    bench.time_gets(
        store.as_ref(),
        "kept_gets",
        gets.min(kept),
        |at| order.at(removed + at),
        &mut measured,
    )?;
    time_removed_gets(bench, store.as_ref(), &order, gets.min(removed), &mut measured)?;
    store.settle()?;
    store.close()?;
    let settled = count(bench.peer.file_bytes(bench.dir));
    measured.set("settled_bytes", settled);
    measured.set("settled_per_before", settled / before);
    Ok(measured)
}

/// Removes the first half of the order, or less if the phase is over.
fn remove(bench: &Bench<'_>, store: &dyn Store, order: &Shuffle) -> Result<u64> {
    let mut buffer = KeyBuffer::default();
    let mut writer = store.writer()?;
    let deadline = bench.deadline();
    let (half, mut removed) = (bench.loaded / 2, 0);
    while removed < half && !deadline.passed() {
        let end = half.min(removed + bench.case.batch);
        writer.begin()?;
        for position in removed..end {
            writer.remove(bench.records.key(order.at(position), &mut buffer))?;
        }
        writer.commit()?;
        removed = end;
    }
    Ok(removed)
}

/// Gets removed records. None of them may be found.
fn time_removed_gets(
    bench: &Bench<'_>,
    store: &dyn Store,
    order: &Shuffle,
    total: u64,
    into: &mut Measured,
) -> Result<()> {
    let mut buffer = KeyBuffer::default();
    let mut reader = store.reader()?;
    let deadline = bench.deadline();
    let watch = Watch::start(store);
    let mut done = 0;
    while done < total && (!done.is_multiple_of(super::bench::STRIDE) || !deadline.passed()) {
        let index = order.at(done);
        if reader.get(bench.records.key(index, &mut buffer))?.is_some() {
            return Err(Failure::Unexpected { peer: bench.peer.about().name, index });
        }
        done += 1;
    }
    into.set_timed("removed_gets", done, watch.elapsed());
    into.note_stopped("removed_gets", done, total);
    Ok(())
}
