//! What mirrors cost: how late commits come to one, what the writer loses, and how much is shipped.
//!
//! `cargo bench -p azekura --bench mirror [-- late | full | durable | loss | sync | shipped | bulk
//! [file | pipe [DIRECTORY [COMMITS A SECOND]]]]` writes records of 8 + 8 bytes under random keys, to a
//! database in a directory of its own that it removes. What mirrors it there is a thread (`file`), or two
//! processes with a pipe between them (`pipe`), as `azekura follow` and `azekura stream` are. A record is
//! late by the time from when its commit has returned until it is in the mirror, durably and to be read.
//! Commits are not durable when they return (`late`, and `full`, at full speed), or they are (`durable`).
//! `sync`: durable commits without a mirror, beside one, and beside one for which they wait. `shipped`: bytes
//! that went to the mirror for those that were changed; through a pipe, all that came out of it. `bulk` (by a
//! thread alone): a load without the log, as it is, and one of which all is logged.

#[path = "mirror/shipped.rs"]
mod shipped;

use azekura::{CopyOptions, Db, Durability, Mirror, MirrorPipe, Options, Table, TableKind, WriteOptions};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
/// For how long commits are made as fast as can be, and how many at most.
const FAST: Duration = Duration::from_secs(10);
const FAST_MAX: u64 = 20_000_000;

/// How the mirror reaches its source.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    File,
    Pipe,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let of = |n: usize| arguments.get(n).map_or("", String::as_str);
    match of(0) {
        "stream" => return Ok(stream(Path::new(of(1)))?),
        "follow" => return follow(Path::new(of(1)), Path::new(of(2)), of(3) == "sync"),
        _ => {}
    }
    let dir = arguments.get(2).map_or_else(std::env::temp_dir, PathBuf::from);
    let rate = arguments.get(3).map_or(Ok(COMMITS_A_SECOND), |text| text.parse())?;
    let dir = dir.join(format!("azekura-mirror-{}", std::process::id()));
    let ways = [(Way::File, "file"), (Way::Pipe, "pipe")];
    for (way, _) in ways.iter().filter(|(_, name)| of(1).is_empty() || of(1) == *name) {
        fs::create_dir(&dir)?;
        let is_wanted = |what: &str| of(0).is_empty() || of(0) == what;
        let measured = (|| {
            if is_wanted("late") {
                late(&dir, *way, rate)?;
            }
            if is_wanted("full") {
                fast(&dir, *way, Durability::Eventual, "eventual")?;
            }
            if is_wanted("durable") {
                fast(&dir, *way, Durability::Sync, "durable")?;
            }
            if is_wanted("loss") {
                loss(&dir, *way)?;
            }
            if is_wanted("sync") {
                synchronous(&dir, *way)?;
            }
            if is_wanted("shipped") {
                shipped::shipped(&dir, *way)?;
            }
            if is_wanted("bulk") && *way == Way::File { shipped::bulks(&dir) } else { Ok(()) }
        })();
        fs::remove_dir_all(&dir)?;
        measured?;
    }
    Ok(())
}

/// The nice value of both processes, that of `azekura follow` and `azekura stream`.
const NICE: i32 = 5;

fn give_way() {
    let _kept = rustix::process::setpriority_process(None, NICE);
}

/// The process at the source's end of the pipe.
fn stream(path: &Path) -> azekura::Result<()> {
    give_way();
    let (mut asked, mut answers) = (std::io::stdin().lock(), std::io::stdout().lock());
    match azekura::stream_mirror(path, &mut asked, &mut answers, &mut |_| {}) {
        // The other end is killed when all was measured.
        Err(azekura::Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Starts it, and gives what it is asked and what it answers.
fn streaming(path: &Path) -> Result<(ChildStdin, ChildStdout)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("stream").arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut streaming = command.spawn()?;
    streaming.stdin.take().zip(streaming.stdout.take()).ok_or_else(|| "no pipe".into())
}

/// The process at the mirror's end of the pipe. It says which commit the mirror has when, a line each.
fn follow(path: &Path, to: &Path, synchronous: bool) -> Result<()> {
    give_way();
    let (ask, answers) = streaming(path)?;
    let pipe = MirrorPipe::new(answers, ask)?;
    let mut mirror = pipe.mirror(to, CopyOptions::default())?;
    mirror.synchronous(synchronous);
    let mut out = std::io::stdout().lock();
    let mut last = (0, false);
    mirror.run(|status| {
        let now = (status.commit, status.is_level());
        if now == last {
            return true;
        }
        last = now;
        // Whoever hears it has gone: then it ends.
        writeln!(out, "{} {} {}", now.0, u8::from(now.1), nanos()).and_then(|()| out.flush()).is_ok()
    })?;
    Ok(())
}

/// The time, as two processes know it.
fn nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
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

/// Which commit a mirror has, and when that was so.
type Told<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// A mirror that goes on until the end of `work`, and tells how it is.
fn mirrored<T>(
    path: &Path,
    to: &Path,
    way: Way,
    told: Told<'_>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    mirrored_so((path, to), way, false, told, work)
}

/// The same. `synchronous`: durable commits wait for it.
fn mirrored_so<T>(
    files: (&Path, &Path),
    way: Way,
    synchronous: bool,
    told: Told<'_>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    match way {
        Way::File => by_thread(files, synchronous, told, work),
        Way::Pipe => by_processes(files, synchronous, told, work),
    }
}

fn by_thread<T>(
    (path, to): (&Path, &Path),
    synchronous: bool,
    told: Told<'_>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mut mirror = Mirror::open(path, to, CopyOptions::default())?;
    mirror.synchronous(synchronous);
    mirror.run(|status| !status.is_level())?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            mirror.run(|status| {
                told(status.commit, nanos());
                !over.load(Ordering::Relaxed)
            })
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        done
    })
}

/// Ends a process when it is dropped.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn by_processes<T>(
    (path, to): (&Path, &Path),
    synchronous: bool,
    told: Told<'_>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("follow").arg(path).arg(to).arg(if synchronous { "sync" } else { "" }).stdout(Stdio::piped());
    let mut following = Ends(command.spawn()?);
    let mut lines = BufReader::new(following.0.stdout.take().ok_or("no output")?).lines();
    let said = |line: std::io::Result<String>| {
        let line = line?;
        let mut numbers = line.split(' ').map(str::parse::<u64>);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(commit)), Some(Ok(level)), Some(Ok(at))) => Ok((commit, level == 1, at)),
            _ => Err(Failure::from(format!("the mirror says {line:?}"))),
        }
    };
    while !said(lines.next().ok_or("the mirror has ended")?)?.1 {}
    std::thread::scope(|scope| {
        let hearing = scope.spawn(move || {
            for line in lines {
                let (commit, _, at) = said(line)?;
                told(commit, at);
            }
            Ok::<(), Failure>(())
        });
        let done = work();
        drop(following);
        hearing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        done
    })
}

/// When each commit has returned, and how late it came to the mirror.
struct Lags {
    base: u64,
    returned: Vec<AtomicU64>,
}

impl Lags {
    /// REQUIRES: the next commit is the first that is measured.
    fn new(path: &Path, to: &Path, count: u64) -> Result<Lags> {
        let mut probe = Mirror::open(path, to, CopyOptions::default())?;
        probe.run(|status| !status.is_level())?;
        let returned = (0..count).map(|_| AtomicU64::new(0)).collect();
        Ok(Lags { base: probe.status().commit, returned })
    }

    fn returned(&self, n: u64) {
        if let Some(at) = usize::try_from(n).ok().and_then(|n| self.returned.get(n)) {
            at.store(nanos(), Ordering::Relaxed);
        }
    }

    /// How late commits came, in milliseconds, from the shortest to the longest. Those that had not returned
    /// when they were in the mirror were not late.
    fn of(&self, came: &[(u64, u64)]) -> Vec<f64> {
        let (mut seen, mut lags) = (0, Vec::new());
        for (commit, at) in came {
            let there =
                usize::try_from(commit.saturating_sub(self.base)).unwrap_or(0).min(self.returned.len());
            for returned in &self.returned[seen.min(there)..there] {
                let returned = returned.load(Ordering::Relaxed);
                lags.push(if returned == 0 { 0.0 } else { at.saturating_sub(returned) as f64 / 1e6 });
            }
            seen = seen.max(there);
        }
        lags.sort_unstable_by(f64::total_cmp);
        lags
    }
}

fn print(what: &str, way: Way, commits: f64, count: u64, lags: &[f64]) {
    let at =
        |part: f64| lags.get((lags.len().saturating_sub(1) as f64 * part) as usize).copied().unwrap_or(0.0);
    println!(
        "{way:?}: {commits:.0} {what} commits/s, {} of {count} mirrored: late by {:.1} ms (half), {:.1} (p99), \
         {:.1} (p99.9), {:.1} (longest)",
        lags.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

/// How late commits come that one thread makes at a rate, and that are not durable when they return.
fn late(dir: &Path, way: Way, rate: u64) -> Result<()> {
    let (path, to) = (dir.join("late.azk"), dir.join("late-mirror.azk"));
    let (db, table) = filled(&path)?;
    let count = rate * SECONDS;
    let lags = Lags::new(&path, &to, count)?;
    let mut came = Vec::new();
    let took = mirrored(&path, &to, way, &mut |commit, at| came.push((commit, at)), || {
        let began = Instant::now();
        for n in 0..count {
            if n % 100 == 0 {
                let due = Duration::from_nanos(n * 1_000_000_000 / rate);
                std::thread::sleep(due.saturating_sub(began.elapsed()));
            }
            table.put((random(n * 31) % RECORDS).to_be_bytes(), n.to_be_bytes())?;
            lags.returned(n);
        }
        let took = began.elapsed();
        std::thread::sleep(Duration::from_secs(1));
        Ok(took)
    })?;
    print("eventual", way, count as f64 / took.as_secs_f64(), count, &lags.of(&came));
    db.close()?;
    Ok(())
}

/// How late commits come that one thread makes as fast as it can.
fn fast(dir: &Path, way: Way, durability: Durability, what: &str) -> Result<()> {
    let (path, to) = (dir.join(format!("{what}.azk")), dir.join(format!("{what}-mirror.azk")));
    let (db, table) = filled(&path)?;
    let lags = Lags::new(&path, &to, FAST_MAX)?;
    let mut came = Vec::new();
    let options = WriteOptions { durability: Some(durability), ..WriteOptions::default() };
    let (made, took) = mirrored(&path, &to, way, &mut |commit, at| came.push((commit, at)), || {
        let (began, mut n) = (Instant::now(), 0);
        while began.elapsed() < FAST && n < FAST_MAX {
            let mut txn = db.write_with(options);
            txn.put(&table, &(random(n) % RECORDS).to_be_bytes(), &n.to_be_bytes())?;
            txn.commit()?;
            lags.returned(n);
            n += 1;
        }
        let took = began.elapsed();
        std::thread::sleep(Duration::from_secs(1));
        Ok((n, took))
    })?;
    print(what, way, made as f64 / took.as_secs_f64(), made, &lags.of(&came));
    db.close()?;
    Ok(())
}

/// Commits a second of a writer at full speed, alone and beside a mirror.
fn loss(dir: &Path, way: Way) -> Result<()> {
    let (path, to) = (dir.join("loss.azk"), dir.join("loss-mirror.azk"));
    let (db, table) = filled(&path)?;
    for (what, records) in [("a record", 1), ("1000 records", 1000)] {
        for _ in 0..TURNS {
            let alone = commits(&db, &table, records)?;
            let beside = mirrored(&path, &to, way, &mut |_, _| {}, || commits(&db, &table, records))?;
            println!(
                "{way:?}: commits of {what}: {alone:.0}/s alone, {beside:.0}/s beside a mirror, {:+.1} %",
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

/// Durable commits a second of some threads, alone, beside a mirror, and beside one for which they wait.
fn synchronous(dir: &Path, way: Way) -> Result<()> {
    let (path, to) = (dir.join("sync.azk"), dir.join("sync-mirror.azk"));
    let (db, table) = filled(&path)?;
    for threads in [1, 8] {
        for _ in 0..TURNS {
            let work = || durable_commits(&db, &table, threads);
            let alone = work()?;
            let beside = mirrored(&path, &to, way, &mut |_, _| {}, work)?;
            let waiting = mirrored_so((&path, &to), way, true, &mut |_, _| {}, work)?;
            println!(
                "{way:?}: durable commits of {threads} threads: {alone:.0}/s alone, {beside:.0}/s beside a mirror, \
                 {waiting:.0}/s waiting for it ({} of all did not)",
                db.stats().unmirrored_commits
            );
        }
    }
    db.close()?;
    Ok(())
}

fn durable_commits(db: &Db, table: &Table, threads: u64) -> Result<f64> {
    let options = WriteOptions { durability: Some(Durability::Sync), ..WriteOptions::default() };
    let (began, count) = (Instant::now(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let write = || {
            while began.elapsed() < WATCHED {
                let n = count.fetch_add(1, Ordering::Relaxed);
                let mut txn = db.write_with(options);
                txn.put(table, &(random(n) % RECORDS).to_be_bytes(), &n.to_be_bytes())?;
                txn.commit()?;
            }
            Ok::<(), Failure>(())
        };
        let writing: Vec<_> = (0..threads).map(|_| scope.spawn(write)).collect();
        writing
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}
