//! The load: several threads put, get, scan and delete in ordered and hash tables, one record at a time and
//! in batches, durably and eventually, with large values. The number of live records stays about the same, so
//! memory and file must settle.

use super::gauges::{Machine, Taken, Waits};
use crate::rng::Rng;
use azekura::{Db, Durability, Table, TableKind, WriteOptions};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Keys of each table. A put replaces a record or brings one back; a delete removes one.
const KEYS: u64 = 200_000;
/// Records of a batch.
const BATCH: u64 = 2_000;

/// An operation that took long.
#[derive(Clone, Debug)]
pub struct Slow {
    /// What it was.
    pub what: &'static str,
    /// How long it took.
    pub took: Duration,
    /// What the machine took of that.
    pub taken: Taken,
    /// What each thread was found doing meanwhile.
    pub seen: String,
}

impl Slow {
    /// The part that the machine does not excuse.
    pub fn left(&self) -> Duration {
        self.took.saturating_sub(self.taken.own + self.taken.other)
    }
}

/// What the threads of the load share.
pub struct Load {
    db: Db,
    tables: [Table; 2],
    /// Operations done.
    pub done: AtomicU64,
    /// The most bytes of live keys and values: every key with its longest value.
    pub raw_bytes_max: u64,
    machine: Machine,
    slowest: Mutex<Vec<Slow>>,
    /// Ends the threads.
    pub stop: AtomicBool,
}

/// Slower operations are recorded.
const SLOW: Duration = Duration::from_millis(50);
/// A thread rests after this many operations of all threads. So the load leaves the processors some room, as
/// a service does, and the queue in front of them is not measured.
const PACE_EVERY: u64 = 16;
const PACE: Duration = Duration::from_millis(1);
/// One key in this many has a large value.
const LARGE_EVERY: u64 = 500;
const LARGE_BYTES: usize = 20_000;
const SMALL_BYTES: usize = 100;

impl Load {
    /// Makes the tables and fills them.
    pub fn new(db: Db) -> azekura::Result<Load> {
        let tables = [db.table("ordered", TableKind::Ordered)?, db.table("hash", TableKind::Hash)?];
        let large = KEYS.div_ceil(LARGE_EVERY) * 2 * LARGE_BYTES as u64;
        let raw_bytes_max = 2 * KEYS * (8 + SMALL_BYTES as u64) + large;
        let load = Load {
            db,
            tables,
            done: AtomicU64::new(0),
            raw_bytes_max,
            machine: Machine::default(),
            slowest: Mutex::default(),
            stop: AtomicBool::new(false),
        };
        for table in &load.tables {
            for first in (0..KEYS).step_by(20_000) {
                let mut txn = load.db.write_with(eventual());
                for i in first..KEYS.min(first + 20_000) {
                    txn.put(table, &i.to_be_bytes(), &value(i, 0))?;
                }
                txn.commit()?;
            }
        }
        load.db.sync()?;
        Ok(load)
    }

    /// The gauges of the machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The slow operations, by the part that the machine does not excuse, longest first.
    pub fn slowest(&self) -> Vec<Slow> {
        let mut slow = self.slowest.lock().unwrap_or_else(|e| e.into_inner()).clone();
        slow.sort_by_key(|s| std::cmp::Reverse(s.left()));
        slow
    }

    /// Works until `stop` is set.
    pub fn run(&self, mut rng: Rng) -> Result<(), String> {
        let waits = Waits::of_this_thread().map_err(|e| format!("the gauge of a thread: {e}"))?;
        while !self.stop.load(Ordering::Relaxed) {
            let (before, began) = (waits.now(), Instant::now());
            let (what, result) = self.once(&mut rng);
            result.map_err(|e| format!("{what}: {e}"))?;
            let (ended, own) = (Instant::now(), waits.now().saturating_sub(before));
            if self.done.fetch_add(1, Ordering::Relaxed).is_multiple_of(PACE_EVERY) {
                std::thread::sleep(PACE);
            }
            if ended - began > SLOW {
                // The gauges note events a little later.
                std::thread::sleep(Duration::from_millis(50));
                let taken = self.machine.within(began, ended, &waits, own);
                let seen = self.machine.seen(began, ended);
                let slow = Slow { what, took: ended - began, taken, seen };
                self.slowest.lock().unwrap_or_else(|e| e.into_inner()).push(slow);
            }
        }
        Ok(())
    }

    fn once(&self, rng: &mut Rng) -> (&'static str, Result<(), String>) {
        let table = rng.pick(&self.tables);
        let key = rng.below(KEYS);
        let text = |e: azekura::Error| e.to_string();
        match rng.below(1000) {
            0..=1 => ("a batch", self.batch(table, rng).map_err(text)),
            2..=3 => ("a scan", self.scan(key)),
            4..=30 => ("a durable put", self.put(table, key, rng, WriteOptions::default()).map_err(text)),
            31..=400 => ("an eventual put", self.put(table, key, rng, eventual()).map_err(text)),
            401..=440 => ("a delete", self.delete(table, key).map_err(text)),
            _ => ("a get", self.get(table, key)),
        }
    }

    fn put(&self, table: &Table, key: u64, rng: &mut Rng, options: WriteOptions) -> azekura::Result<()> {
        let mut txn = self.db.write_with(options);
        txn.put(table, &key.to_be_bytes(), &value(key, rng.number()))?;
        txn.commit()
    }

    fn delete(&self, table: &Table, key: u64) -> azekura::Result<()> {
        let mut txn = self.db.write_with(eventual());
        txn.remove(table, &key.to_be_bytes())?;
        txn.commit()
    }

    fn batch(&self, table: &Table, rng: &mut Rng) -> azekura::Result<()> {
        let mut txn = self.db.write_with(eventual());
        for _ in 0..BATCH {
            let key = rng.below(KEYS);
            txn.put(table, &key.to_be_bytes(), &value(key, rng.number()))?;
        }
        txn.commit()
    }

    fn get(&self, table: &Table, key: u64) -> Result<(), String> {
        match table.get_with(&key.to_be_bytes(), |v| is_value(key, v)) {
            Ok(None | Some(true)) => Ok(()),
            Ok(Some(false)) => Err(format!("key {key} has a wrong value")),
            Err(e) => Err(e.to_string()),
        }
    }

    fn scan(&self, from: u64) -> Result<(), String> {
        let start = from.to_be_bytes();
        let mut cursor = self.tables[0].range(&start..).map_err(|e| e.to_string())?;
        let mut before = None;
        for _ in 0..500 {
            let Some((key, value)) = cursor.next().map_err(|e| e.to_string())? else { break };
            let key = key.try_into().map_or(u64::MAX, u64::from_be_bytes);
            let value = value.bytes().map_err(|e| e.to_string())?;
            if before.is_some_and(|b| b >= key) || !is_value(key, value) {
                return Err(format!("a scan from {from} meets key {key} after {before:?}, or a wrong value"));
            }
            before = Some(key);
        }
        Ok(())
    }
}

fn eventual() -> WriteOptions {
    WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() }
}

/// A value that identifies its key. `salt` makes each one different.
fn value(key: u64, salt: u64) -> Vec<u8> {
    let len = if key.is_multiple_of(LARGE_EVERY) { LARGE_BYTES } else { SMALL_BYTES };
    let mut out = vec![(key % 251) as u8; len];
    out[..8].copy_from_slice(&key.to_le_bytes());
    out[8..16].copy_from_slice(&salt.to_le_bytes());
    out
}

fn is_value(key: u64, value: &[u8]) -> bool {
    value.len() >= 16
        && value[..8] == key.to_le_bytes()
        && value[16..].iter().all(|&b| b == (key % 251) as u8)
}
