//! `azekura remove`: removes one key, durably.

use std::ffi::OsString;

use azekura::Durability;

use crate::bytes::{self, FormArg};
use crate::commands::get::not_found;
use crate::failure::Outcome;
use crate::store::{self, FileArg, TableArg};

/// Arguments of `remove`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status 1 when there is no such key.\n\n\
                  Example:\n  azekura remove fruit.azk apple\n  printf 'two\\nlines' | azekura remove fruit.azk -")]
pub struct Args {
    #[command(flatten)]
    file: FileArg,
    /// The key, or - for standard input (a key that is - itself: --hex 2d)
    #[arg(allow_hyphen_values = true)]
    key: OsString,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    form: FormArg,
}

/// Runs `remove`: looks and removes in one transaction, without reading the value.
pub fn run(args: &Args) -> Outcome {
    let form = args.form.form();
    let key = bytes::argument(&args.key, form)?;
    let db = store::open_to_write(&args.file.path, Durability::Sync)?;
    let table = store::open_table(&db, &args.table.table)?;
    let mut txn = db.write();
    let present = txn.contains(&table, &key)?;
    if present {
        txn.remove(&table, &key)?;
        txn.commit()?;
    } else {
        drop(txn);
    }
    db.close()?;
    if present { Ok(()) } else { Err(not_found(&key, &args.table.table, form)) }
}
