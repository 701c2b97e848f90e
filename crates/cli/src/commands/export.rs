//! `azekura export`: a table as TSV, from one snapshot. The twin of `import`.
//!
//! A line is the key, a tab and the value, escaped (see [`crate::bytes`]). If the record expires, there is a
//! second tab, and the time at which it does (see [`crate::times`]).

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use azekura::{Db, Table};

use crate::bytes::{Form, FormArg};
use crate::commands::scan::write_fields;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::output_file::check_target;
use crate::progress::{Progress, Unit};
use crate::store::{self, FileArg, FollowArg, TableArg};
use crate::times;
use crate::units;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 256 << 10;
/// Records between two updates of the progress bar.
const PROGRESS_RECORDS: u64 = 1024;

/// The names of standard output. It is written in place: it may be a file to which output is appended.
const STDOUT_NAMES: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Arguments of `export`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Each line is a key, a tab and a value, with \\t \\n \\r \\\\ \\0 and \\xNN escapes. The line of a\n\
                  record that expires goes on with a tab and expires=N: N milliseconds after 1970. In a table with\n\
                  a time to live others have expires=never.\n\n\
                  Example:\n  azekura export fruit.azk fruit.tsv\n  azekura export fruit.azk | gzip > fruit.tsv.gz"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The TSV file to write, or - for standard output
    #[arg(value_name = "OUTPUT", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    form: FormArg,
    /// Replace OUTPUT if it exists (never a database)
    #[arg(long)]
    force: bool,
    /// Print a summary as JSON (with a file as OUTPUT)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    follow: FollowArg,
}

/// Runs `export`.
pub fn run(args: &Args) -> Outcome {
    let to_stdout = STDOUT_NAMES.iter().any(|name| args.output == Path::new(name));
    if to_stdout && args.json {
        let text = "--json prints a summary, so it needs a file as OUTPUT (see scan --json)";
        return Err(Failure::Usage(text.to_owned()));
    }
    let database = &args.file.path;
    let db = args.follow.open(database)?;
    let table = store::open_table(&db, &args.table.table)?;
    let form = args.form.form();
    if to_stdout {
        let mut stream = BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock());
        copy(&db, &table, form, &mut stream, &|error| Failure::stdout(&error))?;
        return Ok(());
    }
    let mut file = check_target(&args.output, &[database], args.force)?.create()?;
    let failed = |error: io::Error| Failure::io("writing", &args.output, &error);
    let (records, bytes) = copy(&db, &table, form, &mut file, &failed)?;
    file.finish()?;
    if args.json {
        return output::print_json(&serde_json::json!({ "records": records, "bytes": bytes }));
    }
    let records = units::grouped(records);
    output::print_line(&format!("exported {records} records ({})", units::bytes(bytes)))
}

/// Copies every record to `stream`. Returns the numbers of records and of bytes.
fn copy(
    db: &Db,
    table: &Table,
    form: Form,
    stream: &mut dyn Write,
    failed: &dyn Fn(io::Error) -> Failure,
) -> Outcome<(u64, u64)> {
    let txn = db.read();
    let mut progress = Progress::new("exporting", Unit::Records, 0);
    if progress.is_visible() {
        progress.set_of(0, txn.count(table)?);
    }
    // There a line without a time would get the usual one.
    let has_usual_ttl = table.usual_ttl().is_some();
    let mut cursor = txn.cursor(table)?;
    let mut line = Vec::new();
    let (mut records, mut bytes) = (0u64, 0u64);
    while let Some((key, value)) = cursor.next()? {
        line.clear();
        write_fields(key, Some(value.bytes()?), form, &mut line);
        if let Some(time) = cursor.expires() {
            line.push(b'\t');
            times::write_expires(time, &mut line);
        } else if has_usual_ttl {
            line.push(b'\t');
            line.extend_from_slice(times::NEVER);
        }
        line.push(b'\n');
        stream.write_all(&line).map_err(failed)?;
        records += 1;
        bytes += u64::try_from(line.len()).unwrap_or(0);
        if records.is_multiple_of(PROGRESS_RECORDS) {
            progress.set(records);
        }
    }
    stream.flush().map_err(failed)?;
    Ok((records, bytes))
}
