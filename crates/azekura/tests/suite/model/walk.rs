//! Comparing what a table gives with its model: gets of every form, scans, and random walks.

use super::data::Family;
use crate::common::Rng;
use azekura::{Cursor, LazyValue, ReadTxn, Result, Table, TableKind, ValueRef, WriteTxn};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// What a table holds. Values are shared, so that copies are cheap.
pub type Map = BTreeMap<Vec<u8>, Arc<[u8]>>;

/// Where to read from.
pub enum Reader<'a> {
    /// Each read on its own.
    Table,
    /// A snapshot.
    Read(&'a ReadTxn),
    /// An open transaction.
    Write(&'a mut WriteTxn),
}

macro_rules! each {
    ($reader:expr, $table:expr, $method:ident ( $($arg:expr),* )) => {
        match $reader {
            Reader::Table => $table.$method($($arg),*),
            Reader::Read(r) => r.$method($table, $($arg),*),
            Reader::Write(w) => w.$method($table, $($arg),*),
        }
    };
}

impl Reader<'_> {
    fn get(&mut self, t: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        each!(self, t, get(key))
    }

    fn get_ref<'b>(&'b self, t: &Table, key: &[u8]) -> Result<Option<ValueRef<'b>>> {
        each!(self, t, get_ref(key))
    }

    fn cursor(&mut self, t: &Table) -> Result<Cursor> {
        each!(self, t, cursor())
    }
}

/// Shortens keys and values for messages.
pub fn short(bytes: &[u8]) -> String {
    let head: String = bytes.iter().take(24).map(|b| format!("{b:02x}")).collect();
    format!("{head}({})", bytes.len())
}

fn show(found: Option<&[u8]>) -> String {
    found.map_or("none".into(), short)
}

fn expect(what: &str, key: &[u8], found: Option<&[u8]>, model: &Map) {
    let wanted = model.get(key).map(|v| &v[..]);
    assert!(found == wanted, "{what}({}) is {}, should be {}", short(key), show(found), show(wanted));
}

/// A few reads of single keys.
pub fn some_gets(mut reader: Reader<'_>, t: &Table, family: &Family, model: &Map, rng: &mut Rng) {
    let mut out = Vec::new();
    for _ in 0..rng.below(12) {
        let key = family.random_key(rng);
        match rng.below(5) {
            0 => expect("get", &key, reader.get(t, &key).unwrap().as_deref(), model),
            1 => {
                let there = each!(&mut reader, t, get_into(&key, &mut out)).unwrap();
                expect("get_into", &key, there.then_some(&out[..]), model);
            }
            2 => {
                let there = each!(&mut reader, t, contains(&key)).unwrap();
                assert_eq!(there, model.contains_key(&key), "contains({})", short(&key));
            }
            3 => {
                expect("get_ref", &key, reader.get_ref(t, &key).unwrap().as_deref(), model);
            }
            _ => {
                let keys: Vec<Vec<u8>> = (0..rng.below(100)).map(|_| family.random_key(rng)).collect();
                let found = each!(&mut reader, t, get_many(&keys)).unwrap();
                for (key, found) in keys.iter().zip(found) {
                    expect("get_many", key, found.as_deref(), model);
                }
            }
        }
    }
}

/// Gets of keys in ascending order, as a loop over sorted input does: the position hint.
pub fn gets_in_order(mut reader: Reader<'_>, t: &Table, model: &Map, rng: &mut Rng) {
    let from = rng.below(model.len() as u64 + 1) as usize;
    let n = rng.below(2000) as usize;
    let miss = rng.one_in(2);
    for (key, value) in model.iter().skip(from).take(n) {
        if miss && key.len() < 65_536 && rng.one_in(30) {
            let mut other = key.clone();
            other.push(0);
            expect("get in order", &other, reader.get(t, &other).unwrap().as_deref(), model);
            continue;
        }
        if rng.one_in(4) {
            let found = reader.get_ref(t, key).unwrap();
            assert_eq!(found.as_deref(), Some(&value[..]), "get_ref in order ({})", short(key));
        } else {
            expect("get in order", key, reader.get(t, key).unwrap().as_deref(), model);
        }
    }
}

/// Everything, forward or backward, and the count.
pub fn whole(mut reader: Reader<'_>, t: &Table, model: &Map, backward: bool) {
    let n = each!(&mut reader, t, count()).unwrap();
    assert_eq!(n, model.len() as u64, "count");
    let cursor = reader.cursor(t).unwrap();
    whole_of(cursor, t.kind(), model, backward);
}

/// Everything that a cursor gives.
pub fn whole_of(mut cursor: Cursor, kind: TableKind, model: &Map, backward: bool) {
    if backward {
        cursor.seek_last();
    } else {
        cursor.seek_first();
    }
    if kind == TableKind::Hash {
        let mut found = Map::new();
        let step = |c: &mut Cursor| {
            let record = if backward { c.prev() } else { c.next() };
            read(record).map(|(k, v)| (k.to_vec(), Arc::from(v)))
        };
        while let Some((k, v)) = step(&mut cursor) {
            let twice = found.insert(k, v);
            assert!(twice.is_none(), "a scan of a hash table gives a key twice");
        }
        same(&found, model);
        return;
    }
    let mut wanted: Box<dyn Iterator<Item = _>> =
        if backward { Box::new(model.iter().rev()) } else { Box::new(model.iter()) };
    let mut i = 0;
    loop {
        let found = read(if backward { cursor.prev() } else { cursor.next() });
        let want = wanted.next().map(|(k, v)| (&k[..], &v[..]));
        assert!(
            found == want,
            "record {i} of a scan (backward: {backward}) is {}, should be {}",
            pair(found),
            pair(want)
        );
        if found.is_none() {
            return;
        }
        i += 1;
    }
}

/// A cursor's record with its value.
fn read<'a>(record: Result<Option<(&'a [u8], LazyValue<'a>)>>) -> Option<(&'a [u8], &'a [u8])> {
    record.unwrap().map(|(key, value)| {
        let len = value.len();
        let bytes = value.bytes().unwrap();
        assert_eq!(bytes.len(), len, "the length of the value of {}", short(key));
        (key, bytes)
    })
}

fn pair(record: Option<(&[u8], &[u8])>) -> String {
    record.map_or("none".into(), |(k, v)| format!("{}={}", short(k), short(v)))
}

fn same(found: &Map, model: &Map) {
    for (k, v) in model {
        let there = found.get(k);
        assert!(there == Some(v), "{} is {}, should be {}", short(k), show(there.map(|v| &v[..])), short(v));
    }
    for k in found.keys() {
        assert!(model.contains_key(k), "{} should not be there", short(k));
    }
}

/// All records, or those of a range, taken now from one end and now from the other; and the ends alone.
pub fn both_ends(mut reader: Reader<'_>, t: &Table, family: &Family, model: &Map, rng: &mut Rng) {
    let is_hash = t.kind() == TableKind::Hash;
    let (start, end) = match rng.below(2) {
        0 if !is_hash => {
            (random_bound(family.random_key(rng), rng), random_bound(family.random_key(rng), rng))
        }
        _ => (Bound::Unbounded, Bound::Unbounded),
    };
    let (start, end) = (as_bound(&start), as_bound(&end));
    let mut records = match (start, end) {
        (Bound::Unbounded, Bound::Unbounded) => each!(&mut reader, t, iter()).unwrap(),
        _ => each!(&mut reader, t, range((start, end))).unwrap().owned(),
    };
    let inside = |key: &[u8]| above(key, start) && below(key, end);
    let mut wanted = model.iter().filter(|(k, _)| inside(k)).map(|(k, v)| (k.clone(), v.to_vec()));
    let turn = [1, 2, 30][rng.below(3) as usize];
    let (mut back, mut seen) = (false, Map::new());
    loop {
        back ^= rng.one_in(turn);
        let found = if back { records.next_back() } else { records.next() }.map(Result::unwrap);
        if is_hash {
            let Some((key, value)) = found else { break };
            assert!(seen.insert(key, value.into()).is_none(), "both ends gave a key of a hash table");
            continue;
        }
        let want = if back { wanted.next_back() } else { wanted.next() };
        assert!(found == want, "both ends (back: {back}) gave {found:?}, should be {want:?}");
        if found.is_none() {
            break;
        }
    }
    if is_hash {
        return same(&seen, model);
    }
    let copy = |record: Option<(&Vec<u8>, &Arc<[u8]>)>| record.map(|(k, v)| (k.clone(), v.to_vec()));
    assert_eq!(each!(&mut reader, t, first()).unwrap(), copy(model.first_key_value()), "first");
    assert_eq!(each!(&mut reader, t, last()).unwrap(), copy(model.last_key_value()), "last");
}

/// A random walk with a cursor that may be limited to a range or a prefix.
pub fn random_walk(mut reader: Reader<'_>, t: &Table, family: &Family, model: &Map, rng: &mut Rng) {
    if t.kind() == TableKind::Hash {
        let mut order = Vec::new();
        let mut cursor = reader.cursor(t).unwrap();
        while let Some((k, v)) = cursor.next().unwrap() {
            order.push((k.to_vec(), Arc::from(v.bytes().unwrap())));
        }
        let place = order.len();
        return walk(&mut cursor, &order, place, None, rng);
    }
    let (a, b) = (family.random_key(rng), family.random_key(rng));
    type Inside = Box<dyn Fn(&[u8]) -> bool>;
    let (cursor, inside): (_, Inside) = match rng.below(4) {
        0 => (reader.cursor(t), Box::new(|_| true)),
        1 => {
            let prefix = a[..rng.below(a.len().min(12) as u64 + 1) as usize].to_vec();
            (each!(&mut reader, t, prefix(&prefix)), Box::new(move |k| k.starts_with(&prefix)))
        }
        _ => {
            let (start, end) = (random_bound(a, rng), random_bound(b, rng));
            let (s, e) = (as_bound(&start), as_bound(&end));
            let cursor = each!(&mut reader, t, range((s, e)));
            (cursor, Box::new(move |k| above(k, as_bound(&start)) && below(k, as_bound(&end))))
        }
    };
    let order: Vec<_> =
        model.iter().filter(|(k, _)| inside(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
    walk(&mut cursor.unwrap(), &order, 0, Some(family), rng);
}

/// A bound at a key, or none.
pub fn random_bound(key: Vec<u8>, rng: &mut Rng) -> Bound<Vec<u8>> {
    match rng.below(6) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

/// The same bound by reference.
pub fn as_bound(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(|k| &k[..])
}

/// Whether a key lies on the inner side of a lower bound.
pub fn above(key: &[u8], start: Bound<&[u8]>) -> bool {
    match start {
        Bound::Unbounded => true,
        Bound::Included(k) => key >= k,
        Bound::Excluded(k) => key > k,
    }
}

/// Whether a key lies on the inner side of an upper bound.
pub fn below(key: &[u8], end: Bound<&[u8]>) -> bool {
    match end {
        Bound::Unbounded => true,
        Bound::Included(k) => key <= k,
        Bound::Excluded(k) => key < k,
    }
}

/// Walks about; the cursor stands before record `place` of `order` at first. `family`: seek too.
pub fn walk(
    cursor: &mut Cursor,
    order: &[(Vec<u8>, Arc<[u8]>)],
    place: usize,
    family: Option<&Family>,
    rng: &mut Rng,
) {
    let mut place = place;
    let mut trace = format!("{} records, from {place}:", order.len());
    for _ in 0..rng.below(25) {
        let steps = 1 + rng.number() % [3, 3, 3, 3000][rng.below(4) as usize];
        match rng.below(10) {
            0 => {
                cursor.seek_first();
                trace += " first";
                place = 0;
            }
            1 => {
                cursor.seek_last();
                trace += " last";
                place = order.len();
            }
            2..=4 => {
                let Some(family) = family else { continue };
                let key = family.random_key(rng);
                cursor.seek(&key).unwrap();
                place = order.partition_point(|(k, _)| *k < key);
                trace += &format!(" seek {}", short(&key));
            }
            5..=7 => {
                for _ in 0..steps {
                    let want = order.get(place).map(|(k, v)| (&k[..], &v[..]));
                    let found = read(cursor.next());
                    assert!(found == want, "{trace} next is {}, should be {}", pair(found), pair(want));
                    place = (place + 1).min(order.len());
                }
                trace += &format!(" next to {place}");
            }
            _ => {
                for _ in 0..steps {
                    let want = place.checked_sub(1).map(|i| (&order[i].0[..], &order[i].1[..]));
                    let found = read(cursor.prev());
                    assert!(found == want, "{trace} prev is {}, should be {}", pair(found), pair(want));
                    place = place.saturating_sub(1);
                }
                trace += &format!(" prev to {place}");
            }
        }
    }
}
