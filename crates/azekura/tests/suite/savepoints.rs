//! Savepoints: a transaction returns to any that its history leads through, and to no other.

use crate::common::Rng;
use azekura::storage::MemStorage;
use azekura::{Db, Error, Options, Result, Savepoint, Table, TableKind, WriteTxn};
use std::collections::BTreeMap;
use std::time::Duration;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn open() -> Db {
    crate::common::watch(Duration::from_secs(60));
    // A short value is a large one already.
    Db::open_on(&MemStorage::default(), "/s.azk", Options::new().memory_bytes(8 << 20).large_value_bytes(64))
        .unwrap()
}

fn refused(result: Result<()>, why: &str) {
    match result {
        Err(Error::Invalid { detail }) => assert!(detail.contains(why), "{detail}"),
        other => panic!("{other:?} instead of a refusal"),
    }
}

#[test]
fn a_savepoint_that_was_rolled_past_is_refused() {
    let db = open();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let mut txn = db.write();
    txn.put(&t, &[1; 8], b"1").unwrap();
    let first = txn.savepoint();
    txn.put(&t, &[2; 8], b"2").unwrap();
    let second = txn.savepoint();
    txn.rollback_to(&first).unwrap();
    txn.put(&t, b"a key of another form", b"3").unwrap();
    txn.put(&t, &[4; 8], b"4").unwrap();
    refused(txn.rollback_to(&second), "not there any more");
    // The refusal has undone nothing.
    assert_eq!(txn.count(&t).unwrap(), 3);
    let third = txn.savepoint();
    txn.rollback_to(&third).unwrap();
    txn.rollback_to(&first).unwrap();
    refused(txn.rollback_to(&third), "not there any more");
    txn.rollback_to(&first).unwrap();
    txn.commit().unwrap();
    assert_eq!(t.count().unwrap(), 1);
    t.put(b"the handle", b"still works").unwrap();
}

#[test]
fn a_savepoint_of_another_transaction_is_refused() {
    let (db, other) = (open(), open());
    let t = db.create_table("t", TableKind::Hash).unwrap();
    let (mut one, mut two, mut foreign) = (db.write(), db.write(), other.write());
    let (of_one, of_foreign) = (one.savepoint(), foreign.savepoint());
    two.put(&t, b"k", b"v").unwrap();
    refused(two.rollback_to(&of_one), "another transaction");
    let _own = two.savepoint();
    refused(two.rollback_to(&of_one), "another transaction");
    refused(two.rollback_to(&of_foreign), "another transaction");
    one.rollback();
    two.commit().unwrap();
    assert_eq!(t.count().unwrap(), 1);
}

/// A transaction beside what it should hold.
struct Model<'a> {
    tables: &'a [Table],
    txn: WriteTxn,
    maps: Vec<Map>,
    /// Every savepoint ever set, with what the transaction held then, and whether it is good.
    points: Vec<(Savepoint, Vec<Map>, bool)>,
}

fn key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(3) {
        0 => Vec::new(),
        1 => vec![rng.below(6) as u8; 5],
        _ => rng.below(12).to_be_bytes().to_vec(),
    }
}

/// Values of few lengths, so that buffers are often of one form; every tenth is stored apart.
fn value(rng: &mut Rng) -> Vec<u8> {
    let len = if rng.one_in(10) { 64 + rng.below(200) } else { [0, 4, 4, 4, 9][rng.below(5) as usize] };
    (0..len).map(|_| rng.number() as u8).collect()
}

impl Model<'_> {
    fn step(&mut self, rng: &mut Rng) {
        let n = rng.below(self.tables.len() as u64) as usize;
        let (t, map) = (&self.tables[n], &mut self.maps[n]);
        // Mostly the keys and values that buffers keep as plain columns.
        let eight = |rng: &mut Rng| rng.below(12).to_be_bytes().to_vec();
        match rng.below(20) {
            0..=6 => {
                let (k, v) = (eight(rng), rng.number().to_le_bytes()[..4].to_vec());
                self.txn.put(t, &k, &v).unwrap();
                map.insert(k, v);
            }
            7..=9 => {
                let (k, v) = (key(rng), value(rng));
                self.txn.put(t, &k, &v).unwrap();
                map.insert(k, v);
            }
            10 => {
                let k = key(rng);
                self.txn.remove(t, &k).unwrap();
                map.remove(&k);
            }
            11 if t.kind() == TableKind::Ordered => {
                let (a, b) = (eight(rng), eight(rng));
                self.txn.remove_range(t, &a..&b).unwrap();
                map.retain(|k, _| !(a <= *k && *k < b));
            }
            12 => {
                self.txn.clear(t).unwrap();
                map.clear();
            }
            13..=15 => self.points.push((self.txn.savepoint(), self.maps.clone(), true)),
            16..=18 if !self.points.is_empty() => self.back_to(rng.below(self.points.len() as u64) as usize),
            _ => self.compare(n, rng),
        }
    }

    fn back_to(&mut self, at: usize) {
        let (point, maps, good) = &self.points[at];
        match self.txn.rollback_to(point) {
            Ok(()) => {
                assert!(good, "a savepoint that was rolled past was accepted");
                self.maps.clone_from(maps);
                self.points[at + 1..].iter_mut().for_each(|p| p.2 = false);
            }
            Err(Error::Invalid { .. }) => assert!(!good, "a good savepoint was refused"),
            Err(e) => panic!("{e}"),
        }
    }

    fn compare(&mut self, n: usize, rng: &mut Rng) {
        let (t, map) = (&self.tables[n], &self.maps[n]);
        let k = key(rng);
        assert_eq!(self.txn.get(t, &k).unwrap(), map.get(&k).cloned());
        let found: Map = self.txn.cursor(t).unwrap().owned().map(|r| r.unwrap()).collect();
        assert_eq!(found, *map);
    }
}

#[test]
fn nested_savepoints_agree_with_a_model() {
    let db = open();
    let tables =
        [TableKind::Ordered, TableKind::Hash, TableKind::Ordered].map(|kind| (kind, format!("{kind:?}")));
    let tables: Vec<Table> = tables
        .iter()
        .enumerate()
        .map(|(n, (kind, name))| db.create_table(&format!("{name}{n}"), *kind).unwrap())
        .collect();
    let mut committed = vec![Map::new(); tables.len()];
    for case in 0..6000 {
        let mut rng = Rng::new(case);
        let mut model =
            Model { tables: &tables, txn: db.write(), maps: committed.clone(), points: Vec::new() };
        for _ in 0..4 + rng.below(40) {
            model.step(&mut rng);
        }
        if rng.one_in(3) {
            continue;
        }
        model.txn.commit().unwrap();
        committed = model.maps;
        for (t, map) in tables.iter().zip(&committed) {
            let found: Map = t.cursor().unwrap().owned().map(|r| r.unwrap()).collect();
            assert_eq!(found, *map, "case {case}");
        }
        if case % 50 == 0 {
            crate::common::doing(format!("case {case}"));
        }
    }
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}
