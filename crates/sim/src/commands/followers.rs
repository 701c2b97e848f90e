//! Followers: several processes read a file that another writes, each at its own pace. They judge each
//! snapshot by the plan. It is the whole of one commit, never older than the snapshot before. It stays the
//! same however long it is held, while the writer replaces, merges, moves and cuts.
//!
//! In half of the rounds most writers have limits for what followers keep. A snapshot may become too old
//! there, and it is right until then.
//!
//! Meanwhile readers are killed and stopped (SIGKILL, SIGSTOP), fork, and hold snapshots. The writer is
//! killed and stopped too, and a new one comes. In the end all readers are gone, and so must be their pins:
//! the next writer gets all space back, and finds nothing wrong.

use crate::followers::plan::{KEYS, TABLES, key_bytes, table_of, value};
use crate::followers::reader::TOO_OLD;
use crate::followers::writer::newest;
use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::watchdog::Watchdog;
use azekura::{Db, Options};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a database is written and read, and how much longer for each reader: all of them get to read.
const ROUND_MS: u64 = 400;
const READER_MS: u64 = 20;
/// How many readers there are in most rounds, and in some.
const READERS_MAX: u64 = 6;
const MANY_READERS: u64 = 64;
/// One in so many rounds has many.
const MANY_PART: u64 = 40;
/// How long readers may take beyond their time. The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// A file without readers has at most this many times the bytes of its records, and so many more.
const LOOSE: u64 = 2;
const LOOSE_BYTES: u64 = 256 << 10;

/// The limits, and how many readers there are.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Arguments {
    #[command(flatten)]
    limits: Limits,
    /// So many readers of each database, instead of a few and now and then 64.
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..=1000))]
    readers: Option<u64>,
}

/// Totals for the notes.
#[derive(Default)]
struct Totals {
    commits: AtomicU64,
    readers: AtomicU64,
    killed: AtomicU64,
    too_old: AtomicU64,
    writers: AtomicU64,
    pins_max: AtomicU64,
}

/// Follows databases until the run ends.
pub fn run(arguments: &Arguments) -> Verdict {
    let run = Run::new(&arguments.limits, "followed databases");
    let watchdog = Watchdog::start(240);
    let totals = Totals::default();
    run.on_all_processors(|n| {
        watchdog.at(format!("database {n}"));
        let mut rng = Rng::of(run.seed, n);
        let seed = rng.number();
        let some = if rng.one_in(MANY_PART) { MANY_READERS } else { 1 + rng.below(READERS_MAX) };
        let readers = arguments.readers.unwrap_or(some);
        let result = Round::new(seed, n).and_then(|mut round| round.live(&mut rng, readers, &totals));
        run.outcome(format!("database {n}"), result);
    });
    let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
    run.note(format!(
        "{} commits of {} writers; {} followers, of which {} were killed, and {} had snapshots that were too \
         old; up to {} pins at once",
        get(&totals.commits),
        get(&totals.writers),
        get(&totals.readers),
        get(&totals.killed),
        get(&totals.too_old),
        get(&totals.pins_max)
    ));
    run.verdict()
}

/// One database with its processes.
struct Round {
    folder: PathBuf,
    path: PathBuf,
    seed: u64,
    writer: Option<Child>,
    readers: Vec<Child>,
    life: u64,
}

impl Drop for Round {
    fn drop(&mut self) {
        for child in self.readers.iter_mut().chain(&mut self.writer) {
            // A process that has ended by itself cannot be killed.
            let _ended = child.kill();
            let _waited = child.wait();
        }
        // What cannot be removed from the temporary folder is left to the system.
        let _left = std::fs::remove_dir_all(&self.folder);
    }
}

/// Whether a reader has found nothing wrong.
fn has_ended_well(status: ExitStatus, totals: &Totals) -> bool {
    let is_too_old = status.code() == Some(i32::from(TOO_OLD));
    totals.too_old.fetch_add(u64::from(is_too_old), Ordering::Relaxed);
    is_too_old || status.success()
}

/// Stops or continues a process.
fn signal(child: &Child, name: &str) {
    let mut command = Command::new("kill");
    // A process that has just ended gets no signal.
    let _gone = command.args([name, &child.id().to_string()]).stderr(Stdio::null()).status();
}

impl Round {
    fn new(seed: u64, n: u64) -> Result<Round, String> {
        let folder = std::env::temp_dir().join(format!("azekura-followers-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let path = folder.join("followed.azk");
        Ok(Round { folder, path, seed, writer: None, readers: Vec::new(), life: 0 })
    }

    fn start(&self, name: &str, words: &[u64]) -> Result<Child, String> {
        let mut command = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
        command.arg(name).arg(&self.path).arg(self.seed.to_string());
        command.args(words.iter().map(u64::to_string)).stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().map_err(|e| format!("starting {name}: {e}"))
    }

    fn start_writer(&mut self, totals: &Totals) -> Result<(), String> {
        self.life += 1;
        totals.writers.fetch_add(1, Ordering::Relaxed);
        self.writer = Some(self.start("following-writer", &[self.life])?);
        Ok(())
    }

    fn start_reader(&mut self, rng: &mut Rng, ms: u64, totals: &Totals) -> Result<(), String> {
        totals.readers.fetch_add(1, Ordering::Relaxed);
        let reader = self.start("following-reader", &[rng.number(), ms])?;
        self.readers.push(reader);
        Ok(())
    }

    fn live(&mut self, rng: &mut Rng, readers: u64, totals: &Totals) -> Result<(), String> {
        let ms = ROUND_MS + readers * READER_MS;
        self.start_writer(totals)?;
        for _ in 0..readers {
            self.start_reader(rng, ms, totals)?;
        }
        let until = Instant::now() + Duration::from_millis(ms);
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1 + rng.below(40)));
            self.disturb(rng, until, totals)?;
        }
        self.end_readers(totals)?;
        self.kill_writer()?;
        self.judge(totals)
    }

    /// Kills or stops somebody.
    fn disturb(&mut self, rng: &mut Rng, until: Instant, totals: &Totals) -> Result<(), String> {
        let one = usize::try_from(rng.below(self.readers.len() as u64)).unwrap_or(0);
        let pause = Duration::from_millis(rng.below(50));
        match rng.below(10) {
            0 | 1 => {
                let mut reader = self.readers.swap_remove(one);
                let _ended = reader.kill();
                let status = reader.wait().map_err(|e| format!("a reader: {e}"))?;
                if status.code().is_some() && !has_ended_well(status, totals) {
                    return Err(format!("a reader has ended: {status}"));
                }
                totals.killed.fetch_add(1, Ordering::Relaxed);
                let left = until.saturating_duration_since(Instant::now()).as_millis();
                self.start_reader(rng, u64::try_from(left).unwrap_or(1), totals)
            }
            2 | 3 => {
                signal(&self.readers[one], "-STOP");
                std::thread::sleep(pause);
                signal(&self.readers[one], "-CONT");
                Ok(())
            }
            4 => {
                let Some(writer) = &self.writer else { return Ok(()) };
                signal(writer, "-STOP");
                std::thread::sleep(pause);
                signal(writer, "-CONT");
                Ok(())
            }
            5 => {
                let pins = Options::new().follow(true).open(&self.path).map_or(0, |db| db.stats().pins.len());
                totals.pins_max.fetch_max(pins as u64, Ordering::Relaxed);
                self.kill_writer()?;
                self.start_writer(totals)
            }
            _ => Ok(()),
        }
    }

    fn kill_writer(&mut self) -> Result<(), String> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        let status = writer.kill().and_then(|()| writer.wait()).map_err(|e| format!("the writer: {e}"))?;
        if status.code().is_some() { Err(format!("the writer ended by itself: {status}")) } else { Ok(()) }
    }

    /// Waits for all readers, and for what they say.
    fn end_readers(&mut self, totals: &Totals) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while let Some(reader) = self.readers.last_mut() {
            match reader.try_wait().map_err(|e| format!("a reader: {e}"))? {
                None if Instant::now() > until => return Err("a reader hangs".into()),
                None => std::thread::sleep(Duration::from_millis(2)),
                Some(status) if has_ended_well(status, totals) => drop(self.readers.pop()),
                Some(status) => return Err(format!("a reader has ended: {status}")),
            }
        }
        Ok(())
    }

    /// Opens the database when nobody has it any more.
    fn judge(&self, totals: &Totals) -> Result<(), String> {
        if !self.path.exists() {
            return Ok(());
        }
        let text = |e: azekura::Error| format!("afterwards: {e}");
        let db = Options::new().open(&self.path).map_err(text)?;
        let n = contents(&db, self.seed)?;
        totals.commits.fetch_add(n, Ordering::Relaxed);
        let report = db.check(|_| {}).map_err(text)?;
        if let Some(problem) = report.problems.first() {
            return Err(format!("check: {problem}"));
        }
        // Forked children may have the locks for some milliseconds more.
        let until = Instant::now() + PATIENCE;
        while !db.stats().pins.is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        db.shrink(|_| {}).map_err(text)?;
        let stats = db.stats();
        if !stats.pins.is_empty() || stats.pinned_bytes > 0 {
            return Err(format!("{} bytes are kept for {:?}", stats.pinned_bytes, stats.pins));
        }
        db.close().map_err(text)?;
        let bytes: usize =
            (0..KEYS).filter_map(|key| value(self.seed, key, n)).map(|value| value.len()).sum();
        length(&self.path, bytes as u64)
    }
}

/// Compares all that there is with the plan. Gives the number of the newest commit.
fn contents(db: &Db, seed: u64) -> Result<u64, String> {
    let tables: Vec<_> = TABLES.iter().filter_map(|(name, _)| db.open_table(name).ok()).collect();
    if tables.len() < TABLES.len() {
        return Ok(0);
    }
    let n = newest(&tables[0])?;
    for key in 0..KEYS {
        let found = tables[table_of(key)].get(key_bytes(key)).map_err(|e| format!("key {key}: {e}"))?;
        if found != value(seed, key, n) {
            return Err(format!("afterwards: key {key} at commit {n} is wrong"));
        }
    }
    Ok(n)
}

fn length(path: &Path, records: u64) -> Result<(), String> {
    let bytes = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
    let most = records * LOOSE + LOOSE_BYTES;
    if bytes <= most { Ok(()) } else { Err(format!("{bytes} bytes for {records} of records: space is lost")) }
}
