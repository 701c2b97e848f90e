//! The reader of the feed, which is killed too: it follows the file and keeps a copy of the tables in a
//! database of its own, which notes in the same transaction how far it has come. So each life goes on where
//! the one before was killed. Of tables whose old values are told, each change must find its own in the copy:
//! one that was lost or is told twice is noticed at once.

use super::child::options;
use super::plan::{TABLES, content, kept};
use crate::rng::Rng;
use azekura::{ChangeKind, Db, Error, FeedContent, Freshness, Options, Table, TableKind, WriteTxn};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The reader's arguments.
#[derive(clap::Args, Clone, Debug)]
pub struct Orders {
    /// The database
    pub path: PathBuf,
    /// The copy
    pub copy: PathBuf,
    /// What the options follow from
    pub seed: u64,
    /// Which life it is
    pub life: u64,
}

/// Runs until it is killed. Ends by itself only if something is wrong, and prints what.
pub fn run(orders: &Orders) -> ExitCode {
    match copy_for_ever(orders) {
        Ok(()) => eprintln!("the reader came to an end"),
        Err(e) => eprintln!("the reader of the feed: {e}"),
    }
    ExitCode::FAILURE
}

fn copy_for_ever(orders: &Orders) -> Result<(), String> {
    let mut rng = Rng::of(orders.seed ^ orders.life << 20, 77);
    let copy = options(&mut rng).open(&orders.copy).map_err(|e| format!("opening the copy: {e}"))?;
    loop {
        let source = Options::new().follow(true).freshness(Freshness::Log).open(&orders.path);
        // Before the first superblock is whole there is no database.
        if let Ok(source) = source {
            for _ in 0..1 + rng.below(30) {
                catch_up(&source, &copy, orders.seed, &mut rng)?;
                std::thread::sleep(Duration::from_micros(rng.below(3000)));
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A copy of the tables that are fed.
struct Copy<'a> {
    copy: &'a Db,
    tables: [Table; 2],
    /// Whether old values are told of them.
    has_old: [bool; 2],
    place: Table,
}

/// What ends a copy's way.
enum Stop {
    Wrong(String),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(e: Error) -> Stop {
        Stop::Failed(e)
    }
}

/// Brings a copy up to what the feed has at present. Gives how many changes that were, or none if some are
/// gone that the copy has not seen.
///
/// # Errors
/// A change that cannot follow on what the copy has, and the engine's errors.
pub fn catch_up(source: &Db, copy: &Db, seed: u64, rng: &mut Rng) -> Result<Option<u64>, String> {
    let mut done = || -> Result<u64, Stop> {
        let Some(info) = source.feed_info()? else { return Ok(0) };
        let tables = [copy.table(TABLES[0].0, TABLES[0].1)?, copy.table(TABLES[1].0, TABLES[1].1)?];
        let place = copy.table("place", TableKind::Ordered)?;
        let has_old = [0, 1].map(|table| content(seed, table) == FeedContent::Both);
        let copy = Copy { copy, tables, has_old, place };
        copy.take(source, copy.place()?.unwrap_or(info.oldest), rng)
    };
    match done() {
        Ok(changes) => Ok(Some(changes)),
        Err(Stop::Failed(Error::FeedGap { .. })) => Ok(None),
        Err(Stop::Failed(e)) => Err(e.to_string()),
        Err(Stop::Wrong(what)) => Err(what),
    }
}

impl Copy<'_> {
    fn place(&self) -> Result<Option<u64>, Error> {
        Ok(self.place.get("at")?.map(|value| u64::from_le_bytes(value.try_into().unwrap_or_default())))
    }

    /// Takes all changes after a commit, some commits at a time.
    fn take(&self, source: &Db, after: u64, rng: &mut Rng) -> Result<u64, Stop> {
        let mut feed = source.feed(after)?;
        let (mut txn, mut last, mut changes, mut all) = (self.copy.write(), after, 0, 0);
        let mut most = rng.below(400);
        while let Some(change) = feed.next()? {
            if change.commit <= after {
                return Err(Stop::Wrong(format!("commit {} after {after} is told again", change.commit)));
            }
            if change.commit > last && changes > most {
                self.commit(txn, change.commit - 1)?;
                (txn, changes, most) = (self.copy.write(), 0, rng.below(400));
            }
            last = change.commit;
            changes += 1;
            all += 1;
            let table = TABLES.iter().position(|table| table.0 == change.table);
            let table = table.ok_or_else(|| Stop::Wrong(format!("table {} is fed", change.table)))?;
            let done = apply(&mut txn, &self.tables[table], change.kind, self.has_old[table]);
            done.map_err(|stop| match stop {
                Stop::Wrong(what) => Stop::Wrong(format!("commit {last}, after {after}: {what}")),
                failed => failed,
            })?;
        }
        self.commit(txn, feed.position())?;
        Ok(all)
    }

    fn commit(&self, mut txn: WriteTxn, place: u64) -> Result<(), Error> {
        txn.put(&self.place, "at", &place.to_le_bytes())?;
        txn.commit()
    }
}

fn apply(txn: &mut WriteTxn, table: &Table, kind: ChangeKind<'_>, has_old: bool) -> Result<(), Stop> {
    match kind {
        ChangeKind::Put { key, value: Some(value), old } => {
            if has_old {
                expect_old(txn, table, key, old)?;
            }
            txn.put(table, key, value)?;
        }
        ChangeKind::Remove { key, old } => {
            if has_old {
                expect_old(txn, table, key, old)?;
            }
            txn.remove(table, key)?;
        }
        ChangeKind::RemoveRange { start, end: Some(end) } => txn.remove_range(table, start..end)?,
        // Each table begins empty.
        ChangeKind::Begin { .. } if txn.first(table)?.is_none() => {}
        other => return Err(Stop::Wrong(format!("table {}: {other:?}", table.name()))),
    }
    Ok(())
}

/// An old value that was told is the one that the copy has.
fn expect_old(txn: &WriteTxn, table: &Table, key: &[u8], old: Option<&[u8]>) -> Result<(), Stop> {
    let known = txn.get(table, key)?;
    if known.as_deref() != old {
        let lengths = (known.map(|known| known.len()), old.map(<[u8]>::len));
        let what = format!("table {}, {key:02x?}: the copy's and the old value: {lengths:?}", table.name());
        return Err(Stop::Wrong(what));
    }
    Ok(())
}

/// Copies the tables anew.
///
/// # Errors
/// As the engine's.
pub fn copy_anew(source: &Db, copy: &Db) -> Result<(), Error> {
    let Some(info) = source.feed_info()? else { return Ok(()) };
    let mut txn = copy.write();
    for (name, kind) in TABLES {
        let table = copy.table(name, kind)?;
        txn.clear(&table)?;
        for record in source.open_table(name)?.cursor()?.owned() {
            let (key, value) = record?;
            txn.put(&table, key, value)?;
        }
    }
    txn.put(&copy.table("place", TableKind::Ordered)?, "at", &info.newest.to_le_bytes())?;
    txn.commit()
}

/// After both were killed: brings the copy up to the database, and compares. Gives how many changes were
/// told.
///
/// # Errors
/// Where they differ.
pub fn compare(source: &Db, path: &Path, seed: u64, rng: &mut Rng) -> Result<u64, String> {
    let copy = options(rng).open(path).map_err(|e| format!("opening the copy: {e}"))?;
    let told = catch_up(source, &copy, seed, rng).map_err(|e| format!("the feed: {e}"))?;
    if told.is_none() {
        if kept(seed) > 1 << 20 {
            return Err("the feed has lost changes".into());
        }
        copy_anew(source, &copy).map_err(|e| format!("copying anew: {e}"))?;
    }
    for (name, _) in TABLES {
        let read = |db: &Db| match db.open_table(name) {
            Ok(table) => table.cursor()?.owned().collect::<Result<Vec<_>, Error>>(),
            Err(_) => Ok(Vec::new()),
        };
        let mut both = [read(source), read(&copy)].into_iter();
        let mut next = || both.next().unwrap_or(Ok(Vec::new())).map_err(|e| format!("table {name}: {e}"));
        let (mut all, mut told) = (next()?, next()?);
        // Hash tables of two databases have two orders.
        all.sort();
        told.sort();
        if all != told {
            let wrong = all.iter().find(|record| told.binary_search(record).is_err());
            let lengths = (all.len(), told.len());
            return Err(format!("table {name}: {lengths:?} records; not told: {:02x?}", wrong.map(|r| &r.0)));
        }
    }
    copy.close().map_err(|e| format!("closing the copy: {e}"))?;
    Ok(told.unwrap_or(0))
}
