//! `cargo xtask sanitize address|thread`: the engine's tests with a sanitizer in the build.
//!
//! The compiler's switches for it are not for stable toolchains, so they are opened as for the compiler's own
//! build (`RUSTC_BOOTSTRAP`), for these tests only. For addresses the standard library stays as it is
//! delivered, without the sanitizer: what it does by itself is not watched, but all of its generic code is,
//! since that is compiled here. For threads it is built anew (which needs its source:
//! `rustup component add rust-src`), as whatever synchronizes must be seen to, and calls to the system go
//! through the C library, whose mappings the sanitizer knows of.
//!
//! The model test runs [`MODEL_ROUNDS`] rounds here unless `AZEKURA_ROUNDS` says otherwise, and tests that
//! watch for hangs have more patience.

use crate::runner::{self, cargo};
use std::process::ExitCode;

/// The usage, for `cargo xtask`.
pub const USAGE: &str = "sanitize address|thread [TEST...]";

/// Of the model test's 160 rounds: some ten times slower than usual, the rest would take an hour.
const MODEL_ROUNDS: &str = "12";

/// How many times as long a test may say nothing.
const PATIENCE: &str = "10";

/// Runs the tests whose names contain one of the words behind the sanitizer's, or all.
pub fn run(arguments: &[String]) -> ExitCode {
    let Some((sanitizer, names)) =
        arguments.split_first().filter(|(s, _)| ["address", "thread"].contains(&s.as_str()))
    else {
        eprintln!("Usage: cargo xtask {USAGE}");
        return ExitCode::from(2);
    };
    let threads = sanitizer == "thread";
    let mut command = cargo();
    command.args(["test", "--no-fail-fast", "--package", "azekura", "--lib", "--tests", "--target", &host()]);
    command.arg("--target-dir").arg(format!("target/sanitize-{sanitizer}"));
    command.args(threads.then_some("-Zbuild-std"));
    command.arg("--").args(names);
    let more = if threads { "--cfg rustix_use_libc" } else { "-Cunsafe-allow-abi-mismatch=sanitizer" };
    command
        .env("AZEKURA_PATIENCE", PATIENCE)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", format!("-Zsanitizer={sanitizer} {more}"));
    if std::env::var_os("AZEKURA_ROUNDS").is_none() {
        command.env("AZEKURA_ROUNDS", MODEL_ROUNDS);
    }
    match runner::run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// The platform to build for. Named even though it is ours: what runs while building goes without the
/// sanitizer then.
pub fn host() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}
