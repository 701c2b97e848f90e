//! `azekura info`: the size and the state of a database, from its manifest. It reads no data.

use crate::bytes::{harmless, shown_name};
use crate::failure::Outcome;
use crate::output;
use crate::store::{self, ReportArg, kind_name};
use crate::units;

/// Arguments of `info`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  azekura info fruit.azk")]
pub struct Args {
    #[command(flatten)]
    pub of: ReportArg,
}

/// Runs `info`.
pub fn run(args: &Args) -> Outcome {
    let db = args.of.open()?;
    let tables = db.tables();
    let stats = db.stats();
    let (indexes, index_bytes) = indexes(&db, &tables)?;
    if args.of.json.json {
        let named = |table: &azekura::TableInfo| serde_json::json!({ "table": table.name, "kind": kind_name(table.kind) });
        return output::print_json(&serde_json::json!({
            "path": args.of.file.path.to_string_lossy(),
            "file_bytes": stats.file_bytes,
            "live_bytes": stats.live_bytes,
            "free_bytes": stats.free_bytes,
            "log_bytes": stats.log_bytes,
            "log_commits": stats.log_commits,
            "log_records": stats.log_records,
            "runs": stats.runs,
            "levels": stats.levels.len(),
            "indexes": indexes,
            "index_bytes": index_bytes,
            "checkpoint": stats.checkpoint,
            "mirror": db.is_mirror(),
            "pins": stats.pins.iter().map(|pin| pin.checkpoint).collect::<Vec<_>>(),
            "tables": tables.iter().map(named).collect::<Vec<_>>(),
        }));
    }
    let size = |bytes: u64| match bytes {
        0..1_000 => units::bytes(bytes),
        _ => format!("{} ({} bytes)", units::bytes(bytes), units::grouped(bytes)),
    };
    let names: Vec<String> = tables
        .iter()
        .map(|table| format!("{} ({})", shown_name(&table.name), kind_name(table.kind)))
        .collect();
    output::print_labelled(&[
        (
            if db.is_mirror() { "mirror" } else { "database" },
            harmless(&args.of.file.path.display().to_string()),
        ),
        ("file", size(stats.file_bytes)),
        ("live", size(stats.live_bytes)),
        ("free", size(stats.free_bytes)),
        ("log", format!("{}: {}", size(stats.log_bytes), units::log(stats.log_commits, stats.log_records))),
        ("runs", format!("{} in {} levels", stats.runs, stats.levels.len())),
        (
            "indexes",
            if indexes == 0 { "none".to_owned() } else { format!("{indexes} with {}", size(index_bytes)) },
        ),
        ("followers", followers(&stats)),
        ("tables", if names.is_empty() { "none".to_owned() } else { names.join(", ") }),
    ])
}

/// How many indexes there are, and the bytes of their runs.
fn indexes(db: &azekura::Db, tables: &[azekura::TableInfo]) -> Outcome<(u64, u64)> {
    let (mut indexes, mut bytes) = (0, 0);
    for table in tables {
        let stats = store::open_table(db, &table.name)?.stats()?;
        indexes += stats.indexes;
        bytes += stats.index_bytes;
    }
    Ok((indexes, bytes))
}

/// Which checkpoints other followers read. Their age and bytes are known to the program that writes.
fn followers(stats: &azekura::Stats) -> String {
    if stats.pins.is_empty() {
        return "none".to_owned();
    }
    let behind = |pin: &azekura::PinStats| match stats.checkpoint.saturating_sub(pin.checkpoint) {
        0 => "the newest".to_owned(),
        behind => format!("{behind} before it"),
    };
    let pins: Vec<String> = stats.pins.iter().map(behind).collect();
    format!("at checkpoint {}: {}", units::grouped(stats.checkpoint), pins.join(", "))
}
