//! Which index a command is about.

use azekura::{Db, IndexInfo, Table};

use crate::bytes;
use crate::failure::{Failure, Outcome};
use crate::store::{self, FileArg};

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
    pub(super) fn shown(&self) -> String {
        format!("index {} of table {}", bytes::quoted(&self.name), bytes::quoted(&self.table))
    }
}

/// The table and what is known of the index.
pub(super) fn find(db: &Db, of: &IndexArg) -> Outcome<(Table, IndexInfo)> {
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
