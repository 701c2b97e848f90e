//! Records put with every change kept for a reader, beside the same without.
//!
//! Each peer keeps the changes as its users do. Azekura has a feed. RocksDB reads its log again, which it
//! keeps for longer. In SQLite a trigger inserts into a table of changes. LMDB, redb and fjall put each
//! change into a second ordered table in the same transaction. Nobody removes changes that were taken.
//! Azekura tells only what is durable, the others what is committed. Peers with one table and no log to be
//! read take no part.
//!
//! All changes are taken after reopening, and then once more while other changes are made to the same
//! records.

use super::bench::Bench;
use crate::counters::Io;
use crate::failure::{Failure, Result};
use crate::measure::batches::Batches;
use crate::measure::{LOAD, Measured, count};
use crate::peers::{Changes, Open, PeerPlace, Store};
use crate::records::{KeyBuffer, ScanSum};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Changes that are asked for at once.
const TAKEN_AT_ONCE: u64 = 100_000;
/// How long a reader that has taken all sleeps.
const PAUSE: Duration = Duration::from_micros(500);
/// Changes that have not come so long after they were synced are lost.
const LOST_AFTER: Duration = Duration::from_secs(30);
/// The number of changes that are not known yet.
const UNKNOWN: u64 = u64::MAX;

/// The directory of the store whose changes are kept.
const FED: &str = "fed";

/// A new store, filled.
struct Load {
    put: u64,
    took: Duration,
    batches: Batches,
    file_bytes: u64,
    written: Io,
}

impl Load {
    fn per_second(&self) -> f64 {
        count(self.put) / self.took.as_secs_f64()
    }
}

/// Runs the workload.
pub fn run(bench: &mut Bench<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    let plain = load(bench, "plain", false, bench.case.records)?;
    let dir = bench.dir.join("plain");
    fs::remove_dir_all(&dir).map_err(Failure::io(format!("removing {}", dir.display())))?;
    let fed = load(bench, FED, true, plain.put)?;
    bench.loaded = fed.put;
    measured.note_stopped(LOAD, fed.put, bench.case.records);
    measured.set_count("records", fed.put);
    measured.set("write_per_s", plain.per_second());
    measured.set("fed_per_s", fed.per_second());
    measured.set("kept_percent", 100.0 * fed.per_second() / plain.per_second());
    fed.batches.report(&mut measured);
    measured.series.clear();
    let written = match bench.peer.about().place {
        PeerPlace::Here => fed.written.written_bytes(),
        _ => fed.written.dirtied_bytes,
    };
    measured.set("written_per_raw", count(written) / count(bench.records.raw_bytes(fed.put)));
    if plain.put == fed.put {
        let told = count(fed.file_bytes) - count(plain.file_bytes);
        measured.set("told_bytes_per_change", told / count(fed.put));
    }

    let store = bench.peer.open(&how(bench, FED, true, false))?;
    let changes = store.changes()?;
    let missing = || Failure::peer(bench.peer.about().name, "changes", &"they were not kept");
    let mut changes = changes.ok_or_else(missing)?;
    take_all(bench, changes.as_mut(), &mut measured)?;
    live(bench, store.as_ref(), changes.as_mut(), &mut measured)?;
    drop(changes);
    store.close()?;
    Ok(measured)
}

fn how(bench: &Bench<'_>, name: &str, fed: bool, create: bool) -> Open {
    Open { dir: bench.dir.join(name), fed, ..bench.how(create, false) }
}

/// Fills a new store with at most so many records, makes them durable and closes it.
fn load(bench: &Bench<'_>, name: &str, fed: bool, total: u64) -> Result<Load> {
    let (how, before) = (how(bench, name, fed, true), Io::now());
    fs::create_dir_all(&how.dir).map_err(Failure::io(format!("creating {}", how.dir.display())))?;
    let store = bench.peer.open(&how)?;
    let mut batches = Batches::new(total.div_ceil(bench.case.batch.max(1)));
    let began = Instant::now();
    let put = put_round(bench, store.as_ref(), 0, total, &mut batches)?;
    store.sync()?;
    let took = began.elapsed();
    store.close()?;
    let file_bytes = bench.peer.file_bytes(&how.dir);
    Ok(Load { put, took, batches, file_bytes, written: Io::now().since(before) })
}

/// Puts the records with the values of a round, until all are there or the phase is over. Gives how many are.
fn put_round(
    bench: &Bench<'_>,
    store: &dyn Store,
    round: u64,
    total: u64,
    batches: &mut Batches,
) -> Result<u64> {
    let (mut writer, mut key) = (store.writer()?, KeyBuffer::default());
    let (deadline, mut done) = (bench.deadline(), 0);
    let mut before = Instant::now();
    while done < total && (done == 0 || !deadline.passed()) {
        let end = total.min(done + bench.case.batch.max(1));
        writer.begin()?;
        for index in done..end {
            writer.put(bench.records.key(index, &mut key), value(bench, round, index))?;
        }
        writer.commit()?;
        let now = Instant::now();
        batches.add(now - before, end - done);
        (before, done) = (now, end);
    }
    Ok(done)
}

fn value<'b>(bench: &'b Bench<'_>, round: u64, index: u64) -> &'b [u8] {
    bench.records.value(index + round * bench.case.records)
}

/// What the changes of a round are to be in all.
fn expected(bench: &Bench<'_>, round: u64, changes: u64) -> ScanSum {
    let (mut sum, mut key) = (ScanSum::default(), KeyBuffer::default());
    for index in 0..changes {
        sum.add(bench.records.key(index, &mut key), value(bench, round, index));
    }
    sum
}

/// Takes all changes since the store was made.
fn take_all(bench: &Bench<'_>, changes: &mut dyn Changes, into: &mut Measured) -> Result<()> {
    let (mut seen, began) = (ScanSum::default(), Instant::now());
    while take(changes, &mut seen)? > 0 {}
    into.set_timed("changes", seen.records, began.elapsed());
    bench.check_scan(expected(bench, 0, bench.loaded), seen)
}

/// Takes some changes. Gives how many.
fn take(changes: &mut dyn Changes, seen: &mut ScanSum) -> Result<u64> {
    let taken = changes.take(TAKEN_AT_ONCE)?;
    seen.records += taken.records;
    seen.sum = seen.sum.wrapping_add(taken.sum);
    Ok(taken.records)
}

/// Puts other values while another thread takes the changes.
fn live(bench: &Bench<'_>, store: &dyn Store, changes: &mut dyn Changes, into: &mut Measured) -> Result<()> {
    let (total, made, began) = (bench.loaded, AtomicU64::new(UNKNOWN), Instant::now());
    let (writing, reading) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut batches = Batches::new(1);
            let put =
                put_round(bench, store, 1, total, &mut batches).and_then(|put| store.sync().map(|()| put));
            // The reader ends with an error, too.
            made.store(*put.as_ref().unwrap_or(&0), Ordering::Release);
            (put, began.elapsed())
        });
        let reading = follow(bench, changes, &made);
        let all_taken = began.elapsed();
        let writing = match writer.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (writing, reading.map(|seen| (seen, all_taken)))
    });
    let (put, wrote) = (writing.0?, writing.1);
    let (seen, all_taken) = reading?;
    into.note_stopped("live", put, total);
    into.set_timed("live_write", put, wrote);
    into.set_timed("live", put, all_taken);
    into.set("behind_ms", all_taken.saturating_sub(wrote).as_secs_f64() * 1e3);
    bench.check_scan(expected(bench, 1, put), seen)
}

/// Takes changes as they come, until there are as many as were made.
fn follow(bench: &Bench<'_>, changes: &mut dyn Changes, made: &AtomicU64) -> Result<ScanSum> {
    let (mut seen, mut since) = (ScanSum::default(), Instant::now());
    loop {
        let all = made.load(Ordering::Acquire);
        let taken = take(changes, &mut seen)?;
        if taken > 0 || all == UNKNOWN {
            since = Instant::now();
        }
        if all != UNKNOWN && seen.records >= all {
            return Ok(seen);
        }
        if since.elapsed() > LOST_AFTER {
            let text = format!("{} of {all} changes were told", seen.records);
            return Err(Failure::peer(bench.peer.about().name, "changes", &text));
        }
        if taken == 0 {
            std::thread::sleep(PAUSE);
        }
    }
}
