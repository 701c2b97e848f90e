//! `azekura watch`: prints what commits do to the tables that are fed, as they are made.
//!
//! A text line is the number of the commit, the table, what was done, and the key and the value where there
//! are some, between tabs, and the value before.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use azekura::{Change, ChangeKind};
use serde::Serialize;

use super::feed::info::{content_name, feed_of};
use crate::bytes::{self, Form, FormArg, JsonRecord};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::store::{self, FileArg};

/// Arguments of `watch`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Lines: COMMIT, TABLE, and put KEY VALUE, remove KEY, remove-range FROM TO, clear, rename NAME,\n\
                  drop, begin keys|values|both or stop, between tabs; a value before comes last. What is printed is durable. It goes on until it is interrupted, beside the\n\
                  program that writes. With --from, it goes on where another watch has ended.\n\n\
                  Example:\n  azekura watch people.azk\n  azekura watch people.azk --table main --from 1200 --json\n  \
                  azekura watch people.azk --oldest --once"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// Only this table
    #[arg(long, short, value_name = "NAME")]
    table: Option<String>,
    /// Print what came after this commit, too
    #[arg(long, value_name = "COMMIT", conflicts_with = "oldest")]
    from: Option<u64>,
    /// Print all that is kept, too
    #[arg(long)]
    oldest: bool,
    /// End when all that there is was printed
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    form: FormArg,
    /// Print one JSON object a change
    #[arg(long)]
    json: bool,
}

/// How long a look that finds nothing waits.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Runs `watch`.
pub fn run(args: &Args) -> Outcome {
    let db = store::open_to_follow(&args.file.path)?;
    let info = feed_of(&db)?;
    if let Some(table) = &args.table
        && !info.tables.iter().any(|fed| fed.name == *table)
        && args.from.is_none()
        && !args.oldest
    {
        store::open_table(&db, table)?;
        return Err(Failure::NotFound(format!("table {} is not fed", bytes::quoted(table))));
    }
    let from = if args.oldest { info.oldest } else { args.from.unwrap_or(info.newest) };
    let mut feed = db.feed(from)?;
    let (mut output, mut line) = (Output::new(), Vec::new());
    loop {
        while let Some(change) = feed.next()? {
            if args.table.as_deref().is_none_or(|table| table == change.table) {
                print(args, &change, &mut line, &mut output)?;
            }
        }
        // Whoever reads a pipe sees a commit when it is made.
        output.flush()?;
        if args.once {
            return Ok(());
        }
        feed.wait(PATIENCE)?;
    }
}

/// A change as JSON.
#[derive(Serialize)]
struct JsonChange<'a> {
    commit: u64,
    time_ms: u128,
    table: &'a str,
    change: &'a str,
    #[serde(flatten)]
    record: Option<JsonRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<JsonRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<JsonRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

/// A time in milliseconds since 1970.
fn time_ms(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis())
}

fn print(args: &Args, change: &Change<'_>, line: &mut Vec<u8>, output: &mut Output) -> Outcome {
    if args.json {
        return output.json(&json(change, args.form.form()));
    }
    line.clear();
    write_line(change, args.form.form(), line);
    output.bytes(line)
}

fn json<'a>(change: &Change<'a>, form: Form) -> JsonChange<'a> {
    let mut out = JsonChange {
        commit: change.commit,
        time_ms: time_ms(change.time),
        table: change.table,
        change: what(&change.kind),
        record: None,
        from: None,
        to: None,
        name: None,
        expires_ms: change.expires.map(time_ms),
        old: None,
        old_hex: None,
        content: None,
    };
    if let ChangeKind::Put { old: Some(old), .. } | ChangeKind::Remove { old: Some(old), .. } = change.kind {
        (out.old, out.old_hex) = bytes::json_bytes(old, form);
    }
    match change.kind {
        ChangeKind::Put { key, value, .. } => out.record = Some(JsonRecord::new(key, value, form)),
        ChangeKind::Remove { key, .. } => out.record = Some(JsonRecord::new(key, None, form)),
        ChangeKind::RemoveRange { start, end } => {
            out.from = Some(JsonRecord::new(start, None, form));
            out.to = end.map(|end| JsonRecord::new(end, None, form));
        }
        ChangeKind::Rename { to } => out.name = Some(to),
        ChangeKind::Begin { content } => out.content = Some(content_name(content)),
        _ => {}
    }
    out
}

fn what(kind: &ChangeKind<'_>) -> &'static str {
    match kind {
        ChangeKind::Put { .. } => "put",
        ChangeKind::Remove { .. } => "remove",
        ChangeKind::RemoveRange { .. } => "remove-range",
        ChangeKind::Clear => "clear",
        ChangeKind::Rename { .. } => "rename",
        ChangeKind::Drop => "drop",
        ChangeKind::Begin { .. } => "begin",
        ChangeKind::Stop => "stop",
        _ => "unknown",
    }
}

fn write_line(change: &Change<'_>, form: Form, line: &mut Vec<u8>) {
    line.extend_from_slice(change.commit.to_string().as_bytes());
    let mut field = |bytes: &[u8], form| {
        line.push(b'\t');
        bytes::write_form(bytes, form, line);
    };
    field(change.table.as_bytes(), Form::Text);
    field(what(&change.kind).as_bytes(), Form::Text);
    match change.kind {
        ChangeKind::Put { key, value, old } => {
            field(key, form);
            value.into_iter().chain(old).for_each(|value| field(value, form));
        }
        ChangeKind::Remove { key, old } => {
            field(key, form);
            old.into_iter().for_each(|old| field(old, form));
        }
        ChangeKind::RemoveRange { start, end } => {
            field(start, form);
            end.into_iter().for_each(|end| field(end, form));
        }
        ChangeKind::Rename { to } => field(to.as_bytes(), Form::Text),
        ChangeKind::Begin { content } => field(content_name(content).as_bytes(), Form::Text),
        _ => {}
    }
    line.push(b'\n');
}
