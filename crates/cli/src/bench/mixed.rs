//! Reading beside writing: one thread commits transactions of random updates while another gets random
//! records. Each get sees the newest commit.
//!
//! A value begins with its version. Its other bytes follow from the record and the version, so that the
//! reader can verify every byte of a value that changes meanwhile. A get's latency is from one get's end to
//! the next one's. It includes making the key and comparing the value, some tens of nanoseconds.

mod row;

pub use row::Row;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use azekura::{Db, Table};
use hdrhistogram::Histogram;

use super::args::Args;
use super::data::{Dataset, KeyBuf, Random, TABLE};
use super::place::BenchPlace;
use super::process::{self, Writes};
use super::report;
use super::rows;
use super::verify;
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, Unit};
use crate::units::as_f64;

/// Records in one transaction of the load.
const LOAD_BATCH: u64 = 65_536;
/// Longer latencies are not told apart: a minute, in nanoseconds.
pub const MAX_LATENCY_NS: u64 = 60_000_000_000;

/// Runs the job: a row for each value size.
pub fn run(args: &Args) -> Outcome {
    let place = BenchPlace::new(args)?;
    rows::run(args, &place, |_| Ok(()), |value_bytes| run_row(args, &place, value_bytes), report::print_mixed)
}

fn run_row(args: &Args, place: &BenchPlace, value_bytes: u64) -> Outcome<Row> {
    let data = args.dataset(value_bytes);
    process::reset_peak_memory();
    let db = Db::open(place.path(), args.options().exclusive(true))?;
    let table = db.create_table(TABLE, args.kind())?;
    load(args, &db, &table, &data)?;
    let before = Writes::now();
    let (wrote, read, seconds) = race(args, &db, &table, &data)?;
    let writes = Writes::since(before);
    verify_all(args, &db, &table, &data)?;
    drop(table);
    db.close()?;

    let at = |quantile: f64| as_f64(read.latency_ns.value_at_quantile(quantile)) / 1e3;
    Ok(Row {
        order: args.order_name(),
        table: args.table_name(),
        durability: args.durability_name(),
        records: args.records,
        transactions: wrote.transactions,
        batch: args.batch(),
        key_bytes: 8,
        value_bytes,
        seconds,
        gets_per_s: as_f64(read.latency_ns.len()) / seconds,
        updates_per_s: as_f64(wrote.transactions * args.batch()) / seconds,
        get_p50_us: at(0.5),
        get_p99_us: at(0.99),
        get_p99_9_us: at(0.999),
        get_max_us: as_f64(read.latency_ns.max()) / 1e3,
        transaction_max_ms: wrote.longest.as_secs_f64() * 1e3,
        database_bytes: place.size()?,
        written_bytes: writes.map(|writes| writes.bytes),
        write_calls: writes.map(|writes| writes.calls),
        peak_rss_bytes: process::peak_memory_bytes(),
        verified: read.latency_ns.len() + args.records,
    })
}

/// Writes version 0 of every record.
fn load(args: &Args, db: &Db, table: &Table, data: &Dataset) -> Outcome {
    let mut progress = Progress::new("loading", Unit::Records, args.records);
    let (mut key, mut value) = (KeyBuf::new(), Vec::new());
    let mut next = 0;
    while next < args.records {
        let end = args.records.min(next + LOAD_BATCH);
        let mut txn = db.write();
        for index in next..end {
            data.write_version(index, 0, &mut value);
            txn.put(table, data.key(index, &mut key), &value)?;
        }
        txn.commit()?;
        next = end;
        progress.set(next);
    }
    Ok(db.compact()?)
}

/// What the writer has done.
struct Wrote {
    transactions: u64,
    longest: Duration,
}

/// What the reader has seen.
struct Saw {
    latency_ns: Histogram<u64>,
}

/// Runs the writer and the reader until the time is over or one of them fails.
fn race(args: &Args, db: &Db, table: &Table, data: &Dataset) -> Outcome<(Wrote, Saw, f64)> {
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    let (wrote, saw, seconds) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| stopping(&stop, || write(args, db, table, data, &stop)));
        let reader = scope.spawn(|| stopping(&stop, || read(args, table, data, &stop)));
        wait(args.seconds(), started, &stop);
        stop.store(true, Ordering::Relaxed);
        let seconds = started.elapsed().as_secs_f64();
        (writer.join(), reader.join(), seconds)
    });
    let died = |_| Failure::Usage("a thread of the bench panicked".to_owned());
    Ok((wrote.map_err(died)??, saw.map_err(died)??, seconds))
}

/// Runs one side. When it ends, for whatever reason, the other side ends too.
fn stopping<T>(stop: &AtomicBool, side: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let outcome = side();
    stop.store(true, Ordering::Relaxed);
    outcome
}

/// Waits until the time is over or a side has ended, and shows the progress.
pub fn wait(seconds: f64, started: Instant, stop: &AtomicBool) {
    let length = Duration::from_secs_f64(seconds);
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(0);
    let mut progress = Progress::new("running", Unit::Time, ms(length));
    while !stop.load(Ordering::Relaxed) {
        let left = length.saturating_sub(started.elapsed());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
        progress.set(ms(started.elapsed()));
    }
}

fn write(args: &Args, db: &Db, table: &Table, data: &Dataset, stop: &AtomicBool) -> Outcome<Wrote> {
    let mut random = Random::new(args.seed ^ 0x7772_6974);
    let (mut key, mut value) = (KeyBuf::new(), Vec::new());
    let mut wrote = Wrote { transactions: 0, longest: Duration::ZERO };
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let mut txn = db.write();
        for _ in 0..args.batch() {
            let index = random.below(args.records);
            data.write_version(index, wrote.transactions + 1, &mut value);
            txn.put(table, data.key(index, &mut key), &value)?;
        }
        txn.commit()?;
        wrote.transactions += 1;
        let now = Instant::now();
        wrote.longest = wrote.longest.max(now - last);
        last = now;
    }
    Ok(wrote)
}

fn read(args: &Args, table: &Table, data: &Dataset, stop: &AtomicBool) -> Outcome<Saw> {
    let mut random = Random::new(args.seed ^ 0x7265_6164);
    let mut latency_ns = latencies()?;
    let mut key = KeyBuf::new();
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let index = random.below(args.records);
        match table.get_ref(data.key(index, &mut key))? {
            Some(value) if data.is_version(index, &value) => {}
            Some(_) => return Err(verify::wrong_value(index)),
            None => return Err(verify::missing(index)),
        }
        let now = Instant::now();
        latency_ns.saturating_record(u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX));
        last = now;
    }
    Ok(Saw { latency_ns })
}

/// An empty histogram of nanoseconds, to three figures.
pub fn latencies() -> Outcome<Histogram<u64>> {
    Histogram::new_with_bounds(1, MAX_LATENCY_NS, 3)
        .map_err(|error| Failure::Usage(format!("histogram: {error}")))
}

/// Checks that every record is there, with one of its versions.
fn verify_all(args: &Args, db: &Db, table: &Table, data: &Dataset) -> Outcome {
    let txn = db.read();
    let mut cursor = txn.cursor(table)?;
    let (mut count, mut sum) = (0u64, 0u64);
    while let Some((key, value)) = cursor.next()? {
        let index = data.record_of(key).ok_or_else(|| verify::unknown_key(key))?;
        if !data.is_version(index, value.bytes()?) {
            return Err(verify::wrong_value(index));
        }
        count += 1;
        sum = sum.wrapping_add(index);
    }
    verify::check_all_seen(count, sum, args.records)
}
