//! What the feed promises, one by one.

use super::{Map, Replica, contents, newest, options};
use azekura::storage::MemStorage;
use azekura::{ChangeKind, Db, Durability, Error, FeedContent, Freshness, Options, TableKind};
use std::time::{Duration, SystemTime};

const PATH: &str = "/feed.azk";

fn fed(db: &Db, name: &str) -> azekura::Table {
    let table = db.create_table(name, TableKind::Ordered).unwrap();
    table.set_feed(Some(FeedContent::Values)).unwrap();
    table
}

#[test]
fn nothing_is_fed_before_somebody_says_so() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("a", "1").unwrap();
    assert_eq!(db.feed_info().unwrap(), None);
    assert!(matches!(db.feed(0), Err(Error::Invalid { .. })));
    assert!(matches!(db.set_feed_cursor("c", Some(1)), Err(Error::Invalid { .. })));
    assert_eq!(db.feed_cursor("c").unwrap(), None);
    t.set_feed(Some(FeedContent::Values)).unwrap();
    let begin = newest(&db);
    let gap = db.feed(0).err();
    let Some(Error::FeedGap { after: 0, resume_at }) = gap else { panic!("{gap:?}") };
    assert!(resume_at <= begin);
    assert!(matches!(db.feed(begin + 1000), Err(Error::Invalid { .. })));
    let before = SystemTime::now() - Duration::from_secs(1);
    t.put("b", "2").unwrap();
    for from in [resume_at, begin] {
        let mut feed = db.feed(from).unwrap();
        if from < begin {
            let change = feed.next().unwrap().unwrap();
            assert_eq!(
                (change.table, change.kind),
                ("t", ChangeKind::Begin { content: FeedContent::Values })
            );
        }
        let change = feed.next().unwrap().unwrap();
        assert_eq!((change.table, change.commit), ("t", newest(&db)));
        assert_eq!(change.kind, ChangeKind::Put { key: b"b", value: Some(b"2"), old: None });
        assert!(change.time > before && change.time < before + Duration::from_secs(60));
        assert_eq!(feed.next().unwrap(), None);
        assert_eq!(feed.position(), newest(&db));
        assert_eq!(feed.lag().unwrap(), 0);
    }
    let other = db.create_table("other", TableKind::Hash).unwrap();
    other.put("x", "y").unwrap();
    assert_eq!(db.feed(begin + 1).unwrap().next().unwrap(), None);
    let info = db.feed_info().unwrap().unwrap();
    assert_eq!(info.tables.len(), 1);
    assert_eq!((&*info.tables[0].name, info.tables[0].content), ("t", FeedContent::Values));
    assert_eq!(db.tables().len(), 2, "the feed is no table of the user");
    t.set_feed(None).unwrap();
    let begin = newest(&db);
    t.put("c", "3").unwrap();
    assert_eq!(db.feed(begin).unwrap().next().unwrap(), None);
}

#[test]
fn tables_that_are_fed_stay_so_when_the_file_is_opened_again() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    let t = fed(&db, "t");
    db.set_feed_limits(1 << 20, Some(Duration::from_secs(3600))).unwrap();
    let begin = newest(&db);
    db.close().unwrap();
    drop(t);
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    db.open_table("t").unwrap().put("a", "1").unwrap();
    let mut replica = Replica::default();
    replica.catch_up(&mut db.feed(begin).unwrap()).unwrap();
    assert_eq!(replica.table("t"), contents(&db, "t"));
    let info = db.feed_info().unwrap().unwrap();
    assert_eq!((info.bytes_max, info.age_max), (1 << 20, Some(Duration::from_secs(3600))));
}

#[test]
fn readers_are_told_what_becomes_of_tables() {
    for in_txn in [false, true] {
        let storage = MemStorage::default();
        let db = Db::open_on(&storage, PATH, options()).unwrap();
        let t = fed(&db, "t");
        let begin = newest(&db);
        t.put("a", "1").unwrap();
        db.rename_table("t", "u").unwrap();
        t.put("b", "2").unwrap();
        if in_txn {
            let mut txn = db.write();
            txn.drop_table("u").unwrap();
            txn.commit().unwrap();
        } else {
            db.drop_table("u").unwrap();
        }
        let mut feed = db.feed(begin).unwrap();
        let mut all = Vec::new();
        while let Some(change) = feed.next().unwrap() {
            all.push((change.table.to_owned(), format!("{:?}", change.kind)));
        }
        assert_eq!(all.iter().map(|c| &*c.0).collect::<Vec<_>>(), ["t", "t", "u", "u"]);
        assert_eq!((&*all[1].1, &*all[3].1), ("Rename { to: \"u\" }", "Drop"));
        assert!(db.feed_info().unwrap().unwrap().tables.is_empty());
        assert!(db.check(|_| {}).unwrap().problems.is_empty());
    }
}

#[test]
fn what_is_too_much_goes_and_readers_are_told() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, options().durability(Durability::Eventual)).unwrap();
    let t = fed(&db, "t");
    assert!(matches!(db.set_feed_limits(1, None), Err(Error::Invalid { .. })));
    db.set_feed_limits(1 << 20, None).unwrap();
    let begin = newest(&db);
    let mut slow = db.feed(begin).unwrap();
    let (mut largest, mut tail) = (0, Map::new());
    for i in 0..6000u64 {
        let (key, value) = ((i % 100).to_be_bytes(), vec![i as u8; 1000]);
        t.put(key, &value).unwrap();
        if i >= 5500 {
            tail.insert(key.to_vec(), value);
        }
        if i % 500 == 499 {
            db.flush().unwrap();
            db.compact().unwrap();
            largest = largest.max(db.feed_info().unwrap().unwrap().bytes);
        }
    }
    assert!(largest < 3 << 20, "{largest} bytes are kept");
    let gap = slow.next().err();
    let Some(Error::FeedGap { after, resume_at }) = gap else { panic!("{gap:?}") };
    assert_eq!(after, begin);
    let info = db.feed_info().unwrap().unwrap();
    assert_eq!(resume_at, info.oldest);
    // About a mebibyte of changes is left, give or take a sixty-fourth.
    let kept = info.newest - info.oldest;
    assert!((950..1080).contains(&kept), "{kept} commits are kept");
    let mut replica = Replica::default();
    replica.catch_up(&mut db.feed(resume_at).unwrap()).unwrap();
    assert_eq!(replica.table("t"), tail);
    // It goes on so when the file is opened again.
    db.close().unwrap();
    drop((t, slow));
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    let t = db.open_table("t").unwrap();
    (0..200u64).for_each(|i| t.put(i.to_be_bytes(), vec![1; 1000]).unwrap());
    let info = db.feed_info().unwrap().unwrap();
    let kept = info.newest - info.oldest;
    assert!((950..1080).contains(&kept), "{kept} commits are kept after opening");
}

#[test]
fn what_is_too_old_goes() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    let t = fed(&db, "t");
    db.set_feed_limits(1 << 30, Some(Duration::from_millis(200))).unwrap();
    let begin = newest(&db);
    t.put("a", "1").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    t.put("b", "2").unwrap();
    assert!(db.feed(begin).unwrap().next().unwrap().is_some());
    std::thread::sleep(Duration::from_millis(300));
    t.put("c", "3").unwrap();
    assert!(matches!(db.feed(begin), Err(Error::FeedGap { .. })));
    let oldest = db.feed_info().unwrap().unwrap().oldest;
    let mut feed = db.feed(oldest).unwrap();
    let change = feed.next().unwrap().unwrap();
    assert_eq!(change.kind, ChangeKind::Put { key: b"c", value: Some(b"3"), old: None });
}

#[test]
fn only_what_is_durable_is_told() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    let t = fed(&db, "t");
    let begin = newest(&db);
    let later = azekura::WriteOptions { durability: Some(Durability::Eventual), ..Default::default() };
    let mut feed = db.feed(begin).unwrap();
    // An eventual commit of a handle without threads is made durable by the commit.
    drop(db.write_with(later));
    let threads = Options::new().memory_bytes(8 << 20).eventual_delay(Duration::from_secs(3600));
    drop((feed, t));
    db.close().unwrap();
    let db = Db::open_on(&storage, PATH, threads).unwrap();
    let t = db.open_table("t").unwrap();
    let mut txn = db.write_with(later);
    txn.put(&t, "a", "1").unwrap();
    txn.commit().unwrap();
    feed = db.feed(begin).unwrap();
    assert_eq!(feed.next().unwrap(), None);
    assert!(!feed.wait(Duration::from_millis(20)).unwrap());
    db.sync().unwrap();
    assert!(feed.wait(Duration::from_secs(10)).unwrap());
    assert_eq!(
        feed.next().unwrap().unwrap().kind,
        ChangeKind::Put { key: b"a", value: Some(b"1"), old: None }
    );
}

#[test]
fn cursors_move_with_what_was_made_of_the_changes() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    let t = fed(&db, "t");
    let count = db.create_table("count", TableKind::Hash).unwrap();
    db.set_feed_cursor("counter", Some(newest(&db))).unwrap();
    for round in 1..4 {
        t.put_many((0..5u64).map(|i| (i.to_be_bytes(), b"v"))).unwrap();
        let mut feed = db.feed(db.feed_cursor("counter").unwrap().unwrap()).unwrap();
        let mut txn = db.write();
        while feed.next().unwrap().is_some() {
            txn.increment(&count, "puts", 1).unwrap();
        }
        txn.set_feed_cursor("counter", Some(feed.position())).unwrap();
        txn.commit().unwrap();
        assert_eq!(count.get("puts").unwrap().unwrap(), (5 * round as i64).to_le_bytes());
    }
    let info = db.feed_info().unwrap().unwrap();
    assert_eq!(info.cursors.len(), 1);
    assert_eq!(info.cursors[0].name, "counter");
    let mut txn = db.write();
    assert!(matches!(txn.set_feed_cursor("", None), Err(Error::Invalid { .. })));
    assert!(matches!(txn.set_feed_cursor(&"x".repeat(256), None), Err(Error::TooLarge { .. })));
    txn.rollback();
    db.set_feed_cursor("counter", None).unwrap();
    assert_eq!(db.feed_cursor("counter").unwrap(), None);
}

#[test]
fn a_reader_in_another_process_follows_the_log() {
    let path = std::env::temp_dir().join(format!("azekura-feed-follow-{}.azk", std::process::id()));
    let db = options().open(&path).unwrap();
    let t = fed(&db, "t");
    let begin = newest(&db);
    let follower = Options::new().follow(true).freshness(Freshness::Log).open(&path).unwrap();
    let (mut feed, mut replica) = (follower.feed(begin).unwrap(), Replica::default());
    for i in 0..300u64 {
        t.put_many((0..i % 7 + 1).map(|k| (k.to_be_bytes(), vec![i as u8; (i * 37 % 3000) as usize])))
            .unwrap();
        if i % 50 == 9 {
            db.flush().unwrap();
        }
        if i % 11 == 0 {
            replica.catch_up(&mut feed).unwrap();
            assert_eq!(replica.table("t"), contents(&db, "t"), "round {i}");
        }
    }
    assert!(matches!(follower.open_table("t").unwrap().set_feed(None), Err(Error::ReadOnly)));
    drop((feed, follower, t));
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn indexes_and_large_commits_are_no_matter() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    let t = fed(&db, "t");
    t.create_index("by_value", "v[0..1]").unwrap();
    let begin = newest(&db);
    t.put_many((0..40_000u64).map(|i| (i.to_be_bytes(), i.to_le_bytes()))).unwrap();
    t.put("large", vec![7; 5 << 20]).unwrap();
    let (mut feed, mut replica) = (db.feed(begin).unwrap(), Replica::default());
    replica.catch_up(&mut feed).unwrap();
    assert_eq!(replica.table("t"), contents(&db, "t"));
    assert_eq!(feed.position(), newest(&db));
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}
