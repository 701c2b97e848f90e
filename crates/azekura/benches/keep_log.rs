//! What it costs to keep the log in a repository of backups: bytes that go there, what a writer loses
//! meanwhile, and how long restoring one commit takes.
//!
//! `cargo bench -p azekura --bench keep_log [-- DIRECTORY [RECORDS]]` makes a database of records of 8 + 8
//! bytes, and a repository beside it, in a directory of its own that it removes. The log is kept by a thread.

use azekura::{
    Db, Durability, LogKeeper, LogKept, Options, Repository, Result, Table, TableKind, Which, WriteOptions,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

const RECORDS: u64 = 10_000_000;
const RECORD_BYTES: u64 = 16;
/// Records of a commit of the load, and of those that are looked at.
const LOAD_BATCH: u64 = 65_536;
const BATCH: u64 = 1000;
/// Of the updates and of the appends, one in so many records.
const CHANGED_PART: u64 = 100;
const EVERY: Duration = Duration::from_secs(1);
/// How long the writer is watched, alone and beside the keeper, and how often in turn.
const WATCHED: Duration = Duration::from_secs(4);
const TURNS: usize = 3;

fn main() -> std::result::Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let dir = arguments.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let records = arguments.get(1).map_or(Ok(RECORDS), |text| text.parse())?;
    let dir = dir.join(format!("azekura-keep-log-{}", std::process::id()));
    fs::create_dir(&dir)?;
    let measured = measure(&dir, records);
    fs::remove_dir_all(&dir)?;
    Ok(measured?)
}

fn measure(dir: &Path, records: u64) -> Result<()> {
    let (path, saved) = (dir.join("db.azk"), dir.join("saved"));
    let db = Db::open(&path, Options::new().durability(Durability::Eventual))?;
    let table = db.table("t", TableKind::Ordered)?;
    put(&db, &table, 0..records, LOAD_BATCH, random)?;
    db.compact()?;
    let follower = Options::new().follow(true).open(&path)?;
    let mut keeper = follower.keep_log(&saved)?;
    let first = keeper.step(|_| {})?;
    println!("first point: {:.1} MB", mb(first.new_bytes));
    let changed = records / CHANGED_PART;
    shipped(&mut keeper, changed, "1 % updated", || {
        put(&db, &table, 0..changed, BATCH, |n| random(n * 97 % records))
    })?;
    shipped(&mut keeper, changed, "1 % appended", || {
        put(&db, &table, 0..changed, BATCH, |n| u64::MAX / 2 + n)
    })?;
    shipped(&mut keeper, 0, "merged into one level", || db.compact())?;
    shipped(&mut keeper, changed, "1 % updated again", || {
        put(&db, &table, 0..changed, BATCH, |n| random(n * 89 % records))
    })?;
    restore(&saved, dir, keeper.status())?;
    loss(&db, &table, &mut keeper, records)?;
    drop(keeper);
    drop(follower);
    db.close()
}

/// Keys whose order is that of chance, below half of all numbers.
fn random(n: u64) -> u64 {
    let x = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) >> 1
}

/// Puts records. The last commit is durable, and all commits are logged.
fn put(
    db: &Db,
    table: &Table,
    numbers: std::ops::Range<u64>,
    batch: u64,
    key: impl Fn(u64) -> u64,
) -> Result<()> {
    let mut at = numbers.start;
    while at < numbers.end {
        let mut txn = db.write();
        let end = (at + batch).min(numbers.end);
        for n in at..end {
            txn.put(table, &key(n).to_be_bytes(), &random(n ^ (at << 32)).to_be_bytes())?;
        }
        txn.commit()?;
        at = end;
    }
    db.sync()
}

/// Does something while the log is kept, and says what went to the repository.
fn shipped(
    keeper: &mut LogKeeper<'_>,
    records: u64,
    what: &str,
    work: impl FnOnce() -> Result<()> + Send,
) -> Result<()> {
    let before = keeper.status();
    beside(keeper, work)?;
    let after = keeper.status();
    let (new, changed) = (after.new_bytes - before.new_bytes, records * RECORD_BYTES);
    let per = if changed > 0 {
        format!(", {:.2} for each changed", new as f64 / changed as f64)
    } else {
        String::new()
    };
    println!("{what}: {:.2} MB shipped{per}; {} more points", mb(new), after.points - before.points);
    Ok(())
}

/// Does something while the log is kept.
fn beside<T: Send>(keeper: &mut LogKeeper<'_>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            let done = work();
            is_done.store(true, Ordering::Release);
            done
        });
        keeper.run(EVERY, |_, _| !is_done.load(Ordering::Acquire))?;
        working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Restores the newest commit of the point, and one in its middle.
fn restore(saved: &Path, dir: &Path, kept: LogKept) -> Result<()> {
    let repository = Repository::open(saved)?;
    for commit in [kept.commit, kept.first_commit + (kept.commit - kept.first_commit) / 2] {
        let (out, started) = (dir.join(format!("at-{commit}.azk")), Instant::now());
        repository.restore(Which::Commit(commit), &out, |_| {})?;
        let restored = started.elapsed();
        drop(Options::new().open(&out)?.open_table("t")?);
        println!("commit {commit}: restored in {restored:.2?}, open after {:.2?}", started.elapsed());
    }
    Ok(())
}

/// Commits a second of a writer alone and beside the keeper: durable ones of one record, and others of many.
fn loss(db: &Db, table: &Table, keeper: &mut LogKeeper<'_>, records: u64) -> Result<()> {
    for (what, durability, batch) in
        [("durable", Durability::Sync, 1), ("eventual, of 1,000 records,", Durability::Eventual, 1000)]
    {
        for _ in 0..TURNS {
            let written = AtomicU64::new(0);
            let write = || {
                let (started, before) = (Instant::now(), written.load(Ordering::Relaxed));
                while started.elapsed() < WATCHED {
                    let mut txn = db
                        .write_with(WriteOptions { durability: Some(durability), ..WriteOptions::default() });
                    let from = written.fetch_add(batch, Ordering::Relaxed);
                    for n in from..from + batch {
                        txn.put(table, &random(n * 31 % records).to_be_bytes(), &n.to_be_bytes())?;
                    }
                    txn.commit()?;
                }
                let commits = (written.load(Ordering::Relaxed) - before) / batch;
                Ok(commits as f64 / started.elapsed().as_secs_f64())
            };
            let alone = write()?;
            let before = keeper.status();
            let with = beside(keeper, write)?;
            let after = keeper.status();
            println!(
                "{what} commits: {alone:.0}/s alone, {with:.0}/s beside the keeper, {:+.1} %; {:.1} MB shipped, \
                 {} more points",
                (with / alone - 1.0) * 100.0,
                mb(after.new_bytes - before.new_bytes),
                after.points - before.points
            );
        }
    }
    Ok(())
}
