//! Random operations beside a model: a `BTreeMap` with the time at which each record expires.
//!
//! `AZEKURA_SEED=n` runs that round alone, `AZEKURA_ROUNDS=n` that many, `AZEKURA_TRACE=1` prints each
//! operation.

use super::{PATH, Time, ms, options};
use crate::common::Rng;
use azekura::storage::MemStorage;
use azekura::{
    Db, Durability, Index, IndexValue, Lifetime, Options, ReadTxn, Result, Table, TableKind, WriteTxn,
};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Rounds that are run if nothing is said.
const ROUNDS: u64 = 24;
const STEPS: u64 = 250;
const NEVER: u64 = u64::MAX;

/// The values of a table, and when they expire.
type Map = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

struct Modelled {
    table: Table,
    map: Map,
    /// How long its records live if nothing else is said.
    usual_ms: Option<u64>,
    /// Of the first two bytes of its values.
    index: Option<Index>,
}

/// A snapshot, what it must show, and at what time.
struct Held {
    read: ReadTxn,
    maps: Vec<(Table, Map)>,
    now: u64,
}

struct World {
    rng: Rng,
    storage: MemStorage,
    options: Options,
    time: Time,
    /// The time by the database's clock, and how far that is ahead of the one that the test sets.
    now: u64,
    ahead: u64,
    db: Option<Db>,
    tables: Vec<Modelled>,
    held: Vec<Held>,
}

fn is_alive(record: &(Vec<u8>, u64), now: u64) -> bool {
    record.1 > now
}

/// What a map shows at a time.
fn shown(map: &Map, now: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    map.iter().filter(|r| is_alive(r.1, now)).map(|(k, v)| (k.clone(), v.0.clone())).collect()
}

/// The ways to read that are compared: in a snapshot, and each by itself.
trait Look {
    fn get(&self, t: &Table, key: &[u8]) -> Result<Option<Vec<u8>>>;
    fn get_ref(&self, t: &Table, key: &[u8]) -> Result<Option<Vec<u8>>>;
    fn many(&self, t: &Table, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>>;
    fn ttl(&self, t: &Table, key: &[u8]) -> Result<Option<Lifetime>>;
    fn count(&self, t: &Table) -> Result<u64>;
    fn all(&self, t: &Table) -> Result<Vec<(Vec<u8>, Vec<u8>)>>;
    fn all_back(&self, t: &Table) -> Result<Vec<(Vec<u8>, Vec<u8>)>>;
}

macro_rules! look {
    ($of:ty, ($self:ident, $table:ident) => $on:expr, ($($with:expr)?)) => {
        impl Look for $of {
            fn get(&$self, $table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
                assert_eq!($on.contains($($with,)? key)?, $on.get($($with,)? key)?.is_some());
                $on.get($($with,)? key)
            }
            fn get_ref(&$self, $table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
                Ok($on.get_ref($($with,)? key)?.map(|value| value.to_vec()))
            }
            fn many(&$self, $table: &Table, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
                $on.get_many($($with,)? keys)
            }
            fn ttl(&$self, $table: &Table, key: &[u8]) -> Result<Option<Lifetime>> {
                $on.ttl($($with,)? key)
            }
            fn count(&$self, $table: &Table) -> Result<u64> {
                $on.count($($with)?)
            }
            fn all(&$self, $table: &Table) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
                $on.cursor($($with)?)?.owned().collect()
            }
            fn all_back(&$self, $table: &Table) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
                $on.cursor($($with)?)?.owned().rev().collect()
            }
        }
    };
}

struct Alone;
look!(Alone, (self, table) => table, ());
look!(ReadTxn, (self, table) => self, (table));
look!(WriteTxn, (self, table) => self, (table));

/// Compares all that a reader shows of a table with a map at a time.
fn compare(look: &impl Look, t: &Table, map: &Map, now: u64) {
    let wanted = shown(map, now);
    let mut found = look.all(t).unwrap();
    let mut back = look.all_back(t).unwrap();
    back.reverse();
    assert_eq!(found, back, "{} in both directions", t.name());
    found.sort();
    assert_eq!(found, wanted, "{} at {now}", t.name());
    assert_eq!(look.count(t).unwrap(), wanted.len() as u64);
    let keys: Vec<Vec<u8>> = map.keys().cloned().collect();
    let many = look.many(t, &keys).unwrap();
    for ((key, record), of_many) in map.iter().zip(many) {
        let value = is_alive(record, now).then(|| record.0.clone());
        assert_eq!(look.get(t, key).unwrap(), value, "{} {key:?} {} at {now}", t.name(), record.1);
        assert_eq!(look.get_ref(t, key).unwrap(), value);
        assert_eq!(of_many, value);
        let lifetime = value.map(|_| match record.1 {
            NEVER => Lifetime::Unlimited,
            until => Lifetime::Left(ms(until - now)),
        });
        assert_eq!(look.ttl(t, key).unwrap(), lifetime);
    }
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let time = Time::new();
        let durability = if rng.one_in(2) { Durability::Sync } else { Durability::Eventual };
        let options = options(&time)
            .large_value_bytes([64, 1024][rng.below(2) as usize])
            .durability(durability)
            .background_merges(!rng.one_in(3))
            .threads(!rng.one_in(3));
        let now = time.ms();
        let (storage, tables, held) = (MemStorage::default(), Vec::new(), Vec::new());
        let mut world = World { rng, storage, options, time, now, ahead: 0, db: None, tables, held };
        world.open();
        let db = world.db().clone();
        let make = |name: &str, kind, usual_ms: Option<u64>| {
            let table = match usual_ms {
                Some(usual) => db.expiring_table(name, kind, ms(usual)),
                None => db.table(name, kind),
            };
            Modelled { table: table.unwrap(), map: Map::new(), usual_ms, index: None }
        };
        world.tables = vec![
            make("ordered", TableKind::Ordered, None),
            make("hash", TableKind::Hash, None),
            make("cache", TableKind::Hash, Some(700)),
            make("log", TableKind::Ordered, Some(2_000)),
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
            assert_eq!(of.table.usual_ttl(), of.usual_ms.map(ms));
            of.index = of.index.is_some().then(|| of.table.index("first").unwrap());
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let n = self.rng.below(300);
        match self.rng.below(3) {
            0 => format!("key {n}").into_bytes(),
            1 => n.to_be_bytes().to_vec(),
            _ => format!("a common beginning, then {}", n % 50).into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let len = [8, 8, 8, 0, 30, 70, 200, 2_000][self.rng.below(8) as usize];
        let byte = self.rng.below(4) as u8;
        vec![byte; len]
    }

    /// How long something lives from now on, and until when that is.
    fn ttl(&mut self) -> (u64, u64) {
        let ttl = [0, 1, 50, 300, 1_000, 5_000, 100_000][self.rng.below(7) as usize];
        (ttl, self.now + ttl)
    }

    /// Writes something to a table: in a transaction if one is given. Gives what it was.
    fn write(&mut self, i: usize, txn: &mut Option<WriteTxn>) -> String {
        let (key, value, (ttl, until)) = (self.key(), self.value(), self.ttl());
        let (op, now) = (self.rng.below(12), self.now);
        let Modelled { table: t, map, usual_ms, .. } = &mut self.tables[i];
        let usual = usual_ms.map_or(NEVER, |usual| now + usual);
        let old = map.get(&key).filter(|record| is_alive(record, now)).cloned();
        macro_rules! call {
            ($name:ident ( $($arg:expr),* )) => {
                match txn.as_mut() {
                    Some(w) => w.$name(&*t, $($arg),*),
                    None => t.$name($($arg),*),
                }
            };
        }
        let mut put = |value: Vec<u8>, until| map.insert(key.clone(), (value, until));
        match op {
            0 | 1 => {
                call!(put(&key, &value)).unwrap();
                put(value, usual);
            }
            2..=4 => {
                call!(put_for(&key, &value, ms(ttl))).unwrap();
                put(value, until);
            }
            5 => {
                assert_eq!(call!(remove_existing(&key)).unwrap(), old.is_some());
                map.remove(&key);
            }
            6 => {
                assert_eq!(call!(add(&key, &value)).unwrap(), old.is_none());
                if old.is_none() {
                    put(value, usual);
                }
            }
            7 => {
                call!(append(&key, b"more")).unwrap();
                let (mut value, until) = old.clone().unwrap_or((Vec::new(), usual));
                value.extend_from_slice(b"more");
                put(value, until);
            }
            8 => {
                assert_eq!(call!(expire(&key, ms(ttl))).unwrap(), old.is_some());
                if let Some((value, _)) = old.clone() {
                    put(value, until);
                }
            }
            9 => {
                assert_eq!(call!(persist(&key)).unwrap(), old.is_some());
                if let Some((value, _)) = old.clone() {
                    put(value, NEVER);
                }
            }
            10 => {
                let expected = old.as_ref().map(|old| old.0.as_slice());
                assert!(call!(compare_and_swap(&key, expected, Some(&value))).unwrap());
                put(value, usual);
            }
            _ => {
                let longer = |old: Option<&[u8]>| old.map(|old| [old, b"!"].concat());
                call!(update(&key, longer)).unwrap();
                if let Some((value, until)) = old.clone() {
                    put([value, b"!".to_vec()].concat(), until);
                }
            }
        }
        format!("{op} {} {key:?} {ttl} {:?}", t.name(), old.map(|old| old.1))
    }

    /// What the tables hold, and how long what is put lives.
    fn contents(&self) -> Vec<(Map, Option<u64>)> {
        self.tables.iter().map(|of| (of.map.clone(), of.usual_ms)).collect()
    }

    fn set_contents(&mut self, contents: Vec<(Map, Option<u64>)>) {
        self.tables.iter_mut().zip(contents).for_each(|(of, (map, usual_ms))| {
            (of.map, of.usual_ms) = (map, usual_ms);
        });
    }

    fn transaction(&mut self) -> String {
        let before = self.contents();
        let mut txn = Some(self.db().write());
        let (mut said, mut points) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.rng.below(200) {
            let i = self.rng.below(self.tables.len() as u64) as usize;
            let what = self.rng.below(60);
            match (what, txn.as_mut()) {
                (0, Some(w)) => {
                    let usual_ms = self.any_usual();
                    w.set_usual_ttl(&self.tables[i].table, usual_ms.map(ms)).unwrap();
                    self.tables[i].usual_ms = usual_ms;
                    said.push(format!("{i} lives {usual_ms:?}"));
                }
                (1, Some(w)) => points.push((w.savepoint(), self.contents())),
                (2, Some(w)) if !points.is_empty() => {
                    points.truncate(self.rng.below(points.len() as u64) as usize + 1);
                    let (point, then) = points.last().expect("one is left");
                    w.rollback_to(point).unwrap();
                    let then = then.clone();
                    self.set_contents(then);
                    said.push("rollback to a savepoint".into());
                }
                _ => said.push(self.write(i, &mut txn)),
            }
        }
        let txn = txn.expect("it is there");
        for of in &self.tables {
            compare(&txn, &of.table, &of.map, self.now);
        }
        if self.rng.one_in(4) {
            txn.rollback();
            self.set_contents(before);
            return "rollback".into();
        }
        txn.commit().unwrap();
        format!("transaction {said:?}")
    }

    fn remove_range(&mut self) -> String {
        let (from, i) = (self.key(), self.rng.below(2) as usize * 3);
        let of = &mut self.tables[i];
        let to = [&from[..], b"\x20"].concat();
        of.table.remove_range(&from[..]..&to[..]).unwrap();
        of.map.retain(|key, _| *key < from || *key >= to);
        format!("remove {from:?}..")
    }

    /// How long the records of a table live from then on.
    fn change_usual(&mut self) -> String {
        let i = self.rng.below(self.tables.len() as u64) as usize;
        let usual_ms = self.any_usual();
        let of = &mut self.tables[i];
        of.table.set_usual_ttl(usual_ms.map(ms)).unwrap();
        assert_eq!(of.table.usual_ttl(), usual_ms.map(ms));
        of.usual_ms = usual_ms;
        format!("records of {} live {usual_ms:?}", of.table.name())
    }

    fn any_usual(&mut self) -> Option<u64> {
        [None, Some(1), Some(700), Some(30_000)][self.rng.below(4) as usize]
    }

    fn index(&mut self) -> String {
        let i = self.rng.below(self.tables.len() as u64) as usize;
        let of = &mut self.tables[i];
        match of.index.take() {
            Some(index) => {
                drop(index);
                of.table.drop_index("first").unwrap();
            }
            None => of.index = Some(of.table.create_index("first", "v[0..2]").unwrap()),
        }
        format!("index {}", of.table.name())
    }

    fn compare_index(&self, of: &Modelled) {
        let Some(index) = &of.index else { return };
        let mut wanted: Vec<_> = shown(&of.map, self.now)
            .into_iter()
            .map(|(key, value)| (value.get(..2).map(<[u8]>::to_vec), key, value))
            .collect();
        wanted.sort();
        let wanted: Vec<_> = wanted.into_iter().map(|(_, key, value)| (key, value)).collect();
        let range: (Bound<&[IndexValue<'_>]>, Bound<&[IndexValue<'_>]>) =
            (Bound::Unbounded, Bound::Unbounded);
        let found: Vec<_> =
            index.range::<&[IndexValue<'_>]>(range).unwrap().map(|record| record.unwrap()).collect();
        assert_eq!(found, wanted, "index of {}", of.table.name());
        assert_eq!(index.count(&[]).unwrap(), wanted.len() as u64);
    }

    fn hold(&mut self) -> String {
        let read = self.db().read();
        // Its time is that at which it began, whether it is looked at then or not.
        let now = self.now;
        let maps: Vec<_> = self.tables.iter().map(|of| (of.table.clone(), of.map.clone())).collect();
        if self.rng.one_in(2) {
            maps.iter().for_each(|(t, map)| compare(&read, t, map, now));
        }
        self.held.push(Held { read, maps, now });
        "hold".into()
    }

    fn look_at_held(&mut self) -> String {
        if let Some(i) = self.held.len().checked_sub(1).map(|last| self.rng.below(last as u64 + 1) as usize) {
            let held = self.held.swap_remove(i);
            held.maps.iter().for_each(|(t, map)| compare(&held.read, t, map, held.now));
            if self.rng.one_in(2) {
                self.held.push(held);
            }
        }
        "look at a snapshot".into()
    }

    fn reopen(&mut self) -> String {
        self.held.clear();
        self.tables.iter_mut().for_each(|of| of.index = of.index.take());
        let db = self.db.take().expect("it is open");
        db.close().unwrap();
        if self.rng.one_in(2) {
            // Somebody has set the system's clock back meanwhile: time goes on from what the file says.
            self.time.go_back(self.rng.below(10_000_000));
        } else {
            self.time.go_on(self.rng.below(1_000));
        }
        // A little may be the rounding of seconds in the log: then it waits.
        let missing = self.now.saturating_sub(self.time.ms());
        self.ahead = if missing > 2_000 { missing } else { 0 };
        self.open();
        self.see_time();
        "reopen".into()
    }

    /// The clock of the database goes on with the time that the test sets, and never back.
    fn see_time(&mut self) {
        self.now = self.now.max(self.time.ms() + self.ahead);
    }

    fn step(&mut self) -> String {
        let said = match self.rng.below(100) {
            0..=34 => {
                let i = self.rng.below(self.tables.len() as u64) as usize;
                self.write(i, &mut None)
            }
            35..=49 => self.transaction(),
            50..=64 => {
                let by = [1, 20, 200, 1_000, 20_000][self.rng.below(5) as usize];
                self.time.go_on(by);
                self.see_time();
                format!("{by} ms later")
            }
            65 => {
                self.time.go_back(self.rng.below(5_000));
                self.see_time();
                "the clock is set back".into()
            }
            66..=70 => self.hold(),
            71..=76 => self.look_at_held(),
            77..=82 => {
                self.db().flush().unwrap();
                "flush".into()
            }
            83..=85 => {
                self.db().compact().unwrap();
                "compact".into()
            }
            86..=88 => self.remove_range(),
            89 => self.change_usual(),
            90..=92 => self.index(),
            93..=95 => self.reopen(),
            96 | 97 => {
                let report = self.db().check(|_| {}).unwrap();
                assert_eq!(report.problems, Vec::<String>::new());
                "check".into()
            }
            _ => {
                std::thread::sleep(ms(self.rng.below(3)));
                "sleep".into()
            }
        };
        for of in &self.tables {
            compare(&Alone, &of.table, &of.map, self.now);
            self.compare_index(of);
        }
        said
    }
}

fn round(seed: u64) {
    let trace = std::env::var_os("AZEKURA_TRACE").is_some();
    let mut world = World::new(seed);
    for step in 0..STEPS {
        crate::common::doing(format!("step {step} of seed {seed} of the model of expiry"));
        let said = world.step();
        if trace {
            eprintln!("{step}: {said}");
        }
    }
    world.held.clear();
    world.reopen();
    world.db().compact().unwrap();
    for of in &world.tables {
        compare(&Alone, &of.table, &of.map, world.now);
    }
}

#[test]
fn whatever_is_done_records_are_there_until_their_time_and_not_after_it() {
    crate::common::watch(std::time::Duration::from_secs(120));
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
