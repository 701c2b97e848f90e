//! `cargo xtask targets`: whether the engine, the command line and the C library build for platforms other
//! than this one.
//!
//! The standard library of each is built from its source (`rustup component add rust-src`), so that no other
//! toolchain is needed; the compiler's switch for that is not for stable toolchains, and opened for this
//! check only.

use crate::runner::{self, cargo};
use std::process::ExitCode;

const TARGETS: [&str; 3] = ["aarch64-unknown-linux-gnu", "x86_64-unknown-freebsd", "x86_64-apple-darwin"];

/// Checks all of them, and says which do not build.
pub fn run() -> ExitCode {
    let mut failures = Vec::new();
    for target in TARGETS {
        let mut command = cargo();
        command.args([
            "check",
            "--package",
            "azekura",
            "--package",
            "azekura-cli",
            "--package",
            "azekura-capi",
        ]);
        command.args(["--target", target, "-Zbuild-std"]);
        command.args(["--target-dir", "target/targets"]);
        command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-D warnings");
        failures.extend(runner::run(command).err());
    }
    for reason in &failures {
        println!("{reason}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
