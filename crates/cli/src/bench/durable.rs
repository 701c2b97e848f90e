//! Durable single-record transactions, beside what the disk itself can do.
//!
//! The machine's own rate is that of appending 4 KiB to a raw file beside the database and syncing it with
//! `fdatasync`. It is measured in slices, one before each number of threads, because the rate of a shared
//! disk drifts. Afterwards the database is opened again and every acknowledged record is verified.

mod row;

pub use row::{Row, Run};

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use azekura::{Db, Table};
use hdrhistogram::Histogram;

use super::args::Args;
use super::data::{Dataset, KeyBuf, TABLE};
use super::mixed::{latencies, wait};
use super::place::BenchPlace;
use super::process::{self, Writes};
use super::report;
use super::verify;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Scratch;
use crate::output::Output;
use crate::units::as_f64;

/// The numbers of threads, one run each.
const THREADS: [u64; 3] = [1, 2, 4];
/// Bytes of the raw appends.
const RAW_BYTES: u64 = 4096;
/// The indexes of two threads are this far apart.
const THREAD_INDEXES: u64 = 1 << 40;

/// Runs the job: some rows for each value size.
pub fn run(args: &Args) -> Outcome {
    let place = BenchPlace::new(args)?;
    let mut output = Output::new();
    if !args.json {
        report::print_heading(args, &place, &mut output)?;
    }
    for &value_bytes in args.value_sizes() {
        place.clear()?;
        let (raw, rows) = run_size(args, &place, value_bytes)?;
        if args.json {
            for row in &rows {
                output.json(row)?;
            }
        } else {
            report::print_durable(&raw, &rows, &mut output)?;
        }
        output.flush()?;
    }
    if !args.json {
        report::print_kept(&place, &mut output)?;
    }
    output.finish()
}

/// The run of one number of threads.
struct Threads {
    threads: u64,
    run: Run,
    writes: Option<Writes>,
}

fn run_size(args: &Args, place: &BenchPlace, value_bytes: u64) -> Outcome<(Run, Vec<Row>)> {
    let data = args.dataset(value_bytes);
    process::reset_peak_memory();
    let raw_path = place.beside(None, "raw");
    let db = Db::open(place.path(), args.options().exclusive(true))?;
    let table = db.create_table(TABLE, args.kind())?;
    let mut raw = Run { latency_ns: latencies()?, seconds: 0.0 };
    let mut written = vec![0; THREADS.iter().fold(0, |most, &n| index_of(n).max(most))];
    let mut all = Vec::new();
    for threads in THREADS {
        append_raw(&raw_path, args.seconds() / as_f64(as_u64(THREADS.len())), &mut raw)?;
        let before = Writes::now();
        let run = commit_in_threads(args, &db, &table, &data, &mut written[..index_of(threads)])?;
        all.push(Threads { threads, run, writes: Writes::since(before) });
    }
    drop(table);
    db.close()?;
    let peak_rss_bytes = process::peak_memory_bytes();
    verify_all(args, place, &data, &written)?;

    let one_thread = all.first().map_or(1.0, |one| one.run.per_s());
    let row = |one: &Threads| Row {
        order: args.order_name(),
        table: args.table_name(),
        durability: args.durability_name(),
        threads: one.threads,
        records: one.run.latency_ns.len(),
        transactions: one.run.latency_ns.len(),
        key_bytes: 8,
        value_bytes,
        seconds: one.run.seconds,
        commits_per_s: one.run.per_s(),
        commit_p50_us: one.run.at_us(0.5),
        commit_p99_us: one.run.at_us(0.99),
        commit_max_us: one.run.max_us(),
        raw_appends_per_s: raw.per_s(),
        ratio_to_raw: one.run.per_s() / raw.per_s().max(1e-9),
        ratio_to_one_thread: one.run.per_s() / one_thread.max(1e-9),
        written_bytes: one.writes.map(|writes| writes.bytes),
        write_calls: one.writes.map(|writes| writes.calls),
        peak_rss_bytes,
        verified: one.run.latency_ns.len(),
    };
    let rows = all.iter().map(row).collect();
    Ok((raw, rows))
}

/// Appends and syncs for some seconds. Adds to what the earlier slices have measured.
fn append_raw(path: &Path, seconds: f64, raw: &mut Run) -> Outcome {
    let failed = |error: std::io::Error| Failure::io("writing", path, &error);
    // A file that exists already is not removed.
    let mut file = OpenOptions::new().create_new(true).append(true).open(path).map_err(failed)?;
    let _scratch = Scratch::new(path);
    let block = vec![0xa5; index_of(RAW_BYTES)];
    file.write_all(&block).and_then(|()| file.sync_all()).map_err(failed)?;
    let started = Instant::now();
    let mut last = started;
    while started.elapsed().as_secs_f64() < seconds {
        append_and_sync(&mut file, &block).map_err(failed)?;
        let now = Instant::now();
        raw.latency_ns.saturating_record(nanoseconds(now - last));
        last = now;
    }
    raw.seconds += started.elapsed().as_secs_f64();
    Ok(())
}

fn append_and_sync(file: &mut File, block: &[u8]) -> std::io::Result<()> {
    file.write_all(block)?;
    file.sync_data()
}

/// Commits in as many threads as `written` has elements. Each thread counts its records there.
fn commit_in_threads(
    args: &Args,
    db: &Db,
    table: &Table,
    data: &Dataset,
    written: &mut [u64],
) -> Outcome<Run> {
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    let results = std::thread::scope(|scope| {
        let stop = &stop;
        let spawn = |(thread, count)| {
            let committer = Committer { db, table, data, first: thread * THREAD_INDEXES, count };
            scope.spawn(move || committer.run(stop))
        };
        let threads: Vec<_> = (0..).zip(written.iter_mut()).map(spawn).collect();
        wait(args.seconds(), started, stop);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    let seconds = started.elapsed().as_secs_f64();
    let mut latency_ns = latencies()?;
    for result in results {
        let died = |_| Failure::Usage("a thread of the bench panicked".to_owned());
        let one = result.map_err(died)??;
        latency_ns.add(one).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    Ok(Run { latency_ns, seconds })
}

/// One thread's work: record after record, each in a durable transaction.
struct Committer<'a> {
    db: &'a Db,
    table: &'a Table,
    data: &'a Dataset,
    first: u64,
    count: &'a mut u64,
}

impl Committer<'_> {
    /// Commits until told to stop. A failure stops the other threads too.
    fn run(mut self, stop: &AtomicBool) -> Outcome<Histogram<u64>> {
        let outcome = self.commit_until(stop);
        stop.store(true, Ordering::Relaxed);
        outcome
    }

    fn commit_until(&mut self, stop: &AtomicBool) -> Outcome<Histogram<u64>> {
        let mut latency_ns = latencies()?;
        let mut key = KeyBuf::new();
        let mut last = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let index = self.first + *self.count;
            let mut txn = self.db.write();
            txn.put(self.table, self.data.key(index, &mut key), self.data.value(index))?;
            txn.commit()?;
            *self.count += 1;
            let now = Instant::now();
            latency_ns.saturating_record(nanoseconds(now - last));
            last = now;
        }
        Ok(latency_ns)
    }
}

/// Checks that after reopening every acknowledged record is there, and nothing else.
fn verify_all(args: &Args, place: &BenchPlace, data: &Dataset, written: &[u64]) -> Outcome {
    let db = Db::open(place.path(), args.options().create(false))?;
    let table = db.open_table(TABLE)?;
    let txn = db.read();
    let mut key = KeyBuf::new();
    for (thread, &count) in (0..).zip(written) {
        for number in 0..count {
            verify::get(&txn, &table, data, thread * THREAD_INDEXES + number, &mut key)?;
        }
    }
    let (there, expected) = (txn.count(&table)?, written.iter().sum::<u64>());
    drop(txn);
    drop(table);
    db.close()?;
    if there == expected {
        return Ok(());
    }
    Err(Failure::Corrupt(format!("{expected} records were committed, {there} are there")))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn index_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
