//! Indexes that are built while others write, and builders that end before it is done.

use super::{Map, expected, open_on, options, records};
use crate::common::{Rng, doing, watch};
use azekura::storage::MemStorage;
use azekura::{Db, Error, IndexSpec, Table, TableKind};
use sim::disk::{Disk, Keep};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const SPEC: &str = "v[0..2]:u16le, v[2..3]";
const RECORDS: u64 = 20_000;

fn value(n: u64) -> [u8; 4] {
    [n as u8, (n >> 8) as u8 & 3, n as u8 & 7, 9]
}

fn fill(t: &Table) {
    t.put_many((0..RECORDS).map(|n| (n.to_be_bytes(), value(n)))).unwrap();
}

fn agrees(db: &Db, t: &Table) {
    let table: Map = records(t.iter().unwrap()).into_iter().collect();
    let wanted = expected(&IndexSpec::parse(SPEC).unwrap(), &table);
    let found = records(t.index("i").unwrap().get(&[]).unwrap());
    assert_eq!(found.len(), wanted.len());
    assert!(found.into_iter().eq(wanted.into_iter().map(|(_, record)| record)));
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
}

/// Changes the table until it is told to stop.
fn disturb(t: &Table, seed: u64, stop: &AtomicBool, changes: &AtomicU64) {
    let mut rng = Rng::new(seed);
    while !stop.load(Ordering::Relaxed) {
        let key = (rng.below(RECORDS * 2)).to_be_bytes();
        match rng.below(16) {
            0 => t.remove(key).unwrap(),
            1 if t.kind() == TableKind::Ordered => {
                t.remove_range(&key[..]..&(u64::from_be_bytes(key) + 30).to_be_bytes()).unwrap();
            }
            2 => _ = t.take(key).unwrap(),
            3 => {
                let some = (0..20).map(|_| (rng.below(RECORDS).to_be_bytes(), value(rng.number())));
                t.put_many(some.collect::<Vec<_>>()).unwrap();
            }
            // A key that is nearly always under way.
            4..10 => t.put(7u64.to_be_bytes(), value(rng.number())).unwrap(),
            _ => t.put(key, value(rng.number())).unwrap(),
        }
        changes.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn an_index_is_built_while_others_write() {
    watch(Duration::from_secs(120));
    for (seed, kind) in (0..).zip([TableKind::Ordered, TableKind::Hash, TableKind::Ordered]) {
        doing(format!("seed {seed}"));
        let db = options().durability(azekura::Durability::Eventual).open_on_memory();
        let t = db.create_table("t", kind).unwrap();
        fill(&t);
        let (stop, changes) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (t, stop, changes) = (&t, &stop, &changes);
                scope.spawn(move || disturb(t, seed << 8 | thread, stop, changes));
            }
            while changes.load(Ordering::Relaxed) < 100 {
                std::thread::yield_now();
            }
            let before = changes.load(Ordering::Relaxed);
            let built = t.create_index("i", SPEC);
            assert!(built.is_err() || changes.load(Ordering::Relaxed) > before);
            stop.store(true, Ordering::Relaxed);
            built.unwrap();
        });
        agrees(&db, &t);
    }
}

trait OnMemory {
    fn open_on_memory(self) -> Db;
}

impl OnMemory for azekura::Options {
    fn open_on_memory(self) -> Db {
        Db::open_on(&MemStorage::default(), "/i.azk", self).unwrap()
    }
}

#[test]
fn a_builder_goes_on_where_another_stood() {
    for kind in [TableKind::Ordered, TableKind::Hash] {
        let storage = MemStorage::default();
        let db = open_on(&storage);
        let t = db.create_table("t", kind).unwrap();
        fill(&t);
        let mut steps = 0;
        let ended = t.create_index_with("i", SPEC, |_| {
            steps += 1;
            if steps == 2 {
                db.try_close().unwrap();
            }
        });
        assert!(matches!(ended, Err(Error::Closed)));
        drop((t, db));
        let db = open_on(&storage);
        let t = db.open_table("t").unwrap();
        assert!(!t.indexes().unwrap()[0].is_ready);
        assert!(matches!(t.index("i"), Err(Error::Invalid { .. })));
        assert!(matches!(t.create_index("i", "v"), Err(Error::Invalid { .. })));
        // Whoever writes keeps what there is of it.
        for n in 0..2000u64 {
            t.put((n * 11).to_be_bytes(), value(n)).unwrap();
            t.remove((n * 13).to_be_bytes()).unwrap();
        }
        assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
        let mut done = 0;
        t.create_index_with("i", SPEC, |progress| done = progress.done).unwrap();
        assert!(done > 0 && done < RECORDS - 4096, "{done} records, as if it had begun anew");
        agrees(&db, &t);
    }
}

#[test]
fn a_crash_leaves_an_index_that_can_be_built_to_its_end() {
    watch(Duration::from_secs(120));
    for seed in 0..30 {
        doing(format!("seed {seed}"));
        let mut rng = sim::rng::Rng(seed);
        let disk = Disk::seeded(seed);
        let db = Db::open_on(&disk, "/i.azk", options()).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        fill(&t);
        disk.cut_after(seed * 2);
        let built = t.create_index_with("i", SPEC, |_| {});
        let was_alive = !disk.is_dead();
        drop((t, db));
        let disk = disk.after_cut(Keep::None, &mut rng);
        let db = Db::open_on(&disk, "/i.azk", options()).unwrap();
        let t = db.open_table("t").unwrap();
        assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
        if built.is_ok() {
            assert!(t.indexes().unwrap()[0].is_ready, "it was said to be durable (alive: {was_alive})");
        }
        t.put(5u64.to_be_bytes(), value(999)).unwrap();
        t.create_index("i", SPEC).unwrap();
        agrees(&db, &t);
    }
}

/// The process can end between any two calls of the disk.
#[test]
fn a_crash_while_an_index_is_given_up_leaves_nothing_wrong() {
    watch(Duration::from_secs(120));
    for cut in 1.. {
        doing(format!("cut after {cut} calls"));
        let disk = Disk::seeded(7);
        let db = Db::open_on(&disk, "/i.azk", options().threads(false)).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        t.put_many([("a", "1"), ("b", "1")]).unwrap();
        disk.cut_after(cut);
        let given_up = t.create_index("u", "v unique");
        let is_whole = !disk.is_dead();
        assert!(!is_whole || matches!(given_up, Err(Error::NotUnique { .. })), "{given_up:?}");
        drop((t, db));
        for keep in [Keep::None, Keep::All] {
            let disk = disk.after_cut(keep, &mut sim::rng::Rng(cut));
            let db = Db::open_on(&disk, "/i.azk", options()).unwrap();
            let t = db.open_table("t").unwrap();
            assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
            t.put("c", "1").unwrap_or_else(|e| assert!(matches!(e, Error::NotUnique { .. }), "{e}"));
            assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
            assert!(matches!(t.create_index("u", "v unique"), Err(Error::NotUnique { .. })));
            assert!(t.indexes().unwrap().is_empty());
        }
        if is_whole {
            assert!(cut > 4, "the disk was hardly called");
            break;
        }
    }
}

#[test]
fn two_builders_of_one_index_do_it_together() {
    let db = open_on(&MemStorage::default());
    let t = db.create_table("t", TableKind::Hash).unwrap();
    fill(&t);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| t.create_index("i", SPEC).unwrap());
        }
    });
    assert_eq!(t.indexes().unwrap().len(), 1);
    agrees(&db, &t);
}

#[test]
fn a_duplicate_ends_the_building_and_the_index() {
    let db = open_on(&MemStorage::default());
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    fill(&t);
    match t.create_index("u", "v[0..3] unique") {
        Err(Error::NotUnique { key, other, .. }) => {
            let of = |key: &[u8]| t.get(key).unwrap().unwrap()[..3].to_vec();
            assert_ne!(key, other);
            assert_eq!(of(&key), of(&other));
        }
        other => panic!("{other:?}"),
    }
    assert!(t.indexes().unwrap().is_empty());
    let index = t.create_index("u", "k unique").unwrap();
    assert_eq!(index.first(&[(&9u64.to_be_bytes()).into()]).unwrap().unwrap().1, value(9));
    t.put(1u64.to_be_bytes(), value(0)).unwrap();
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
}
