//! How much goes to a mirror: for what was changed, and for a bulk load.

use super::{DELAY, Result, TURNS, Way, random, streaming};
use azekura::{CopyOptions, Db, Durability, Mirror, MirrorPipe, MirrorStatus, Options, Table, TableKind};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::ChildStdout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Records of which one in so many is updated, or appended, and those of a bulk.
const SHIPPED_RECORDS: u64 = 10_000_000;
const CHANGED_PART: u64 = 100;
const BULK_RECORDS: u64 = 10_000_000;
const BULK_BATCH: u64 = 65_536;
const RECORD_BYTES: u64 = 16;
/// Idle time in which the writer flushes, merges and moves what it has.
const IDLE: Duration = Duration::from_secs(5);

/// A mirror, and what comes out of its pipe, if it has one.
struct Kept {
    mirror: Mirror,
    came: Came,
}

#[derive(Clone)]
struct Came(Option<Arc<AtomicU64>>);

impl Came {
    fn bytes(&self, status: &MirrorStatus) -> u64 {
        self.0.as_ref().map_or(status.copied_bytes, |came| came.load(Ordering::Relaxed))
    }
}

/// Counts what comes out of a pipe.
struct Counted(ChildStdout, Arc<AtomicU64>);

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.read(buf)?;
        self.1.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl Kept {
    fn open(path: &Path, to: &Path, way: Way) -> Result<Kept> {
        if way == Way::File {
            return Ok(Kept { mirror: Mirror::open(path, to, CopyOptions::default())?, came: Came(None) });
        }
        let ((ask, answers), came) = (streaming(path)?, Arc::new(AtomicU64::new(0)));
        let pipe = MirrorPipe::new(Counted(answers, came.clone()), ask)?;
        Ok(Kept { mirror: pipe.mirror(to, CopyOptions::default())?, came: Came(Some(came)) })
    }
}

/// Bytes that go to a mirror for those that were changed.
pub(super) fn shipped(dir: &Path, way: Way) -> Result<()> {
    println!("shipped, {way:?}");
    let (path, to) = (dir.join("shipped.azk"), dir.join("shipped-mirror.azk"));
    let db = Db::open(&path, Options::new().durability(Durability::Eventual).eventual_delay(DELAY))?;
    let table = db.table("t", TableKind::Ordered)?;
    put(&db, &table, SHIPPED_RECORDS, BULK_BATCH, random)?;
    db.compact()?;
    let mut mirror = Kept::open(&path, &to, way)?;
    let changed = SHIPPED_RECORDS / CHANGED_PART;
    ship(&mut mirror, &db, 0, 0, "built", || Ok(()))?;
    for (round, batch) in [(1, 1000), (2, 1)] {
        let updated = |n: u64| random((n * 97 + round) % SHIPPED_RECORDS);
        let appended = |n: u64| u64::MAX - round * changed + n;
        let (commits, of) = (changed / batch, format!("in commits of {batch}"));
        ship(&mut mirror, &db, commits, changed, &format!("1 % updated {of}"), || {
            put(&db, &table, changed, batch, updated)
        })?;
        ship(&mut mirror, &db, commits, changed, &format!("1 % appended {of}"), || {
            put(&db, &table, changed, batch, appended)
        })?;
    }
    ship(&mut mirror, &db, 0, 0, "merged into one level", || Ok(db.compact()?))?;
    db.close()?;
    Ok(())
}

fn put(db: &Db, table: &Table, count: u64, batch: u64, key: impl Fn(u64) -> u64) -> Result<()> {
    for from in (0..count).step_by(usize::try_from(batch)?) {
        let mut txn = db.write();
        for n in from..(from + batch).min(count) {
            txn.put(table, &key(n).to_be_bytes(), &random(!n).to_be_bytes())?;
        }
        txn.commit()?;
    }
    Ok(())
}

/// Does something beside a mirror, and says what has gone to it: until it has these commits and is level, and
/// in some idle time after that.
fn ship(
    Kept { mirror, came }: &mut Kept,
    db: &Db,
    commits: u64,
    records: u64,
    what: &str,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let (over, before, written) = (AtomicBool::new(false), mirror.status(), db.stats().written_bytes);
    let (mut level, came_before) = (None, came.bytes(&before));
    let ended = std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            mirror.run(|status| {
                let is_there = status.is_level() && status.commit >= before.commit + commits;
                if level.is_none() && over.load(Ordering::Relaxed) && is_there {
                    level = Some((Instant::now(), came.bytes(status) - came_before));
                }
                level.is_none_or(|(at, _)| at.elapsed() < IDLE)
            })
        });
        let done = work();
        let ended = Instant::now();
        over.store(true, Ordering::Relaxed);
        beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        done.map(|()| ended)
    })?;
    let (at, bytes) = level.ok_or("the mirror has never been level")?;
    let per = (records > 0).then(|| bytes as f64 / (records * RECORD_BYTES) as f64);
    let status = mirror.status();
    println!(
        "{what}: {:.2} MB shipped until it was level, {:.1} s later{}; {:.1} MB in idle time; {:.1} MB were moved within the \
         mirror, the database's own disk got {:.1} MB, and the file has {:.1} MB",
        mb(bytes),
        at.saturating_duration_since(ended).as_secs_f64(),
        per.map_or_else(String::new, |per| format!(", {per:.2} for each changed")),
        mb(came.bytes(&status) - came_before - bytes),
        mb(status.moved_bytes - before.moved_bytes),
        mb(db.stats().written_bytes - written),
        mb(db.stats().file_bytes)
    );
    Ok(())
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Loads many records, alone and beside a mirror, by commits that are flushed before they are logged, and by
/// such as are all logged.
pub(super) fn bulks(dir: &Path) -> Result<()> {
    for turn in 0..TURNS {
        for (durability, what) in [(Durability::Eventual, "runs alone"), (Durability::Sync, "all logged")] {
            for is_mirrored in [false, true] {
                let path = dir.join(format!("bulk-{turn}-{what}-{is_mirrored}.azk"));
                bulk(&path, durability, what, is_mirrored)?;
            }
        }
    }
    Ok(())
}

fn bulk(path: &Path, durability: Durability, what: &str, is_mirrored: bool) -> Result<()> {
    let db = Db::open(path, Options::new().durability(durability))?;
    let table = db.table("t", TableKind::Ordered)?;
    let load = || {
        let began = Instant::now();
        put(&db, &table, BULK_RECORDS, BULK_BATCH, random)?;
        db.sync()?;
        let stats = db.stats();
        let rate = BULK_RECORDS as f64 / began.elapsed().as_secs_f64() / 1e6;
        let (written, beside) =
            (mb(stats.written_bytes), if is_mirrored { "beside a mirror" } else { "alone" });
        println!("bulk, {what}, {beside}: {rate:.2}M records/s, {written:.0} MB written");
        Ok(())
    };
    if is_mirrored {
        let mut mirror = Kept::open(path, &path.with_extension("mirror"), Way::File)?;
        mirror.mirror.run(|status| !status.is_level())?;
        ship(&mut mirror, &db, BULK_RECORDS.div_ceil(BULK_BATCH), BULK_RECORDS, "  to the mirror", load)?;
    } else {
        load()?;
    }
    db.close()?;
    fs::remove_file(path)?;
    Ok(())
}
