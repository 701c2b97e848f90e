//! Single rules of records that expire.

use super::{PATH, Time, copy_of, ms, open, options};
use azekura::storage::MemStorage;
use azekura::{Db, Error, Lifetime, Merge, TableKind, WriteOptions};
use std::time::Duration;

#[test]
fn a_put_over_an_expired_record_is_one_of_a_new_key() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Hash).unwrap();
    t.put_for("k", "1", ms(100)).unwrap();
    assert!(!t.add("k", "2").unwrap());
    time.go_on(100);
    assert!(!t.remove_existing("k").unwrap() && !t.replace("k", "2").unwrap());
    assert_eq!(t.take("k").unwrap(), None);
    assert!(t.add("k", "2").unwrap());
    assert_eq!(t.ttl("k").unwrap(), Some(Lifetime::Unlimited));
    t.put_for("n", 5i64.to_le_bytes(), ms(100)).unwrap();
    assert_eq!(t.increment("n", 1).unwrap(), 6);
    assert_eq!(t.ttl("n").unwrap(), Some(Lifetime::Left(ms(100))));
    time.go_on(100);
    assert_eq!(t.increment("n", 1).unwrap(), 1);
    assert_eq!(t.ttl("n").unwrap(), Some(Lifetime::Unlimited));
}

#[test]
fn a_transaction_sees_one_time() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Ordered).unwrap();
    for i in 0..2_000u64 {
        t.put_for(i.to_be_bytes(), "value", ms(100 + i % 2)).unwrap();
    }
    db.flush().unwrap();
    let (read, mut write) = (db.read(), db.write());
    assert_eq!(read.count(&t).unwrap(), 2_000);
    assert!(write.contains(&t, 0u64.to_be_bytes()).unwrap());
    time.go_on(100);
    assert_eq!(t.count().unwrap(), 1_000);
    db.compact().unwrap();
    time.go_on(1);
    assert_eq!(t.count().unwrap(), 0);
    db.compact().unwrap();
    // Many lookups: enough for a snapshot to look for a better state.
    for i in 0..2_000u64 {
        assert!(read.contains(&t, i.to_be_bytes()).unwrap(), "{i}");
    }
    assert_eq!(read.count(&t).unwrap(), 2_000);
    assert!(!write.add(&t, 0u64.to_be_bytes(), "other").unwrap());
    assert_eq!(db.read().count(&t).unwrap(), 0);
}

#[test]
fn what_has_expired_leaves_the_file_without_being_read() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Hash).unwrap();
    for round in 0..4u64 {
        let mut w = db.write_with(WriteOptions::default());
        for i in 0..20_000u64 {
            w.put_for(&t, (i << 8 | round).to_be_bytes(), i.to_le_bytes(), ms(1_000)).unwrap();
        }
        w.commit().unwrap();
        time.go_on(100);
    }
    db.flush().unwrap();
    let full = db.stats().file_bytes;
    assert_eq!(t.count().unwrap(), 80_000);
    time.go_on(1_000);
    assert_eq!(t.count().unwrap(), 0);
    db.compact().unwrap();
    assert!(db.stats().levels.is_empty(), "{:?}", db.stats().levels);
    db.close().unwrap();
    let db = open(&storage, &time);
    assert!(db.stats().file_bytes * 20 < full, "{} of {full}", db.stats().file_bytes);
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
}

#[test]
fn what_an_expired_record_hides_stays_hidden() {
    for merged in [false, true] {
        let (storage, time) = (MemStorage::default(), Time::new());
        let db = open(&storage, &time);
        let t = db.table("t", TableKind::Ordered).unwrap();
        for i in 0..100u64 {
            t.put(i.to_be_bytes(), "old").unwrap();
        }
        db.flush().unwrap();
        for i in 0..50u64 {
            t.put_for(i.to_be_bytes(), "new", ms(10)).unwrap();
        }
        db.flush().unwrap();
        time.go_on(10);
        if merged {
            db.compact().unwrap();
        }
        assert_eq!(t.count().unwrap(), 50);
        assert_eq!(t.get(3u64.to_be_bytes()).unwrap(), None);
        drop(t);
        db.close().unwrap();
        let db = open(&storage, &time);
        assert_eq!(db.open_table("t").unwrap().count().unwrap(), 50);
    }
}

/// The time of the newest commit stands in the log, in seconds, rounded up.
#[test]
fn a_crash_and_a_clock_that_was_set_back_bring_nothing_back() {
    let time = Time::new();
    let disk = MemStorage::default();
    let db = open(&disk, &time);
    let t = db.table("t", TableKind::Hash).unwrap();
    t.put_for("short", "1", ms(2_000)).unwrap();
    t.put_for("long", "1", ms(1_000_000)).unwrap();
    time.go_on(2_000);
    assert!(!t.contains("short").unwrap());
    t.put("another", "commit").unwrap();
    let crashed = copy_of(&disk);
    time.go_back(3_600_000);
    let db2 = open(&crashed, &time);
    let t2 = db2.open_table("t").unwrap();
    assert!(!t2.contains("short").unwrap() && t2.contains("long").unwrap());
    // And it goes on.
    time.go_on(1_000_000);
    assert!(!t2.contains("long").unwrap());
    // The handle that is still open has a clock of its own, which waits.
    assert!(!t.contains("short").unwrap());
}

/// A handle that has only read has seen what has expired, too.
#[test]
fn reading_and_closing_bring_nothing_back() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    db.table("t", TableKind::Hash).unwrap().put_for("k", "v", ms(5_000)).unwrap();
    db.close().unwrap();
    time.go_on(5_000);
    let db = open(&storage, &time);
    assert!(!db.open_table("t").unwrap().contains("k").unwrap());
    db.close().unwrap();
    time.go_back(4_000);
    let db = open(&storage, &time);
    assert!(!db.open_table("t").unwrap().contains("k").unwrap());
}

#[test]
fn a_table_says_how_long_its_records_live() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.expiring_table("t", TableKind::Hash, ms(50)).unwrap();
    t.put("a", "1").unwrap();
    t.put("large", vec![7; 9_000]).unwrap();
    t.put_for("b", "1", Duration::MAX).unwrap();
    t.put_many([("c", "1"), ("d", "1")]).unwrap();
    let left = |of: &azekura::Table, key: &str| of.ttl(key).unwrap();
    for key in ["a", "c", "d", "large"] {
        assert_eq!(left(&t, key), Some(Lifetime::Left(ms(50))), "{key}");
    }
    assert_eq!(left(&t, "b"), Some(Lifetime::Unlimited));
    assert!(matches!(db.expiring_table("t", TableKind::Hash, ms(51)), Err(Error::WrongType { .. })));
    assert!(matches!(db.expiring_table("t", TableKind::Ordered, ms(50)), Err(Error::WrongType { .. })));
    assert!(matches!(db.create_expiring_table("u", TableKind::Hash, ms(0)), Err(Error::Invalid { .. })));
    assert!(matches!(
        db.create_expiring_table("u", TableKind::Hash, Duration::MAX),
        Err(Error::Invalid { .. })
    ));
    // By the log, and by a manifest.
    for closes in [false, true] {
        let storage = if closes { storage.clone() } else { copy_of(&storage) };
        let db = if closes {
            db.clone().close().unwrap();
            open(&storage, &time)
        } else {
            open(&storage, &time)
        };
        let t = db.open_table("t").unwrap();
        assert_eq!(
            (t.usual_ttl(), db.table("plain", TableKind::Hash).unwrap().usual_ttl()),
            (Some(ms(50)), None)
        );
        t.put("e", "1").unwrap();
        assert_eq!(t.ttl("e").unwrap(), Some(Lifetime::Left(ms(50))));
        db.rename_table("t", "renamed").unwrap();
        let t = db.open_table("renamed").unwrap();
        assert_eq!(t.usual_ttl(), Some(ms(50)));
        db.rename_table("renamed", "t").unwrap();
    }
}

/// What nobody uses leaves no trace: such files are as they were, of the same version.
#[test]
fn a_file_in_which_nothing_expires_has_the_first_version() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Hash).unwrap();
    t.put("k", "v").unwrap();
    db.flush().unwrap();
    let version = |storage: &MemStorage| crate::copies::bytes_of(storage, PATH)[12];
    assert_eq!(version(&storage), 1);
    t.put_for("k", "v", ms(1)).unwrap();
    db.flush().unwrap();
    assert_eq!(version(&storage), 2);
}

#[test]
fn unique_values_are_free_again_when_their_record_has_expired() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Hash).unwrap();
    let by = t.create_index("by", "v unique").unwrap();
    t.put_for("a", "same", ms(100)).unwrap();
    assert!(matches!(t.put("b", "same"), Err(Error::NotUnique { .. })));
    time.go_on(100);
    assert_eq!(by.count(&["same".into()]).unwrap(), 0);
    t.put("b", "same").unwrap();
    assert_eq!(by.count(&["same".into()]).unwrap(), 1);
    // In one transaction, too.
    let mut w = db.write();
    w.put_for(&t, "b", "same", ms(0)).unwrap();
    w.put(&t, "c", "same").unwrap();
    w.put_for(&t, "d", "other", ms(0)).unwrap();
    w.put(&t, "e", "other").unwrap();
    w.commit().unwrap();
    assert!(matches!(t.put("d", "other"), Err(Error::NotUnique { .. })));
    assert!(t.remove_existing("c").unwrap() && t.remove_existing("e").unwrap());
    t.put("b", "same").unwrap();
    // The entry lives as long as the record does, whatever is done with that.
    assert!(t.expire("b", ms(100)).unwrap());
    assert!(t.expire("b", ms(300)).unwrap());
    time.go_on(200);
    assert_eq!(by.count(&["same".into()]).unwrap(), 1);
    assert!(t.persist("b").unwrap());
    time.go_on(1_000);
    assert_eq!(by.count(&["same".into()]).unwrap(), 1);
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
}

/// Beside a uniform time to live, a record costs what it would cost without one, and a few bits.
#[test]
fn the_column_of_times_is_packed() {
    let size = |ttl: Option<u64>| {
        let (storage, time) = (MemStorage::default(), Time::new());
        let db = Db::open_on(&storage, PATH, options(&time).memtable_bytes(8 << 20).memory_bytes(64 << 20))
            .unwrap();
        let t = db.table("t", TableKind::Hash).unwrap();
        for batch in 0..60u64 {
            let mut w = db.write();
            for i in 0..2_000u64 {
                let key = (batch << 32 | i).to_be_bytes();
                match ttl {
                    None => w.put(&t, key, [7; 8]).unwrap(),
                    Some(ttl) => w.put_for(&t, key, [7; 8], ms(ttl)).unwrap(),
                }
            }
            w.commit().unwrap();
            time.go_on(1);
        }
        db.compact().unwrap();
        assert_eq!(t.count().unwrap(), 120_000);
        let bytes = db.stats().levels.iter().map(|l| l.bytes).sum::<u64>() as f64 / 120_000.0;
        db.close().unwrap();
        bytes
    };
    let (plain, expiring) = (size(None), size(Some(60_000)));
    eprintln!("bytes a record: {plain:.2} without, {expiring:.2} with times of 60 different milliseconds");
    assert!(expiring < plain + 1.0, "{expiring} bytes a record, {plain} without a time");
}

#[test]
fn what_is_merged_after_a_table_got_a_time_to_live_has_it() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Hash).unwrap();
    let mut w = db.write();
    w.merge(&t, "a", Merge::AddU64(1)).unwrap();
    w.set_usual_ttl(&t, Some(ms(60_000))).unwrap();
    w.merge(&t, "b", Merge::AddU64(1)).unwrap();
    w.commit().unwrap();
    assert_eq!(t.ttl("a").unwrap(), Some(Lifetime::Unlimited));
    assert!(matches!(t.ttl("b").unwrap(), Some(Lifetime::Left(left)) if left <= ms(60_000)));
}

#[test]
fn a_rollback_to_a_savepoint_leaves_the_time_that_a_transaction_began_with() {
    let (storage, time) = (MemStorage::default(), Time::new());
    let db = open(&storage, &time);
    let t = db.table("t", TableKind::Ordered).unwrap();
    let mut w = db.write();
    w.open_table("t").unwrap();
    w.put(&t, "a", "1").unwrap();
    let savepoint = w.savepoint();
    t.set_usual_ttl(Some(ms(1000))).unwrap();
    w.rollback_to(&savepoint).unwrap();
    w.put(&t, "b", "2").unwrap();
    assert_eq!(w.ttl(&t, "b").unwrap(), Some(Lifetime::Unlimited));
    let savepoint = w.savepoint();
    w.set_usual_ttl(&t, Some(ms(5))).unwrap();
    w.rollback_to(&savepoint).unwrap();
    w.put(&t, "c", "3").unwrap();
    assert_eq!(w.ttl(&t, "c").unwrap(), Some(Lifetime::Unlimited));
}
