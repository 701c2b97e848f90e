//! Tables that transactions make, rename and drop: nobody sees a part of it, at no time and after no cut.

mod conflicts;
mod cuts;
mod random;

use azekura::storage::MemStorage;
use azekura::{Db, Error, Options, Result, TableKind};
use std::time::Duration;

const KINDS: [TableKind; 2] = [TableKind::Ordered, TableKind::Hash];

fn open(options: Options) -> Db {
    crate::common::watch(Duration::from_secs(60));
    Db::open_on(&MemStorage::default(), "/t.azk", options).unwrap()
}

fn names(db: &Db) -> Vec<String> {
    db.tables().into_iter().map(|t| t.name).collect()
}

fn is_missing<T: std::fmt::Debug>(result: Result<T>, table: &str) {
    match result {
        Err(Error::NoSuchTable { name }) => assert_eq!(name, table),
        other => panic!("{other:?}"),
    }
}

fn check(db: &Db) {
    let report = db.check(|_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn a_table_is_used_where_it_is_made_and_nobody_else_has_it_before_the_commit() {
    for kind in KINDS {
        let db = open(Options::new());
        let mut txn = db.write();
        let t = txn.create_table("t", kind).unwrap();
        assert_eq!((txn.get(&t, "a").unwrap(), txn.count(&t).unwrap()), (None, 0));
        for (key, value) in [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")] {
            txn.put(&t, key, value).unwrap();
        }
        txn.put(&t, "large", vec![7; 100_000]).unwrap();
        txn.append(&t, "a", "x").unwrap();
        txn.remove(&t, "b").unwrap();
        assert!(!txn.add(&t, "a", "y").unwrap() && txn.add(&t, "e", "5").unwrap());
        assert_eq!(txn.get(&t, "a").unwrap().as_deref(), Some(&b"1x"[..]));
        assert_eq!(txn.get_ref(&t, "large").unwrap().as_deref(), Some(&[7; 100_000][..]));
        assert_eq!(txn.get(&t, "b").unwrap(), None);
        assert_eq!(txn.count(&t).unwrap(), 5);
        if kind == TableKind::Ordered {
            let keys = |cursor: azekura::Cursor| cursor.owned().map(|r| r.unwrap().0).collect::<Vec<_>>();
            assert_eq!(keys(txn.range(&t, "b".."e").unwrap()), [b"c", b"d"]);
            assert_eq!(txn.first(&t).unwrap().unwrap().0, b"a");
            assert_eq!(txn.pop_last(&t).unwrap().unwrap().0, b"large");
            txn.remove_range(&t, "d"..).unwrap();
            assert_eq!(keys(txn.cursor(&t).unwrap()), [b"a", b"c"]);
        } else {
            txn.clear(&t).unwrap();
            txn.put(&t, "c", "3").unwrap();
        }
        let left = txn.count(&t).unwrap();
        assert_eq!(txn.open_table("t").unwrap().kind(), kind);
        assert!(names(&db).is_empty());
        is_missing(db.open_table("t"), "t");
        is_missing(t.get("a"), "t");
        is_missing(t.put("a", "by another"), "t");
        is_missing(t.count(), "t");
        is_missing(db.read().get(&t, "a"), "t");
        is_missing(db.write().put(&t, "a", "by another"), "t");
        is_missing(t.create_index("i", "v").map(drop), "t");
        assert_eq!(t.name(), "");
        let before = db.read();
        txn.commit().unwrap();
        assert_eq!((t.name().as_str(), t.count().unwrap()), ("t", left));
        assert_eq!(db.open_table("t").unwrap().get("c").unwrap().as_deref(), Some(&b"3"[..]));
        is_missing(before.get(&t, "c"), "t");
        t.put("z", "9").unwrap();
        t.create_index("i", "v").unwrap();
        check(&db);
    }
}

#[test]
fn what_a_transaction_that_comes_to_nothing_has_made_stays_nothing() {
    let db = open(Options::new());
    let mut handles = Vec::new();
    for how in 0..3 {
        let mut txn = db.write();
        let t = txn.create_table("t", TableKind::Ordered).unwrap();
        txn.put(&t, "a", vec![1; 50_000]).unwrap();
        handles.push(t);
        match how {
            0 => txn.rollback(),
            1 => drop(txn),
            _ => {
                let other = db.create_table("other", TableKind::Ordered).unwrap();
                txn.get(&other, "k").unwrap();
                other.put("k", "v").unwrap();
                assert!(matches!(txn.commit(), Err(Error::Conflict { .. })));
                db.drop_table("other").unwrap();
            }
        }
    }
    let now = db.create_table("t", TableKind::Hash).unwrap();
    now.put("a", "1").unwrap();
    for t in &handles {
        is_missing(t.get("a"), "t");
        is_missing(t.put("a", "2"), "t");
        is_missing(db.write().put(t, "a", "2"), "t");
    }
    assert_eq!(now.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    db.flush().unwrap();
    check(&db);
}

#[test]
fn names_are_exchanged_given_anew_and_given_up() {
    let db = open(Options::new());
    for (name, value) in [("a", "1"), ("b", "2"), ("c", "3")] {
        db.create_table(name, TableKind::Ordered).unwrap().put("k", value).unwrap();
    }
    let (a, c) = (db.open_table("a").unwrap(), db.open_table("c").unwrap());
    let mut txn = db.write();
    txn.rename_table("a", "for a moment").unwrap();
    txn.rename_table("b", "a").unwrap();
    txn.rename_table("for a moment", "b").unwrap();
    txn.drop_table("c").unwrap();
    let d = txn.create_table("d", TableKind::Hash).unwrap();
    txn.rename_table("d", "c").unwrap();
    txn.put(&d, "k", "4").unwrap();
    let gone = txn.create_table("gone", TableKind::Ordered).unwrap();
    txn.put(&gone, "k", "5").unwrap();
    txn.drop_table("gone").unwrap();
    is_missing(txn.put(&gone, "k", "5"), "gone");
    is_missing(txn.get(&c, "k"), "c");
    is_missing(txn.open_table("for a moment"), "for a moment");
    txn.put(&a, "by its handle", "6").unwrap();
    let value =
        |db: &Db, name: &str| String::from_utf8(db.open_table(name).unwrap().get("k").unwrap().unwrap());
    assert_eq!(["a", "b", "c"].map(|name| value(&db, name).unwrap()), ["1", "2", "3"]);
    txn.commit().unwrap();
    assert_eq!(names(&db), ["a", "b", "c"]);
    assert_eq!(["a", "b", "c"].map(|name| value(&db, name).unwrap()), ["2", "1", "4"]);
    assert_eq!((a.name().as_str(), a.contains("by its handle").unwrap()), ("b", true));
    is_missing(c.get("k"), "c");
    is_missing(gone.get("k"), "gone");
    check(&db);
}

#[test]
fn names_are_judged_as_those_of_other_tables() {
    let db = open(Options::new());
    db.create_table("t", TableKind::Ordered).unwrap();
    let mut txn = db.write();
    let new = txn.create_table("new", TableKind::Ordered).unwrap();
    for taken in ["t", "new"] {
        let exists =
            |result: Result<()>| assert!(matches!(result, Err(Error::TableExists { name }) if name == taken));
        exists(txn.create_table(taken, TableKind::Ordered).map(drop));
        exists(txn.rename_table("t", taken));
        exists(txn.rename_table("new", taken));
        assert!(matches!(txn.table(taken, TableKind::Hash), Err(Error::WrongType { .. })));
        txn.table(taken, TableKind::Ordered).unwrap();
    }
    let long = "x".repeat(256);
    for bad in ["", "\0index\x001\0i", &long] {
        let made = txn.create_table(bad, TableKind::Ordered).map(drop);
        for result in [made, txn.rename_table("t", bad)] {
            assert!(matches!(result, Err(Error::Invalid { .. } | Error::TooLarge { .. })), "{result:?}");
        }
        is_missing(txn.open_table(bad), bad);
        is_missing(txn.drop_table(bad), bad);
    }
    is_missing(txn.rename_table("nothing", "something"), "nothing");
    is_missing(txn.drop_table("nothing"), "nothing");
    txn.put(&new, "k", "v").unwrap();
    txn.commit().unwrap();
    assert_eq!(names(&db), ["new", "t"]);
}

#[test]
fn savepoints_take_back_what_was_done_with_tables() {
    let db = open(Options::new());
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put_many([("a", "1"), ("b", "2")]).unwrap();
    let mut txn = db.write();
    let empty = txn.savepoint();
    txn.put(&t, "c", "3").unwrap();
    let made = txn.create_table("made", TableKind::Ordered).unwrap();
    txn.put(&made, "a", "1").unwrap();
    let first = txn.savepoint();
    txn.put(&made, "b", "2").unwrap();
    txn.clear(&made).unwrap();
    txn.drop_table("t").unwrap();
    txn.rename_table("made", "t").unwrap();
    let again = txn.create_table("made", TableKind::Hash).unwrap();
    txn.put(&again, "x", "y").unwrap();
    is_missing(txn.get(&t, "a"), "t");
    is_missing(txn.cursor(&t).map(drop), "t");
    is_missing(txn.remove(&t, "a"), "t");
    txn.rollback_to(&first).unwrap();
    is_missing(txn.put(&again, "x", "y"), "made");
    is_missing(txn.get(&again, "x"), "made");
    assert_eq!(txn.get(&t, "a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(txn.get(&t, "c").unwrap().as_deref(), Some(&b"3"[..]));
    assert_eq!((txn.count(&t).unwrap(), txn.count(&made).unwrap()), (3, 1));
    txn.put(&t, "d", "4").unwrap();
    txn.put(&made, "d", "4").unwrap();
    let second = txn.savepoint();
    txn.drop_table("made").unwrap();
    is_missing(txn.get(&made, "a"), "made");
    txn.rollback_to(&second).unwrap();
    assert_eq!((txn.count(&t).unwrap(), txn.count(&made).unwrap()), (4, 2));
    txn.commit().unwrap();
    assert_eq!((t.count().unwrap(), made.count().unwrap()), (4, 2));
    assert_eq!(names(&db), ["made", "t"]);

    let mut txn = db.write();
    let before = txn.savepoint();
    let new = txn.create_table("new", TableKind::Ordered).unwrap();
    txn.put(&new, "k", "v").unwrap();
    txn.rollback_to(&before).unwrap();
    is_missing(txn.put(&new, "k", "v"), "new");
    is_missing(txn.get(&new, "k"), "new");
    is_missing(txn.open_table("new"), "new");
    let other = txn.create_table("new", TableKind::Hash).unwrap();
    txn.put(&other, "k", "w").unwrap();
    assert!(txn.rollback_to(&empty).is_err(), "it is another transaction's");
    txn.commit().unwrap();
    assert_eq!(other.get("k").unwrap().as_deref(), Some(&b"w"[..]));
    is_missing(new.get("k"), "new");
    check(&db);
}

#[test]
fn indexes_go_with_their_tables() {
    let db = open(Options::new());
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put_many([("a", "1"), ("b", "2")]).unwrap();
    let index = t.create_index("i", "v unique").unwrap();
    let mut txn = db.write();
    txn.rename_table("t", "u").unwrap();
    txn.put(&t, "c", "3").unwrap();
    assert_eq!(index.read_in(&txn).first(&[b"3".into()]).unwrap().unwrap().0, b"c");
    txn.commit().unwrap();
    assert_eq!(index.first(&[b"3".into()]).unwrap().unwrap().0, b"c");
    assert_eq!(db.open_table("u").unwrap().indexes().unwrap().len(), 1);
    check(&db);

    // A table of its name, without indexes; what was written to the old one leaves no trace.
    let mut txn = db.write();
    txn.put(&t, "d", "1").unwrap();
    txn.drop_table("u").unwrap();
    let new = txn.create_table("u", TableKind::Ordered).unwrap();
    txn.put(&new, "a", "1").unwrap();
    txn.put(&new, "b", "1").unwrap();
    txn.commit().unwrap();
    assert!(new.indexes().unwrap().is_empty());
    assert!(index.first(&[b"1".into()]).is_err());
    new.create_index("i", "v").unwrap();
    check(&db);
    db.drop_table("u").unwrap();
    db.flush().unwrap();
    check(&db);
}

#[test]
fn closed_and_read_only_databases_change_no_tables() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, "/t.azk", Options::new()).unwrap();
    db.create_table("t", TableKind::Ordered).unwrap();
    let (mut early, mut late) = (db.write(), db.write());
    let made = early.create_table("made", TableKind::Ordered).unwrap();
    early.put(&made, "k", "v").unwrap();
    db.close().unwrap();
    assert!(matches!(early.commit(), Err(Error::Closed)));
    assert!(matches!(late.create_table("late", TableKind::Hash), Err(Error::Closed)));
    assert!(matches!(late.open_table("t"), Err(Error::Closed)));
    assert!(matches!(late.rename_table("t", "u"), Err(Error::Closed)));
    assert!(matches!(late.drop_table("t"), Err(Error::Closed)));
    drop((late, made));
    let db = Db::open_on(&storage, "/t.azk", Options::new().read_only(true)).unwrap();
    assert_eq!(names(&db), ["t"]);
    let mut txn = db.write();
    txn.open_table("t").unwrap();
    assert!(matches!(txn.create_table("new", TableKind::Hash), Err(Error::ReadOnly)));
    assert!(matches!(txn.rename_table("t", "u"), Err(Error::ReadOnly)));
    assert!(matches!(txn.drop_table("t"), Err(Error::ReadOnly)));
}
