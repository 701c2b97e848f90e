//! The gate of the promises: the commands of the crate `sim` with small counts. Each ends with the line
//! `tried N violations M seed X`; it fails if M is not 0, or N less than what is due.

use crate::runner::{self, Failure, cargo};

/// One command and how much it must have tried.
struct Gate {
    arguments: &'static str,
    tried_min: u64,
}

const GATES: [Gate; 5] = [
    Gate { arguments: "crash --count 920000 --seconds 200 --seed 1", tried_min: 200_000 },
    Gate { arguments: "errors --count 3000 --seconds 45 --seed 1", tried_min: 200 },
    Gate { arguments: "flips --count 10000 --seconds 30 --seed 1", tried_min: 1_000 },
    Gate { arguments: "metamorphic --count 400 --seconds 30 --seed 1", tried_min: 20 },
    Gate { arguments: "canaries --seed 1", tried_min: 12 },
];

/// Runs them all; gives their last lines.
pub fn run() -> Result<Vec<String>, Failure> {
    GATES.iter().map(hold).collect()
}

fn hold(gate: &Gate) -> Result<String, Failure> {
    // The profile of the tests, which have just built the engine: optimised, with every assertion on.
    let mut command = cargo();
    command.args(["run", "--quiet", "--profile", "test", "--package", "sim", "--"]);
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
