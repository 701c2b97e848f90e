//! `cargo xtask stress-tests`: runs every test of the workspace many times, each run in a process of its own:
//! first alone, then beside busy loops, which shift the order of its threads. The next test is always the one
//! that has had the least time. So quick tests reach their count, and long ones share the rest of the time
//! equally.

mod binaries;

use crate::runner;
use binaries::Test;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The usage, for `cargo xtask`.
pub const USAGE: &str =
    "stress-tests [--count N] [--minutes M] [--busy LOOPS] [--only-busy] [--package P] [NAME]";

/// A test that takes longer is ended and has failed.
const HANG: Duration = Duration::from_secs(900);
/// How often to check whether a test has ended.
const POLL: Duration = Duration::from_millis(2);
/// How many of the tests that ran fewer times are named.
const FEWER_SHOWN: usize = 10;

/// What to run.
#[derive(Debug, PartialEq)]
struct Plan {
    /// How often each test runs alone, and how often beside the loops.
    count: u32,
    /// The time limit of each of these two phases.
    time: Duration,
    busy: usize,
    /// Whether to skip the phase without loops.
    only_busy: bool,
    package: Option<String>,
    /// A part of the names of the tests to run.
    name: String,
}

fn parse(arguments: &[String]) -> Option<Plan> {
    let minute = Duration::from_secs(60);
    let mut plan =
        Plan { count: 100, time: 60 * minute, busy: 2, only_busy: false, package: None, name: String::new() };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--count" => plan.count = words.next()?.parse().ok().filter(|count| *count > 0)?,
            "--minutes" => {
                let minutes: f64 = words.next()?.parse().ok()?;
                plan.time = Duration::try_from_secs_f64(minutes * 60.0).ok()?;
            }
            "--busy" => plan.busy = words.next()?.parse().ok()?,
            "--only-busy" => plan.only_busy = true,
            "--package" => plan.package = Some(words.next()?.clone()),
            name if !name.starts_with('-') && plan.name.is_empty() => name.clone_into(&mut plan.name),
            _ => return None,
        }
    }
    Some(plan).filter(|plan| plan.busy > 0 || !plan.only_busy)
}

impl Plan {
    /// How many loops run beside the tests, for each phase.
    fn phases(&self) -> Vec<usize> {
        match (self.busy, self.only_busy) {
            (0, _) => vec![0],
            (busy, true) => vec![busy],
            (busy, false) => vec![0, busy],
        }
    }
}

/// Runs the tests. The last line is `N passed, N failed`.
pub fn run(arguments: &[String]) -> ExitCode {
    let Some(plan) = parse(arguments) else {
        eprintln!("Usage: cargo xtask {USAGE}");
        return ExitCode::from(2);
    };
    match stress(&plan) {
        Ok((passed, failed)) => {
            println!("{passed} passed, {failed} failed");
            if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(reason) => {
            println!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// The results of one test.
#[derive(Clone, Default)]
struct Tally {
    runs: u32,
    failed: u32,
    time: Duration,
}

/// Runs the tests. Returns how many runs passed and how many failed.
fn stress(plan: &Plan) -> Result<(u64, u64), String> {
    let mut tests = binaries::tests(plan.package.as_deref())?;
    tests.retain(|test| test.label().contains(&plan.name));
    if tests.is_empty() {
        return Err("no test has such a name".into());
    }
    let kept = kept_dir();
    std::fs::create_dir_all(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    println!(
        "{} tests, {} times each, in {} minutes at most",
        tests.len(),
        plan.count,
        plan.time.as_secs() / 60
    );
    let mut totals = (0, 0);
    for busy in plan.phases() {
        let title = if busy == 0 { "alone".to_owned() } else { format!("beside {busy} busy loops") };
        println!("\n{title}");
        let tallies = beside(busy, || run_all(plan, &tests, &kept, &title))?;
        report(plan, &tests, &tallies);
        for tally in &tallies {
            totals.0 += u64::from(tally.runs - tally.failed);
            totals.1 += u64::from(tally.failed);
        }
    }
    println!();
    Ok(totals)
}

/// The folder for the output of failures.
fn kept_dir() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    runner::root().join(target).join("stress-tests")
}

/// Runs `work` while loops keep processors busy.
fn beside<R>(loops: usize, work: impl FnOnce() -> R) -> R {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..loops {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = work();
        over.store(true, Ordering::Relaxed);
        result
    })
}

fn run_all(plan: &Plan, tests: &[Test], kept: &Path, title: &str) -> Result<Vec<Tally>, String> {
    let mut tallies = vec![Tally::default(); tests.len()];
    let end = Instant::now() + plan.time;
    let mut runs = 0;
    let phase = title.replace(' ', "-");
    while let Some(at) = next(&tallies, plan.count).filter(|_| Instant::now() < end) {
        let (test, tally) = (&tests[at], &mut tallies[at]);
        // A unique name, among all runs of this and other calls. A run that passes removes its file.
        let name = format!("{}-{}-{phase}-{}.txt", test.file_name(), std::process::id(), tally.runs + 1);
        let output = kept.join(name);
        let began = Instant::now();
        let verdict = run_one(test, &output)?;
        tally.time += began.elapsed();
        tally.runs += 1;
        runs += 1;
        match verdict {
            None => drop(std::fs::remove_file(&output)),
            Some(how) => {
                tally.failed += 1;
                clear_progress();
                println!("  {} {how} {title}: {}", test.label(), output.display());
            }
        }
        progress(&format!(
            "  {runs} runs, {} s left",
            end.saturating_duration_since(Instant::now()).as_secs()
        ));
    }
    clear_progress();
    Ok(tallies)
}

/// The next test: of those that have not reached their count, the one that has had the least time.
fn next(tallies: &[Tally], count: u32) -> Option<usize> {
    let due = (0..tallies.len()).filter(|&at| tallies[at].runs < count);
    due.min_by_key(|&at| (tallies[at].time, tallies[at].runs))
}

/// Runs a test. Returns how it failed, if it did.
fn run_one(test: &Test, output: &Path) -> Result<Option<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", test.label());
    let file = File::create(output).map_err(failed)?;
    let mut command = Command::new(&test.program);
    command.args(["--exact", &test.name, "--nocapture"]).current_dir(&test.folder).env("AZEKURA_CANARY", "");
    command.env("CARGO_MANIFEST_DIR", &test.folder).stdin(Stdio::null());
    command.stdout(file.try_clone().map_err(failed)?).stderr(file);
    let mut child = command.spawn().map_err(failed)?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok((!status.success()).then(|| format!("failed ({status})")));
        }
        if began.elapsed() > HANG {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Ok(Some(format!("was ended after {} s", HANG.as_secs())));
        }
        std::thread::sleep(POLL);
    }
}

/// Prints which tests failed how often, and which ran too few times.
fn report(plan: &Plan, tests: &[Test], tallies: &[Tally]) {
    let runs: u64 = tallies.iter().map(|tally| u64::from(tally.runs)).sum();
    println!("  {runs} runs of {} tests", tests.len());
    for (test, tally) in tests.iter().zip(tallies).filter(|(_, tally)| tally.failed > 0) {
        println!("  {:>4} of {:>4} failed  {}", tally.failed, tally.runs, test.label());
    }
    let mut fewer: Vec<_> = tests.iter().zip(tallies).filter(|(_, tally)| tally.runs < plan.count).collect();
    fewer.sort_by_key(|(_, tally)| tally.runs);
    if !fewer.is_empty() {
        println!("  {} tests ran fewer times, as the time was over:", fewer.len());
    }
    for (test, tally) in fewer.iter().take(FEWER_SHOWN) {
        println!("  {:>4} of {:>4} times   {}", tally.runs, plan.count, test.label());
    }
    if fewer.len() > FEWER_SHOWN {
        println!("  and {} more", fewer.len() - FEWER_SHOWN);
    }
}

fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r{text}\x1b[K");
    }
}

fn clear_progress() {
    progress("");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn orders_are_read() {
        let plan = parse(&words("--count 7 --minutes 0.5 --package sim cut")).expect("a plan");
        assert_eq!((plan.count, plan.time, plan.busy), (7, Duration::from_secs(30), 2));
        assert_eq!((plan.package.as_deref(), plan.name.as_str()), (Some("sim"), "cut"));
        assert_eq!(parse(&[]).map(|plan| (plan.count, plan.phases())), Some((100, vec![0, 2])));
        assert_eq!(parse(&words("--only-busy")).map(|plan| plan.phases()), Some(vec![2]));
        assert_eq!(parse(&words("--busy 0")).map(|plan| plan.phases()), Some(vec![0]));
        for wrong in
            ["--count", "--count 0", "--minutes -1", "--minutes x", "--what", "a b", "--only-busy --busy 0"]
        {
            assert_eq!(parse(&words(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn long_tests_get_what_quick_ones_leave() {
        let takes = [1, 1, 50, 100].map(Duration::from_millis);
        let mut tallies = vec![Tally::default(); takes.len()];
        let mut rest = Duration::from_millis(420);
        while let Some(at) = next(&tallies, 10) {
            let Some(left) = rest.checked_sub(takes[at]) else { break };
            rest = left;
            tallies[at].time += takes[at];
            tallies[at].runs += 1;
        }
        assert_eq!(tallies.iter().map(|tally| tally.runs).collect::<Vec<_>>(), [10, 10, 4, 2]);
    }
}
