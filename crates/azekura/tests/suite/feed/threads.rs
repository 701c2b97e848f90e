//! Several writers beside a reader, and tables that come to the feed meanwhile: no commit passes it by.

use super::{newest, options};
use azekura::storage::MemStorage;
use azekura::{ChangeKind, Db, Durability, FeedContent, TableKind};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const WRITERS: u64 = 4;

/// Each writer counts up under a key of its own. By `turn`: one by one, or ten at a time with a value each.
fn write(db: &Db, writer: u64, first: u64, last: u64, durability: Durability) {
    let table = db.open_table("t").unwrap();
    for i in first..last {
        if i % 3 == 0 && durability == Durability::Sync {
            table.put(writer.to_be_bytes(), i.to_be_bytes()).unwrap();
            continue;
        }
        let options = azekura::WriteOptions { durability: Some(durability), ..Default::default() };
        let mut txn = db.write_with(options);
        txn.put(&table, writer.to_be_bytes(), i.to_be_bytes()).unwrap();
        txn.commit_blind().unwrap();
    }
}

#[test]
fn a_reader_sees_each_commit_of_each_writer_once() {
    for durability in [Durability::Sync, Durability::Eventual] {
        let storage = MemStorage::default();
        let options = options().threads(true).eventual_delay(Duration::from_millis(20));
        let db = Db::open_on(&storage, "/f.azk", options).unwrap();
        db.create_table("t", TableKind::Hash).unwrap().set_feed(Some(FeedContent::Values)).unwrap();
        let begin = newest(&db);
        const EACH: u64 = 1500;
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let db = &db;
                scope.spawn(move || write(db, writer, 1, EACH + 1, durability));
            }
            let (mut feed, mut seen) = (db.feed(begin).unwrap(), BTreeMap::new());
            let mut position = begin;
            while seen.values().sum::<u64>() < WRITERS * EACH {
                assert!(feed.wait(Duration::from_secs(60)).unwrap(), "{seen:?}");
                while let Some(change) = feed.next().unwrap() {
                    let ChangeKind::Put { key, value: Some(value), .. } = change.kind else { panic!() };
                    let count: &mut u64 = seen.entry(key.to_vec()).or_default();
                    *count += 1;
                    assert_eq!(value, count.to_be_bytes(), "commit {}", change.commit);
                    crate::common::doing(format!("reading commit {}", change.commit));
                }
                assert!(feed.position() >= position);
                position = feed.position();
                if position.is_multiple_of(7) {
                    feed = db.feed(position).unwrap();
                }
            }
        });
    }
}

#[test]
fn no_commit_passes_a_table_by_that_comes_to_the_feed() {
    for round in 0..30 {
        let storage = MemStorage::default();
        let options = options().threads(true);
        let db = Db::open_on(&storage, "/f.azk", options).unwrap();
        let t = db.create_table("t", TableKind::Hash).unwrap();
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (db, ends) = (&db, &ends);
                scope.spawn(move || {
                    let mut i = 1;
                    while !ends.load(Ordering::Relaxed) {
                        write(db, writer, i, i + 1, Durability::Eventual);
                        i += 1;
                    }
                });
            }
            for again in 0..6 {
                std::thread::sleep(Duration::from_millis(round % 5));
                t.set_feed(Some(FeedContent::Values)).unwrap();
                // What is seen now is older than what is to come.
                let txn = db.read();
                let begin = db.feed_info().unwrap().unwrap().tables[0].since;
                let mut last: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
                drop(txn);
                std::thread::sleep(Duration::from_millis(3));
                db.sync().unwrap();
                let mut feed = db.feed(begin).unwrap();
                while let Some(change) = feed.next().unwrap() {
                    let ChangeKind::Put { key, value: Some(value), .. } = change.kind else { continue };
                    let value = u64::from_be_bytes(value.try_into().unwrap());
                    if let Some(before) = last.insert(key.to_vec(), value) {
                        assert_eq!(value, before + 1, "round {round}, {again}: commit {}", change.commit);
                    }
                }
                let seen = feed.position();
                if again % 2 == 1 {
                    t.set_feed(None).unwrap();
                    db.sync().unwrap();
                    // Up to the end of the feed nothing is missing.
                    let mut feed = db.feed(seen).unwrap();
                    while let Some(change) = feed.next().unwrap() {
                        let ChangeKind::Put { key, value: Some(value), .. } = change.kind else { continue };
                        let value = u64::from_be_bytes(value.try_into().unwrap());
                        if let Some(before) = last.insert(key.to_vec(), value) {
                            assert_eq!(value, before + 1, "round {round}, {again}: commit {}", change.commit);
                        }
                    }
                }
            }
            ends.store(true, Ordering::Relaxed);
        });
    }
}

type Told = (String, Vec<u8>, Option<Vec<u8>>, bool);

/// What the feed tells after a commit: table, key, value, and whether it expires.
fn told(db: &Db, after: u64) -> Vec<Told> {
    let (mut feed, mut all) = (db.feed(after).unwrap(), Vec::new());
    while let Some(change) = feed.next().unwrap() {
        let (key, value) = match change.kind {
            ChangeKind::Put { key, value, old: None } => (key, value.map(<[u8]>::to_vec)),
            ChangeKind::Remove { key, old: None } => (key, Some(b"removed".to_vec())),
            other => panic!("{other:?}"),
        };
        let told = (change.table.to_owned(), key.to_vec(), value, change.expires.is_some());
        all.push((change.commit, told));
    }
    // A hash table has its keys in an order of each file's own.
    all.sort();
    all.into_iter().map(|(_, told)| told).collect()
}

/// One small commit after the other, of both kinds of table and all forms of a change.
fn write_small(db: &Db) {
    let [a, b] = ["a", "b"].map(|name| db.open_table(name).unwrap());
    for i in 0..400u64 {
        let t = if i % 3 == 0 { &a } else { &b };
        let (key, value) = (i % 50, vec![i as u8; 8 + i as usize % 500]);
        match i % 7 {
            0 => t.remove(key.to_be_bytes()).unwrap(),
            1 => t.put_for(key.to_be_bytes(), &value, Duration::from_secs(3600)).unwrap(),
            2 => t.put_many((0..4).map(|j| (format!("key {}", key + j), &value))).unwrap(),
            _ => t.put(key.to_be_bytes(), &value).unwrap(),
        }
    }
}

/// Whether what is told is gathered before the commit lock or under it, it is the same, also after recovery,
/// and what is too much is forgotten.
#[test]
fn small_commits_are_told_as_durable_ones_are() {
    for (content, kept) in [(FeedContent::Values, 200_000), (FeedContent::Keys, 70_000)] {
        let mut all = Vec::new();
        for durability in [Durability::Sync, Durability::Eventual] {
            let disk = sim::disk::Disk::new();
            let options = || {
                let delay = Duration::from_secs(600);
                options().threads(true).eventual_delay(delay).durability(durability)
            };
            let db = Db::open_on(&disk, "/f.azk", options()).unwrap();
            for (name, kind) in [("a", TableKind::Ordered), ("b", TableKind::Hash)] {
                db.create_table(name, kind).unwrap().set_feed(Some(content)).unwrap();
            }
            let begin = newest(&db);
            write_small(&db);
            db.sync().unwrap();
            let live = told(&db, begin);
            let cut = disk.after_cut(sim::disk::Keep::None, &mut sim::rng::Rng(kept));
            db.close().unwrap();
            let db = Db::open_on(&cut, "/f.azk", options()).unwrap();
            assert_eq!(told(&db, begin), live, "after a cut");
            assert!(db.check(|_| {}).unwrap().problems.is_empty());
            // What is told from here on goes beyond what is kept.
            db.set_feed_limits(kept, None).unwrap();
            (0..10).for_each(|_| write_small(&db));
            db.sync().unwrap();
            let info = db.feed_info().unwrap().unwrap();
            assert!(info.oldest > begin + 1000, "{info:?}");
            assert!(info.newest > info.oldest + 300, "{info:?}");
            assert!(matches!(db.feed(begin), Err(azekura::Error::FeedGap { .. })));
            assert!(!told(&db, info.oldest).is_empty());
            assert!(db.check(|_| {}).unwrap().problems.is_empty());
            db.close().unwrap();
            all.push(live);
        }
        assert_eq!(all[0], all[1], "{content:?}");
    }
}
