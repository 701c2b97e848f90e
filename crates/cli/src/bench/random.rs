//! The lookup-table case: records loaded in random order, then looked up.
//!
//! The load is one transaction for each batch of records, each timed (`write_s` in all), then the wait for
//! background merging (`settle_s`), then the close (`flush_s`). `growth` is the mean time of the last 5 % of
//! batches divided by that of the first 5 %. It is 1 if the cost of an insert does not depend on the number
//! of records.
//!
//! The lookups are single-threaded, after reopening (`open_ms`, with a first get): random gets of present
//! keys, of absent keys, of present keys 100 at a time, then a scan of everything. `read_s` is the reopening
//! and the gets of present keys.

mod row;

pub use row::Row;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use azekura::{Db, ReadTxn, Table};

use super::args::Args;
use super::data::{Dataset, KeyBuf, Random, TABLE};
use super::place::BenchPlace;
use super::process::{self, Writes};
use super::report;
use super::rows;
use super::settle::settle_if_asked;
use super::verify;
use crate::failure::{Failure, Outcome};
use crate::output_file::{Target, check_target};
use crate::progress::{Progress, Unit};
use crate::units::as_f64;

/// Keys looked up in one call of `get_many`.
const MANY: usize = 100;
/// Gets between two updates of the progress bar.
const PROGRESS_GETS: u64 = 16_384;

/// Runs the job: a row for each value size.
pub fn run(args: &Args) -> Outcome {
    let place = BenchPlace::new(args)?;
    for &value_bytes in args.value_sizes() {
        // Checked before the work, which may take hours.
        csv_target(args, &csv_path(args, &place, value_bytes))?;
    }
    rows::run(
        args,
        &place,
        |_| Ok(()),
        |value_bytes| run_row(args, &place, value_bytes),
        report::print_random,
    )
}

fn run_row(args: &Args, place: &BenchPlace, value_bytes: u64) -> Outcome<Row> {
    let data = args.dataset(value_bytes);
    process::reset_peak_memory();
    let loaded = load(args, place, &data)?;
    let database_bytes = place.size()?;
    let csv = csv_path(args, place, value_bytes);
    write_csv(&csv, &loaded.batch_ns, args)?;
    let read = look_up(args, place, &data)?;

    let records = as_f64(args.records);
    let batches = Batches::of(&loaded.batch_ns);
    let flushed_s = loaded.write_s + loaded.flush_s + loaded.settle_s.unwrap_or(0.0);
    Ok(Row {
        order: args.order_name(),
        table: args.table_name(),
        durability: args.durability_name(),
        records: args.records,
        transactions: args.records.div_ceil(args.batch()),
        batch: args.batch(),
        key_bytes: (loaded.key_bytes + args.records / 2) / args.records,
        value_bytes: (loaded.value_bytes + args.records / 2) / args.records,
        total_bytes: loaded.key_bytes + loaded.value_bytes,
        database_bytes,
        bytes_per_record: as_f64(database_bytes) / records,
        write_s: loaded.write_s,
        settle_s: loaded.settle_s,
        flush_s: loaded.flush_s,
        read_s: read.open_s + read.present_s,
        open_ms: read.open_s * 1e3,
        inserts_per_s: records / loaded.write_s,
        inserts_flushed_per_s: records / flushed_s,
        batch_mean_ms: batches.mean_ms,
        batch_p99_ms: batches.p99_ms,
        batch_max_ms: batches.max_ms,
        growth: batches.growth,
        present_gets_per_s: as_f64(args.gets()) / read.present_s,
        absent_gets_per_s: as_f64(args.gets()) / read.absent_s,
        get_many_per_s: as_f64(read.many_gets) / read.many_s,
        scan_per_s: records / read.scan_s,
        written_bytes: loaded.writes.map(|writes| writes.bytes),
        write_calls: loaded.writes.map(|writes| writes.calls),
        peak_rss_bytes: process::peak_memory_bytes(),
        verified: args.gets() + read.many_gets + args.records,
        csv,
    })
}

/// What loading took.
struct Loaded {
    batch_ns: Vec<u64>,
    write_s: f64,
    settle_s: Option<f64>,
    flush_s: f64,
    key_bytes: u64,
    value_bytes: u64,
    writes: Option<Writes>,
}

fn load(args: &Args, place: &BenchPlace, data: &Dataset) -> Outcome<Loaded> {
    let (records, batch) = (args.records, args.batch());
    let mut progress = Progress::new("inserting", Unit::Records, records);
    let batches = usize::try_from(records.div_ceil(batch)).unwrap_or(0);
    let mut batch_ns: Vec<u64> = Vec::with_capacity(batches);
    let (mut key_bytes, mut value_bytes) = (0, 0);
    let before = Writes::now();
    let started = Instant::now();
    let db = Db::open(place.path(), args.options().exclusive(true))?;
    let table = db.create_table(TABLE, args.kind())?;
    let mut key = KeyBuf::new();
    let mut next = 0;
    let mut last = Instant::now();
    while next < records {
        let end = records.min(next + batch);
        let mut txn = db.write();
        for index in next..end {
            let (key, value) = (data.key(index, &mut key), data.value(index));
            key_bytes += key.len();
            value_bytes += value.len();
            txn.put(&table, key, value)?;
        }
        txn.commit()?;
        next = end;
        let now = Instant::now();
        batch_ns.push(u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX));
        last = now;
        if batch >= PROGRESS_GETS || next.is_multiple_of(PROGRESS_GETS) {
            progress.set(next);
        }
    }
    let write_s = started.elapsed().as_secs_f64();
    drop(progress);
    let settle_s = settle_if_asked(args, &db)?;
    let closing = Instant::now();
    drop(table);
    db.close()?;
    let flush_s = closing.elapsed().as_secs_f64();
    let writes = Writes::since(before);
    let (key_bytes, value_bytes) = (as_u64(key_bytes), as_u64(value_bytes));
    Ok(Loaded { batch_ns, write_s, settle_s, flush_s, key_bytes, value_bytes, writes })
}

fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// What the times of the batches show.
struct Batches {
    mean_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    growth: f64,
}

impl Batches {
    /// From the times of at least one batch.
    fn of(batch_ns: &[u64]) -> Batches {
        let mean = |part: &[u64]| as_f64(part.iter().sum::<u64>()) / as_f64(as_u64(part.len().max(1))) / 1e6;
        let twentieth = batch_ns.len().div_ceil(20);
        let first = mean(&batch_ns[..twentieth]);
        let last = mean(&batch_ns[batch_ns.len() - twentieth..]);
        let mut sorted = batch_ns.to_vec();
        sorted.sort_unstable();
        let at = |place: usize| sorted.get(place).map_or(0.0, |&ns| as_f64(ns) / 1e6);
        Batches {
            mean_ms: mean(batch_ns),
            p99_ms: at((sorted.len() * 99).div_ceil(100).saturating_sub(1)),
            max_ms: at(sorted.len().saturating_sub(1)),
            growth: last / first.max(1e-9),
        }
    }
}

fn csv_path(args: &Args, place: &BenchPlace, value_bytes: u64) -> PathBuf {
    let mark = (args.value_sizes().len() > 1).then_some(value_bytes);
    match (&args.csv, mark) {
        (None, mark) => place.beside(mark, "csv"),
        (Some(path), None) => path.clone(),
        (Some(path), Some(mark)) => path.with_extension(format!("{mark}.csv")),
    }
}

fn csv_target(args: &Args, path: &Path) -> Outcome<Target> {
    check_target(path, &[], args.force)
}

fn write_csv(path: &Path, batch_ns: &[u64], args: &Args) -> Outcome {
    let failed = |error: std::io::Error| Failure::io("writing", path, &error);
    let mut file = csv_target(args, path)?.create()?;
    writeln!(file, "batch,records,ms").map_err(failed)?;
    for (number, (&ns, batch)) in batch_ns.iter().zip(1u64..).enumerate() {
        let records = args.records.min(batch * args.batch());
        writeln!(file, "{number},{records},{:.4}", as_f64(ns) / 1e6).map_err(failed)?;
    }
    file.finish()
}

/// What looking up took.
struct Found {
    open_s: f64,
    present_s: f64,
    absent_s: f64,
    many_s: f64,
    many_gets: u64,
    scan_s: f64,
}

fn look_up(args: &Args, place: &BenchPlace, data: &Dataset) -> Outcome<Found> {
    let started = Instant::now();
    let db = Db::open(place.path(), args.options().create(false))?;
    let table = db.open_table(TABLE)?;
    let txn = db.read();
    verify::get(&txn, &table, data, 0, &mut KeyBuf::new())?;
    let open_s = started.elapsed().as_secs_f64();

    let mut random = Random::new(args.seed ^ 0x6765_7473);
    let lookups = Lookups { args, txn: &txn, table: &table, data };
    let present_s = lookups.present(&mut random)?;
    let absent_s = lookups.absent(&mut random)?;
    let (many_s, many_gets) = lookups.many(&mut random)?;
    let scanning = Instant::now();
    verify::scan(&txn, &table, data, args.records)?;
    let scan_s = scanning.elapsed().as_secs_f64();
    drop(txn);
    drop(table);
    db.close()?;
    Ok(Found { open_s, present_s, absent_s, many_s, many_gets, scan_s })
}

/// The phases of looking up. Each returns its seconds.
struct Lookups<'a> {
    args: &'a Args,
    txn: &'a ReadTxn,
    table: &'a Table,
    data: &'a Dataset,
}

impl Lookups<'_> {
    fn present(&self, random: &mut Random) -> Outcome<f64> {
        let mut key = KeyBuf::new();
        self.timed("getting present keys", |_| {
            let index = random.below(self.args.records);
            verify::get(self.txn, self.table, self.data, index, &mut key)
        })
    }

    fn absent(&self, random: &mut Random) -> Outcome<f64> {
        let mut key = KeyBuf::new();
        self.timed("getting absent keys", |_| {
            verify::get_absent(self.txn, self.table, self.data, random.next(), &mut key)
        })
    }

    fn timed(&self, label: &str, mut get: impl FnMut(u64) -> Outcome) -> Outcome<f64> {
        let gets = self.args.gets();
        let mut progress = Progress::new(label, Unit::Records, gets);
        let started = Instant::now();
        let mut next = 0;
        while next < gets {
            let end = gets.min(next + PROGRESS_GETS);
            for number in next..end {
                get(number)?;
            }
            next = end;
            progress.set(next);
        }
        Ok(started.elapsed().as_secs_f64())
    }

    /// Gets present keys, `MANY` at a time. Returns the seconds and the number of keys.
    fn many(&self, random: &mut Random) -> Outcome<(f64, u64)> {
        let mut keys = [KeyBuf::new(); MANY];
        let mut indexes = [0; MANY];
        let calls = self.args.gets().div_ceil(as_u64(MANY));
        let total = calls * as_u64(MANY);
        let mut progress = Progress::new("getting 100 at a time", Unit::Records, total);
        let started = Instant::now();
        for call in 0..calls {
            for (key, index) in keys.iter_mut().zip(&mut indexes) {
                *index = random.below(self.args.records);
                self.data.key(*index, key);
            }
            self.one_many(&keys, &indexes)?;
            if call.is_multiple_of(256) {
                progress.set(call * as_u64(MANY));
            }
        }
        Ok((started.elapsed().as_secs_f64(), total))
    }

    fn one_many(&self, keys: &[KeyBuf], indexes: &[u64]) -> Outcome {
        let mut seen = 0;
        let mut failed = None;
        self.txn.get_many_with(self.table, keys, |place, value| {
            let index = indexes[place];
            seen += 1;
            match value {
                Some(value) if value == self.data.value(index) => {}
                Some(_) => failed = Some(verify::wrong_value(index)),
                None => failed = Some(verify::missing(index)),
            }
        })?;
        match failed {
            Some(failure) => Err(failure),
            None if seen == keys.len() => Ok(()),
            None => Err(Failure::Corrupt(format!("get_many answered {seen} of {MANY} keys"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Batches;

    #[test]
    fn growth_compares_the_ends() {
        let times: Vec<u64> = (1..=100).map(|n| n * 1_000_000).collect();
        let batches = Batches::of(&times);
        assert!((batches.growth - 98.0 / 3.0).abs() < 1e-9);
        assert!((batches.mean_ms - 50.5).abs() < 1e-9);
        assert!((batches.p99_ms - 99.0).abs() < 1e-9);
        assert!((batches.max_ms - 100.0).abs() < 1e-9);
    }

    #[test]
    fn one_batch_is_enough() {
        let batches = Batches::of(&[2_000_000]);
        assert!((batches.growth - 1.0).abs() < 1e-9);
        assert!((batches.p99_ms - 2.0).abs() < 1e-9);
    }
}
