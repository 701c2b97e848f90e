//! `azekura import`: the records of a TSV file or stream. The twin of `export`.
//!
//! Rows are committed in batches, eventually durable, and all are made durable at the end. A
//! line that cannot be read ends the import with its number; every row before it is stored, so
//! that the rest can be imported once the line is put right. A carriage return before the line
//! feed is taken off: files from Windows have one, and one that belongs to a value is escaped.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use azekura::{Db, Durability, Table, WriteTxn};

use crate::bytes::{self, Form, FormArg};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Unit};
use crate::store::{self, FileArg, TableArg};
use crate::units;

/// Rows in one transaction: enough that a commit costs nothing beside them.
const BATCH_ROWS: u64 = 10_000;
/// Bytes in one transaction, which is held in memory until it commits.
const BATCH_BYTES: u64 = 16 << 20;
/// Bytes read at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// Arguments of `import`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Each line is a key, a tab and a value, with \\t \\n \\r \\\\ \\0 and \\xNN escapes. A key that is\n\
                  there already gets the new value. A bad line ends the import; those before it are stored.\n\n\
                  Example:\n  azekura create fruit.azk\n  azekura import fruit.azk fruit.tsv\n  zcat fruit.tsv.gz | azekura import fruit.azk -"
)]
pub struct Args {
    #[command(flatten)]
    file: FileArg,
    /// The TSV file to read, or - for standard input
    #[arg(value_name = "INPUT", default_value = "-")]
    input: PathBuf,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    form: FormArg,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `import`.
pub fn run(args: &Args) -> Outcome {
    let (mut input, total) = open_input(&args.input)?;
    let db = store::open_to_write(&args.file.path, Durability::Eventual)?;
    let table = store::open_table(&db, &args.table.table)?;
    let mut batch = Batch::new(&db, &table, args.form.form());
    let progress = Progress::new("importing", Unit::Bytes, total);
    let read = batch.read_lines(&mut *input, &name(&args.input), progress);
    // Whatever ended the reading, the rows before it are kept, and durable.
    let stored = batch.finish().and_then(|counts| {
        db.close()?;
        Ok(counts)
    });
    let (rows, bytes) = match (read, stored) {
        (Ok(()), stored) => stored?,
        (Err(Failure::Usage(reason)), Ok((rows, _))) => {
            let stored = format!("the {} rows before it are stored", units::grouped(rows));
            return Err(Failure::Usage(format!("{reason}; {stored}")));
        }
        (Err(failure), _) => return Err(failure),
    };
    if args.json {
        return output::print_json(&serde_json::json!({ "records": rows, "bytes": bytes }));
    }
    let rows = units::grouped(rows);
    output::print_line(&format!("imported {rows} records ({})", units::bytes(bytes)))
}

/// Imports the records of a stream into a table, in text form, and gives how many rows there were before
/// the stream ended or a line was bad, and in the latter case what is wrong with it.
///
/// # Errors
/// What the database meets.
pub fn import_from(db: &Db, table: &Table, input: &mut dyn BufRead) -> azekura::Result<(u64, Option<String>)> {
    let mut batch = Batch::new(db, table, Form::Text);
    let read = batch.read_lines(input, "input", Progress::new("importing", Unit::Bytes, 0));
    let bad = match read {
        Ok(()) => None,
        Err(Failure::Engine(error)) => return Err(error),
        Err(failure) => Some(failure.to_string()),
    };
    match batch.finish() {
        Ok((rows, _)) => Ok((rows, bad)),
        Err(Failure::Engine(error)) => Err(error),
        Err(failure) => Ok((0, Some(failure.to_string()))),
    }
}

/// The input, and its size in bytes or 0 when nobody knows.
fn open_input(path: &Path) -> Outcome<(Box<dyn BufRead>, u64)> {
    if path == Path::new("-") {
        return Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, io::stdin().lock())), 0));
    }
    let failed = |error: io::Error| Failure::io("reading", path, &error);
    let file = File::open(path).map_err(failed)?;
    let total = file.metadata().map_err(failed)?.len();
    Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, file)), total))
}

fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Rows on their way into the table, in one transaction after the other.
struct Batch<'a> {
    db: &'a Db,
    table: &'a Table,
    form: Form,
    txn: Option<WriteTxn>,
    batch_rows: u64,
    batch_bytes: u64,
    rows: u64,
    bytes: u64,
}

impl<'a> Batch<'a> {
    fn new(db: &'a Db, table: &'a Table, form: Form) -> Batch<'a> {
        let (batch_rows, batch_bytes, rows, bytes) = (0, 0, 0, 0);
        Batch { db, table, form, txn: None, batch_rows, batch_bytes, rows, bytes }
    }

    /// Reads lines until the input ends or one is bad.
    fn read_lines(&mut self, input: &mut dyn BufRead, name: &str, mut progress: Progress) -> Outcome {
        let mut line = Vec::new();
        for number in 1u64.. {
            line.clear();
            let read = input
                .read_until(b'\n', &mut line)
                .map_err(|error| Failure::Usage(format!("{name}: line {number}: {error}")))?;
            if read == 0 {
                break;
            }
            self.put_line(strip_line_end(&line), name, number)?;
            self.count(u64::try_from(read).unwrap_or(0))?;
            progress.set(self.bytes);
        }
        Ok(())
    }

    fn put_line(&mut self, line: &[u8], name: &str, number: u64) -> Outcome {
        let bad = |reason: String| Failure::Usage(format!("{name}: line {number}: {reason}"));
        let (key, value) = split_line(line).map_err(bad)?;
        let key = bytes::read_form(key, self.form).map_err(bad)?;
        let value = bytes::read_form(value, self.form).map_err(bad)?;
        let txn = self.txn.get_or_insert_with(|| self.db.write());
        match txn.put(self.table, &key, &value) {
            Err(error @ azekura::Error::TooLarge { .. }) => Err(bad(error.to_string())),
            other => Ok(other?),
        }
    }

    /// Counts a row that is in the transaction, and commits when that is large enough.
    fn count(&mut self, line_bytes: u64) -> Outcome {
        self.rows += 1;
        self.bytes += line_bytes;
        self.batch_rows += 1;
        self.batch_bytes += line_bytes;
        if self.batch_rows >= BATCH_ROWS || self.batch_bytes >= BATCH_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Outcome {
        (self.batch_rows, self.batch_bytes) = (0, 0);
        self.txn.take().map_or(Ok(()), |txn| Ok(txn.commit()?))
    }

    /// Commits what is left and makes everything durable; returns the numbers of rows and bytes.
    fn finish(mut self) -> Outcome<(u64, u64)> {
        self.commit()?;
        self.db.sync()?;
        Ok((self.rows, self.bytes))
    }
}

fn strip_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn split_line(line: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let mut fields = line.split(|&byte| byte == b'\t');
    match (fields.next(), fields.next(), fields.next()) {
        (Some(key), Some(value), None) => Ok((key, value)),
        (_, None, _) => Err("no tab between a key and a value".to_owned()),
        _ => Err("more than one tab (a tab inside a value is written \\t)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_taken_off_once() {
        assert_eq!(strip_line_end(b"a\tb\n"), b"a\tb");
        assert_eq!(strip_line_end(b"a\tb\r\n"), b"a\tb");
        assert_eq!(strip_line_end(b"a\tb"), b"a\tb");
        assert_eq!(strip_line_end(b"a\tb\r\r\n"), b"a\tb\r");
    }

    #[test]
    fn a_line_has_one_tab() {
        assert_eq!(split_line(b"a\tb"), Ok((&b"a"[..], &b"b"[..])));
        assert_eq!(split_line(b"\t"), Ok((&b""[..], &b""[..])));
        assert!(split_line(b"").is_err());
        assert!(split_line(b"a").is_err());
        assert!(split_line(b"a\tb\tc").is_err());
    }
}
