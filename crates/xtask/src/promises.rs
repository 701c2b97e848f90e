//! The gate of the promises: the commands of the crate `sim` with small counts. Each ends with the line
//! `tried N violations M seed X`. A command fails if M is not 0 or if N is too small.

use crate::runner::{self, Failure, cargo};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The build of the tests and these commands: the engine with its faults. None is there unless the
/// environment picks one. So one build serves all of them. The bench runs the engine as users have it.
pub const FLAGS: &str = "--cfg azekura_canary";

/// A command of cargo that builds or checks, with the flags and the profile of the tests. So all of them
/// share procedural macros, build scripts and what these compile (the peers' shims in C++). The test command
/// is run from nothing where it counts, and then incremental builds cost more than they save.
pub fn built(words: &[&str]) -> Command {
    let mut command = cargo();
    command.args(words).args(["--profile", "test"]).env("RUSTFLAGS", FLAGS).envs(LEAN);
    command
}

/// No incremental builds, and no tables of lines: a panic says where without them.
const LEAN: [(&str, &str); 2] = [("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_TEST_DEBUG", "false")];

/// The profile of the builds with model checkers. Each runs for a few seconds, so little is optimised.
pub const MODELS: [(&str, &str); 3] = [
    ("CARGO_INCREMENTAL", "0"),
    ("CARGO_PROFILE_TEST_DEBUG", "false"),
    ("CARGO_PROFILE_TEST_OPT_LEVEL", "1"),
];

/// What the test command builds, all at once: the tests, and the libraries and programs that later steps run.
/// If tests are among what is built, cargo enables the features that they want of the crates they use. A
/// build of one package alone has other features, and would compile the engine again.
pub const EVERYTHING: [&str; 7] = ["--workspace", "--lib", "--tests", "--bin", "azekura", "--bin", "sim"];

/// Builds everything, and shows how it goes.
pub fn build() -> Result<(), Failure> {
    let mut command = built(&["build"]);
    command.args(EVERYTHING);
    runner::run(command)
}

/// The file of a program, as cargo names it. It is built if it is not there.
pub fn program(name: &str) -> Result<PathBuf, Failure> {
    file(&format!("program {name}"), |message| program_in(message, name))
}

/// The file of a shared library, as cargo names it. It is built if it is not there.
pub fn library(name: &str) -> Result<PathBuf, Failure> {
    file(&format!("library {name}"), |message| library_in(message, name))
}

/// What is found in one of cargo's messages.
fn file(what: &str, find: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, Failure> {
    let mut command = built(&["build"]);
    command.args(EVERYTHING).args(["--quiet", "--message-format", "json-render-diagnostics"]);
    let messages = runner::capture(command)?;
    messages.lines().find_map(find).ok_or_else(|| format!("cargo has named no {what}"))
}

/// The shared library in a message of cargo, if it is this one.
pub fn library_in(message: &str, name: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    if message.pointer("/target/name")? != name {
        return None;
    }
    let files = message.get("filenames")?.as_array()?.iter().filter_map(|file| file.as_str());
    let shared = [OsStr::new("so"), OsStr::new("dylib")];
    files.map(PathBuf::from).find(|file| file.extension().is_some_and(|kind| shared.contains(&kind)))
}

/// The file of a program in a message of cargo, if it is this one, and not its tests.
pub fn program_in(message: &str, name: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let is_it = message["reason"] == "compiler-artifact"
        && message["target"]["name"] == name
        && message["target"]["kind"][0] == "bin"
        && message["profile"]["test"] == false;
    is_it.then(|| message["executable"].as_str().map(PathBuf::from))?
}

/// One command, and how much it must have tried.
struct Gate {
    arguments: &'static str,
    tried_min: u64,
    /// The fault that is picked: none, or `fuzzing`, with which checksums are ignored.
    fault: &'static str,
}

/// What is run.
static GATES: [Gate; 17] = [
    Gate { arguments: "crash --count 90000 --seconds 200 --seed 1", tried_min: 80_000, fault: "" },
    Gate { arguments: "kills --count 100 --seconds 60", tried_min: 100, fault: "" },
    // The others serve as its controls.
    Gate { arguments: "canaries --no-controls --seed 1", tried_min: 19, fault: "" },
    Gate { arguments: "crash --only long --count 3000 --seconds 12 --seed 1", tried_min: 200, fault: "" },
    Gate { arguments: "crash --only bulk --count 400 --seconds 8 --seed 1", tried_min: 40, fault: "" },
    Gate { arguments: "backup --count 300 --seconds 8 --seed 1", tried_min: 60, fault: "" },
    Gate { arguments: "mirror --count 300 --seconds 5 --seed 1", tried_min: 60, fault: "" },
    Gate { arguments: "errors --count 3000 --seconds 20 --seed 1", tried_min: 200, fault: "" },
    Gate { arguments: "flips --count 10000 --seconds 25 --seed 1", tried_min: 1_000, fault: "" },
    Gate {
        arguments: "flips --every-bit --part 12/100 --count 8000 --seconds 8 --seed 1",
        tried_min: 500,
        fault: "",
    },
    Gate { arguments: "salvage --count 150 --seconds 15 --seed 1", tried_min: 20, fault: "" },
    Gate { arguments: "metamorphic --count 400 --seconds 20 --seed 1", tried_min: 20, fault: "" },
    Gate { arguments: "followers --count 12 --seconds 8", tried_min: 4, fault: "" },
    Gate { arguments: "followers --readers 64 --count 2 --seconds 8", tried_min: 1, fault: "" },
    Gate { arguments: "isolation --count 100 --seconds 20", tried_min: 40, fault: "" },
    Gate { arguments: "fuzz --count 60000 --seconds 20", tried_min: 10_000, fault: "fuzzing" },
    Gate { arguments: "soak --seconds 12", tried_min: 10_000, fault: "" },
];

/// Runs all commands, two at a time: they have a thread for each processor, and half of these wait. The last
/// one measures pauses, so it runs alone. Returns their last lines.
pub fn run() -> Result<Vec<String>, Failure> {
    let program = &program("sim")?;
    let (gates, alone) = GATES.split_at(GATES.len() - 1);
    let mut lines = hold_in_lanes(gates, program)?;
    for gate in alone {
        lines.push(hold_gate(gate, program)?);
    }
    Ok(lines)
}

/// Runs commands, two at a time. After a failure none is begun.
fn hold_in_lanes(gates: &[Gate], program: &Path) -> Result<Vec<String>, Failure> {
    let next = &AtomicUsize::new(0);
    let lane = || {
        let mut lines = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(gate) = gates.get(n) else { return Ok(lines) };
            let line = hold_gate(gate, program);
            lines.push((n, line.inspect_err(|_| next.store(gates.len(), Ordering::Relaxed))?));
        }
    };
    let lanes = std::thread::scope(|scope| {
        [scope.spawn(lane), scope.spawn(lane)]
            .map(|one| one.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())))
    });
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for lane in lanes {
        lane.map_or_else(|failure| failures.push(failure), |held| lines.extend(held));
    }
    if !failures.is_empty() {
        return Err(failures.join("; "));
    }
    lines.sort();
    Ok(lines.into_iter().map(|(_, line)| line).collect())
}

/// How long each command is run for, and from which seed.
#[derive(Debug, PartialEq, Eq)]
struct Longer {
    seconds: u32,
    seed: u64,
}

/// The usage, for `cargo xtask`.
pub const USAGE: &str = "promises [--seconds S] [--seed X]";

/// The same commands, each for as long as is asked, one after the other. Prints a table of what they tried.
pub fn run_longer(arguments: &[String]) -> ExitCode {
    let Some(longer) = Longer::parse(arguments) else {
        eprintln!("Usage: cargo xtask {USAGE}");
        return ExitCode::from(2);
    };
    match longer.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

impl Longer {
    fn parse(arguments: &[String]) -> Option<Longer> {
        let mut longer = Longer { seconds: 60, seed: 1 };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seconds" => longer.seconds = words.next()?.parse().ok().filter(|seconds| *seconds > 0)?,
                "--seed" => longer.seed = words.next()?.parse().ok()?,
                _ => return None,
            }
        }
        Some(longer)
    }

    fn run(&self) -> Result<(), Failure> {
        build()?;
        let program = &program("sim")?;
        let mut rows = Vec::new();
        let ran = GATES.iter().try_for_each(|gate| {
            let arguments = self.arguments(gate.arguments);
            // How much is tried is not the gate's, but the time's.
            let last = hold(&arguments, &Gate { tried_min: 1, ..*gate }, program)?;
            let tried = tried(&last).unwrap_or_default();
            rows.push(format!("| `sim {arguments}` | {tried} | 0 |"));
            Ok(())
        });
        println!("| command | tried | violations |\n|---|---:|---|");
        rows.iter().for_each(|row| println!("{row}"));
        ran
    }

    /// The arguments of a command, without its count, if it has an end otherwise.
    fn arguments(&self, arguments: &str) -> String {
        let is_timed = arguments.contains("--seconds");
        let mut words = arguments.split(' ');
        let mut out = Vec::new();
        while let Some(word) = words.next() {
            match word {
                "--seconds" | "--seed" => _ = words.next(),
                "--count" if is_timed => _ = words.next(),
                _ => out.push(word.to_owned()),
            }
        }
        if is_timed {
            out.push(format!("--seconds {}", self.seconds));
        }
        out.push(format!("--seed {}", self.seed));
        out.join(" ")
    }
}

/// Runs the models of the lock-free parts, in a build of the engine alone with loom's atomics.
pub fn models() -> Result<(), Failure> {
    let mut command = cargo();
    command.args([
        "test",
        "--quiet",
        "--package",
        "azekura",
        "--lib",
        "--target-dir",
        "target/loom",
        "models",
    ]);
    command.env("RUSTFLAGS", "--cfg loom").envs(MODELS);
    let (passed, outcome) = runner::run_keeping(command, |line| line.starts_with("test result: ok"));
    outcome?;
    match passed.iter().any(|line| !line.contains(" 0 passed")) {
        true => Ok(()),
        false => Err("no model ran".into()),
    }
}

/// Runs a command of the gate with these arguments. Gives its verdict.
fn hold(arguments: &str, gate: &Gate, program: &Path) -> Result<String, Failure> {
    let mut command = Command::new(program);
    command.current_dir(runner::root()).env("AZEKURA_CANARY", gate.fault);
    command.args(arguments.split(' '));
    println!("sim {arguments}");
    let (lines, outcome) = runner::run_keeping(command, |line| line.starts_with("tried "));
    outcome.map_err(|failure| format!("sim {arguments}: {failure}"))?;
    let last = lines.last().ok_or_else(|| format!("sim {arguments}: no verdict"))?;
    let tried = tried(last).ok_or_else(|| format!("sim {arguments}: what does {last:?} say?"))?;
    if tried < gate.tried_min {
        return Err(format!("sim {arguments}: {tried} tried, {} are due", gate.tried_min));
    }
    Ok(last.clone())
}

/// Runs a command as the gate has it. Gives what it was, its verdict, and how long it took.
fn hold_gate(gate: &Gate, program: &Path) -> Result<String, Failure> {
    let started = Instant::now();
    let last = hold(gate.arguments, gate, program)?;
    Ok(format!("sim {}: {last} ({:.0} s)", gate.arguments, started.elapsed().as_secs_f64()))
}

/// How much was tried, from the last line of a run without violations.
fn tried(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["tried", n, "violations", "0", "seed", _] => n.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Longer;

    #[test]
    fn longer_runs_have_the_time_and_the_seed_that_are_asked_for() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let longer = Longer::parse(&words("--seconds 90 --seed 7")).unwrap();
        assert_eq!(longer, Longer { seconds: 90, seed: 7 });
        let arguments = |line| longer.arguments(line);
        assert_eq!(
            arguments("crash --only long --count 3 --seconds 12 --seed 1"),
            "crash --only long --seconds 90 --seed 7"
        );
        assert_eq!(arguments("canaries --no-controls --seed 1"), "canaries --no-controls --seed 7");
        assert_eq!(arguments("try --count 5"), "try --count 5 --seed 7");
        for wrong in ["--seconds", "--seconds 0", "--seed x", "what"] {
            assert_eq!(Longer::parse(&words(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn programs_are_found_among_messages() {
        let message = r#"{"reason":"compiler-artifact","target":{"name":"sim","kind":["bin"]},
            "profile":{"test":false},"executable":"/p/target/debug/sim"}"#;
        assert_eq!(super::program_in(message, "sim"), Some("/p/target/debug/sim".into()));
        assert_eq!(super::program_in(message, "azekura"), None);
        for (word, other) in [("bin", "lib"), ("false", "true"), ("\"/p/target/debug/sim\"", "null")] {
            assert_eq!(super::program_in(&message.replace(word, other), "sim"), None, "{other}");
        }
        assert_eq!(super::program_in("not JSON", "sim"), None);
    }

    #[test]
    fn verdicts_are_read() {
        assert_eq!(super::tried("tried 28 violations 0 seed 1"), Some(28));
        assert_eq!(super::tried("tried 28 violations 1 seed 1"), None);
        assert_eq!(super::tried("tried"), None);
    }
}
