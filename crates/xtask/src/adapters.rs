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
    /// The test of its cluster that kills processes.
    kills: Option<&'static str>,
}

/// The data source has filters, and frames `repartitionById`, from 4.1 on.
pub const SPARK: Adapter = Adapter {
    name: "spark",
    folder: "spark",
    packages: &["pyspark>=4.1,<5", "pyarrow>=18", "pandas>=2.2,<3"],
    imports: "import pyspark, pyarrow, pandas",
    needs_java: true,
    has_bench: true,
    kills: Some("Cluster.test_killed_processes"),
};

/// Its tests are not in a folder `ray`, which would hide the package.
pub const RAY: Adapter = Adapter {
    name: "ray",
    folder: "on_ray",
    packages: &["ray[data]>=2.60", "pyarrow>=18", "pandas>=2.2,<3"],
    imports: "import ray.data, pyarrow, pandas",
    needs_java: false,
    has_bench: false,
    kills: None,
};

/// What is to be run.
#[derive(Debug, PartialEq, Eq)]
enum Task<'a> {
    Tests(&'a [String]),
    /// The test of the cluster, with so many processes that are killed.
    Kills(u32),
    Bench(&'a [String]),
}

impl<'a> Task<'a> {
    fn of(adapter: &Adapter, arguments: &'a [String]) -> Result<Task<'a>, Failure> {
        match arguments {
            [first, rest @ ..] if first == "bench" && adapter.has_bench => Ok(Task::Bench(rest)),
            [first, rest @ ..] if first == "--kills" && adapter.kills.is_some() => match rest {
                [number] => {
                    number.parse().map(Task::Kills).map_err(|error| format!("--kills {number}: {error}"))
                }
                _ => Err("--kills takes a number, and nothing else".into()),
            },
            [first, ..] if first.starts_with('-') => Err(format!("{first} is no option")),
            names => Ok(Task::Tests(names)),
        }
    }
}

/// `cargo xtask spark [bench [arguments] | --kills N | names of tests]`, `cargo xtask ray [names of tests]`.
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
    let (name, task) = (adapter.name, Task::of(adapter, arguments)?);
    if adapter.needs_java && !runs(Command::new("java").arg("-version")) {
        return Ok(format!("no java: the tests with {name} are left out"));
    }
    if !python::is_new_enough() {
        return Ok(python::LEFT_OUT.to_owned());
    }
    let library = python::build_release()?;
    let command = match (&task, adapter.kills) {
        (Task::Bench(_), _) | (_, None) => None,
        _ => Some(python::build_command()?),
    };
    let folder = std::env::temp_dir().join(format!("azekura-{name}-{}", std::process::id()));
    let outcome = python::lay_out(&library, &folder, &["azekura", adapter.folder])
        .and_then(|()| environment(adapter, &library))
        .and_then(|python| inside(adapter, &python, &folder, (&task, command)));
    // A folder that stays behind is no failure.
    let _ = std::fs::remove_dir_all(&folder);
    outcome.map(|()| format!("{name}: all passed"))
}

fn inside(
    adapter: &Adapter,
    python: &Path,
    folder: &Path,
    (task, azekura): (&Task<'_>, Option<PathBuf>),
) -> Result<(), Failure> {
    let mut command = Command::new(python);
    command.args(["-u", "-B", "-m"]);
    let tests = format!("{}.test_{}", adapter.folder, adapter.name);
    match task {
        Task::Bench(rest) => {
            command.arg(format!("{}.bench", adapter.folder)).args(*rest);
        }
        Task::Tests([]) => {
            command.args(["unittest", "-v", &tests]);
        }
        Task::Tests(names) => {
            command.args(["unittest", "-v"]).args(names.iter().map(|name| format!("{tests}.{name}")));
        }
        Task::Kills(kills) => {
            let name = format!("{tests}.{}", adapter.kills.unwrap_or_default());
            command.args(["unittest", "-v", &name]).env("AZEKURA_CLUSTER_KILLS", kills.to_string());
        }
    }
    // The workers find the package and the interpreter there.
    command.current_dir(folder).env("PYTHONPATH", folder).env("AZEKURA_ROOT", runner::root());
    command.env("PYSPARK_PYTHON", python).env("PYSPARK_DRIVER_PYTHON", python);
    command.envs(azekura.map(|azekura| ("AZEKURA_COMMAND", azekura)));
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

#[cfg(test)]
mod tests {
    use super::{Adapter, RAY, SPARK, Task};

    #[test]
    fn tasks_are_understood_or_refused() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let is = |adapter: &Adapter, text: &str, wanted: &Task<'_>| {
            assert_eq!(Task::of(adapter, &words(text)).as_ref(), Ok(wanted), "{text}");
        };
        is(&SPARK, "", &Task::Tests(&[]));
        is(&SPARK, "--kills 50", &Task::Kills(50));
        is(&SPARK, "bench --rows 9", &Task::Bench(&words("--rows 9")));
        is(&SPARK, "Writing Reading.test_x", &Task::Tests(&words("Writing Reading.test_x")));
        is(&RAY, "bench", &Task::Tests(&words("bench")));
        for wrong in ["--kills", "--kills many", "--kills 5 Writing", "--rows 9"] {
            assert!(Task::of(&SPARK, &words(wrong)).is_err(), "{wrong}");
        }
        assert!(Task::of(&RAY, &words("--kills 5")).is_err());
    }
}
