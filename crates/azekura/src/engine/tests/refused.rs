//! A system that starts no threads: nothing is lost, and the next occasion asks again.

use crate::api::{Db, Durability, Options, Table};
use crate::base::key::TableKind;
use crate::engine::crew::Role;
use crate::storage::MemStorage;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const RECORDS: u64 = 60_000;

fn database(disk: &MemStorage) -> Db {
    let options = Options::new().memtable_bytes(1 << 20).durability(Durability::Eventual);
    Db::open_on(disk, "refused.azk", options).unwrap()
}

/// Many times what memtables hold, in small commits.
fn fill(table: &Table) {
    for first in (0..RECORDS).step_by(100) {
        table.put_many((first..first + 100).map(|k| (k.to_be_bytes(), [k as u8; 100]))).unwrap();
    }
}

#[test]
fn where_no_thread_can_be_started_commits_are_durable_at_once() {
    let disk = MemStorage::default();
    let db = database(&disk);
    db.engine.background.crew.refused.store(true, Ordering::Relaxed);
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    table.put(b"key", b"value").unwrap();
    let visible = db.engine.state.load().visible();
    assert_eq!(db.engine.log.durable_seq(), visible);
    db.engine.background.crew.refused.store(false, Ordering::Relaxed);
    table.put(b"key", b"another").unwrap();
    assert!(db.engine.background.crew.has(Role::Log), "the next commit asks again");
}

#[test]
fn where_no_thread_can_be_started_flushes_and_large_values_are_the_callers() {
    let disk = MemStorage::default();
    let db = database(&disk);
    db.engine.background.crew.refused.store(true, Ordering::Relaxed);
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    fill(&table);
    assert!(db.engine.counters.flushes.load(Ordering::Relaxed) > 0, "memory was full several times");
    let large = vec![7; 20 << 20];
    table.put(b"large", &large).unwrap();
    db.sync().unwrap();
    db.flush().unwrap();
    db.compact().unwrap();
    assert!(!db.engine.background.crew.has(Role::Log));
    drop(table);
    db.close().unwrap();
    let db = database(&disk);
    let table = db.open_table("t").unwrap();
    assert!((0..RECORDS).all(|k| table.get(&k.to_be_bytes()).unwrap().unwrap() == [k as u8; 100]));
    assert!(table.get(b"large").unwrap().unwrap() == large);
}

#[test]
fn a_flush_whose_thread_was_refused_is_not_forgotten() {
    // The log's thread may start the one for flushes before it is refused: then with another database.
    let (db, table) = (0..1000)
        .find_map(|_| {
            let db = database(&MemStorage::default());
            let table = db.create_table("t", TableKind::Ordered).unwrap();
            assert!(db.engine.background.crew.has(Role::Log));
            db.engine.background.crew.refused.store(true, Ordering::Relaxed);
            db.engine.background.crew.need(Role::Flush).is_err().then_some((db, table))
        })
        .expect("the log's thread is not always the first");
    table.put(b"key", b"value").unwrap();
    assert!(db.engine.freezer().rotate(&mut db.engine.committer.lock()).unwrap());
    assert!(db.engine.background.crew.need(Role::Flush).is_err() && db.engine.freezer().has_frozen());
    db.engine.background.crew.refused.store(false, Ordering::Relaxed);
    let until = Instant::now() + Duration::from_secs(60);
    while db.engine.freezer().has_frozen() {
        assert!(Instant::now() < until, "nobody has flushed");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}
