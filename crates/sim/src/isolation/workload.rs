//! A history made on the real engine: eight threads append to lists and read them, in transactions of several
//! kinds. Another thread flushes and merges meanwhile.
//!
//! A list is a value with elements of four bytes. Lists with even names are in an ordered table, where
//! transactions also read ranges of them. The others are in a hash table. A window over the names moves on,
//! so that only a few lists are contended at a time and none grows without end.

use super::history::{Element, History, Key, Op, Txn};
use crate::rng::Rng;
use azekura::{Db, Durability, Error, Isolation, ReadTxn, Table, TableKind, WriteOptions, WriteTxn};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Threads of transactions.
pub const THREADS: usize = 8;
/// How many lists are in use at a time.
const WINDOW: u64 = 6;
/// After this many transactions the window moves by one.
const STRIDE: u64 = 60;

/// Counts beside the history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Transactions that were committed.
    pub committed: u64,
    /// Transactions that were refused because of others.
    pub conflicts: u64,
}

struct Shared<'a> {
    db: &'a Db,
    tables: [Table; 2],
    isolation: Isolation,
    clock: AtomicU64,
    next: AtomicU32,
    done: AtomicU64,
}

/// The table of a list.
fn table_of(key: Key) -> usize {
    usize::from(key % 2 == 1)
}

fn name(key: Key) -> Vec<u8> {
    match table_of(key) {
        0 => u64::from(key).to_be_bytes().to_vec(),
        _ => format!("the list with the number {key}").into_bytes(),
    }
}

fn list_of(value: Option<&[u8]>) -> Vec<Element> {
    let words = value.unwrap_or_default().as_chunks::<4>().0;
    words.iter().map(|&b| Element::from_le_bytes(b)).collect()
}

/// Runs about `txns` transactions and returns their history.
pub fn make(db: &Db, isolation: Isolation, txns: u64, rng: &mut Rng) -> Result<(History, Counts), Error> {
    let tables = [db.table("ordered", TableKind::Ordered)?, db.table("hash", TableKind::Hash)?];
    let (clock, next, done) = (AtomicU64::new(1), AtomicU32::new(1), AtomicU64::new(0));
    let shared = &Shared { db, tables, isolation, clock, next, done };
    let stop = AtomicBool::new(false);
    let seeds: Vec<u64> = (0..THREADS).map(|_| rng.number()).collect();
    let mut keeper = Rng(rng.number());
    let (mut history, mut counts) = (History::default(), Counts::default());
    std::thread::scope(|s| {
        let threads: Vec<_> =
            seeds.iter().map(|&seed| s.spawn(move || shared.run(Rng(seed), txns))).collect();
        let keeping = s.spawn(|| keep(db, &mut keeper, &stop));
        let mut outcome = Ok(());
        for thread in threads {
            match thread.join().unwrap_or_else(|_| Err(panicked())) {
                Ok((txns, conflicts)) => {
                    history.txns.extend(txns);
                    counts.conflicts += conflicts;
                }
                Err(e) => outcome = Err(e),
            }
        }
        stop.store(true, Ordering::Relaxed);
        outcome.and(keeping.join().unwrap_or_else(|_| Err(panicked())))
    })?;
    counts.committed = history.txns.iter().filter(|t| t.committed).count() as u64;
    history.txns.push(shared.read_all()?);
    Ok((history, counts))
}

fn panicked() -> Error {
    Error::Invalid { detail: "a thread panicked".into() }
}

/// Flushes and merges, so that lists are read from all places where they may be.
fn keep(db: &Db, rng: &mut Rng, stop: &AtomicBool) -> Result<(), Error> {
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(std::time::Duration::from_micros(rng.below(6000)));
        match rng.below(6) {
            0 => db.compact()?,
            1 => db.shrink(|_| {}).map(|_| ())?,
            2 => db.sync()?,
            _ => db.flush()?,
        }
    }
    Ok(())
}

impl Shared<'_> {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn run(&self, mut rng: Rng, txns: u64) -> Result<(Vec<Txn>, u64), Error> {
        let (mut out, mut conflicts) = (Vec::new(), 0);
        while self.done.fetch_add(1, Ordering::Relaxed) < txns {
            let begun = self.now();
            let mut ops = Vec::new();
            let result = match rng.below(8) {
                0..=1 => self.read_only(&mut rng, &mut ops),
                2 => self.single(&mut rng, &mut ops),
                _ => self.read_write(&mut rng, &mut ops),
            };
            let committed = match result {
                Ok(committed) => committed,
                Err(Error::Conflict { .. }) => {
                    conflicts += 1;
                    false
                }
                Err(e) => return Err(e),
            };
            out.push(Txn { begun, ended: self.now(), ops, committed });
        }
        Ok((out, conflicts))
    }

    fn key(&self, rng: &mut Rng) -> Key {
        let first = self.done.load(Ordering::Relaxed) / STRIDE;
        (first + rng.below(WINDOW)) as Key
    }

    fn element(&self) -> Element {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// One operation, as a transaction that the engine makes.
    fn single(&self, rng: &mut Rng, ops: &mut Vec<Op>) -> Result<bool, Error> {
        let key = self.key(rng);
        let table = &self.tables[table_of(key)];
        if rng.one_in(2) {
            ops.push(Op::Read(key, list_of(table.get(&name(key))?.as_deref())));
        } else {
            let element = self.element();
            ops.push(Op::Append(key, element));
            table.append(&name(key), &element.to_le_bytes())?;
        }
        Ok(true)
    }

    fn read_only(&self, rng: &mut Rng, ops: &mut Vec<Op>) -> Result<bool, Error> {
        let txn = self.db.read();
        for _ in 0..1 + rng.below(4) {
            pause(rng);
            match rng.below(3) {
                0 => self.scan(&mut Reader::Read(&txn), rng, ops)?,
                1 => {
                    let keys: Vec<Key> = (0..3).map(|_| self.key(rng) & !1).collect();
                    let names: Vec<Vec<u8>> = keys.iter().map(|&k| name(k)).collect();
                    let values = txn.get_many(&self.tables[0], &names)?;
                    ops.extend(keys.into_iter().zip(values).map(|(k, v)| Op::Read(k, list_of(v.as_deref()))));
                }
                _ => {
                    let key = self.key(rng);
                    let value = txn.get(&self.tables[table_of(key)], &name(key))?;
                    ops.push(Op::Read(key, list_of(value.as_deref())));
                }
            }
        }
        Ok(true)
    }

    /// Returns whether the transaction was committed. Sometimes it is rolled back, wholly or in part.
    fn read_write(&self, rng: &mut Rng, ops: &mut Vec<Op>) -> Result<bool, Error> {
        let durability = if rng.one_in(30) { Durability::Sync } else { Durability::Eventual };
        let options = WriteOptions { durability: Some(durability), isolation: self.isolation };
        let mut txn = self.db.write_with(options);
        for _ in 0..1 + rng.below(4) {
            pause(rng);
            let key = self.key(rng);
            match rng.below(10) {
                0..=3 => self.append(&mut txn, key, rng, ops)?,
                4 => {
                    // What is undone must leave no trace. It is not in the history either.
                    let place = txn.savepoint();
                    self.append(&mut txn, key, rng, &mut Vec::new())?;
                    txn.rollback_to(&place)?;
                }
                5..=6 => self.scan(&mut Reader::Write(&mut txn), rng, ops)?,
                _ => {
                    let value = txn.get(&self.tables[table_of(key)], &name(key))?;
                    ops.push(Op::Read(key, list_of(value.as_deref())));
                }
            }
        }
        pause(rng);
        if rng.one_in(20) {
            txn.rollback();
            return Ok(false);
        }
        txn.commit()?;
        Ok(true)
    }

    fn append(&self, txn: &mut WriteTxn, key: Key, rng: &mut Rng, ops: &mut Vec<Op>) -> Result<(), Error> {
        let element = self.element();
        let table = &self.tables[table_of(key)];
        if rng.one_in(2) {
            // Noted first: a failed append counts as tried.
            ops.push(Op::Append(key, element));
            return txn.append(table, &name(key), &element.to_le_bytes());
        }
        let mut value = txn.get(table, &name(key))?.unwrap_or_default();
        ops.push(Op::Read(key, list_of(Some(&value))));
        pause(rng);
        value.extend_from_slice(&element.to_le_bytes());
        ops.push(Op::Append(key, element));
        txn.put(table, &name(key), &value)
    }

    /// Reads a range of the ordered table. Lists that it does not find there are empty.
    fn scan(&self, reader: &mut Reader<'_>, rng: &mut Rng, ops: &mut Vec<Op>) -> Result<(), Error> {
        let first = self.key(rng) & !1;
        let end = first + 2 * (1 + rng.below(4) as Key);
        let (from, to) = (name(first), name(end));
        let mut cursor = match reader {
            Reader::Read(txn) => txn.range(&self.tables[0], &from..&to)?,
            Reader::Write(txn) => txn.range(&self.tables[0], &from..&to)?,
        };
        let mut absent = first;
        while let Some((key, value)) = cursor.next()? {
            let key = key.try_into().map_or(0, u64::from_be_bytes) as Key;
            while absent < key {
                ops.push(Op::Read(absent, Vec::new()));
                absent += 2;
            }
            ops.push(Op::Read(key, list_of(Some(value.bytes()?))));
            absent = key + 2;
        }
        while absent < end {
            ops.push(Op::Read(absent, Vec::new()));
            absent += 2;
        }
        Ok(())
    }

    /// The last transaction: reads every list that may exist.
    fn read_all(&self) -> Result<Txn, Error> {
        let begun = self.now();
        let txn = self.db.read();
        let last = (self.done.load(Ordering::Relaxed) / STRIDE + WINDOW) as Key;
        let mut ops = Vec::new();
        for key in 0..=last {
            let value = txn.get(&self.tables[table_of(key)], &name(key))?;
            ops.push(Op::Read(key, list_of(value.as_deref())));
        }
        Ok(Txn { begun, ended: self.now(), ops, committed: true })
    }
}

/// Either kind of transaction, for what both can do.
enum Reader<'a> {
    Read(&'a ReadTxn),
    Write(&'a mut WriteTxn),
}

/// Lets other threads run in the middle of a transaction. On few processors transactions would seldom overlap
/// otherwise.
fn pause(rng: &mut Rng) {
    match rng.below(8) {
        0..=2 => std::thread::yield_now(),
        3 => std::thread::sleep(std::time::Duration::from_micros(rng.below(100))),
        _ => {}
    }
}
