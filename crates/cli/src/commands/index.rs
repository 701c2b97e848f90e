//! `azekura index`: the indexes of tables.

pub mod create;
pub mod drop;
pub mod get;
pub mod list;
mod of;

use crate::failure::Outcome;
use crate::store::FileArg;

/// The commands on indexes.
#[derive(Debug, clap::Subcommand)]
#[command(
    after_help = "An index finds records by what is in their values (or keys), in its own order. Every write to the\n\
                  table keeps it, whatever program makes that write.\n\n\
                  Example:\n  azekura index create people.azk main by_email 'v./email:lower unique'\n  \
                  azekura index get people.azk main by_email ada@example.org"
)]
pub enum Command {
    /// Make an index of a table, or finish one that was interrupted
    Create(create::Args),
    /// Print records by their values in an index
    Get(get::Args),
    /// List the indexes of a table, or of all
    List(list::Args),
    /// Remove an index; the table's records stay
    Drop(drop::Args),
}

impl Command {
    /// The database.
    pub fn file(&self) -> &FileArg {
        match self {
            Command::Create(args) => &args.of.file,
            Command::Get(args) => &args.of.file,
            Command::List(args) => &args.file,
            Command::Drop(args) => &args.of.file,
        }
    }
}

/// Runs a command.
pub fn run(command: &Command) -> Outcome {
    match command {
        Command::Create(args) => create::run(args),
        Command::Get(args) => get::run(args),
        Command::List(args) => list::run(args),
        Command::Drop(args) => drop::run(args),
    }
}
