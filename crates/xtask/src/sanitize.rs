//! `cargo xtask sanitize address|thread`: the engine's tests with a sanitizer in the build.
//!
//! The compiler's switches for sanitizers are not for stable toolchains. They are opened for these tests
//! only, as the compiler's own build opens them (`RUSTC_BOOTSTRAP`). With `address` the standard library is
//! the delivered one, without the sanitizer: its own compiled code is not watched, but its generic code is,
//! since that is compiled here. With `thread` the standard library is built anew (which needs its source:
//! `rustup component add rust-src`), since everything that synchronizes must be watched. Then system calls go
//! through the C library, whose mappings the sanitizer knows.
//!
//! The model test runs [`MODEL_ROUNDS`] rounds here, unless `AZEKURA_ROUNDS` says otherwise. Tests that watch
//! for hangs have more patience.

use crate::runner::{self, cargo};
use std::process::ExitCode;

/// The usage, for `cargo xtask`.
pub const USAGE: &str = "sanitize address|thread [TEST...]";

/// How many of the model test's 160 rounds run. At a tenth of the usual speed the rest would take an hour.
const MODEL_ROUNDS: &str = "12";

/// How many times as long as usual a test may be silent.
const PATIENCE: &str = "10";

/// Runs the tests whose names contain one of the words after the sanitizer's name, or all tests.
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

/// The platform to build for. It is named, though it is this machine's: then what runs during the build has
/// no sanitizer.
pub fn host() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}
