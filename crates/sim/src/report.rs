//! What all commands share: how long to go on, a progress bar, and the verdict.
//!
//! A command makes a [`Run`] from the [`Limits`], asks [`Run::goes_on`] before each trial, counts with
//! [`Run::tried`], reports with [`Run::violation`], and ends with [`Run::verdict`]. The run may be
//! shared by several threads.

use indicatif::{ProgressBar, ProgressStyle};
use std::fmt;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant, SystemTime};

/// Set by an interrupt. Runs then end after the current trial, with their verdict.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The first panic of the engine, in any thread, since the last call of `catch`, with its place.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Makes panics be remembered, besides being printed.
fn watch_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANIC.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(info.to_string());
        before(info);
    }));
}

/// Does some work. `Err` if the work, or a thread of the engine meanwhile, has panicked.
///
/// # Errors
/// The panic's message. With several trials at a time it may belong to another one.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    match (PANIC.lock().unwrap_or_else(|e| e.into_inner()).take(), done) {
        (None, Ok(value)) => Ok(value),
        (text, _) => Err(text.unwrap_or_else(|| "a panic that another trial has reported".into())),
    }
}

/// How long a run goes on. Without a count and a time it goes on until it is interrupted.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Limits {
    /// Stop after this many trials.
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Stop after this many seconds.
    #[arg(long, value_name = "S")]
    pub seconds: Option<u64>,
    /// Where random numbers begin; drawn from the clock, and printed, if it is not given.
    #[arg(long, value_name = "X")]
    pub seed: Option<u64>,
    /// Stop after this many violations: the first few say it all.
    #[arg(long, value_name = "M", default_value_t = 20)]
    pub violations: u64,
}

/// The result of a run. Its text is the last line that a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Verdict {
    /// Trials made.
    pub tried: u64,
    /// Trials that broke a promise.
    pub violations: u64,
    /// The seed that repeats them.
    pub seed: u64,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tried {} violations {} seed {}", self.tried, self.violations, self.seed)
    }
}

impl Verdict {
    /// Prints the last line and returns the exit status: 1 if a promise was broken or nothing was tried.
    pub fn exit(self) -> ExitCode {
        println!("{self}");
        if self.violations > 0 || self.tried == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// A run of trials.
pub struct Run {
    /// The seed of the run, for [`crate::rng::Rng::of`].
    pub seed: u64,
    count: u64,
    until: Option<Instant>,
    violations_max: u64,
    tried: AtomicU64,
    violations: AtomicU64,
    stopped: AtomicBool,
    bar: ProgressBar,
    first: Mutex<Option<String>>,
}

impl Run {
    /// Begins a run. `unit` names the trials in the progress bar, such as "crash images".
    pub fn new(limits: &Limits, unit: &'static str) -> Run {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            // Without a handler an interrupt ends the process at once, which does no harm.
            let _set = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
            watch_panics();
        });
        let seed = limits.seed.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            now.as_secs() % 1_000_000_000
        });
        Run {
            seed,
            count: limits.count.unwrap_or(u64::MAX),
            until: limits.seconds.map(|s| Instant::now() + Duration::from_secs(s)),
            violations_max: limits.violations,
            tried: AtomicU64::new(0),
            violations: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            bar: bar(limits, unit),
            first: Mutex::new(None),
        }
    }

    /// Whether another trial is wanted.
    pub fn goes_on(&self) -> bool {
        self.has_time() && self.tried.load(Ordering::Relaxed) < self.count
    }

    /// The same for a trial that belongs to others which were made: the count does not end these.
    pub fn has_time(&self) -> bool {
        let over = self.until.is_some_and(|until| Instant::now() >= until);
        !over
            && !self.stopped.load(Ordering::Relaxed)
            && !INTERRUPTED.load(Ordering::Relaxed)
            && self.violations.load(Ordering::Relaxed) < self.violations_max
    }

    /// Whether the run has no limits.
    pub fn is_endless(&self) -> bool {
        self.count == u64::MAX && self.until.is_none()
    }

    /// Ends the run: nothing is left to try.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Counts trials.
    pub fn tried(&self, n: u64) {
        let tried = self.tried.fetch_add(n, Ordering::Relaxed) + n;
        self.bar.set_position(tried);
    }

    /// How many trials were counted.
    pub fn tried_so_far(&self) -> u64 {
        self.tried.load(Ordering::Relaxed)
    }

    /// Counts a broken promise, and prints on standard error how it was broken.
    pub fn violation(&self, what: impl fmt::Display) {
        self.violations.fetch_add(1, Ordering::Relaxed);
        let text = format!("VIOLATION (seed {}): {what}", self.seed);
        self.bar.suspend(|| eprintln!("{text}"));
        self.first.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(text);
    }

    /// Counts a trial, and reports its error if there is one.
    pub fn outcome(&self, name: impl fmt::Display, result: Result<(), String>) {
        self.tried(1);
        if let Err(e) = result {
            self.violation(format!("{name}: {e}"));
        }
    }

    /// Prints a line of figures to standard output.
    pub fn note(&self, line: impl fmt::Display) {
        self.bar.suspend(|| println!("{line}"));
    }

    /// The first violation, for tests that expect none.
    pub fn first_violation(&self) -> Option<String> {
        self.first.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Ends the run.
    pub fn verdict(self) -> Verdict {
        self.bar.finish_and_clear();
        Verdict { tried: self.tried.into_inner(), violations: self.violations.into_inner(), seed: self.seed }
    }

    /// Calls `work` for each number below `total`, on as many threads as there are processors. False if the
    /// run has ended before all were done.
    pub fn each(&self, total: u64, work: impl Fn(u64) + Sync) -> bool {
        let done = AtomicU64::new(0);
        let next = AtomicU64::new(0);
        on_threads(&|| {
            while self.goes_on() {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= total {
                    return;
                }
                self.guarded(n, &work);
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
        done.into_inner() == total
    }

    /// Calls `work` with ever new numbers, on as many threads as there are processors, until the run ends.
    /// Trial `n` must depend only on the seed and `n`.
    pub fn on_all_processors(&self, work: impl Fn(u64) + Sync) {
        let next = AtomicU64::new(0);
        on_threads(&|| {
            while self.goes_on() {
                self.guarded(next.fetch_add(1, Ordering::Relaxed), &work);
            }
        });
    }

    /// Calls `work`. A panic is a violation.
    fn guarded(&self, n: u64, work: &impl Fn(u64)) {
        if let Err(panic) = catch(|| work(n)) {
            self.violation(format!("trial {n}: {panic}"));
        }
    }
}

/// Calls `work` on as many threads as there are processors.
fn on_threads(work: &(impl Fn() + Sync)) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(work);
        }
    });
}

/// A bar if the number of trials is known, else a count. Nothing unless standard error is a terminal.
fn bar(limits: &Limits, unit: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match limits.count {
        Some(count) => (ProgressBar::new(count), "{bar:30} {pos} of {len} {prefix}, {per_sec}, {eta} left"),
        None => (ProgressBar::no_length(), "{spinner} {pos} {prefix}, {per_sec}, {elapsed}"),
    };
    // The templates are constants. Without its style a bar still counts.
    let styled = match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    };
    styled.with_prefix(unit)
}
