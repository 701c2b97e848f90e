//! `cargo xtask schedules`: the engine under shuttle (`crates/azekura/tests/schedules`). At each lock,
//! atomic, wait and call to the disk, shuttle decides which thread goes on. A schedule that failed is kept in
//! a file, and can be run again.

use crate::promises;
use crate::runner::{self, Failure, cargo};
use std::process::{Command, ExitCode, Stdio};

/// Each test runs two kinds of schedules: random ones, and as many by PCT.
const KINDS: u64 = 2;
/// Schedules of each kind and test in the test command.
const GATE_EACH: u64 = 150;
/// How many schedules must be enough to notice a fault, which ends the run.
const FAULT_EACH: u64 = 3000;
/// Faults of the engine in these builds, and the test that must notice each.
const CANARIES: [(&str, &str); 7] = [
    ("publish_first", "group_commits"),
    ("late_snapshot", "snapshots"),
    ("skip_sync", "durable_commits_beside_a_flush"),
    ("replace_blindly", "chunks_that_are_merged"),
    ("ignore_pins", "what_a_follower_has_pinned"),
    ("revoke_silently", "what_was_revoked"),
    ("read_once", "what_a_follower_has_pinned"),
];
/// The text after the number of schedules in a test's line.
const COUNTED: &str = " schedules from seed ";

/// What to run.
struct Orders {
    count: u64,
    seed: u64,
    /// A file with a schedule to run again, and its test.
    replay: Option<(String, String)>,
}

/// The usage, for `cargo xtask`.
pub const USAGE: &str = "schedules [--count N] [--seed X] [--replay FILE TEST]";

/// Runs the schedules. The last line is `tried N violations M seed X`.
pub fn run(arguments: &[String]) -> ExitCode {
    let Some(orders) = parse(arguments) else {
        eprintln!("Usage: cargo xtask {USAGE}");
        return ExitCode::from(2);
    };
    match explore(&orders) {
        Ok(tried) => {
            println!("tried {tried} violations 0 seed {}", orders.seed);
            ExitCode::SUCCESS
        }
        Err((tried, failed, reason)) => {
            println!("{reason}\ntried {tried} violations {failed} seed {}", orders.seed);
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Option<Orders> {
    let mut orders = Orders { count: 100_000, seed: 1, replay: None };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--count" => orders.count = words.next()?.parse().ok()?,
            "--seed" => orders.seed = words.next()?.parse().ok()?,
            "--replay" => orders.replay = Some((words.next()?.clone(), words.next()?.clone())),
            _ => return None,
        }
    }
    Some(orders)
}

/// Runs the schedules, or one again. Returns how many were run. A failure has that number, how many tests
/// failed, and the reason.
fn explore(orders: &Orders) -> Result<u64, (u64, u64, Failure)> {
    let failed = |reason| (0, 1, reason);
    let mut command = test("--quiet");
    match &orders.replay {
        Some((file, name)) => {
            let file = std::fs::canonicalize(file).map_err(|error| failed(format!("{file}: {error}")))?;
            command.arg(name).env("AZEKURA_REPLAY", file);
        }
        None => {
            let tests = names().map_err(failed)?.len() as u64;
            command.env("AZEKURA_SCHEDULES", orders.count.div_ceil(tests * KINDS).to_string());
        }
    }
    command.env("AZEKURA_SEED", orders.seed.to_string());
    let (lines, outcome) =
        runner::run_keeping(command, |line| line.contains(COUNTED) || line.starts_with("test result: "));
    let tried = lines.iter().filter_map(|line| counted(line)).sum();
    match outcome {
        Ok(()) => Ok(tried),
        Err(reason) => {
            Err((tried, lines.iter().filter_map(|line| failures(line)).sum::<u64>().max(1), reason))
        }
    }
}

/// The part in the test command: some schedules, and the canaries.
pub fn gate() -> Result<String, Failure> {
    let count = names()?.len() as u64 * KINDS * GATE_EACH;
    let tried = explore(&Orders { count, seed: 1, replay: None }).map_err(|(_, _, reason)| reason)?;
    if tried < count {
        return Err(format!("{tried} schedules, {count} are due"));
    }
    // Each of these runs on one processor.
    std::thread::scope(|scope| {
        let tries = CANARIES.map(|(fault, name)| scope.spawn(move || notice(fault, name)));
        tries.into_iter().try_for_each(|one| one.join().map_err(|_| "a thread panicked".to_owned())?)
    })?;
    Ok(format!("schedules: tried {tried} violations 0 seed 1; {} faults noticed", CANARIES.len()))
}

/// Runs a test on a broken engine. It must run, and fail.
fn notice(fault: &str, name: &str) -> Result<(), Failure> {
    let mut command = test("--quiet");
    command.arg(name).env("AZEKURA_CANARY", fault).env("AZEKURA_SCHEDULES", FAULT_EACH.to_string());
    let output = command.stderr(Stdio::null()).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().find(|line| line.starts_with("test result: ")) {
        Some(line) if failures(line) == Some(1) => Ok(()),
        Some(_) => Err(format!("{name} does not notice the fault {fault}")),
        None => Err(format!("with the fault {fault} no test ran")),
    }
}

/// The names of the tests.
fn names() -> Result<Vec<String>, Failure> {
    let mut command = test("--quiet");
    command.arg("--list");
    let list = runner::capture(command)?;
    let names: Vec<String> =
        list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect();
    if names.is_empty() { Err("there is no schedule to run".into()) } else { Ok(names) }
}

/// The command for these tests, in a build of their own. Further arguments go to the tests.
fn test(verbosity: &str) -> Command {
    let mut command = cargo();
    command.args([
        "test",
        verbosity,
        "--package",
        "azekura",
        "--test",
        "schedules",
        "--target-dir",
        "target/shuttle",
    ]);
    command.args(["--", "--nocapture"]).env("RUSTFLAGS", "--cfg shuttle --cfg azekura_canary");
    command.envs(promises::MODELS);
    command.env_remove("AZEKURA_REPLAY").env("RUST_BACKTRACE", "0");
    command
}

/// The number in a line that counts schedules.
fn counted(line: &str) -> Option<u64> {
    let (before, _) = line.split_once(COUNTED)?;
    // The line may begin with the mark of a test that ended before.
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The number of failed tests, from a closing line.
fn failures(line: &str) -> Option<u64> {
    let (before, _) = line.split_once(" failed")?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_of_the_tests_are_read() {
        assert_eq!(super::counted("test a_b ... 80 schedules from seed 1"), Some(80));
        assert_eq!(super::counted(".80 schedules from seed 1"), Some(80));
        assert_eq!(super::counted("schedules"), None);
        let line = "test result: FAILED. 7 passed; 1 failed; 0 ignored; 0 measured";
        assert_eq!(super::failures(line), Some(1));
    }
}
