//! Transactions that change tables meet others.

use super::{check, is_missing, names, open};
use azekura::{Db, Error, Isolation, Options, Result, Table, TableKind, WriteOptions, WriteTxn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

const ISOLATIONS: [Isolation; 2] = [Isolation::Serializable, Isolation::Snapshot];

fn begin(db: &Db, isolation: Isolation) -> WriteTxn {
    db.write_with(WriteOptions { isolation, ..WriteOptions::default() })
}

fn conflicts(result: Result<()>, with: &str) {
    match result {
        Err(Error::Conflict { table }) => assert_eq!(table, with),
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_two_that_give_a_name_to_tables_one_conflicts() {
    for isolation in ISOLATIONS {
        let db = open(Options::new());
        db.create_table("old", TableKind::Ordered).unwrap();
        let (mut one, mut two, mut three) =
            (begin(&db, isolation), begin(&db, isolation), begin(&db, isolation));
        let first = one.create_table("t", TableKind::Ordered).unwrap();
        one.put(&first, "k", "1").unwrap();
        let second = two.create_table("t", TableKind::Hash).unwrap();
        two.put(&second, "k", "2").unwrap();
        three.rename_table("old", "t").unwrap();
        one.commit().unwrap();
        conflicts(two.commit(), "t");
        conflicts(three.commit(), "t");
        assert_eq!(first.get("k").unwrap().as_deref(), Some(&b"1"[..]));
        is_missing(second.get("k"), "t");
        assert_eq!(names(&db), ["old", "t"]);
        // Those who do not use transactions count as well.
        let mut txn = begin(&db, isolation);
        txn.create_table("u", TableKind::Ordered).unwrap();
        db.create_table("u", TableKind::Ordered).unwrap();
        conflicts(txn.commit(), "u");
        check(&db);
    }
}

#[test]
fn a_table_that_others_rename_or_drop_conflicts_and_one_that_they_write_to_does_not() {
    type Change = fn(&mut WriteTxn) -> Result<()>;
    let changes: [Change; 2] = [|txn| txn.rename_table("t", "u"), |txn| txn.drop_table("t")];
    for isolation in ISOLATIONS {
        for (i, change) in changes.iter().enumerate() {
            for other in 0..5 {
                let db = open(Options::new());
                let t = db.create_table("t", TableKind::Ordered).unwrap();
                t.put("a", "1").unwrap();
                let mut txn = begin(&db, isolation);
                change(&mut txn).unwrap();
                match other {
                    0 => db.drop_table("t").unwrap(),
                    1 => db.rename_table("t", "v").unwrap(),
                    2 | 3 => {
                        let mut two = begin(&db, isolation);
                        changes[other - 2](&mut two).unwrap();
                        two.commit().unwrap();
                    }
                    _ => t.put("b", "2").unwrap(),
                }
                let committed = txn.commit();
                if other < 4 {
                    conflicts(committed, "t");
                } else if i == 1 && isolation == Isolation::Snapshot {
                    // As if it had removed all records.
                    conflicts(committed, "t");
                    assert_eq!(t.count().unwrap(), 2);
                } else {
                    committed.unwrap();
                    if i == 0 {
                        assert_eq!(db.open_table("u").unwrap().count().unwrap(), 2);
                    } else {
                        is_missing(t.get("b"), "t");
                        assert!(names(&db).is_empty());
                    }
                }
                check(&db);
            }
        }
    }
}

#[test]
fn others_learn_that_a_table_was_dropped_when_they_commit() {
    for isolation in ISOLATIONS {
        let db = open(Options::new());
        let (t, u) = (
            db.create_table("t", TableKind::Ordered).unwrap(),
            db.create_table("u", TableKind::Hash).unwrap(),
        );
        t.put("a", "1").unwrap();
        let (mut writer, mut reader) = (begin(&db, isolation), begin(&db, Isolation::Serializable));
        writer.put(&t, "b", "2").unwrap();
        writer.put(&u, "b", "2").unwrap();
        assert!(reader.contains(&t, "a").unwrap());
        reader.put(&u, "c", "3").unwrap();
        let snapshot = db.read();
        let mut txn = db.write();
        txn.drop_table("t").unwrap();
        txn.commit().unwrap();
        is_missing(writer.put(&t, "c", "3"), "t");
        is_missing(writer.commit(), "t");
        assert!(matches!(reader.commit(), Err(Error::Conflict { .. })));
        assert_eq!(snapshot.get(&t, "a").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(u.count().unwrap(), 0);
    }
}

#[test]
fn a_table_newer_than_the_snapshot_is_a_conflict_at_once() {
    let db = open(Options::new());
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let mut txn = db.write();
    txn.get(&t, "k").unwrap();
    db.create_table("new", TableKind::Ordered).unwrap();
    conflicts(txn.table("new", TableKind::Ordered).map(drop), "new");
    let mut tries = 0;
    db.transact(|txn| {
        tries += 1;
        txn.get(&t, "k")?;
        if tries == 1 {
            db.create_table("newer", TableKind::Ordered)?;
        }
        let newer = txn.table("newer", TableKind::Ordered)?;
        txn.put(&newer, "k", "v")
    })
    .unwrap();
    assert_eq!((tries, db.open_table("newer").unwrap().count().unwrap()), (2, 1));
}

#[test]
fn a_name_that_another_table_has_had_since_the_snapshot_is_a_conflict_at_once() {
    let db = open(Options::new());
    let staging = db.create_table("staging", TableKind::Ordered).unwrap();
    db.create_table("prices", TableKind::Ordered).unwrap();
    staging.put("half", "1").unwrap();
    let mut late = begin(&db, Isolation::Snapshot);
    assert!(late.get(&staging, "half").unwrap().is_some());
    db.transact(|txn| {
        txn.put(&staging, "other half", "2")?;
        txn.drop_table("prices")?;
        txn.rename_table("staging", "prices")
    })
    .unwrap();
    // The snapshot has that table, and with this name another one.
    conflicts(late.open_table("prices").map(drop), "prices");
}

#[test]
fn a_name_that_was_looked_up_counts_as_read() {
    let db = open(Options::new());
    db.create_table("config of today", TableKind::Ordered).unwrap();
    let log = db.create_table("log", TableKind::Ordered).unwrap();
    let mut txn = db.write();
    let today = txn.open_table("config of today").unwrap();
    txn.put(&log, "used", today.name()).unwrap();
    db.rename_table("config of today", "config of yesterday").unwrap();
    conflicts(txn.commit(), "config of today");
    let mut txn = db.write();
    is_missing(txn.open_table("config of today"), "config of today");
    txn.put(&log, "used", "none").unwrap();
    db.rename_table("config of yesterday", "config of today").unwrap();
    conflicts(txn.commit(), "config of today");
    assert_eq!(log.count().unwrap(), 0);
    // One that has looked it up and written nothing depends on nothing.
    let mut txn = db.write();
    txn.open_table("config of today").unwrap();
    db.drop_table("config of today").unwrap();
    txn.commit().unwrap();
}

/// What a transaction makes itself is never missed, whatever others drop meanwhile.
#[test]
fn tables_of_its_own_are_no_conflict() {
    for isolation in ISOLATIONS {
        let db = open(Options::new());
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        db.create_table("other", TableKind::Ordered).unwrap();
        let mut txn = begin(&db, isolation);
        txn.get(&t, "k").unwrap();
        let [made, gone] = ["made", "gone"].map(|name| txn.create_table(name, TableKind::Ordered).unwrap());
        for own in [&made, &gone] {
            txn.put(own, "k", "v").unwrap();
            assert_eq!(txn.count(own).unwrap(), 1);
            assert!(txn.first(own).unwrap().is_some());
        }
        txn.drop_table("gone").unwrap();
        db.drop_table("other").unwrap();
        txn.put(&made, "l", "w").unwrap();
        txn.commit().unwrap();
        assert_eq!(made.count().unwrap(), 2);
    }
}

/// A table that was made and taken back is in no snapshot. Who asks for it nevertheless has read nothing.
#[test]
fn tables_that_were_taken_back_are_no_conflict() {
    for isolation in ISOLATIONS {
        let db = open(Options::new());
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        db.create_table("other", TableKind::Ordered).unwrap();
        let mut txn = begin(&db, isolation);
        txn.put(&t, "a", "1").unwrap();
        let before = txn.savepoint();
        let [made, gone] = ["made", "gone"].map(|name| txn.create_table(name, TableKind::Ordered).unwrap());
        txn.drop_table("gone").unwrap();
        txn.rollback_to(&before).unwrap();
        for (own, name) in [(&made, "made"), (&gone, "gone")] {
            is_missing(txn.get(own, "k"), name);
            is_missing(txn.count(own), name);
            is_missing(txn.put(own, "k", "v"), name);
        }
        db.drop_table("other").unwrap();
        txn.put(&t, "b", "2").unwrap();
        txn.commit().unwrap();
        assert_eq!(t.count().unwrap(), 2);
    }
}

#[test]
fn a_blind_commit_does_with_tables_what_it_was_to_do() {
    for isolation in ISOLATIONS {
        let db = open(Options::new());
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        t.put("a", "1").unwrap();
        db.create_table("old", TableKind::Ordered).unwrap().put("k", "v").unwrap();
        let mut txn = begin(&db, isolation);
        txn.put(&t, "b", "2").unwrap();
        let new = txn.create_table("new", TableKind::Hash).unwrap();
        txn.put(&new, "k", "v").unwrap();
        txn.put(&new, "large", vec![7; 100_000]).unwrap();
        txn.remove(&new, "k").unwrap();
        let gone = txn.create_table("gone", TableKind::Ordered).unwrap();
        txn.put(&gone, "k", "v").unwrap();
        txn.drop_table("gone").unwrap();
        txn.drop_table("old").unwrap();
        txn.rename_table("t", "u").unwrap();
        // The transaction knows nothing of it, so it has to be made again.
        let index = t.create_index("i", "v").unwrap();
        txn.commit_blind().unwrap();
        assert_eq!(names(&db), ["new", "u"]);
        assert_eq!(index.count(&[b"2".into()]).unwrap(), 1);
        assert_eq!((new.count().unwrap(), new.get("large").unwrap()), (1, Some(vec![7; 100_000])));
        is_missing(gone.get("k"), "gone");
        // A name that another table has by then is not tried again.
        let mut txn = begin(&db, isolation);
        txn.put(&new, "k", "w").unwrap();
        txn.create_table("taken", TableKind::Ordered).unwrap();
        db.create_table("taken", TableKind::Ordered).unwrap();
        conflicts(txn.commit_blind(), "taken");
        assert_eq!(new.get("k").unwrap(), None);
        check(&db);
    }
}

/// Writers put durably, in groups, while one thread drops and makes two tables at once: both are there or
/// none, and every put is refused or in the table that it was meant for.
#[test]
fn groups_of_durable_commits_meet_tables_that_come_and_go() {
    let db = open(Options::new().memory_bytes(8 << 20));
    let others = db.create_table("others", TableKind::Ordered).unwrap();
    let stop = AtomicBool::new(false);
    let make = |txn: &mut WriteTxn| -> Result<[Table; 2]> {
        Ok([txn.create_table("one", TableKind::Ordered)?, txn.create_table("two", TableKind::Hash)?])
    };
    db.transact(|txn| make(txn).map(drop)).unwrap();
    scope(|s| {
        let writers: Vec<_> = (0..4u64)
            .map(|writer| {
                let (db, others, stop) = (&db, &others, &stop);
                s.spawn(move || {
                    let (mut done, mut refused) = (0u64, 0u64);
                    while !stop.load(Ordering::Relaxed) {
                        let (Ok(one), Ok(two)) = (db.open_table("one"), db.open_table("two")) else {
                            panic!("one of two tables is there");
                        };
                        let mut txn = db.write();
                        let key = (writer << 32 | done).to_be_bytes();
                        let put = [&one, &two, others].iter().try_for_each(|t| txn.put(t, key, key));
                        match put.and_then(|()| txn.commit()) {
                            Ok(()) => done += 1,
                            Err(Error::NoSuchTable { .. }) => refused += 1,
                            Err(e) => panic!("{e}"),
                        }
                    }
                    (done, refused)
                })
            })
            .collect();
        let mut before: Option<[Table; 2]> = None;
        for round in 0..150 {
            let new = db
                .transact(|txn| {
                    txn.drop_table("one")?;
                    txn.drop_table("two")?;
                    let new = make(txn)?;
                    new.iter().try_for_each(|t| txn.put(t, "round", [round]))?;
                    Ok(new)
                })
                .unwrap();
            let read = db.read();
            for t in &new {
                assert_eq!(read.get(t, "round").unwrap().as_deref(), Some(&[round][..]));
            }
            assert_eq!(
                read.count(&new[0]).unwrap(),
                read.count(&new[1]).unwrap(),
                "half of a commit is there"
            );
            for t in before.iter().flatten() {
                assert!(matches!(t.get("round"), Err(Error::NoSuchTable { .. })));
            }
            before = Some(new);
        }
        stop.store(true, Ordering::Relaxed);
        let (mut done, mut refused) = (0, 0);
        for writer in writers {
            let (d, r) = writer.join().unwrap();
            (done, refused) = (done + d, refused + r);
        }
        assert_eq!(others.count().unwrap(), done, "{refused} were refused");
    });
    check(&db);
}
