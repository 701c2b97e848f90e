//! The programs with tests, as cargo names them, and running them beside other tasks.
//!
//! As many tasks run at once as there are processors: most programs end with a test or two that are long, and
//! many tests wait for the disk. What a task says is shown when it ends, in one piece.

use crate::promises;
use crate::runner::{self, Failure};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A program with tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The package, and the target in the package.
    pub target: String,
    /// The file that it begins with, from the package's folder on.
    source: String,
    pub file: PathBuf,
    /// The folder in which it runs: the package's.
    pub folder: PathBuf,
}

/// The programs with tests in messages of cargo.
pub fn among(messages: &str) -> Vec<Program> {
    messages.lines().filter_map(program).collect()
}

/// The program with tests in a message of cargo, if there is one.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let file = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let source = Path::new(message["target"]["src_path"].as_str()?);
    let source = source.strip_prefix(&folder).unwrap_or(source).display().to_string();
    let target = message["target"]["name"].as_str()?;
    let package = folder.file_name()?.to_string_lossy();
    let target = if target == package { target.to_owned() } else { format!("{package}/{target}") };
    Some(Program { target, source, file, folder })
}

/// Something to run.
pub struct Task {
    pub name: String,
    pub command: Command,
}

impl Task {
    /// All tests of a program.
    pub fn of(program: &Program) -> Task {
        let mut command = Command::new(&program.file);
        command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
        Task { name: format!("{}, {}", program.target, program.source), command }
    }

    /// A task of this program. It has a build folder of its own, or builds nothing that is not there.
    pub fn own(name: &str, arguments: &[&str]) -> Result<Task, Failure> {
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(this);
        command.args(arguments).current_dir(runner::root());
        Ok(Task { name: name.to_owned(), command })
    }

    /// The examples in the documentation. Cargo runs them.
    pub fn documentation() -> Task {
        let mut command = promises::built(&["test"]);
        command.args(["--workspace", "--doc"]);
        Task { name: "examples in the documentation".to_owned(), command }
    }
}

/// Runs all tasks. `see` gets each line with the name of the task that has said it. The failure names all that
/// failed.
pub fn run(tasks: Vec<Task>, mut see: impl FnMut(&str, &str) + Send) -> Result<(), Failure> {
    let tasks = Mutex::new(VecDeque::from(tasks));
    let seen = Mutex::new((&mut see, Vec::new()));
    let work = || {
        loop {
            // The lock is free again when the task begins.
            let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(Task { name, mut command }) = task else { return };
            command.env("AZEKURA_CANARY", "");
            let began = Instant::now();
            let (text, outcome) = runner::heard(command);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            println!("\n{name} ({:.1} s)\n{text}", began.elapsed().as_secs_f64());
            text.lines().for_each(|line| (seen.0)(&name, line));
            seen.1.extend(outcome.err().map(|reason| format!("{name} ({reason})")));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let (_, failed) = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_among_messages() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/p/crates/sim/Cargo.toml",
            "target":{"name":"cuts","src_path":"/p/crates/sim/tests/cuts.rs"},"profile":{"test":true},
            "executable":"/p/target/debug/deps/cuts-1"}"#
            .replace('\n', " ");
        let found = program(&message).expect("a program");
        assert_eq!((found.target.as_str(), found.source.as_str()), ("sim/cuts", "tests/cuts.rs"));
        assert_eq!(found.folder, PathBuf::from("/p/crates/sim"));
        assert_eq!(Task::of(&found).name, "sim/cuts, tests/cuts.rs");
        let wrong = [
            message.replace("\"test\":true", "\"test\":false"),
            message.replace("\"/p/target/debug/deps/cuts-1\"", "null"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "not JSON".to_owned(),
        ];
        assert_eq!(among(&wrong.join("\n")), []);
    }

    #[test]
    fn all_tasks_run_and_failures_are_named() {
        let task = |name: &str, program: &str| Task { name: name.to_owned(), command: Command::new(program) };
        let mut seen = Vec::new();
        let outcome =
            run(vec![task("where", "pwd"), task("wrong", "false"), task("well", "true")], |name, line| {
                seen.push((name.to_owned(), line.is_empty()));
            });
        assert_eq!(seen, [("where".to_owned(), false)]);
        let reason = outcome.expect_err("one has failed");
        assert!(reason.starts_with("wrong (") && !reason.contains(';'), "{reason}");
    }
}
