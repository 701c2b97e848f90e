//! A process that follows. It takes snapshots, holds some of them for long, forks, and compares all that it
//! reads with the plan. Where writers have limits, a snapshot may become too old. Then each read of it says
//! so.

use super::plan::{COUNTER, KEYS, TABLES, check_alone, is_limited, key_bytes, table_of, value};
use crate::rng::Rng;
use azekura::{Db, Error, Freshness, Options, ReadTxn, Table};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The reader's arguments.
#[derive(clap::Args, Clone, Debug)]
pub struct Orders {
    /// The database
    pub path: PathBuf,
    /// What the commits follow from
    pub seed: u64,
    /// What the reader's own decisions follow from
    pub own: u64,
    /// For how many milliseconds it reads
    pub ms: u64,
}

/// How many snapshots it holds at most.
const HELD_MAX: usize = 4;
/// How many forks it makes at once.
const FORKS_MAX: u64 = 5;
/// The exit status of a reader that has found nothing wrong, but a snapshot too old.
pub const TOO_OLD: u8 = 7;
/// So many new snapshots in a row cannot all be too old.
const TOO_OLD_MAX: u32 = 200;

/// Why a reader goes no further with something.
enum Trouble {
    /// The writer does not keep the snapshot any more.
    TooOld,
    Wrong(String),
}

impl From<String> for Trouble {
    fn from(text: String) -> Trouble {
        Trouble::Wrong(text)
    }
}

type Outcome<T = ()> = Result<T, Trouble>;

/// What an error says of what was being read.
fn trouble(what: impl FnOnce() -> String, e: Error) -> Trouble {
    match e {
        Error::SnapshotTooOld { .. } => Trouble::TooOld,
        e => Trouble::Wrong(format!("{}: {e}", what())),
    }
}

/// What has become too old, where snapshots may.
struct Patience {
    limited: bool,
    times: u64,
    in_a_row: u32,
}

impl Patience {
    /// The outcome, or None if it was too old.
    fn take<T>(&mut self, done: Outcome<T>) -> Result<Option<T>, String> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(Trouble::Wrong(text)) => Err(text),
            Err(Trouble::TooOld) if self.limited => {
                self.times += 1;
                Ok(None)
            }
            Err(Trouble::TooOld) => Err("a snapshot is too old, and no writer has a limit".into()),
        }
    }

    /// As `take`, of a new snapshot.
    fn take_new<T>(&mut self, done: Outcome<T>) -> Result<Option<T>, String> {
        let taken = self.take(done)?;
        self.in_a_row = if taken.is_some() { 0 } else { self.in_a_row + 1 };
        if self.in_a_row > TOO_OLD_MAX {
            return Err(format!("{TOO_OLD_MAX} new snapshots one after the other are too old"));
        }
        Ok(taken)
    }
}

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// Children that were forked, and not waited for yet.
#[derive(Default)]
struct Forks(Vec<i32>);

/// Reads until its time is over. Prints what was wrong.
pub fn run(orders: &Orders) -> ExitCode {
    let mut rng = Rng::of(orders.own, 1);
    let until = Instant::now() + Duration::from_millis(orders.ms);
    let mut patience = Patience { limited: is_limited(orders.seed), times: 0, in_a_row: 0 };
    while Instant::now() < until {
        if let Err(e) = follow(orders, &mut rng, until, &mut patience) {
            eprintln!("a follower (own seed {}) of {}: {e}", orders.own, orders.path.display());
            return ExitCode::FAILURE;
        }
    }
    if patience.times > 0 { ExitCode::from(TOO_OLD) } else { ExitCode::SUCCESS }
}

/// One opening of the database. None while it is being made.
fn open(orders: &Orders, rng: &mut Rng) -> Result<Option<(Db, Vec<Table>)>, String> {
    let options = Options::new()
        .memory_bytes(8 << 20)
        .freshness(*rng.pick(&[Freshness::Checkpoint, Freshness::Log]))
        .mapped(!rng.one_in(3));
    // Asked before the opening: the writer may make the file right after an opening that has failed.
    let was_there = orders.path.exists();
    let db = match options.open(&orders.path) {
        Err(Error::Open { .. }) if !was_there => return Ok(None),
        db => db.map_err(|e| format!("opening: {e}"))?,
    };
    let mut tables = Vec::new();
    for (name, _) in TABLES {
        match db.open_table(name) {
            Err(Error::NoSuchTable { .. }) => return Ok(None),
            table => tables.push(table.map_err(|e| format!("table {name}: {e}"))?),
        }
    }
    Ok(Some((db, tables)))
}

/// A snapshot, and the newest commit in it.
struct Held {
    txn: ReadTxn,
    n: u64,
}

fn follow(orders: &Orders, rng: &mut Rng, until: Instant, patience: &mut Patience) -> Result<(), String> {
    let Some((db, tables)) = open(orders, rng)? else {
        std::thread::sleep(Duration::from_millis(1));
        return Ok(());
    };
    // A handle that shows only checkpoints may be behind an earlier one that showed the log.
    let (mut seen, mut held, mut forks) = (0, Vec::new(), Forks::default());
    let seed = orders.seed;
    while Instant::now() < until && !rng.one_in(300) {
        let Some(snapshot) = patience.take_new(begin(&db, &tables))? else { continue };
        if snapshot.n < seen {
            return Err(format!("commit {} after commit {seen} was seen", snapshot.n));
        }
        seen = snapshot.n;
        let checked = patience.take(check(&snapshot, &tables, seed, rng))?;
        for _ in 0..8 {
            let key = rng.below(KEYS);
            let alone = tables[table_of(key)].get(key_bytes(key));
            let alone = alone.map_err(|e| trouble(|| format!("key {key}"), e));
            if let Some(alone) = patience.take(alone)? {
                check_alone(seed, key, seen, alone.as_deref())?;
            }
        }
        if checked.is_some() && rng.one_in(6) {
            held.push(snapshot);
        }
        if held.len() > HELD_MAX || rng.one_in(20) && !held.is_empty() {
            let old: Held = held.swap_remove(usize::try_from(rng.below(held.len() as u64)).unwrap_or(0));
            check_held(&old, &tables, seed, seen, patience)?;
        }
        match rng.below(200) {
            0 => {
                forks.wait()?;
                forks.start(rng, &db, &tables);
            }
            1..8 => std::thread::sleep(Duration::from_millis(rng.below(40))),
            _ => {}
        }
    }
    for old in &held {
        check_held(old, &tables, seed, seen, patience)?;
    }
    forks.wait()
}

fn check_held(
    old: &Held,
    tables: &[Table],
    seed: u64,
    seen: u64,
    patience: &mut Patience,
) -> Result<(), String> {
    let checked = patience.take(check_all(old, tables, seed));
    checked.map(drop).map_err(|e| format!("held until commit {seen}: {e}"))
}

/// A snapshot, with both tables at the same commit.
fn begin(db: &Db, tables: &[Table]) -> Outcome<Held> {
    let txn = db.read();
    let mut counters = [0; TABLES.len()];
    for (counter, table) in counters.iter_mut().zip(tables) {
        let found = txn.get(table, COUNTER).map_err(|e| trouble(|| "the counter".into(), e))?;
        let bytes = found.unwrap_or_else(|| vec![0; 8]);
        let bytes = bytes.try_into().map_err(|b: Vec<u8>| format!("a counter has {} bytes", b.len()))?;
        *counter = u64::from_le_bytes(bytes);
    }
    if counters[0] != counters[1] {
        return Err(format!("a torn commit: {counters:?}").into());
    }
    Ok(Held { txn, n: counters[0] })
}

fn check(held: &Held, tables: &[Table], seed: u64, rng: &mut Rng) -> Outcome {
    if rng.one_in(12) {
        return check_all(held, tables, seed);
    }
    for _ in 0..8 {
        let key = rng.below(KEYS);
        let found = held.txn.get(&tables[table_of(key)], key_bytes(key));
        let found = found.map_err(|e| trouble(|| format!("key {key} at commit {}", held.n), e))?;
        compare(key, held.n, found.as_deref(), value(seed, key, held.n).as_deref())?;
    }
    Ok(())
}

/// Compares the whole snapshot, by its cursors.
fn check_all(held: &Held, tables: &[Table], seed: u64) -> Outcome {
    let text = |e: Error| trouble(|| format!("a walk at commit {}", held.n), e);
    let mut found = vec![None; usize::try_from(KEYS).unwrap_or(0)];
    for table in tables {
        let mut cursor = held.txn.cursor(table).map_err(text)?;
        while let Some((key, value)) = cursor.next().map_err(text)? {
            if key == COUNTER {
                continue;
            }
            let number = <[u8; 8]>::try_from(key).map_err(|_| format!("a key of {} bytes", key.len()))?;
            let slot = usize::try_from(u64::from_be_bytes(number)).ok().and_then(|i| found.get_mut(i));
            let slot = slot.ok_or_else(|| format!("the key {number:?}"))?;
            *slot = Some(value.bytes().map_err(text)?.to_vec());
        }
    }
    for (key, found) in (0..).zip(&found) {
        compare(key, held.n, found.as_deref(), value(seed, key, held.n).as_deref())?;
    }
    Ok(())
}

fn compare(key: u64, n: u64, found: Option<&[u8]>, expected: Option<&[u8]>) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let of = |value: Option<&[u8]>| match value {
        None => "nothing".to_owned(),
        Some(bytes) => match bytes.first_chunk() {
            Some(number) => format!("{} bytes of commit {}", bytes.len(), u64::from_le_bytes(*number)),
            None => format!("{} bytes", bytes.len()),
        },
    };
    Err(format!("key {key} at commit {n}: {}, and not {}", of(found), of(expected)))
}

impl Forks {
    /// Starts children that have the descriptors, and the locks, for a while. What they inherit tells them
    /// so.
    fn start(&mut self, rng: &mut Rng, db: &Db, tables: &[Table]) {
        for _ in 0..1 + rng.below(FORKS_MAX) {
            let time = Duration::from_millis(rng.below(20));
            // SAFETY: this process has one thread, and the child calls nothing that needs another.
            let pid = unsafe { fork() };
            if pid == 0 {
                let refused = matches!(tables[0].get(COUNTER), Err(Error::Forked));
                drop((db.clone(), db.read()));
                std::thread::sleep(time);
                // SAFETY: it ends the child at once, as a fork should.
                unsafe { _exit(i32::from(!refused)) };
            }
            self.0.push(pid);
        }
    }

    /// Waits for all, and for what they have found.
    fn wait(&mut self) -> Result<(), String> {
        for pid in self.0.drain(..).filter(|&pid| pid > 0) {
            let mut status = 0;
            // SAFETY: the status is this function's own, and lives throughout the call.
            let ended = unsafe { waitpid(pid, &raw mut status, 0) };
            if ended == pid && status != 0 {
                return Err(format!("a forked child has used what it inherited: status {status}"));
            }
        }
        Ok(())
    }
}
