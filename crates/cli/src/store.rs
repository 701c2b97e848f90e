//! Opening a database and a table, with messages that say what to do.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use azekura::{Db, Durability, Error, Kind, Options, Table};

use crate::failure::{Failure, Outcome};
use crate::output_file::is_same;

/// The database file.
#[derive(Debug, Clone, clap::Args)]
pub struct FileArg {
    /// The database file
    #[arg(value_name = "FILE")]
    pub path: PathBuf,
}

/// The `--table` option.
#[derive(Debug, Clone, clap::Args)]
pub struct TableArg {
    /// The table
    #[arg(long, short, value_name = "NAME", default_value = "main")]
    pub table: String,
}

/// Opens an existing database for reading: any number of readers may.
pub fn open_to_read(path: &Path) -> Outcome<Db> {
    must_exist(path)?;
    Ok(Db::open(path, Options::new().create(false).read_only(true))?)
}

/// Opens an existing database for writing.
pub fn open_to_write(path: &Path, durability: Durability) -> Outcome<Db> {
    must_exist(path)?;
    Ok(Db::open(path, Options::new().create(false).durability(durability))?)
}

/// Refuses what is not there, and the database that the shell has made standard output (`>>`): whatever
/// the command prints would damage it.
fn must_exist(path: &Path) -> Outcome {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(Failure::Usage(format!("{} is a directory", path.display()))),
        Ok(metadata) if stdout_metadata().is_some_and(|stdout| is_same(&stdout, &metadata)) => {
            Err(Failure::Usage(format!("{}: standard output is the database itself", path.display())))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::Usage(format!("{0}: no such database (create it with: azekura create {0})", path.display())))
        }
        Err(error) => Err(Failure::io("opening", path, &error)),
    }
}

fn stdout_metadata() -> Option<std::fs::Metadata> {
    let stdout = std::io::stdout().as_fd().try_clone_to_owned().ok()?;
    std::fs::File::from(stdout).metadata().ok()
}

/// Opens an existing table.
pub fn open_table(db: &Db, name: &str) -> Outcome<Table> {
    match db.open_table(name) {
        Err(Error::NoSuchTable { .. }) => Err(Failure::Usage(missing_table(db, name))),
        other => Ok(other?),
    }
}

fn missing_table(db: &Db, name: &str) -> String {
    let names: Vec<String> = db.tables().iter().map(|table| format!("{:?}", table.name)).collect();
    let there = match names.len() {
        0 => "it has none".to_owned(),
        1..=8 => format!("it has {}", names.join(", ")),
        count => format!("it has {count} others"),
    };
    format!("no table named {name:?} in {} ({there})", db.path().display())
}

/// The word for a table's kind.
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Ordered => "ordered",
        Kind::Hash => "hash",
    }
}
