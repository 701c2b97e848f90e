//! A run of the main job with small counts, through `--json`: does the bench work, and is everything in its
//! rows that others read from them? It is the build that the tests have made; a release build with the whole
//! program optimised at once would take a minute and a half, so that one is only checked.

use serde_json::{Map, Value};
use std::path::Path;
use std::process::Command;

use crate::promises;
use crate::runner::{self, Failure, cargo};

/// Fields of every row of these orders.
const FIELDS: [&str; 14] = [
    "order",
    "table",
    "durability",
    "records",
    "transactions",
    "value_bytes",
    "write_s",
    "flush_s",
    "read_s",
    "database_bytes",
    "written_bytes",
    "write_calls",
    "peak_rss_bytes",
    "verified",
];
/// Further fields of a row of the random order.
const RANDOM_FIELDS: [&str; 10] = [
    "batch_mean_ms",
    "batch_p99_ms",
    "batch_max_ms",
    "growth",
    "present_gets_per_s",
    "absent_gets_per_s",
    "get_many_per_s",
    "scan_per_s",
    "open_ms",
    "settle_s",
];
/// Fields of a row of the mixed order.
const MIXED_FIELDS: [&str; 7] =
    ["gets_per_s", "updates_per_s", "get_p50_us", "get_p99_us", "get_p99_9_us", "get_max_us", "verified"];
/// Fields of a row of the durable order.
const DURABLE_FIELDS: [&str; 5] =
    ["threads", "commits_per_s", "raw_appends_per_s", "ratio_to_raw", "ratio_to_one_thread"];
/// Counts that only Linux gives. Elsewhere they are null.
const LINUX_FIELDS: [&str; 3] = ["written_bytes", "write_calls", "peak_rss_bytes"];

/// One run of the bench: its arguments, how many rows it must print, and their fields.
struct Run {
    arguments: &'static str,
    rows: usize,
    records: u64,
    fields: &'static [&'static [&'static str]],
}

const RUNS: [Run; 7] = [
    Run { arguments: "--records 20000 --transactions 20", rows: 11, records: 20_000, fields: &[&FIELDS] },
    Run {
        arguments: "--records 20000 --transactions 20 --table hash --value-size 4,1500",
        rows: 2,
        records: 20_000,
        fields: &[&FIELDS],
    },
    Run {
        arguments: "--records 5000 --transactions 50 --durability sync --value-size 16",
        rows: 1,
        records: 5_000,
        fields: &[&FIELDS],
    },
    Run {
        arguments: "--order random --table hash --records 100k --batch 4096 --cache 64MiB --force",
        rows: 1,
        records: 100_000,
        fields: &[&FIELDS, &RANDOM_FIELDS],
    },
    Run {
        arguments: "--order random --keys text --records 50k --batch 5k --force",
        rows: 1,
        records: 50_000,
        fields: &[&FIELDS, &RANDOM_FIELDS],
    },
    Run {
        arguments: "--order mixed --records 20k --seconds 1",
        rows: 1,
        records: 20_000,
        fields: &[&MIXED_FIELDS],
    },
    Run { arguments: "--order durable --seconds 0.3", rows: 3, records: 1, fields: &[&DURABLE_FIELDS] },
];

/// Checks the release build and runs the bench in each order; returns a line for each.
pub fn run() -> Result<Vec<String>, Failure> {
    // What is compiled only without assertions is seen by no other step.
    let mut command = cargo();
    command.args(["check", "--quiet", "--release", "--package", "azekura-cli"]);
    runner::run(command)?;
    // A relative target directory is relative to the root, where cargo runs.
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let name = format!("bench-smoke-{}", std::process::id());
    let files = runner::root().join(target).join(name);
    std::fs::create_dir_all(&files).map_err(|error| format!("{}: {error}", files.display()))?;
    let outcome = promises::program("azekura")
        .and_then(|program| RUNS.iter().map(|run| run_one(run, &program, &files)).collect());
    // Nobody needs what is left there.
    let _ = std::fs::remove_dir_all(&files);
    outcome
}

fn run_one(run: &Run, program: &Path, folder: &Path) -> Result<String, Failure> {
    let mut command = Command::new(program);
    command.current_dir(runner::root()).env("AZEKURA_CANARY", "");
    command.args(["bench", "--json", "--path"]);
    command.arg(folder.join("smoke.azk"));
    command.args(run.arguments.split(' '));
    let output = runner::capture(command)?;
    let about = |reason: Failure| format!("bench {}: {reason}", run.arguments);
    let rows = rows(&output).map_err(about)?;
    if rows.len() != run.rows {
        return Err(about(format!("{} rows, expected {}", rows.len(), run.rows)));
    }
    for row in &rows {
        check_row(run, row).map_err(about)?;
    }
    let plural = if rows.len() == 1 { "row" } else { "rows" };
    let line = format!("bench {}: ok, {} {plural} verified", run.arguments, rows.len());
    println!("{line}");
    Ok(line)
}

/// Reads the rows. Every line must be one object.
fn rows(output: &str) -> Result<Vec<Map<String, Value>>, Failure> {
    let row = |line| match serde_json::from_str(line) {
        Ok(Value::Object(row)) => Ok(row),
        Ok(_) => Err(format!("not an object: {line}")),
        Err(error) => Err(format!("{error}: {line}")),
    };
    output.lines().map(row).collect()
}

fn check_row(run: &Run, row: &Map<String, Value>) -> Result<(), Failure> {
    for field in run.fields.iter().copied().flatten() {
        let optional = LINUX_FIELDS.contains(field) && !cfg!(target_os = "linux");
        match row.get(*field) {
            None => return Err(format!("a row without {field}")),
            Some(Value::Null) if !optional => return Err(format!("{field} is null")),
            Some(Value::Number(number)) if number.as_f64().is_none_or(|number| number < 0.0) => {
                return Err(format!("{field} is {number}"));
            }
            Some(_) => {}
        }
    }
    let count = |field: &str| row.get(field).and_then(Value::as_u64).unwrap_or(0);
    if count("records") < run.records {
        return Err(format!("{} records, expected {}", count("records"), run.records));
    }
    if count("verified") < count("records") {
        return Err(format!("only {} values of {} verified", count("verified"), count("records")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURABLE: &Run = &RUNS[6];

    #[test]
    fn rows_are_objects_and_nothing_else() {
        assert_eq!(rows("{\"a\":1}\n{\"a\":2}\n").map(|rows| rows.len()), Ok(2));
        assert!(rows("{\"a\":1}\ndone\n").is_err());
        assert!(rows("[1]\n").is_err());
    }

    #[test]
    fn a_row_must_be_complete_and_verified() {
        let text = r#"{"threads":1,"records":9,"commits_per_s":9.0,"raw_appends_per_s":9.0,
            "ratio_to_raw":1.0,"ratio_to_one_thread":1.0,"verified":9}"#;
        let row: Map<String, Value> = serde_json::from_str(text).expect("valid JSON");
        assert_eq!(check_row(DURABLE, &row), Ok(()));
        for field in DURABLE_FIELDS {
            let mut broken = row.clone();
            broken.remove(field);
            assert!(check_row(DURABLE, &broken).is_err(), "{field} was not missed");
        }
        let mut unverified = row.clone();
        unverified.insert("verified".to_owned(), Value::from(8));
        assert!(check_row(DURABLE, &unverified).is_err());
    }
}
