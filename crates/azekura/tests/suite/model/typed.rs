//! Tables with types beside a map of the same types: random operations, alone and in transactions, with
//! reopening.

use crate::common::Rng;
use azekura::storage::MemStorage;
use azekura::{Db, Error, Options, TableDefinition, TypedTable};
use std::collections::BTreeMap;
use std::ops::Bound;

type Key = (String, i16);
type Model = BTreeMap<Key, i64>;

const TABLE: TableDefinition<(String, i16), i64> = TableDefinition::ordered("typed");
const PATH: &str = "/typed.azk";

fn open(storage: &MemStorage) -> (Db, TypedTable<(String, i16), i64>) {
    let options = Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10);
    let db = Db::open_on(storage, PATH, options).unwrap();
    let table = db.typed_table(&TABLE).unwrap();
    (db, table)
}

fn random_key(rng: &mut Rng) -> Key {
    let text = ["", "a", "a\0", "a\0\u{1}", "ab", "b", "ä", "\u{10ffff}"][rng.below(8) as usize];
    (text.to_owned(), rng.below(60) as i16 - 30)
}

fn lend(key: &Key) -> (&str, i16) {
    (&key.0, key.1)
}

fn random_bound(rng: &mut Rng) -> Bound<Key> {
    match rng.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(random_key(rng)),
        _ => Bound::Excluded(random_key(rng)),
    }
}

/// The records of a model between two bounds, which may be the wrong way round.
fn between(model: &Model, range: &(Bound<Key>, Bound<Key>)) -> Model {
    let from = |key: &Key| match &range.0 {
        Bound::Included(start) => key >= start,
        Bound::Excluded(start) => key > start,
        Bound::Unbounded => true,
    };
    let to = |key: &Key| match &range.1 {
        Bound::Included(end) => key <= end,
        Bound::Excluded(end) => key < end,
        Bound::Unbounded => true,
    };
    model.iter().filter(|(key, _)| from(key) && to(key)).map(|(key, value)| (key.clone(), *value)).collect()
}

/// One operation, by the table or a view of it in a transaction.
macro_rules! operation {
    ($t:expr, $model:expr, $rng:expr) => {{
        let (t, model, rng) = ($t, &mut *$model, &mut *$rng);
        let key = random_key(rng);
        let (there, value) = (model.get(&key).copied(), rng.below(5) as i64 - 2);
        let range = (random_bound(rng), random_bound(rng));
        let bounds = (range.0.as_ref().map(lend), range.1.as_ref().map(lend));
        match rng.below(20) {
            0..=4 => {
                t.put(lend(&key), value).unwrap();
                model.insert(key, value);
            }
            5 => {
                t.remove(lend(&key)).unwrap();
                model.remove(&key);
            }
            6 => {
                assert_eq!(t.remove_existing(lend(&key)).unwrap(), there.is_some());
                model.remove(&key);
            }
            7 => assert_eq!(t.take(lend(&key)).unwrap(), model.remove(&key)),
            8 => {
                assert_eq!(t.add(lend(&key), value).unwrap(), there.is_none());
                model.entry(key).or_insert(value);
            }
            9 => {
                assert_eq!(t.replace(lend(&key), value).unwrap(), there.is_some());
                model.entry(key).and_modify(|old| *old = value);
            }
            10 => {
                let new = (value != 0).then_some(value);
                let equal = there == Some(1);
                assert_eq!(t.compare_and_swap(lend(&key), Some(1), new).unwrap(), equal);
                if equal {
                    new.map(|new| model.insert(key.clone(), new)).is_none().then(|| model.remove(&key));
                }
            }
            11 => {
                let twice = |old: Option<i64>| old.filter(|old| *old != 0).map(|old| old.wrapping_mul(2));
                t.update(lend(&key), twice).unwrap();
                model.remove(&key);
                twice(there).map(|new| model.insert(key, new));
            }
            12 => {
                let sum = there.unwrap_or(0).wrapping_add(value);
                assert_eq!(t.increment(lend(&key), value).unwrap(), sum);
                model.insert(key, sum);
            }
            13 => assert_eq!(t.pop_first().unwrap(), model.pop_first()),
            14 => assert_eq!(t.pop_last().unwrap(), model.pop_last()),
            15 => {
                let inside = between(model, &range);
                let gone = t.retain(bounds, |(text, _), value| value > 0 && !text.is_empty()).unwrap();
                let refused = |(key, value): &(&Key, &i64)| **value <= 0 || key.0.is_empty();
                let wanted: Vec<_> = inside.iter().filter(refused).map(|(key, _)| key.clone()).collect();
                assert_eq!(gone, wanted.len() as u64);
                model.retain(|key, _| !wanted.contains(key));
            }
            16 if rng.one_in(3) => {
                t.remove_range(bounds).unwrap();
                let inside = between(model, &range);
                model.retain(|key, _| !inside.contains_key(key));
            }
            17 => {
                let mut found: Vec<_> = t.range(bounds).unwrap().map(Result::unwrap).collect();
                assert_eq!(found, between(model, &range).into_iter().collect::<Vec<_>>());
                found.reverse();
                assert_eq!(t.range(bounds).unwrap().rev().map(Result::unwrap).collect::<Vec<_>>(), found);
            }
            18 => {
                let found: Model = t.prefix((key.0.as_str(),)).unwrap().map(Result::unwrap).collect();
                let mut wanted = model.clone();
                wanted.retain(|other, _| other.0 == key.0);
                assert_eq!(found, wanted);
            }
            _ => {
                assert_eq!(t.get(lend(&key)).unwrap(), there);
                assert_eq!(t.contains(lend(&key)).unwrap(), there.is_some());
                let keys: Vec<_> = (0..9).map(|_| random_key(rng)).collect();
                let wanted: Vec<_> = keys.iter().map(|key| model.get(key).copied()).collect();
                assert_eq!(t.get_many(keys.iter().map(lend)).unwrap(), wanted);
                let own = |record: Option<(&Key, &i64)>| record.map(|(key, value)| (key.clone(), *value));
                assert_eq!(t.first().unwrap(), own(model.first_key_value()));
                assert_eq!(t.last().unwrap(), own(model.last_key_value()));
            }
        }
    }};
}

#[test]
fn a_table_with_types_does_what_a_map_does() {
    for seed in 1..=8 {
        let (mut rng, storage, mut model) = (Rng::new(seed), MemStorage::default(), Model::new());
        let (mut db, mut table) = open(&storage);
        for _ in 0..600 {
            match rng.below(60) {
                0 => {
                    drop(table);
                    db.close().unwrap();
                    (db, table) = open(&storage);
                }
                1 => db.flush().unwrap(),
                2..=9 => {
                    let (mut txn, mut changed) = (db.write(), model.clone());
                    for _ in 0..rng.below(10) {
                        operation!(&mut table.write_in(&mut txn), &mut changed, &mut rng);
                    }
                    if rng.one_in(3) {
                        let range = (random_bound(&mut rng), random_bound(&mut rng));
                        let bounds = (range.0.as_ref().map(lend), range.1.as_ref().map(lend));
                        let drained = table.write_in(&mut txn).drain(bounds).unwrap();
                        let gone = between(&changed, &range);
                        assert_eq!(drained.map(Result::unwrap).collect::<Model>(), gone);
                        changed.retain(|key, _| !gone.contains_key(key));
                    }
                    if rng.one_in(4) {
                        txn.rollback();
                    } else {
                        txn.commit().unwrap();
                        model = changed;
                    }
                }
                _ => operation!(&table, &mut model, &mut rng),
            }
        }
        let snapshot = db.read();
        let view = table.read_in(&snapshot);
        assert_eq!(view.iter().unwrap().map(Result::unwrap).collect::<Model>(), model);
        assert_eq!(view.count().unwrap(), model.len() as u64);
        let mut cursor = view.cursor().unwrap();
        for ((text, number), value) in &model {
            let ((found, n), v) = cursor.next().unwrap().unwrap();
            assert_eq!((&*found, n, v), (text.as_str(), *number, *value));
        }
        assert!(cursor.next().unwrap().is_none());
    }
}

#[test]
fn what_has_another_form_is_an_error_and_stays() {
    let storage = MemStorage::default();
    let (db, table) = open(&storage);
    table.put(("a", 1), 7).unwrap();
    let raw = table.table();
    let mut key = raw.first().unwrap().unwrap().0;
    key[0] = b'b';
    raw.put(&key, "seven").unwrap();
    let wrong = |what: &str, error: Option<Error>| {
        let Some(Error::WrongType { detail }) = error else { panic!("{what} gave {error:?}") };
        assert!(detail.contains("\"typed\"") && detail.contains("6200018001: 5 bytes"), "{what}: {detail}");
    };
    wrong("get", table.get(("b", 1)).err());
    wrong("take", table.take(("b", 1)).err());
    wrong("pop_last", table.pop_last().err());
    wrong("update", table.update(("b", 1), |_| Some(1)).err());
    wrong("retain", table.retain(.., |_, _| false).err());
    let seen: Vec<_> = table.iter().unwrap().collect();
    assert_eq!(seen.len(), 2);
    wrong("iter", seen.into_iter().nth(1).unwrap().err());
    let mut txn = db.write();
    wrong("pop_last", table.write_in(&mut txn).pop_last().err());
    txn.commit().unwrap();
    assert_eq!(raw.count().unwrap(), 2, "nothing was removed");
    raw.put("c", "no tuple").unwrap();
    assert!(matches!(table.last(), Err(Error::WrongType { .. })));
    assert_eq!(table.first().unwrap(), Some((("a".to_owned(), 1), 7)));
    drop(table);
    db.close().unwrap();
}
