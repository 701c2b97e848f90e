//! `azekura shards`: sets of shards.

pub mod compact;
pub mod info;
pub mod merge;
mod of;
pub mod verify;

use std::path::Path;

use crate::failure::Outcome;

/// The commands on sets of shards.
#[derive(Debug, clap::Subcommand)]
#[command(
    after_help = "A set of shards is a folder with versions of a table, each in many files; docs/shards.md says how one\n\
                  is written.\n\n\
                  Example:\n  azekura shards info t.azs\n  azekura shards verify t.azs && echo sound"
)]
pub enum Command {
    /// Print what the versions of a set have
    Info(info::Args),
    /// Verify every byte of a version
    Verify(verify::Args),
    /// Remove old versions, and what killed programs have left
    Compact(compact::Args),
    /// Make the next version of a set from several sets, or with another number of shards
    Merge(merge::Args),
}

impl Command {
    /// The folder of the set.
    pub fn path(&self) -> &Path {
        match self {
            Command::Info(args) => &args.set.path,
            Command::Verify(args) => &args.set.path,
            Command::Compact(args) => &args.set.path,
            Command::Merge(args) => &args.set.path,
        }
    }
}

/// Runs a command.
pub fn run(command: &Command) -> Outcome {
    match command {
        Command::Info(args) => info::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Compact(args) => compact::run(args),
        Command::Merge(args) => merge::run(args),
    }
}
