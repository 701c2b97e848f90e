//! Large values that small durable commits have in the log, until a flush stores them apart.

use super::hooked::{Call, Hooked};
use super::{copy_of, leaked};
use crate::api::{Db, FeedContent, Options, Table};
use crate::base::error::Error;
use crate::base::key::TableKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PATH: &str = "logged.azk";

fn options() -> Options {
    Options::new().memory_bytes(128 << 20).threads(false).hash_seed(7)
}

fn open(disk: &Hooked) -> Db {
    Db::open_on(disk, PATH, options()).unwrap()
}

/// Counts the syncs of what is done.
fn syncs(disk: &Hooked, act: impl FnOnce()) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    disk.hook(move |call| {
        if matches!(call, Call::Sync | Call::WriteDurable) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    act();
    disk.heal();
    count.load(Ordering::Relaxed)
}

/// The bytes of value segments.
fn apart(db: &Db) -> u64 {
    db.engine.values.segments().iter().map(|s| s.used()).sum()
}

#[test]
fn a_small_durable_commit_is_one_sync_however_large_its_values_are() {
    let disk = Hooked::default();
    let db = open(&disk);
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("first", "of the log").unwrap();
    let put = |len: usize| syncs(&disk, || t.put("k", vec![1; len]).unwrap());
    assert_eq!([8, 1023, 1024, 8191].map(put), [1; 4]);
    assert_eq!(apart(&db), 0);
    assert_eq!(put(8192), 2, "no page has room for it");
    let day = Duration::from_secs(86_400);
    assert_eq!(syncs(&disk, || t.put_for("expires", vec![1; 5000], day).unwrap()), 1);
    let put_many = |n: u8| syncs(&disk, || t.put_many((0..n).map(|i| ([i], vec![i; 6000]))).unwrap());
    assert_eq!(put_many(10), 1, "60,000 bytes");
    let before = apart(&db);
    assert_eq!(put_many(12), 2, "72,000 bytes");
    assert!((apart(&db) - before) / 6000 == 2, "only what is too much");
    db.close().unwrap();
}

/// What the records of some tables are.
fn expect(db: &Db, len: usize) {
    let [numbers, texts, mixed, expiring] = tables(db);
    for i in 0..200u64 {
        assert_eq!(numbers.get(i.to_be_bytes()).unwrap().unwrap(), value(i, len));
        assert_eq!(texts.get(format!("key {i}")).unwrap().unwrap(), value(i, len));
        let short = if i % 3 == 0 { len } else { 20 };
        assert_eq!(mixed.get(i.to_be_bytes()).unwrap().unwrap(), value(i, short));
        assert_eq!(expiring.get(i.to_be_bytes()).unwrap().unwrap(), value(i, len));
        assert!(expiring.ttl(i.to_be_bytes()).unwrap().is_some());
    }
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

fn tables(db: &Db) -> [Table; 4] {
    let kinds = [TableKind::Ordered, TableKind::Hash, TableKind::Ordered, TableKind::Hash];
    let names = ["numbers", "texts", "mixed", "expiring"];
    [0, 1, 2, 3].map(|i| db.table(names[i], kinds[i]).unwrap())
}

fn value(i: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|n| (i * 31 + n * 7) as u8).collect()
}

fn fill(db: &Db, len: usize) {
    let [numbers, texts, mixed, expiring] = tables(db);
    for i in 0..200u64 {
        numbers.put(i.to_be_bytes(), value(i, len)).unwrap();
        texts.put(format!("key {i}"), value(i, len)).unwrap();
        mixed.put(i.to_be_bytes(), value(i, if i % 3 == 0 { len } else { 20 })).unwrap();
        expiring.put_for(i.to_be_bytes(), value(i, len), Duration::from_secs(86_400)).unwrap();
    }
}

#[test]
fn a_flush_stores_apart_what_the_log_had() {
    for len in [1024, 4000, 8191] {
        let disk = Hooked::default();
        let db = open(&disk);
        fill(&db, len);
        assert_eq!(apart(&db), 0);
        expect(&db, len);
        // As after a kill, before the flush and after it.
        let killed = open(&copy_of(&disk, PATH));
        expect(&killed, len);
        for db in [killed, db] {
            db.flush().unwrap();
            let raw = (3 * 200 + 67) * len as u64;
            assert!((raw..raw + raw / 8).contains(&apart(&db)), "{raw} bytes, {}", apart(&db));
            let runs: u64 = tables(&db).iter().map(|t| t.stats().unwrap().run_bytes).sum();
            assert!(runs < 100_000, "{runs} bytes in runs");
            expect(&db, len);
            assert_eq!(leaked(&db.engine), 0);
            db.close().unwrap();
        }
        let db = open(&disk);
        expect(&db, len);
        db.compact().unwrap();
        expect(&db, len);
        db.close().unwrap();
    }
}

/// What was stored before the disk was full belongs to nothing, and is free again.
#[test]
fn a_flush_that_finds_no_room_leaves_nothing_of_what_it_has_stored() {
    let (mut failed, mut undone_all) = (0, 0);
    for nth in 1.. {
        let disk = Hooked::default();
        let db = open(&disk);
        fill(&db, 4000);
        disk.fill_at(nth);
        let flushed = db.flush();
        disk.heal();
        if let Err(e) = &flushed {
            assert!(matches!(e, Error::NoSpace { .. }), "{e}");
            failed += 1;
            // Else the runs are in place, and only the checkpoint found no room.
            let undone = db.engine.state.load().has_frozen();
            undone_all += u32::from(undone);
            assert_eq!(leaked(&db.engine), 0);
            // A segment whose last write found no room waits for it.
            db.engine.values.sync().unwrap();
            assert!(!undone || apart(&db) == 0, "after write {nth}");
            db.flush().unwrap();
        }
        expect(&db, 4000);
        assert_eq!(leaked(&db.engine), 0);
        let killed = open(&copy_of(&disk, PATH));
        expect(&killed, 4000);
        if flushed.is_ok() {
            break;
        }
    }
    assert!(undone_all > 3 && failed > undone_all, "{undone_all} of {failed}");
}

/// The engine's own tables are read without value segments.
#[test]
fn what_is_fed_stays_in_its_records() {
    let disk = Hooked::default();
    let db = open(&disk);
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.set_feed(Some(FeedContent::Values)).unwrap();
    let after = db.feed_info().unwrap().unwrap().newest;
    for n in 0..20u8 {
        t.put_many((0..30).map(|i| ([n, i], [n; 100]))).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(db.engine.values.segments().len(), 0, "parts of 3,000 bytes");
    let mut feed = db.feed(after).unwrap();
    for n in 0..600 {
        assert!(feed.next().unwrap().is_some(), "change {n}");
    }
    drop(feed);
    db.close().unwrap();
}
