//! Orders of events that recovery must survive, each of which once broke it or nearly did.

mod disk;

use azekura::{Db, Durability, Kind, Options, WriteOptions};
use disk::{Call, Disk, Fault, Keep, Rng, Watchdog};
use std::ops::Bound;
use std::time::Duration;

const PATH: &str = "recovery.azk";

fn small() -> Options {
    let options = Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).background_merges(false);
    options.eventual_delay(Duration::from_secs(60))
}

fn cut(disk: &Disk) -> Disk {
    disk.after_cut(Keep::None, &mut Rng(1))
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng(seed);
    (0..len.div_ceil(8)).flat_map(|_| rng.next().to_le_bytes()).take(len).collect()
}

fn check(db: &Db) {
    let report = db.check(|_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// A value segment is closed and its end given back, and the log takes that place, before any
/// checkpoint says so: the log's own words about the segment's extent are out of date then.
#[test]
fn the_end_of_a_closed_value_segment_is_used_by_the_log() {
    let options = || Options::new().background_merges(false).eventual_delay(Duration::from_secs(60));
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let t = db.create_table("t", Kind::Ordered).unwrap();
    for i in 0..7u64 {
        t.put(&i.to_be_bytes(), &noise(i, 10 << 20)).unwrap();
    }
    for i in 100..600u64 {
        t.put(&i.to_be_bytes(), &noise(i, 1000)).unwrap();
    }
    let disk = cut(&disk);
    for _ in 0..2 {
        let db = Db::open_on(&disk, PATH, options()).unwrap();
        let t = db.open_table("t").unwrap();
        for i in 0..7u64 {
            assert!(t.get(&i.to_be_bytes()).unwrap().unwrap() == noise(i, 10 << 20));
        }
        for i in 100..600u64 {
            assert!(t.get(&i.to_be_bytes()).unwrap().unwrap() == noise(i, 1000));
        }
        check(&db);
    }
}

/// The values of a dropped table make room for others, though the log still speaks of them.
#[test]
fn the_values_of_a_dropped_table_make_room() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, small()).unwrap();
    let kept = db.create_table("kept", Kind::Hash).unwrap();
    for round in 0..4u64 {
        let gone = db.create_table("gone", Kind::Ordered).unwrap();
        let mut txn = db.write();
        txn.put(&gone, b"k", &noise(round, 20_000)).unwrap();
        txn.put(&kept, &round.to_be_bytes(), b"small").unwrap();
        txn.commit().unwrap();
        db.drop_table("gone").unwrap();
        kept.put(&(100 + round).to_be_bytes(), &noise(round, 30_000)).unwrap();
    }
    let disk = cut(&disk);
    for _ in 0..2 {
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let kept = db.open_table("kept").unwrap();
        for round in 0..4u64 {
            assert_eq!(kept.get(&round.to_be_bytes()).unwrap().unwrap(), b"small");
            assert!(kept.get(&(100 + round).to_be_bytes()).unwrap().unwrap() == noise(round, 30_000));
        }
        check(&db);
    }
}

/// A snapshot keeps the places of a run that compaction has moved in part, and merges replaced then.
#[test]
fn a_snapshot_outlives_the_moving_of_its_runs() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, small()).unwrap();
    let a = db.create_table("a", Kind::Ordered).unwrap();
    let b = db.create_table("b", Kind::Ordered).unwrap();
    let fill = |t: &azekura::Table, seed: u64, n: u64| {
        let mut txn = db.write();
        (0..n).for_each(|i| txn.put(t, &i.to_be_bytes(), &noise(seed + i, 500)).unwrap());
        txn.commit().unwrap();
        db.settle().unwrap();
    };
    // `a` stands before `b`; when it is gone, `b` moves down piece by piece.
    fill(&a, 1, 1000);
    fill(&b, 100_000, 4000);
    let mut cursor = b.cursor().unwrap();
    assert!(cursor.next().unwrap().is_some());
    a.clear().unwrap();
    db.compact(|_| {}).unwrap();
    for round in 0..3 {
        fill(&b, 200_000 + round, 4000);
        fill(&a, 300_000 + round, 3000);
        db.compact(|_| {}).unwrap();
    }
    let mut n = 1;
    while let Some((key, value)) = cursor.next().unwrap() {
        let i = u64::from_be_bytes(key.try_into().unwrap());
        assert!(value == noise(100_000 + i, 500), "record {i}");
        n += 1;
    }
    assert_eq!(n, 4000);
    drop(cursor);
    db.compact(|_| {}).unwrap();
    check(&db);
}

/// A large value that nobody refers to waits in memory when the database is closed.
#[test]
fn closing_with_a_value_of_a_transaction_that_was_given_up() {
    let watchdog = Watchdog::start(20);
    watchdog.at("closing".into());
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, small()).unwrap();
    let t = db.create_table("t", Kind::Ordered).unwrap();
    t.put(b"a", b"b").unwrap();
    db.flush().unwrap();
    let mut txn = db.write();
    txn.put(&t, b"large", &noise(1, 50_000)).unwrap();
    txn.rollback();
    drop(t);
    db.close().unwrap();
    let db = Db::open_on(&disk, PATH, small()).unwrap();
    assert_eq!(db.open_table("t").unwrap().count().unwrap(), 1);
    check(&db);
}

/// What `flush` calls durable survives, though no log was written.
#[test]
fn a_flush_is_durable_when_it_returns() {
    for _ in 0..30 {
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, small().durability(Durability::Eventual)).unwrap();
        let t = db.create_table("t", Kind::Hash).unwrap();
        t.put(b"k", b"v").unwrap();
        db.flush().unwrap();
        let disk = cut(&disk);
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        assert_eq!(db.open_table("t").unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    }
}

/// One thread waits for a sync while another's, of the same records, fails.
#[test]
fn nobody_is_told_of_durability_by_a_sync_that_failed_for_another() {
    let watchdog = Watchdog::start(30);
    for round in 0..200 {
        watchdog.at(format!("round {round}"));
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let t = db.create_table("t", Kind::Hash).unwrap();
        t.put(b"first", b"").unwrap();
        disk.set_fault(Some(Fault { call: Call::Write, nth: 1, forever: true, errno: 5 }));
        let eventual = WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() };
        let mut txn = db.write_with(eventual);
        txn.put(&t, b"k", b"v").unwrap();
        txn.commit().unwrap();
        std::thread::scope(|s| {
            for i in 0..4u8 {
                let (db, t) = (&db, &t);
                s.spawn(move || {
                    let told = if i % 2 == 0 { db.sync() } else { t.put(&[i], b"") };
                    assert!(told.is_err(), "thread {i} was told that its commit is durable");
                });
            }
        });
    }
}

/// A range delete in the log alone, then in a run alone, over records in older runs.
#[test]
fn range_deletes_survive() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, small()).unwrap();
    let t = db.create_table("t", Kind::Ordered).unwrap();
    t.put_many((0..2000u64).map(|i| (i.to_be_bytes(), noise(i, 100)))).unwrap();
    db.flush().unwrap();
    let (low, high) = (500u64.to_be_bytes(), 1500u64.to_be_bytes());
    t.remove_range(Bound::Included(&low), Bound::Excluded(&high)).unwrap();
    let disk = cut(&disk);
    for _ in 0..3 {
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        assert_eq!(db.open_table("t").unwrap().cursor().unwrap().owned().count(), 1000);
        check(&db);
        db.flush().unwrap();
    }
}

/// A sync fails, the process ends, and the next one finds the lost bytes still in the system's cache:
/// what it builds on them must survive the power cut that shows that they were never written.
#[test]
fn bytes_of_a_failed_sync_are_not_built_upon() {
    for call in [Call::Sync, Call::Write] {
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let t = db.create_table("t", Kind::Ordered).unwrap();
        t.put(b"a", b"1").unwrap();
        // Two frames of the log are written, and then synced in vain.
        disk.set_fault(Some(Fault { call: Call::Sync, nth: 1, forever: false, errno: 5 }));
        assert!(t.put_many((0..1400u64).map(|i| (i.to_be_bytes(), noise(i, 900)))).is_err());
        drop((t, db));
        let disk = disk.after_kill();
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let t = db.open_table("t").unwrap();
        let seen = t.count().unwrap();
        if call == Call::Write {
            t.put(b"b", b"2").unwrap();
        } else {
            db.sync().unwrap();
        }
        let disk = cut(&disk);
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let t = db.open_table("t").unwrap();
        assert_eq!(t.count().unwrap(), seen + u64::from(call == Call::Write), "{call:?}");
    }
}
