//! Pages of all shapes in one database: tables of records of several sizes, records too large for the pages
//! that they come to, and a page cache that holds neither table.

use crate::common::Rng;
use azekura::storage::MemStorage;
use azekura::{Db, Durability, Options, Table, TableKind};
use std::collections::BTreeMap;
use std::time::Duration;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(storage: &MemStorage) -> Db {
    crate::common::watch(Duration::from_secs(120));
    let options =
        Options::new().memory_bytes(8 << 20).memtable_bytes(1 << 20).durability(Durability::Eventual);
    Db::open_on(storage, "/pages.azk", options).unwrap()
}

/// Bytes that do not compress, of a length from `from` to `to`.
fn bytes(rng: &mut Rng, from: u64, to: u64) -> Vec<u8> {
    let len = usize::try_from(from + rng.number() % (to - from + 1)).unwrap();
    let mut out = vec![0; len];
    for part in out.chunks_mut(8) {
        part.copy_from_slice(&rng.number().to_le_bytes()[..part.len()]);
    }
    out
}

/// A key with one of a few prefixes, so that pages have common ones, too.
fn key(rng: &mut Rng) -> Vec<u8> {
    let mut key = format!("https://site{}.example/", rng.number() % 7).into_bytes();
    key.extend(bytes(rng, 3, 12));
    key
}

fn compare(t: &Table, model: &Model, rng: &mut Rng) {
    let mut out = Vec::new();
    for (key, value) in model {
        assert!(t.get_into(key, &mut out).unwrap() && out == *value, "the value of {key:?}");
    }
    let keys: Vec<Vec<u8>> = (0..1000).map(|_| key(rng)).collect();
    for (key, value) in keys.iter().zip(t.get_many(&keys).unwrap()) {
        assert_eq!(value.as_ref(), model.get(key), "the value of {key:?}");
    }
    let mut cursor = t.cursor().unwrap();
    let mut found = Model::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        found.insert(key.to_vec(), value.bytes().unwrap().to_vec());
    }
    assert!(found == *model, "a scan finds other records");
}

/// Puts, replaces and removes; one record in a thousand is as large as a record can be in a page.
fn write(db: &Db, t: &Table, model: &mut Model, rng: &mut Rng, values: (u64, u64)) {
    for _ in 0..40 {
        let mut w = db.write();
        for _ in 0..500 {
            let (mut k, mut v) = (key(rng), bytes(rng, values.0, values.1));
            if rng.number().is_multiple_of(1000) {
                k.resize(4000 + usize::try_from(rng.number() % 61_000).unwrap(), b'k');
                v = bytes(rng, 0, 1023);
            }
            w.put(t, &k, &v).unwrap();
            model.insert(k, v);
        }
        if let Some(gone) = model.keys().nth(usize::try_from(rng.number() % 300).unwrap()).cloned() {
            w.remove(t, &gone).unwrap();
            model.remove(&gone);
        }
        w.commit().unwrap();
    }
}

#[test]
fn records_of_all_sizes_come_back() {
    let storage = MemStorage::default();
    let mut rng = Rng::new(20_261_121);
    // Fixed-width, small, middling, and large.
    let sizes = [(4, 4), (10, 60), (150, 350), (600, 1000)];
    let names = ["numbers", "small", "middling", "large"];
    let kinds = [TableKind::Ordered, TableKind::Ordered, TableKind::Hash, TableKind::Hash];
    let mut models: Vec<Model> = vec![Model::new(); names.len()];
    for round in 0..3u64 {
        let db = open(&storage);
        let tables: Vec<Table> = (0..names.len()).map(|i| db.table(names[i], kinds[i]).unwrap()).collect();
        let mut w = db.write();
        for i in 0..20_000 {
            let (k, v) = ((i * (round + 3)).to_be_bytes(), bytes(&mut rng, 4, 4));
            w.put(&tables[0], &k, &v).unwrap();
            models[0].insert(k.to_vec(), v);
        }
        w.commit().unwrap();
        for i in 1..names.len() {
            write(&db, &tables[i], &mut models[i], &mut rng, sizes[i]);
        }
        for (t, model) in tables.iter().zip(&models) {
            compare(t, model, &mut rng);
        }
        if round == 1 {
            db.compact().unwrap();
        }
        db.flush().unwrap();
        let report = db.check(|_| {}).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        let stats = db.stats();
        assert!(stats.cache_evictions > 0, "the cache held everything");
        assert!(stats.cache_bytes <= 8 << 20, "{} bytes cached", stats.cache_bytes);
        drop(tables);
        db.close().unwrap();
        let db = open(&storage);
        for (name, model) in names.iter().zip(&models) {
            compare(&db.open_table(name).unwrap(), model, &mut rng);
        }
        db.close().unwrap();
    }
}
