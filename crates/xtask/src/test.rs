//! `cargo xtask test`: the steps, in order.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Instant;

use crate::house;
use crate::peers;
use crate::programs::{self, Task};
use crate::promises;
use crate::python;
use crate::runner::{self, Failure, cargo};
use crate::schedules;
use crate::smoke;

/// How the closing lines of the test runners begin.
const RESULT: &str = "test result: ";

/// One step: its name, and what it does. It may add lines to the summary.
struct Step {
    name: &'static str,
    run: fn(&mut Vec<String>) -> Result<(), Failure>,
}

const STEPS: [Step; 8] = [
    Step { name: "formatting", run: formatting },
    Step { name: "house", run: |_| house::check() },
    Step { name: "clippy", run: clippy },
    Step { name: "documentation", run: documentation },
    Step { name: "build", run: |_| promises::build() },
    Step { name: "tests", run: tests },
    Step { name: "promises", run: promises },
    Step { name: "bench, small", run: bench },
];

/// Runs every step until one fails.
pub fn run() -> ExitCode {
    let started = Instant::now();
    let mut closing: Vec<String> = peers::left_out().into_iter().collect();
    closing.iter().for_each(|line| println!("{line}"));
    for (number, step) in (1..).zip(&STEPS) {
        header(&format!("{number}/{} {}", STEPS.len(), step.name));
        let step_started = Instant::now();
        if let Err(reason) = (step.run)(&mut closing) {
            summary(&closing);
            println!("\nxtask test: FAILED at {}: {reason}", step.name);
            return ExitCode::FAILURE;
        }
        println!("{}: ok ({:.1} s)", step.name, step_started.elapsed().as_secs_f64());
    }
    summary(&closing);
    println!("\nxtask test: all passed ({:.0} s)", started.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}

fn header(text: &str) {
    let line = format!("\n──── {text} ────");
    if std::io::stdout().is_terminal() {
        println!("\x1b[1m{line}\x1b[0m");
    } else {
        println!("{line}");
    }
}

/// Repeats the closing lines of the runners at the end.
fn summary(closing: &[String]) {
    if !closing.is_empty() {
        header("results");
        closing.iter().for_each(|line| println!("{line}"));
    }
}

fn needs(component: &str, package: &str) -> Result<(), Failure> {
    if runner::is_there(component) {
        return Ok(());
    }
    Err(format!("cargo {component} is missing: rustup component add {package}"))
}

fn formatting(_: &mut Vec<String>) -> Result<(), Failure> {
    needs("fmt", "rustfmt")?;
    let mut command = cargo();
    command.args(["fmt", "--all", "--check"]);
    runner::run(command)
}

fn clippy(_: &mut Vec<String>) -> Result<(), Failure> {
    needs("clippy", "clippy")?;
    let mut command = promises::built(&["clippy"]);
    command.args(["--workspace", "--all-targets", "--", "-D", "warnings"]);
    runner::run(command)
}

fn documentation(_: &mut Vec<String>) -> Result<(), Failure> {
    let mut command = promises::built(&["doc"]);
    command.args(["--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "-D warnings");
    runner::run(command)
}

/// The tests and what else tries the code by itself, side by side. The longest come first.
fn tests(closing: &mut Vec<String>) -> Result<(), Failure> {
    let mut tasks = vec![
        Task::own("schedules", &["schedules", "gate"])?,
        Task::own("models", &["models"])?,
        Task::own("python", &["python"])?,
    ];
    tasks.extend(programs::among(&promises::messages()?).iter().map(Task::of));
    tasks.push(Task::documentation());
    let mut total = 0;
    let outcome = programs::run(tasks, |task, line| {
        if line.starts_with(RESULT) {
            total += passed(line).unwrap_or(0);
            closing.push(format!("{line} ({task})"));
        } else if [schedules::CLOSING, python::CLOSING].iter().any(|begin| line.starts_with(begin)) {
            closing.push(line.to_owned());
        }
    });
    outcome?;
    if total == 0 {
        return Err("no test ran".to_owned());
    }
    closing.push(format!("{total} tests passed"));
    Ok(())
}

/// The number of tests that passed, from a closing line.
fn passed(line: &str) -> Option<u64> {
    let (before, _) = line.split_once(" passed")?;
    before.rsplit(' ').next()?.parse().ok()
}

fn promises(closing: &mut Vec<String>) -> Result<(), Failure> {
    closing.extend(promises::run()?);
    Ok(())
}

fn bench(closing: &mut Vec<String>) -> Result<(), Failure> {
    closing.extend(smoke::run()?);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn passed_tests_are_counted() {
        let line = "test result: ok. 28 passed; 0 failed; 0 ignored; finished in 0.02s";
        assert_eq!(super::passed(line), Some(28));
        assert_eq!(super::passed("test result: none"), None);
    }
}
