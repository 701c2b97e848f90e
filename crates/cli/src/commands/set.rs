//! `azekura set`: stores one value, durably.

use std::ffi::OsString;
use std::time::Duration;

use azekura::{Db, Durability, KEY_BYTES_MAX};

use crate::arguments;
use crate::failure::{Failure, Outcome};
use crate::keys::KeyArg;
use crate::store;
use crate::units;

/// Arguments of `set`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Standard input can be the key or the value, not both; it is taken byte for byte. Bytes that no\n\
                  argument can hold go in as --hex, and `import` reads keys and values together.\n\n\
                  Example:\n  azekura set fruit.azk apple red\n  azekura set photos.azk cat.jpg - < cat.jpg\n  \
                  printf 'two\\nlines' | azekura set fruit.azk - red\n  azekura set --hex fruit.azk 00ff cafe\n  \
                  azekura set fruit.azk pear green --ttl 60"
)]
pub struct Args {
    #[command(flatten)]
    pub of: KeyArg,
    /// The value, or - for standard input
    #[arg(allow_hyphen_values = true)]
    value: OsString,
    /// Seconds after which the record is gone by itself
    #[arg(long, value_name = "SECONDS", value_parser = units::parse_lifetime)]
    ttl: Option<Duration>,
}

/// Runs `set`. Standard input is read before the database is opened: a slow pipe must not lock others out.
pub fn run(args: &Args) -> Outcome {
    arguments::one_from_stdin(("KEY", &args.of.key), ("VALUE", &args.value))?;
    let key = args.of.key()?;
    let value = arguments::argument(&args.value, args.of.form.form())?;
    if key.len() > KEY_BYTES_MAX {
        let bytes = units::grouped(u64::try_from(key.len()).unwrap_or(u64::MAX));
        return Err(Failure::Usage(format!(
            "the key has {bytes} bytes, at most {KEY_BYTES_MAX} are allowed"
        )));
    }
    let name = &args.of.table.table;
    let look = |db: &Db| store::open_table(db, name).map(drop);
    let db = store::open_to_write(&args.of.file.path, Durability::Sync, look)?;
    let table = store::open_table(&db, name)?;
    match args.ttl {
        Some(ttl) => table.put_for(&key, &value, ttl)?,
        None => table.put(&key, &value)?,
    }
    drop(table);
    store::close(db);
    Ok(())
}
