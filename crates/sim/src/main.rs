//! `sim`: tries to break the engine's promises, and prints the results.
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
    Crash(commands::crash::Arguments),
    /// Cuts off backups, restores and prunings, and damages repositories
    Backup(Limits),
    /// Cuts off mirrors of databases that are written
    Mirror(Limits),
    /// Lets calls to the disk fail, be short or interrupted, and the disk be full
    Errors(Limits),
    /// Damages files in every way, and looks for wrong answers
    Flips(commands::flips::Arguments),
    /// Runs the same operations under different options, and compares all answers
    Metamorphic(Limits),
    /// Breaks the engine on purpose in each of several ways, and sees to it that this is noticed
    Canaries(commands::canaries::Arguments),
    /// Hands hostile bytes to everything that reads bytes
    Fuzz(commands::fuzz::Arguments),
    /// Salvages files damaged at random, and demands the records of every page that is whole
    Salvage(Limits),
    /// Judges histories of concurrent transactions for the isolation that is claimed
    Isolation(Limits),
    /// Kills a process that writes, reopens, and compares with an oracle outside it
    Kills(Limits),
    /// Follows a file from several processes while another writes it, and kills and stops all of them
    Followers(commands::followers::Arguments),
    /// A long mixed load, or that of a cache: pauses, memory, file size, open files
    Soak(commands::soak::Arguments),
    /// The process that `kills` kills
    #[command(hide = true)]
    KilledChild(sim::kills::child::Orders),
    /// The process that reads the feed of that one
    #[command(hide = true)]
    KilledReader(sim::kills::copier::Orders),
    /// The process that writes for `followers`
    #[command(hide = true)]
    FollowingWriter(sim::followers::writer::Orders),
    /// A process that follows for `followers`
    #[command(hide = true)]
    FollowingReader(sim::followers::reader::Orders),
}

/// Remembers the largest allocation, for commands that watch it.
#[global_allocator]
static ALLOCATOR: sim::memory::Measured = sim::memory::Measured;

fn main() -> ExitCode {
    let verdict = match Arguments::parse().command {
        Command::Crash(arguments) => commands::crash::run(&arguments),
        Command::Backup(limits) => commands::backup::run(&limits),
        Command::Mirror(limits) => commands::mirror::run(&limits),
        Command::Errors(limits) => commands::errors::run(&limits),
        Command::Flips(arguments) => commands::flips::run(&arguments),
        Command::Metamorphic(limits) => commands::metamorphic::run(&limits),
        Command::Canaries(arguments) => commands::canaries::run(&arguments),
        Command::Fuzz(arguments) => commands::fuzz::run(&arguments),
        Command::Salvage(limits) => commands::salvage::run(&limits),
        Command::Isolation(limits) => commands::isolation::run(&limits),
        Command::Soak(arguments) => commands::soak::run(&arguments),
        Command::Kills(limits) => commands::kills::run(&limits),
        Command::Followers(arguments) => commands::followers::run(&arguments),
        Command::FollowingWriter(orders) => return sim::followers::writer::run(&orders),
        Command::FollowingReader(orders) => return sim::followers::reader::run(&orders),
        Command::KilledReader(orders) => return sim::kills::copier::run(&orders),
        Command::KilledChild(orders) => return sim::kills::child::run(&orders),
    };
    verdict.exit()
}
