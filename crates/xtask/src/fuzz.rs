//! `cargo xtask fuzz TARGET`: coverage-guided fuzzing of everything that reads bytes, by libFuzzer, on the
//! stable toolchain. The targets are those of `sim fuzz`, and so are the inputs to begin with; what it finds
//! worth keeping gathers in `target/fuzz/TARGET`, inputs that break a promise beside that, in
//! `target/fuzz/TARGET-*`.
//!
//! A few small ones belong into `crates/sim/corpus/TARGET`, from where `sim fuzz` and the test command replay
//! them: those that broke a promise, once it is mended.

use crate::runner::{self, Failure, cargo, root};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The usage, for `cargo xtask`.
pub const USAGE: &str = "fuzz TARGET [libFuzzer arguments]";

/// What libFuzzer wants of the compiler: counters at every edge, a table of what they belong to, and calls at
/// comparisons, which tell it what an input should have held. Checksums are not believed (`--cfg fuzzing`).
const FLAGS: [&str; 6] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// Beyond these, inputs only cost time; an argument may say otherwise.
const LIMITS: [&str; 3] = ["-max_len=65536", "-timeout=20", "-rss_limit_mb=1024"];

/// Builds it and runs it; the arguments behind the target's name are libFuzzer's.
pub fn run(arguments: &[String]) -> ExitCode {
    let Some((target, arguments)) = arguments.split_first().filter(|(target, _)| !target.starts_with('-'))
    else {
        eprintln!("Usage: cargo xtask {USAGE}");
        return ExitCode::from(2);
    };
    match fuzz(target, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn fuzz(target: &str, arguments: &[String]) -> Result<(), Failure> {
    let program = build()?;
    let folder = root().join("target/fuzz").join(target);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut command = Command::new(program);
    command.current_dir(root()).env("AZEKURA_TARGET", target).env("AZEKURA_SEEDS", &folder);
    command.args(LIMITS).arg(format!("-artifact_prefix={}-", folder.display())).args(arguments).arg(&folder);
    runner::run(command)
}

/// Builds it, optimised and with every assertion on. For a target that is named, though it is ours: what runs
/// while building goes without coverage then.
fn build() -> Result<PathBuf, Failure> {
    let host = crate::sanitize::host();
    let mut command = cargo();
    command.args([
        "build",
        "--profile",
        "test",
        "--package",
        "sim",
        "--bin",
        "sim-fuzz",
        "--features",
        "coverage",
    ]);
    command.args(["--target", &host, "--target-dir", "target/coverage"]);
    command.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"));
    runner::run(command)?;
    Ok(root().join("target/coverage").join(host).join("debug/sim-fuzz"))
}
