//! `azekura feed`: which tables are fed to those who watch them, and how much of that is kept.

pub mod info;
pub mod limits;
pub mod start;
pub mod stop;

use crate::failure::Outcome;
use crate::store::FileArg;

/// The commands on the feed of changes.
#[derive(Debug, clap::Subcommand)]
#[command(
    after_help = "The feed has what every commit has done to the tables that are fed, whatever program commits.\n\
                  azekura watch prints it.\n\n\
                  Example:\n  azekura feed start people.azk main\n  azekura watch people.azk --json"
)]
pub enum Command {
    /// Feed what is done to a table from now on
    Start(start::Args),
    /// Feed a table no longer; what was fed stays
    Stop(stop::Args),
    /// Say how much of the past is kept
    Limits(limits::Args),
    /// Print what is fed, and how much is kept
    Info(info::Args),
}

impl Command {
    /// The database.
    pub fn file(&self) -> &FileArg {
        match self {
            Command::Start(args) => &args.of.file,
            Command::Stop(args) => &args.of.file,
            Command::Limits(args) => &args.file,
            Command::Info(args) => &args.of.file,
        }
    }
}

/// Runs a command.
pub fn run(command: &Command) -> Outcome {
    match command {
        Command::Start(args) => start::run(args),
        Command::Stop(args) => stop::run(args),
        Command::Limits(args) => limits::run(args),
        Command::Info(args) => info::run(args),
    }
}
