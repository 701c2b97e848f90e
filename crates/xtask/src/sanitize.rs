//! `cargo xtask sanitize address|thread`: the engine's tests with a sanitizer in the build.
//!
//! The compiler's switch for it is not for stable toolchains, so it is opened as for the compiler's own build
//! (`RUSTC_BOOTSTRAP`), for these tests only. The standard library stays as it is delivered, without the sanitizer:
//! what it does by itself is not watched, but all of its generic code is, since that is compiled here. For threads
//! this makes false alarms where it synchronizes by a fence, which the sanitizer does not know; they are named,
//! with the reason, in `tsan.txt` beside this package.

use crate::runner::{self, cargo};
use std::path::Path;
use std::process::ExitCode;

/// The usage, for `cargo xtask`.
pub const USAGE: &str = "sanitize address|thread [TEST...]";

/// Runs the tests whose names contain one of the words behind the sanitizer's, or all.
pub fn run(arguments: &[String]) -> ExitCode {
    let Some((sanitizer, names)) = arguments.split_first().filter(|(s, _)| ["address", "thread"].contains(&s.as_str()))
    else {
        eprintln!("Usage: cargo xtask {USAGE}");
        return ExitCode::from(2);
    };
    let mut command = cargo();
    command.args(["test", "--package", "azekura", "--lib", "--tests", "--target", &host()]);
    command.arg("--target-dir").arg(format!("target/sanitize-{sanitizer}"));
    command.arg("--").args(names);
    let flags = format!("-Zsanitizer={sanitizer} -Cunsafe-allow-abi-mismatch=sanitizer");
    command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flags);
    let suppressions = Path::new(env!("CARGO_MANIFEST_DIR")).join("tsan.txt");
    command.env("TSAN_OPTIONS", format!("halt_on_error=1 suppressions={}", suppressions.display()));
    match runner::run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// The platform to build for. Named even though it is ours: what runs while building goes without the sanitizer then.
fn host() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}
