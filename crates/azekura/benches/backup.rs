//! What backups cost: bytes and time of the first and of those after it, beside copying the file, and what a
//! writer loses meanwhile.
//!
//! `cargo bench -p azekura --bench backup [-- DIRECTORY [RECORDS]]` makes a database of records of 8 + 8
//! bytes, and repositories beside it, in a directory of its own that it removes.

use azekura::{CopyOptions, Db, Durability, Options, Repository, Result, Table, TableKind, Which};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

const RECORDS: u64 = 10_000_000;
const BATCH: u64 = 65_536;
/// Of the updates and the appends between two backups, one in so many records.
const CHANGED_PART: u64 = 100;
const WRITE_BYTES: usize = 8 << 20;
const WARM_BYTES: usize = 1 << 30;
/// How long the writer is watched beside backups, and alone before and after, and how often in turn.
const WATCHED: Duration = Duration::from_secs(4);
const TURNS: usize = 8;
/// How often the database is copied by files.
const COPIES: usize = 3;
/// How fast these backups may be.
const RATES: [Option<u64>; 3] = [None, Some(100_000_000), Some(30_000_000)];

fn main() -> std::result::Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let dir = arguments.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let records = arguments.get(1).map_or(Ok(RECORDS), |text| text.parse())?;
    let dir = dir.join(format!("azekura-backup-{}", std::process::id()));
    fs::create_dir(&dir)?;
    let measured = measure(&dir, records);
    fs::remove_dir_all(&dir)?;
    measured
}

fn measure(dir: &Path, records: u64) -> std::result::Result<(), Failure> {
    let (path, saved) = (dir.join("db.azk"), dir.join("saved"));
    let db = Db::open(&path, Options::new().durability(Durability::Eventual))?;
    let table = db.table("t", TableKind::Ordered)?;
    put(&db, &table, 0..records, random)?;
    db.compact()?;
    backup(&db, &saved, "first")?;
    backup(&db, &saved, "nothing changed")?;
    put(&db, &table, 0..records / CHANGED_PART, |n| random(n * 97 % records))?;
    backup(&db, &saved, "1 % updated")?;
    // Behind all others.
    put(&db, &table, 0..records / CHANGED_PART, |n| u64::MAX / 2 + n)?;
    backup(&db, &saved, "1 % appended")?;
    db.compact()?;
    backup(&db, &saved, "merged into one level")?;
    loss(&db, &table, records, dir)?;
    db.compact()?;
    beside_files(&db, &path, dir)?;
    db.close()?;
    Ok(())
}

/// Keys whose order is that of chance, below half of all numbers.
fn random(n: u64) -> u64 {
    let x = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) >> 1
}

fn put(db: &Db, table: &Table, numbers: std::ops::Range<u64>, key: impl Fn(u64) -> u64) -> Result<()> {
    let started = Instant::now();
    let (mut at, count) = (numbers.start, numbers.end - numbers.start);
    while at < numbers.end {
        let mut txn = db.write();
        let end = (at + BATCH).min(numbers.end);
        for n in at..end {
            txn.put(table, &key(n).to_be_bytes(), &(n ^ started.elapsed().as_nanos() as u64).to_be_bytes())?;
        }
        txn.commit()?;
        at = end;
    }
    println!("{count} records put in {:.2} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn backup(db: &Db, saved: &Path, what: &str) -> Result<()> {
    let started = Instant::now();
    let report = db.backup(saved, |_| {})?;
    let seconds = started.elapsed().as_secs_f64();
    let (new, all) = (mb(report.new_bytes), mb(report.bytes));
    println!(
        "backup, {what}: {seconds:.2} s, {new:.1} of {all:.1} MB copied in {} chunks",
        report.new_chunks
    );
    Ok(())
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Records a second of a writer alone, before and after, and beside one backup after the other.
fn loss(db: &Db, table: &Table, records: u64, dir: &Path) -> Result<()> {
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for batch in 0u64.. {
                let mut txn = db.write();
                for n in 0..1000 {
                    let key = random((batch * 1000 + n) * 31 % records);
                    txn.put(table, &key.to_be_bytes(), &batch.to_be_bytes())?;
                }
                txn.commit()?;
                written.fetch_add(1000, Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok(())
        });
        for turn in 0..TURNS {
            for bytes_per_second in RATES {
                let saved = |n: u32| dir.join(format!("{turn}-{n}"));
                let before = alone(&written)?;
                let mut backups = 0;
                let beside = watched(&written, || {
                    let started = Instant::now();
                    while started.elapsed() < WATCHED {
                        backups += 1;
                        db.backup_with(saved(backups), CopyOptions { bytes_per_second }, |_| {})?;
                    }
                    Ok(())
                })?;
                // What backups cost is the question, not what it costs to remove them.
                for n in 1..=backups {
                    fs::remove_dir_all(saved(n))
                        .map_err(|e| azekura::Error::Invalid { detail: e.to_string() })?;
                }
                let alone = (before + alone(&written)?) / 2.0;
                println!(
                    "writer: {:.2}M/s alone, {:.2}M/s beside {backups} whole backups of {} a second, \
                     {:+.1} %",
                    alone / 1e6,
                    beside / 1e6,
                    bytes_per_second.map_or_else(|| "any bytes".into(), |rate| format!("{:.0} MB", mb(rate))),
                    (beside / alone - 1.0) * 100.0
                );
            }
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Records a second while nobody makes a backup.
fn alone(written: &AtomicU64) -> Result<f64> {
    watched(written, || {
        std::thread::sleep(WATCHED / 2);
        Ok(())
    })
}

fn watched(written: &AtomicU64, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let (started, before) = (Instant::now(), written.load(Ordering::Relaxed));
    work()?;
    Ok((written.load(Ordering::Relaxed) - before) as f64 / started.elapsed().as_secs_f64())
}

/// Backup, verification and restore beside copying the file and writing as many bytes, each durable.
fn beside_files(db: &Db, path: &Path, dir: &Path) -> std::result::Result<(), Failure> {
    for turn in 0..COPIES {
        let at = |name: &str| dir.join(format!("{name}-{turn}"));
        let (backup, report) = timed(|| Ok(db.backup(at("saved"), |_| {})?))?;
        let bytes = report.bytes;
        let repository = Repository::open(at("saved"))?;
        let (verify, _) = timed(|| Ok(repository.verify(|_| {})?))?;
        let (restore, _) = timed(|| Ok(repository.restore(Which::Newest, at("restored"), |_| {})?))?;
        let (hot, ()) = timed(|| Ok(db.copy_to(at("copied"), |_| {})?))?;
        let (copy, ()) = timed(|| {
            fs::copy(path, at("cp"))?;
            Ok(fs::File::open(at("cp"))?.sync_all()?)
        })?;
        let (write, ()) = timed(|| {
            let mut file = fs::File::create(at("raw"))?;
            let buffer = vec![0x5a; WRITE_BYTES];
            for _ in 0..bytes.div_ceil(WRITE_BYTES as u64) {
                file.write_all(&buffer)?;
            }
            Ok(file.sync_all()?)
        })?;
        for name in ["restored", "copied", "cp", "raw"] {
            fs::remove_file(at(name))?;
        }
        fs::remove_dir_all(at("saved"))?;
        let rates = [backup, verify, restore, hot, copy, write].map(|seconds| mb(bytes) / seconds);
        let [backup, verify, restore, hot, copy, write] = rates;
        println!(
            "{:.0} MB: backup {backup:.0} MB/s, verify {verify:.0}, restore {restore:.0}, copy_to {hot:.0}; \
             cp and sync {copy:.0}, write and sync {write:.0}",
            mb(bytes)
        );
    }
    Ok(())
}

/// Touches as much memory as the work will need: a host may have taken back what was idle.
fn warm() {
    let touched = vec![1u8; WARM_BYTES];
    std::hint::black_box(touched.iter().step_by(4096).map(|&byte| usize::from(byte)).sum::<usize>());
}

/// How long some work took, in seconds, and what came of it.
fn timed<T>(
    work: impl FnOnce() -> std::result::Result<T, Failure>,
) -> std::result::Result<(f64, T), Failure> {
    warm();
    let started = Instant::now();
    let done = work()?;
    Ok((started.elapsed().as_secs_f64(), done))
}
