//! The helper programs, made when they are first needed. They are built by the Go toolchain, or run by a
//! Python with the package in an environment of its own. Where that is not possible, their peers are skipped.

use std::env;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Where the helpers' sources are, and where the programs made from them go.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/helpers");
const MADE: &str = env!("BENCH_HELPERS");

const GO_SOURCES: [&str; 8] = [
    include_str!("../../../helpers/go/bolt.go"),
    include_str!("../../../helpers/go/level.go"),
    include_str!("../../../helpers/go/main.go"),
    include_str!("../../../helpers/go/serve.go"),
    include_str!("../../../helpers/go/sum.go"),
    include_str!("../../../helpers/go/wire.go"),
    GO_MODULES,
    include_str!("../../../helpers/go/go.sum"),
];
const GO_MODULES: &str = include_str!("../../../helpers/go/go.mod");
const PYTHON_REQUIREMENTS: &str = include_str!("../../../helpers/python/requirements.txt");

/// The program of the peers in Go, if it can be made.
pub fn go() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(|| made("go", &GO_SOURCES, build_go)).as_deref()
}

/// The Python interpreter that has CodernityDB, if it can be made.
pub fn python() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let environment = PROGRAM.get_or_init(|| made("python", &[PYTHON_REQUIREMENTS], make_environment));
    static INTERPRETER: OnceLock<Option<PathBuf>> = OnceLock::new();
    INTERPRETER.get_or_init(|| environment.as_ref().map(|made| made.join("bin/python"))).as_deref()
}

/// The helper in Python.
pub fn python_script() -> PathBuf {
    Path::new(SOURCES).join("python/helper.py")
}

/// The version of a Go module in the helper.
pub fn go_version(module: &str) -> &'static str {
    GO_MODULES
        .lines()
        .find_map(|line| line.trim().strip_prefix(module))
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap_or_default()
}

/// The version of a Python package in the helper's environment.
pub fn python_version(package: &str) -> &'static str {
    PYTHON_REQUIREMENTS
        .lines()
        .find_map(|line| line.strip_prefix(package))
        .and_then(|rest| rest.strip_prefix("=="))
        .map_or("", str::trim)
}

/// What is made from some sources. It exists from an earlier time, or is made now.
fn made(name: &str, sources: &[&str], make: fn(&Path) -> io::Result<()>) -> Option<PathBuf> {
    let mut hasher = std::hash::DefaultHasher::new();
    sources.hash(&mut hasher);
    let path = Path::new(MADE).join(format!("{name}-{:016x}", hasher.finish()));
    if path.exists() {
        return Some(path);
    }
    let temporary = Path::new(MADE).join(format!("{name}-{}.part", std::process::id()));
    let result =
        fs::create_dir_all(MADE).and_then(|()| make(&temporary)).and_then(|()| put(&temporary, &path));
    match result {
        Ok(()) => Some(path),
        Err(error) => {
            eprintln!("bench-compare: the helper in {name} cannot be made: {error}");
            None
        }
    }
}

/// Renames what was made. Another process may have been faster.
fn put(made: &Path, path: &Path) -> io::Result<()> {
    match fs::rename(made, path) {
        Err(_) if path.exists() => {
            if made.is_dir() {
                fs::remove_dir_all(made)
            } else {
                fs::remove_file(made)
            }
        }
        result => result,
    }
}

fn build_go(path: &Path) -> io::Result<()> {
    run(Command::new("go")
        .args(["build", "-mod=readonly", "-trimpath", "-o"])
        .arg(path)
        .arg(".")
        .current_dir(Path::new(SOURCES).join("go")))
}

fn make_environment(path: &Path) -> io::Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(path))?;
    run(Command::new(path.join("bin/python"))
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(Path::new(SOURCES).join("python/requirements.txt")))
}

/// Runs a tool to its end. If it fails, its last words are the error.
fn run(command: &mut Command) -> io::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{program}: {}", said.trim().lines().last().unwrap_or_default())))
}
