//! A long mixed load (ten minutes by default), for the promises that only time can break. No operation pauses
//! for more than 100 ms. Memory stays within the budget and does not creep. The file is no larger than its
//! data needs, and shrinks again. No file descriptor is lost.

use crate::memory;
use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::soak::expiring::{self, Size};
use crate::soak::gauges::{open_files, resident_bytes, slope};
use crate::soak::load::Load;
use azekura::{Db, Options, Stats};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Ten minutes.
const SECONDS: u64 = 600;
/// The longest pause that is promised.
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// The budget, in bytes.
const BUDGET: u64 = 48 << 20;
/// Memory of the process beside the budget: the program, stacks, what the allocator keeps, open transactions
/// (a batch is a third of a megabyte), and the fences of runs.
const BESIDE: u64 = 32 << 20;
/// Shorter runs are judged only for pauses, values and descriptors: memory and file have not settled yet, and
/// a slope cannot be told from noise.
const LONG: Duration = Duration::from_secs(120);
/// The most that memory may creep, in bytes a second: 36 MiB an hour.
const SLOPE_MAX: f64 = 10_240.0;
/// The file while it is overwritten all the time: the live bytes, as many dead ones, and what merges,
/// memtables and the log need meanwhile.
const FILE_FACTOR: u64 = 3;
const FILE_BESIDE: u64 = 96 << 20;
/// A file that is closed, compacted or left alone: at most this percentage of its records' bytes, and a
/// constant.
const REST_PERCENT: u64 = 130;
const REST_BESIDE: u64 = 64 << 10;
/// A file that is left alone reaches that within this time, also on a busy machine.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Threads of the load.
const THREADS: u64 = 3;

/// The limits, and whether records are to expire.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Arguments {
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    size: Size,
}

/// Runs the load and judges it.
pub fn run(arguments: &Arguments) -> Verdict {
    let (limits, size) = (&arguments.limits, arguments.size);
    let seconds = limits.seconds.unwrap_or(SECONDS);
    let run = Run::new(&Limits { seconds: Some(seconds), ..*limits }, "operations");
    let path = std::env::temp_dir().join(format!("azekura-soak-{}.azk", std::process::id()));
    let time = Duration::from_secs(seconds);
    let result = if size.ttl { expiring::run(&run, &path, time, size) } else { soak(&run, &path, time) };
    // After a failed soak the database tells no more than the message.
    let _gone = std::fs::remove_file(&path);
    if let Err(e) = result {
        run.violation(e);
    }
    run.verdict()
}

fn soak(run: &Run, path: &Path, time: Duration) -> Result<(), String> {
    let text = |e: azekura::Error| e.to_string();
    one_arena();
    let files_before = open_files();
    let resident_before = resident_bytes().unwrap_or(0);
    let db = Options::new().memory_bytes(BUDGET).open(path).map_err(text)?;
    let load = Load::new(db.clone()).map_err(text)?;
    let files_while = open_files();
    let Seen { samples, largest, fullest } = exercise(run, path, time, &db, &load)?;
    pauses(run, &load);
    budget(run, &samples, resident_before, time >= LONG);
    if open_files() != files_while {
        run.violation(format!("{files_while:?} files were open at the start, {:?} at the end", open_files()));
    }
    let raw_bytes_max = load.raw_bytes_max;
    drop(load);
    note_extremes(run, &fullest, &largest);
    if time >= LONG && largest.file_bytes > FILE_FACTOR * raw_bytes_max + FILE_BESIDE {
        run.violation(format!(
            "the file was {} bytes long for at most {raw_bytes_max} of records",
            largest.file_bytes
        ));
    }
    close_and_idle(run, path, db, largest.file_bytes)?;
    if open_files() != files_before {
        run.violation(format!("{files_before:?} files were open before, {:?} after closing", open_files()));
    }
    Ok(())
}

/// What was seen while the load ran.
struct Seen {
    /// Seconds since its beginning, and the memory that the process had.
    samples: Vec<(f64, f64)>,
    /// The statistics when the file was longest.
    largest: Stats,
    /// The memory, the statistics and the live memory when there was most of it.
    fullest: (u64, Stats, (usize, usize)),
}

/// Runs the load, and looks at memory and file four times a second.
fn exercise(run: &Run, path: &Path, time: Duration, db: &Db, load: &Load) -> Result<Seen, String> {
    let largest = db.stats();
    let mut seen = Seen { samples: Vec::new(), fullest: (0, largest.clone(), memory::live()), largest };
    let began = Instant::now();
    std::thread::scope(|s| {
        let processors = s.spawn(|| load.machine().watch_processors(&load.stop));
        let disk = s.spawn(|| load.machine().watch_disk(&path.with_extension("gauge"), &load.stop));
        let rngs = (0..THREADS).map(|n| Rng::of(run.seed, n));
        let threads: Vec<_> = rngs.map(|rng| s.spawn(|| load.run(rng))).collect();
        let mut counted = 0;
        while began.elapsed() < time && run.goes_on() && !threads.iter().any(|t| t.is_finished()) {
            std::thread::sleep(Duration::from_millis(250));
            let done = load.done.load(Ordering::Relaxed);
            run.tried(done - counted);
            counted = done;
            let (resident, stats) = (resident_bytes().unwrap_or(0), db.stats());
            seen.samples.push((began.elapsed().as_secs_f64(), resident as f64));
            if stats.file_bytes > seen.largest.file_bytes {
                seen.largest = stats.clone();
            }
            if resident > seen.fullest.0 {
                seen.fullest = (resident, stats, memory::live());
            }
        }
        load.stop.store(true, Ordering::Relaxed);
        let mut ended =
            threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err("a thread panicked".into())));
        let outcome = ended.find(Result::is_err).unwrap_or(Ok(()));
        let gauges = (processors.join(), disk.join());
        if !matches!(gauges, (Ok(Ok(())), Ok(Ok(())))) {
            return Err(format!("a gauge failed: {gauges:?}"));
        }
        outcome
    })?;
    Ok(seen)
}

/// Notes what memory was made of when it was fullest, and the file when it was longest.
fn note_extremes(run: &Run, fullest: &(u64, Stats, (usize, usize)), largest: &Stats) {
    let (large, small) = fullest.2;
    run.note(format!(
        "memory was fullest with {}; {} MiB were allocated in large pieces, {} in small ones (the cache is a mapping)",
        parts(&fullest.1),
        large >> 20,
        small >> 20
    ));
    run.note(format!("the file was longest with {}", parts(largest)));
}

/// Closes the database, opens it again, puts everything once more, and leaves it alone. The file is short
/// each time.
fn close_and_idle(run: &Run, path: &Path, db: Db, longest_bytes: u64) -> Result<(), String> {
    let text = |e: azekura::Error| e.to_string();
    let raw_bytes = raw_bytes(&db).map_err(text)?;
    let began = Instant::now();
    db.close().map_err(text)?;
    let length = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
    judge_length(run, &format!("closed in {:.1?}", began.elapsed()), length, raw_bytes);
    let db = Options::new().memory_bytes(BUDGET).open(path).map_err(text)?;
    drop(Load::new(db.clone()).map_err(text)?);
    idle(run, &db)?;
    file(run, &db, longest_bytes)?;
    db.close().map_err(text)
}

/// What memory and file are made of, in MiB.
fn parts(stats: &Stats) -> String {
    let mib = |bytes: u64| bytes >> 20;
    let runs: Vec<String> =
        stats.levels.iter().map(|l| format!("{} {}", &l.table[..1], mib(l.bytes))).collect();
    format!(
        "{} MiB of memtables, {} of cache, {} of log, {} of value segments, {} of holes, {} of runs ({})",
        mib(stats.memtable_bytes),
        mib(stats.cache_bytes),
        mib(stats.log_bytes),
        mib(stats.value_bytes),
        mib(stats.free_bytes),
        mib(stats.levels.iter().map(|l| l.bytes).sum()),
        runs.join(", ")
    )
}

/// Limits the allocator to one arena. The GNU allocator keeps what each of a dozen threads has freed for that
/// thread, which may be as much as is in use. The soak must measure what the engine uses.
fn one_arena() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const M_ARENA_MAX: std::ffi::c_int = -8;
        // SAFETY: the C library's function of this name has this type, and may be called at any time.
        unsafe extern "C" {
            safe fn mallopt(parameter: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
        }
        let _refused = mallopt(M_ARENA_MAX, 1);
    }
}

/// Checks that no operation takes longer than promised, without the time that the machine took.
fn pauses(run: &Run, load: &Load) {
    let slow = load.slowest();
    for s in slow.iter().filter(|s| s.left() > PAUSE_MAX) {
        run.violation(format!(
            "{} took {:?}, of which the machine took {:?}; threads were found so often running (R), waiting for the \
             disk (D), asleep (S): {}",
            s.what, s.took, s.taken, s.seen
        ));
    }
    let long = slow.iter().filter(|s| s.took > PAUSE_MAX).count();
    let own =
        slow.iter().filter(|s| s.took > PAUSE_MAX && s.took.saturating_sub(s.taken.own) <= PAUSE_MAX).count();
    let all = slow.iter().filter(|s| s.took > PAUSE_MAX && s.left() <= PAUSE_MAX).count();
    let worst = slow.first().map_or("none over 50 ms".to_owned(), |s| {
        format!("{} with {:?}, of which the machine took {:?}", s.what, s.took, s.taken)
    });
    run.note(format!(
        "longest operation: {worst}; {long} took over {PAUSE_MAX:?}: {own} by the wait of their own thread for a \
         processor or the disk, {} by that of another; the disk's longest write was {:.1?}",
        all - own,
        load.machine().slowest_write()
    ));
}

/// Checks that memory is within the budget, and does not grow in the second half of a long run.
fn budget(run: &Run, samples: &[(f64, f64)], before: u64, long: bool) {
    let most = samples.iter().map(|s| s.1).fold(0.0, f64::max) as u64;
    let own = most.saturating_sub(before);
    if long && own > BUDGET + BESIDE {
        run.violation(format!("{own} bytes of memory with a budget of {BUDGET}"));
    }
    let late = &samples[samples.len() / 2..];
    let seconds = late.last().zip(late.first()).map_or(0.0, |(b, a)| b.0 - a.0);
    let creep = slope(late);
    if long && creep > SLOPE_MAX {
        run.violation(format!("memory creeps by {creep:.0} bytes a second over {seconds:.0} s"));
    }
    run.note(format!(
        "memory: {:.1} MiB with a budget of {} MiB; slope in the second half {creep:.0} bytes/s over {seconds:.0} s",
        own as f64 / f64::from(1 << 20),
        BUDGET >> 20
    ));
}

/// Bytes of the keys and values of all tables.
fn raw_bytes(db: &Db) -> azekura::Result<u64> {
    let mut bytes = 0;
    for info in db.tables() {
        let mut cursor = db.open_table(&info.name)?.cursor()?;
        while let Some((key, value)) = cursor.next()? {
            bytes += (key.len() + value.len()) as u64;
        }
    }
    Ok(bytes)
}

/// The most bytes that a closed or idle file may have.
fn length_max(raw_bytes: u64) -> u64 {
    raw_bytes * REST_PERCENT / 100 + REST_BESIDE
}

fn judge_length(run: &Run, when: &str, bytes: u64, raw_bytes: u64) {
    if bytes > length_max(raw_bytes) {
        run.violation(format!("{when}: a file of {bytes} bytes for {raw_bytes} bytes of records"));
    }
    let part = bytes as f64 / raw_bytes.max(1) as f64;
    run.note(format!("{when}: a file of {} MiB, {part:.2} times its records", bytes >> 20));
}

/// Checks that a file that nobody writes shrinks to what its records need.
fn idle(run: &Run, db: &Db) -> Result<(), String> {
    let raw_bytes = raw_bytes(db).map_err(|e| e.to_string())?;
    let began = Instant::now();
    while db.stats().file_bytes > length_max(raw_bytes) && began.elapsed() < IDLE_MAX {
        std::thread::sleep(Duration::from_millis(20));
    }
    judge_length(run, &format!("idle for {:.1?}", began.elapsed()), db.stats().file_bytes, raw_bytes);
    Ok(())
}

/// Checks that the file is small when compacted, and sound.
fn file(run: &Run, db: &Db, file_max: u64) -> Result<(), String> {
    let raw_bytes = raw_bytes(db).map_err(|e| e.to_string())?;
    let report = db.shrink(|_| {}).map_err(|e| e.to_string())?;
    judge_length(run, "compacted", report.after_bytes, raw_bytes);
    let problems = db.check(|_| {}).map_err(|e| e.to_string())?.problems;
    if !problems.is_empty() {
        run.violation(format!("check says {problems:?}"));
    }
    run.note(format!("file: at most {} MiB while written", file_max >> 20));
    Ok(())
}
