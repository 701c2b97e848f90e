//! Counters: numbers that are incremented at random, many in a transaction, by one thread, and got; then one
//! number, by four threads, each time in a transaction of its own.
//!
//! Each peer adds as its users do. Azekura and RocksDB merge a number into a key without reading it. SQLite
//! does it in one statement. LMDB and redb get and put in the transaction, which is the only one that writes.
//! All others get before the transaction, add and put, under a lock that their writers share, for between the
//! two nobody else may write. SQLite's writers share such a lock, too: by themselves they would wait for each
//! other asleep, and that would be measured. What is put off until a counter is read or merged is paid by the
//! gets, or by whoever merges: adds are counted until they are synced. Each counter that is got is compared.

use super::bench::{Bench, STRIDE};
use crate::counters::Io;
use crate::failure::{Failure, Result, abbreviated};
use crate::measure::{LOAD, Measured, Watch, count};
use crate::peers::{Reader, Store, Writer};
use crate::records::{KeyBuffer, Shuffle, mix, to_u64};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Counters that are made in a transaction.
const LOAD_BATCH: u64 = 10_000;
/// The threads that increment one counter.
const THREADS: u64 = 4;

/// What a thread adds with.
struct Adder<'s> {
    bench: &'s Bench<'s>,
    writer: Box<dyn Writer + 's>,
    /// Of a peer that has no call to add. A reader that is not used would hold what others replace.
    reader: Option<Box<dyn Reader + 's>>,
    /// Held from the get to the commit, and throughout by writers that would sleep.
    lock: &'s Mutex<()>,
}

impl<'s> Adder<'s> {
    fn new(bench: &'s Bench<'s>, store: &'s dyn Store, adds: bool, lock: &'s Mutex<()>) -> Result<Self> {
        let reader = if adds { None } else { Some(store.reader()?) };
        Ok(Self { bench, writer: store.writer()?, reader, lock })
    }

    /// Adds one to each of these counters, in one transaction. They are in order, and may repeat.
    fn add(&mut self, indexes: &[u64]) -> Result<()> {
        let Self { bench, writer, reader, lock } = self;
        let mut key = KeyBuffer::default();
        let locked = || lock.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(reader) = reader else {
            let _alone = bench.peer.about().sleeps.then(locked);
            writer.begin()?;
            for index in indexes {
                writer.add(bench.records.key(*index, &mut key), 1)?;
            }
            return writer.commit();
        };
        let mut sums = Vec::with_capacity(indexes.len());
        let _alone = locked();
        reader.refresh()?;
        for same in indexes.chunk_by(|a, b| a == b) {
            let old = number(bench, reader.as_mut(), same[0])?;
            sums.push((same[0], old + to_u64(same.len())));
        }
        writer.begin()?;
        for (index, sum) in sums {
            writer.put(bench.records.key(index, &mut key), &sum.to_le_bytes())?;
        }
        writer.commit()
    }
}

/// What a counter has.
fn number(bench: &Bench<'_>, reader: &mut dyn Reader, index: u64) -> Result<u64> {
    let mut key = KeyBuffer::default();
    let found = reader.get(bench.records.key(index, &mut key))?;
    let number = found.and_then(|value| value.try_into().ok()).map(u64::from_le_bytes);
    number.ok_or_else(|| wrong(bench, index, "a number".to_owned(), abbreviated(found)))
}

fn expect(bench: &Bench<'_>, reader: &mut dyn Reader, index: u64, due: u64) -> Result<()> {
    match number(bench, reader, index)? {
        got if got == due => Ok(()),
        got => Err(wrong(bench, index, due.to_string(), got.to_string())),
    }
}

fn wrong(bench: &Bench<'_>, index: u64, expected: String, got: String) -> Failure {
    Failure::WrongValue { peer: bench.peer.about().name, index, expected, got }
}

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    if bench.case.value_bytes != 8 {
        return Err(Failure::Usage("counters have values of 8 bytes".to_owned()));
    }
    let mut measured = Measured::default();
    let store = bench.open(true, false)?;
    load(bench, store.as_ref(), &mut measured)?;
    store.settle()?;
    let limit = Duration::from_secs_f64(bench.case.seconds);
    let adds = adds_by_call(bench, store.as_ref())?;
    let done = add_to_many(bench, store.as_ref(), limit, adds, &mut measured)?;
    let due = get_many(bench, store.as_ref(), done, &mut measured)?;
    let more = add_to_one(bench, store.as_ref(), limit / 2, adds, &mut measured)?;
    let mut reader = store.reader()?;
    reader.refresh()?;
    expect(bench, reader.as_mut(), 0, due + more)?;
    drop(reader);
    store.sync()?;
    store.close()?;
    measured.set_count("file_bytes", bench.peer.file_bytes(bench.dir));
    Ok(measured)
}

/// Makes counters, until all are there or the phase is over.
fn load(bench: &mut Bench<'_>, store: &dyn Store, into: &mut Measured) -> Result<()> {
    let (mut writer, mut key) = (store.writer()?, KeyBuffer::default());
    let (deadline, watch, mut made) = (bench.deadline(), Watch::start(store), 0);
    while made < bench.case.records && (made == 0 || !deadline.passed()) {
        let end = bench.case.records.min(made + LOAD_BATCH);
        writer.begin()?;
        for index in made..end {
            writer.put(bench.records.key(index, &mut key), &[0; 8])?;
        }
        writer.commit()?;
        made = end;
    }
    drop(writer);
    store.sync()?;
    into.set_timed("write", made, watch.elapsed());
    into.note_stopped(LOAD, made, bench.case.records);
    into.set_count("records", made);
    bench.loaded = made;
    Ok(())
}

/// Whether the peer adds by a call of its own.
fn adds_by_call(bench: &Bench<'_>, store: &dyn Store) -> Result<bool> {
    let mut writer = store.writer()?;
    writer.begin()?;
    let adds = writer.add(bench.records.key(0, &mut KeyBuffer::default()), 0)?;
    writer.commit()?;
    Ok(adds)
}

/// The counter that the increment of this number goes to.
fn counter(bench: &Bench<'_>, increment: u64) -> u64 {
    mix(increment) % bench.loaded
}

/// Increments counters at random, for some time. Gives how many increments there were.
fn add_to_many(
    bench: &Bench<'_>,
    store: &dyn Store,
    limit: Duration,
    adds: bool,
    into: &mut Measured,
) -> Result<u64> {
    let lock = Mutex::new(());
    let mut adder = Adder::new(bench, store, adds, &lock)?;
    let (mut done, mut indexes, before) = (0, Vec::new(), Io::now());
    let (began, watch) = (Instant::now(), Watch::start(store));
    while began.elapsed() < limit {
        indexes.clear();
        indexes.extend((done..done + bench.case.batch.max(1)).map(|n| counter(bench, n)));
        indexes.sort_unstable();
        adder.add(&indexes)?;
        done += to_u64(indexes.len());
    }
    drop(adder);
    store.sync()?;
    into.set_timed("adds", done, watch.elapsed());
    into.set("written_per_add", count(Io::now().since(before).written_bytes()) / count(done));
    Ok(done)
}

/// Gets counters at random, after so many increments. Gives how often the first one was incremented.
fn get_many(bench: &Bench<'_>, store: &dyn Store, increments: u64, into: &mut Measured) -> Result<u64> {
    let size = usize::try_from(bench.loaded).map_err(|_| Failure::Usage("too many counters".to_owned()))?;
    let mut due = vec![0u32; size];
    for n in 0..increments {
        // The index is below the size.
        let index = usize::try_from(counter(bench, n)).unwrap_or(0);
        due[index] += 1;
    }
    let (order, total) = (Shuffle::new(bench.loaded), bench.gets());
    let mut reader = store.reader()?;
    let (deadline, watch, mut done) = (bench.deadline(), Watch::start(store), 0);
    while done < total && (done == 0 || !done.is_multiple_of(STRIDE) || !deadline.passed()) {
        let index = order.at(done);
        let due = usize::try_from(index).ok().and_then(|at| due.get(at)).copied();
        expect(bench, reader.as_mut(), index, u64::from(due.unwrap_or(0)))?;
        done += 1;
    }
    into.set_timed("gets", done, watch.elapsed());
    into.note_stopped("gets", done, total);
    Ok(u64::from(due.first().copied().unwrap_or(0)))
}

/// Increments the first counter from several threads, for some time. Gives how often.
fn add_to_one(
    bench: &Bench<'_>,
    store: &dyn Store,
    limit: Duration,
    adds: bool,
    into: &mut Measured,
) -> Result<u64> {
    let (lock, began) = (Mutex::new(()), Instant::now());
    let work = || -> Result<u64> {
        let mut adder = Adder::new(bench, store, adds, &lock)?;
        let mut done = 0;
        while began.elapsed() < limit {
            adder.add(&[0])?;
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
