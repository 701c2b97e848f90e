//! Handles that are not what a call may think: of another database, of a closed one, of a dropped table.

use crate::common::Rng;
use azekura::storage::MemStorage;
use azekura::{Db, Durability, Error, Isolation, Options, Result, Table, TableKind, WriteOptions};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

fn memory(name: &str) -> Db {
    crate::common::watch(Duration::from_secs(60));
    Db::open_on(&MemStorage::default(), name, Options::new().memory_bytes(8 << 20)).unwrap()
}

fn path(name: &str) -> PathBuf {
    crate::common::watch(Duration::from_secs(60));
    std::env::temp_dir().join(format!("azekura-handles-{}-{name}.azk", std::process::id()))
}

fn is_foreign<T>(call: &str, result: Result<T>) {
    match result {
        Err(Error::Invalid { detail }) => {
            assert!(detail.contains("one.azk") && detail.contains("two.azk"), "{detail}")
        }
        Err(e) => panic!("{call}: {e}"),
        Ok(_) => panic!("{call} took a table of another database"),
    }
}

#[test]
fn a_table_of_another_database_is_refused_by_every_call() {
    let (one, two) = (memory("/one.azk"), memory("/two.azk"));
    for kind in [TableKind::Hash, TableKind::Ordered] {
        let name = format!("{kind:?}");
        let (own, t) = (one.create_table(&name, kind).unwrap(), two.create_table(&name, kind).unwrap());
        let (k, v) = (&b"key"[..], &b"value"[..]);
        let large = vec![1; 9000];
        let read = one.read();
        is_foreign("get", read.get(&t, k));
        is_foreign("get_into", read.get_into(&t, k, &mut Vec::new()));
        is_foreign("get_ref", read.get_ref(&t, k));
        is_foreign("get_with", read.get_with(&t, k, |_| ()));
        is_foreign("contains", read.contains(&t, k));
        is_foreign("get_many", read.get_many(&t, &[k]));
        is_foreign("get_many_with", read.get_many_with(&t, &[k], |_, _| ()));
        is_foreign("cursor", read.cursor(&t));
        is_foreign("count", read.count(&t));
        for isolation in [Isolation::Serializable, Isolation::Snapshot] {
            let mut txn = one.write_with(WriteOptions { isolation, ..WriteOptions::default() });
            txn.put(&own, k, b"own").unwrap();
            is_foreign("put", txn.put(&t, k, v));
            is_foreign("put of eight bytes", txn.put(&t, b"12345678", v));
            is_foreign("put of a large value", txn.put(&t, k, &large));
            is_foreign("remove", txn.remove(&t, k));
            is_foreign("clear", txn.clear(&t));
            is_foreign("txn.get", txn.get(&t, k));
            is_foreign("txn.get_into", txn.get_into(&t, k, &mut Vec::new()));
            is_foreign("txn.get_many", txn.get_many(&t, &[k]));
            is_foreign("txn.contains", txn.contains(&t, k));
            is_foreign("add", txn.add(&t, k, v));
            is_foreign("replace", txn.replace(&t, k, v));
            is_foreign("append", txn.append(&t, k, v));
            is_foreign("increment", txn.increment(&t, k, 1));
            is_foreign("compare_and_swap", txn.compare_and_swap(&t, k, None, Some(v)));
            is_foreign("update", txn.update(&t, k, |_| None));
            is_foreign("take", txn.take(&t, k));
            is_foreign("txn.cursor", txn.cursor(&t));
            is_foreign("txn.count", txn.count(&t));
            if kind == TableKind::Ordered {
                is_foreign("range", read.range(&t, ..));
                is_foreign("prefix", read.prefix(&t, k));
                is_foreign("txn.range", txn.range(&t, ..));
                is_foreign("txn.prefix", txn.prefix(&t, k));
                is_foreign("remove_range", txn.remove_range(&t, ..));
            }
            // What was right stays.
            txn.commit().unwrap();
        }
        assert_eq!((own.count().unwrap(), t.count().unwrap()), (1, 0));
    }
    // Clones are the same database.
    let clone = one.clone();
    let t = one.open_table("Hash").unwrap();
    let mut txn = clone.write();
    txn.put(&t, b"k", b"v").unwrap();
    txn.commit().unwrap();
    assert!(clone.read().contains(&t, b"k").unwrap());
    assert!(one.check(|_| {}).unwrap().problems.is_empty());
}

fn is_closed<T>(call: &str, result: Result<T>) {
    match result {
        Err(Error::Closed) => {}
        Err(e) => panic!("{call}: {e}"),
        Ok(_) => panic!("{call} of a closed database succeeded"),
    }
}

#[test]
fn after_the_close_every_call_says_so_and_the_file_is_free() {
    for (read_only, mapped) in [(false, false), (true, false), (false, true), (true, true)] {
        let path = path(&format!("closed-{read_only}-{mapped}"));
        let options = || Options::new().memory_bytes(8 << 20).mapped(mapped);
        let db = options().open(&path).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        t.put_many((0..2000u64).map(|i| (i.to_be_bytes(), vec![1; 50]))).unwrap();
        t.put(b"large", &[2; 9000]).unwrap();
        drop(t);
        db.close().unwrap();
        let db = options().read_only(read_only).open(&path).unwrap();
        let t = db.open_table("t").unwrap();
        if !read_only {
            t.put(b"in memory", b"1").unwrap();
        }
        let (read, mut blind, mut txn) = (db.read(), db.write(), db.write());
        blind.put(&t, b"blind", b"").unwrap();
        txn.get(&t, b"large").unwrap();
        txn.put(&t, b"k", b"").unwrap();
        let point = txn.savepoint();
        let mut cursor = t.cursor().unwrap();
        cursor.next().unwrap().unwrap();
        let mut fresh = t.cursor().unwrap();
        let kept = t.get_ref(&5u64.to_be_bytes()).unwrap().unwrap();
        let large = t.get_ref(b"large").unwrap().unwrap();
        db.clone().close().unwrap();
        // Others may have it at once, while all of this lives, unless readers have parts of it in their
        // hands.
        let is_free = || match options().open(&path) {
            Ok(again) => Some(again),
            Err(Error::Locked { .. }) => None,
            Err(e) => panic!("{e}"),
        };
        let free = is_free();
        assert_eq!(free.is_some(), !mapped);
        let records = 2001 + u64::from(!read_only);
        let count = |again: &Db| assert_eq!(again.open_table("t").unwrap().count().unwrap(), records);
        free.iter().for_each(count);
        assert_eq!((&*kept, &*large), (&[1; 50][..], &[2; 9000][..]));
        let key = 7u64.to_be_bytes();
        is_closed("get", t.get(&key));
        is_closed("get_ref", t.get_ref(&key));
        is_closed("get_many", t.get_many(&[key]));
        is_closed("contains", t.contains(&key));
        is_closed("count", t.count());
        is_closed("cursor", t.cursor());
        is_closed("next", cursor.next());
        is_closed("prev", fresh.prev());
        is_closed("read.get", read.get(&t, &key));
        is_closed("read.get of a large value", read.get(&t, b"large"));
        is_closed("read.cursor", read.cursor(&t));
        is_closed("put", t.put(&key, b""));
        is_closed("put of a large value", t.put(&key, &[0; 9000]));
        is_closed("put_many", t.put_many([(&key, b"")]));
        is_closed("remove", t.remove(&key));
        is_closed("increment", t.increment(b"n", 1));
        is_closed("clear", t.clear());
        is_closed("txn.put", txn.put(&t, &key, b""));
        is_closed("txn.get", txn.get(&t, &key));
        is_closed("txn.cursor", txn.cursor(&t));
        is_closed("rollback_to", txn.rollback_to(&point));
        is_closed("commit", txn.commit());
        is_closed("commit of blind writes", blind.commit());
        is_closed("commit of nothing", db.write().commit());
        is_closed("read", db.read().get(&t, &key));
        let snapshot = WriteOptions { isolation: Isolation::Snapshot, ..WriteOptions::default() };
        is_closed("write", db.write_with(snapshot).put(&t, &key, b""));
        is_closed("table", db.table("t", TableKind::Ordered));
        is_closed("open_table", db.open_table("t"));
        is_closed("create_table", db.create_table("u", TableKind::Ordered));
        is_closed("rename_table", db.rename_table("t", "u"));
        is_closed("drop_table", db.drop_table("t"));
        is_closed("sync", db.sync());
        is_closed("flush", db.flush());
        is_closed("compact", db.compact());
        is_closed("shrink", db.shrink(|_| {}));
        is_closed("check", db.check(|_| {}));
        is_closed("close", db.clone().close());
        assert_eq!((db.tables().len(), t.name().as_str()), (1, "t"));
        let _figures = db.stats();
        free.iter().for_each(count);
        if mapped {
            drop((read, cursor, fresh, kept));
            assert!(is_free().is_none(), "a value is still in somebody's hands");
            drop(large);
        }
        let again = free.or_else(is_free).expect("nobody reads any more");
        count(&again);
        drop((t, db));
        again.close().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

/// Readers go on while one closes, and another handle puts other values in the same places of the file.
#[test]
fn a_read_that_races_with_the_close_is_right_or_closed() {
    const KEYS: u64 = 3000;
    let path = path("race");
    let options = |round: u64| {
        let options =
            Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).durability(Durability::Eventual);
        options.mapped(round.is_multiple_of(2))
    };
    let value = |round: u64, i: u64| {
        vec![round as u8; if i.is_multiple_of(3) { 1100 + i as usize % 900 } else { 300 }]
    };
    for round in 0..8u64 {
        let db = options(round).open(&path).unwrap();
        let t = db.table("t", TableKind::Hash).unwrap();
        if round == 0 {
            t.put_many((0..KEYS).map(|i| (i.to_be_bytes(), value(0, i)))).unwrap();
            db.shrink(|_| {}).unwrap();
        }
        let (over, reads) = (AtomicBool::new(false), AtomicU64::new(0));
        scope(|s| {
            for n in 0..3u64 {
                let (t, reads, read) = (t.clone(), &reads, db.read());
                s.spawn(move || {
                    let mut rng = Rng::new(round << 8 | n);
                    loop {
                        let i = rng.below(KEYS);
                        let found = match n {
                            0 => t.get(&i.to_be_bytes()),
                            1 => read.get(&t, &i.to_be_bytes()),
                            _ => read.get_many(&t, &[i.to_be_bytes()]).map(|mut all| all.remove(0)),
                        };
                        match found {
                            Ok(found) => {
                                assert!(found.as_ref() == Some(&value(round, i)), "a wrong value of key {i}")
                            }
                            Err(Error::Closed) => break,
                            Err(e) => panic!("{e}"),
                        }
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while reads.load(Ordering::Relaxed) < 300 {
                std::thread::yield_now();
            }
            db.close().unwrap();
            // Those who read the file where it stands have their last calls.
            let started = Instant::now();
            let other = loop {
                match options(round).open(&path) {
                    Err(Error::Locked { .. }) if started.elapsed() < Duration::from_secs(60) => {
                        std::thread::yield_now()
                    }
                    opened => break opened.unwrap(),
                }
            };
            let t = other.open_table("t").unwrap();
            t.put_many((0..KEYS).map(|i| (i.to_be_bytes(), value(round + 1, i)))).unwrap();
            other.shrink(|_| {}).unwrap();
            drop(t);
            other.close().unwrap();
            over.store(true, Ordering::Relaxed);
        });
        assert!(over.into_inner());
        crate::common::doing(format!("round {round}"));
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_put_to_a_dropped_table_fails_at_once_and_names_it() {
    let db = memory("/dropped.azk");
    let [kept, gone, late] =
        ["kept", "gone", "late"].map(|name| db.create_table(name, TableKind::Hash).unwrap());
    let refused = |name: &str, result: Result<()>| match result {
        Err(Error::NoSuchTable { name: found }) => assert_eq!(found, name),
        other => panic!("{other:?}"),
    };
    let snapshot = db.read();
    gone.put(b"k", b"v").unwrap();
    let mut txn = db.write();
    let write = |txn: &mut azekura::WriteTxn, t: &Table| txn.put(t, b"12345678", b"v");
    write(&mut txn, &kept).unwrap();
    write(&mut txn, &gone).unwrap();
    db.drop_table("gone").unwrap();
    refused("gone", write(&mut txn, &gone));
    refused("gone", txn.remove(&gone, b"k"));
    refused("gone", txn.clear(&gone));
    refused("gone", txn.put(&gone, b"k", &[0; 9000]));
    write(&mut txn, &kept).unwrap();
    refused("gone", write(&mut txn, &gone));
    refused("gone", txn.commit());
    let mut fresh = db.write();
    refused("gone", write(&mut fresh, &gone));
    write(&mut fresh, &kept).unwrap();
    write(&mut fresh, &late).unwrap();
    db.drop_table("late").unwrap();
    refused("late", fresh.commit());
    refused("gone", gone.put(b"k", b"v"));
    refused("gone", gone.put_many([(b"k", b"v")]));
    refused("gone", gone.remove(b"k"));
    refused("gone", gone.get(b"k").map(|_| ()));
    refused("gone", gone.cursor().map(|_| ()));
    // A snapshot of before still has it.
    assert_eq!(snapshot.get(&gone, b"k").unwrap(), None);
    assert_eq!(kept.count().unwrap(), 0, "nothing of the refused transactions was written");
    // A new one of the same name is another.
    let anew = db.create_table("gone", TableKind::Hash).unwrap();
    refused("gone", gone.put(b"k", b"v"));
    anew.put(b"k", b"v").unwrap();
}
