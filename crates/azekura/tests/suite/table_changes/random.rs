//! Random transactions that change tables, beside a model; now and then the power is cut.
//!
//! `AZEKURA_SEED=n` runs that round alone.

use super::{check, is_missing, names};
use azekura::{Db, Isolation, Lifetime, Options, Table, TableKind, WriteOptions, WriteTxn};
use sim::disk::{Disk, Keep};
use sim::rng::Rng;
use std::collections::BTreeMap;
use std::time::Duration;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone)]
struct Modelled {
    table: Table,
    records: Records,
    /// How long its records live, in seconds: longer than the test.
    lives: Option<u64>,
}

/// Tables by name.
type Model = BTreeMap<String, Modelled>;

const PATH: &str = "random.azk";
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn options() -> Options {
    Options::new()
        .memory_bytes(8 << 20)
        .memtable_bytes(64 << 10)
        .threads(false)
        .eventual_delay(Duration::from_secs(60))
}

fn any_name(rng: &mut Rng) -> String {
    NAMES[rng.below(NAMES.len() as u64) as usize].into()
}

fn any_key(rng: &mut Rng) -> Vec<u8> {
    if rng.one_in(2) { rng.below(30).to_be_bytes().to_vec() } else { format!("key {}", rng.below(30)).into() }
}

fn keys_of(txn: &WriteTxn, t: &Table) -> Records {
    txn.iter(t).unwrap().map(Result::unwrap).collect()
}

/// One thing that a transaction does. `gone`: handles of what it has dropped.
fn step(txn: &mut WriteTxn, model: &mut Model, gone: &mut Vec<(String, Table)>, rng: &mut Rng) {
    let name = any_name(rng);
    let has = model.contains_key(&name);
    match rng.below(13) {
        0 if !has => {
            let kind = if rng.one_in(3) { TableKind::Hash } else { TableKind::Ordered };
            let table = txn.table(&name, kind).unwrap();
            model.insert(name, Modelled { table, records: Records::new(), lives: None });
        }
        1 if has => {
            txn.drop_table(&name).unwrap();
            gone.push((name.clone(), model.remove(&name).unwrap().table));
        }
        2 if has => {
            let to = any_name(rng);
            let renamed = txn.rename_table(&name, &to);
            assert_eq!(renamed.is_ok(), !model.contains_key(&to), "{name} to {to}: {renamed:?}");
            if renamed.is_ok() {
                let moved = model.remove(&name).unwrap();
                model.insert(to, moved);
            }
        }
        3 if !has => {
            is_missing(txn.open_table(&name), &name);
            is_missing(txn.drop_table(&name), &name);
        }
        4 if has => {
            let opened = txn.open_table(&name).unwrap();
            let m = &model[&name];
            assert_eq!(keys_of(txn, &opened), m.records, "table {name}");
        }
        6 if has => {
            let lives = [None, Some(10_000), Some(20_000)][rng.below(3) as usize];
            let m = model.get_mut(&name).unwrap();
            txn.set_usual_ttl(&m.table, lives.map(Duration::from_secs)).unwrap();
            m.lives = lives;
            txn.put(&m.table, "lives", b"so long").unwrap();
            m.records.insert(b"lives".into(), b"so long".into());
            let left = txn.ttl(&m.table, "lives").unwrap().unwrap();
            assert!(lives_about(left, lives), "{left:?} of {lives:?}");
        }
        5 => {
            for (_, table) in gone.iter() {
                assert!(txn.set_usual_ttl(table, None).is_err());
                assert!(txn.get(table, b"k").is_err() && txn.put(table, b"k", b"v").is_err());
                assert!(txn.cursor(table).is_err());
            }
        }
        _ => {
            let Some(m) = model.get_mut(&name) else { return };
            let key = any_key(rng);
            match rng.below(9) {
                0 => {
                    txn.clear(&m.table).unwrap();
                    m.records.clear();
                }
                1 if m.table.kind() == TableKind::Ordered => {
                    let (x, y) = (any_key(rng), any_key(rng));
                    let (from, to) = (x.clone().min(y.clone()), x.max(y));
                    txn.remove_range(&m.table, &from..&to).unwrap();
                    m.records.retain(|k, _| *k < from || *k >= to);
                }
                2 => {
                    txn.remove(&m.table, &key).unwrap();
                    m.records.remove(&key);
                }
                3 => assert_eq!(txn.get(&m.table, &key).unwrap(), m.records.get(&key).cloned()),
                _ => {
                    let len = [3, 3, 8, 100, 2000][rng.below(5) as usize];
                    let value = vec![rng.below(256) as u8; len];
                    txn.put(&m.table, &key, &value).unwrap();
                    m.records.insert(key, value);
                }
            }
        }
    }
}

/// Whether a record was put a moment ago to live so many seconds.
fn lives_about(left: Lifetime, lives: Option<u64>) -> bool {
    match (left, lives) {
        (Lifetime::Unlimited, None) => true,
        (Lifetime::Left(left), Some(lives)) => left.as_secs().abs_diff(lives) < 1_000,
        _ => false,
    }
}

fn compare(db: &Db, model: &Model, seed: u64) {
    assert!(names(db).iter().eq(model.keys()), "{:?}, seed {seed}", names(db));
    let read = db.read();
    for (name, m) in model {
        assert_eq!(m.table.name(), *name, "seed {seed}");
        assert_eq!(m.table.usual_ttl(), m.lives.map(Duration::from_secs), "{name}, seed {seed}");
        let found: Records = read.iter(&m.table).unwrap().map(Result::unwrap).collect();
        assert_eq!(found, m.records, "table {name}, seed {seed}");
    }
}

fn round(seed: u64) {
    let mut rng = Rng(seed);
    let mut disk = Disk::new();
    let mut db = Db::open_on(&disk, PATH, options()).unwrap();
    let mut model = Model::new();
    for _ in 0..60 {
        let isolation = [Isolation::Serializable, Isolation::Snapshot][rng.below(2) as usize];
        let mut txn = db.write_with(WriteOptions { isolation, ..WriteOptions::default() });
        let (mut next, mut gone, mut points) = (model.clone(), Vec::new(), Vec::new());
        for _ in 0..rng.below(25) {
            match rng.below(14) {
                0 => points.push((txn.savepoint(), next.clone(), gone.clone())),
                1 if !points.is_empty() => {
                    points.truncate(rng.below(points.len() as u64) as usize + 1);
                    let (point, then, gone_then) = points.last().unwrap();
                    txn.rollback_to(point).unwrap();
                    (next, gone) = (then.clone(), gone_then.clone());
                }
                _ => step(&mut txn, &mut next, &mut gone, &mut rng),
            }
        }
        for (name, m) in &next {
            assert_eq!(keys_of(&txn, &m.table), m.records, "table {name} in its transaction, seed {seed}");
        }
        if rng.one_in(5) {
            txn.rollback();
        } else {
            txn.commit().unwrap();
            model = next;
        }
        compare(&db, &model, seed);
        match rng.below(12) {
            0 | 1 => db.flush().unwrap(),
            2 => db.compact().unwrap(),
            3 => check(&db),
            4 => {
                // The power is cut, or the database closed and opened again.
                db.sync().unwrap();
                let kept: Vec<_> =
                    model.iter().map(|(name, m)| (name.clone(), m.records.clone(), m.lives)).collect();
                if rng.one_in(2) {
                    disk = disk.after_cut(Keep::None, &mut rng);
                } else {
                    db.close().unwrap();
                }
                model.clear();
                db = Db::open_on(&disk, PATH, options()).unwrap();
                for (name, records, lives) in kept {
                    let table = db.open_table(&name).unwrap();
                    model.insert(name, Modelled { table, records, lives });
                }
                check(&db);
                compare(&db, &model, seed);
            }
            _ => {}
        }
    }
    check(&db);
}

#[test]
fn random_changes_of_tables_agree_with_a_model() {
    crate::common::watch(Duration::from_secs(120));
    if let Some(seed) = std::env::var("AZEKURA_SEED").ok().and_then(|s| s.parse().ok()) {
        return round(seed);
    }
    let base = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
    for seed in 0..40u64 {
        let seed = u64::from(base) << 8 | seed;
        crate::common::doing(format!("seed {seed}"));
        if let Err(panic) = std::panic::catch_unwind(|| round(seed)) {
            eprintln!("AZEKURA_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
