//! `cargo xtask spark` and `cargo xtask ray`: the tests, and the figures, of sets of shards with PySpark and
//! with Ray Data. Each is installed into a virtual environment of its own below the build folder, from the
//! package index that pip knows. That needs a network (and PySpark a Java), so it is no part of the test
//! command.

use crate::python;
use crate::runner::{self, Failure};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// What distributes the work.
pub struct Adapter {
    /// The command's name.
    name: &'static str,
    /// The folder of its tests, in `python`.
    folder: &'static str,
    /// What is installed.
    packages: &'static [&'static str],
    /// Whether these are there already.
    imports: &'static str,
    needs_java: bool,
    has_bench: bool,
}

/// The data source has filters, and frames `repartitionById`, from 4.1 on.
pub const SPARK: Adapter = Adapter {
    name: "spark",
    folder: "spark",
    packages: &["pyspark>=4.1,<5", "pyarrow>=18", "pandas>=2.2,<3"],
    imports: "import pyspark, pyarrow, pandas",
    needs_java: true,
    has_bench: true,
};

/// Its tests are not in a folder `ray`, which would hide the package.
pub const RAY: Adapter = Adapter {
    name: "ray",
    folder: "on_ray",
    packages: &["ray[data]>=2.60", "pyarrow>=18", "pandas>=2.2,<3"],
    imports: "import ray.data, pyarrow, pandas",
    needs_java: false,
    has_bench: false,
};

/// `cargo xtask spark [bench [arguments] | names of tests]`, `cargo xtask ray [names of tests]`.
pub fn run(adapter: &Adapter, arguments: &[String]) -> ExitCode {
    match go(adapter, arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            println!("xtask {}: FAILED: {reason}", adapter.name);
            ExitCode::FAILURE
        }
    }
}

fn go(adapter: &Adapter, arguments: &[String]) -> Result<String, Failure> {
    let name = adapter.name;
    if adapter.needs_java && !runs(Command::new("java").arg("-version")) {
        return Ok(format!("no java: the tests with {name} are left out"));
    }
    if !python::is_new_enough() {
        return Ok(python::LEFT_OUT.to_owned());
    }
    let library = python::build_release()?;
    let folder = std::env::temp_dir().join(format!("azekura-{name}-{}", std::process::id()));
    let outcome = python::lay_out(&library, &folder, &["azekura", adapter.folder])
        .and_then(|()| environment(adapter, &library))
        .and_then(|python| inside(adapter, &python, &folder, arguments));
    // A folder that stays behind is no failure.
    let _ = std::fs::remove_dir_all(&folder);
    outcome.map(|()| format!("{name}: all passed"))
}

fn inside(adapter: &Adapter, python: &Path, folder: &Path, arguments: &[String]) -> Result<(), Failure> {
    let mut command = Command::new(python);
    command.args(["-u", "-B", "-m"]);
    let tests = format!("{}.test_{}", adapter.folder, adapter.name);
    match arguments.split_first() {
        Some((first, rest)) if first == "bench" && adapter.has_bench => {
            command.arg(format!("{}.bench", adapter.folder)).args(rest);
        }
        None => {
            command.args(["unittest", "-v", &tests]);
        }
        Some(_) => {
            command.args(["unittest", "-v"]).args(arguments.iter().map(|name| format!("{tests}.{name}")));
        }
    }
    // The workers find the package and the interpreter there.
    command.current_dir(folder).env("PYTHONPATH", folder).env("AZEKURA_ROOT", runner::root());
    command.env("PYSPARK_PYTHON", python).env("PYSPARK_DRIVER_PYTHON", python);
    runner::run(command)
}

/// The interpreter of the virtual environment, which is made if it is not there.
fn environment(adapter: &Adapter, library: &Path) -> Result<PathBuf, Failure> {
    let target = library.ancestors().nth(2).ok_or("the build folder has no name")?;
    let folder = target.join(format!("{}-python", adapter.name));
    let python = folder.join("bin").join("python3");
    if !runs(Command::new(&python).args(["-c", adapter.imports])) {
        let mut made = Command::new("python3");
        made.args(["-m", "venv"]).arg(&folder);
        runner::run(made)?;
        let mut installed = Command::new(&python);
        installed.args(["-m", "pip", "install", "--quiet"]).args(adapter.packages);
        runner::run(installed)?;
    }
    Ok(python)
}

fn runs(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
