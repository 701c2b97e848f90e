//! A cache under load: records that live for a minute are put all the time, as many as there are to be at
//! once in each minute. File and memory stay flat, for what has expired goes.

use super::gauges::resident_bytes;
use crate::report::Run;
use crate::rng::Rng;
use azekura::{Db, Durability, Options, Table, TableKind, WriteOptions};
use std::path::Path;
use std::time::{Duration, Instant};

/// The budget of memory, in bytes, and what the process may have beside it.
const BUDGET: u64 = 256 << 20;
const BESIDE: u64 = 64 << 20;
/// Records of a commit.
const BATCH: u64 = 2_000;
/// Gets between two commits.
const GETS: u64 = 200;
/// Bytes of a record: its key, and its value.
const RECORD_BYTES: u64 = 8 + 24;
/// The file takes no more than so many times its records, and a constant for memtables, log and merges.
const FILE_FACTOR: u64 = 3;
const FILE_BESIDE: u64 = 192 << 20;
/// In the later half it is at most by this percentage longer than in the half before.
const GROWTH_PERCENT: u64 = 25;
/// Records that are put again before they have expired.
const AGAIN_PERCENT: u64 = 10;

/// How many records there are to be, and how long each lives.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Size {
    /// Put records that expire, and look whether file and memory stay flat
    #[arg(long)]
    pub ttl: bool,
    /// With --ttl: how many records there are at once.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    records: u64,
    /// With --ttl: how many seconds each lives.
    #[arg(long, value_name = "S", default_value_t = 60)]
    lives: u64,
}

/// What was seen at one moment.
struct Sample {
    file: u64,
    resident: u64,
}

/// Runs the load for some time, and judges it.
///
/// # Errors
/// What the engine meets, and a wrong value.
pub fn run(run: &Run, path: &Path, time: Duration, size: Size) -> Result<(), String> {
    let text = |e: azekura::Error| e.to_string();
    let before = resident_bytes().unwrap_or(0);
    let options = Options::new().memory_bytes(BUDGET).durability(Durability::Eventual);
    let db = options.clone().open(path).map_err(text)?;
    let life = Duration::from_secs(size.lives.max(1));
    let cache = db.expiring_table("cache", TableKind::Hash, life).map_err(text)?;
    let (mut samples, mut rng, mut put, began) = (Vec::new(), Rng(run.seed), 0u64, Instant::now());
    let per_second = size.records as f64 / life.as_secs_f64();
    while began.elapsed() < time && run.goes_on() {
        batch(&db, &cache, &mut put, &mut rng).map_err(text)?;
        (0..GETS).try_for_each(|_| look(&cache, put, size.records, &mut rng))?;
        run.tried(BATCH + GETS);
        let due = Duration::from_secs_f64(put as f64 / per_second);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        let seconds = began.elapsed().as_secs();
        if samples.len() as u64 <= seconds {
            let resident = resident_bytes().unwrap_or(0).saturating_sub(before);
            samples.push(Sample { file: db.stats().file_bytes, resident });
        }
    }
    let lag = began.elapsed().as_secs_f64() - put as f64 / per_second;
    run.note(format!("{put} records put, {per_second:.0} wanted a second, {lag:.1} s behind at the end"));
    judge(run, &samples, size);
    // When nobody puts any more all of it goes.
    std::thread::sleep(life);
    let left = cache.count().map_err(text)?;
    if left > 0 {
        run.violation(format!("{left} records have outlived their time"));
    }
    let waited = Instant::now();
    while db.stats().file_bytes > FILE_BESIDE / 8 && waited.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let (file, took) = (db.stats().file_bytes, waited.elapsed());
    run.note(format!("left alone, the file has {file} bytes after {took:.1?}"));
    if file > FILE_BESIDE / 8 {
        run.violation(format!("{file} bytes are left of a cache in which nothing is"));
    }
    let problems = db.check(|_| {}).map_err(text)?.problems;
    if !problems.is_empty() {
        run.violation(format!("check says {problems:?}"));
    }
    db.close().map_err(text)
}

fn value(n: u64) -> [u8; 24] {
    std::array::from_fn(|i| (n >> (i % 8 * 8)) as u8)
}

/// Most records are new. Some are put again.
fn batch(db: &Db, cache: &Table, put: &mut u64, rng: &mut Rng) -> azekura::Result<()> {
    let options = WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() };
    let mut txn = db.write_with(options);
    for _ in 0..BATCH {
        let again = *put > 0 && rng.below(100) < AGAIN_PERCENT;
        let n = if again { rng.below(*put) } else { *put };
        txn.put(cache, n.to_be_bytes(), value(n))?;
        *put += 1;
    }
    txn.commit()
}

/// A get of one of the newer records: it may have expired, and else has its value.
fn look(cache: &Table, put: u64, records: u64, rng: &mut Rng) -> Result<(), String> {
    let n = put.saturating_sub(rng.below(records * 2)).saturating_sub(1);
    match cache.get_with(n.to_be_bytes(), |found| found == value(n)) {
        Ok(None | Some(true)) => Ok(()),
        Ok(Some(false)) => Err(format!("record {n} has a wrong value")),
        Err(e) => Err(e.to_string()),
    }
}

/// Looks at what came after the first two lives of records, when as many expire as are put.
fn judge(run: &Run, samples: &[Sample], size: Size) {
    let settled = samples.get(usize::try_from(size.lives * 2).unwrap_or(usize::MAX)..).unwrap_or_default();
    let (early, late) = settled.split_at(settled.len() / 2);
    let most = |of: &[Sample], what: fn(&Sample) -> u64| of.iter().map(what).max().unwrap_or(0);
    let [file_early, file_late] = [early, late].map(|half| most(half, |s| s.file));
    let memory = most(samples, |s| s.resident);
    run.note(format!(
        "after {} s: file at most {} and then {} MiB for {} MiB of records; memory at most {} MiB with a budget of {}",
        size.lives * 2,
        file_early >> 20,
        file_late >> 20,
        (size.records * RECORD_BYTES) >> 20,
        memory >> 20,
        BUDGET >> 20
    ));
    if settled.len() < 10 {
        return run.note("too short to tell whether it is flat");
    }
    if file_late > FILE_FACTOR * size.records * RECORD_BYTES + FILE_BESIDE {
        run.violation(format!("the file was {file_late} bytes long"));
    }
    if file_late > file_early + file_early / 100 * GROWTH_PERCENT {
        run.violation(format!("the file has grown from {file_early} to {file_late} bytes"));
    }
    if memory > BUDGET + BESIDE {
        run.violation(format!("{memory} bytes of memory with a budget of {BUDGET}"));
    }
}
