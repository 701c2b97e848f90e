//! A disk that fills up and is made room on again, under one handle: what does not fit is refused as
//! `NoSpace` and leaves no trace, what was acknowledged stays, and the handle goes on.

use azekura::{Db, Durability, Error, Options, Table, TableKind};
use sim::disk::{Call, Disk, Effect, Fault, Keep};
use sim::rng::Rng;
use sim::watchdog::Watchdog;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PATH: &str = "full.azk";
const HANG_SECONDS: u64 = 30;

fn options(durability: Durability) -> Options {
    let options = Options::new().memory_bytes(8 << 20).memtable_bytes(128 << 10).background_merges(false);
    options.durability(durability).eventual_delay(Duration::from_millis(20))
}

fn value(key: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng(key);
    (0..len.div_ceil(8)).flat_map(|_| rng.number().to_le_bytes()).take(len).collect()
}

/// All of `keys` and nothing else, after a power cut too.
fn holds(db: &Db, disk: &Disk, table: &Table, keys: &BTreeSet<u64>, len: usize) {
    let look = |table: &Table| {
        assert_eq!(table.count().unwrap(), keys.len() as u64);
        for key in keys {
            let found = table.get(&key.to_be_bytes()).unwrap();
            assert!(found.is_some_and(|v| v == value(*key, len)), "{key}");
        }
    };
    look(table);
    db.sync().unwrap();
    let cut = disk.after_cut(Keep::None, &mut Rng(1));
    let db = Db::open_on(&cut, PATH, options(Durability::Sync)).unwrap();
    look(&db.open_table("t").unwrap());
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

/// Puts until the disk is full. The first key that was refused.
fn fill(table: &Table, from: u64, keys: &mut BTreeSet<u64>, len: usize) -> u64 {
    for key in from.. {
        match table.put(&key.to_be_bytes(), &value(key, len)) {
            Ok(()) => keys.insert(key),
            Err(Error::NoSpace { .. }) => return key,
            Err(e) => panic!("{key}: {e}"),
        };
    }
    unreachable!()
}

/// Puts when there is room again: a flush or a write of values that has failed waits for its next turn.
fn put_soon(table: &Table, key: u64, len: usize) {
    let until = Instant::now() + Duration::from_secs(5);
    while let Err(e) = table.put(&key.to_be_bytes(), &value(key, len)) {
        assert!(matches!(e, Error::NoSpace { .. }) && Instant::now() < until, "there is room, and yet {e}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn fills_and_goes_on(durability: Durability, len: usize) {
    let watchdog = Watchdog::start(HANG_SECONDS);
    for seed in 0..6 {
        watchdog.at(format!("{durability:?}, {len} bytes, seed {seed}"));
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, options(durability)).unwrap();
        let table = db.create_table("t", TableKind::Ordered).unwrap();
        let (mut keys, mut next) = (BTreeSet::new(), 0);
        let mut room = 150_000 + Rng(seed).below(400_000);
        for _ in 0..3 {
            disk.set_bytes_max(room);
            // It says so each time (after a flush has made room, it may have taken more), and what is there
            // can be read.
            for _ in 0..4 {
                next = fill(&table, next, &mut keys, len);
                assert_eq!(table.get(&next.to_be_bytes()).unwrap(), None);
            }
            room += 1 << 20;
        }
        disk.set_bytes_max(u64::MAX);
        for key in next..next + 50 {
            put_soon(&table, key, len);
            keys.insert(key);
        }
        holds(&db, &disk, &table, &keys, len);
        db.flush().unwrap();
        holds(&db, &disk, &table, &keys, len);
        drop(table);
        db.close().unwrap();
    }
}

#[test]
fn durable_commits_are_refused_while_the_disk_is_full() {
    fills_and_goes_on(Durability::Sync, 900);
}

/// Values that stand in segments of their own.
#[test]
fn large_values_are_refused_while_the_disk_is_full() {
    fills_and_goes_on(Durability::Sync, 3000);
    fills_and_goes_on(Durability::Sync, 30_000);
    fills_and_goes_on(Durability::Eventual, 30_000);
}

/// The log asks for ever larger segments; where there is no room for such a one, one that is just large
/// enough will do.
#[test]
fn the_last_room_of_a_disk_is_used() {
    let disk = Disk::new();
    // A memtable that is never full: nothing but the log, when it takes much of the room, asks for a flush.
    let options = || options(Durability::Sync).memory_bytes(512 << 20).memtable_bytes(128 << 20);
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let table = db.table("t", TableKind::Hash).unwrap();
    let (mut keys, len) = (BTreeSet::new(), 100);
    disk.set_bytes_max(3_500_000);
    let refused = fill(&table, 0, &mut keys, len);
    // Each takes a block of 4 KiB.
    assert!(keys.len() * 4096 > 3_200_000, "{} commits", keys.len());
    disk.set_bytes_max(100 << 20);
    put_soon(&table, refused, len);
    keys.insert(refused);
    holds(&db, &disk, &table, &keys, len);
}

/// These are acknowledged before they are written: as soon as the log has no room for them, no more
/// are taken, and those that wait are written when there is room.
#[test]
fn eventual_commits_are_refused_while_the_disk_is_full() {
    fills_and_goes_on(Durability::Eventual, 900);
}

/// Groups of durable commits meet a disk that fills and empties: each is there, or refused and not.
#[test]
fn groups_of_commits_on_a_disk_that_is_full_at_times() {
    let watchdog = Watchdog::start(HANG_SECONDS);
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, options(Durability::Sync)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    let (mut keys, refused, over) = (BTreeSet::new(), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u64)
            .map(|thread| {
                let (table, watchdog, refused, over) = (table.clone(), &watchdog, &refused, &over);
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    for i in 0.. {
                        if over.load(Ordering::Relaxed) {
                            break;
                        }
                        watchdog.at(format!("thread {thread}, commit {i}"));
                        let key = thread << 32 | i;
                        match table.put(&key.to_be_bytes(), &value(key, 700)) {
                            Ok(()) => mine.push(key),
                            Err(Error::NoSpace { .. }) => drop(refused.fetch_add(1, Ordering::Relaxed)),
                            Err(e) => panic!("thread {thread}, commit {i}: {e}"),
                        }
                    }
                    mine
                })
            })
            .collect();
        let mut rng = Rng(5);
        for _ in 0..200 {
            let (seen, since) = (refused.load(Ordering::Relaxed), Instant::now());
            disk.set_bytes_max(rng.below(8 << 20));
            // Until somebody was refused, or found room in what the file has already.
            while refused.load(Ordering::Relaxed) == seen && since.elapsed() < Duration::from_millis(100) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(rng.below(10)));
            disk.set_bytes_max(u64::MAX);
            std::thread::sleep(Duration::from_millis(rng.below(10)));
        }
        over.store(true, Ordering::Relaxed);
        keys.extend(writers.into_iter().flat_map(|writer| writer.join().unwrap()));
    });
    let refused = refused.into_inner();
    println!("{} commits, {refused} refused", keys.len());
    assert!(keys.len() > 500 && refused > 50, "{} commits, {refused} refused", keys.len());
    holds(&db, &disk, &table, &keys, 700);
}

#[test]
fn a_flush_tells_only_of_attempts_that_began_after_it_was_asked_for() {
    let _watchdog = Watchdog::start(HANG_SECONDS);
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, options(Durability::Eventual)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    for key in 0..100_u64 {
        table.put(&key.to_be_bytes(), &value(key, 500)).unwrap();
    }
    disk.set_bytes_max(1);
    assert!(matches!(db.flush(), Err(Error::NoSpace { .. })));
    // The background has not tried again since, and still knows of its failure.
    disk.set_bytes_max(u64::MAX);
    db.flush().unwrap();
    drop(table);
    db.close().unwrap();
}

/// A commit that was refused for want of room has written nothing, and a transaction that has read what it
/// would have written may commit; not so after one that was taken.
#[test]
fn a_refused_commit_conflicts_with_nobody() {
    let _watchdog = Watchdog::start(HANG_SECONDS);
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, options(Durability::Sync)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    disk.set_bytes_max(300_000);
    let next = fill(&table, 0, &mut BTreeSet::new(), 900);
    let reading = || {
        let mut txn = db.write();
        assert_eq!(txn.get(&table, b"more").unwrap(), None);
        txn.put(&table, b"mine", b"1").unwrap();
        txn
    };
    let (early, late) = (reading(), reading());
    assert!(matches!(table.put(b"more", &value(0, 900)), Err(Error::NoSpace { .. })));
    disk.set_bytes_max(u64::MAX);
    put_soon(&table, next, 900);
    early.commit().unwrap();
    table.put(b"more", &value(0, 900)).unwrap();
    assert!(matches!(late.commit(), Err(Error::Conflict { .. })));
}

/// A manifest that does not fit the superblock needs room. Where there is none, tables keep their names and
/// stay as they are, and so does the handle.
#[test]
fn tables_are_refused_while_the_disk_is_full() {
    let watchdog = Watchdog::start(HANG_SECONDS);
    let name = |i: u64| format!("{i:0>250}");
    for threads in [true, false] {
        watchdog.at(format!("threads: {threads}"));
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, options(Durability::Sync).threads(threads)).unwrap();
        let table = db.create_table("t", TableKind::Ordered).unwrap();
        (0..20).for_each(|i| drop(db.create_table(&name(i), TableKind::Hash).unwrap()));
        let mut keys = BTreeSet::new();
        let mut put = |key: u64| {
            table.put(&key.to_be_bytes(), &value(key, 900)).unwrap();
            keys.insert(key);
        };
        (0..30).for_each(&mut put);
        db.flush().unwrap();
        (30..40).for_each(&mut put);
        let names = || db.tables().into_iter().map(|t| t.name).collect::<Vec<_>>();
        let before = names();
        let refused = |what: &str, done: Result<(), Error>| {
            assert!(matches!(done, Err(Error::NoSpace { .. })), "{what}: {done:?}");
            assert_eq!(names(), before, "{what}");
        };
        let full = Fault { call: Call::Write, nth: 1, forever: true, effect: Effect::Error(28) };
        disk.set_fault(Some(full));
        for _ in 0..2 {
            refused("renaming", db.rename_table("t", &name(21)));
            refused("dropping", db.drop_table("t"));
            refused("dropping", db.drop_table(&name(3)));
        }
        disk.set_fault(None);
        (40..60).for_each(&mut put);
        holds(&db, &disk, &table, &keys, 900);
        // And now there is room.
        let late = db.create_table(&name(20), TableKind::Hash).unwrap();
        late.put(b"k", b"v").unwrap();
        db.rename_table(&name(2), &name(21)).unwrap();
        db.drop_table(&name(3)).unwrap();
        let cut = disk.after_cut(Keep::None, &mut Rng(1));
        let cut = Db::open_on(&cut, PATH, options(Durability::Sync)).unwrap();
        assert_eq!(cut.open_table(&name(20)).unwrap().count().unwrap(), 1);
        assert_eq!(cut.tables().len(), 21);
        let gone = |i| matches!(cut.open_table(&name(i)), Err(Error::NoSuchTable { .. }));
        assert!(gone(2) && gone(3) && cut.open_table(&name(21)).is_ok());
        holds(&db, &disk, &table, &keys, 900);
        drop((table, late));
        db.close().unwrap();
    }
}

/// As the disk itself is full: tables are made until there is no room for the next, then some are dropped.
#[test]
fn tables_are_made_and_dropped_on_a_disk_that_is_nearly_full() {
    let watchdog = Watchdog::start(HANG_SECONDS);
    for seed in 0..4 {
        watchdog.at(format!("seed {seed}"));
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, options(Durability::Sync)).unwrap();
        disk.set_bytes_max(400_000 + Rng(seed).below(100_000));
        let (mut made, mut refused, mut dropped) = (Vec::new(), 0, 0);
        for i in 0..900u64 {
            let name = format!("{i:0>240}");
            match db.create_table(&name, TableKind::Ordered) {
                Ok(table) => {
                    made.push((name, table));
                    continue;
                }
                Err(Error::NoSpace { .. }) => refused += 1,
                Err(e) => panic!("table {i}: {e}"),
            }
            if refused % 8 == 0 {
                let (name, table) = made.swap_remove(made.len() / 2);
                match db.drop_table(&name) {
                    Ok(()) => dropped += 1,
                    Err(Error::NoSpace { .. }) => made.push((name, table)),
                    Err(e) => panic!("dropping {name}: {e}"),
                }
            }
        }
        assert!(
            refused > 50 && made.len() > 50,
            "{} tables, {refused} refused, {dropped} dropped",
            made.len()
        );
        println!("{} tables, {refused} refused, {dropped} dropped", made.len());
        disk.set_bytes_max(u64::MAX);
        for (_, table) in &made {
            put_soon(table, 7, 100);
        }
        let cut = disk.after_cut(Keep::None, &mut Rng(1));
        let cut = Db::open_on(&cut, PATH, options(Durability::Sync)).unwrap();
        assert_eq!(cut.tables().len(), made.len());
        assert!(made.iter().all(|(name, _)| cut.open_table(name).unwrap().count().unwrap() == 1));
        assert!(cut.check(|_| {}).unwrap().problems.is_empty());
    }
}

/// Where space cannot be reserved, a bulk of log that finds no room is refused all the same.
#[test]
fn a_bulk_is_refused_by_a_full_disk_that_cannot_reserve() {
    let watchdog = Watchdog::start(HANG_SECONDS);
    for seed in 0..6 {
        watchdog.at(format!("seed {seed}"));
        let disk = Disk::new();
        disk.set_unreserving();
        let db = Db::open_on(&disk, PATH, options(Durability::Sync).memtable_bytes(4 << 20)).unwrap();
        let table = db.create_table("t", TableKind::Ordered).unwrap();
        let bulk = |from: u64| table.put_many((from..from + 3000).map(|k| (k.to_be_bytes(), value(k, 700))));
        disk.set_bytes_max(3_000_000 + Rng(seed).below(3_000_000));
        let mut keys = BTreeSet::new();
        for round in 0..8 {
            let from = round * 3000;
            match bulk(from) {
                Ok(()) => keys.extend(from..from + 3000),
                Err(Error::NoSpace { .. }) => {}
                Err(e) => panic!("round {round}: {e}"),
            }
        }
        assert!(keys.len() < 8 * 3000, "the disk is never full");
        disk.set_bytes_max(u64::MAX);
        put_soon(&table, 1 << 40, 700);
        keys.insert(1 << 40);
        bulk(1 << 20).unwrap();
        keys.extend(1 << 20..(1 << 20) + 3000);
        holds(&db, &disk, &table, &keys, 700);
    }
}
