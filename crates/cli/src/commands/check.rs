//! `azekura check`: verifies a database from end to end.

use azekura::CheckReport;

use crate::failure::Outcome;
use crate::output::Output;
use crate::progress::{Progress, Unit};
use crate::store::ReportArg;
use crate::style::Paint;
use crate::units;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status 3 when anything is wrong.\n\nExample:\n  azekura check fruit.azk && echo sound"
)]
pub struct Args {
    #[command(flatten)]
    pub of: ReportArg,
}

/// Runs `check`.
pub fn run(args: &Args) -> Outcome {
    let db = args.of.open()?;
    let mut progress = Progress::new("checking", Unit::Bytes, 0);
    let report = db.check(|step| progress.set_of(step.done, step.total))?;
    drop(progress);
    let mut output = Output::new();
    if args.of.json.json {
        output.json(&json(&report))?;
    } else {
        print(&report, &mut output)?;
    }
    output.finish()?;
    super::sound_unless(&report.problems, &args.of.file.path)
}

fn json(report: &CheckReport) -> serde_json::Value {
    serde_json::json!({
        "ok": report.problems.is_empty(),
        "tables": report.tables,
        "records": report.records,
        "deletes": report.deletes,
        "hidden": report.hidden,
        "pages": report.pages,
        "values": report.values,
        "log_commits": report.log_commits,
        "log_records": report.log_records,
        "log_bytes": report.log_bytes,
        "extents": report.extents,
        "live_bytes": report.live_bytes,
        "free_bytes": report.free_bytes,
        "problems": report.problems,
    })
}

fn print(report: &CheckReport, output: &mut Output) -> Outcome {
    super::print_problems(&report.problems, output)?;
    if report.problems.is_empty() {
        output.line(&format!(
            "{}: {} records in {} {}, {} live, {} free",
            Paint::stdout().green("sound"),
            units::grouped(report.records),
            units::grouped(report.tables),
            if report.tables == 1 { "table" } else { "tables" },
            units::bytes(report.live_bytes),
            units::bytes(report.free_bytes),
        ))?;
        let log = units::log(report.log_commits, report.log_records);
        output.labelled(&[
            ("deletes", units::grouped(report.deletes)),
            ("hidden", units::grouped(report.hidden)),
            ("values", units::grouped(report.values)),
            ("pages", units::grouped(report.pages)),
            ("log", format!("{log}, {} read", units::bytes(report.log_bytes))),
        ])?;
    }
    Ok(())
}
