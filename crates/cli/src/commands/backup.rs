//! `azekura backup`: a point in a repository of backups, or a whole backup to standard output.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use azekura::{BackupReport, CopyOptions, Db, Durability, Error};

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Unit};
use crate::store::{self, FileArg, JsonArg};
use crate::units;

/// Arguments of `backup`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A second backup copies only what REPO does not have. Of a database that a program has open it has\n\
                  every durable commit.\n\n\
                  Example:\n  azekura backup fruit.azk saved\n  \
                  azekura backup fruit.azk - --rate 20MB | ssh host azekura restore - fruit.azk"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The repository, a directory that is made if there is none; or - for standard output
    #[arg(value_name = "REPO")]
    repository: PathBuf,
    #[command(flatten)]
    rate: RateArg,
    #[command(flatten)]
    json: JsonArg,
}

/// The `--rate` option of copies.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct RateArg {
    /// Copy no more than so many bytes a second, such as 100MB
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    rate: Option<u64>,
}

impl RateArg {
    /// As the engine knows it.
    pub fn options(self) -> CopyOptions {
        CopyOptions { bytes_per_second: self.rate }
    }
}

/// Runs `backup`.
pub fn run(args: &Args) -> Outcome {
    if args.repository == Path::new("-") {
        return to_stdout(args);
    }
    let mut progress = Progress::new("copying", Unit::Bytes, 0);
    let mut told = |step: azekura::Progress| progress.set_of(step.done, step.total);
    let mut backup = |db: &Db| db.backup_with(&args.repository, args.rate.options(), &mut told);
    let report = of_whole(&args.file, &mut backup)?;
    drop(progress);
    if args.json.json {
        return output::print_json(&json(&report));
    }
    output::print_line(&format!(
        "point {}: commit {}, {}; {} copied in {}",
        report.point,
        units::grouped(report.commit),
        units::bytes(report.bytes),
        units::bytes(report.new_bytes),
        units::counted(report.new_chunks, "chunk"),
    ))
}

/// Copies a database: one that others write as it is, and one that was not closed once it was recovered, for
/// which it is opened for writing.
pub fn of_whole<T>(file: &FileArg, work: &mut dyn FnMut(&Db) -> azekura::Result<T>) -> Outcome<T> {
    let db = match store::open_to_read(&file.path) {
        Err(Failure::Engine(Error::Locked { .. })) => {
            return beside_writer(file, work);
        }
        db => db?,
    };
    let done = work(&db);
    let is_mirror = db.is_mirror();
    drop(db);
    let Err(Error::ReadOnly) = done else { return Ok(done?) };
    if is_mirror {
        // Nobody may recover it but who mirrors.
        return beside_writer(file, work);
    }
    let db = store::open_to_write(&file.path, Durability::Sync, |_| Ok(()))?;
    let done = work(&db)?;
    store::close(db);
    Ok(done)
}

/// Does something with a database that others write.
fn beside_writer<T>(file: &FileArg, work: &mut dyn FnMut(&Db) -> azekura::Result<T>) -> Outcome<T> {
    Ok(work(&store::open_to_follow_checkpoints(&file.path)?)?)
}

fn to_stdout(args: &Args) -> Outcome {
    if args.json.json {
        return Err(Failure::Usage("--json prints a summary, so it needs a repository".to_owned()));
    }
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        return Err(Failure::Usage("standard output is a terminal: a backup is no text".to_owned()));
    }
    let mut progress = Progress::new("copying", Unit::Bytes, 0);
    let mut told = |step: azekura::Progress| progress.set_of(step.done, step.total);
    let mut backup = |db: &Db| db.backup_to_with(&mut stdout, args.rate.options(), &mut told);
    of_whole(&args.file, &mut backup).map(drop)
}

fn json(report: &BackupReport) -> serde_json::Value {
    serde_json::json!({
        "point": report.point,
        "commit": report.commit,
        "chunks": report.chunks,
        "bytes": report.bytes,
        "new_chunks": report.new_chunks,
        "new_bytes": report.new_bytes,
    })
}
