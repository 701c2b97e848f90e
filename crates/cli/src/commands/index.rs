//! `azekura index`: the indexes of tables.

pub mod create;
pub mod drop;
pub mod get;
pub mod list;

use azekura::{Db, IndexInfo, Table};

use crate::bytes;
use crate::failure::{Failure, Outcome};
use crate::store::{self, FileArg};

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

/// An index of a table.
#[derive(Debug, Clone, clap::Args)]
pub struct IndexArg {
    #[command(flatten)]
    pub file: FileArg,
    /// The table
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// The index
    #[arg(value_name = "NAME")]
    pub name: String,
}

impl IndexArg {
    /// "index "by_email" of table "main"", for messages.
    fn shown(&self) -> String {
        format!("index {} of table {}", bytes::quoted(&self.name), bytes::quoted(&self.table))
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

/// The table and what is known of the index.
fn find(db: &Db, of: &IndexArg) -> Outcome<(Table, IndexInfo)> {
    let table = store::open_table(db, &of.table)?;
    let mut all = table.indexes()?;
    match all.iter().position(|info| info.name == of.name) {
        Some(at) => Ok((table, all.swap_remove(at))),
        None => Err(Failure::Usage(missing(of, &all))),
    }
}

fn missing(of: &IndexArg, all: &[IndexInfo]) -> String {
    let names: Vec<String> = all.iter().map(|info| bytes::quoted(&info.name)).collect();
    let there = match names.len() {
        0 => "it has none".to_owned(),
        1..=8 => format!("it has {}", names.join(", ")),
        count => format!("it has {count} others"),
    };
    format!("table {} has no index named {} ({there})", bytes::quoted(&of.table), bytes::quoted(&of.name))
}
