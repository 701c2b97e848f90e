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
