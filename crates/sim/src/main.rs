//! `sim`: tries to break the engine's promises, and says what it found.
//!
//! Each command ends with the line `tried N violations M seed X`; the exit status is 1 if M > 0.

use clap::{Parser, Subcommand};
use sim::commands;
use sim::report::Limits;
use std::process::ExitCode;

/// Tries to break each promise of the engine. Without --count and --seconds a command goes on until it
/// is interrupted. The last line is `tried N violations M seed X`; the exit status is 1 if M > 0.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Cuts the power at any call to the disk, reopens, and compares with the model
    Crash(Limits),
    /// Lets calls to the disk fail, be short or interrupted, and the disk be full
    Errors(Limits),
    /// Damages files in every way, and looks for wrong answers
    Flips(commands::flips::Arguments),
}

/// Remembers the largest allocation, for the commands that watch it.
#[global_allocator]
static ALLOCATOR: sim::memory::Measured = sim::memory::Measured;

fn main() -> ExitCode {
    let verdict = match Arguments::parse().command {
        Command::Crash(limits) => commands::crash::run(&limits),
        Command::Errors(limits) => commands::errors::run(&limits),
        Command::Flips(arguments) => commands::flips::run(&arguments),
    };
    verdict.exit()
}
