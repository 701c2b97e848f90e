//! Random operations on a table with random indexes, compared with a map.

use super::{Map, compare, has_duplicate, open_on, records};
use crate::common::{Rng, doing};
use azekura::storage::MemStorage;
use azekura::{
    Db, Error, IndexSpec, IndexValue, Isolation, Result, Table, TableKind, WriteOptions, WriteTxn,
};
use std::collections::BTreeMap;

/// Specifications, and what values their fields take.
const SPECS: [(&str, &str); 9] = [
    ("v[0..1]:u8", "n"),
    ("v[1..3]", "b"),
    ("v[0..1]:u8, k[0..1]", "nb"),
    (r"v.split(',', 1):text where present", "b"),
    ("k[1..], v[0..1]:u8 where present", "bn"),
    ("v", "b"),
    ("v[1..4] unique where present", "b"),
    ("v[0..2] unique", "b"),
    ("v[2..], k[0..2] unique", "bb"),
];

struct World {
    storage: MemStorage,
    db: Option<Db>,
    table: Option<Table>,
    kind: TableKind,
    name: String,
    records: Map,
    /// By name.
    indexes: BTreeMap<String, (IndexSpec, &'static str)>,
    rng: Rng,
}

impl World {
    fn new(seed: u64) -> World {
        let storage = MemStorage::default();
        let db = open_on(&storage);
        let kind = if seed.is_multiple_of(2) { TableKind::Ordered } else { TableKind::Hash };
        let table = db.create_table("t", kind).unwrap();
        World {
            storage,
            db: Some(db),
            table: Some(table),
            kind,
            name: "t".into(),
            records: Map::new(),
            indexes: BTreeMap::new(),
            rng: Rng::new(seed),
        }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn table(&self) -> Table {
        self.table.clone().unwrap()
    }

    fn key(&mut self) -> Vec<u8> {
        let n = self.rng.below(60);
        match n % 4 {
            0 => n.to_be_bytes().to_vec(),
            1 => Vec::new(),
            _ => format!("k{n}").into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let len = if self.rng.one_in(8) { 64 + self.rng.below(100) } else { self.rng.below(7) };
        (0..len).map(|_| b"\0,ab\xff"[self.rng.below(5) as usize]).collect()
    }

    /// Some values for the fields of an index.
    fn values(&mut self, form: &str) -> Vec<Vec<IndexValue<'static>>> {
        const PIECES: [&[u8]; 9] = [b"", b"\0", b"a", b"ab", b",", b"a\xff", b"\xff", b"k1", b"\0\0"];
        const TEXTS: [&str; 5] = ["", "a", "ab", "\0", "b"];
        let is_text = form == "b" && self.rng.one_in(2);
        let one = |rng: &mut Rng, form: char| match (form, rng.below(5)) {
            (_, 0) => IndexValue::Null,
            ('n', n) => IndexValue::U64([0, 44, 97, 98, 255][n as usize]),
            _ if is_text => IndexValue::Text(TEXTS[rng.below(5) as usize]),
            _ => IndexValue::Bytes(PIECES[rng.below(9) as usize]),
        };
        (0..5)
            .map(|_| {
                let fields = 1 + self.rng.below(form.len() as u64) as usize;
                form.chars().take(fields).map(|form| one(&mut self.rng, form)).collect()
            })
            .collect()
    }

    fn check(&mut self) {
        let table = self.table();
        let found: Map = records(table.iter().unwrap()).into_iter().collect();
        assert_eq!(found, self.records);
        for (name, (spec, form)) in self.indexes.clone() {
            let mut values = self.values(form);
            values.retain(|values| spec.encode(values).is_ok());
            compare(&table.index(&name).unwrap(), &spec, &self.records, &values);
            let snapshot = self.db().read();
            compare(&table.index(&name).unwrap().read_in(&snapshot), &spec, &self.records, &values);
        }
        let infos = table.indexes().unwrap();
        assert!(infos.iter().all(|info| info.is_ready));
        let specs = self.indexes.iter().map(|(name, (spec, _))| (name.clone(), spec.to_string()));
        assert!(infos.iter().map(|i| (i.name.clone(), i.spec.clone())).eq(specs));
        assert_eq!(self.db().tables().len(), 1);
    }

    /// What unique indexes forbid.
    fn is_forbidden(&self, table: &Map) -> bool {
        self.indexes.values().any(|(spec, _)| has_duplicate(spec, table))
    }

    fn transaction(&mut self) {
        let isolation = if self.rng.one_in(2) { Isolation::Serializable } else { Isolation::Snapshot };
        let options = WriteOptions { isolation, ..WriteOptions::default() };
        let (db, table) = (self.db().clone(), self.table());
        let mut txn = db.write_with(options);
        let mut map = self.records.clone();
        let mut marks = Vec::new();
        for _ in 0..self.rng.below(12) {
            match self.rng.below(12) {
                0 => marks.push((txn.savepoint(), map.clone())),
                1 if !marks.is_empty() => {
                    marks.truncate(1 + self.rng.below(marks.len() as u64) as usize);
                    let (mark, before) = marks.last().unwrap();
                    txn.rollback_to(mark).unwrap();
                    map.clone_from(before);
                }
                _ => self.step(&mut txn, &table, &mut map),
            }
        }
        for (name, (spec, form)) in self.indexes.clone() {
            let mut values = self.values(form);
            values.retain(|values| spec.encode(values).is_ok());
            compare(&table.index(&name).unwrap().read_in(&txn), &spec, &map, &values);
        }
        if self.rng.one_in(6) {
            return txn.rollback();
        }
        self.settle(txn.commit(), map);
    }

    /// A commit is refused if and only if it is forbidden.
    fn settle(&mut self, done: Result<()>, map: Map) {
        match done {
            Err(Error::NotUnique { .. }) => assert!(self.is_forbidden(&map), "refused for no reason"),
            done => {
                done.unwrap();
                assert!(!self.is_forbidden(&map), "a duplicate was let in");
                self.records = map;
            }
        }
    }

    fn step(&mut self, txn: &mut WriteTxn, t: &Table, map: &mut Map) {
        let (key, value) = (self.key(), self.value());
        match self.rng.below(16) {
            0 => {
                txn.remove(t, &key).unwrap();
                map.remove(&key);
            }
            1 => assert_eq!(txn.take(t, &key).unwrap(), map.remove(&key)),
            2 => {
                if txn.add(t, &key, &value).unwrap() {
                    map.insert(key, value);
                }
            }
            3 => {
                if txn.replace(t, &key, &value).unwrap() {
                    map.insert(key, value);
                }
            }
            4 => {
                txn.append(t, &key, &value).unwrap();
                map.entry(key).or_default().extend(value);
            }
            5 => {
                if let Some((key, value)) = txn.pop_first(t).unwrap() {
                    assert_eq!(map.remove(&key), Some(value));
                }
            }
            6 if self.rng.one_in(4) => {
                txn.clear(t).unwrap();
                map.clear();
            }
            7 if self.kind == TableKind::Ordered => {
                txn.remove_range(t, key.as_slice()..).unwrap();
                map.retain(|k, _| *k < key);
            }
            8 if self.kind == TableKind::Ordered => {
                let drained: Map = records(txn.drain(t, ..key.as_slice()).unwrap()).into_iter().collect();
                let (kept, gone) = map.clone().into_iter().partition(|(k, _)| *k >= key);
                (*map, _) = (kept, assert_eq!(drained, gone));
            }
            9 => {
                let odd = |value: &[u8]| value.len() % 3 != 1;
                txn.retain(t, .., |_, value| odd(value)).unwrap();
                map.retain(|_, value| odd(value));
            }
            10 if self.kind == TableKind::Ordered => {
                if let Some((key, value)) = txn.pop_last(t).unwrap() {
                    assert_eq!(map.remove(&key), Some(value));
                }
            }
            11 => {
                // More than one group, with keys that come again.
                let many: Vec<_> = (0..self.rng.below(80)).map(|_| (self.key(), self.value())).collect();
                txn.put_many(t, many.iter().map(|(key, value)| (key, value))).unwrap();
                map.extend(many);
            }
            12 => {
                let keys: Vec<_> = (0..self.rng.below(80)).map(|_| self.key()).collect();
                let found = txn.get_many(t, &keys).unwrap();
                assert!(keys.iter().zip(&found).all(|(key, found)| map.get(key) == found.as_ref()));
            }
            _ => {
                txn.put(t, &key, &value).unwrap();
                map.insert(key, value);
            }
        }
    }

    /// An operation that is a transaction of its own.
    fn alone(&mut self) {
        let (t, key, value) = (self.table(), self.key(), self.value());
        let mut map = self.records.clone();
        let done = match self.rng.below(8) {
            0 => {
                map.remove(&key);
                t.remove(&key)
            }
            1 => {
                let many: Vec<_> = (0..self.rng.below(20)).map(|_| (self.key(), self.value())).collect();
                map.extend(many.clone());
                t.put_many(many)
            }
            2 if self.kind == TableKind::Ordered => {
                map.retain(|k, _| *k >= key);
                t.remove_range(..key.as_slice())
            }
            3 if self.rng.one_in(4) => {
                map.clear();
                t.clear()
            }
            4 => {
                map.retain(|_, value| value.len() != 2);
                t.retain(.., |_, value| value.len() != 2).map(|_| ())
            }
            5 => t.take(&key).map(|old| assert_eq!(old, map.remove(&key))),
            _ => {
                map.insert(key.clone(), value.clone());
                t.put(&key, &value)
            }
        };
        self.settle(done, map);
    }

    fn change_indexes(&mut self) {
        let table = self.table();
        let names: Vec<String> = self.indexes.keys().cloned().collect();
        if names.len() > 3 || !names.is_empty() && self.rng.one_in(3) {
            let name = &names[self.rng.below(names.len() as u64) as usize];
            let index = table.index(name).unwrap();
            table.drop_index(name).unwrap();
            self.indexes.remove(name);
            assert!(matches!(table.index(name), Err(Error::NoSuchIndex { .. })));
            assert!(matches!(index.get(&[]), Err(Error::NoSuchIndex { .. })));
            return;
        }
        let (spec, form) = SPECS[self.rng.below(SPECS.len() as u64) as usize];
        let name = format!("i{}", self.rng.below(5));
        let parsed = IndexSpec::parse(spec).unwrap();
        match table.create_index(&name, spec) {
            Ok(_) => {
                let before = self.indexes.insert(name, (parsed.clone(), form));
                assert!(before.is_none_or(|(before, _)| before == parsed));
                assert!(!self.is_forbidden(&self.records.clone()));
            }
            Err(Error::NotUnique { .. }) => assert!(has_duplicate(&parsed, &self.records)),
            Err(Error::Invalid { .. }) => assert_ne!(self.indexes[&name].0, parsed),
            Err(e) => panic!("{e}"),
        }
    }

    fn reopen(&mut self) {
        self.table = None;
        self.db.take().unwrap().close().unwrap();
        let db = open_on(&self.storage);
        self.table = Some(db.open_table(&self.name).unwrap());
        self.db = Some(db);
    }

    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            match self.rng.below(24) {
                0 | 1 => self.change_indexes(),
                2 => self.db().flush().unwrap(),
                3 => self.db().compact().unwrap(),
                4 if self.rng.one_in(3) => self.reopen(),
                5 if self.rng.one_in(3) => {
                    let name = format!("t{}", self.rng.below(1 << 40));
                    self.db().rename_table(&self.name, &name).unwrap();
                    self.name = name;
                }
                6..10 => self.alone(),
                10..13 => self.check(),
                _ => self.transaction(),
            }
        }
        self.check();
        let report = self.db().check(|_| {}).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

#[test]
fn indexes_agree_with_their_table() {
    for seed in 0..40 {
        doing(format!("seed {seed}"));
        World::new(seed).run(200);
    }
}
