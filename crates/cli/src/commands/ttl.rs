//! `azekura ttl`: how long the records of a table live, and another time for those that are to come.

use std::time::Duration;

use azekura::Durability;

use crate::bytes;
use crate::failure::Outcome;
use crate::output;
use crate::store::{self, FileArg, JsonArg, TableArg};
use crate::units;

/// Arguments of `ttl`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What is there keeps its time. What is put from then on lives for the new one, unless the put\n\
                  says otherwise.\n\n\
                  Example:\n  azekura ttl fruit.azk --table sessions\n  \
                  azekura ttl fruit.azk --table sessions 3600\n  azekura ttl fruit.azk --table sessions none"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// Seconds that records live from now on, or none if until they are removed [default: only say how long]
    #[arg(value_name = "SECONDS", value_parser = parse_usual)]
    usual: Option<Usual>,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    json: JsonArg,
}

/// How long records live if the put does not say otherwise.
#[derive(Debug, Clone, Copy)]
struct Usual(Option<Duration>);

fn parse_usual(text: &str) -> Result<Usual, String> {
    if text == "none" { Ok(Usual(None)) } else { units::parse_lifetime(text).map(|ttl| Usual(Some(ttl))) }
}

/// Runs `ttl`.
pub fn run(args: &Args) -> Outcome {
    let (path, name) = (&args.file.path, &args.table.table);
    let ttl = match args.usual {
        None => store::open_table(&store::open_to_read(path)?, name)?.usual_ttl(),
        Some(Usual(ttl)) => {
            let look = |db: &azekura::Db| store::open_table(db, name).map(drop);
            let db = store::open_to_write(path, Durability::Sync, look)?;
            store::open_table(&db, name)?.set_usual_ttl(ttl)?;
            store::close(db);
            ttl
        }
    };
    if args.json.json {
        let seconds = ttl.map(|ttl| ttl.as_secs_f64());
        return output::print_json(&serde_json::json!({ "table": name, "ttl": seconds }));
    }
    let name = bytes::quoted(name);
    output::print_line(&match ttl {
        Some(ttl) => format!("records of table {name} live for {} seconds", ttl.as_secs_f64()),
        None => format!("records of table {name} live until they are removed"),
    })
}
