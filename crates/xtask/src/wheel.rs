//! `cargo xtask python --wheel` and `--full`: builds the Python package as users do, with pip and maturin,
//! installs it in a new virtual environment, and runs the package's tests with that. pip gets what is needed
//! from the package index that it knows, and the engine is built once more, as for a release. So this is no
//! part of the test command.

use crate::python::{self, Tests};
use crate::runner::{self, Failure};
use crate::venv::Environment;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What builds the package. `python/pyproject.toml` names it, too.
const BUILDER: &str = "maturin>=1.9,<2";
/// The libraries and checkers that tests use where they are there.
const LIBRARIES: [&str; 7] = ["numpy", "pyarrow", "polars", "duckdb", "tqdm", "mypy", "pyright[nodejs]"];

/// What was asked for.
struct Task {
    /// With everything that tests use.
    is_full: bool,
    /// The interpreter.
    python: String,
}

/// `cargo xtask python --wheel | --full [--python PROGRAM]`.
pub fn run(arguments: &[String]) -> ExitCode {
    match Task::of(arguments).and_then(|task| task.go()) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            println!("xtask python: FAILED: {reason}");
            ExitCode::FAILURE
        }
    }
}

impl Task {
    fn of(arguments: &[String]) -> Result<Task, Failure> {
        let (mut is_full, mut python) = (None, "python3".to_owned());
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--wheel" => is_full = Some(false),
                "--full" => is_full = Some(true),
                "--python" => python.clone_from(words.next().ok_or("--python: which?")?),
                _ => return Err(format!("{word} is no option: --wheel, --full, --python PROGRAM")),
            }
        }
        let is_full = is_full.ok_or("--python is for --wheel and --full")?;
        Ok(Task { is_full, python })
    }

    fn go(&self) -> Result<String, Failure> {
        if !python::can_load(&self.python) {
            return Ok(python::LEFT_OUT.to_owned());
        }
        let folder = std::env::temp_dir().join(format!("azekura-wheel-{}", std::process::id()));
        let outcome = self.go_in(&folder);
        // A folder that stays behind is no failure.
        let _ = fs::remove_dir_all(&folder);
        outcome
    }

    fn go_in(&self, folder: &Path) -> Result<String, Failure> {
        let maker = match Environment::new(&self.python, &folder.join("maker"), &[BUILDER]) {
            Ok(maker) => maker,
            Err(reason) => {
                return Ok(format!("the wheel is left out, as there is no pip with {BUILDER}: {reason}"));
            }
        };
        let wheel = wheel_of(&maker, &folder.join("wheels"))?;
        let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let installed = wheel.to_string_lossy().into_owned();
        // What users get: without the builder, and without the sources beside it.
        let clean = Environment::new(&self.python, &folder.join("clean"), &[&installed])?;
        let place = folder.join("tests-alone");
        python::copy_parts(&place, &["tests"])?;
        let said = if self.is_full {
            everything(&clean, folder, &place)?
        } else {
            test_with(&clean, &place, None)?.to_string()
        };
        Ok(format!("python, {name} installed: {said}"))
    }
}

/// Runs the tests and the checkers with all that they can use. None may be skipped.
fn everything(clean: &Environment, folder: &Path, place: &Path) -> Result<String, Failure> {
    clean.install(&LIBRARIES)?;
    let exchange = folder.join("exchange");
    python::engine_exchanges(&exchange, false)?;
    let tests = test_with(clean, place, Some(&exchange))?;
    python::engine_exchanges(&exchange, true)?;
    if !tests.skipped.is_empty() {
        return Err(format!("all tests are due, but {tests}"));
    }
    // A program that uses the package as it is installed, and the stubs themselves.
    let mut command = Command::new(clean.program("mypy"));
    command.args(["--strict", "tests/typed.py"]).current_dir(place);
    runner::run(command)?;
    let stubs = folder.join("stubs");
    python::copy_parts(&stubs, &["azekura", "tests"])?;
    Ok(format!("{tests}; {}", python::types(&stubs, &clean.programs())?))
}

/// Builds the package. REQUIRES: the builder is installed there.
fn wheel_of(maker: &Environment, to: &Path) -> Result<PathBuf, Failure> {
    let mut command = maker.pip("wheel");
    command.args(["--no-deps", "--no-build-isolation", "--wheel-dir"]).arg(to).arg("./python");
    // pip finds the builder's program there. The flags are those of a release, not of the tests.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(maker.programs()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(paths).map_err(|error| error.to_string())?;
    command.env("PATH", path).env_remove("RUSTFLAGS").current_dir(runner::root());
    runner::run(command)?;
    let mut files = fs::read_dir(to).map_err(|error| error.to_string())?;
    let first = files.next().ok_or("pip has built no wheel")?;
    Ok(first.map_err(|error| error.to_string())?.path())
}

/// Runs the package's tests with what is installed.
fn test_with(clean: &Environment, place: &Path, exchange: Option<&Path>) -> Result<Tests, Failure> {
    python::test(&clean.program("python"), place, exchange)
}

#[cfg(test)]
mod tests {
    use super::Task;

    #[test]
    fn options_are_understood_or_refused() {
        let task = |words: &str| Task::of(&words.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let full = task("--full --python python3.13").unwrap();
        assert!(full.is_full && full.python == "python3.13");
        let wheel = task("--wheel").unwrap();
        assert!(!wheel.is_full && wheel.python == "python3");
        for wrong in ["--python python3", "--wheel --python", "--whole"] {
            assert!(task(wrong).is_err(), "{wrong}");
        }
    }
}
