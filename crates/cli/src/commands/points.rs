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
#[command(after_help = "Exit status 3 when a point is damaged.\n\nExample:\n  azekura points saved")]
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
        let head =
            format!("{:>6}  {:>15}  {:23}  {:>6}  {:>8}", "point", "commit", "time", "tables", "bytes");
        output.line(&Paint::stdout().bold(&head))?;
        for PointInfo { number, commit, time, tables, bytes, .. } in &list.points {
            let (commit, time, tables) =
                (units::grouped(*commit), times::utc(*time), units::grouped(*tables));
            let bytes = units::bytes(*bytes);
            output.line(&format!("{number:>6}  {commit:>15}  {time:23}  {tables:>6}  {bytes:>8}"))?;
        }
    }
    output.finish()?;
    match list.damaged.first() {
        None => Ok(()),
        Some((number, error)) => Err(Failure::Corrupt(format!("point {number}: {error}"))),
    }
}

fn json(point: &PointInfo) -> serde_json::Value {
    serde_json::json!({
        "point": point.number,
        "commit": point.commit,
        "time": times::utc(point.time),
        "tables": point.tables,
        "bytes": point.bytes,
    })
}
