//! Operations, and a database's answers to them under some setting.

use crate::disk::Disk;
use crate::judge::{PATH, Setting};
use crate::rng::Rng;
use azekura::{Cursor, Db, Durability, Error, Merge, Options, ReadTxn, Table, TableKind};

/// What is united with sets.
const ELEMENT: Merge<'static> = Merge::Union { width: 4, elements: b"elem" };

/// How a list of operations is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    pub(super) setting: Setting,
    pub(super) memory_bytes: u64,
    pub(super) durability: Durability,
    /// The kinds of the two tables. The first one is always ordered.
    pub(super) kinds: [TableKind; 2],
    /// The database is closed and opened again once per this many operations. 0: never.
    pub(super) reopen_odds: u64,
    /// The database is flushed, settled or compacted once per this many operations. 0: never.
    pub(super) tidy_odds: u64,
}

/// One operation. Tables are 0 and 1. Keys and values are small numbers from which bytes are made.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Put(usize, u64, u64),
    PutMany(usize, u64, u64),
    Remove(usize, u64),
    Add(usize, u64, u64),
    Replace(usize, u64, u64),
    Append(usize, u64, u64),
    Increment(usize, u64),
    Merge(usize, u64),
    Swap(usize, u64, u64, u64),
    Take(usize, u64),
    Clear(usize),
    RemoveRange(u64, u64),
    Get(usize, u64),
    GetMany(usize, Vec<u64>),
    Count(usize),
    Scan(usize),
    Range(u64, u64, bool),
    Wander(u64, u64),
    /// A transaction of these operations. The part after a savepoint is undone, or all of it.
    Transaction(Vec<Operation>, usize, bool),
    Snapshot,
    AskSnapshot(usize, u64),
    DropSnapshot,
}

const KEYS: u64 = 400;

/// A list of operations.
pub(super) fn operations(rng: &mut Rng) -> Vec<Operation> {
    let n = 100 + rng.below(500);
    (0..n).map(|_| operation(rng, true)).collect()
}

fn operation(rng: &mut Rng, outside: bool) -> Operation {
    let (table, key, value) = (rng.below(2) as usize, rng.below(KEYS), rng.number());
    match rng.below(if outside { 36 } else { 18 }) {
        0..=4 => Operation::Put(table, key, value),
        5 => Operation::Remove(table, key),
        6 => Operation::Add(table, key, value),
        7 => Operation::Replace(table, key, value),
        8 => Operation::Append(table, key, value),
        9 => Operation::Increment(table, key),
        10 => Operation::Swap(table, key, rng.below(3), value),
        11 => Operation::Take(table, key),
        12 if rng.one_in(6) => Operation::Clear(table),
        13 => Operation::RemoveRange(key, rng.below(40)),
        12 | 14 | 15 => Operation::Get(table, key),
        16..=17 => Operation::Merge(table, key),
        18..=19 => Operation::PutMany(table, value, rng.below(150)),
        20..=22 => Operation::Get(table, key),
        23 => Operation::GetMany(table, (0..rng.below(30)).map(|_| rng.below(KEYS)).collect()),
        24 => Operation::Count(table),
        25 => Operation::Scan(table),
        26 => Operation::Range(key, rng.below(100), rng.one_in(2)),
        27 => Operation::Wander(key, rng.number()),
        28..=30 => {
            let inner: Vec<Operation> = (0..1 + rng.below(12)).map(|_| operation(rng, false)).collect();
            let savepoint = rng.below(2 * inner.len() as u64) as usize;
            Operation::Transaction(inner, savepoint, rng.one_in(5))
        }
        31 => Operation::Snapshot,
        32..=34 => Operation::AskSnapshot(table, key),
        _ => Operation::DropSnapshot,
    }
}

/// The bytes of a key: numbers of fixed width, short and long text.
fn key_of(n: u64) -> Vec<u8> {
    match n % 3 {
        0 => (n << 16).to_be_bytes().to_vec(),
        1 => format!("key-{n:04}").into_bytes(),
        _ => format!("a-much-longer-key-with-a-common-prefix-{n:06}").into_bytes(),
    }
}

fn value_of(n: u64) -> Vec<u8> {
    let mut rng = Rng(n);
    let len = match n % 20 {
        0 => 1024 + rng.below(9000),
        1..=8 => 8,
        9 => 0,
        _ => rng.below(400),
    };
    rng.bytes(len as usize)
}

/// A short form of an answer: long bytes are given by their hash.
fn shown(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "none".into(),
        Some(b) if b.len() <= 12 => format!("{b:02x?}"),
        Some(b) => {
            let hash =
                b.iter().fold(b.len() as u64, |h, &x| (h ^ u64::from(x)).wrapping_mul(0x100_0000_01b3));
            format!("{} bytes {hash:016x}", b.len())
        }
    }
}

type Answer = Result<String, Error>;

/// A handle, and what is held with it.
struct Session {
    db: Db,
    tables: [Table; 2],
    snapshot: Option<ReadTxn>,
}

impl Variant {
    fn open(&self, disk: &Disk) -> Result<Session, Error> {
        let options: Options =
            self.setting.options().memory_bytes(self.memory_bytes).durability(self.durability);
        let db = Db::open_on(disk, PATH, options)?;
        let tables = [db.table("first", self.kinds[0])?, db.table("second", self.kinds[1])?];
        Ok(Session { db, tables, snapshot: None })
    }
}

/// Runs the operations. Returns every answer.
pub(super) fn answers(
    variant: &Variant,
    operations: &[Operation],
    disk: &Disk,
) -> Result<Vec<String>, String> {
    let text = |e: Error| e.to_string();
    let mut rng = Rng(operations.len() as u64);
    let mut session = variant.open(disk).map_err(text)?;
    let mut out = Vec::with_capacity(operations.len() + 2);
    for (i, operation) in operations.iter().enumerate() {
        let answer =
            session.carry_out(operation).map_err(|e| format!("operation {i}, {operation:?}: {e}"))?;
        out.push(format!("{operation:?} -> {answer}"));
        if variant.tidy_odds > 0 && rng.one_in(variant.tidy_odds) {
            match rng.below(3) {
                0 => session.db.flush(),
                1 => session.db.compact(),
                _ => session.db.shrink(|_| {}).map(drop),
            }
            .map_err(text)?;
        }
        // A snapshot does not outlive its handle, so the file stays open while there is one.
        if variant.reopen_odds > 0 && rng.one_in(variant.reopen_odds) && session.snapshot.is_none() {
            let Session { db, tables, .. } = session;
            drop(tables);
            db.close().map_err(text)?;
            session = variant.open(disk).map_err(text)?;
        }
    }
    for table in 0..2 {
        out.push(session.carry_out(&Operation::Scan(table)).map_err(text)?);
    }
    let wrong = crate::script::problems(&session.db);
    if wrong.is_empty() { Ok(out) } else { Err(format!("check says {wrong:?}")) }
}

/// All records of a cursor, in key order whatever the table's order is.
fn all(cursor: Cursor) -> Answer {
    let mut records = cursor.owned().collect::<Result<Vec<_>, _>>()?;
    records.sort();
    let flat: Vec<u8> = records.iter().flat_map(|(k, v)| [k.as_slice(), b"=", v, b";"].concat()).collect();
    Ok(format!("{} records, {}", records.len(), shown(Some(&flat))))
}

impl Session {
    fn carry_out(&mut self, operation: &Operation) -> Answer {
        match operation {
            Operation::PutMany(t, seed, n) => {
                let record = |i| (key_of((seed + i * 7) % KEYS), value_of(seed ^ i));
                self.tables[*t].put_many((0..*n).map(record))?;
                Ok("ok".into())
            }
            Operation::Get(t, k) => {
                let found = self.tables[*t].get(&key_of(*k))?;
                if found.is_some() != self.tables[*t].contains(&key_of(*k))? {
                    return Ok("get and contains differ".into());
                }
                Ok(shown(found.as_deref()))
            }
            Operation::GetMany(t, keys) => {
                let keys: Vec<Vec<u8>> = keys.iter().map(|&k| key_of(k)).collect();
                let found = self.tables[*t].get_many(&keys)?;
                Ok(found.iter().map(|v| shown(v.as_deref())).collect::<Vec<_>>().join(", "))
            }
            Operation::Count(t) => Ok(self.tables[*t].count()?.to_string()),
            Operation::Scan(t) => all(self.tables[*t].cursor()?),
            Operation::Range(from, length, backwards) => self.range(*from, *length, *backwards),
            Operation::Wander(from, way) => self.wander(*from, *way),
            Operation::Transaction(inner, savepoint, back) => self.transaction(inner, *savepoint, *back),
            Operation::Snapshot => {
                self.snapshot = Some(self.db.read());
                Ok("ok".into())
            }
            Operation::AskSnapshot(t, k) => {
                let Some(snapshot) = &self.snapshot else { return Ok("no snapshot".into()) };
                let found = snapshot.get(&self.tables[*t], &key_of(*k))?;
                let count = snapshot.count(&self.tables[*t])?;
                Ok(format!(
                    "{} of {count}, {}",
                    shown(found.as_deref()),
                    all(snapshot.cursor(&self.tables[*t])?)?
                ))
            }
            Operation::DropSnapshot => {
                self.snapshot = None;
                Ok("ok".into())
            }
            one => self.alone(one),
        }
    }

    /// Runs a single operation as a transaction of its own, through the table's handle.
    fn alone(&self, operation: &Operation) -> Answer {
        let said = |done: bool| Ok(done.to_string());
        match operation {
            Operation::Put(t, k, v) => self.tables[*t].put(&key_of(*k), &value_of(*v)).map(|()| "ok".into()),
            Operation::Remove(t, k) => self.tables[*t].remove(&key_of(*k)).map(|()| "ok".into()),
            Operation::Add(t, k, v) => said(self.tables[*t].add(&key_of(*k), &value_of(*v))?),
            Operation::Replace(t, k, v) => said(self.tables[*t].replace(&key_of(*k), &value_of(*v))?),
            Operation::Append(t, k, v) => {
                self.tables[*t].append(&key_of(*k), &value_of(*v)).map(|()| "ok".into())
            }
            Operation::Swap(t, k, old, v) => {
                let there = self.tables[*t].get(&key_of(*k))?;
                let expected = if *old == 0 { None } else { there.as_deref() };
                said(self.tables[*t].compare_and_swap(&key_of(*k), expected, Some(&value_of(*v)))?)
            }
            Operation::Take(t, k) => Ok(shown(self.tables[*t].take(&key_of(*k))?.as_deref())),
            Operation::Clear(t) => self.tables[*t].clear().map(|()| "ok".into()),
            Operation::RemoveRange(from, length) => {
                let (a, b) = bounds(*from, *length);
                self.tables[0].remove_range(&a..&b).map(|()| "ok".into())
            }
            Operation::Increment(t, k) => match self.tables[*t].increment(&key_of(*k), 3) {
                Ok(n) => Ok(n.to_string()),
                Err(Error::WrongType { .. }) => Ok("not a number".into()),
                Err(e) => Err(e),
            },
            Operation::Merge(t, k) => {
                let (t, key) = (&self.tables[*t], key_of(*k));
                match (t.get_with(&key, |value| value.len())?, k % 3) {
                    (_, 0) => t.merge(&key, Merge::Append(&key)).map(|()| "ok".into()),
                    (None | Some(8), 1) => t.merge(&key, Merge::AddI64(3)).map(|()| "ok".into()),
                    (None | Some(8), _) => t.merge(&key, ELEMENT).map(|()| "ok".into()),
                    (Some(_), _) => Ok("not a number".into()),
                }
            }
            other => Ok(format!("{other:?} is none of these")),
        }
    }

    fn transaction(&self, inner: &[Operation], savepoint: usize, back: bool) -> Answer {
        let mut txn = self.db.write();
        let mut out = Vec::new();
        let mut mark = None;
        for (i, operation) in inner.iter().enumerate() {
            if i == savepoint {
                mark = Some(txn.savepoint());
            }
            let t = &self.tables;
            out.push(match operation {
                Operation::Put(n, k, v) => {
                    txn.put(&t[*n], &key_of(*k), &value_of(*v)).map(|()| "ok".into())?
                }
                Operation::Remove(n, k) => txn.remove(&t[*n], &key_of(*k)).map(|()| "ok".into())?,
                Operation::Add(n, k, v) => txn.add(&t[*n], &key_of(*k), &value_of(*v))?.to_string(),
                Operation::Replace(n, k, v) => txn.replace(&t[*n], &key_of(*k), &value_of(*v))?.to_string(),
                Operation::Append(n, k, v) => {
                    txn.append(&t[*n], &key_of(*k), &value_of(*v)).map(|()| "ok".into())?
                }
                Operation::Take(n, k) => shown(txn.take(&t[*n], &key_of(*k))?.as_deref()),
                Operation::Clear(n) => txn.clear(&t[*n]).map(|()| "ok".into())?,
                Operation::RemoveRange(from, length) => {
                    let (a, b) = bounds(*from, *length);
                    txn.remove_range(&t[0], &a..&b).map(|()| "ok".into())?
                }
                Operation::Get(n, k) => {
                    let found = shown(txn.get(&t[*n], &key_of(*k))?.as_deref());
                    format!("{found} of {}, {}", txn.count(&t[*n])?, all(txn.cursor(&t[*n])?)?)
                }
                Operation::Merge(n, k) => {
                    let (t, key) = (&t[*n], key_of(*k));
                    match (txn.get_with(t, &key, |value| value.len())?, k % 3) {
                        (_, 0) => txn.merge(t, &key, Merge::Append(&key)).map(|()| "ok".into())?,
                        (None | Some(8), 1) => txn.merge(t, &key, Merge::AddI64(3)).map(|()| "ok".into())?,
                        (None | Some(8), _) => txn.merge(t, &key, ELEMENT).map(|()| "ok".into())?,
                        (Some(_), _) => "not a number".into(),
                    }
                }
                _ => "left out".into(),
            });
        }
        if let Some(mark) = mark {
            txn.rollback_to(&mark)?;
        }
        if back {
            txn.rollback();
        } else {
            txn.commit()?;
        }
        Ok(out.join("; "))
    }

    fn range(&self, from: u64, length: u64, backwards: bool) -> Answer {
        let (a, b) = bounds(from, length);
        let mut cursor = self.tables[0].range(&a..=&b)?;
        let mut out = Vec::new();
        if backwards {
            cursor.seek_last();
        }
        loop {
            let record = if backwards { cursor.prev()? } else { cursor.next()? };
            let Some((key, value)) = record else { break };
            out.push(format!("{}={}", String::from_utf8_lossy(key), shown(Some(value.bytes()?))));
        }
        Ok(out.join(", "))
    }

    /// Moves a cursor to and fro.
    fn wander(&self, from: u64, way: u64) -> Answer {
        let mut cursor = self.tables[0].cursor()?;
        cursor.seek(&key_of(from))?;
        let mut out = Vec::new();
        for step in 0..24 {
            let record = if way >> step & 3 == 0 { cursor.prev()? } else { cursor.next()? };
            out.push(match record {
                Some((k, v)) => format!("{}={}", String::from_utf8_lossy(k), shown(Some(v.bytes()?))),
                None => "end".into(),
            });
        }
        Ok(out.join(", "))
    }
}

/// Two keys, in order.
fn bounds(from: u64, length: u64) -> (Vec<u8>, Vec<u8>) {
    let (a, b) = (key_of(from), key_of((from + length) % KEYS));
    (a.clone().min(b.clone()), a.max(b))
}
