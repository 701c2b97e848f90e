//! Reading beside writing: one thread commits transactions of random updates, another gets.

use super::{Case, bench::Bench};
use crate::failure::{Failure, Result};
use crate::measure::{Measured, latency};
use crate::peers::{Peer, Store};
use crate::records::{KeyBuffer, mix, to_u64};
use hdrhistogram::Histogram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Records a transaction of the load.
const LOAD_BATCH: u64 = 10_000;

/// What one side did.
struct Side {
    operations: u64,
    took: Duration,
    times: Histogram<u64>,
}

/// Runs the workload.
pub fn run(peer: &dyn Peer, case: &Case, dir: &Path) -> Result<Measured> {
    let bench = Bench::new(peer, case, dir);
    let store = bench.open(true, false)?;
    load(&bench, store.as_ref())?;
    store.sync()?;
    store.settle()?;

    let stop = AtomicBool::new(false);
    let (reading, writing) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let result = update(&bench, store.as_ref(), &stop);
            stop.store(true, Ordering::Relaxed);
            result
        });
        let reading = get(&bench, store.as_ref(), &stop);
        stop.store(true, Ordering::Relaxed);
        let writing = match writer.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (reading, writing)
    });
    let (reading, writing) = (reading?, writing?);

    let mut measured = Measured::default();
    measured.set_timed("gets", reading.operations, reading.took);
    measured.set_timed("updates", writing.operations, writing.took);
    latency::report(&reading.times, "get", &mut measured);
    latency::report(&writing.times, "commit", &mut measured);
    store.close()?;
    Ok(measured)
}

fn load(bench: &Bench<'_>, store: &dyn Store) -> Result<()> {
    let mut writer = store.writer()?;
    let (mut key, mut value) = (KeyBuffer::default(), Vec::new());
    let mut start = 0;
    while start < bench.case.records {
        let end = bench.case.records.min(start + LOAD_BATCH);
        writer.begin()?;
        for index in start..end {
            bench.records.versioned_value(index, 0, &mut value);
            writer.put(bench.records.key(index, &mut key), &value)?;
        }
        writer.commit()?;
        start = end;
    }
    Ok(())
}

/// Commits transactions until told to stop.
fn update(bench: &Bench<'_>, store: &dyn Store, stop: &AtomicBool) -> Result<Side> {
    let mut writer = store.writer()?;
    let (mut key, mut value) = (KeyBuffer::default(), Vec::new());
    let mut side = Side { operations: 0, took: Duration::ZERO, times: latency::histogram() };
    let began = Instant::now();
    let mut before = began;
    while !stop.load(Ordering::Relaxed) {
        writer.begin()?;
        for _ in 0..bench.case.batch {
            side.operations += 1;
            let index = mix(side.operations) % bench.case.records;
            bench.records.versioned_value(index, side.operations, &mut value);
            writer.put(bench.records.key(index, &mut key), &value)?;
        }
        writer.commit()?;
        let now = Instant::now();
        latency::record(&mut side.times, now - before);
        before = now;
    }
    side.took = before - began;
    Ok(side)
}

/// Gets records at random, each at its newest, until the time is over.
fn get(bench: &Bench<'_>, store: &dyn Store, stop: &AtomicBool) -> Result<Side> {
    let mut reader = store.reader()?;
    let mut key = KeyBuffer::default();
    let mut side = Side { operations: 0, took: Duration::ZERO, times: latency::histogram() };
    let limit = Duration::from_secs_f64(bench.case.seconds);
    let began = Instant::now();
    let mut before = began;
    while before - began < limit && !stop.load(Ordering::Relaxed) {
        side.operations += 1;
        let index = mix(!side.operations) % bench.case.records;
        reader.refresh()?;
        let got = reader.get(bench.records.key(index, &mut key))?;
        if !got.is_some_and(|value| bench.records.is_versioned_value(index, value)) {
            let length = got.map_or_else(|| "nothing".to_owned(), |v| format!("{} bytes", to_u64(v.len())));
            return Err(Failure::WrongValue {
                peer: bench.peer.about().name,
                index,
                expected: "some version of it, whole".to_owned(),
                got: length,
            });
        }
        let now = Instant::now();
        latency::record(&mut side.times, now - before);
        before = now;
    }
    side.took = before - began;
    Ok(side)
}
