//! `azekura get`: the value of one key.

use std::ffi::OsString;

use crate::arguments;
use crate::bytes::{self, Form, FormArg, JsonRecord};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Output};
use crate::store::{self, FileArg, FollowArg, JsonArg, TableArg};

/// Arguments of `get`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A value that is not UTF-8 is printed with \\xNN escapes; --raw prints any value as it is.\n\
                  A key from standard input is every byte of it: printf, not echo, which adds a line feed.\n\
                  Exit status 1 when there is no such key.\n\n\
                  Example:\n  azekura get fruit.azk apple\n  azekura get photos.azk cat.jpg --raw > cat.jpg\n  \
                  printf 'two\\nlines' | azekura get fruit.azk -"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The key, or - for standard input (a key that is - itself: --hex 2d)
    #[arg(allow_hyphen_values = true)]
    key: OsString,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    form: FormArg,
    /// Print the value's bytes and nothing else, not even a line feed
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    json: JsonArg,
    #[command(flatten)]
    follow: FollowArg,
}

/// Runs `get`.
pub fn run(args: &Args) -> Outcome {
    let form = args.form.form();
    let key = arguments::argument(&args.key, form)?;
    let db = args.follow.open(&args.file.path)?;
    let table = store::open_table(&db, &args.table.table)?;
    let Some(value) = table.get(&key)? else {
        return Err(not_found(&key, &args.table.table, form));
    };
    if args.json.json {
        return output::print_json(&JsonRecord::new(&key, Some(&value), form));
    }
    let mut output = Output::new();
    if args.raw {
        output.bytes(&value)?;
        return output.finish();
    }
    if form == Form::Text && std::str::from_utf8(&value).is_ok() {
        output.bytes(&value)?;
    } else {
        let mut text = Vec::new();
        bytes::write_form(&value, form, &mut text);
        output.bytes(&text)?;
    }
    output.bytes(b"\n")?;
    output.finish()
}

/// The failure for a key that is absent.
pub fn not_found(key: &[u8], table: &str, form: Form) -> Failure {
    Failure::NotFound(format!("no key {} in table {}", bytes::shown(key, form), bytes::quoted(table)))
}
