//! `azekura feed limits`: how much of the past the feed keeps.

use std::time::Duration;

use azekura::Durability;

use super::info::{age, feed_of};
use crate::failure::Outcome;
use crate::store::{self, FileArg, JsonArg};
use crate::{output, units};

/// Arguments of `feed limits`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What is too much or too old goes when something is added. A reader that has not come so far is\n\
                  told so.\n\n\
                  Example:\n  azekura feed limits people.azk --bytes 256M --age 86400"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// Keep about so many bytes of changes
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    bytes: u64,
    /// Keep changes for so many seconds; without it, however old they are
    #[arg(long, value_name = "SECONDS", value_parser = units::parse_seconds)]
    age: Option<f64>,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `feed limits`.
pub fn run(args: &Args) -> Outcome {
    let db = store::open_to_write(&args.file.path, Durability::Sync, |db| feed_of(db).map(|_| ()))?;
    db.set_feed_limits(args.bytes, args.age.map(Duration::from_secs_f64))?;
    let info = feed_of(&db)?;
    store::close(db);
    if args.json.json {
        let seconds = info.age_max.map(|age| age.as_secs_f64());
        return output::print_json(&serde_json::json!({ "bytes": info.bytes_max, "seconds": seconds }));
    }
    output::print_line(&format!("the feed keeps {}, {}", units::bytes(info.bytes_max), age(&info)))
}
