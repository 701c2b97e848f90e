//! Walks over levels of several partitions, between which there are gaps.

use super::*;
use std::collections::BTreeMap;
use std::ops::Bound;

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

/// Where a cursor stands, as the model sees it: before, or just after a key.
struct Place(Bound<Vec<u8>>, Bound<Vec<u8>>);

impl Place {
    fn before(key: &[u8]) -> Place {
        Place(Bound::Excluded(key.to_vec()), Bound::Included(key.to_vec()))
    }

    /// What comes next this way.
    fn step(&mut self, model: &Model, forward: bool) -> Option<(Vec<u8>, Vec<u8>)> {
        let found = if forward {
            model.range((self.1.clone(), Bound::Unbounded)).next()
        } else {
            model.range((Bound::Unbounded, self.0.clone())).next_back()
        };
        let found = found.map(|(key, value)| (key.clone(), value.clone()));
        *self = match &found {
            Some((key, _)) if forward => Place(Bound::Included(key.clone()), Bound::Excluded(key.clone())),
            Some((key, _)) => Place::before(key),
            None => Place::before(if forward { &[255; 9] } else { &[] }),
        };
        found
    }
}

/// One cursor goes here and there, so that what it has kept of the last place is met in the next one.
#[test]
fn one_cursor_seeks_and_steps_at_random() {
    for removes in [false, true] {
        seek_and_step_at_random(removes);
    }
}

/// While a range is removed in memory, each step looks at all sources.
fn seek_and_step_at_random(removes: bool) {
    let db = database();
    let table = db.create_table("gaps", TableKind::Ordered).unwrap();
    let mut model = Model::new();
    let mut put = |keys: std::iter::StepBy<std::ops::Range<u64>>, letter: u8| {
        let records: Vec<_> =
            keys.map(|i| (i.to_be_bytes().to_vec(), vec![letter; (i % 700) as usize])).collect();
        table.put_many(records.iter().map(|(k, v)| (k, v))).unwrap();
        model.extend(records);
    };
    for (range, step) in [(1000..1300, 1), (3000..3300, 1), (5000..5300, 1), (1100..5200, 150)] {
        put(range.step_by(step), b'l');
        db.flush().unwrap();
    }
    put((1050..5250).step_by(90), b'm');
    if removes {
        let (start, end) = (3050u64.to_be_bytes(), 3100u64.to_be_bytes());
        table.remove_range(start..end).unwrap();
        model.retain(|key, _| !(start.to_vec()..end.to_vec()).contains(key));
    }
    let (mut cursor, mut place, mut x) = (table.cursor().unwrap(), Place::before(&[]), 1u64);
    for n in 0..20_000 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        let key = ((x >> 33) % 6000).to_be_bytes();
        if x >> 60 == 0 {
            cursor.seek(key).unwrap();
            place = Place::before(&key);
        }
        let forward = x >> 56 & 7 != 0 && (n / 500) % 2 == 0;
        let got = if forward { cursor.next() } else { cursor.prev() }.unwrap();
        let got = got.map(|(key, value)| (key.to_vec(), value.bytes().unwrap().to_vec()));
        let expected = place.step(&model, forward);
        assert!(got == expected, "step {n}: {:?} for {:?}", got.map(|r| r.0), expected.map(|r| r.0));
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
    let newest = db.engine.state.load().tables[0].levels[0].runs[0].clone();
    assert_eq!(newest.meta().unwrap().pages(), 0);
    model.retain(|key, _| !(200u64.to_be_bytes().to_vec()..400u64.to_be_bytes().to_vec()).contains(key));
    for i in [0, 199, 200, 201, 300, 399, 400, 401, 999, 1000] {
        check(&table, &model, &u64::to_be_bytes(i));
    }
}

/// A seek forward above all keys of a level reads nothing of it.
#[test]
fn seeks_above_a_level_do_not_read_it() {
    let db = database();
    let table = db.open_table("t").unwrap();
    table.put(2000u64.to_be_bytes(), "above").unwrap();
    assert_eq!(taken(&table, &1500u64.to_be_bytes(), true).len(), 1);
    let is_read = || bottom(&db.engine.state.load()).runs.iter().any(|run| run.is_read());
    assert!(!is_read());
    assert_eq!(taken(&table, &1500u64.to_be_bytes(), false).len(), 30);
    assert!(is_read());
}
