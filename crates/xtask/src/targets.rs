//! `cargo xtask targets`: checks whether the engine, the command line and the C library build for other
//! platforms.
//!
//! The standard library of each platform is built from its source (`rustup component add rust-src`), so no
//! other toolchain is needed. The compiler's switch for that is not for stable toolchains. It is opened for
//! this check only.

use crate::runner::{self, cargo};
use std::process::ExitCode;

const TARGETS: [&str; 3] = ["aarch64-unknown-linux-gnu", "x86_64-unknown-freebsd", "x86_64-apple-darwin"];

/// Checks all platforms, and names those that do not build.
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
            "--package",
            "azekura-dropin",
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
