//! `cargo xtask python`: builds the extension module with the flags of the tests, and runs the tests of the
//! Python package.

use crate::checkers;
use crate::promises;
use crate::runner::{self, Failure};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Whether the interpreter is new enough: the module uses the stable ABI of 3.11.
const NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 11))";
/// The extension module, as cargo knows it.
const MODULE: &str = "_azekura";
/// Checkers of types, in their strict modes, and what they read.
const CHECKERS: [(&str, &[&str]); 2] = [
    (
        "mypy",
        &["--strict", "azekura/__init__.pyi", "azekura/_azekura.pyi", "azekura/aio.pyi", "tests/typed.py"],
    ),
    ("pyright", &["--project", "tests/pyright.json"]),
];
/// What the engine's test says when it has read Python's file.
const HAS_READ: &str = "read what Python has written";
/// Runs all tests, and writes to the standard output how they went, and which were skipped.
const ALL_TESTS: &str = "\
import sys, unittest
ran = unittest.main(module=None, exit=False, testRunner=unittest.TextTestRunner(sys.stdout)).result
for test, reason in ran.skipped:
    print(f'SKIPPED {test.id()}: {reason}')
sys.exit(not ran.wasSuccessful())
";
/// How the last lines of that begin.
const RAN: &str = "Ran ";
const SKIPPED: &str = "SKIPPED tests.";
/// Said where there is none.
pub const LEFT_OUT: &str =
    "no python3 of version 3.11 or later: the tests of the Python package are left out";

/// `cargo xtask python`.
pub fn run() -> ExitCode {
    match gate() {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(reason) => {
            println!("xtask python: FAILED: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the tests, and checkers of types. Returns the lines for the summary.
pub fn gate() -> Result<Vec<String>, Failure> {
    if !is_new_enough() {
        return Ok(vec![LEFT_OUT.to_owned()]);
    }
    // With all that the tests build. For anything less the engine and its dependencies would have other
    // features, and would be built again.
    let library = promises::library(MODULE)?;
    let folder = std::env::temp_dir().join(format!("azekura-python-{}", std::process::id()));
    let exchange = folder.join("exchange");
    let outcome = lay_out(&library, &folder, &["azekura", "tests"])
        .and_then(|()| engine_exchanges(&exchange, false))
        .and_then(|()| test("python3".as_ref(), &folder, Some(&exchange)))
        .and_then(|tests| engine_exchanges(&exchange, true).map(|()| tests))
        .and_then(|tests| checked(&folder, &format!("python: {tests}")));
    // A folder that stays behind is no failure.
    let _ = fs::remove_dir_all(&folder);
    outcome
}

/// Has checkers of types read a folder: those of the project's own, or else those that are on this machine.
fn checked(folder: &Path, said: &str) -> Result<Vec<String>, Failure> {
    let (programs, skipped) = match checkers::programs() {
        Ok(programs) => (programs, None),
        Err(reason) => (PathBuf::new(), Some(format!("skipped: installing mypy and pyright: {reason}"))),
    };
    let line = format!("{said}; {}", types(folder, &programs)?);
    Ok(std::iter::once(line).chain(skipped).collect())
}

/// Whether there is an interpreter that can load the module.
pub fn is_new_enough() -> bool {
    can_load("python3")
}

/// Whether an interpreter is there, and can load the module.
pub fn can_load(python: &str) -> bool {
    let mut asked = Command::new(python);
    asked.args(["-c", NEW_ENOUGH]).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// Builds the module as users have it. Returns its file.
pub fn build_release() -> Result<PathBuf, Failure> {
    let mut command = runner::cargo();
    command.args(["build", "--release", "--package", "azekura-python"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    let messages = runner::capture(command)?;
    messages
        .lines()
        .find_map(|message| promises::library_in(message, MODULE))
        .ok_or_else(|| "cargo has named no extension module".to_owned())
}

/// Builds the command as users have it. Returns its file.
pub fn build_command() -> Result<PathBuf, Failure> {
    let mut command = runner::cargo();
    command.args(["build", "--release", "--package", "azekura-cli", "--bin", "azekura"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    let messages = runner::capture(command)?;
    let found = messages.lines().find_map(|message| promises::program_in(message, "azekura"));
    found.ok_or_else(|| "cargo has named no program azekura".to_owned())
}

/// Copies parts of the package, its tests for one, and the module into one folder.
pub fn lay_out(library: &Path, folder: &Path, parts: &[&str]) -> Result<(), Failure> {
    copy_parts(folder, parts)?;
    let module = folder.join("azekura").join("_azekura.abi3.so");
    fs::copy(library, &module).map_err(|error| format!("{}: {error}", module.display()))?;
    Ok(())
}

/// Copies parts of the package into a folder, without the module.
pub fn copy_parts(folder: &Path, parts: &[&str]) -> Result<(), Failure> {
    for part in parts {
        let (from, to) = (runner::root().join("python").join(part), folder.join(part));
        copy_files(&from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    Ok(())
}

/// Copies the files of a folder, without modules that were built there.
fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let file = entry?.path();
        let is_module = file.extension().is_some_and(|kind| kind == "so");
        if let (true, false, Some(name)) = (file.is_file(), is_module, file.file_name()) {
            fs::copy(&file, to.join(name))?;
        }
    }
    Ok(())
}

/// Has the engine's typed tables write a file into a folder, and read Python's file if it is there, which is
/// due the second time.
pub fn engine_exchanges(folder: &Path, due: bool) -> Result<(), Failure> {
    let mut command = promises::built(&["test"]);
    // Among all tests, so that nothing is built again.
    command.arg("--quiet").args(promises::EVERYTHING.iter().filter(|&&word| word != "--lib"));
    command.args(["--", "typed_exchange", "--nocapture"]);
    command.env("AZEKURA_CANARY", "").env("AZEKURA_EXCHANGE", folder);
    let (seen, outcome) = runner::run_keeping(command, |line| line.ends_with(HAS_READ));
    outcome?;
    if due && seen.is_empty() { Err("the engine has not read Python's file".to_owned()) } else { Ok(()) }
}

/// Has the checkers of types that are there read the stubs, and a program that uses them. `programs` is where
/// they are. Returns what is to be said of it.
pub fn types(folder: &Path, programs: &Path) -> Result<String, Failure> {
    let mut said = Vec::new();
    for (checker, arguments) in CHECKERS {
        let mut asked = Command::new(programs.join(checker));
        asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        if asked.status().is_ok_and(|status| status.success()) {
            let mut command = Command::new(programs.join(checker));
            command.args(arguments).current_dir(folder);
            runner::run(command)?;
            said.push(format!("{checker} has nothing to say"));
        } else {
            said.push(format!("no {checker} to check the types"));
        }
    }
    Ok(said.join(", "))
}

/// How the tests went.
#[derive(Debug, PartialEq, Eq)]
pub struct Tests {
    passed: usize,
    /// The names of the others.
    pub skipped: Vec<String>,
}

impl fmt::Display for Tests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tests of the package passed, {} were skipped", self.passed, self.skipped.len())?;
        if self.skipped.is_empty() { Ok(()) } else { write!(f, " ({})", self.skipped.join(", ")) }
    }
}

/// Runs the tests in a folder by an interpreter. With `exchange` also those that exchange files with the
/// engine there.
pub fn test(python: &Path, folder: &Path, exchange: Option<&Path>) -> Result<Tests, Failure> {
    let mut command = Command::new(python);
    // The tests find documents from the root. No fault is picked.
    command.args(["-u", "-B", "-W", "error", "-c", ALL_TESTS]).current_dir(folder);
    command.env("AZEKURA_ROOT", runner::root()).env("AZEKURA_CANARY", "");
    exchange.map(|exchange| command.env("AZEKURA_EXCHANGE", exchange));
    let keep = |line: &str| line.starts_with(RAN) || line.starts_with(SKIPPED);
    let (said, outcome) = runner::run_keeping(command, keep);
    outcome?;
    counted(&said).ok_or_else(|| "no test of the Python package was run".to_owned())
}

/// How the tests went, by their last lines: "Ran 9 tests in 1.0s", and "SKIPPED tests.test_x.A.test_y: no z"
/// for each that was skipped. None if none has passed.
fn counted(said: &[String]) -> Option<Tests> {
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok();
    let ran = said.iter().rev().find_map(|line| number(line.strip_prefix(RAN)?))?;
    let name = |line: &String| Some(line.strip_prefix(SKIPPED)?.split(':').next()?.to_owned());
    let skipped: Vec<String> = said.iter().filter_map(name).collect();
    let passed = ran.checked_sub(skipped.len()).filter(|&passed| passed > 0)?;
    Some(Tests { passed, skipped })
}

#[cfg(test)]
mod tests {
    use super::{MODULE, counted};
    use crate::promises::library_in;

    #[test]
    fn the_module_is_found_in_what_cargo_says() {
        let ours = r#"{"target":{"name":"_azekura"},"filenames":["/t/lib_azekura.d","/t/lib_azekura.so"]}"#;
        assert_eq!(library_in(ours, MODULE).as_deref(), Some(std::path::Path::new("/t/lib_azekura.so")));
        assert_eq!(library_in(r#"{"target":{"name":"azekura"},"filenames":["/t/a.so"]}"#, MODULE), None);
        assert_eq!(library_in("Compiling", MODULE), None);
    }

    #[test]
    fn tests_that_were_skipped_are_not_said_to_have_passed() {
        let counted =
            |lines: &[&str]| counted(&lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>());
        let said = |lines| counted(lines).map(|tests| tests.to_string());
        let all = said(&["Ran 90 tests in 12.3s"]);
        assert_eq!(all.as_deref(), Some("90 tests of the package passed, 0 were skipped"));
        let skipped = ["Ran 3 tests in 1.0s", "SKIPPED tests.test_a.B.test_c: no d: e", "SKIPPED tests.f: g"];
        let some = said(&skipped);
        assert_eq!(
            some.as_deref(),
            Some("1 tests of the package passed, 2 were skipped (test_a.B.test_c, f)")
        );
        assert_eq!(counted(&["Ran 2 tests in 0.0s", skipped[1], skipped[2]]), None);
        assert_eq!(counted(&["Ran 0 tests in 0.0s"]), None);
        assert_eq!(counted(&[]), None);
    }
}
