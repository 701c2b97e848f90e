//! Opening a database and a table, with messages that say what to do.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use azekura::{Db, Durability, Error, Freshness, NAME_BYTES_MAX, Options, Table, TableKind};

use crate::bytes::quoted;
use crate::failure::{self, Failure, Outcome};
use crate::output_file::is_same;
use crate::{foreign, units};

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

/// The `--json` option of commands that print what they have done or found.
#[derive(Debug, Clone, clap::Args)]
pub struct JsonArg {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The `--follow` option of commands that only read.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct FollowArg {
    /// Read beside a program that has the database open, up to its newest durable commit
    #[arg(long)]
    pub follow: bool,
}

impl FollowArg {
    /// Opens an existing database for reading.
    pub fn open(self, path: &Path) -> Outcome<Db> {
        if self.follow { open_to_follow(path) } else { open_to_read(path) }
    }
}

/// A database that is read, and told of as text or JSON.
#[derive(Debug, clap::Args)]
pub struct ReportArg {
    #[command(flatten)]
    pub file: FileArg,
    #[command(flatten)]
    pub json: JsonArg,
    #[command(flatten)]
    pub follow: FollowArg,
}

impl ReportArg {
    /// Opens the database for reading.
    pub fn open(&self) -> Outcome<Db> {
        self.follow.open(&self.file.path)
    }
}

/// The options of commands that write for long: limits for those who follow meanwhile.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct LimitArgs {
    /// Give up the oldest snapshots of followers when these keep more than so many bytes of the file
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    pinned_bytes_max: Option<u64>,
    /// Give up snapshots of followers that have been outdated for so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = units::parse_seconds)]
    pinned_age_max: Option<f64>,
}

impl LimitArgs {
    /// Options with these limits.
    pub fn options(self, options: Options) -> Options {
        let options = self.pinned_bytes_max.map_or(options.clone(), |bytes| options.pinned_bytes_max(bytes));
        match self.pinned_age_max {
            Some(age) => options.pinned_age_max(Duration::from_secs_f64(age)),
            None => options,
        }
    }
}

/// A whole table. It must always be named, so that no table is changed by accident.
#[derive(Debug, Clone, clap::Args)]
pub struct WholeTableArg {
    #[command(flatten)]
    pub file: FileArg,
    /// The table
    #[arg(value_name = "TABLE")]
    pub table: String,
    #[command(flatten)]
    pub json: JsonArg,
}

/// A table, and a name that no table has.
#[derive(Debug, Clone, clap::Args)]
pub struct FromToArg {
    #[command(flatten)]
    pub file: FileArg,
    /// The table
    #[arg(value_name = "FROM")]
    pub from: String,
    /// The new name, which no table has
    #[arg(value_name = "TO")]
    pub to: String,
}

/// Opens an existing database for reading. Any number of readers may do so.
pub fn open_to_read(path: &Path) -> Outcome<Db> {
    must_exist(path)?;
    Ok(Db::open(path, Options::new().create(false).read_only(true))?)
}

/// Opens an existing database that another program may be writing to.
pub fn open_to_follow(path: &Path) -> Outcome<Db> {
    must_exist(path)?;
    Ok(Db::open(path, Options::new().create(false).freshness(Freshness::Log))?)
}

/// As `open_to_follow`, as of the newest checkpoint. Copies have the log's commits, too.
pub fn open_to_follow_checkpoints(path: &Path) -> Outcome<Db> {
    must_exist(path)?;
    Ok(Db::open(path, Options::new().create(false).follow(true))?)
}

/// Opens an existing database for writing, after `look` has checked it through a reading handle. Opening for
/// writing may change the file, and a command that fails must not change it.
pub fn open_to_write(path: &Path, durability: Durability, look: impl FnOnce(&Db) -> Outcome) -> Outcome<Db> {
    open_to_write_with(path, Options::new().durability(durability), look)
}

/// The same with options.
pub fn open_to_write_with(path: &Path, options: Options, look: impl FnOnce(&Db) -> Outcome) -> Outcome<Db> {
    look(&open_to_read(path)?)?;
    Ok(Db::open(path, options.create(false))?)
}

/// Closes a database whose changes are durable. A failure to close is only a warning, and so is that a
/// synchronous mirror has not had them in time.
pub fn close(db: Db) {
    let path = db.path().display().to_string();
    let behind = db.stats().unmirrored_commits;
    if behind > 0 {
        failure::warn(&format!(
            "{path}: the change is stored here, and its synchronous mirror did not have it in time \
             (durable commits without it: {behind})"
        ));
    }
    if let Err(error) = db.close() {
        failure::warn(&format!("{path}: {error}; the change is stored, and the next opening tidies up"));
    }
}

/// Refuses a file that does not exist. Also refuses a database that is standard output (by the shell's `>>`):
/// the command's output would damage it.
pub fn must_exist(path: &Path) -> Outcome {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Failure::Usage(foreign::no_database(path))),
        Ok(metadata) if stdout_metadata().is_some_and(|stdout| is_same(&stdout, &metadata)) => {
            Err(Failure::Usage(format!("{}: standard output is the database itself", path.display())))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Failure::Usage(format!(
            "{0}: no such database (create it with: azekura create {0})",
            path.display()
        ))),
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
    let names: Vec<String> = db.tables().iter().map(|table| quoted(&table.name)).collect();
    let there = match names.len() {
        0 => "it has none".to_owned(),
        1..=8 => format!("it has {}", names.join(", ")),
        count => format!("it has {count} others"),
    };
    format!("no table named {} in {} ({there})", quoted(name), db.path().display())
}

/// Refuses a name that no table can have.
pub fn check_name(name: &str) -> Outcome {
    if name.is_empty() {
        return Err(Failure::Usage("a table's name cannot be empty".to_owned()));
    }
    if name.len() > NAME_BYTES_MAX {
        let bytes = name.len();
        let text = format!(
            "the table's name {} has {bytes} bytes, at most {NAME_BYTES_MAX} are allowed",
            quoted(name)
        );
        return Err(Failure::Usage(text));
    }
    Ok(())
}

/// Refuses a name that a table has.
pub fn must_be_free(db: &Db, name: &str) -> Outcome {
    match db.open_table(name) {
        Ok(_) => {
            Err(Failure::Usage(format!("table {} in {} exists already", quoted(name), db.path().display())))
        }
        Err(_) => Ok(()),
    }
}

/// How many records a table has. None if damage prevents counting.
pub fn records(table: &Table) -> Option<u64> {
    table.count().ok()
}

/// A number of records in words.
pub fn number_of_records(number: u64) -> String {
    format!("{} {}", units::grouped(number), if number == 1 { "record" } else { "records" })
}

/// How many records were removed, as the end of a sentence.
pub fn with_records(records: Option<u64>) -> String {
    records.map_or(String::new(), |records| format!(" ({})", number_of_records(records)))
}

/// The word for a table's kind.
pub fn kind_name(kind: TableKind) -> &'static str {
    match kind {
        TableKind::Ordered => "ordered",
        TableKind::Hash => "hash",
    }
}
