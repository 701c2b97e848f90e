//! `azekura salvage`: copies what still verifies in a damaged database to a new one.

use std::path::PathBuf;

use azekura::{Db, Durability, Error, Options, SalvageReport};

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::output_file::check_target;
use crate::progress::{Progress, Unit};
use crate::store::{self, FileArg, JsonArg, kind_name};
use crate::style::Paint;
use crate::units;

/// Arguments of `salvage`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "FILE is only read. Exit status 3 when anything was lost; what was found is in OUT all the same.\n\n\
                  Example:\n  azekura salvage damaged.azk saved.azk"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The database to make
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Replace OUT if it is there (and no database)
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `salvage`.
pub fn run(args: &Args) -> Outcome {
    let unfinished = check_target(&args.out, &[&args.file.path], args.force)?.unfinished()?;
    let at_out = |error: Error| Failure::from(error).at(&args.out);
    let options = Options::new().exclusive(true).durability(Durability::Eventual);
    let db = Db::open(unfinished.path(), options).map_err(at_out)?;
    let mut progress = Progress::new("salvaging", Unit::Bytes, 0);
    let report = azekura::salvage(&args.file.path, &db, |step| progress.set_of(step.done, step.total));
    drop(progress);
    let report = report.map_err(|error| match error {
        // FILE is only read, and damage in it is no error. So these errors are about OUT.
        Error::NoSpace { .. } | Error::Poisoned { .. } | Error::Corrupt { .. } => at_out(error),
        other => other.into(),
    })?;
    db.shrink(|_| {}).map_err(at_out)?;
    store::close(db);
    unfinished.publish()?;
    let mut output = Output::new();
    if args.json.json {
        output.json(&json(&report))?;
    } else {
        print(&report, &mut output)?;
    }
    output.finish()?;
    super::corrupt_unless_none(
        &args.file.path,
        report.losses.len() as u64 + report.losses_unlisted,
        ["loss", "losses"],
    )
}

fn json(report: &SalvageReport) -> serde_json::Value {
    let tables = report.tables.iter().map(|table| {
        let ttl_s = table.ttl.map(|ttl| ttl.as_secs_f64());
        serde_json::json!({
            "name": table.name, "kind": kind_name(table.kind), "records": table.records, "ttl": ttl_s
        })
    });
    serde_json::json!({
        "whole": report.is_whole(),
        "manifest": report.manifest,
        "tables": tables.collect::<Vec<_>>(),
        "runs": report.runs,
        "pages": report.pages,
        "pages_lost": report.pages_lost,
        "values": report.values,
        "values_lost": report.values_lost,
        "commits": report.commits,
        "log_gaps": report.log_gaps,
        "unreadable_bytes": report.unreadable_bytes,
        "losses": report.losses,
        "losses_unlisted": report.losses_unlisted,
        "notes": report.notes,
    })
}

fn print(report: &SalvageReport, output: &mut Output) -> Outcome {
    let paint = Paint::stdout();
    for note in &report.notes {
        output.line(&format!("note: {note}"))?;
    }
    for loss in &report.losses {
        output.line(&format!("{} {loss}", paint.red("lost:")))?;
    }
    if report.losses_unlisted > 0 {
        output.line(&format!("{} {} more", paint.red("lost:"), units::grouped(report.losses_unlisted)))?;
    }
    for table in &report.tables {
        let (kind, records) = (kind_name(table.kind), units::grouped(table.records));
        let live = table.ttl.map_or(String::new(), |ttl| format!(", which live for {} s", ttl.as_secs_f64()));
        output.line(&format!("{:?} ({kind}): {records} records{live}", table.name))?;
    }
    output.line(&format!(
        "{} {} pages of {} runs, {} large values, {} commits of the log; {} pages and {} values lost",
        paint.green("salvaged"),
        units::grouped(report.pages),
        units::grouped(report.runs),
        units::grouped(report.values),
        units::grouped(report.commits),
        units::grouped(report.pages_lost),
        units::grouped(report.values_lost),
    ))
}
