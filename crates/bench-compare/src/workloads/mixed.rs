//! Reading beside writing: one thread commits transactions of random updates while another one gets.

use super::bench::Bench;
use super::versions::{self, Buffers};
use crate::failure::Result;
use crate::measure::{Measured, latency};
use crate::peers::Store;
use crate::records::mix;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What one side did.
struct Side {
    operations: u64,
    took: Duration,
    times: Histogram<u64>,
}

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    let store = bench.open(true, false)?;
    versions::load(bench, store.as_ref(), &mut measured)?;
    store.settle()?;

    let (bench, stop) = (&*bench, AtomicBool::new(false));
    let (reading, writing) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let result = update(bench, store.as_ref(), &stop);
            stop.store(true, Ordering::Relaxed);
            result
        });
        let reading = get(bench, store.as_ref(), &stop);
        stop.store(true, Ordering::Relaxed);
        let writing = match writer.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (reading, writing)
    });
    let (reading, writing) = (reading?, writing?);

    measured.set_timed("gets", reading.operations, reading.took);
    measured.set_timed("updates", writing.operations, writing.took);
    latency::report(&reading.times, "get", &mut measured);
    latency::report(&writing.times, "commit", &mut measured);
    store.close()?;
    Ok(measured)
}

/// Commits transactions until it is told to stop.
fn update(bench: &Bench<'_>, store: &dyn Store, stop: &AtomicBool) -> Result<Side> {
    let mut writer = store.writer()?;
    let mut buffers = Buffers::default();
    let mut side = Side { operations: 0, took: Duration::ZERO, times: latency::histogram() };
    let began = Instant::now();
    let mut before = began;
    while !stop.load(Ordering::Relaxed) {
        writer.begin()?;
        for _ in 0..bench.case.batch {
            side.operations += 1;
            let index = mix(side.operations) % bench.loaded;
            versions::put(bench, writer.as_mut(), index, side.operations, &mut buffers)?;
        }
        writer.commit()?;
        let now = Instant::now();
        latency::record(&mut side.times, now - before);
        before = now;
    }
    side.took = before - began;
    Ok(side)
}

/// Gets records at random, each in its newest version, until the time is over.
fn get(bench: &Bench<'_>, store: &dyn Store, stop: &AtomicBool) -> Result<Side> {
    let mut reader = store.reader()?;
    let mut buffers = Buffers::default();
    let mut side = Side { operations: 0, took: Duration::ZERO, times: latency::histogram() };
    let limit = Duration::from_secs_f64(bench.case.seconds);
    let began = Instant::now();
    let mut before = began;
    while before - began < limit && !stop.load(Ordering::Relaxed) {
        side.operations += 1;
        reader.refresh()?;
        versions::get(bench, reader.as_mut(), mix(!side.operations) % bench.loaded, &mut buffers)?;
        let now = Instant::now();
        latency::record(&mut side.times, now - before);
        before = now;
    }
    side.took = before - began;
    Ok(side)
}
