//! Walks over levels of several partitions, between which there are gaps.

use super::*;
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a cursor gives from a key on, this way.
fn taken(table: &crate::Table, key: &[u8], forward: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = table.cursor().unwrap();
    cursor.seek(key).unwrap();
    let mut taken = Vec::new();
    while taken.len() < 30
        && let Some((key, value)) = (if forward { cursor.next() } else { cursor.prev() }).unwrap()
    {
        taken.push((key.to_vec(), value.bytes().unwrap().to_vec()));
    }
    taken
}

fn check(table: &crate::Table, model: &Model, key: &[u8]) {
    let copy = |(k, v): (&Vec<u8>, &Vec<u8>)| (k.clone(), v.clone());
    let up: Vec<_> = model.range(key.to_vec()..).take(30).map(copy).collect();
    let down: Vec<_> = model.range(..key.to_vec()).rev().take(30).map(copy).collect();
    assert_eq!(taken(table, key, true), up, "up from {key:?}");
    assert_eq!(taken(table, key, false), down, "down from {key:?}");
}

/// Keys of eight bytes, and longer ones, for which fences are searched in different ways.
#[test]
fn seeks_between_the_partitions_of_a_level_find_the_next_one() {
    for suffix in [&b""[..], b" and more"] {
        let db = database();
        let table = db.create_table("gaps", TableKind::Ordered).unwrap();
        let mut model = Model::new();
        let key = |i: u64| [&i.to_be_bytes()[..], suffix].concat();
        let value = |i: u64| vec![i as u8; (i % 7 * 90) as usize];
        let mut put = |range: std::ops::Range<u64>, step: usize| {
            let records: Vec<_> = range.step_by(step).map(|i| (key(i), value(i))).collect();
            table.put_many(records.iter().map(|(k, v)| (k, v))).unwrap();
            model.extend(records);
            db.flush().unwrap();
        };
        // The first three meet no other, and join one level. The others are levels of their own.
        [1000..1300, 3000..3300, 5000..5300].into_iter().for_each(|range| put(range, 1));
        put(1100..5200, 150);
        put(1200..3100, 70);
        let state = db.engine.state.load_full();
        let levels = &state.tables.iter().find(|t| &*t.name == "gaps").unwrap().levels;
        assert_eq!(levels.iter().map(|l| l.runs.len()).collect::<Vec<_>>(), [1, 1, 3]);
        for i in (0..6500).step_by(37).chain([999, 1000, 1299, 1300, 2999, 3300, 5299, 5300]) {
            check(&table, &model, &key(i));
        }
        check(&table, &model, b"");
        check(&table, &model, &[255; 9]);
    }
}

/// A partition may hold nothing but a range delete.
#[test]
fn seeks_pass_over_partitions_without_pages() {
    let db = database();
    let table = db.open_table("t").unwrap();
    let mut model: Model =
        (0..1000u64).map(|i| (i.to_be_bytes().to_vec(), i.to_be_bytes().to_vec())).collect();
    table.remove_range(200u64.to_be_bytes()..400u64.to_be_bytes()).unwrap();
    db.flush().unwrap();
    model.retain(|key, _| !(200u64.to_be_bytes().to_vec()..400u64.to_be_bytes().to_vec()).contains(key));
    for i in [0, 199, 200, 201, 300, 399, 400, 401, 999, 1000] {
        check(&table, &model, &u64::to_be_bytes(i));
    }
}
