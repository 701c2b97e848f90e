//! `azekura copy-table`: copies a table to another name, or to another database.
//!
//! The records of one snapshot go, in batches, into a table with a temporary name. Then its indexes are made.
//! When all is there and durable, the table gets the wanted name. So under that name there is a whole copy or
//! none. A copy that fails or is interrupted removes what it has made. A copy that is killed leaves it, and
//! the next copy says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use azekura::{Db, Durability, IndexInfo, NAME_BYTES_MAX, Table};

use crate::bytes;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Deferred;
use crate::output;
use crate::output_file::is_same;
use crate::progress::{Progress, Unit};
use crate::store::{self, FromToArg, JsonArg};
use crate::units;

/// Records in one transaction: enough that the cost of a commit does not matter.
const BATCH_RECORDS: u64 = 10_000;
/// Bytes in one transaction, which is held in memory until it commits.
const BATCH_BYTES: usize = 16 << 20;
/// How the name of an unfinished copy ends.
const UNFINISHED: &str = ".copying";

/// Arguments of `copy-table`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The copy is of the same kind, and there under its name only when it is whole. Until then it is\n\
                  a table whose name ends in .copying. It has the same indexes, but for unfinished ones. Its\n\
                  records expire when those of the original do.\n\n\
                  Example:\n  azekura copy-table fruit.azk prices prices-2025\n  \
                  azekura copy-table fruit.azk prices prices --to-file archive.azk"
)]
pub struct Args {
    #[command(flatten)]
    pub names: FromToArg,
    /// The database for the copy, which exists [default: the same]
    #[arg(long, value_name = "FILE")]
    to_file: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `copy-table`.
pub fn run(args: &Args) -> Outcome {
    let FromToArg { file, from: from_name, to: to_name } = &args.names;
    store::check_name(to_name)?;
    let unfinished = unfinished_name(to_name);
    let target = args.to_file.as_deref().unwrap_or(&file.path);
    if args.to_file.is_some() {
        must_differ(&file.path, target)?;
    }
    let look = |db: &Db| {
        store::must_be_free(db, to_name)?;
        must_not_be_left(db, &unfinished, args.to_file.is_none() && *from_name == unfinished)
    };
    let (from, to) = if args.to_file.is_some() {
        let from = store::open_to_read(&file.path)?;
        store::open_table(&from, from_name)?;
        (
            from,
            store::open_to_write(target, Durability::Eventual, look).map_err(|failure| failure.at(target))?,
        )
    } else {
        let db = store::open_to_write(target, Durability::Eventual, |db| {
            store::open_table(db, from_name)?;
            look(db)
        })?;
        (db.clone(), db)
    };
    let source = store::open_table(&from, from_name)?;
    let copied = copy(&from, &source, &to, &unfinished, to_name);
    drop(source);
    let Copied { records, bytes, indexes } = copied?;
    store::close(to);
    if args.json.json {
        let report = serde_json::json!({
            "from": from_name, "to": to_name, "records": records, "bytes": bytes, "indexes": indexes,
        });
        return output::print_json(&report);
    }
    let (from, to) = (bytes::quoted(from_name), bytes::quoted(to_name));
    let records = store::number_of_records(records);
    let with = match indexes {
        0 => String::new(),
        1 => " with an index".to_owned(),
        _ => format!(" with {indexes} indexes"),
    };
    output::print_line(&format!("copied {records} ({}) from table {from} to {to}{with}", units::bytes(bytes)))
}

/// What was copied.
struct Copied {
    records: u64,
    bytes: u64,
    indexes: usize,
}

/// The name of an unfinished copy: the wanted name, cut if necessary, with the ending.
fn unfinished_name(name: &str) -> String {
    let room = NAME_BYTES_MAX - UNFINISHED.len();
    let mut end = name.len().min(room);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{UNFINISHED}", &name[..end])
}

fn must_not_be_left(db: &Db, unfinished: &str, is_source: bool) -> Outcome {
    let name = bytes::quoted(unfinished);
    match db.open_table(unfinished) {
        Err(_) => Ok(()),
        Ok(_) if is_source => Err(Failure::Usage(format!(
            "{name} is the name that the copy needs until it is whole; rename the table first"
        ))),
        Ok(_) => {
            let text = format!(
                "table {name} is there, as a copy that was cut off leaves it (azekura drop removes it)"
            );
            Err(Failure::Usage(text))
        }
    }
}

fn must_differ(a: &Path, b: &Path) -> Outcome {
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        (Ok(a_is), Ok(b_is)) if is_same(&a_is, &b_is) => {
            Err(Failure::Usage(format!("--to-file: {} is the same database", b.display())))
        }
        _ => Ok(()),
    }
}

/// Copies a table, all of it or nothing.
fn copy(from: &Db, source: &Table, to: &Db, unfinished: &str, name: &str) -> Outcome<Copied> {
    let stop = Arc::new(AtomicBool::new(false));
    let deferred = Deferred::new({
        let stop = stop.clone();
        move || stop.store(true, Ordering::Relaxed)
    });
    let at_target = |error: azekura::Error| Failure::from(error).at(to.path());
    let target = to.create_table(unfinished, source.kind()).map_err(at_target)?;
    // The indexes first. One that is ready now is ready for what is read later, too.
    let indexes = ready_indexes(from, source);
    let copied = copy_records(from, source, to, &target, &stop).and_then(|(records, bytes)| {
        let indexes = copy_indexes(indexes?, to, &target, &stop)?;
        publish(to, &target, source.usual_ttl(), name).map_err(at_target)?;
        Ok(Copied { records, bytes, indexes })
    });
    drop(deferred);
    copied.map_err(|failure| match to.drop_table(unfinished) {
        Ok(()) => failure.noted("nothing was copied"),
        Err(error) => {
            let name = bytes::quoted(unfinished);
            failure.noted(&format!(
                "a part of the copy is left as table {name}, which could not be removed: {error}"
            ))
        }
    })
}

/// Gives the copy its name, and its records to come the time to live of the original's.
fn publish(to: &Db, copy: &Table, usual_ttl: Option<Duration>, name: &str) -> azekura::Result<()> {
    to.transact(|txn| {
        txn.rename_table(&copy.name(), name)?;
        if usual_ttl.is_some() { txn.set_usual_ttl(copy, usual_ttl) } else { Ok(()) }
    })
}

fn copy_records(
    from: &Db,
    source: &Table,
    to: &Db,
    target: &Table,
    stop: &AtomicBool,
) -> Outcome<(u64, u64)> {
    let at_source = |error: azekura::Error| Failure::from(error).at(from.path());
    let at_target = |error: azekura::Error| Failure::from(error).at(to.path());
    let snapshot = from.read();
    let mut progress = Progress::new("copying", Unit::Records, 0);
    if progress.is_visible() {
        progress.set_of(0, snapshot.count(source).map_err(at_source)?);
    }
    let mut cursor = snapshot.cursor(source).map_err(at_source)?;
    let (mut records, mut bytes) = (0u64, 0u64);
    let mut is_more = true;
    while is_more {
        let mut txn = to.write();
        let (mut in_batch, mut batch_bytes) = (0u64, 0usize);
        while in_batch < BATCH_RECORDS && batch_bytes < BATCH_BYTES {
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted("interrupted".to_owned()));
            }
            is_more = cursor.next().map_err(at_source)?.is_some();
            let expires = cursor.expires();
            let Some((key, value)) = cursor.current().map_err(at_source)? else { break };
            let value = value.bytes().map_err(at_source)?;
            let put = match expires {
                Some(time) => txn.put_until(target, key, value, time),
                None => txn.put(target, key, value),
            };
            put.map_err(at_target)?;
            in_batch += 1;
            batch_bytes += key.len() + value.len();
        }
        txn.commit().map_err(at_target)?;
        records += in_batch;
        bytes += u64::try_from(batch_bytes).unwrap_or(0);
        progress.set(records);
    }
    Ok((records, bytes))
}

fn ready_indexes(from: &Db, source: &Table) -> Outcome<Vec<IndexInfo>> {
    let mut all = source.indexes().map_err(|error| Failure::from(error).at(from.path()))?;
    all.retain(|index| index.is_ready);
    Ok(all)
}

/// Makes the indexes of a table for its copy, and tells how many.
fn copy_indexes(all: Vec<IndexInfo>, to: &Db, target: &Table, stop: &AtomicBool) -> Outcome<usize> {
    for index in &all {
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted("interrupted".to_owned()));
        }
        let mut progress = Progress::new("indexing", Unit::Records, 0);
        let made = target.create_index_with(&index.name, &index.spec, |step| {
            progress.set_of(step.done, step.total);
        });
        made.map_err(|error| Failure::from(error).at(to.path()))?;
    }
    Ok(all.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_unfinished_copy_is_never_too_long() {
        assert_eq!(unfinished_name("a"), "a.copying");
        for name in ["é".repeat(127), "x".repeat(NAME_BYTES_MAX), "鍵".repeat(85)] {
            let unfinished = unfinished_name(&name);
            assert!(unfinished.len() <= NAME_BYTES_MAX && unfinished.ends_with(UNFINISHED), "{unfinished}");
        }
    }
}
