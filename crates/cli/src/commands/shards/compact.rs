//! `azekura shards compact`: removes old versions, and what killed programs have left.

use std::time::Duration;

use super::of::SetArg;
use crate::failure::Outcome;
use crate::output;
use crate::store::JsonArg;
use crate::units;

/// Arguments of `shards compact`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A version that a program of this machine reads stays. What no version names (the files of programs that\n\
                  were killed) goes when nothing there was changed for --unfinished-hours.\n\n\
                  Example:\n  azekura shards compact t.azs --keep 2"
)]
pub struct Args {
    #[command(flatten)]
    pub set: SetArg,
    /// How many of the newest versions stay
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// How old unfinished versions have to be
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    unfinished_hours: u32,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `shards compact`.
pub fn run(args: &Args) -> Outcome {
    let unfinished_after = Duration::from_secs(3600 * u64::from(args.unfinished_hours));
    let keep = usize::try_from(args.keep).unwrap_or(usize::MAX);
    let report = azekura_shards::prune(&args.set.path, keep, unfinished_after)?;
    if args.json.json {
        return output::print_json(&serde_json::json!({
            "kept": report.kept,
            "held": report.held,
            "unknown": report.unknown,
            "removed": report.removed,
            "unfinished": report.unfinished,
            "bytes": report.bytes,
        }));
    }
    let held = match report.held.len() {
        0 => String::new(),
        held => format!(" ({held} of them only since they are read)"),
    };
    if !report.unknown.is_empty() {
        let kept: Vec<String> = report.unknown.iter().map(u32::to_string).collect();
        crate::failure::warn(&format!(
            "the file system says not whether versions are read: {} stay",
            kept.join(", ")
        ));
    }
    output::print_line(&format!(
        "versions: {} removed, {} kept{held}; {} unfinished removed; {} given back",
        report.removed.len(),
        report.kept.len(),
        report.unfinished,
        units::bytes(report.bytes),
    ))
}
