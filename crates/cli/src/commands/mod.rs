//! The commands, one file for each.

pub mod check;
pub mod compact;
pub mod count;
pub mod create;
pub mod export;
pub mod get;
pub mod import;
pub mod info;
pub mod remove;
pub mod scan;
pub mod set;
pub mod tables;

use crate::cli::Command;
use crate::failure::Outcome;

/// Runs one command.
pub fn run(command: Command) -> Outcome {
    match command {
        Command::Bench(args) => crate::bench::run(args),
        Command::Create(args) => create::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Set(args) => set::run(&args),
        Command::Remove(args) => remove::run(&args),
        Command::Scan(args) => scan::run(&args),
        Command::Count(args) => count::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Tables(args) => tables::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Compact(args) => compact::run(&args),
    }
}
