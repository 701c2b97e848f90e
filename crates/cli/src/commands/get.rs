//! `azekura get`: the value of one key.

use crate::bytes::{self, Form, JsonRecord};
use crate::failure::Outcome;
use crate::keys::KeyArg;
use crate::output::{self, Output};
use crate::store::{self, FollowArg, JsonArg};

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
    pub of: KeyArg,
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
    let (key, form) = (args.of.key()?, args.of.form.form());
    let db = args.follow.open(&args.of.file.path)?;
    let table = store::open_table(&db, &args.of.table.table)?;
    let Some(value) = table.get(&key)? else { return Err(args.of.not_found(&key)) };
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
