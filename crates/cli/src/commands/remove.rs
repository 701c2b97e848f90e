//! `azekura remove`: removes one key, durably.

use std::ffi::OsString;

use azekura::{Db, Durability};

use crate::arguments;
use crate::bytes::FormArg;
use crate::commands::get::not_found;
use crate::failure::Outcome;
use crate::store::{self, FileArg, TableArg};

/// Arguments of `remove`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status 1 when there is no such key.\n\n\
                  Example:\n  azekura remove fruit.azk apple\n  printf 'two\\nlines' | azekura remove fruit.azk -")]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The key, or - for standard input (a key that is - itself: --hex 2d)
    #[arg(allow_hyphen_values = true)]
    key: OsString,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    form: FormArg,
}

/// Runs `remove`.
pub fn run(args: &Args) -> Outcome {
    let form = args.form.form();
    let key = arguments::argument(&args.key, form)?;
    let name = &args.table.table;
    let look = |db: &Db| match store::open_table(db, name)?.contains(&key) {
        Ok(false) => Err(not_found(&key, name, form)),
        // A record that cannot be read can be removed.
        Ok(true) | Err(azekura::Error::Corrupt { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    };
    let db = store::open_to_write(&args.file.path, Durability::Sync, look)?;
    store::open_table(&db, name)?.remove(&key)?;
    store::close(db);
    Ok(())
}
