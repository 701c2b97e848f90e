//! `azekura points`: the points of a repository of backups.

use azekura::{PointInfo, Repository};

use super::verify::RepositoryArg;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::store::JsonArg;
use crate::style::Paint;
use crate::{times, units};

/// Arguments of `points`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Of a point with a log (of a backup beside a program that had the database open, or of backup\n\
                  --keep-log) each commit can be restored from the one on that stands under 'from': restore\n\
                  --commit. Its time is when its log was last read. Exit status 3 when a point is damaged.\n\n\
                  Example:\n  azekura points saved"
)]
pub struct Args {
    #[command(flatten)]
    pub repository: RepositoryArg,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `points`.
pub fn run(args: &Args) -> Outcome {
    let list = Repository::open(&args.repository.path)?.points()?;
    let mut output = Output::new();
    if args.json.json {
        for point in &list.points {
            output.json(&json(point))?;
        }
    } else if !list.points.is_empty() {
        output.line(&Paint::stdout().bold(&row("point", "from", "commit", "time", "tables", "bytes")))?;
        for point in &list.points {
            output.line(&line(point))?;
        }
    }
    output.finish()?;
    match list.damaged.first() {
        None => Ok(()),
        Some((number, error)) => Err(Failure::Corrupt(format!("point {number}: {error}"))),
    }
}

fn row(point: &str, from: &str, commit: &str, time: &str, tables: &str, bytes: &str) -> String {
    format!("{point:>6}  {from:>15}  {commit:>15}  {time:23}  {tables:>6}  {bytes:>8}")
}

fn line(point: &PointInfo) -> String {
    let from =
        if point.first_commit < point.commit { units::grouped(point.first_commit) } else { String::new() };
    row(
        &point.number.to_string(),
        &from,
        &units::grouped(point.commit),
        &times::utc(point.last_time),
        &units::grouped(point.tables),
        &units::bytes(point.bytes),
    )
}

fn json(point: &PointInfo) -> serde_json::Value {
    serde_json::json!({
        "point": point.number,
        "first_commit": point.first_commit,
        "commit": point.commit,
        "time": times::utc(point.time),
        "last_time": times::utc(point.last_time),
        "tables": point.tables,
        "bytes": point.bytes,
    })
}
