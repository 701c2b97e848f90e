//! `azekura scan`: records in order, forwards or backwards, all or some.
//!
//! A text line is the key, a tab and the value, escaped as in `export`.

use crate::bytes::{self, Form, FormArg, JsonRecord};
use crate::failure::Outcome;
use crate::keys::{Keys, RecordsArg};
use crate::output::Output;
use crate::store::{self, FollowArg};

/// Arguments of `scan`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  azekura scan fruit.azk --prefix app --limit 10\n  azekura scan fruit.azk --from a --to c --reverse --json\n  printf 'two\\n' | azekura scan fruit.azk --prefix -"
)]
pub struct Args {
    #[command(flatten)]
    pub of: RecordsArg,
    /// From the last to the first
    #[arg(long)]
    reverse: bool,
    /// At most so many records
    #[arg(long, value_name = "N", value_parser = crate::units::parse_count)]
    limit: Option<u64>,
    /// Print keys without their values
    #[arg(long)]
    keys_only: bool,
    #[command(flatten)]
    form: FormArg,
    /// Print one JSON object a record
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    follow: FollowArg,
}

/// Runs `scan` over one snapshot. Standard input is read before the database is opened: a slow pipe must not
/// lock others out.
pub fn run(args: &Args) -> Outcome {
    let keys = Keys::of(&args.of.keys, args.form.form())?;
    let db = args.follow.open(&args.of.file.path)?;
    let table = store::open_table(&db, &args.of.table.table)?;
    let txn = db.read();
    let mut cursor = keys.cursor(&txn, &table)?;
    if args.reverse {
        cursor.seek_last();
    }
    let mut output = Output::new();
    let mut line = Vec::new();
    let mut left = args.limit.unwrap_or(u64::MAX);
    while left > 0 {
        let record = if args.reverse { cursor.prev()? } else { cursor.next()? };
        let Some((key, value)) = record else { break };
        let value = if args.keys_only { None } else { Some(value.bytes()?) };
        write_record(args, key, value, &mut line, &mut output)?;
        left -= 1;
    }
    output.finish()
}

/// Writes one record. `line` is a buffer, reused from record to record.
fn write_record(
    args: &Args,
    key: &[u8],
    value: Option<&[u8]>,
    line: &mut Vec<u8>,
    output: &mut Output,
) -> Outcome {
    let form = args.form.form();
    if args.json {
        return output.json(&JsonRecord::new(key, value, form));
    }
    line.clear();
    write_line(key, value, form, line);
    output.bytes(line)
}

/// Appends a record's line: the key, a tab and the value, then a line feed.
pub fn write_line(key: &[u8], value: Option<&[u8]>, form: Form, line: &mut Vec<u8>) {
    write_fields(key, value, form, line);
    line.push(b'\n');
}

/// Appends the key, a tab and the value.
pub fn write_fields(key: &[u8], value: Option<&[u8]>, form: Form, line: &mut Vec<u8>) {
    bytes::write_form(key, form, line);
    if let Some(value) = value {
        line.push(b'\t');
        bytes::write_form(value, form, line);
    }
}
