//! The command line's grammar: one variant for each command. Its arguments are defined beside the command.

use std::path::Path;
use std::process::ExitCode;

use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::bench;
use crate::commands::{
    backup, check, clear, copy, copy_table, count, create, drop, export, feed, follow, get, import, index,
    info, merge, mirror, points, promote, prune, remove, remove_range, rename, restore, salvage, scan, set,
    shards, shrink, stream, tables, ttl, verify, watch,
};
use crate::failure::{EXIT_USAGE, Outcome};
use crate::store::FileArg;

/// The colours of `--help` on a terminal: those of cargo.
const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default())
    .error(AnsiColor::Red.on_default().bold());

/// Azekura: an embedded transactional key-value store, one file for a database
#[derive(Debug, Parser)]
#[command(
    name = "azekura",
    version,
    styles = STYLES,
    max_term_width = 100,
    after_help = "Exit status: 0 ok, 1 not found, 2 usage or I/O error, 3 corrupt, 130 interrupted.\n\n\
                  Example:\n  \
                  azekura create fruit.azk\n  \
                  azekura set fruit.azk apple red\n  \
                  azekura get fruit.azk apple"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the engine on a real file: write, close, reopen, read back and verify
    Bench(bench::Args),
    /// Create a database, or a table in an existing one
    Create(create::Args),
    /// Print the value of a key
    Get(get::Args),
    /// Store a value under a key, durably
    Set(set::Args),
    /// Change a number without reading it, durably
    Merge(merge::Args),
    /// Remove a key
    Remove(remove::Args),
    /// Remove the keys of a range, or those with a prefix
    RemoveRange(remove_range::Args),
    /// Print records: all of them, a range of keys, or those with a prefix
    Scan(scan::Args),
    /// Print the exact number of records of a table
    Count(count::Args),
    /// Print the size and the state of a database
    Info(info::Args),
    /// List the tables of a database
    Tables(tables::Args),
    /// Remove a table with all its records
    Drop(drop::Args),
    /// Give a table another name
    Rename(rename::Args),
    /// Say how long the records of a table live, or for how long those live that are to come
    Ttl(ttl::Args),
    /// Remove all records of a table
    Clear(clear::Args),
    /// Copy a table, within a database or into another
    CopyTable(copy_table::Args),
    /// Make, list, use and remove the indexes of tables
    #[command(subcommand)]
    Index(index::Command),
    /// Choose what is fed to those who watch a database, and how much of it is kept
    #[command(subcommand)]
    Feed(feed::Command),
    /// Print what commits do to the tables that are fed, as they are made
    Watch(watch::Args),
    /// Store the records of a TSV file or stream
    Import(import::Args),
    /// Write the records of a table as TSV
    Export(export::Args),
    /// Verify every byte of a database: checksums, order, counts, free space
    Check(check::Args),
    /// Give unused space back to the file system
    #[command(visible_alias = "compact")]
    Shrink(shrink::Args),
    /// Copy what still verifies in a damaged database to a new one
    Salvage(salvage::Args),
    /// Add a point to a repository of backups, or write a backup to standard output
    Backup(backup::Args),
    /// Make a database of a point of a repository, or of a backup on standard input
    Restore(restore::Args),
    /// List the points of a repository of backups
    Points(points::Args),
    /// Verify every byte of a repository of backups
    Verify(verify::Args),
    /// Remove points of a repository of backups, and what they alone have
    Prune(prune::Args),
    /// Copy a database to a new file
    Copy(copy::Args),
    /// Keep a file equal to a database that a program writes
    Mirror(mirror::Args),
    /// Keep a file equal to a database on another machine
    Follow(follow::Args),
    /// Be the source of a mirror on another machine, which starts this command
    Stream(stream::Args),
    /// Make a mirror a database of its own
    Promote(promote::Args),
    /// Describe, verify, merge and clean up sets of shards
    #[command(subcommand)]
    Shards(shards::Command),
}

impl Command {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self {
            Command::Bench(args) => crate::bench::run(args),
            Command::Create(args) => named(&args.file, create::run(&args)),
            Command::Get(args) => named(&args.of.file, get::run(&args)),
            Command::Set(args) => named(&args.of.file, set::run(&args)),
            Command::Merge(args) => named(&args.of.file, merge::run(&args)),
            Command::Remove(args) => named(&args.of.file, remove::run(&args)),
            Command::RemoveRange(args) => named(&args.of.file, remove_range::run(&args)),
            Command::Scan(args) => named(&args.of.file, scan::run(&args)),
            Command::Count(args) => named(&args.file, count::run(&args)),
            Command::Info(args) => named(&args.of.file, info::run(&args)),
            Command::Tables(args) => named(&args.file, tables::run(&args)),
            Command::Drop(args) => named(&args.of.file, drop::run(&args)),
            Command::Rename(args) => named(&args.names.file, rename::run(&args)),
            Command::Ttl(args) => named(&args.file, ttl::run(&args)),
            Command::Clear(args) => named(&args.of.file, clear::run(&args)),
            Command::CopyTable(args) => named(&args.names.file, copy_table::run(&args)),
            Command::Index(command) => named(&command.file().clone(), index::run(&command)),
            Command::Feed(command) => named(&command.file().clone(), feed::run(&command)),
            Command::Watch(args) => named(&args.file, watch::run(&args)),
            Command::Import(args) => named(&args.file, import::run(&args)),
            Command::Export(args) => named(&args.file, export::run(&args)),
            Command::Check(args) => named(&args.of.file, check::run(&args)),
            Command::Shrink(args) => named(&args.file, shrink::run(&args)),
            Command::Salvage(args) => named(&args.file, salvage::run(&args)),
            Command::Backup(args) => named(&args.file, backup::run(&args)),
            Command::Restore(args) => at(&args.repository, restore::run(&args)),
            Command::Points(args) => at(&args.repository.path, points::run(&args)),
            Command::Verify(args) => at(&args.repository.path, verify::run(&args)),
            Command::Prune(args) => at(&args.repository.path, prune::run(&args)),
            Command::Copy(args) => named(&args.file, copy::run(&args)),
            Command::Mirror(args) => named(&args.file, mirror::run(&args)),
            Command::Follow(args) => at(&args.to, follow::run(&args)),
            Command::Stream(args) => named(&args.file, stream::run(&args)),
            Command::Promote(args) => named(&args.file, promote::run(&args)),
            Command::Shards(command) => at(command.path(), shards::run(&command)),
        }
    }
}

/// The outcome of a command on a file. Failures of the engine get the file's name.
fn named(file: &FileArg, outcome: Outcome) -> Outcome {
    at(&file.path, outcome)
}

/// The same of a repository of backups.
fn at(path: &Path, outcome: Outcome) -> Outcome {
    outcome.map_err(|failure| failure.at(path))
}

/// Parses the process's arguments. For help, the version or a usage error, prints it and returns the exit
/// status.
pub fn parse() -> Result<Command, ExitCode> {
    match Cli::try_parse() {
        Ok(cli) => Ok(cli.command),
        Err(error) => Err(report(&error)),
    }
}

/// Prints a message of clap. Its `error:` becomes `azekura:`, as in every other message.
fn report(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A reader that goes away, as in `azekura --help | head -1`, is no failure.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(EXIT_USAGE);
    }
    let plain = error.render().to_string();
    let harmless = crate::bytes::harmless(&plain);
    // clap quotes the user's words, which may contain escape sequences. With colours one could not tell them
    // apart.
    let in_colour = crate::style::on_stderr() && harmless == plain;
    let text = if in_colour { error.render().ansi().to_string() } else { harmless };
    crate::failure::write_stderr(&text.replacen("error:", "azekura:", 1));
    ExitCode::from(EXIT_USAGE)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_consistent() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        let all = super::Cli::command();
        let of = |name: &str| all.find_subcommand(name).expect("a command").get_subcommands();
        let of_indexes = of("index").map(|command| ("azekura index", command));
        let of_feed = of("feed").map(|command| ("azekura feed", command));
        let of_shards = of("shards").map(|command| ("azekura shards", command));
        let top = all.get_subcommands().map(|command| ("azekura", command));
        for (start, command) in top.chain(of_indexes).chain(of_feed).chain(of_shards) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let call = format!("{start} {}", command.get_name());
            assert!(help.contains("Example"), "{} has no example", command.get_name());
            assert!(help.contains(&call), "{}'s example does not call it", command.get_name());
        }
    }
}
