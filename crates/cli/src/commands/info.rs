//! `azekura info`: the size and the state of a database, from its manifest. It reads no data.

use crate::bytes::{harmless, shown_name};
use crate::failure::Outcome;
use crate::output;
use crate::store::{self, ReportArg, kind_name};
use crate::units;
use azekura::{PinStats, Stats};

/// Arguments of `info`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Followers: the checkpoints that other processes read beside the program that writes. The newest one\n\
    keeps nothing. What older ones alone need of the file is not used again; all together keep at most so\n\
    many bytes. How much each keeps, and for how long there has been a newer one, only the program that\n\
    writes knows (Db::stats, azk_db_pins, stats() in Python): with --json, age_s and bytes are null then.\n\
    A program with limits for followers says in the file which ones it does not honour any more: these\n\
    are revoked, and keep nothing. Where one without limits has written since, the file does not tell which\n\
    were revoked before: with --json, revoked is null then.\n\n\
    Example:\n  azekura info fruit.azk --follow"
)]
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
            "pins": stats.pins.iter().map(|pin| pin_json(&stats, pin)).collect::<Vec<_>>(),
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
    let indexed =
        if indexes == 0 { "none".to_owned() } else { format!("{indexes} with {}", size(index_bytes)) };
    let mut rows = vec![
        (
            if db.is_mirror() { "mirror" } else { "database" },
            harmless(&args.of.file.path.display().to_string()),
        ),
        ("file", size(stats.file_bytes)),
        ("live", size(stats.live_bytes)),
        ("free", size(stats.free_bytes)),
        ("log", format!("{}: {}", size(stats.log_bytes), units::log(stats.log_commits, stats.log_records))),
        ("runs", format!("{} in {} levels", stats.runs, stats.levels.len())),
        ("indexes", indexed),
    ];
    let labels = std::iter::once("followers").chain(std::iter::repeat(""));
    rows.extend(labels.zip(followers(&stats)));
    rows.push(("tables", if names.is_empty() { "none".to_owned() } else { names.join(", ") }));
    output::print_labelled(&rows)
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

/// What all pins keep at most: what the newest checkpoint does not need.
fn kept_max(stats: &Stats) -> u64 {
    stats.file_bytes.saturating_sub(stats.live_bytes)
}

/// How many checkpoints came after the one that is pinned.
fn behind(stats: &Stats, pin: &PinStats) -> u64 {
    stats.checkpoint.saturating_sub(pin.checkpoint)
}

fn pin_json(stats: &Stats, pin: &PinStats) -> serde_json::Value {
    serde_json::json!({
        "checkpoint": pin.checkpoint,
        "behind": behind(stats, pin),
        "age_s": pin.age.map(|age| age.as_secs_f64()),
        "bytes": pin.bytes,
        "bytes_max": pin.bytes.unwrap_or(kept_max(stats)),
        "revoked": pin.revoked,
    })
}

/// Which checkpoints other followers read, a line each. This process does not write, so it knows of no pin
/// that keeps something how much that is.
fn followers(stats: &Stats) -> Vec<String> {
    let line = |pin: &PinStats| {
        let number = units::grouped(pin.checkpoint);
        // Of those that are not the newest, this process knows no age.
        if pin.age.is_some() {
            return format!("checkpoint {number}, the newest: keeps nothing");
        }
        let (behind, most) = (units::grouped(behind(stats, pin)), units::bytes(kept_max(stats)));
        let keeps = match pin.revoked {
            Some(true) => "revoked, keeps nothing".to_owned(),
            Some(false) => format!("keeps at most {most}"),
            None => {
                format!("keeps at most {most}, and nothing if it was revoked, which the file does not tell")
            }
        };
        format!("checkpoint {number}, {behind} before the newest: {keeps}")
    };
    if stats.pins.is_empty() { vec!["none".to_owned()] } else { stats.pins.iter().map(line).collect() }
}
