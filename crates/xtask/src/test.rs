//! `cargo xtask test`: the steps, in order.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Instant;

use crate::house;
use crate::peers;
use crate::programs;
use crate::promises;
use crate::python;
use crate::runner::{self, Failure, cargo};
use crate::schedules;
use crate::smoke;

/// How the closing lines of the test runners begin.
const RESULT: &str = "test result: ";

/// How the lines begin that say what is not tried for want of a tool.
const SKIPPED: &str = "skipped: ";

/// One step: its name, and what it does. It may add lines to the summary.
struct Step {
    name: &'static str,
    run: fn(&mut Vec<String>) -> Result<(), Failure>,
}

const STEPS: [Step; 12] = [
    Step { name: "formatting", run: formatting },
    Step { name: "house", run: |_| house::check() },
    Step { name: "clippy", run: clippy },
    Step { name: "documentation", run: documentation },
    Step { name: "build", run: |_| promises::build() },
    Step { name: "tests", run: tests },
    Step { name: "public programs", run: programs },
    Step { name: "python", run: python },
    Step { name: "models", run: |_| promises::models() },
    Step { name: "schedules", run: schedules },
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

fn tests(closing: &mut Vec<String>) -> Result<(), Failure> {
    let mut command = promises::built(&["test"]);
    command.arg("--workspace").env("AZEKURA_CANARY", "");
    let (mut program, mut total) = (String::new(), 0);
    let outcome = runner::run_seeing(command, |line| {
        if let Some(started) = started(line) {
            program = started;
        } else if line.starts_with(RESULT) {
            total += passed(line).unwrap_or(0);
            closing.push(format!("{line} ({program})"));
        } else if line.starts_with(SKIPPED) && !closing.iter().any(|known| known == line) {
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

/// The package and the file of the tests that run next, from cargo's line about them.
fn started(line: &str) -> Option<String> {
    if let Some(library) = line.trim_start().strip_prefix("Doc-tests ") {
        return Some(format!("examples in {library}'s documentation"));
    }
    let (source, program) = line.trim_start().strip_prefix("Running ")?.split_once(" (")?;
    let name = program.strip_suffix(')')?.rsplit('/').next()?;
    let name = name.rsplit_once('-').map_or(name, |(name, _hash)| name);
    let source = source.strip_prefix("unittests ").unwrap_or(source);
    Some(format!("{name}, {source}"))
}

/// The number of tests that passed, from a closing line.
fn passed(line: &str) -> Option<u64> {
    let (before, _) = line.split_once(" passed")?;
    before.rsplit(' ').next()?.parse().ok()
}

fn python(closing: &mut Vec<String>) -> Result<(), Failure> {
    closing.extend(python::gate()?);
    Ok(())
}

fn programs(closing: &mut Vec<String>) -> Result<(), Failure> {
    closing.extend(programs::gate()?);
    Ok(())
}

fn schedules(closing: &mut Vec<String>) -> Result<(), Failure> {
    closing.push(schedules::gate()?);
    Ok(())
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
    fn programs_are_named() {
        let started = |line| super::started(line).unwrap_or_default();
        let line = "     Running unittests src/lib.rs (target/debug/deps/azekura-0a1b2c)";
        assert_eq!(started(line), "azekura, src/lib.rs");
        let line = "     Running tests/small_disk.rs (target/debug/deps/small_disk-0a1b2c)";
        assert_eq!(started(line), "small_disk, tests/small_disk.rs");
        assert_eq!(started("   Doc-tests azekura"), "examples in azekura's documentation");
        assert_eq!(super::started("running 3 tests"), None);
    }

    #[test]
    fn passed_tests_are_counted() {
        let line = "test result: ok. 28 passed; 0 failed; 0 ignored; finished in 0.02s";
        assert_eq!(super::passed(line), Some(28));
        assert_eq!(super::passed("test result: none"), None);
    }
}
