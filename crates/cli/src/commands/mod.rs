//! The commands, one file for each.

pub mod check;
pub mod clear;
pub mod compact;
pub mod copy_table;
pub mod count;
pub mod create;
pub mod drop;
pub mod export;
pub mod get;
pub mod import;
pub mod info;
pub mod remove;
pub mod remove_range;
pub mod rename;
pub mod salvage;
pub mod scan;
pub mod set;
pub mod tables;

use crate::cli::Command;
use crate::failure::{Failure, Outcome};
use crate::store::FileArg;

/// Runs one command.
pub fn run(command: Command) -> Outcome {
    match command {
        Command::Bench(args) => crate::bench::run(args),
        Command::Create(args) => named(&args.file, create::run(&args)),
        Command::Get(args) => named(&args.file, get::run(&args)),
        Command::Set(args) => named(&args.file, set::run(&args)),
        Command::Remove(args) => named(&args.file, remove::run(&args)),
        Command::RemoveRange(args) => named(&args.of.file, remove_range::run(&args)),
        Command::Scan(args) => named(&args.of.file, scan::run(&args)),
        Command::Count(args) => named(&args.file, count::run(&args)),
        Command::Info(args) => named(&args.file, info::run(&args)),
        Command::Tables(args) => named(&args.file, tables::run(&args)),
        Command::Drop(args) => named(&args.of.file, drop::run(&args)),
        Command::Rename(args) => named(&args.names.file, rename::run(&args)),
        Command::Clear(args) => named(&args.of.file, clear::run(&args)),
        Command::CopyTable(args) => named(&args.names.file, copy_table::run(&args)),
        Command::Import(args) => named(&args.file, import::run(&args)),
        Command::Export(args) => named(&args.file, export::run(&args)),
        Command::Check(args) => named(&args.file, check::run(&args)),
        Command::Compact(args) => named(&args.file, compact::run(&args)),
        Command::Salvage(args) => named(&args.file, salvage::run(&args)),
    }
}

/// The failure of a command that has found so much wrong with a file.
fn corrupt_unless_none(file: &FileArg, count: u64, [one, many]: [&str; 2]) -> Outcome {
    match count {
        0 => Ok(()),
        1 => Err(Failure::Corrupt(format!("{}: 1 {one}", file.path.display()))),
        _ => Err(Failure::Corrupt(format!("{}: {count} {many}", file.path.display()))),
    }
}

/// The outcome of a command on a file, which every failure of the engine then names.
fn named(file: &FileArg, outcome: Outcome) -> Outcome {
    outcome.map_err(|failure| failure.at(&file.path))
}
