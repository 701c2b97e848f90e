//! Random operations beside a model: a `BTreeMap` of numbers, and of values that are none.
//!
//! `AZEKURA_SEED=n` runs that round alone, `AZEKURA_ROUNDS=n` that many, `AZEKURA_TRACE=1` prints each
//! operation.

use super::{PATH, copy_of, merged, options};
use crate::common::Rng;
use azekura::storage::MemStorage;
use azekura::{
    Cursor, Db, Durability, Error, Isolation, Merge, Options, ReadTxn, Result, Table, TableKind,
    WriteOptions, WriteTxn,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Rounds that are run if nothing is said.
const ROUNDS: u64 = 8;
const STEPS: u64 = 150;
const LONG: Duration = Duration::from_secs(1 << 30);

/// What a key has.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Bytes(Vec<u8>),
    /// A number was merged into a value that is none.
    Clash,
}

type Map = BTreeMap<Vec<u8>, Value>;

/// What is merged.
#[derive(Clone, Debug)]
enum Given {
    Number(Merge<'static>),
    Append(Vec<u8>),
    Union(usize, Vec<u8>),
}

impl Given {
    fn merge(&self) -> Merge<'_> {
        match self {
            Given::Number(merge) => *merge,
            Given::Append(bytes) => Merge::Append(bytes),
            Given::Union(width, elements) => Merge::Union { width: *width, elements },
        }
    }

    /// Mostly some bytes, and now and then more than a page has, or than waits to be folded.
    fn append(n: i64) -> Given {
        let len = match n.unsigned_abs() % 100 {
            0..=80 => n.unsigned_abs() % 20,
            81..=90 => 70,
            91..=97 => 3_000,
            98 => 9_000,
            _ if n > 400 => 1_100_000,
            _ => 20_000,
        };
        Given::Append((0..len).map(|i| (n as u64).wrapping_add(i * 7) as u8).collect())
    }

    /// Some elements of which others are likely there.
    fn union(width: usize, n: i64) -> Given {
        let len = if n % 40 == 0 { 3_000 } else { n.unsigned_abs() % 6 };
        let element = |i: u64| ((n as u64).wrapping_mul(31).wrapping_add(i * i) % 5_000).to_be_bytes();
        Given::Union(width, (0..len).flat_map(|i| element(i)[8 - width..].to_vec()).collect())
    }
}

struct Modelled {
    table: Table,
    map: Map,
    is_indexed: bool,
    /// What its operands are, mostly.
    usual: fn(i64) -> Given,
    /// Whether some records get a time to live.
    expires: bool,
}

struct Held {
    read: ReadTxn,
    maps: Vec<(Table, Map)>,
}

struct World {
    rng: Rng,
    storage: MemStorage,
    options: Options,
    is_durable: bool,
    db: Option<Db>,
    tables: Vec<Modelled>,
    held: Vec<Held>,
}

/// The ways to read that are compared.
trait Look {
    fn get(&self, t: &Table, key: &[u8]) -> Result<Option<Vec<u8>>>;
    fn get_ref(&self, t: &Table, key: &[u8]) -> Result<Option<Vec<u8>>>;
    fn many(&self, t: &Table, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>>;
    fn count(&self, t: &Table) -> Result<u64>;
    fn walk(&self, t: &Table) -> Result<Cursor>;
}

macro_rules! look {
    ($of:ty, ($self:ident, $table:ident) => $on:expr, ($($with:expr)?)) => {
        impl Look for $of {
            fn get(&$self, $table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
                $on.get($($with,)? key)
            }
            fn get_ref(&$self, $table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
                Ok($on.get_ref($($with,)? key)?.map(|value| value.to_vec()))
            }
            fn many(&$self, $table: &Table, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
                $on.get_many($($with,)? keys)
            }
            fn count(&$self, $table: &Table) -> Result<u64> {
                $on.count($($with)?)
            }
            fn walk(&$self, $table: &Table) -> Result<Cursor> {
                $on.cursor($($with)?)
            }
        }
    };
}

struct Alone;
look!(Alone, (self, table) => table, ());
look!(ReadTxn, (self, table) => self, (table));
look!(WriteTxn, (self, table) => self, (table));

fn is_clash<T: std::fmt::Debug>(found: &Result<T>) -> bool {
    matches!(found, Err(Error::WrongType { detail }) if detail.contains("merged"))
}

/// All records of a walk, in the order of their keys.
fn walked(mut cursor: Cursor, back: bool) -> Vec<(Vec<u8>, Value)> {
    let mut found = Vec::new();
    if back {
        cursor.seek_last();
    }
    while let Some((key, value)) = if back { cursor.prev() } else { cursor.next() }.unwrap() {
        let key = key.to_vec();
        let bytes = value.bytes().map(<[u8]>::to_vec);
        let value = if is_clash(&bytes) { Value::Clash } else { Value::Bytes(bytes.unwrap()) };
        found.push((key, value));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Compares all that a reader shows of a table with a map.
fn compare(look: &impl Look, t: &Table, map: &Map) {
    let wanted: Vec<_> = map.clone().into_iter().collect();
    assert_eq!(walked(look.walk(t).unwrap(), false), wanted, "{} forward", t.name());
    assert_eq!(walked(look.walk(t).unwrap(), true), wanted, "{} backward", t.name());
    assert_eq!(look.count(t).unwrap(), wanted.len() as u64);
    for (key, value) in map {
        let (got, by_ref) = (look.get(t, key), look.get_ref(t, key));
        match value {
            Value::Clash => assert!(is_clash(&got) && is_clash(&by_ref), "{key:?}: {got:?}"),
            Value::Bytes(bytes) => {
                assert_eq!(got.unwrap().as_ref(), Some(bytes), "{} {key:?}", t.name());
                assert_eq!(by_ref.unwrap().as_ref(), Some(bytes));
            }
        }
    }
    let numbers = map.iter().filter(|(_, value)| **value != Value::Clash);
    let keys: Vec<Vec<u8>> = numbers.map(|(key, _)| key.clone()).chain([b"none".to_vec()]).collect();
    let many = look.many(t, &keys).unwrap();
    for (key, value) in keys.iter().zip(many) {
        assert_eq!(value.map(Value::Bytes).as_ref(), map.get(key), "{} {key:?} of many", t.name());
    }
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let is_durable = rng.one_in(2);
        let durability = if is_durable { Durability::Sync } else { Durability::Eventual };
        let options = options()
            .durability(durability)
            .mapped(!rng.one_in(3))
            .background_merges(!rng.one_in(3))
            .threads(!rng.one_in(3));
        let (storage, tables, held) = (MemStorage::default(), Vec::new(), Vec::new());
        let mut world = World { rng, storage, options, is_durable, db: None, tables, held };
        world.open();
        let db = world.db().clone();
        let make = |name: &str, kind, usual, expires| {
            let table = db.table(name, kind).unwrap();
            Modelled { table, map: Map::new(), is_indexed: false, usual, expires }
        };
        world.tables = vec![
            make("sums", TableKind::Ordered, |n| Given::Number(Merge::AddI64(n)), false),
            make("peaks", TableKind::Hash, |n| Given::Number(Merge::MaxI64(n)), false),
            make("floats", TableKind::Ordered, |n| Given::Number(Merge::AddF64(n as f64)), false),
            make("lists", TableKind::Ordered, Given::append, false),
            make("short lists", TableKind::Hash, |n| Given::Append(n.to_le_bytes().to_vec()), false),
            make("sets", TableKind::Hash, |n| Given::union(4, n), false),
            make("short sets", TableKind::Ordered, |n| Given::union(8, n % 7), false),
            make("bits", TableKind::Hash, |n| Given::Number(Merge::BitOr(1 << (n & 63))), true),
            make("lists that go", TableKind::Hash, Given::append, true),
        ];
        world
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is open")
    }

    fn open(&mut self) {
        self.db = Some(Db::open_on(&self.storage, PATH, self.options.clone()).unwrap());
        let db = self.db().clone();
        for of in &mut self.tables {
            of.table = db.open_table(&of.table.name()).unwrap();
        }
    }

    fn key(&mut self) -> Vec<u8> {
        // Some are met all the time.
        let n = if self.rng.one_in(2) { self.rng.below(5) } else { self.rng.below(300) };
        match self.rng.below(3) {
            0 => format!("key {n}").into_bytes(),
            1 => n.to_be_bytes().to_vec(),
            _ => format!("a common beginning, then {}", n % 50).into_bytes(),
        }
    }

    fn merge(&mut self, i: usize) -> Given {
        let n = self.rng.below(1000).cast_signed() - 500;
        let is_other = i != 2 && self.rng.one_in(30);
        if !is_other {
            return (self.tables[i].usual)(n);
        }
        match self.rng.below(9) {
            0 => Given::Number(Merge::AddI64(n)),
            1 => Given::Number(Merge::MinI64(n)),
            2 => Given::Number(Merge::MaxU64(n.cast_unsigned())),
            3 => Given::Number(Merge::MinU64(n.cast_unsigned())),
            4 => Given::Number(Merge::AddU64(n.cast_unsigned())),
            5 => Given::Number(Merge::BitOr(n.cast_unsigned())),
            6 => Given::append(n),
            width => Given::union(width as usize - 4, n),
        }
    }

    /// Writes something to a table: in a transaction if one is given. Gives what it was.
    fn write(&mut self, i: usize, txn: &mut Option<WriteTxn>) -> String {
        let (key, op, merge) = (self.key(), self.rng.below(40), self.merge(i));
        let is_long = self.rng.one_in(5);
        let Modelled { table: t, map, expires, .. } = &mut self.tables[i];
        macro_rules! call {
            ($name:ident ( $($arg:expr),* )) => {
                match txn.as_mut() {
                    Some(w) => w.$name(&*t, $($arg),*),
                    None => t.$name($($arg),*),
                }
            };
        }
        match op {
            0..=2 => {
                let number = (self.rng.below(1000) as f64).to_le_bytes();
                call!(put(&key, number)).unwrap();
                map.insert(key.clone(), Value::Bytes(number.to_vec()));
            }
            3 => {
                let value = vec![7; [0, 7, 9, 40, 500, 9_000][self.rng.below(6) as usize]];
                call!(put(&key, &value)).unwrap();
                map.insert(key.clone(), Value::Bytes(value));
            }
            4..=6 => {
                call!(remove(&key)).unwrap();
                map.remove(&key);
            }
            7 if *expires => {
                let ttl = if is_long { LONG } else { Duration::ZERO };
                call!(put_for(&key, 7u64.to_le_bytes(), ttl)).unwrap();
                map.remove(&key);
                if is_long {
                    map.insert(key.clone(), Value::Bytes(7u64.to_le_bytes().to_vec()));
                }
            }
            _ => {
                let value = match map.get(&key) {
                    None => merged(merge.merge(), None),
                    Some(Value::Bytes(bytes)) => merged(merge.merge(), Some(bytes)),
                    Some(Value::Clash) => None,
                };
                let done = call!(merge(&key, merge.merge()));
                match (value, &done) {
                    (value, Ok(())) => {
                        map.insert(key.clone(), value.map_or(Value::Clash, Value::Bytes));
                    }
                    (None, Err(_)) => assert!(is_clash(&done), "{done:?}"),
                    (Some(_), Err(e)) => panic!("{e}"),
                }
            }
        }
        let mut said = format!("{op} {} {key:?} {merge:?}", t.name());
        said.truncate(200);
        said
    }

    fn transaction(&mut self) -> String {
        let before: Vec<Map> = self.tables.iter().map(|of| of.map.clone()).collect();
        let isolation = if self.rng.one_in(3) { Isolation::Snapshot } else { Isolation::Serializable };
        let mut txn = Some(self.db().write_with(WriteOptions { isolation, ..WriteOptions::default() }));
        let mut said = Vec::new();
        let mut saved = None;
        for _ in 0..1 + self.rng.below(200) {
            let i = self.rng.below(self.tables.len() as u64) as usize;
            said.push(self.write(i, &mut txn));
            let w = txn.as_mut().expect("it is there");
            match self.rng.below(60) {
                0 => {
                    let maps: Vec<Map> = self.tables.iter().map(|of| of.map.clone()).collect();
                    saved = Some((w.savepoint(), maps));
                }
                1 => {
                    if let Some((savepoint, maps)) = saved.take() {
                        w.rollback_to(&savepoint).unwrap();
                        self.tables.iter_mut().zip(maps).for_each(|(of, map)| of.map = map);
                    }
                }
                2 => {
                    let at = [0, 3, 6][self.rng.below(3) as usize];
                    let (from, of) = (self.key(), &mut self.tables[at]);
                    let to = [&from[..], b"\x20"].concat();
                    w.remove_range(&of.table, &from[..]..&to[..]).unwrap();
                    of.map.retain(|key, _| *key < from || *key >= to);
                }
                3 => self.tables.iter().for_each(|of| compare(w, &of.table, &of.map)),
                _ => {}
            }
        }
        let txn = txn.expect("it is there");
        self.tables.iter().for_each(|of| compare(&txn, &of.table, &of.map));
        if self.rng.one_in(4) {
            txn.rollback();
            self.tables.iter_mut().zip(before).for_each(|(of, map)| of.map = map);
            return "rollback".into();
        }
        txn.commit().unwrap();
        format!("transaction {said:?}")
    }

    /// Many merges at once, enough for a chunk.
    fn batch(&mut self) -> String {
        let i = self.rng.below(7) as usize;
        let usual = self.tables[i].usual;
        let keys: Vec<Vec<u8>> = (0..100 + self.rng.below(2000)).map(|_| self.key()).collect();
        let Modelled { table, map, .. } = &mut self.tables[i];
        let suits = |key: &Vec<u8>| match map.get(key) {
            None => true,
            Some(Value::Bytes(bytes)) => merged(usual(3).merge(), Some(bytes)).is_some(),
            Some(Value::Clash) => false,
        };
        let merges: Vec<_> =
            keys.into_iter().filter(suits).zip(0..).map(|(key, n)| (key, usual(n % 9))).collect();
        table.merge_many(merges.iter().map(|(key, merge)| (key, merge.merge()))).unwrap();
        for (key, merge) in merges {
            let base = match map.get(&key) {
                Some(Value::Bytes(bytes)) => Some(bytes.as_slice()),
                _ => None,
            };
            let value = merged(merge.merge(), base).unwrap();
            map.insert(key, Value::Bytes(value));
        }
        format!("many into {}", table.name())
    }

    fn hold(&mut self) -> String {
        let maps: Vec<_> = self.tables.iter().map(|of| (of.table.clone(), of.map.clone())).collect();
        self.held.push(Held { read: self.db().read(), maps });
        "hold".into()
    }

    fn look_at_held(&mut self) -> String {
        if !self.held.is_empty() {
            let i = self.rng.below(self.held.len() as u64) as usize;
            let held = self.held.swap_remove(i);
            held.maps.iter().for_each(|(t, map)| compare(&held.read, t, map));
            if self.rng.one_in(2) {
                self.held.push(held);
            }
        }
        "look at a snapshot".into()
    }

    fn index(&mut self) -> String {
        // (An index cannot be made of a value that cannot be read.)
        let of = &mut self.tables[0];
        if of.is_indexed {
            of.table.drop_index("all").unwrap();
            of.is_indexed = false;
        } else if of.map.values().all(|value| *value != Value::Clash) {
            of.table.create_index("all", "v[0..2]").unwrap();
            of.is_indexed = true;
        }
        "index".into()
    }

    /// A crash of the process: what is in the file is all that was committed.
    fn crash(&mut self) -> String {
        self.held.clear();
        if !self.is_durable {
            self.db().sync().unwrap();
        }
        let copy = copy_of(&self.storage);
        self.db.take().expect("it is open").close().unwrap();
        self.storage = copy;
        self.open();
        "crash".into()
    }

    fn reopen(&mut self) -> String {
        self.held.clear();
        self.db.take().expect("it is open").close().unwrap();
        self.open();
        "reopen".into()
    }

    fn step(&mut self) -> String {
        let said = match self.rng.below(100) {
            0..=39 => {
                let i = self.rng.below(self.tables.len() as u64) as usize;
                self.write(i, &mut None)
            }
            40..=52 => self.transaction(),
            53..=58 => self.batch(),
            59..=63 => self.hold(),
            64..=69 => self.look_at_held(),
            70..=79 => {
                self.db().flush().unwrap();
                "flush".into()
            }
            80..=83 => {
                self.db().compact().unwrap();
                "compact".into()
            }
            84..=86 => self.index(),
            87..=89 => self.reopen(),
            90..=93 => self.crash(),
            94 | 95 => {
                let report = self.db().check(|_| {}).unwrap();
                assert_eq!(report.problems, Vec::<String>::new());
                "check".into()
            }
            _ => {
                let at = [2, 3, 6][self.rng.below(3) as usize];
                let (from, of) = (self.key(), &mut self.tables[at]);
                let to = [&from[..], b"\x20"].concat();
                of.table.remove_range(&from[..]..&to[..]).unwrap();
                of.map.retain(|key, _| *key < from || *key >= to);
                "remove a range".into()
            }
        };
        for of in &self.tables {
            compare(&Alone, &of.table, &of.map);
        }
        said
    }
}

fn round(seed: u64) {
    let trace = std::env::var_os("AZEKURA_TRACE").is_some();
    let mut world = World::new(seed);
    for step in 0..STEPS {
        crate::common::doing(format!("step {step} of seed {seed} of the model of merges"));
        let said = world.step();
        if trace {
            eprintln!("{step}: {said}");
        }
    }
    world.held.clear();
    world.reopen();
    world.db().compact().unwrap();
    for of in &world.tables {
        compare(&Alone, &of.table, &of.map);
    }
}

#[test]
fn whatever_is_done_each_operand_counts_once() {
    crate::common::watch(Duration::from_secs(120));
    let number = |name| std::env::var(name).ok().map(|n: String| n.parse::<u64>().expect("a number"));
    if let Some(seed) = number("AZEKURA_SEED") {
        return round(seed);
    }
    for seed in 0..number("AZEKURA_ROUNDS").unwrap_or(ROUNDS) {
        let done = std::panic::catch_unwind(|| round(seed));
        if let Err(cause) = done {
            eprintln!("AZEKURA_SEED={seed} repeats this");
            std::panic::resume_unwind(cause);
        }
    }
}
