//! `azekura feed info`: what is fed, and how much is kept.

use azekura::{Db, FeedContent, FeedInfo};

use crate::bytes::quoted;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::store::ReportArg;
use crate::{output, units};

/// Arguments of `feed info`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  azekura feed info people.azk")]
pub struct Args {
    #[command(flatten)]
    pub of: ReportArg,
}

/// The feed of a database that has one.
pub fn feed_of(db: &Db) -> Outcome<FeedInfo> {
    let path = db.path().display();
    let none =
        || Failure::NotFound(format!("{path}: no table was ever fed (begin with: azekura feed start)"));
    db.feed_info()?.ok_or_else(none)
}

/// What is told of a table's changes.
pub fn content_name(content: FeedContent) -> &'static str {
    match content {
        FeedContent::Keys => "keys",
        FeedContent::Values => "values",
        FeedContent::Both => "both",
    }
}

/// How long changes are kept.
pub fn age(info: &FeedInfo) -> String {
    let age = |age: std::time::Duration| format!("none older than {} seconds", age.as_secs_f64());
    info.age_max.map_or("however old".into(), age)
}

/// Runs `feed info`.
pub fn run(args: &Args) -> Outcome {
    let info = feed_of(&args.of.open()?)?;
    if args.of.json.json {
        return output::print_json(&report(&info));
    }
    let mut rows = vec![
        ("bytes", units::bytes(info.bytes)),
        ("keeps", format!("{}, {}", units::bytes(info.bytes_max), age(&info))),
        ("oldest", format!("after commit {}", info.oldest)),
        ("newest", format!("commit {}", info.newest)),
    ];
    for table in &info.tables {
        let content = content_name(table.content);
        rows.push(("table", format!("{}: {content}, after commit {}", quoted(&table.name), table.since)));
    }
    for cursor in &info.cursors {
        rows.push(("cursor", format!("{}: at commit {}", quoted(&cursor.name), cursor.commit)));
    }
    let mut output = Output::new();
    output.labelled(&rows)?;
    output.finish()
}

fn report(info: &FeedInfo) -> serde_json::Value {
    let tables: Vec<_> = info
        .tables
        .iter()
        .map(|table| {
            let content = content_name(table.content);
            serde_json::json!({ "table": table.name, "content": content, "since": table.since })
        })
        .collect();
    let cursors: Vec<_> = info
        .cursors
        .iter()
        .map(|cursor| serde_json::json!({ "cursor": cursor.name, "commit": cursor.commit }))
        .collect();
    serde_json::json!({
        "bytes": info.bytes,
        "bytes_max": info.bytes_max,
        "seconds_max": info.age_max.map(|age| age.as_secs_f64()),
        "oldest": info.oldest,
        "newest": info.newest,
        "tables": tables,
        "cursors": cursors,
    })
}
