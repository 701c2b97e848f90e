//! Real kills: a child process writes through the real file system, with several threads and random options.
//! It is killed (SIGKILL) at a random moment: while it opens, writes, flushes, compacts or closes.
//!
//! After each kill the database is opened with other options and compared with an oracle that survives the
//! kill. Every commit acknowledged as durable is there. Commits are whole over both tables. What is there was
//! begun. Eventual commits are a prefix in real time. `check` is clean, of the tables and of their indexes.
//! Some of these are made, dropped or given up when the kill comes. Sometimes the child falls silent before
//! it is killed. Then every eventual commit older than its delay is there. Locks are tried too. Beside a
//! writer nobody opens the file. Readers share it and change nothing.
//!
//! Beside it another process follows the feed of changes of its tables and keeps a copy of them. It is killed
//! too, before or after. After each kill the copy goes on from where it stands, and must be what the tables
//! are: none of the changes was lost, and none is told twice.
//!
//! A kill leaves the page cache alone, so this tests processes that die, not machines. For power cuts see
//! `crash`.

use crate::kills::child::{QUIET_DELAY, options};
use crate::kills::copier;
use crate::kills::oracle::Oracle;
use crate::kills::plan::{Model, WRITERS};
use crate::kills::verify::{Found, verify};
use crate::report::{Limits, Run, Verdict};
use crate::rng::Rng;
use crate::watchdog::Watchdog;
use azekura::{Db, Error, Options, TableKind};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many kills a database lives through before the next one takes its place.
const LIVES: u64 = 25;
/// How long a silent child is left alone beyond its delay, since the machine may be busy.
const SILENCE: Duration = Duration::from_millis(400);
/// The interval in which the disk is timed meanwhile, how many times that is, and how many times the longest
/// write's time the child gets in addition.
const PROBE: Duration = Duration::from_millis(20);
const PROBES: u128 = (QUIET_DELAY.as_millis() + SILENCE.as_millis()).div_ceil(PROBE.as_millis());
const PROBE_TIMES: u32 = 6;
/// No disk is this slow: this process was stopped during the write.
const PROBED_MAX: Duration = Duration::from_secs(10);
/// An opening that takes more looks than this is a hang. They take at least half a minute.
const HANG_LOOKS: u32 = 100_000;
const LOOK: Duration = Duration::from_micros(300);

/// Totals for the notes.
#[derive(Default)]
struct Totals {
    commits: AtomicU64,
    lost: AtomicU64,
    told: AtomicU64,
    openings: AtomicU64,
    opened_ms_max: AtomicU64,
}

/// Kills children until the run ends.
pub fn run(limits: &Limits) -> Verdict {
    let run = Run::new(limits, "kills");
    let watchdog = Watchdog::start(180);
    let totals = Totals::default();
    run.on_all_processors(|n| {
        let mut rng = Rng::of(run.seed, n);
        match Victim::new(rng.number(), n) {
            Ok(mut victim) => victim
                .live(&run, &mut rng, &totals, &|life| watchdog.at(format!("database {n}, life {life}"))),
            Err(e) => run.violation(format!("database {n}: {e}")),
        }
    });
    let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
    run.note(format!(
        "{} commits survived, {} eventual ones were lost; {} openings by children; the longest opening after a kill \
         took {} ms; {} changes were told after kills",
        get(&totals.commits),
        get(&totals.lost),
        get(&totals.openings),
        get(&totals.opened_ms_max),
        get(&totals.told)
    ));
    run.verdict()
}

/// One database, and all that is known about it.
struct Victim {
    folder: PathBuf,
    path: PathBuf,
    oracle: Oracle,
    seed: u64,
    models: [Model; WRITERS],
    before: Found,
}

impl Drop for Victim {
    fn drop(&mut self) {
        // What cannot be removed from the temporary folder is left to the system.
        let _left = std::fs::remove_dir_all(&self.folder);
    }
}

/// How a child dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// So long after its start, perhaps while it opens.
    AfterStart(Duration),
    /// So long after it opened the database.
    AfterOpening(Duration),
    /// After it has written for so long, and then waited for its commits to become durable.
    Silent(Duration),
}

impl Death {
    fn random(rng: &mut Rng) -> Death {
        let ms = |n| Duration::from_millis(n);
        match rng.below(24) {
            0..=4 => Death::AfterStart(Duration::from_micros(rng.below(12_000))),
            5 => Death::Silent(ms(10 + rng.below(40))),
            _ => Death::AfterOpening(ms(5 + rng.below(96))),
        }
    }
}

impl Victim {
    fn new(seed: u64, n: u64) -> Result<Victim, String> {
        let folder = std::env::temp_dir().join(format!("azekura-kills-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let oracle = Oracle::open(&folder.join("oracle")).map_err(|e| format!("the oracle: {e}"))?;
        let path = folder.join("killed.azk");
        Ok(Victim { folder, path, oracle, seed, models: Default::default(), before: [0; WRITERS] })
    }

    fn live(&mut self, run: &Run, rng: &mut Rng, totals: &Totals, at: &dyn Fn(u64)) {
        for life in 0..LIVES {
            if !run.goes_on() {
                return;
            }
            at(life);
            let death = Death::random(rng);
            let result = self.kill(life, death, rng, totals).and_then(|()| self.judge(death, rng, totals));
            let failed = result.is_err();
            run.outcome(format!("database seed {}, life {life}, {death:?}", self.seed), result);
            if failed {
                return;
            }
        }
    }

    /// Starts the reader of the feed.
    fn reader(&self, life: u64) -> Result<Child, String> {
        let mut command = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
        command.arg("killed-reader").arg(&self.path).arg(self.folder.join("copy.azk"));
        command.args([self.seed.to_string(), life.to_string()]).stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().map_err(|e| format!("starting the reader: {e}"))
    }

    /// Starts a child and the reader of its feed, and kills both.
    fn kill(&mut self, life: u64, death: Death, rng: &mut Rng, totals: &Totals) -> Result<(), String> {
        let mut reader = self.reader(life)?;
        let first = rng.one_in(4);
        let killed = self.kill_writer(life, death, first.then_some(&mut reader), totals);
        if !first {
            // It may meet the end of what the writer has left.
            std::thread::sleep(Duration::from_micros(rng.below(4000)));
        }
        let status = reader.kill().and_then(|()| reader.wait());
        let status = status.map_err(|e| format!("killing the reader: {e}"))?;
        killed?;
        if status.code().is_some() { Err(format!("the reader ended by itself: {status}")) } else { Ok(()) }
    }

    /// Starts a child and kills it, after the reader if there is one.
    fn kill_writer(
        &mut self,
        life: u64,
        death: Death,
        reader: Option<&mut Child>,
        totals: &Totals,
    ) -> Result<(), String> {
        let opened = self.oracle.opened().load(Ordering::SeqCst);
        self.oracle.quiet().store(0, Ordering::SeqCst);
        let mut command = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
        command.arg("killed-child").arg(&self.path).arg(self.folder.join("oracle"));
        command.args([self.seed.to_string(), life.to_string()]).stdin(Stdio::null()).stdout(Stdio::null());
        if let Death::Silent(writing) = death {
            command.arg("--quiet-after-ms").arg(writing.as_millis().to_string());
        }
        let mut child = command.spawn().map_err(|e| format!("starting the child: {e}"))?;
        let outcome = match death {
            Death::AfterStart(time) => wait(&mut child, time),
            Death::AfterOpening(time) => {
                let is_open = || self.oracle.opened().load(Ordering::SeqCst) > opened;
                wait_for(&mut child, is_open).and_then(|()| wait(&mut child, time))
            }
            Death::Silent(_) => {
                let is_quiet = || self.oracle.quiet().load(Ordering::SeqCst) != 0;
                wait_for(&mut child, is_quiet)
                    .and_then(|()| self.silence(&mut child))
                    .and_then(|()| self.locked())
            }
        };
        let killed = reader.map_or(Ok(()), Child::kill).and_then(|()| child.kill());
        let killed = killed.and_then(|()| child.wait());
        let status = killed.map_err(|e| format!("killing the child: {e}"))?;
        totals.openings.fetch_add(self.oracle.opened().load(Ordering::SeqCst) - opened, Ordering::Relaxed);
        outcome?;
        if status.code().is_some() { Err(format!("the child ended by itself: {status}")) } else { Ok(()) }
    }

    /// Leaves a silent child alone until its eventual commits must be durable: for its delay, for some time
    /// because the machine may be busy, and for the time of a few writes to the same disk.
    fn silence(&self, child: &mut Child) -> Result<(), String> {
        let text = |e: std::io::Error| format!("timing the disk: {e}");
        let mut probe = std::fs::File::create(self.folder.join("probe")).map_err(text)?;
        let mut longest = Duration::ZERO;
        // Waits are counted, and not the clock's time: while all processes are stopped, the child can do
        // nothing either.
        for _ in 0..PROBES {
            wait(child, PROBE)?;
            let began = Instant::now();
            probe.write_all(&[1; 4096]).and_then(|()| probe.sync_data()).map_err(text)?;
            longest = longest.max(began.elapsed());
        }
        wait(child, (longest * PROBE_TIMES).min(PROBED_MAX))
    }

    /// Checks that nobody opens the file while a child has it open. (A child that is not silent may be
    /// between two openings.)
    fn locked(&self) -> Result<(), String> {
        for read_only in [false, true] {
            match Options::new().create(false).read_only(read_only).open(&self.path) {
                Err(Error::Locked { .. }) => {}
                Err(e) => return Err(format!("opening beside a writer (read_only: {read_only}): {e}")),
                Ok(_) => return Err(format!("opened beside a writer (read_only: {read_only})")),
            }
        }
        Ok(())
    }

    /// Opens the database and compares it with the oracle.
    fn judge(&mut self, death: Death, rng: &mut Rng, totals: &Totals) -> Result<(), String> {
        if !self.path.exists() {
            return Ok(());
        }
        if rng.one_in(4) {
            self.read_only(rng)?;
        }
        let began = Instant::now();
        let db = options(rng).open(&self.path).map_err(|e| format!("opening after the kill: {e}"))?;
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        totals.opened_ms_max.fetch_max(ms, Ordering::Relaxed);
        if !matches!(options(rng).open(&self.path), Err(Error::Locked { .. })) {
            return Err("a second writer of the same process is not refused".into());
        }
        let found = verify(&db, &self.oracle, self.seed, &mut self.models)?;
        for (w, &n) in found.iter().enumerate() {
            let known = self.oracle.known(w);
            if matches!(death, Death::Silent(_)) && n != known.acknowledged {
                return Err(format!("writer {w}: {n} commits after a silence, {known:?}"));
            }
            totals.commits.fetch_add(n - self.before[w], Ordering::Relaxed);
            totals.lost.fetch_add(known.acknowledged.saturating_sub(n), Ordering::Relaxed);
            // What an opening has found is durable from then on.
            self.oracle.restart(w, n);
        }
        self.before = found;
        let told = copier::compare(&db, &self.folder.join("copy.azk"), self.seed, rng)?;
        totals.told.fetch_add(told, Ordering::Relaxed);
        if rng.one_in(2) {
            return db.close().map_err(|e| format!("closing after the kill: {e}"));
        }
        drop(db);
        Ok(())
    }

    /// Checks that readers replay the log in memory, share the file, keep writers out, and change nothing.
    fn read_only(&mut self, rng: &mut Rng) -> Result<(), String> {
        let before = std::fs::read(&self.path).map_err(|e| e.to_string())?;
        let open = |rng: &mut Rng| options(rng).read_only(true).open(&self.path);
        let reader: Db = match open(rng) {
            Ok(reader) => reader,
            // A file without a superblock: the kill came before the first one was whole.
            Err(Error::NotADatabase { .. }) if self.before == [0; WRITERS] => return Ok(()),
            Err(e) => return Err(format!("opening to read: {e}")),
        };
        let other = open(rng).map_err(|e| format!("a second reader: {e}"))?;
        if !matches!(options(rng).open(&self.path), Err(Error::Locked { .. })) {
            return Err("a writer beside readers is not refused".into());
        }
        let found = verify(&reader, &self.oracle, self.seed, &mut self.models)?;
        if verify(&other, &self.oracle, self.seed, &mut self.models)? != found {
            return Err("two readers see different states".into());
        }
        if reader.create_table("no", TableKind::Hash).is_ok() || reader.flush().is_ok() {
            return Err("a reader writes".into());
        }
        drop((reader, other));
        let after = std::fs::read(&self.path).map_err(|e| e.to_string())?;
        if before == after { Ok(()) } else { Err("a reader has changed the file".into()) }
    }
}

/// Waits. Fails if the child ends meanwhile.
fn wait(child: &mut Child, time: Duration) -> Result<(), String> {
    std::thread::sleep(time);
    match child.try_wait() {
        Ok(None) => Ok(()),
        Ok(Some(status)) => Err(format!("the child ended by itself: {status}")),
        Err(e) => Err(format!("the child: {e}")),
    }
}

/// Waits until the child has done something. Fails if it ends or hangs.
fn wait_for(child: &mut Child, done: impl Fn() -> bool) -> Result<(), String> {
    // Looks are counted, and not the clock's time: while both processes are stopped, nobody hangs.
    for _ in 0..HANG_LOOKS {
        if done() {
            return Ok(());
        }
        wait(child, LOOK)?;
    }
    Err(format!("the child hangs: nothing after {HANG_LOOKS} looks, one each {LOOK:?}"))
}
