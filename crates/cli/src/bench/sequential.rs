//! The main job: ascending keys in a number of transactions, a close, a reopening, and a get of every key in
//! sequence, verified.
//!
//! `write_s` is from opening the new file to the return of the last commit. `flush_s` is the close with its
//! flush and sync. `read_s` is the reopening and the gets.

mod row;

pub use row::Row;

use std::time::Instant;

use azekura::Db;

use super::args::Args;
use super::data::{Dataset, KEY_BYTES, KeyBuf, TABLE};
use super::place::BenchPlace;
use super::process::{self, Writes};
use super::report;
use super::rows;
use super::settle::settle_if_asked;
use super::verify;
use crate::failure::Outcome;
use crate::progress::{Progress, Unit};
use crate::units::as_f64;

/// Records between two updates of the progress bar.
const PROGRESS_RECORDS: u64 = 16_384;

/// Runs the job: a row for each value size.
pub fn run(args: &Args) -> Outcome {
    let place = BenchPlace::new(args)?;
    let table = report::SequentialTable::new(args);
    rows::run(
        args,
        &place,
        |output| table.print_header(output),
        |value_bytes| run_row(args, &place, value_bytes),
        |row, output| table.print_row(row, output),
    )
}

fn run_row(args: &Args, place: &BenchPlace, value_bytes: u64) -> Outcome<Row> {
    let data = args.dataset(value_bytes);
    process::reset_peak_memory();
    let written = write(args, place, &data, value_bytes)?;
    let database_bytes = place.size()?;
    let read = read(args, place, &data, value_bytes)?;

    let records = as_f64(args.records);
    let total_bytes = args.records * (KEY_BYTES + value_bytes);
    let flushed_s = written.write_s + written.flush_s + written.settle_s.unwrap_or(0.0);
    Ok(Row {
        order: args.order_name(),
        table: args.table_name(),
        durability: args.durability_name(),
        records: args.records,
        transactions: args.transactions(),
        key_bytes: KEY_BYTES,
        value_bytes,
        total_bytes,
        database_bytes,
        overhead_bytes_per_record: (as_f64(database_bytes) - as_f64(total_bytes)) / records,
        write_s: written.write_s,
        settle_s: written.settle_s,
        flush_s: written.flush_s,
        read_s: read.read_s,
        open_ms: read.open_s * 1e3,
        writes_per_s: records / written.write_s,
        writes_flushed_per_s: records / flushed_s,
        reads_per_s: records / read.read_s,
        scan_per_s: records / read.scan_s,
        write_mb_per_s: as_f64(total_bytes) / 1e6 / written.write_s,
        read_mb_per_s: as_f64(total_bytes) / 1e6 / read.read_s,
        written_bytes: written.writes.map(|writes| writes.bytes),
        write_calls: written.writes.map(|writes| writes.calls),
        peak_rss_bytes: process::peak_memory_bytes(),
        verified: 2 * args.records,
    })
}

/// What writing took.
struct Written {
    write_s: f64,
    settle_s: Option<f64>,
    flush_s: f64,
    writes: Option<Writes>,
}

fn write(args: &Args, place: &BenchPlace, data: &Dataset, value_bytes: u64) -> Outcome<Written> {
    let (records, transactions) = (args.records, args.transactions());
    let label = format!("{value_bytes} B  writing");
    let mut progress = Progress::new(label, Unit::Records, records);
    let before = Writes::now();
    let started = Instant::now();
    let db = Db::open(place.path(), args.options().exclusive(true))?;
    let table = db.create_table(TABLE, args.kind())?;
    let mut key = KeyBuf::new();
    let mut next = 0;
    for number in 1..=transactions {
        // The records are spread evenly if the number of transactions does not divide theirs.
        let end = records / transactions * number + records % transactions * number / transactions;
        let mut txn = db.write();
        for index in next..end {
            txn.put(&table, data.key(index, &mut key), data.value(index))?;
        }
        txn.commit()?;
        next = end;
        progress.set(next);
    }
    let write_s = started.elapsed().as_secs_f64();
    let settle_s = settle_if_asked(args, &db)?;
    let closing = Instant::now();
    drop(table);
    db.close()?;
    let flush_s = closing.elapsed().as_secs_f64();
    drop(progress);
    Ok(Written { write_s, settle_s, flush_s, writes: Writes::since(before) })
}

/// What reading took.
struct Read {
    open_s: f64,
    read_s: f64,
    scan_s: f64,
}

fn read(args: &Args, place: &BenchPlace, data: &Dataset, value_bytes: u64) -> Outcome<Read> {
    let label = format!("{value_bytes} B  reading");
    let mut progress = Progress::new(label, Unit::Records, args.records);
    let started = Instant::now();
    let db = Db::open(place.path(), args.options().create(false))?;
    let table = db.open_table(TABLE)?;
    let txn = db.read();
    let mut key = KeyBuf::new();
    verify::get(&txn, &table, data, 0, &mut key)?;
    let open_s = started.elapsed().as_secs_f64();
    let mut next = 0;
    while next < args.records {
        let end = args.records.min(next + PROGRESS_RECORDS);
        for index in next..end {
            verify::get(&txn, &table, data, index, &mut key)?;
        }
        next = end;
        progress.set(next);
    }
    let read_s = started.elapsed().as_secs_f64();
    let scanning = Instant::now();
    verify::scan(&txn, &table, data, args.records)?;
    let scan_s = scanning.elapsed().as_secs_f64();
    drop(txn);
    drop(table);
    db.close()?;
    Ok(Read { open_s, read_s, scan_s })
}
