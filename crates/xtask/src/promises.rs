//! The gate of the promises: the commands of the crate `sim` with small counts. Each ends with the line
//! `tried N violations M seed X`; it fails if M is not 0, or N less than what is due.

use crate::runner::{self, Failure, cargo};

/// One command and how much it must have tried.
struct Gate {
    arguments: &'static str,
    tried_min: u64,
    build: Build,
}

/// What the command runs on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    /// The profile of the tests, which have just built the engine: optimised, with every assertion on.
    Tested,
    /// The same with checksums not believed, in a target directory of its own.
    Fuzzing,
}
use Build::{Fuzzing, Tested};

const GATES: [Gate; 9] = [
    Gate { arguments: "crash --count 300000 --seconds 150 --seed 1", tried_min: 200_000, build: Tested },
    Gate { arguments: "errors --count 3000 --seconds 45 --seed 1", tried_min: 200, build: Tested },
    Gate { arguments: "flips --count 10000 --seconds 30 --seed 1", tried_min: 1_000, build: Tested },
    Gate { arguments: "metamorphic --count 400 --seconds 30 --seed 1", tried_min: 20, build: Tested },
    Gate { arguments: "canaries --seed 1", tried_min: 12, build: Tested },
    Gate { arguments: "kills --count 100 --seconds 60", tried_min: 100, build: Tested },
    Gate { arguments: "isolation --count 100 --seconds 20", tried_min: 40, build: Tested },
    Gate { arguments: "soak --seconds 12", tried_min: 10_000, build: Tested },
    Gate { arguments: "fuzz --count 60000 --seconds 30", tried_min: 10_000, build: Fuzzing },
];

/// Runs them all; gives their last lines.
pub fn run() -> Result<Vec<String>, Failure> {
    GATES.iter().map(hold).collect()
}

/// The models of the lock-free cores, in a build of the engine alone on loom's atomics.
pub fn models() -> Result<(), Failure> {
    let mut command = cargo();
    command.args(["test", "--quiet", "--package", "azekura", "--lib", "--target-dir", "target/loom", "models"]);
    command.env("RUSTFLAGS", "--cfg loom");
    let (passed, outcome) = runner::run_keeping(command, |line| line.starts_with("test result: ok"));
    outcome?;
    match passed.iter().any(|line| !line.contains(" 0 passed")) {
        true => Ok(()),
        false => Err("no model ran".into()),
    }
}

fn hold(gate: &Gate) -> Result<String, Failure> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--profile", "test", "--package", "sim"]);
    if gate.build == Fuzzing {
        command.env("RUSTFLAGS", "--cfg fuzzing").args(["--target-dir", "target/fuzzing"]);
    }
    command.arg("--");
    command.args(gate.arguments.split(' '));
    println!("sim {}", gate.arguments);
    let (lines, outcome) = runner::run_keeping(command, |line| line.starts_with("tried "));
    outcome?;
    let last = lines.last().ok_or_else(|| format!("sim {}: no verdict", gate.arguments))?;
    let tried = tried(last).ok_or_else(|| format!("sim {}: what does {last:?} say?", gate.arguments))?;
    if tried < gate.tried_min {
        return Err(format!("sim {}: {tried} tried, {} are due", gate.arguments, gate.tried_min));
    }
    Ok(format!("sim {}: {last}", gate.arguments))
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
