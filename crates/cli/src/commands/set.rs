//! `azekura set`: stores one value, durably.

use std::ffi::OsString;

use azekura::Durability;

use crate::bytes::{self, FormArg};
use crate::failure::Outcome;
use crate::store::{self, FileArg, TableArg};

/// Arguments of `set`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  azekura set fruit.azk apple red\n  azekura set photos.azk cat.jpg - < cat.jpg\n  azekura set --hex fruit.azk 00ff cafe"
)]
pub struct Args {
    #[command(flatten)]
    file: FileArg,
    /// The key
    #[arg(allow_hyphen_values = true)]
    key: OsString,
    /// The value, or - for standard input
    #[arg(allow_hyphen_values = true)]
    value: OsString,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    form: FormArg,
}

/// Runs `set`. The value is read before the database is opened: a slow pipe locks nobody out.
pub fn run(args: &Args) -> Outcome {
    let form = args.form.form();
    let key = bytes::argument(&args.key, form)?;
    let value = bytes::argument_or_stdin(&args.value, form)?;
    let db = store::open_to_write(&args.file.path, Durability::Sync)?;
    store::open_table(&db, &args.table.table)?.put(&key, &value)?;
    Ok(db.close()?)
}
