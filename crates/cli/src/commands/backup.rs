//! `azekura backup`: a point in a repository of backups, or a whole backup to standard output.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use azekura::storage::OsStorage;
use azekura::{BackupReport, CopyOptions, Db, Durability, Error, LogKept};

use crate::failure::{Failure, Outcome};
use crate::interrupt::Deferred;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::store::{self, FileArg, JsonArg};
use crate::units;

/// Arguments of `backup`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A second backup copies only what REPO does not have. Of a database that a program has open it has\n\
                  every durable commit. With --keep-log it goes on until it is interrupted, and each commit that\n\
                  a program makes meanwhile can be restored.\n\n\
                  Example:\n  azekura backup fruit.azk saved\n  azekura backup fruit.azk saved --keep-log\n  \
                  azekura backup fruit.azk - --rate 20MB | ssh host azekura restore - fruit.azk"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The repository, a directory that is made if there is none; or - for standard output
    #[arg(value_name = "REPO")]
    repository: PathBuf,
    /// Go on, and keep the log of what is committed
    #[arg(long)]
    keep_log: bool,
    /// How often what was committed goes to REPO, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = units::parse_seconds, default_value = "10",
          requires = "keep_log")]
    every: f64,
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
    if args.keep_log {
        return keep_log(args);
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

/// Goes on until it is interrupted.
fn keep_log(args: &Args) -> Outcome {
    let ends = Arc::new(AtomicBool::new(false));
    let asked = ends.clone();
    let _deferred = Deferred::new(move || asked.store(true, Ordering::Relaxed));
    let db = store::open_to_follow_checkpoints(&args.file.path)?;
    let mut keeper = db.keep_log_with(&OsStorage, &args.repository, args.rate.options())?;
    let (mut progress, mut before, mut printed) = (None, LogKept::default(), Ok(()));
    keeper.run(Duration::from_secs_f64(args.every), |kept, step| {
        if let Some(step) = step {
            let progress = progress.get_or_insert_with(|| Progress::new("copying", Unit::Bytes, 0));
            progress.set_of(step.done, step.total);
            return true;
        }
        progress = None;
        printed = tell_kept(&mut before, kept, args.json.json);
        printed.is_ok() && !ends.load(Ordering::Relaxed)
    })?;
    drop(progress);
    printed?;
    let kept = keeper.status();
    if args.json.json {
        return tell_kept(&mut before, &kept, true);
    }
    output::print_line(&format!("ended at commit {}, point {}", units::grouped(kept.commit), kept.point))
}

/// Says what is new: each point, and as JSON also what has come to its log.
fn tell_kept(before: &mut LogKept, kept: &LogKept, as_json: bool) -> Outcome {
    let known = std::mem::replace(before, *kept);
    if as_json {
        return if known == *kept { Ok(()) } else { output::print_json(&kept_json(kept)) };
    }
    if known.point == kept.point {
        return Ok(());
    }
    output::print_line(&format!(
        "point {}: commit {}, {} copied; its log is kept",
        kept.point,
        units::grouped(kept.commit),
        units::bytes(kept.new_bytes - known.new_bytes),
    ))
}

fn kept_json(kept: &LogKept) -> serde_json::Value {
    serde_json::json!({
        "point": kept.point,
        "first_commit": kept.first_commit,
        "commit": kept.commit,
        "points": kept.points,
        "new_bytes": kept.new_bytes,
    })
}

fn to_stdout(args: &Args) -> Outcome {
    if args.keep_log {
        return Err(Failure::Usage("--keep-log needs a repository".to_owned()));
    }
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
