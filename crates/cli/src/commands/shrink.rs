//! `azekura shrink`: gives unused space back to the file system.

use azekura::Durability;

use crate::failure::Outcome;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::store::{self, FileArg, JsonArg};
use crate::units;

/// Arguments of `shrink`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  azekura shrink fruit.azk")]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `shrink`. The sizes are those of the file before the opening and after the close, as `ls` shows them.
pub fn run(args: &Args) -> Outcome {
    let path = &args.file.path;
    let size = || std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let before = size();
    let db = store::open_to_write(path, Durability::Sync, |_| Ok(()))?;
    let mut progress = Progress::new("shrinking", Unit::Bytes, 0);
    db.shrink(|step| progress.set_of(step.done, step.total))?;
    drop(progress);
    store::close(db);
    let after = size();
    if args.json.json {
        let report = serde_json::json!({ "before_bytes": before, "after_bytes": after });
        return output::print_json(&report);
    }
    let saved = units::as_f64(before.saturating_sub(after)) * 100.0 / units::as_f64(before.max(1));
    output::print_line(&format!(
        "{} → {} ({saved:.1} % given back)",
        units::bytes(before),
        units::bytes(after)
    ))
}
