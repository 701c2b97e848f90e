//! Merges, flushes, moves and readers in each other's way: the situations that chance seldom makes,
//! because they need tables of many partitions or events in a certain order.

use crate::common::Rng;
use azekura::storage::MemStorage;
use azekura::{Db, Durability, Options, ReadTxn, Stats, Table, TableKind};
use std::time::{Duration, Instant};

fn open(storage: &MemStorage, memtable_mib: u64) -> Db {
    crate::common::watch(Duration::from_secs(60));
    let options = Options::new()
        .memory_bytes(32 << 20)
        .memtable_bytes(memtable_mib << 20)
        .durability(Durability::Eventual)
        .background_merges(false);
    Db::open_on(storage, "/merges.azk", options).unwrap()
}

/// Waits for what the background does by itself.
fn wait_until(db: &Db, is_so: impl Fn(&Stats) -> bool) {
    let until = Instant::now() + Duration::from_secs(50);
    while !is_so(&db.stats()) {
        assert!(Instant::now() < until, "{:?}", db.stats());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The value of a key in a generation: 100 bytes that do not compress.
fn value(key: u64, generation: u64) -> [u8; 100] {
    let mut rng = Rng::new(key ^ generation << 40);
    let mut out = [0; 100];
    for part in out.chunks_mut(8) {
        part.copy_from_slice(&rng.number().to_le_bytes()[..part.len()]);
    }
    out
}

fn put(t: &Table, keys: impl Iterator<Item = u64>, generation: u64) {
    t.put_many(keys.map(|k| (k.to_be_bytes(), value(k, generation)))).unwrap();
}

/// Everything in the table is there once, in order, of the generation that `of` says.
fn expect(read: &ReadTxn, t: &Table, keys: impl Iterator<Item = u64>, of: impl Fn(u64) -> u64) {
    let mut cursor = read.cursor(t).unwrap();
    let mut keys = keys;
    while let Some((k, v)) = cursor.next().unwrap() {
        let key = u64::from_be_bytes(k.try_into().unwrap());
        assert_eq!(Some(key), keys.next(), "the next key of a scan");
        assert!(v.bytes().unwrap() == value(key, of(key)), "the value of {key}");
    }
    assert_eq!(keys.next(), None, "a scan ended before this key");
}

fn check(db: &Db) {
    let report = db.check(|_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn a_merge_into_many_partitions_keeps_them_apart() {
    let storage = MemStorage::default();
    let db = open(&storage, 16);
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    // Ascending loads of 40, 25, 10 and more MB: partitions of these sizes, side by side.
    let mut n = 0;
    for mb in [40u64, 25, 10, 40, 30, 9, 50] {
        for _ in 0..mb {
            put(&t, n..n + 10_000, 0);
            n += 10_000;
        }
        db.flush().unwrap();
    }
    let partitions = db.stats().runs;
    assert!(partitions >= 7, "{partitions} partitions");
    put(&t, (0..n).step_by(50), 1);
    db.flush().unwrap();
    let of = |k: u64| u64::from(k.is_multiple_of(50));
    std::thread::scope(|scope| {
        let settling = scope.spawn(|| db.compact().unwrap());
        while !settling.is_finished() {
            crate::common::doing("reading while the bottom is merged".into());
            expect(&db.read(), &t, 0..n, of);
            check(&db);
        }
    });
    expect(&db.read(), &t, 0..n, of);
    drop((t, db));
    let db = open(&storage, 16);
    let t = db.open_table("t").unwrap();
    expect(&db.read(), &t, 0..n, of);
}

#[test]
fn a_flush_beside_a_merge_loses_nothing() {
    let storage = MemStorage::default();
    let db = open(&storage, 4);
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let mut n = 400_000;
    put(&t, 0..n, 0);
    db.flush().unwrap();
    put(&t, (0..n).step_by(3), 1);
    db.flush().unwrap();
    let first = n;
    std::thread::scope(|scope| {
        let settling = scope.spawn(|| db.compact().unwrap());
        // These meet no run, so they are joined to the bottom that is being merged.
        while !settling.is_finished() {
            put(&t, n..n + 1000, 0);
            n += 1000;
            db.flush().unwrap();
        }
    });
    check(&db);
    expect(&db.read(), &t, 0..n, |k| u64::from(k < first && k.is_multiple_of(3)));
}

#[test]
fn two_that_settle_and_one_that_compacts_agree() {
    let storage = MemStorage::default();
    let db = open(&storage, 1);
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    for generation in 0..6 {
        put(&t, (0..60_000).step_by(generation as usize + 1), generation);
        db.flush().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| db.compact().unwrap());
            scope.spawn(|| db.shrink(|_| {}).unwrap());
            scope.spawn(|| db.compact().unwrap());
        });
        check(&db);
    }
    let of = |k: u64| (0..6).rev().find(|g| k.is_multiple_of(g + 1)).unwrap_or(0);
    expect(&db.read(), &t, 0..60_000, of);
}

#[test]
fn a_snapshot_outlives_moves_and_merges_of_what_it_sees() {
    let storage = MemStorage::default();
    let db = open(&storage, 8);
    let n = 200_000;
    let hole = db.create_table("hole", TableKind::Ordered).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    put(&hole, 0..n / 20, 0);
    db.flush().unwrap();
    put(&t, 0..n, 0);
    db.flush().unwrap();
    db.drop_table("hole").unwrap();
    let before = db.read();
    // The end of `t` moves into the hole; the rest stays, and belongs to old run and new one.
    let report = db.shrink(|_| {}).unwrap();
    let after = db.read();
    for generation in 1..5 {
        put(&t, 0..n, generation);
        db.compact().unwrap();
        crate::common::doing(format!("looking at generation {generation}, {report:?}"));
        expect(&before, &t, 0..n, |_| 0);
        expect(&after, &t, 0..n, |_| 0);
        expect(&db.read(), &t, 0..n, |_| generation);
        check(&db);
    }
    drop(after);
    db.shrink(|_| {}).unwrap();
    put(&t, 0..n, 9);
    db.flush().unwrap();
    expect(&before, &t, 0..n, |_| 0);
    drop(before);
    let report = db.shrink(|_| {}).unwrap();
    let stats = db.stats();
    assert!(report.after_bytes < stats.live_bytes + (1 << 20), "{report:?} {stats:?}");
    expect(&db.read(), &t, 0..n, |_| 9);
    check(&db);
}

/// A memtable has references to them only, so that it would take in dead ones for long.
#[test]
fn overwritten_large_values_do_not_wait_for_a_full_memtable() {
    let storage = MemStorage::default();
    let db = open(&storage, 8);
    let t = db.create_table("t", TableKind::Hash).unwrap();
    let noise: Vec<u8> = (0..5000).map(|i| value(i, 0)[0]).collect();
    let mut flushes = 0;
    for round in 0..40u8 {
        let values = (0..1000u64).map(|k| {
            let mut value = noise.clone();
            value[0] = round;
            (k.to_be_bytes(), value)
        });
        t.put_many(values).unwrap();
        // Two rounds are more than a memtable of values. Their references are not a hundredth of one.
        if round % 2 == 1 {
            wait_until(&db, |stats| stats.flushes > flushes);
            flushes = db.stats().flushes;
        }
    }
    // Nothing merges the runs here, and each keeps what was live then. Of 200 MB 5 are live now.
    db.compact().unwrap();
    wait_until(&db, |stats| stats.value_bytes <= 10 << 20);
    assert!((0..1000u64).all(|k| t.get(&k.to_be_bytes()).unwrap().unwrap()[0] == 39));
    check(&db);
}

#[test]
fn compact_moves_large_values_out_of_segments_that_are_mostly_dead() {
    let storage = MemStorage::default();
    let db = open(&storage, 8);
    let t = db.create_table("t", TableKind::Hash).unwrap();
    let put = |keys: std::ops::Range<u64>, round: u8| {
        t.put_many(keys.map(|k| (k.to_be_bytes(), vec![round; 5000]))).unwrap();
        db.flush().unwrap();
    };
    // One sorted run, which keeps a quarter of what the first segments hold.
    put(0..8000, 0);
    put(0..6000, 1);
    db.compact().unwrap();
    put(8000..8001, 1);
    // 40 MB are live.
    wait_until(&db, |stats| stats.value_bytes <= 50 << 20);
    assert!(
        (0..8001u64)
            .all(|k| t.get(&k.to_be_bytes()).unwrap().unwrap() == [u8::from(k < 6000 || k == 8000); 5000])
    );
    check(&db);
}

#[test]
fn memory_stays_within_its_budget_while_writers_are_fast() {
    let storage = MemStorage::default();
    let db = open(&storage, 1);
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let mut rng = Rng::new(5);
    let mut most = 0;
    for _ in 0..600 {
        t.put_many((0..1000).map(|_| (rng.number().to_be_bytes(), [7; 100]))).unwrap();
        most = most.max(db.stats().memtable_bytes);
    }
    assert!(most < 5 << 20, "memtables of {most} bytes where 1 MiB was allowed to fill");
}

/// Many small partitions side by side, as short sessions leave them, become few, and that is the end of it:
/// no merge is made of a merge's own result.
#[test]
fn small_partitions_are_joined_once() {
    crate::common::watch(Duration::from_secs(60));
    let storage = MemStorage::default();
    let options =
        || Options::new().memory_bytes(32 << 20).memtable_bytes(1 << 20).durability(Durability::Eventual);
    let t = |db: &Db| db.create_table("t", TableKind::Ordered).or_else(|_| db.open_table("t")).unwrap();
    for session in 0..40u64 {
        let db = Db::open_on(&storage, "/small.azk", options().background_merges(false)).unwrap();
        put(&t(&db), session * 200..session * 200 + 200, 0);
        db.close().unwrap();
    }
    let db = Db::open_on(&storage, "/small.azk", options().background_merges(false)).unwrap();
    assert_eq!(db.stats().runs, 40);
    db.close().unwrap();
    let db = Db::open_on(&storage, "/small.azk", options()).unwrap();
    // A merge is counted when what it has made is in place.
    while db.stats().runs > 2 || db.stats().merges == 0 {
        crate::common::doing(format!("{} runs", db.stats().runs));
        std::thread::sleep(Duration::from_millis(20));
    }
    let merges = db.stats().merges;
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(db.stats().merges, merges, "what a merge has made was merged again");
    expect(&db.read(), &t(&db), 0..8000, |_| 0);
    check(&db);
}

/// A merge lets go of what it has read up while it goes on; what range deletes hide, and what was put there
/// after them, is the same at every moment.
#[test]
fn what_range_deletes_hide_stays_hidden_while_runs_are_merged() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let disk = sim::disk::Disk::new();
    let options = Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).background_merges(false);
    let db = Db::open_on(&disk, "ranges.azk", options.durability(Durability::Eventual)).unwrap();
    let table = db.table("t", TableKind::Ordered).unwrap();
    let n = 300_000u64;
    let mut model = std::collections::BTreeMap::new();
    for age in 0..6u64 {
        let step = [1, 3, 7, 5, 2, 11][age as usize];
        for k in (age..n).step_by(step) {
            let value = [age as u8; 30];
            table.put(&k.to_be_bytes(), &value).unwrap();
            model.insert(k, value);
        }
        db.flush().unwrap();
        if age % 2 == 1 {
            let gone = n / 8 * age..n / 8 * (age + 2);
            let (from, to) = (gone.start.to_be_bytes(), gone.end.to_be_bytes());
            table.remove_range(from..to).unwrap();
            model.retain(|k, _| !gone.contains(k));
            db.flush().unwrap();
        }
    }
    let (done, looked) = (AtomicBool::new(false), AtomicBool::new(false));
    let look = |rng: &mut Rng| {
        for _ in 0..100 {
            let k = rng.number() % n;
            assert_eq!(
                table.get(&k.to_be_bytes()).unwrap().as_deref(),
                model.get(&k).map(|v| v.as_slice()),
                "{k}"
            );
        }
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut rng = Rng::new(7);
            while !done.load(Ordering::Relaxed) {
                look(&mut rng);
                looked.store(true, Ordering::Relaxed);
            }
        });
        while !looked.load(Ordering::Relaxed) && !reader.is_finished() {
            std::thread::yield_now();
        }
        db.compact().unwrap();
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    look(&mut Rng::new(8));
    assert_eq!(table.count().unwrap(), model.len() as u64);
}
