//! `azekura import`: the records of a TSV file or stream. The twin of `export`.
//!
//! Rows are committed in batches with eventual durability. They are made durable every second and at the end.
//! An import may end early: a line cannot be read, the disk is full, or there is an interrupt. Then it
//! reports how many rows are durable, all from the first on, and the line to go on from. A carriage return
//! before the line feed is removed: files from Windows have one. One that belongs to a value is escaped.
//!
//! A line may say when its record expires. If that time has come by the clock of the database, the line is
//! passed over, and counted.
//!
//! An interrupt may come while the import waits for input. So another thread then commits and reports. For
//! that the import is behind a lock, which is not held while waiting for input.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use azekura::{Db, Durability, Options, Table, WriteTxn};

use crate::bytes::{self, Form, FormArg};
use crate::failure::EXIT_INTERRUPTED;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Deferred;
use crate::output;
use crate::output_file::is_same;
use crate::progress::{Progress, Unit};
use crate::store::{self, FileArg, LimitArgs, TableArg};
use crate::times;
use crate::units;

/// Rows in one transaction: enough that the cost of a commit does not matter.
const BATCH_ROWS: u64 = 10_000;
/// Bytes in one transaction, which is held in memory until it commits.
const BATCH_BYTES: u64 = 16 << 20;
/// After this time rows are made durable. The engine itself lets commits wait as long.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes read at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// Arguments of `import`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Each line is a key, a tab and a value, with \\t \\n \\r \\\\ \\0 and \\xNN escapes. A key that is\n\
                  there already gets the new value. A line may go on with a tab and expires=N: the record is\n\
                  there until N milliseconds after 1970. A line whose time has come is passed over.\n\
                  Other records live as the table says. What ends the import early is said with the\n\
                  number of rows that are stored, and --from-line goes on after them.\n\n\
                  Example:\n  azekura create fruit.azk\n  azekura import fruit.azk fruit.tsv\n  zcat fruit.tsv.gz | azekura import fruit.azk -\n  azekura import fruit.azk fruit.tsv --from-line 10001"
)]
pub struct Args {
    #[command(flatten)]
    pub file: FileArg,
    /// The TSV file to read, or - for standard input
    #[arg(value_name = "INPUT", default_value = "-")]
    input: PathBuf,
    #[command(flatten)]
    table: TableArg,
    #[command(flatten)]
    form: FormArg,
    /// Pass over the lines before this one
    #[arg(long, value_name = "N", default_value = "1", value_parser = crate::units::parse_positive)]
    from_line: u64,
    #[command(flatten)]
    limits: LimitArgs,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `import`.
pub fn run(args: &Args) -> Outcome {
    let (mut input, total) = open_input(&args.input, &args.file.path)?;
    let look = |db: &Db| store::open_table(db, &args.table.table).map(drop);
    let options = args.limits.options(Options::new().durability(Durability::Eventual));
    let db = store::open_to_write_with(&args.file.path, options, look)?;
    let table = store::open_table(&db, &args.table.table)?;
    let mut import = Import::new(&db, &table, args.form.form());
    (import.name, import.from_line) = (name(&args.input), args.from_line);
    import.progress = Some(Progress::new("importing", Unit::Bytes, total));
    drop(table);
    let import = Arc::new(Mutex::new(import));
    let stop = Arc::new(AtomicBool::new(false));
    let _deferred = Deferred::new({
        let (import, stop) = (import.clone(), stop.clone());
        move || interrupted(&import, &stop)
    });
    let read = read_lines(&import, &mut *input, &stop);
    let ended = locked(&import).end(read);
    store::close(db);
    let (Rows { read, expired }, bytes) = ended?;
    let records = read - expired;
    if args.json {
        let report = serde_json::json!({ "records": records, "bytes": bytes, "expired": expired });
        return output::print_json(&report);
    }
    let but = match expired {
        0 => String::new(),
        _ => format!(", without {} that had expired", units::grouped(expired)),
    };
    output::print_line(&format!(
        "imported {} records ({}){but}",
        units::grouped(records),
        units::bytes(bytes)
    ))
}

/// Commits and reports what was read so far, and ends the program, unless the import ends by itself.
fn interrupted(import: &Mutex<Import>, stop: &AtomicBool) {
    // If lines come, the reading thread ends the import. If none come, nobody holds the lock.
    stop.store(true, Ordering::Relaxed);
    let mut import = locked(import);
    if import.has_ended {
        return;
    }
    let db = import.db.clone();
    if let Err(failure) = import.end(Err(stopped())) {
        let _status = failure.report();
        store::close(db);
    }
    std::process::exit(i32::from(EXIT_INTERRUPTED));
}

fn stopped() -> Failure {
    Failure::Interrupted("interrupted".to_owned())
}

/// The import, also if a thread has panicked while it held the lock. What is committed is whole.
fn locked(import: &Mutex<Import>) -> MutexGuard<'_, Import> {
    import.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Imports the records of a stream into a table, in text form. Returns how many rows there were before the
/// stream's end or a bad line, and what is wrong with that line.
///
/// # Errors
/// The errors of the database.
pub fn import_from(
    db: &Db,
    table: &Table,
    input: &mut dyn BufRead,
) -> azekura::Result<(u64, Option<String>)> {
    let import = Mutex::new(Import::new(db, table, Form::Text));
    let read = read_lines(&import, input, &AtomicBool::new(false));
    let bad = match read {
        Ok(()) => None,
        Err(Failure::Engine(error)) => return Err(error),
        Err(failure) => Some(failure.to_string()),
    };
    let finished = locked(&import).finish();
    match finished {
        Ok(()) => Ok((locked(&import).durable.read, bad)),
        Err(Failure::Engine(error)) => Err(error),
        Err(failure) => Ok((0, Some(failure.to_string()))),
    }
}

/// Reads lines until the input ends, a line is bad, or `stop` is set.
fn read_lines(import: &Mutex<Import>, input: &mut dyn BufRead, stop: &AtomicBool) -> Outcome {
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        if stop.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        let mut import = locked(import);
        let read = read.map_err(|error| import.bad_line(number, &error.to_string()))?;
        if read == 0 {
            break;
        }
        import.take_line(&line, number)?;
    }
    Ok(())
}

/// The input, and its size in bytes, or 0 if it is not known.
fn open_input(path: &Path, database: &Path) -> Outcome<(Box<dyn BufRead>, u64)> {
    if path == Path::new("-") {
        return Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, io::stdin().lock())), 0));
    }
    let failed = |error: io::Error| Failure::io("reading", path, &error);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(Failure::Usage(format!("{} is a directory", path.display())));
    }
    if std::fs::metadata(database).is_ok_and(|database| is_same(&database, &metadata)) {
        return Err(Failure::Usage(format!("{} is the database itself", path.display())));
    }
    Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, file)), metadata.len()))
}

fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// How many rows were read, and how many of these had expired.
#[derive(Debug, Clone, Copy, Default)]
struct Rows {
    read: u64,
    expired: u64,
}

/// Rows on their way into the table, in one transaction after another.
struct Import {
    db: Db,
    table: Table,
    form: Form,
    /// The input's name. Below, its first line that counts.
    name: String,
    from_line: u64,
    progress: Option<Progress>,
    txn: Option<WriteTxn>,
    /// Rows of the transaction.
    batch: Rows,
    batch_bytes: u64,
    /// Rows that are committed. Below, those that are durable.
    committed: Rows,
    durable: Rows,
    synced: Instant,
    bytes: u64,
    has_ended: bool,
}

impl Import {
    fn new(db: &Db, table: &Table, form: Form) -> Import {
        Import {
            db: db.clone(),
            table: table.clone(),
            form,
            name: "input".to_owned(),
            from_line: 1,
            progress: None,
            txn: None,
            batch: Rows::default(),
            batch_bytes: 0,
            committed: Rows::default(),
            durable: Rows::default(),
            synced: Instant::now(),
            bytes: 0,
            has_ended: false,
        }
    }

    fn bad_line(&self, number: u64, reason: &str) -> Failure {
        Failure::Usage(format!("{}: line {number}: {reason}", self.name))
    }

    /// Puts the row of a line into the transaction, and commits the transaction if it is large enough.
    fn take_line(&mut self, line: &[u8], number: u64) -> Outcome {
        let line_bytes = u64::try_from(line.len()).unwrap_or(0);
        self.bytes += line_bytes;
        if number >= self.from_line {
            self.put_line(strip_line_end(line), number)?;
            self.batch.read += 1;
            self.batch_bytes += line_bytes;
            if self.batch.read >= BATCH_ROWS || self.batch_bytes >= BATCH_BYTES {
                self.commit()?;
            }
        }
        if let Some(progress) = &mut self.progress {
            progress.set(self.bytes);
        }
        Ok(())
    }

    fn put_line(&mut self, line: &[u8], number: u64) -> Outcome {
        let (key, value, expires) = split_line(line).map_err(|reason| self.bad_line(number, &reason))?;
        let expires = expires.map(times::read_expires).transpose();
        let expires = expires.map_err(|reason| self.bad_line(number, &reason))?;
        let key = bytes::read_form(key, self.form).map_err(|reason| self.bad_line(number, &reason))?;
        let value = bytes::read_form(value, self.form).map_err(|reason| self.bad_line(number, &reason))?;
        let txn = self.txn.get_or_insert_with(|| self.db.write());
        let done = match expires {
            Some(time) if time <= txn.time() => {
                self.batch.expired += 1;
                return Ok(());
            }
            Some(time) => txn.put_until(&self.table, &key, &value, time),
            None => txn.put(&self.table, &key, &value),
        };
        match done {
            Err(error @ azekura::Error::TooLarge { .. }) => Err(self.bad_line(number, &error.to_string())),
            other => Ok(other?),
        }
    }

    fn commit(&mut self) -> Outcome {
        let rows = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        if let Some(txn) = self.txn.take() {
            txn.commit()?;
            self.committed.read += rows.read;
            self.committed.expired += rows.expired;
        }
        if self.synced.elapsed() >= SYNC_INTERVAL { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Outcome {
        self.synced = Instant::now();
        self.db.sync()?;
        self.durable = self.committed;
        Ok(())
    }

    /// Commits the rest and makes everything durable.
    fn finish(&mut self) -> Outcome {
        let committed = self.commit();
        self.sync()?;
        committed
    }

    /// Ends the import, after a failure or without one. Returns the numbers of rows and of bytes, or a
    /// failure that says how many rows are stored.
    fn end(&mut self, read: Outcome) -> Outcome<(Rows, u64)> {
        self.has_ended = true;
        let finished = self.finish();
        self.progress = None;
        let Err(failure) = read.and(finished) else {
            return Ok((self.committed, self.bytes));
        };
        let Rows { read, expired } = self.durable;
        let stored = match read - expired {
            0 => "no row is stored".to_owned(),
            1 => "1 row is stored".to_owned(),
            rows => format!("{} rows are stored", units::grouped(rows)),
        };
        let next = self.from_line.saturating_add(read);
        Err(failure.at(self.db.path()).noted(&format!("{stored}; go on with --from-line {next}")))
    }
}

fn strip_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The fields of a line: the key, the value, and when the record expires, if that is said.
type Fields<'a> = (&'a [u8], &'a [u8], Option<&'a [u8]>);

fn split_line(line: &[u8]) -> Result<Fields<'_>, String> {
    let mut fields = line.split(|&byte| byte == b'\t');
    let (key, value, expires) = (fields.next(), fields.next(), fields.next());
    match (key, value, expires, fields.next()) {
        (Some(key), Some(value), None, _) => Ok((key, value, None)),
        (_, None, ..) => Err("no tab between a key and a value".to_owned()),
        (Some(key), Some(value), Some(time), None) if time.starts_with(times::EXPIRES) => {
            Ok((key, value, Some(time)))
        }
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
        assert_eq!(split_line(b"a\tb"), Ok((&b"a"[..], &b"b"[..], None)));
        assert_eq!(split_line(b"\t"), Ok((&b""[..], &b""[..], None)));
        assert_eq!(split_line(b"a\tb\texpires=5"), Ok((&b"a"[..], &b"b"[..], Some(&b"expires=5"[..]))));
        assert!(split_line(b"a\tb\texpires=5\t").is_err());
        assert!(split_line(b"").is_err());
        assert!(split_line(b"a").is_err());
        assert!(split_line(b"a\tb\tc").is_err());
    }
}
