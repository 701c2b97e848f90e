//! `azekura remove-range`: removes the keys of a range, or those with a prefix, in one transaction.

use azekura::{Db, Durability, Table};

use crate::bytes::{self, FormArg};
use crate::failure::{Failure, Outcome};
use crate::keys::{Keys, RecordsArg};
use crate::output;
use crate::progress::{Progress, Unit};
use crate::store::{self, JsonArg};

/// Records between two updates of the progress bar.
const PROGRESS_RECORDS: u64 = 1024;

/// Arguments of `remove-range`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It does not ask, and needs --from, --to or --prefix; scan with the same options shows what would go.\n\n\
                  Example:\n  azekura remove-range fruit.azk --prefix app\n  azekura remove-range fruit.azk --from a --to c"
)]
pub struct Args {
    #[command(flatten)]
    pub of: RecordsArg,
    #[command(flatten)]
    form: FormArg,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs `remove-range`. Nobody writes between counting and removing, since the file is locked.
pub fn run(args: &Args) -> Outcome {
    let keys = Keys::of(&args.of.keys, args.form.form())?;
    // An empty prefix is probably a variable that was not set.
    if keys.are_all() {
        let text =
            "remove-range needs --from, --to or --prefix, and not an empty one (clear removes all records)";
        return Err(Failure::Usage(text.to_owned()));
    }
    let name = &args.of.table.table;
    let db = store::open_to_write(&args.of.file.path, Durability::Sync, |db| {
        keys.check_table(&store::open_table(db, name)?)
    })?;
    let table = store::open_table(&db, name)?;
    // With a damaged page the records cannot be counted. They can be removed all the same.
    let removed = count(&db, &table, &keys).ok();
    if removed != Some(0) {
        keys.with_bounds(|low, high| table.remove_range((low, high)))?;
    }
    drop(table);
    store::close(db);
    if args.json.json {
        return output::print_json(&serde_json::json!({ "table": name, "records": removed }));
    }
    let removed = removed.map_or("an unknown number of records".to_owned(), store::number_of_records);
    output::print_line(&format!("removed {removed} from table {}", bytes::quoted(name)))
}

fn count(db: &Db, table: &Table, keys: &Keys) -> Outcome<u64> {
    let mut cursor = keys.cursor(&db.read(), table)?;
    let mut progress = Progress::new("counting", Unit::Records, 0);
    let mut count = 0u64;
    while cursor.next()?.is_some() {
        count += 1;
        if count.is_multiple_of(PROGRESS_RECORDS) {
            progress.set(count);
        }
    }
    Ok(count)
}
