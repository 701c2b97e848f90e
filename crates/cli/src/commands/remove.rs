//! `azekura remove`: removes one key, durably.

use azekura::{Db, Durability};

use crate::failure::Outcome;
use crate::keys::KeyArg;
use crate::store;

/// Arguments of `remove`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status 1 when there is no such key.\n\n\
                  Example:\n  azekura remove fruit.azk apple\n  printf 'two\\nlines' | azekura remove fruit.azk -")]
pub struct Args {
    #[command(flatten)]
    pub of: KeyArg,
}

/// Runs `remove`.
pub fn run(args: &Args) -> Outcome {
    let (key, name) = (args.of.key()?, &args.of.table.table);
    let look = |db: &Db| match store::open_table(db, name)?.contains(&key) {
        Ok(false) => Err(args.of.not_found(&key)),
        // A record that cannot be read can be removed.
        Ok(true) | Err(azekura::Error::Corrupt { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    };
    let db = store::open_to_write(&args.of.file.path, Durability::Sync, look)?;
    store::open_table(&db, name)?.remove(&key)?;
    store::close(db);
    Ok(())
}
