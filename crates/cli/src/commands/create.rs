//! `azekura create`: a new database with one table, or another table in a database.

use std::path::Path;
use std::time::Duration;

use azekura::{Db, Durability, Error, Options, Table, TableKind};

use crate::failure::{Failure, Outcome};
use crate::output_file::check_target;
use crate::store::{self, FileArg, JsonArg, TableArg, kind_name};
use crate::units;

/// Arguments of `create`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  azekura create fruit.azk\n  azekura create fruit.azk --table prices --hash\n  \
                  azekura create fruit.azk --table sessions --hash --ttl 3600"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    #[command(flatten)]
    table: TableArg,
    /// A table in hash order: the fastest for single keys, without ranges
    #[arg(long, conflicts_with = "ordered")]
    hash: bool,
    /// A table in the order of its keys, with ranges and prefixes (the default)
    #[arg(long)]
    ordered: bool,
    /// Seconds after which records are gone by themselves, unless they are stored for longer or shorter
    #[arg(long, value_name = "SECONDS", value_parser = units::parse_lifetime)]
    ttl: Option<Duration>,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `create`. An existing table is an error, whatever its kind. A new database is made under another
/// name, with its table, so that a failure leaves nothing.
pub fn run(args: &Args) -> Outcome {
    let kind = if args.hash { TableKind::Hash } else { TableKind::Ordered };
    let (path, name) = (&args.file.path, &args.table.table);
    store::check_name(name)?;
    if !path.exists() {
        make(path, name, kind, args.ttl)?;
    } else {
        let db = if is_blank(path) {
            Db::open(path, Options::new())?
        } else {
            store::open_to_write(path, Durability::Sync, |db| store::must_be_free(db, name))?
        };
        create_table(&db, name, kind, args.ttl)?;
        store::close(db);
    }
    if args.json.json {
        let report = serde_json::json!({ "table": name, "kind": kind_name(kind) });
        return crate::output::print_json(&report);
    }
    Ok(())
}

/// Makes a table.
fn create_table(db: &Db, name: &str, kind: TableKind, ttl: Option<Duration>) -> azekura::Result<Table> {
    match ttl {
        Some(ttl) => db.create_expiring_table(name, kind, ttl),
        None => db.create_table(name, kind),
    }
}

/// Makes a new database.
fn make(path: &Path, name: &str, kind: TableKind, ttl: Option<Duration>) -> Outcome {
    let unfinished = check_target(path, &[], false)?.unfinished()?;
    // The engine's error has the temporary name of the file, which the user does not know.
    let failed = |error: azekura::Error| match error {
        Error::Open { detail, .. } => Failure::Usage(format!("{}: {detail}", path.display())),
        other => Failure::from(other).at(path),
    };
    let db = Db::open(unfinished.path(), Options::new()).map_err(failed)?;
    create_table(&db, name, kind, ttl).map_err(failed)?;
    store::close(db);
    unfinished.publish()
}

/// Whether a file may become a database: it is empty, or it has only the room for superblocks, as an
/// interrupted creation leaves it.
fn is_blank(path: &Path) -> bool {
    const ROOM_BYTES: u64 = 8192;
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() == ROOM_BYTES => {
            std::fs::read(path).is_ok_and(|bytes| bytes.iter().all(|&byte| byte == 0))
        }
        Ok(metadata) => metadata.is_file() && metadata.len() == 0,
        Err(_) => false,
    }
}
