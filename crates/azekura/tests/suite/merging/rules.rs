//! What the documents say of merges, one by one.

use super::{PATH, copy_of, open, options};
use azekura::storage::MemStorage;
use azekura::{
    ChangeKind, Db, Error, FeedContent, Isolation, Merge, Options, Table, TableKind, WriteOptions,
};
use std::time::Duration;

fn number(table: &Table, key: &str) -> i64 {
    i64::from_le_bytes(table.get(key).unwrap().unwrap().try_into().unwrap())
}

fn snapshot() -> WriteOptions {
    WriteOptions { isolation: Isolation::Snapshot, ..WriteOptions::default() }
}

#[test]
fn two_that_merge_do_not_conflict_and_both_count() {
    let db = open(&MemStorage::default());
    let t = db.table("t", TableKind::Hash).unwrap();
    for options in [WriteOptions::default(), snapshot()] {
        t.put("k", 10i64.to_le_bytes()).unwrap();
        let (mut a, mut b) = (db.write_with(options), db.write_with(options));
        a.merge(&t, "k", Merge::AddI64(1)).unwrap();
        b.merge(&t, "k", Merge::AddI64(2)).unwrap();
        a.commit().unwrap();
        b.commit().unwrap();
        assert_eq!(number(&t, "k"), 13);
    }
}

#[test]
fn a_merge_is_blind_to_others_and_others_are_not_to_it() {
    let db = open(&MemStorage::default());
    let t = db.table("t", TableKind::Ordered).unwrap();
    // Somebody puts meanwhile: the merge comes after it.
    for options in [WriteOptions::default(), snapshot()] {
        let mut merging = db.write_with(options);
        merging.merge(&t, "k", Merge::AddI64(1)).unwrap();
        t.put("k", 100i64.to_le_bytes()).unwrap();
        merging.commit().unwrap();
        assert_eq!(number(&t, "k"), 101);
    }
    // Who has read the value, or writes it under snapshot isolation, lost what was merged.
    let mut reading = db.write();
    reading.increment(&t, "k", 1).unwrap();
    let mut putting = db.write_with(snapshot());
    putting.put(&t, "k", 0i64.to_le_bytes()).unwrap();
    t.merge("k", Merge::AddI64(1)).unwrap();
    assert!(matches!(reading.commit(), Err(Error::Conflict { .. })));
    assert!(matches!(putting.commit(), Err(Error::Conflict { .. })));
    // A put that reads nothing comes after it.
    let mut putting = db.write();
    putting.put(&t, "k", 5i64.to_le_bytes()).unwrap();
    t.merge("k", Merge::AddI64(1)).unwrap();
    putting.commit().unwrap();
    assert_eq!(number(&t, "k"), 5);
    // To read what one has merged is to read.
    let mut merging = db.write();
    merging.merge(&t, "k", Merge::AddI64(1)).unwrap();
    assert_eq!(merging.get(&t, "k").unwrap().unwrap(), 6i64.to_le_bytes());
    t.merge("k", Merge::AddI64(1)).unwrap();
    assert!(matches!(merging.commit(), Err(Error::Conflict { .. })));
}

#[test]
fn four_threads_on_one_counter_lose_nothing() {
    let db = open(&MemStorage::default());
    let t = db.table("t", TableKind::Hash).unwrap();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (db, t) = (db.clone(), t.clone());
            scope.spawn(move || {
                for i in 0..2_000 {
                    if (i + n) % 5 == 0 {
                        let mut txn = db.write();
                        txn.merge(&t, "k", Merge::AddI64(1)).unwrap();
                        txn.commit().unwrap();
                    } else {
                        t.merge("k", Merge::AddI64(1)).unwrap();
                    }
                    if i % 500 == 0 {
                        db.flush().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(number(&t, "k"), 8_000);
}

#[test]
fn a_value_that_is_no_number_is_an_error_of_who_reads_it() {
    let storage = MemStorage::default();
    let db = open(&storage);
    let t = db.table("t", TableKind::Ordered).unwrap();
    t.put("short", "ada").unwrap();
    t.put("long", vec![1; 5000]).unwrap();
    db.flush().unwrap();
    t.merge("short", Merge::AddI64(1)).unwrap();
    t.merge("long", Merge::AddI64(1)).unwrap();
    let look = |db: &Db| {
        let t = db.open_table("t").unwrap();
        for (key, what) in [("short", "had 3 bytes"), ("long", "was a large one")] {
            for found in [t.get(key).map(drop), t.get_ref(key).map(drop), t.get_many(&[key]).map(drop)] {
                let Err(e @ Error::WrongType { .. }) = found else { panic!("{found:?}") };
                let text = e.to_string();
                assert!(text.contains(key) && text.contains("\"t\"") && text.contains(what), "{text}");
            }
        }
        let mut cursor = t.cursor().unwrap();
        let mut keys = Vec::new();
        while let Some((key, value)) = cursor.next().unwrap() {
            keys.push(key.to_vec());
            assert!(matches!(value.bytes(), Err(Error::WrongType { .. })));
        }
        assert_eq!(keys, [b"long".to_vec(), b"short".to_vec()]);
        assert_eq!(t.count().unwrap(), 2);
        assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
    };
    look(&db);
    db.flush().unwrap();
    look(&db);
    db.compact().unwrap();
    look(&db);
    drop(t);
    db.close().unwrap();
    let db = open(&storage);
    look(&db);
    let t = db.open_table("t").unwrap();
    t.merge("short", Merge::AddI64(1)).unwrap();
    look(&db);
    t.put("short", 7i64.to_le_bytes()).unwrap();
    t.remove("long").unwrap();
    t.merge("short", Merge::AddI64(1)).unwrap();
    t.merge("long", Merge::AddI64(1)).unwrap();
    db.compact().unwrap();
    assert_eq!((number(&t, "short"), number(&t, "long")), (8, 1));
    // What a transaction knows itself it is told at once.
    let mut txn = db.write();
    txn.put(&t, "short", "ada").unwrap();
    assert!(matches!(txn.merge(&t, "short", Merge::AddI64(1)), Err(Error::WrongType { .. })));
    assert_eq!(txn.get(&t, "short").unwrap().unwrap(), b"ada");
    txn.commit().unwrap();
}

#[test]
fn where_a_merge_must_read_the_result_is_the_same() {
    let db = open(&MemStorage::default());
    let t = db.table("t", TableKind::Ordered).unwrap();
    t.merge("k", Merge::AddI64(5)).unwrap();
    t.merge("k", Merge::MinI64(3)).unwrap();
    t.merge("k", Merge::AddI64(1)).unwrap();
    assert_eq!(number(&t, "k"), 4);
    // With an index.
    t.create_index("i", "v[0..8]:i64le").unwrap();
    t.merge("k", Merge::AddI64(10)).unwrap();
    assert_eq!(t.index("i").unwrap().count(&[14i64.into()]).unwrap(), 1);
    assert_eq!(t.index("i").unwrap().count(&[4i64.into()]).unwrap(), 0);
    t.drop_index("i").unwrap();
    // With a feed of values.
    t.set_feed(Some(FeedContent::Values)).unwrap();
    let mut late = db.write();
    let mut feed = db.feed(db.feed_info().unwrap().unwrap().newest).unwrap();
    t.merge("k", Merge::AddI64(1)).unwrap();
    let change = feed.next().unwrap().unwrap();
    let (key, value) = (&b"k"[..], &15i64.to_le_bytes()[..]);
    assert_eq!(change.kind, ChangeKind::Put { key, value: Some(value), old: None });
    t.set_feed(None).unwrap();
    late.merge(&t, "k", Merge::AddI64(1)).unwrap();
    t.set_feed(Some(FeedContent::Values)).unwrap();
    assert!(matches!(late.commit(), Err(Error::Conflict { .. })));
    assert_eq!(number(&t, "k"), 15);
    t.set_feed(None).unwrap();
    let mut late = db.write();
    late.merge(&t, "k", Merge::AddI64(1)).unwrap();
    t.set_feed(Some(FeedContent::Values)).unwrap();
    late.commit_blind().unwrap();
    assert_eq!(number(&t, "k"), 16);
    // With a time to live, which is left as it is.
    let e = db.table("e", TableKind::Hash).unwrap();
    e.merge("stays", Merge::AddI64(1)).unwrap();
    e.put_for("goes", 1i64.to_le_bytes(), Duration::from_secs(1000)).unwrap();
    e.merge("goes", Merge::AddI64(1)).unwrap();
    e.merge("stays", Merge::AddI64(1)).unwrap();
    assert!(matches!(e.ttl("goes").unwrap(), Some(azekura::Lifetime::Left(_))));
    assert_eq!((number(&e, "goes"), number(&e, "stays")), (2, 2));
    e.put_for("gone", 1i64.to_le_bytes(), Duration::ZERO).unwrap();
    e.merge("gone", Merge::AddI64(1)).unwrap();
    assert_eq!(number(&e, "gone"), 1);
}

#[test]
fn what_a_table_takes_may_change_while_a_transaction_is_open() {
    let db = open(&MemStorage::default());
    let t = db.table("t", TableKind::Ordered).unwrap();
    // Another operator comes first.
    let mut late = db.write();
    late.merge(&t, "k", Merge::AddI64(5)).unwrap();
    t.merge("k", Merge::MaxI64(3)).unwrap();
    assert!(matches!(late.commit(), Err(Error::Conflict { .. })));
    // Without a chance to do it again it is done again.
    let mut late = db.write();
    late.merge(&t, "j", Merge::MaxI64(5)).unwrap();
    t.create_index("i", "v[0..8]:i64le").unwrap();
    late.commit_blind().unwrap();
    assert_eq!((number(&t, "k"), number(&t, "j")), (3, 5));
    t.drop_index("i").unwrap();
    // A record that expires comes first.
    let mut late = db.write();
    late.merge(&t, "k", Merge::MaxI64(5)).unwrap();
    t.put_for("k", 1i64.to_le_bytes(), Duration::ZERO).unwrap();
    assert!(matches!(late.commit(), Err(Error::Conflict { .. })));
    // A merge that has read does not overwrite what came since.
    let mut first = db.write();
    first.merge(&t, "k", Merge::MaxI64(7)).unwrap();
    t.merge("k", Merge::MaxI64(9)).unwrap();
    assert!(matches!(first.commit_blind(), Err(Error::Conflict { .. })));
    assert_eq!(number(&t, "k"), 9);
}

#[test]
fn files_without_operands_are_of_the_plain_version() {
    let version = |storage: &MemStorage| crate::copies::bytes_of(storage, PATH)[12];
    let storage = MemStorage::default();
    // Nothing is folded but when the test says so.
    let db = Db::open_on(&storage, PATH, options().threads(false)).unwrap();
    let t = db.table("t", TableKind::Hash).unwrap();
    // Enough that it is no small table, which has its records in the manifest.
    (0..500u64).for_each(|i| t.put(i.to_be_bytes(), [0; 8]).unwrap());
    db.flush().unwrap();
    assert_eq!(version(&storage), 1);
    (0..500u64).for_each(|i| t.merge(i.to_be_bytes(), Merge::AddU64(i)).unwrap());
    db.flush().unwrap();
    assert_eq!(version(&storage), 2);
    let copy = copy_of(&storage);
    let other = Db::open_on(&copy, PATH, options()).unwrap();
    let u = other.open_table("t").unwrap();
    assert!((0..500u64).all(|i| u.get(i.to_be_bytes()).unwrap().unwrap() == i.to_le_bytes()));
    db.compact().unwrap();
    assert_eq!(version(&storage), 1, "all were folded");
    assert!((0..500u64).all(|i| t.get(i.to_be_bytes()).unwrap().unwrap() == i.to_le_bytes()));
}

#[test]
fn salvage_finds_what_was_merged_once() {
    let dir = std::env::temp_dir().join(format!("azekura-salvage-merges-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (from, to) = (dir.join("a.azk"), dir.join("b.azk"));
    // Nobody writes while the file is copied.
    let db = Db::open(&from, Options::new().threads(false)).unwrap();
    let t = db.table("t", TableKind::Hash).unwrap();
    for round in 0..3u64 {
        t.merge_many((0..2000u64).map(|i| (i.to_be_bytes(), Merge::AddU64(round + i)))).unwrap();
        if round < 2 {
            db.flush().unwrap();
        }
    }
    t.put("text", "ada").unwrap();
    t.merge("text", Merge::AddU64(1)).unwrap();
    // As a crash leaves it: two runs, and the log.
    std::fs::copy(&from, dir.join("c.azk")).unwrap();
    drop(t);
    db.close().unwrap();
    let out = Db::open(&to, Options::new()).unwrap();
    let report = azekura::salvage(dir.join("c.azk"), &out, |_| {}).unwrap();
    assert!(report.manifest, "{report:?}");
    let t = out.open_table("t").unwrap();
    for i in 0..2000u64 {
        assert_eq!(t.get(i.to_be_bytes()).unwrap().unwrap(), (3 + 3 * i).to_le_bytes());
    }
    drop(t);
    out.close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}
