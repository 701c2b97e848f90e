//! `azekura index create`: makes an index, or builds one to its end.

use azekura::{Durability, IndexSpec};

use super::of::IndexArg;
use crate::failure::Outcome;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::store::{self, JsonArg};

/// Arguments of `index create`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "SPEC names fields between commas: a source, a piece of it and a type, as in v./email:lower.\n\
                  Sources: k (the key), v (the value).\n\
                  Pieces: [0..8] (bytes from 0 to before 8), .split('\\t', 2) (the third part between tabs),\n\
                  ./user/email (a JSON pointer), .msgpack./user/age (in MessagePack).\n\
                  Types: text (of pointers unless you say), bytes (of others), lower (text in lower case), bool,\n\
                  u64, i64, f64 (in digits, or of a document), u64le, u64be and the like (in bytes).\n\
                  What a record does not have, or has of another type, is null.\n\
                  Behind the fields: unique (no two records have the same values), where present (records that\n\
                  lack one are left out).\n\n\
                  An index that is interrupted while it is made stays, and each write keeps it; the same command\n\
                  goes on with it.\n\n\
                  Example:\n  azekura index create people.azk main by_email 'v./email:lower unique'\n  \
                  azekura index create log.azk main by_time 'v[0..8]:u64le, k'\n  \
                  azekura index create people.azk main by_city \"v.split('\\t', 3), v.split('\\t', 0) where present\""
)]
pub struct Args {
    #[command(flatten)]
    pub of: IndexArg,
    /// What it is of (below)
    #[arg(value_name = "SPEC")]
    spec: String,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `index create`.
pub fn run(Args { of, spec, json }: &Args) -> Outcome {
    let spec = IndexSpec::parse(spec)?.to_string();
    let db = store::open_to_write(&of.file.path, Durability::Sync, |db| {
        store::open_table(db, &of.table).map(|_| ())
    })?;
    let table = store::open_table(&db, &of.table)?;
    let mut progress = Progress::new("indexing", Unit::Records, 0);
    let mut records = None;
    let made = table.create_index_with(&of.name, &spec, |step| {
        records = Some(step.done);
        progress.set_of(step.done, step.total);
    });
    drop(progress);
    made?;
    drop(table);
    store::close(db);
    if json.json {
        let report = serde_json::json!({
            "table": of.table, "index": of.name, "spec": spec, "records": records.unwrap_or(0),
        });
        return output::print_json(&report);
    }
    output::print_line(&match records {
        Some(records) => format!("made {} ({})", of.shown(), store::number_of_records(records)),
        None => format!("{} was there already", of.shown()),
    })
}
