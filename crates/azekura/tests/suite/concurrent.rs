//! One writer at full speed beside readers of snapshots, with memtables so small that flushes and
//! merges never stop; and handles that go while others are at work.

use crate::common::Rng;
use azekura::storage::MemStorage;
use azekura::{Db, Durability, Error, Options, ReadTxn, Table, TableKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

const PATH: &str = "/c.azk";

fn options(durability: Durability) -> Options {
    crate::common::watch(Duration::from_secs(60));
    Options::new()
        .memory_bytes(8 << 20)
        .memtable_bytes(64 << 10)
        .large_value_bytes(200)
        .durability(durability)
}

/// The value of a key in a generation: its length depends on both, and some are stored apart.
fn value(key: u64, generation: u64) -> Vec<u8> {
    let len = if key.is_multiple_of(97) { 300 } else { 16 + (key % 3 + generation % 2) * 8 };
    let mut value = generation.to_le_bytes().to_vec();
    value.extend((key ^ generation).to_le_bytes());
    value.resize(len as usize, key as u8);
    value
}

fn generation_of(key: u64, found: &[u8]) -> u64 {
    let generation = u64::from_le_bytes(found[..8].try_into().unwrap());
    assert!(found == value(key, generation), "the value of {key} is torn: {found:?}");
    generation
}

/// All that a snapshot shows is of one generation, not older than the one seen before.
fn look(read: &ReadTxn, t: &Table, keys: u64, rng: &mut Rng) -> u64 {
    let first = generation_of(0, &read.get(t, &0u64.to_be_bytes()).unwrap().unwrap());
    let see = |key: u64, found: &[u8]| {
        assert_eq!(generation_of(key, found), first, "the generation of {key} beside that of 0");
    };
    match rng.below(4) {
        0 => {
            for _ in 0..200 {
                let key = rng.below(keys);
                see(key, &read.get_ref(t, &key.to_be_bytes()).unwrap().unwrap());
            }
        }
        1 => {
            let wanted: Vec<u64> = (0..200).map(|_| rng.below(keys)).collect();
            let bytes: Vec<[u8; 8]> = wanted.iter().map(|k| k.to_be_bytes()).collect();
            read.get_many_with(t, &bytes, |i, v| see(wanted[i], v.unwrap())).unwrap();
        }
        n => {
            let mut cursor = read.cursor(t).unwrap();
            let mut count = 0;
            let backward = n == 2;
            if backward {
                cursor.seek_last();
            }
            while let Some((k, v)) = if backward { cursor.prev() } else { cursor.next() }.unwrap() {
                see(u64::from_be_bytes(k.try_into().unwrap()), v.bytes().unwrap());
                count += 1;
            }
            assert_eq!(count, keys, "records in a scan");
        }
    }
    first
}

fn writer_beside_readers(kind: TableKind, batch: u64, options: Options, others: fn(&Db, &AtomicBool)) {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, options).unwrap();
    let t = db.create_table("t", kind).unwrap();
    let stop = AtomicBool::new(false);
    let put_all = |generation: u64| {
        t.put_many((0..batch).map(|k| (k.to_be_bytes(), value(k, generation)))).unwrap();
    };
    put_all(0);
    scope(|s| {
        let readers: Vec<_> = (0..3u64)
            .map(|n| {
                let (db, t, stop) = (&db, &t, &stop);
                s.spawn(move || {
                    let mut rng = Rng::new(n);
                    let mut newest = 0;
                    let mut old: Option<(ReadTxn, u64)> = None;
                    while !stop.load(Ordering::Relaxed) {
                        let read = db.read();
                        let seen = look(&read, t, batch, &mut rng);
                        assert!(seen >= newest, "a later snapshot shows an older generation");
                        newest = seen;
                        if let Some((old, was)) = &old {
                            assert_eq!(look(old, t, batch, &mut rng), *was, "a snapshot has changed");
                        }
                        if rng.one_in(10) {
                            old = Some((read, seen));
                        }
                    }
                })
            })
            .collect();
        s.spawn(|| others(&db, &stop));
        let started = Instant::now();
        let mut generation = 0;
        while started.elapsed() < Duration::from_millis(1200) && readers.iter().all(|r| !r.is_finished()) {
            generation += 1;
            crate::common::doing(format!("generation {generation} of {batch} records"));
            put_all(generation);
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            if let Err(panic) = reader.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    db.compact().unwrap();
    look(&db.read(), &t, batch, &mut Rng::new(9));
    let report = db.check(|_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn readers_see_whole_generations_of_single_records() {
    writer_beside_readers(TableKind::Ordered, 1, options(Durability::Eventual), |_, _| ());
    writer_beside_readers(TableKind::Hash, 1, options(Durability::Sync), |_, _| ());
}

#[test]
fn readers_see_whole_generations_of_small_batches() {
    writer_beside_readers(TableKind::Ordered, 40, options(Durability::Eventual), |_, _| ());
    writer_beside_readers(TableKind::Hash, 100, options(Durability::Eventual), |_, _| ());
}

#[test]
fn readers_see_whole_generations_of_large_batches() {
    writer_beside_readers(TableKind::Ordered, 5000, options(Durability::Eventual), |_, _| ());
    writer_beside_readers(TableKind::Hash, 5000, options(Durability::Sync), |_, _| ());
}

/// Chunks are merged by a thread that has let go of the commit lock, while another writer adds newer ones
/// to its own table and flushes take all there are.
#[test]
fn readers_see_whole_generations_while_chunks_are_merged() {
    let others = |db: &Db, stop: &AtomicBool| {
        let t = db.create_table("other", TableKind::Ordered).unwrap();
        let mut rng = Rng::new(17);
        for generation in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            t.put_many((0..3000u64).map(|k| (k.to_be_bytes(), value(k, generation)))).unwrap();
            if rng.one_in(8) {
                db.flush().unwrap();
            }
        }
    };
    for (kind, batch) in [(TableKind::Ordered, 2000), (TableKind::Hash, 300)] {
        let options = options(Durability::Eventual).memory_bytes(64 << 20).memtable_bytes(8 << 20);
        writer_beside_readers(kind, batch, options, others);
    }
}

/// Threads write until the database is closed under them; what was acknowledged must be there after.
#[test]
fn closing_under_writers_keeps_what_was_acknowledged() {
    for (round, durability) in
        [Durability::Sync, Durability::Eventual].into_iter().cycle().take(12).enumerate()
    {
        let storage = MemStorage::default();
        let db = Db::open_on(&storage, PATH, options(durability)).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        let done: [AtomicU64; 3] = Default::default();
        crate::common::doing(format!("closing, round {round}"));
        scope(|s| {
            for (n, done) in done.iter().enumerate() {
                let (t, n) = (t.clone(), n as u64);
                s.spawn(move || {
                    for i in 0u64.. {
                        let records =
                            (0..=i % 80).map(|j| ((n << 48 | i << 8 | j).to_be_bytes(), value(i, n)));
                        match t.put_many(records) {
                            Ok(()) => done.store(i + 1, Ordering::Release),
                            Err(Error::Closed) => break,
                            Err(e) => panic!("a write while the database was closed: {e}"),
                        }
                    }
                    // What is there can be read to the end, and then nothing.
                    match t.count() {
                        Ok(n) => assert!(n > 0 || done.load(Ordering::Relaxed) == 0),
                        Err(e) => assert!(matches!(e, Error::Closed), "{e}"),
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(20 + 5 * round as u64));
            if round % 3 == 0 {
                // Somebody is compacting as well.
                let (db, storage) = (db.clone(), &storage);
                s.spawn(move || {
                    let _refused = db.shrink(|_| {});
                    drop((db, storage));
                });
            }
            db.clone().close().unwrap();
        });
        drop((db, t));
        let read_only = Db::open_on(&storage, PATH, Options::new().read_only(true)).unwrap();
        let report = read_only.check(|_| {}).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        drop(read_only);
        let db = Db::open_on(&storage, PATH, options(durability)).unwrap();
        let t = db.open_table("t").unwrap();
        for (n, done) in done.iter().enumerate() {
            let (n, acknowledged) = (n as u64, done.load(Ordering::Acquire));
            let mut i = 0;
            // The batches are there in order, whole, and none is missing before the last.
            while t.contains(&(n << 48 | i << 8).to_be_bytes()).unwrap() {
                for j in 0..=i % 80 {
                    let found = t.get(&(n << 48 | i << 8 | j).to_be_bytes()).unwrap();
                    assert_eq!(found, Some(value(i, n)), "record {j} of batch {i} of writer {n}");
                }
                i += 1;
            }
            assert!(i >= acknowledged, "writer {n}: {acknowledged} batches were acknowledged, {i} are there");
        }
    }
}

/// The last handle may be a cursor, a snapshot or a table, in any thread.
#[test]
fn the_last_handle_closes_whatever_it_is() {
    let storage = MemStorage::default();
    for round in 0..20u64 {
        crate::common::doing(format!("dropping, round {round}"));
        let db = Db::open_on(&storage, PATH, options(Durability::Eventual)).unwrap();
        let t = db.table("t", TableKind::Ordered).unwrap();
        t.put_many((0..3000u64).map(|k| (k.to_be_bytes(), value(k, round)))).unwrap();
        let (read, cursor, txn) = (db.read(), t.cursor().unwrap(), db.write());
        let held = t.get_ref(&97u64.to_be_bytes()).unwrap().unwrap();
        drop(db);
        scope(|s| {
            s.spawn(move || {
                let mut cursor = cursor;
                while let Some((k, v)) = cursor.next().unwrap() {
                    assert_eq!(
                        generation_of(u64::from_be_bytes(k.try_into().unwrap()), v.bytes().unwrap()),
                        round
                    );
                }
            });
            s.spawn(move || assert_eq!(look(&read, &t, 3000, &mut Rng::new(round)), round));
            s.spawn(move || drop(txn));
        });
        // The bytes outlive the database.
        assert_eq!(held[..], value(97, round)[..]);
    }
}
