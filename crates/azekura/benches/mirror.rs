//! What mirrors cost: how late commits come to one, and what the writer loses.
//!
//! `cargo bench -p azekura --bench mirror [-- late | loss [DIRECTORY [COMMITS A SECOND]]]` writes records of
//! 8 + 8 bytes under random keys, to a database in a directory of its own that it removes. A thread mirrors it
//! there.

use azekura::{CopyOptions, Db, Durability, Mirror, MirrorStatus, Options, Table, TableKind};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Failure>;

const COMMITS_A_SECOND: u64 = 100_000;
const SECONDS: u64 = 30;
const RECORDS: u64 = 4_000_000;
/// The log is written so often.
const DELAY: Duration = Duration::from_millis(2);
/// How long the writer at full speed is watched, alone and beside a mirror, and how often in turn.
const WATCHED: Duration = Duration::from_secs(3);
const TURNS: usize = 3;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let only = arguments.first().map_or("", String::as_str);
    let dir = arguments.get(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let rate = arguments.get(2).map_or(Ok(COMMITS_A_SECOND), |text| text.parse())?;
    let dir = dir.join(format!("azekura-mirror-{}", std::process::id()));
    fs::create_dir(&dir)?;
    let late = || if only == "loss" { Ok(()) } else { late(&dir, rate) };
    let loss = || if only == "late" { Ok(()) } else { loss(&dir) };
    let measured = late().and_then(|()| loss());
    fs::remove_dir_all(&dir)?;
    measured
}

fn random(n: u64) -> u64 {
    let x = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn filled(path: &Path) -> Result<(Db, Table)> {
    let options = Options::new().durability(Durability::Eventual).eventual_delay(DELAY);
    let db = Db::open(path, options)?;
    let table = db.table("t", TableKind::Ordered)?;
    for from in (0..RECORDS).step_by(100_000) {
        table.put_many(
            (from..from + 100_000).map(|n| ((random(n) % RECORDS).to_be_bytes(), n.to_be_bytes())),
        )?;
    }
    db.flush()?;
    Ok((db, table))
}

/// A mirror that goes on until the end of `work`, and tells how it is.
fn mirrored<T>(
    path: &Path,
    to: &Path,
    mut told: impl FnMut(&MirrorStatus) + Send,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mut mirror = Mirror::open(path, to, CopyOptions::default())?;
    mirror.run(|status| !status.is_level())?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            mirror.run(|status| {
                told(status);
                !over.load(Ordering::Relaxed)
            })
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        done
    })
}

/// How long after its commit a record is in the mirror, durably.
fn late(dir: &Path, rate: u64) -> Result<()> {
    let (path, to) = (dir.join("late.azk"), dir.join("late-mirror.azk"));
    let (db, table) = filled(&path)?;
    let mut probe = Mirror::open(&path, &to, CopyOptions::default())?;
    probe.run(|status| !status.is_level())?;
    let base = probe.status().commit;
    drop(probe);
    let count = rate * SECONDS;
    let began = Instant::now();
    let now = || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let times: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
    let mut lags: Vec<u64> = Vec::new();
    let (mut seen, mut slow) = (0, 0u64);
    let mut told = |status: &MirrorStatus| {
        let there = status.commit.saturating_sub(base).min(count);
        let at = now();
        for n in seen..there {
            let lag = at - times[usize::try_from(n).unwrap_or(0)].load(Ordering::Relaxed);
            lags.push(lag);
            slow = slow.max(lag);
        }
        seen = there;
    };
    let took = mirrored(&path, &to, &mut told, || {
        let began = Instant::now();
        for n in 0..count {
            if n % 100 == 0 {
                let due = Duration::from_nanos(n * 1_000_000_000 / rate);
                std::thread::sleep(due.saturating_sub(began.elapsed()));
            }
            times[usize::try_from(n)?].store(now(), Ordering::Relaxed);
            table.put((random(n * 31) % RECORDS).to_be_bytes(), n.to_be_bytes())?;
        }
        let took = began.elapsed();
        std::thread::sleep(Duration::from_secs(1));
        Ok(took)
    })?;
    lags.sort_unstable();
    let at = |part: f64| lags[((lags.len() - 1) as f64 * part) as usize] as f64 / 1e6;
    println!(
        "{:.0} commits/s for {SECONDS} s, {} of {count} mirrored: late by {:.1} ms (half), {:.1} (p99), {:.1} (p99.9), \
         {:.1} (longest)",
        count as f64 / took.as_secs_f64(),
        lags.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    db.close()?;
    Ok(())
}

/// Commits a second of a writer at full speed, alone and beside a mirror.
fn loss(dir: &Path) -> Result<()> {
    let (path, to) = (dir.join("loss.azk"), dir.join("loss-mirror.azk"));
    let (db, table) = filled(&path)?;
    for (what, records) in [("a record", 1), ("1000 records", 1000)] {
        for _ in 0..TURNS {
            let alone = commits(&db, &table, records)?;
            let beside = mirrored(&path, &to, |_| {}, || commits(&db, &table, records))?;
            println!(
                "commits of {what}: {alone:.0}/s alone, {beside:.0}/s beside a mirror, {:+.1} %",
                (beside / alone - 1.0) * 100.0
            );
        }
    }
    db.close()?;
    Ok(())
}

fn commits(db: &Db, table: &Table, records: u64) -> Result<f64> {
    let began = Instant::now();
    let mut done = 0u64;
    while began.elapsed() < WATCHED {
        for _ in 0..100 / records.min(100) {
            let mut txn = db.write();
            for n in 0..records {
                let key = random(done * 1000 + n) % RECORDS;
                txn.put(table, &key.to_be_bytes(), &done.to_be_bytes())?;
            }
            txn.commit()?;
            done += 1;
        }
    }
    Ok(done as f64 / began.elapsed().as_secs_f64())
}
