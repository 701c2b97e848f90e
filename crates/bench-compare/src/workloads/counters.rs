//! Counters: numbers that are incremented at random, many in a transaction, by one thread; then one number, by
//! four threads, each time in a transaction of its own.
//!
//! Who can add to a number that is not read is told to. All others get, add and put, under a lock that their
//! writers share, for between the two nobody else may write. Some of the counters are compared at the end.

use super::bench::Bench;
use crate::failure::{Failure, Result};
use crate::measure::{Measured, Watch};
use crate::peers::{Reader, Store, Writer};
use crate::records::{KeyBuffer, mix};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Counters that are made at a time.
const LOAD_BATCH: u64 = 65_536;
/// Of so many counters it is remembered how often they were incremented.
const COMPARED: u64 = 4096;
/// The threads that increment one of them.
const THREADS: u64 = 4;

/// What a thread adds with.
struct Adder<'s> {
    writer: Box<dyn Writer + 's>,
    reader: Box<dyn Reader + 's>,
    /// Held from the get to the commit, by those that must read.
    lock: &'s Mutex<()>,
}

impl Adder<'_> {
    /// Adds one to each of these counters, in one transaction. They are in order, and may repeat.
    fn add(&mut self, bench: &Bench<'_>, indexes: &[u64], is_blind: bool) -> Result<()> {
        let mut key = KeyBuffer::default();
        if is_blind {
            self.writer.begin()?;
            for index in indexes {
                self.writer.add(bench.records.key(*index, &mut key), 1)?;
            }
            return self.writer.commit();
        }
        let _alone = self.lock.lock();
        self.reader.refresh()?;
        let mut sums = Vec::with_capacity(indexes.len());
        for same in indexes.chunk_by(|a, b| a == b) {
            let old = number(bench, self.reader.as_mut(), same[0])?;
            sums.push((same[0], old + crate::records::to_u64(same.len())));
        }
        self.writer.begin()?;
        for (index, sum) in sums {
            self.writer.put(bench.records.key(index, &mut key), &sum.to_le_bytes())?;
        }
        self.writer.commit()
    }
}

/// What a counter has.
fn number(bench: &Bench<'_>, reader: &mut dyn Reader, index: u64) -> Result<u64> {
    let mut key = KeyBuffer::default();
    let found = reader.get(bench.records.key(index, &mut key))?;
    let bytes = found.and_then(|value| value.try_into().ok());
    bytes.map(u64::from_le_bytes).ok_or(Failure::Unexpected { peer: bench.peer.about().name, index })
}

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    let store = bench.open(true, false)?;
    load(bench, store.as_ref())?;
    store.settle()?;
    let is_blind = is_blind(bench, store.as_ref())?;
    let limit = Duration::from_secs_f64(bench.case.seconds);
    let mut wanted = many(bench, store.as_ref(), limit, is_blind, &mut measured)?;
    wanted[0] += one(bench, store.as_ref(), limit / 2, is_blind, &mut measured)?;
    let mut reader = store.reader()?;
    reader.refresh()?;
    for (index, wanted) in (0..bench.case.records).zip(wanted) {
        if number(bench, reader.as_mut(), index)? != wanted {
            return Err(Failure::Unexpected { peer: bench.peer.about().name, index });
        }
    }
    drop(reader);
    store.sync()?;
    store.close()?;
    measured.set_count("file_bytes", bench.peer.file_bytes(bench.dir));
    Ok(measured)
}

/// Makes all counters.
fn load(bench: &Bench<'_>, store: &dyn Store) -> Result<()> {
    let (mut writer, mut key) = (store.writer()?, KeyBuffer::default());
    for first in (0..bench.case.records).step_by(LOAD_BATCH as usize) {
        writer.begin()?;
        for index in first..bench.case.records.min(first + LOAD_BATCH) {
            writer.put(bench.records.key(index, &mut key), &[0; 8])?;
        }
        writer.commit()?;
    }
    Ok(())
}

/// Whether the peer can add without reading.
fn is_blind(bench: &Bench<'_>, store: &dyn Store) -> Result<bool> {
    let mut writer = store.writer()?;
    writer.begin()?;
    let is_blind = writer.add(bench.records.key(0, &mut KeyBuffer::default()), 0)?;
    writer.commit()?;
    Ok(is_blind)
}

/// Increments counters at random. Gives how often each of the first ones was.
fn many(
    bench: &Bench<'_>,
    store: &dyn Store,
    limit: Duration,
    is_blind: bool,
    into: &mut Measured,
) -> Result<Vec<u64>> {
    let lock = Mutex::new(());
    let mut adder = Adder { writer: store.writer()?, reader: store.reader()?, lock: &lock };
    let mut wanted = vec![0; bench.case.records.min(COMPARED) as usize];
    let (mut done, mut indexes) = (0, Vec::new());
    let (began, watch) = (Instant::now(), Watch::start(store));
    while began.elapsed() < limit {
        indexes.clear();
        indexes.extend((done..done + bench.case.batch.max(1)).map(|n| mix(n) % bench.case.records));
        indexes.sort_unstable();
        adder.add(bench, &indexes, is_blind)?;
        done += crate::records::to_u64(indexes.len());
        for index in &indexes {
            if let Some(wanted) = wanted.get_mut(*index as usize) {
                *wanted += 1;
            }
        }
    }
    into.set_timed("adds", done, watch.elapsed());
    into.set_count("records", bench.case.records);
    Ok(wanted)
}

/// Increments the first counter from several threads. Gives how often.
fn one(
    bench: &Bench<'_>,
    store: &dyn Store,
    limit: Duration,
    is_blind: bool,
    into: &mut Measured,
) -> Result<u64> {
    let (lock, began) = (Mutex::new(()), Instant::now());
    let work = || -> Result<u64> {
        let mut adder = Adder { writer: store.writer()?, reader: store.reader()?, lock: &lock };
        let mut done = 0;
        while began.elapsed() < limit {
            adder.add(bench, &[0], is_blind)?;
            done += 1;
        }
        Ok(done)
    };
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .sum::<Result<u64>>()
    })?;
    into.set_timed("one_adds", done, began.elapsed());
    Ok(done)
}
