//! The process that is killed. It opens the database with random options, writes with several threads,
//! flushes, compacts, makes and drops tables, closes and opens again, until it is killed. It notes in the
//! oracle all that it begins and all that is acknowledged.

use super::oracle::Oracle;
use super::plan::{
    KEPT, PASSING, REFUSED, TABLES, WRITERS, Write, account, bytes, commit, content, counter, kept, key, step,
};
use crate::rng::Rng;
use azekura::{Db, Durability, Error, Isolation, Options, Table, WriteOptions};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The child's arguments.
#[derive(clap::Args, Clone, Debug)]
pub struct Orders {
    /// The database
    pub path: PathBuf,
    /// The oracle's file
    pub oracle: PathBuf,
    /// What the commits follow from
    pub seed: u64,
    /// Which life of the database this is
    pub life: u64,
    /// Stop writing after this many milliseconds, and wait to be killed
    #[arg(long)]
    pub quiet_after_ms: Option<u64>,
}

/// The eventual delay in lives that end quietly.
pub const QUIET_DELAY: Duration = Duration::from_millis(20);

/// How long a quiet child waits to be killed: ten minutes.
const QUIET_TICK: Duration = Duration::from_millis(100);
const QUIET_TICKS: u32 = 6_000;

/// Random options: small memtables, so that flushes and merges happen within milliseconds.
pub fn options(rng: &mut Rng) -> Options {
    let memory = *rng.pick(&[8, 8, 16, 64]) << 20;
    Options::new()
        .memory_bytes(memory)
        .memtable_bytes(*rng.pick(&[64, 64, 256, 1024]) << 10)
        .durability(*rng.pick(&[Durability::Sync, Durability::Eventual]))
        .eventual_delay(Duration::from_millis(*rng.pick(&[1, 5, 30, 200])))
        .large_value_bytes(*rng.pick(&[64, 512, 1024, 8192]))
        .background_merges(!rng.one_in(4))
}

/// Runs until it is killed. Ends by itself only if something is wrong, and prints what.
pub fn run(orders: &Orders) -> ExitCode {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        usual(info);
        std::process::exit(101);
    }));
    match lives(orders) {
        Ok(()) => eprintln!("the child came to an end"),
        Err(e) => eprintln!("the child failed: {e}"),
    }
    ExitCode::FAILURE
}

fn lives(orders: &Orders) -> Result<(), String> {
    let oracle = Oracle::open(&orders.oracle).map_err(|e| format!("the oracle: {e}"))?;
    let mut counts: Option<[u64; WRITERS]> = None;
    for open in 0.. {
        let mut rng = Rng::of(orders.seed ^ orders.life << 20, open);
        let mut options = options(&mut rng);
        if orders.quiet_after_ms.is_some() {
            options = options.eventual_delay(QUIET_DELAY);
        }
        let db = options.open(&orders.path).map_err(|e| format!("opening: {e}"))?;
        for (name, kind) in TABLES {
            let table = db.table(name, kind).map_err(|e| format!("table {name}: {e}"))?;
            indexes(&table).map_err(|e| format!("the indexes of table {name}: {e}"))?;
            let content = content(orders.seed, usize::from(name == TABLES[1].0));
            table.set_feed(Some(content)).map_err(|e| format!("feeding table {name}: {e}"))?;
        }
        db.set_feed_limits(kept(orders.seed), None).map_err(|e| format!("the feed's limits: {e}"))?;
        let mut there = [0; WRITERS];
        for (w, n) in there.iter_mut().enumerate() {
            *n = newest(&db, w)?;
            oracle.restart(w, *n);
        }
        if let Some(before) = counts.filter(|c| *c != there) {
            return Err(format!("closed with commits {before:?}, opened with {there:?}"));
        }
        oracle.opened().fetch_add(1, Ordering::SeqCst);
        let child = Child { db, oracle: &oracle, orders, stop: AtomicBool::new(false) };
        child.write_for_a_while(&mut rng, there)?;
        if orders.quiet_after_ms.is_some() {
            oracle.quiet().store(1, Ordering::SeqCst);
            // Many short sleeps, not one long one: the clock goes on while all processes are stopped.
            (0..QUIET_TICKS).for_each(|_| std::thread::sleep(QUIET_TICK));
            return Err("nobody has killed the quiet child".into());
        }
        counts = Some(oracle.acknowledged());
        child.db.close().map_err(|e| format!("closing: {e}"))?;
    }
    Ok(())
}

/// The indexes that a table has at the beginning of a life.
fn indexes(table: &Table) -> Result<(), Error> {
    match table.drop_index(REFUSED.0) {
        Ok(()) | Err(Error::NoSuchIndex { .. }) => {}
        Err(e) => return Err(e),
    }
    table.create_index(KEPT.0, KEPT.1).map(|_| ())
}

/// The newest commit of a writer, by its two counters, which must agree.
pub fn newest(db: &Db, writer: usize) -> Result<u64, String> {
    let mut found = [0; TABLES.len()];
    for (n, (name, _)) in found.iter_mut().zip(TABLES) {
        // After a kill before the tables were made there are none.
        let Ok(table) = db.open_table(name) else { continue };
        let value = table.get(&counter(writer)).map_err(|e| format!("reading a counter: {e}"))?;
        *n = match value.map(<[u8; 8]>::try_from) {
            None => 0,
            Some(Ok(b)) => u64::from_le_bytes(b),
            Some(Err(v)) => return Err(format!("a counter has {} bytes", v.len())),
        };
    }
    if found[0] != found[1] {
        return Err(format!("a commit of writer {writer} is torn between the tables: {found:?}"));
    }
    Ok(found[0])
}

/// One opening of the database.
struct Child<'a> {
    db: Db,
    oracle: &'a Oracle,
    orders: &'a Orders,
    stop: AtomicBool,
}

impl Child<'_> {
    fn write_for_a_while(&self, rng: &mut Rng, from: [u64; WRITERS]) -> Result<(), String> {
        let writers = 1 + usize::try_from(rng.below(WRITERS as u64)).unwrap_or(0);
        let for_ms = self.orders.quiet_after_ms.unwrap_or(20 + rng.below(400));
        let mut keeper = rng.clone();
        std::thread::scope(|s| {
            let mut threads = Vec::new();
            for (w, &n) in from.iter().enumerate().take(writers) {
                threads.push(s.spawn(move || self.write(w, n)));
            }
            threads.push(s.spawn(move || self.keep(&mut keeper)));
            std::thread::sleep(Duration::from_millis(for_ms));
            self.stop.store(true, Ordering::SeqCst);
            let mut ended =
                threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err("a thread panicked".into())));
            ended.find(Result::is_err).unwrap_or(Ok(()))
        })
    }

    fn stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Makes one commit after another.
    fn write(&self, writer: usize, from: u64) -> Result<(), String> {
        let open = |(name, _)| self.db.open_table(name).map_err(|e| format!("table {name}: {e}"));
        let tables = [open(TABLES[0])?, open(TABLES[1])?];
        for i in from + 1.. {
            if self.stopping() {
                break;
            }
            let commit = commit(self.orders.seed, writer, i);
            self.oracle.begin(writer, i);
            // A transfer may conflict with another one. Then it is tried again.
            loop {
                match self.commit(&tables, writer, i, &commit) {
                    Ok(()) => break,
                    // Others write the same accounts, and under snapshot isolation the same keys.
                    // An index that cannot be may be under way.
                    Err(Error::Conflict { .. }) => {}
                    Err(Error::NotUnique { index, .. }) if index == REFUSED.0 => {}
                    Err(e) => return Err(format!("commit {i} of writer {writer}: {e}")),
                }
            }
            self.oracle.acknowledge(writer, i, commit.durable);
        }
        Ok(())
    }

    fn commit(
        &self,
        tables: &[Table; 2],
        writer: usize,
        i: u64,
        commit: &super::plan::Commit,
    ) -> Result<(), Error> {
        let durability = if commit.durable { Durability::Sync } else { Durability::Eventual };
        let isolation = if i.is_multiple_of(2) { Isolation::Serializable } else { Isolation::Snapshot };
        let mut txn = self.db.write_with(WriteOptions { durability: Some(durability), isolation });
        if let Some((from, to, amount)) = commit.transfer {
            txn.increment(&tables[0], &account(from), -amount)?;
            txn.increment(&tables[0], &account(to), amount)?;
        }
        for write in &commit.writes {
            match *write {
                Write::Put(t, slot, stamp) => txn.put(&tables[t], &key(writer, slot), &bytes(stamp))?,
                Write::Remove(t, slot) => txn.remove(&tables[t], &key(writer, slot))?,
                Write::Range(from, to) => {
                    let (from, to) = (key(writer, from), key(writer, to));
                    txn.remove_range(&tables[0], from..to)?;
                }
            }
        }
        for table in tables {
            txn.put(table, &counter(writer), &i.to_le_bytes())?;
        }
        txn.commit()
    }

    /// Makes everything durable in several ways, and tells the oracle.
    fn keep(&self, rng: &mut Rng) -> Result<(), String> {
        while !self.stopping() {
            std::thread::sleep(Duration::from_micros(rng.below(12_000)));
            let then = self.oracle.acknowledged();
            let done = match rng.below(15) {
                0 => self.db.shrink(|_| {}).map(|_| ()),
                1 => self.db.compact(),
                2..=3 => self.db.flush(),
                4..=5 => self.next_step(),
                6..=7 => self.index_step(rng),
                _ => self.db.sync(),
            };
            done.map_err(|e| format!("the keeper: {e}"))?;
            self.oracle.synced(then);
        }
        Ok(())
    }

    /// Makes an index, or drops it.
    fn index_step(&self, rng: &mut Rng) -> Result<(), Error> {
        let table = self.db.open_table(rng.pick(&TABLES).0)?;
        if rng.one_in(4) {
            return match table.create_index(REFUSED.0, REFUSED.1) {
                Ok(_) => table.drop_index(REFUSED.0),
                Err(Error::NotUnique { .. }) => Ok(()),
                Err(e) => Err(e),
            };
        }
        match table.drop_index(PASSING.0) {
            Err(Error::NoSuchIndex { .. }) => table.create_index(PASSING.0, PASSING.1).map(|_| ()),
            done => done,
        }
    }

    /// Makes a table, or drops the newest one.
    fn next_step(&self) -> Result<(), Error> {
        let n = self.oracle.steps_done().load(Ordering::SeqCst) + 1;
        let (name, makes) = step(n);
        self.oracle.steps_begun().store(n, Ordering::SeqCst);
        if makes {
            self.db.create_table(&name, TABLES[usize::from(n % 4 == 1)].1)?;
        } else {
            self.db.drop_table(&name)?;
        }
        self.oracle.steps_done().store(n, Ordering::SeqCst);
        Ok(())
    }
}
