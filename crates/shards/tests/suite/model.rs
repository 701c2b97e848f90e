//! What a reader finds is what was written, whatever the shards are.

use crate::common::{Place, random, some_records, write_version};
use azekura::TableKind;
use azekura_shards::{ReadOptions, ShardedReader, Spec, Version, verify, versions};
use std::collections::BTreeMap;
use std::ops::Bound;

#[test]
fn a_set_is_a_map() {
    for (seed, shards, kind) in [
        (1, 1, TableKind::Hash),
        (2, 3, TableKind::Hash),
        (3, 64, TableKind::Hash),
        (4, 1, TableKind::Ordered),
        (5, 7, TableKind::Ordered),
    ] {
        println!("seed {seed}");
        let place = Place::new();
        let records = some_records(5000, seed);
        let spec = Spec { kind, hash_seed: seed * 7, ..Spec::hash(shards) };
        assert_eq!(write_version(&place.set(), &spec, &records), 1);
        let reader = ShardedReader::open(place.set()).expect("a reader");
        let version = reader.version();
        assert_eq!(version.manifest().records, 5000);

        let mut random = random(seed);
        let mut keys: Vec<Vec<u8>> = records.keys().cloned().collect();
        keys.extend((0..2000).map(|i| format!("absent {i}").into_bytes()));
        keys.extend((0..500).map(|_| random(1 << 31).to_be_bytes().to_vec()));
        keys.sort_by_cached_key(|_| random(1 << 31));
        let found = reader.get_many(&keys).expect("values");
        for (key, value) in keys.iter().zip(&found) {
            assert_eq!(value.as_ref(), records.get(key), "{key:?}");
        }
        for key in keys.iter().take(500) {
            assert_eq!(reader.get(key).expect("a get").as_ref(), records.get(key));
        }
        let mut all = BTreeMap::new();
        for shard in 0..version.manifest().files.len() {
            let mut cursor = version.cursor(shard).expect("a cursor");
            while let Some((key, value)) = cursor.next().expect("a record") {
                all.insert(key.to_vec(), value.bytes().expect("a value").to_vec());
            }
        }
        assert!(all == records);
        let report = verify(place.set(), None, |_, _| {}).expect("a report");
        assert_eq!((report.problems, report.records), (Vec::<String>::new(), 5000));
    }
}

#[test]
fn ranges_of_ordered_sets_are_in_few_shards() {
    let place = Place::new();
    let records = (0..1000_u32).map(|i| (i.to_be_bytes().to_vec(), vec![1])).collect();
    write_version(&place.set(), &Spec::ordered(10), &records);
    let version = Version::open(place.set(), ReadOptions::default()).expect("a version");
    let key = |i: u32| i.to_be_bytes();
    assert_eq!(version.places_in(&(key(250)..key(400))), [2, 3]);
    assert_eq!(version.places_in(&(key(250)..=key(400))), [2, 3, 4]);
    assert_eq!(version.places_in(&(key(250)..=key(250))), [2]);
    assert_eq!(version.places_in(&(Bound::Excluded(key(299)), Bound::Unbounded)), [3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(version.places_in(&(key(1000)..)), Vec::<usize>::new());
    assert_eq!(version.places_in(&(..)).len(), 10);
}

#[test]
fn readers_go_to_a_newer_version_when_they_are_told_and_all_at_once() {
    let place = Place::new();
    let records = |value: &str| (0..300_u64).map(|i| (i.to_be_bytes().to_vec(), value.into())).collect();
    write_version(&place.set(), &Spec::hash(4), &records("old"));
    let reader = ShardedReader::open(place.set()).expect("a reader");
    let chosen = ReadOptions { version: Some(1), ..ReadOptions::default() };
    let fixed = ShardedReader::open_with(place.set(), chosen).expect("a reader");
    let held = reader.version();
    assert!(!reader.refresh().expect("nothing newer"));
    assert_eq!(write_version(&place.set(), &Spec::hash(3), &records("new")), 2);

    let get = |reader: &ShardedReader| reader.get(&7_u64.to_be_bytes()).expect("a get");
    assert_eq!(get(&reader).as_deref(), Some(&b"old"[..]));
    assert!(reader.refresh().expect("the newer one"));
    assert!(!fixed.refresh().expect("it stays"));
    assert_eq!(get(&reader).as_deref(), Some(&b"new"[..]));
    assert_eq!(get(&fixed).as_deref(), Some(&b"old"[..]));
    assert_eq!(held.get(&8_u64.to_be_bytes()).expect("a get").as_deref(), Some(&b"old"[..]));
    assert_eq!(versions(place.set()).expect("two"), [1, 2]);
}

#[test]
fn readers_on_other_threads_never_see_two_versions_in_one_call() {
    let place = Place::new();
    let keys: Vec<[u8; 8]> = (0..200_u64).map(u64::to_be_bytes).collect();
    let records = |version: u8| keys.iter().map(|key| (key.to_vec(), vec![version])).collect();
    write_version(&place.set(), &Spec::hash(4), &records(1));
    let reader = ShardedReader::open(place.set()).expect("a reader");
    let done = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = vec![1];
                while !done.load(relaxed) {
                    let found = reader.get_many(&keys).expect("values");
                    let first = found[0].clone().expect("a value");
                    assert!(found.iter().all(|value| value.as_ref() == Some(&first)));
                    assert!(first >= last, "no way back");
                    last = first;
                }
            });
        }
        for version in 2..8 {
            write_version(&place.set(), &Spec::hash(u32::from(version)), &records(version));
            assert!(reader.refresh().expect("the newer one"));
        }
        done.store(true, relaxed);
    });
}

#[test]
fn sets_that_are_not_there_say_so() {
    let place = Place::new();
    let missing = ShardedReader::open(place.set()).expect_err("nothing is there");
    assert!(matches!(missing, azekura::Error::Open { .. }), "{missing}");
    write_version(&place.set(), &Spec::hash(2), &some_records(10, 1));
    let chosen = ReadOptions { version: Some(9), ..ReadOptions::default() };
    let missing = ShardedReader::open_with(place.set(), chosen).expect_err("there is one version");
    assert!(missing.to_string().contains("manifest-0009.json"), "{missing}");
}
