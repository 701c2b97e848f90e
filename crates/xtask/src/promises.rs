//! The gate of the promises: the commands of the crate `sim` with small counts. Each ends with the line
//! `tried N violations M seed X`. A command fails if M is not 0 or if N is too small.

use crate::runner::{self, Failure, cargo};
use std::process::Command;
use std::time::Instant;

/// The build of the tests and these commands: the engine with its canaries. None is active unless the
/// environment picks one. So one build serves all of them. The bench runs the engine as users have it.
pub const FLAGS: &str = "--cfg azekura_canary";

/// A command of cargo that builds or checks, with the flags and the profile of the tests. So all of them
/// share procedural macros, build scripts and what these compile (the peers' shims in C++). The test command
/// is run from nothing where it counts, and then incremental builds cost more than they save.
pub fn built(words: &[&str]) -> Command {
    let mut command = cargo();
    command.args(words).args(["--profile", "test"]).env("RUSTFLAGS", FLAGS).env("CARGO_INCREMENTAL", "0");
    command
}

/// One command, and how much it must have tried.
struct Gate {
    arguments: &'static str,
    tried_min: u64,
    /// The canary that is picked: none, or `fuzzing`, with which checksums are ignored.
    canary: &'static str,
}

const GATES: [Gate; 13] = [
    Gate { arguments: "crash --count 90000 --seconds 200 --seed 1", tried_min: 80_000, canary: "" },
    Gate { arguments: "crash --only bulk --count 400 --seconds 10 --seed 1", tried_min: 40, canary: "" },
    Gate { arguments: "backup --count 300 --seconds 8 --seed 1", tried_min: 60, canary: "" },
    Gate { arguments: "errors --count 3000 --seconds 20 --seed 1", tried_min: 200, canary: "" },
    Gate { arguments: "flips --count 10000 --seconds 25 --seed 1", tried_min: 1_000, canary: "" },
    Gate {
        arguments: "flips --every-bit --part 12/100 --count 8000 --seconds 8 --seed 1",
        tried_min: 500,
        canary: "",
    },
    Gate { arguments: "salvage --count 150 --seconds 15 --seed 1", tried_min: 20, canary: "" },
    Gate { arguments: "metamorphic --count 400 --seconds 20 --seed 1", tried_min: 20, canary: "" },
    // The commands above serve as controls.
    Gate { arguments: "canaries --no-controls --seed 1", tried_min: 14, canary: "" },
    Gate { arguments: "kills --count 100 --seconds 60", tried_min: 100, canary: "" },
    Gate { arguments: "isolation --count 100 --seconds 20", tried_min: 40, canary: "" },
    Gate { arguments: "soak --seconds 12", tried_min: 10_000, canary: "" },
    Gate { arguments: "fuzz --count 60000 --seconds 20", tried_min: 10_000, canary: "fuzzing" },
];

/// Runs all commands. Returns their last lines.
pub fn run() -> Result<Vec<String>, Failure> {
    GATES.iter().map(hold).collect()
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
    command.env("RUSTFLAGS", "--cfg loom").env("CARGO_INCREMENTAL", "0");
    let (passed, outcome) = runner::run_keeping(command, |line| line.starts_with("test result: ok"));
    outcome?;
    match passed.iter().any(|line| !line.contains(" 0 passed")) {
        true => Ok(()),
        false => Err("no model ran".into()),
    }
}

fn hold(gate: &Gate) -> Result<String, Failure> {
    let mut command = built(&["run"]);
    command.args(["--quiet", "--package", "sim", "--"]).env("AZEKURA_CANARY", gate.canary);
    command.args(gate.arguments.split(' '));
    println!("sim {}", gate.arguments);
    let started = Instant::now();
    let (lines, outcome) = runner::run_keeping(command, |line| line.starts_with("tried "));
    outcome?;
    let last = lines.last().ok_or_else(|| format!("sim {}: no verdict", gate.arguments))?;
    let tried = tried(last).ok_or_else(|| format!("sim {}: what does {last:?} say?", gate.arguments))?;
    if tried < gate.tried_min {
        return Err(format!("sim {}: {tried} tried, {} are due", gate.arguments, gate.tried_min));
    }
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
    #[test]
    fn verdicts_are_read() {
        assert_eq!(super::tried("tried 28 violations 0 seed 1"), Some(28));
        assert_eq!(super::tried("tried 28 violations 1 seed 1"), None);
        assert_eq!(super::tried("tried"), None);
    }
}
