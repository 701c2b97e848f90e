//! The values before: exactly those that a commit has found.

use super::{contents, newest, options};
use azekura::storage::MemStorage;
use azekura::{
    ChangeKind, Db, Durability, Error, FeedContent, Isolation, Merge, Options, TableKind, WriteOptions,
};
use std::collections::BTreeMap;

const PATH: &str = "/feed.azk";

fn fed(db: &Db, kind: TableKind) -> azekura::Table {
    let table = db.create_table("t", kind).unwrap();
    table.set_feed(Some(FeedContent::Both)).unwrap();
    table
}

#[test]
fn each_change_tells_the_value_before() {
    for kind in [TableKind::Ordered, TableKind::Hash] {
        let storage = MemStorage::default();
        let db = Db::open_on(&storage, PATH, options()).unwrap();
        let t = fed(&db, kind);
        t.put("large", vec![7; 100_000]).unwrap();
        let begin = newest(&db);
        t.put("a", "1").unwrap();
        t.put("a", "").unwrap();
        t.put("large", "small").unwrap();
        t.remove("a").unwrap();
        t.remove("a").unwrap();
        t.put_many([("b", "2"), ("a", "3")]).unwrap();
        let mut txn = db.write();
        txn.put(&t, "b", "lost").unwrap();
        txn.clear(&t).unwrap();
        txn.put(&t, "b", "4").unwrap();
        txn.commit().unwrap();
        let (mut feed, mut all) = (db.feed(begin).unwrap(), Vec::new());
        while let Some(change) = feed.next().unwrap() {
            let (key, value, old) = match change.kind {
                ChangeKind::Put { key, value, old } => (key, value.unwrap(), old),
                ChangeKind::Remove { key, old } => (key, &b"-"[..], old),
                other => panic!("{other:?}"),
            };
            let text = |bytes: &[u8]| match bytes.len() {
                0..100 => String::from_utf8(bytes.to_vec()).unwrap(),
                n => format!("{n} bytes"),
            };
            all.push(format!("{} {} {}", text(key), text(value), old.map_or("none".into(), text)));
        }
        let (changes, cleared) = all.split_at(7);
        let mut changes = changes.to_vec();
        if kind == TableKind::Hash {
            changes[5..].sort();
        }
        assert_eq!(
            changes,
            ["a 1 none", "a  1", "large small 100000 bytes", "a - ", "a - none", "a 3 none", "b 2 none"]
        );
        let mut cleared = cleared.to_vec();
        cleared.sort();
        assert_eq!(cleared, ["a - 3", "b 4 2", "large - small"]);
    }
}

#[test]
fn a_range_that_is_removed_takes_little_memory_and_tells_all() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, PATH, options()).unwrap();
    let t = fed(&db, TableKind::Ordered);
    for first in (0..60_000u64).step_by(5000) {
        t.put_many((first..first + 5000).map(|i| (i.to_be_bytes(), [i as u8; 60]))).unwrap();
    }
    let begin = newest(&db);
    let mut txn = db.write();
    txn.remove_range(&t, 10u64.to_be_bytes()..50_000u64.to_be_bytes()).unwrap();
    txn.put(&t, 40u64.to_be_bytes(), "new").unwrap();
    txn.commit().unwrap();
    let (mut feed, mut told) = (db.feed(begin).unwrap(), BTreeMap::new());
    while let Some(change) = feed.next().unwrap() {
        let (key, old) = match change.kind {
            ChangeKind::Put { key, value: Some(b"new"), old } => (key, old),
            ChangeKind::Remove { key, old } => (key, old),
            other => panic!("{other:?}"),
        };
        let i = u64::from_be_bytes(key.try_into().unwrap());
        assert_eq!(old, Some(&[i as u8; 60][..]));
        assert!(told.insert(i, ()).is_none(), "{i} is told twice");
    }
    assert!(told.into_keys().eq(10..50_000));
    assert_eq!(contents(&db, "t").len(), 10_011);
}

/// Writers that know nothing of each other write the same few keys, blindly, in ranges too. Whoever follows
/// has exactly the old values, whichever commit came first.
#[test]
fn old_values_follow_on_each_other_whoever_writes() {
    for durability in [Durability::Sync, Durability::Eventual] {
        let storage = MemStorage::default();
        let db = Db::open_on(&storage, PATH, Options::new().memory_bytes(8 << 20)).unwrap();
        let t = fed(&db, TableKind::Ordered);
        let begin = newest(&db);
        std::thread::scope(|scope| {
            for writer in 0..4u64 {
                let (db, t) = (&db, &t);
                scope.spawn(move || {
                    let mut rng = crate::common::Rng::new(writer);
                    for i in 0..400u64 {
                        let isolation = Isolation::Serializable;
                        let mut txn = db.write_with(WriteOptions { durability: Some(durability), isolation });
                        let key = rng.below(6).to_be_bytes();
                        match rng.below(8) {
                            0 => txn.remove(t, key).unwrap(),
                            1 => txn.remove_range(t, key..9u64.to_be_bytes()).unwrap(),
                            2 => {
                                drop(txn);
                                t.put(key, (i << 8 | writer).to_be_bytes()).unwrap();
                                continue;
                            }
                            _ => txn.put(t, key, (i << 8 | writer).to_be_bytes()).unwrap(),
                        }
                        // Nothing that was read can be the cause of a conflict.
                        txn.commit().unwrap();
                    }
                });
            }
        });
        db.sync().unwrap();
        let (mut feed, mut model) = (db.feed(begin).unwrap(), super::Map::new());
        while let Some(change) = feed.next().unwrap() {
            let commit = change.commit;
            let (before, old) = match change.kind {
                ChangeKind::Put { key, value, old } => {
                    (model.insert(key.to_vec(), value.unwrap().to_vec()), old)
                }
                ChangeKind::Remove { key, old } => (model.remove(key), old),
                other => panic!("{other:?}"),
            };
            assert_eq!(before.as_deref(), old, "commit {commit}");
        }
        assert_eq!(model, contents(&db, "t"));
        assert!(db.check(|_| {}).unwrap().problems.is_empty());
    }
}

/// What merges have left is folded when it is the value before, and what is no number is none.
#[test]
fn the_value_before_may_be_operands() {
    for (kind, is_flushed) in [(TableKind::Ordered, false), (TableKind::Hash, true)] {
        let storage = MemStorage::default();
        let db = Db::open_on(&storage, PATH, options()).unwrap();
        let t = db.create_table("t", kind).unwrap();
        for key in ["a", "b"] {
            t.merge(key, Merge::AddU64(2)).unwrap();
            t.merge(key, Merge::AddU64(3)).unwrap();
        }
        t.put("c", "no number").unwrap();
        if is_flushed {
            db.flush().unwrap();
        }
        t.merge("c", Merge::AddU64(1)).unwrap();
        t.set_feed(Some(FeedContent::Both)).unwrap();
        let mut feed = db.feed(newest(&db)).unwrap();
        let number = |n: u64| n.to_le_bytes();
        let mut expect = |value: Option<&[u8]>, old: Option<&[u8]>| {
            let told = match feed.next().unwrap().unwrap().kind {
                ChangeKind::Put { value, old, .. } => (value, old),
                ChangeKind::Remove { old, .. } => (None, old),
                other => panic!("{other:?}"),
            };
            assert_eq!(told, (value, old));
        };
        t.put("a", "x").unwrap();
        expect(Some(b"x"), Some(&number(5)));
        t.merge("b", Merge::AddU64(4)).unwrap();
        expect(Some(&number(9)), Some(&number(5)));
        t.remove("b").unwrap();
        expect(None, Some(&number(9)));
        assert!(matches!(t.get("c"), Err(Error::WrongType { .. })));
        t.put("c", "y").unwrap();
        expect(Some(b"y"), None);
        t.merge("c", Merge::AddU64(1)).unwrap_err();
        t.set_feed(None).unwrap();
        t.merge("c", Merge::AddU64(1)).unwrap();
        t.set_feed(Some(FeedContent::Both)).unwrap();
        t.clear().unwrap();
        assert_eq!(t.count().unwrap(), 0);
        // Keys are told without a look at values.
        t.set_feed(Some(FeedContent::Keys)).unwrap();
        let mut feed = db.feed(newest(&db)).unwrap();
        t.merge("a2", Merge::AddU64(1)).unwrap();
        let told = feed.next().unwrap().unwrap().kind;
        assert_eq!(told, ChangeKind::Put { key: b"a2", value: None, old: None });
    }
}
