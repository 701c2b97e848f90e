//! `cargo xtask spark`: the tests, and the figures, of sets of shards with PySpark. It installs PySpark into
//! a virtual environment below the build folder, from the package index that pip knows. It needs a Java and a
//! network for that, so it is no part of the test command.

use crate::python;
use crate::runner::{self, Failure};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// What is installed. The data source has filters, and frames `repartitionById`, from 4.1 on.
const PACKAGES: [&str; 3] = ["pyspark>=4.1,<5", "pyarrow>=18", "pandas>=2.2,<3"];
/// Runs the tests, which say themselves how many they were.
const TESTS: [&str; 4] = ["-m", "unittest", "-v", "spark.test_spark"];

/// `cargo xtask spark [bench [arguments] | names of tests]`.
pub fn run(arguments: &[String]) -> ExitCode {
    match go(arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            println!("xtask spark: FAILED: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn go(arguments: &[String]) -> Result<String, Failure> {
    if !runs(Command::new("java").arg("-version")) {
        return Ok("no java: the tests with Spark are left out".to_owned());
    }
    if !python::is_new_enough() {
        return Ok(python::LEFT_OUT.to_owned());
    }
    let is_bench = arguments.first().is_some_and(|first| first == "bench");
    let library = python::build_release()?;
    let folder = std::env::temp_dir().join(format!("azekura-spark-{}", std::process::id()));
    let outcome = python::lay_out(&library, &folder, &["azekura", "spark"])
        .and_then(|()| environment(&library))
        .and_then(|python| inside(&python, &folder, arguments, is_bench));
    // A folder that stays behind is no failure.
    let _ = std::fs::remove_dir_all(&folder);
    outcome.map(|()| "spark: all passed".to_owned())
}

fn inside(python: &Path, folder: &Path, arguments: &[String], is_bench: bool) -> Result<(), Failure> {
    let mut command = Command::new(python);
    if is_bench {
        command.args(["-u", "-B", "-m", "spark.bench"]).args(&arguments[1..]);
    } else if arguments.is_empty() {
        command.args(["-u", "-B"]).args(TESTS);
    } else {
        let names = arguments.iter().map(|name| format!("spark.test_spark.{name}"));
        command.args(["-u", "-B"]).args(&TESTS[..3]).args(names);
    }
    // Spark's workers find the package and the interpreter there.
    command.current_dir(folder).env("PYTHONPATH", folder).env("AZEKURA_ROOT", runner::root());
    command.env("PYSPARK_PYTHON", python).env("PYSPARK_DRIVER_PYTHON", python);
    runner::run(command)
}

/// The interpreter of the virtual environment, which is made if it is not there.
fn environment(library: &Path) -> Result<PathBuf, Failure> {
    let target = library.ancestors().nth(2).ok_or("the build folder has no name")?;
    let folder = target.join("spark-python");
    let python = folder.join("bin").join("python3");
    if !runs(Command::new(&python).args(["-c", "import pyspark, pyarrow, pandas"])) {
        let mut made = Command::new("python3");
        made.args(["-m", "venv"]).arg(&folder);
        runner::run(made)?;
        let mut installed = Command::new(&python);
        installed.args(["-m", "pip", "install", "--quiet"]).args(PACKAGES);
        runner::run(installed)?;
    }
    Ok(python)
}

fn runs(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
