//! `cargo xtask fuzz TARGET`: coverage-guided fuzzing, by libFuzzer on the stable toolchain, of everything
//! that reads bytes. The targets and the first inputs are those of `sim fuzz`. Inputs that reach new code are
//! kept in `target/fuzz/TARGET`, and inputs that break a promise in `target/fuzz/TARGET-*`.
//!
//! A few small inputs belong into `crates/sim/corpus/TARGET`: those that broke a promise, once it is mended.
//! `sim fuzz` and the test command replay them.

use crate::runner::{self, Failure, cargo, root};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The usage, for `cargo xtask`.
pub const USAGE: &str = "fuzz TARGET [libFuzzer arguments]";

/// What libFuzzer needs from the compiler: counters at every edge, a table of what they belong to, and calls
/// at comparisons, which show what an input should have held. Checksums are ignored (`--cfg fuzzing`).
const FLAGS: [&str; 6] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// Larger inputs only cost time. An argument may set another limit.
const LIMITS: [&str; 3] = ["-max_len=65536", "-timeout=20", "-rss_limit_mb=1024"];

/// Builds and runs the fuzzer. Arguments after the target's name go to libFuzzer.
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

/// Builds the fuzzer, optimised and with every assertion on. A target platform is named, though it is this
/// machine's: then what runs during the build has no coverage counters.
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
