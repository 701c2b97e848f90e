//! Feeds that no call can make.

use crate::api::{ChangeKind, Db, FeedContent, Options};
use crate::base::error::Error;
use crate::base::key::TableKind;
use crate::engine::{Batch, BatchPart, Durability};
use crate::format::block::Tag;
use crate::format::feed::{TRIMMED_KEY, mark_key};
use crate::storage::MemStorage;
use crate::txn::WriteOptions;

/// What counts how much is kept cannot be read: the database opens, the feed begins anew, and readers are
/// told.
#[test]
fn a_feed_that_cannot_be_read_begins_anew() {
    let damaged: [fn(u64) -> Vec<u8>; 3] =
        [|_| TRIMMED_KEY.to_vec(), |newest| mark_key(newest), |_| mark_key(u64::MAX - 1)];
    for key in damaged {
        let storage = MemStorage::default();
        let options = || Options::new().memory_bytes(8 << 20).threads(false);
        let db = Db::open_on(&storage, "feeding.azk", options()).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        t.set_feed(Some(FeedContent::Values)).unwrap();
        t.put("a", "1").unwrap();
        let before = db.feed_info().unwrap().unwrap().newest;
        let table = db.engine.feed.fed().table.unwrap();
        let part = BatchPart::single(table, &key(before), Tag::Put, b"short");
        db.engine.commit(Batch { parts: vec![part], durable: true, ..Batch::default() }).unwrap();
        assert!(!db.check(|_| {}).unwrap().problems.is_empty());
        db.close().unwrap();
        drop(t);
        for _ in 0..2 {
            let db = Db::open_on(&storage, "feeding.azk", options()).unwrap();
            let gap = db.feed(before).err();
            let Some(Error::FeedGap { resume_at, .. }) = gap else { panic!("{gap:?}") };
            let mut feed = db.feed(resume_at).unwrap();
            while feed.next().unwrap().is_some() {}
            db.open_table("t").unwrap().put("b", "2").unwrap();
            assert!(feed.next().unwrap().is_some_and(|change| change.table == "t"));
            assert_eq!(db.check(|_| {}).unwrap().problems, [""; 0]);
            drop(feed);
            db.close().unwrap();
        }
    }
}

/// A durable commit that is small has no value segment to make durable besides the log. What is fed is the
/// same, however long the commits and their values are.
#[test]
fn what_a_small_durable_commit_tells_stands_in_its_own_records() {
    let storage = MemStorage::default();
    let options = || Options::new().memory_bytes(8 << 20).threads(false).large_value_bytes(1024);
    let db = Db::open_on(&storage, "feeding.azk", options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.set_feed(Some(FeedContent::Values)).unwrap();
    let after = db.feed_info().unwrap().unwrap().newest;
    let key = |i: u32| i.to_be_bytes();
    let commit = |numbers: std::ops::Range<u32>, value: &[u8], durability| {
        let mut txn = db.write_with(WriteOptions { durability: Some(durability), ..WriteOptions::default() });
        numbers.for_each(|i| txn.put(&t, key(i), value).unwrap());
        txn.commit().unwrap();
    };
    commit(0..100, &[1; 60], Durability::Sync);
    commit(100..800, &[2; 60], Durability::Sync);
    assert_eq!(db.engine.values.segments().len(), 0);
    commit(800..900, &[3; 900], Durability::Sync);
    assert_eq!(db.engine.values.segments().len(), 1, "of 90 KB");
    commit(900..930, &[4; 1000], Durability::Eventual);
    commit(930..932, &[5; 30_000], Durability::Sync);
    let read = |db: &Db| {
        let (mut feed, mut found) = (db.feed(after).unwrap(), Vec::new());
        while let Some(change) = feed.next().unwrap() {
            let ChangeKind::Put { key, value: Some(value), .. } = change.kind else { panic!("{change:?}") };
            found.push((key.to_vec(), value.to_vec()));
        }
        found
    };
    let found = read(&db);
    assert_eq!(found.len(), 932);
    for (i, (k, value)) in (0..).zip(&found) {
        assert_eq!((k, value), (&key(i).to_vec(), &t.get(key(i)).unwrap().unwrap()), "{i}");
    }
    drop(t);
    db.close().unwrap();
    let db = Db::open_on(&storage, "feeding.azk", options()).unwrap();
    assert_eq!(read(&db), found);
    assert_eq!(db.check(|_| {}).unwrap().problems, [""; 0]);
    db.close().unwrap();
}

/// What comes of a range is not known from what the commit writes. Only the beginning stands in its records.
#[test]
fn what_a_removed_range_tells_stands_apart() {
    let options = Options::new().memory_bytes(8 << 20).threads(false).durability(Durability::Sync);
    let db = Db::open_on(&MemStorage::default(), "feeding.azk", options).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put_many((0..5000u32).map(|i| (i.to_be_bytes(), [7; 60]))).unwrap();
    t.set_feed(Some(FeedContent::Both)).unwrap();
    let begin = db.feed_info().unwrap().unwrap().newest;
    let feed_bytes =
        || db.engine.state.load().table(db.engine.feed.fed().table.unwrap()).unwrap().live_bytes();
    let before = feed_bytes();
    t.clear().unwrap();
    assert!(feed_bytes() - before < 100 << 10, "{} bytes of 5000 changes in records", feed_bytes() - before);
    let (mut feed, mut removed) = (db.feed(begin).unwrap(), 0);
    while let Some(change) = feed.next().unwrap() {
        assert!(matches!(change.kind, ChangeKind::Remove { old: Some(_), .. }), "{change:?}");
        removed += 1;
    }
    assert_eq!(removed, 5000);
    drop((feed, t));
    db.close().unwrap();
}

/// A small commit that is not durable at once tells what it does under the commit lock. The log refers to
/// that.
#[test]
fn what_a_small_commit_tells_is_gathered_under_the_lock() {
    let storage = MemStorage::default();
    let options = || {
        let delay = std::time::Duration::from_secs(600);
        Options::new().memory_bytes(8 << 20).durability(Durability::Eventual).eventual_delay(delay)
    };
    let db = Db::open_on(&storage, "feeding.azk", options()).unwrap();
    let [t, u] = ["t", "u"].map(|name| db.create_table(name, TableKind::Hash).unwrap());
    t.set_feed(Some(FeedContent::Values)).unwrap();
    let told = || String::from_utf8_lossy(db.engine.committer.lock().told.bytes()).into_owned();
    t.put("first key", "first value").unwrap();
    assert!(told().contains("first key") && told().contains("first value"));
    t.remove("second key").unwrap();
    assert!(told().contains("second key"));
    // What has read, is long, or is to another table, is gathered before, or tells nothing.
    let mut txn = db.write();
    assert!(txn.get(&t, "first key").unwrap().is_some());
    txn.put(&t, "third key", "x").unwrap();
    txn.commit().unwrap();
    t.put("fourth key", [7; 600]).unwrap();
    u.put("fifth key", "x").unwrap();
    assert!(told().contains("second key"));
    db.sync().unwrap();
    let mut feed = db.feed(db.feed_info().unwrap().unwrap().oldest).unwrap();
    let mut keys = Vec::new();
    while let Some(change) = feed.next().unwrap() {
        if let ChangeKind::Put { key, .. } | ChangeKind::Remove { key, .. } = change.kind {
            keys.push(String::from_utf8_lossy(key).into_owned());
        }
    }
    assert_eq!(keys, ["first key", "second key", "third key", "fourth key"]);
    db.close().unwrap();
}
