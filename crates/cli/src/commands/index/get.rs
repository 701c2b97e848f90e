//! `azekura index get`: records by their values in an index.

use std::ffi::OsString;
use std::ops::Bound;

use azekura::{Index, IndexRecords, IndexSpec, IndexValue};

use super::of::{IndexArg, find};
use crate::arguments;
use crate::bytes::{self, Form, FormArg, JsonRecord};
use crate::commands::scan::write_line;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Output};
use crate::store::FollowArg;

/// Arguments of `index get`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A VALUE is given for each of the first fields, or none for all that is in the index. --from and\n\
                  --to limit the field after them, which a record then must have. Numbers are in digits, also\n\
                  with --hex; a VALUE that begins with a hyphen and is no number comes after --.\n\
                  Exit status 1 when VALUEs are given and no record has them.\n\n\
                  Example:\n  azekura index get people.azk main by_email ada@example.org\n  \
                  azekura index get people.azk main by_name Lovelace --from A --to C --limit 10\n  \
                  azekura index get people.azk main by_email ada@ --prefix --keys-only"
)]
pub struct Args {
    #[command(flatten)]
    pub of: IndexArg,
    /// The values of the first fields, or - for standard input
    #[arg(value_name = "VALUE", allow_negative_numbers = true)]
    values: Vec<OsString>,
    /// Of the last VALUE, text or bytes, only the beginning is given
    #[arg(long, requires = "values", conflicts_with_all = ["from", "to"])]
    prefix: bool,
    /// First value of the next field, included, or - for standard input
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    from: Option<OsString>,
    /// Last value of the next field, not included, or - for standard input
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    to: Option<OsString>,
    /// From the last to the first
    #[arg(long)]
    reverse: bool,
    /// At most so many records
    #[arg(long, value_name = "N", value_parser = crate::units::parse_count)]
    limit: Option<u64>,
    /// Print keys without their values; no record is read
    #[arg(long)]
    keys_only: bool,
    /// Print how many there are
    #[arg(long, conflicts_with_all = ["reverse", "limit", "keys_only"])]
    count: bool,
    #[command(flatten)]
    form: FormArg,
    /// Print one JSON object a record
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    follow: FollowArg,
}

/// The values as they were given. Standard input is read.
struct Given {
    values: Vec<Vec<u8>>,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

/// Runs `index get`, over one snapshot.
pub fn run(args: &Args) -> Outcome {
    let given = Given::of(args)?;
    let db = args.follow.open(&args.of.file.path)?;
    let (table, _) = find(&db, &args.of)?;
    let index = table.index(&args.of.name)?;
    let given = given.in_form(index.spec(), args.form.form())?;
    let records = given.records(&index, args.prefix)?;
    if args.count {
        return print_count(args, records);
    }
    let mut output = Output::new();
    let found = if args.keys_only {
        let keys = records.keys();
        let keys: Box<dyn Iterator<Item = _>> =
            if args.reverse { Box::new(keys.rev()) } else { Box::new(keys) };
        print(args, keys.map(|key| Ok((key?, None))), &mut output)?
    } else {
        let records: Box<dyn Iterator<Item = _>> =
            if args.reverse { Box::new(records.rev()) } else { Box::new(records) };
        let records = records.map(|record| record.map(|(key, value)| (key, Some(value))));
        print(args, records, &mut output)?
    };
    if !found && args.limit != Some(0) && !given.values.is_empty() {
        return Err(Failure::NotFound(format!("no record with these values in {}", args.of.shown())));
    }
    output.finish()
}

/// Prints records. `false`: there are none.
fn print(
    args: &Args,
    mut records: impl Iterator<Item = azekura::Result<(Vec<u8>, Option<Vec<u8>>)>>,
    output: &mut Output,
) -> Outcome<bool> {
    let (form, mut line) = (args.form.form(), Vec::new());
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut found = false;
    while left > 0
        && let Some(record) = records.next()
    {
        let (key, value) = record?;
        if args.json {
            output.json(&JsonRecord::new(&key, value.as_deref(), form))?;
        } else {
            line.clear();
            write_line(&key, value.as_deref(), form, &mut line);
            output.bytes(&line)?;
        }
        left -= 1;
        found = true;
    }
    Ok(found)
}

fn print_count(args: &Args, records: IndexRecords) -> Outcome {
    let mut count = 0u64;
    for key in records.keys() {
        key?;
        count += 1;
    }
    if args.json {
        let report = serde_json::json!({ "table": args.of.table, "index": args.of.name, "records": count });
        return output::print_json(&report);
    }
    output::print_line(&count.to_string())
}

impl Given {
    fn of(args: &Args) -> Outcome<Given> {
        let mut all = args.values.iter().chain(&args.from).chain(&args.to);
        if let Some(first) = all.find(|value| *value == "-") {
            for second in all {
                arguments::one_from_stdin(("VALUE", first), ("another", second))?;
            }
        }
        let read = |value: &OsString| arguments::argument(value, Form::Text);
        Ok(Given {
            values: args.values.iter().map(read).collect::<Outcome<_>>()?,
            from: args.from.as_ref().map(read).transpose()?,
            to: args.to.as_ref().map(read).transpose()?,
        })
    }

    /// Decodes the hexadecimal digits of text and bytes.
    fn in_form(self, spec: &IndexSpec, form: Form) -> Outcome<Given> {
        let decode = |place: usize, value: Vec<u8>| {
            if form == Form::Text || !spec.is_bytes(place) {
                return Ok(value);
            }
            bytes::from_hex(value.trim_ascii())
                .map_err(|reason| Failure::Usage(format!("{}: {reason}", bytes::shown(&value, Form::Text))))
        };
        let next = self.values.len();
        let values = self.values.into_iter().enumerate().map(|(place, value)| decode(place, value));
        Ok(Given {
            values: values.collect::<Outcome<_>>()?,
            from: self.from.map(|value| decode(next, value)).transpose()?,
            to: self.to.map(|value| decode(next, value)).transpose()?,
        })
    }

    /// The records that are asked for.
    fn records(&self, index: &Index, prefix: bool) -> Outcome<IndexRecords> {
        let spec = index.spec();
        let values = self.values.iter().enumerate().map(|(place, value)| spec.value_of(place, value));
        let values = values.collect::<azekura::Result<Vec<_>>>()?;
        if prefix {
            return Ok(index.prefix(&values)?);
        }
        if self.from.is_none() && self.to.is_none() {
            return Ok(index.get(&values)?);
        }
        let low = match &self.from {
            Some(from) => Bound::Included(with(&values, spec.value_of(values.len(), from)?)),
            // Records that do not have the field come first.
            None => Bound::Excluded(with(&values, IndexValue::Null)),
        };
        let high = match &self.to {
            Some(to) => Bound::Excluded(with(&values, spec.value_of(values.len(), to)?)),
            None if values.is_empty() => Bound::Unbounded,
            None => Bound::Included(values),
        };
        Ok(index.range((low, high))?)
    }
}

/// Values, and one more.
fn with<'v>(values: &[IndexValue<'v>], next: IndexValue<'v>) -> Vec<IndexValue<'v>> {
    [values, &[next]].concat()
}
