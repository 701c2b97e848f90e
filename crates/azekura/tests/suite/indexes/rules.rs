//! What indexes promise, one by one.

use super::{Map, expected, open_on, options, records};
use crate::common::{Rng, doing};
use azekura::storage::MemStorage;
use azekura::{
    Db, Error, Freshness, IndexSpec, Isolation, KEY_BYTES_MAX, Result, Table, TableKind, WriteOptions,
    WriteTxn,
};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) fn open() -> Db {
    open_on(&MemStorage::default())
}

pub(super) fn with_index(spec: &str) -> (Db, Table) {
    let db = open();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.create_index("i", spec).unwrap();
    (db, t)
}

pub(super) fn keys(t: &Table, value: &str) -> Vec<String> {
    let found = t.index("i").unwrap().get(&[value.into()]).unwrap().keys();
    found.map(|key| String::from_utf8(key.unwrap()).unwrap()).collect()
}

#[test]
fn two_records_swap_their_values_in_one_transaction() {
    let (db, t) = with_index("v unique");
    t.put_many([("a", "1"), ("b", "2")]).unwrap();
    let mut txn = db.write();
    txn.put(&t, "a", "2").unwrap();
    txn.put(&t, "b", "1").unwrap();
    txn.commit().unwrap();
    assert_eq!((keys(&t, "1"), keys(&t, "2")), (vec!["b".to_owned()], vec!["a".to_owned()]));
    // A value that was given up may be taken.
    let mut txn = db.write();
    txn.put(&t, "c", "1").unwrap();
    txn.remove(&t, "b").unwrap();
    txn.commit().unwrap();
    assert_eq!(keys(&t, "1"), ["c"]);
}

#[test]
fn what_is_not_unique_is_refused_and_both_keys_are_named() {
    let (db, t) = with_index("v unique");
    t.put("a\n", "1").unwrap();
    let error = t.put("b", "1").unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"index "i" of table "t" is unique: the records with the keys "b" and "a\n" would have the same values in it"#
    );
    assert_eq!((error.code(), std::io::Error::from(error).kind()), (20, std::io::ErrorKind::AlreadyExists));
    let mut txn = db.write();
    txn.put(&t, "x", "2").unwrap();
    txn.put(&t, "y", "2").unwrap();
    match txn.commit() {
        Err(Error::NotUnique { table, index, key, other }) => {
            assert_eq!((table.as_str(), index.as_str()), ("t", "i"));
            assert_eq!([key, other].concat().len(), 2);
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(t.put_many([("c", "3"), ("d", "1")]), Err(Error::NotUnique { .. })));
    assert_eq!(t.count().unwrap(), 1);
    // A null is like no other.
    let (_db, t) = with_index("v[0..1] unique");
    t.put_many([("a", ""), ("b", ""), ("c", "x")]).unwrap();
    assert!(t.put("d", "xy").is_err());
}

#[test]
fn of_many_threads_one_gets_the_value() {
    for isolation in [None, Some(Isolation::Serializable), Some(Isolation::Snapshot)] {
        let (db, t) = with_index("v unique");
        let (start, won) = (Barrier::new(4), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let (db, t, start, won) = (&db, &t, &start, &won);
                scope.spawn(move || {
                    start.wait();
                    for n in 0..200u64 {
                        let key = [n.to_be_bytes(), thread.to_be_bytes()].concat();
                        let done = match isolation {
                            None => t.put(&key, n.to_be_bytes()),
                            Some(isolation) => {
                                let options = WriteOptions { isolation, ..WriteOptions::default() };
                                db.transact_with(options, |txn| txn.put(t, &key, n.to_be_bytes()))
                            }
                        };
                        match done {
                            Ok(()) => _ = won.fetch_add(1, Ordering::Relaxed),
                            Err(Error::NotUnique { .. }) => {}
                            Err(e) => panic!("{e}"),
                        }
                    }
                });
            }
        });
        assert_eq!((won.into_inner(), t.count().unwrap()), (200, 200), "{isolation:?}");
        assert!(db.check(|_| {}).unwrap().problems.is_empty());
    }
}

#[test]
fn a_lookup_counts_as_read() {
    let (db, t) = with_index("v");
    let index = t.index("i").unwrap();
    let mut txn = db.write();
    assert_eq!(index.read_in(&txn).count(&["x".into()]).unwrap(), 0);
    t.put("a", "x").unwrap();
    txn.put(&t, "b", "y").unwrap();
    assert!(matches!(txn.commit(), Err(Error::Conflict { table }) if table == "t"));
    let mut txn = db.write();
    assert_eq!(index.read_in(&txn).count(&["x".into()]).unwrap(), 1);
    t.put("c", "other").unwrap();
    txn.put(&t, "b", "y").unwrap();
    txn.commit().unwrap();
}

#[test]
fn who_did_not_know_of_an_index_does_not_commit_after_it() {
    let db = open();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("a", "1").unwrap();
    let mut before = db.write();
    before.put(&t, "b", "2").unwrap();
    let index = t.create_index("i", "v").unwrap();
    assert!(matches!(before.commit(), Err(Error::Conflict { table }) if table == "t"));
    let mut during = db.write();
    during.put(&t, "c", "3").unwrap();
    let kept = during.savepoint();
    during.put(&t, "d", "4").unwrap();
    during.rollback_to(&kept).unwrap();
    t.drop_index("i").unwrap();
    assert!(matches!(during.commit(), Err(Error::Conflict { table }) if table == "t"));
    assert!(matches!(index.get(&[]), Err(Error::NoSuchIndex { .. })));
    assert_eq!(t.count().unwrap(), 1);
    // And one that begins again by itself.
    let mut tries = 0;
    db.transact(|txn| {
        txn.put(&t, "e", "5")?;
        tries += 1;
        if tries == 1 {
            t.create_index("i", "v").map(|_| ())?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!((tries, keys(&t, "5")), (2, vec!["e".to_owned()]));
}

#[test]
fn hidden_tables_are_nobody_elses() {
    let (db, t) = with_index("v");
    t.put("a", "1").unwrap();
    let hidden = "\0index\x001\0i";
    assert_eq!(db.tables().len(), 1);
    assert!(matches!(db.open_table(hidden), Err(Error::NoSuchTable { .. })));
    assert!(matches!(db.drop_table(hidden), Err(Error::NoSuchTable { .. })));
    assert!(matches!(db.rename_table(hidden, "x"), Err(Error::NoSuchTable { .. })));
    for name in ["\0", "\0index\x001\0j", "\0x"] {
        assert!(matches!(db.create_table(name, TableKind::Hash), Err(Error::Invalid { .. })));
        assert!(matches!(db.table(name, TableKind::Hash), Err(Error::Invalid { .. })));
        assert!(matches!(db.rename_table("t", name), Err(Error::Invalid { .. })));
    }
    for name in ["", "a\0b", &"x".repeat(201)] {
        assert!(t.create_index(name, "v").is_err());
    }
    t.create_index(&"x".repeat(200), "v").unwrap();
    db.flush().unwrap();
    assert!(db.stats().levels.iter().all(|level| level.table == "t"));
    let report = db.check(|_| {}).unwrap();
    assert_eq!((report.tables, report.records, report.problems.len()), (1, 1, 0));
}

#[test]
fn indexes_go_with_their_table_and_only_with_it() {
    let (db, t) = with_index("v");
    t.put("a", "1").unwrap();
    let other = db.create_table("other", TableKind::Ordered).unwrap();
    other.create_index("i", "v").unwrap();
    other.put("b", "1").unwrap();
    db.rename_table("t", "u").unwrap();
    assert_eq!(keys(&t, "1"), ["a"]);
    db.drop_table("u").unwrap();
    assert!(matches!(t.index("i"), Err(Error::NoSuchTable { .. })));
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    assert!(t.indexes().unwrap().is_empty());
    assert!(matches!(t.index("i"), Err(Error::NoSuchIndex { .. })));
    assert!(matches!(t.drop_index("i"), Err(Error::NoSuchIndex { .. })));
    assert_eq!(keys(&other, "1"), ["b"]);
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

#[test]
fn another_specification_by_the_same_name_is_refused() {
    let (_db, t) = with_index("v[0..4]");
    t.create_index("i", " v[..4]").unwrap();
    let error = t.create_index("i", "v[0..5]").unwrap_err();
    assert!(error.to_string().contains(r#"it is of "v[0..4]", not of "v[0..5]""#), "{error}");
    assert!(matches!(t.create_index("j", "no field"), Err(Error::Invalid { .. })));
    assert_eq!(t.indexes().unwrap().len(), 1);
}

#[test]
fn an_entry_that_is_too_long_is_refused_and_nothing_written() {
    let (db, t) = with_index("k");
    let long = vec![7; KEY_BYTES_MAX];
    let mut txn = db.write();
    txn.put(&t, "a", "1").unwrap();
    assert!(matches!(txn.put(&t, &long, "2"), Err(Error::TooLarge { what: "entry of an index", .. })));
    txn.commit().unwrap();
    assert!(matches!(t.put(&long, "2"), Err(Error::TooLarge { .. })));
    assert_eq!((t.count().unwrap(), t.index("i").unwrap().count(&[]).unwrap()), (1, 1));
    // An index that a record there cannot have is not made.
    t.drop_index("i").unwrap();
    t.put(&long, "2").unwrap();
    assert!(matches!(t.create_index("i", "k"), Err(Error::TooLarge { .. })));
    assert!(t.indexes().unwrap().is_empty());
}

#[test]
fn a_snapshot_from_before_the_index_does_not_take_it_for_empty() {
    let db = open();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("a", "1").unwrap();
    let old = db.read();
    let index = t.create_index("i", "v").unwrap();
    match index.read_in(&old).get(&[]).map(|_| ()) {
        Err(Error::NoSuchIndex { table, name }) => assert_eq!((&*table, &*name), ("t", "i")),
        other => panic!("{other:?}"),
    }
    let newer = db.read();
    t.put("b", "1").unwrap();
    assert_eq!(index.read_in(&newer).count(&["1".into()]).unwrap(), 1);
    assert_eq!(index.count(&["1".into()]).unwrap(), 2);
    assert_eq!(records(index.prefix(&["".into()]).unwrap()).len(), 2);
}

#[test]
fn files_that_are_read_only_copied_and_followed_have_their_indexes() {
    let dir = std::env::temp_dir().join(format!("azekura-indexes-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (path, copy) = (dir.join("i.azk"), dir.join("copy.azk"));
    let db = options().threads(false).open(&path).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    t.create_index("i", "v").unwrap();
    t.put("a", "1").unwrap();
    for freshness in [Freshness::Checkpoint, Freshness::Log] {
        db.flush().unwrap();
        let follower = options().freshness(freshness).open(&path).unwrap();
        let seen = follower.open_table("t").unwrap();
        assert_eq!(keys(&seen, "1"), ["a"]);
        let index = seen.index("i").unwrap();
        t.put("b", "2").unwrap();
        let sees = if freshness == Freshness::Log { 1 } else { 0 };
        assert_eq!(index.count(&["2".into()]).unwrap(), sees);
        t.remove("b").unwrap();
        assert_eq!(index.count(&["2".into()]).unwrap(), 0);
        assert!(follower.check(|_| {}).unwrap().problems.is_empty());
    }
    let mut stream = Vec::new();
    db.backup_to(&mut stream, |_| {}).unwrap();
    azekura::restore_stream(&mut stream.as_slice(), &copy, |_| {}).unwrap();
    db.close().unwrap();
    for path in [&path, &copy] {
        let db = options().read_only(true).open(path).unwrap();
        let t = db.open_table("t").unwrap();
        assert_eq!(keys(&t, "1"), ["a"]);
        assert!(t.create_index("i", "v").is_ok(), "it is there");
        assert!(matches!(t.create_index("j", "v"), Err(Error::ReadOnly)));
        assert!(matches!(t.put("b", "2"), Err(Error::ReadOnly)));
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn salvage_makes_indexes_anew() {
    let dir = std::env::temp_dir().join(format!("azekura-indexes-salvage-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("i.azk");
    let db = options().open(&path).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    t.create_index("i", "v[0..1]:u8").unwrap();
    t.put_many((0..2000u32).map(|n| (n.to_be_bytes(), [n as u8, 7]))).unwrap();
    db.close().unwrap();
    for blind in [false, true] {
        if blind {
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &[0; 8192], 0).unwrap();
        }
        let out = open();
        let report = azekura::salvage(&path, &out, |_| {}).unwrap();
        assert_eq!((out.tables().len(), report.tables.len()), (1, 1));
        let t = out.open_table("t").unwrap();
        assert_eq!(t.index("i").unwrap().count(&[7u8.into()]).unwrap(), 8, "{report:?}");
        assert!(report.notes.iter().any(|note| note.contains("built anew")), "{report:?}");
        assert!(out.check(|_| {}).unwrap().problems.is_empty());
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn salvage_takes_the_newer_of_two_indexes_of_one_name() {
    let dir = std::env::temp_dir().join(format!("azekura-indexes-newer-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("i.azk");
    let db = options().threads(false).open(&path).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    t.put_many((0..2000u32).map(|n| (n.to_be_bytes(), [n as u8, 7]))).unwrap();
    for spec in ["v[0..1]:u8", "v[1..2]:u8"] {
        t.create_index("i", spec).unwrap();
        if spec == "v[0..1]:u8" {
            t.drop_index("i").unwrap();
        }
    }
    // As if it ended here: the log has both.
    let copy = dir.join("copy.azk");
    std::fs::copy(&path, &copy).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&copy).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 8192], 0).unwrap();
    drop(file);
    let out = open();
    let report = azekura::salvage(&copy, &out, |_| {}).unwrap();
    let t = out.open_table("t").unwrap();
    assert_eq!(t.indexes().unwrap()[0].spec, "v[1..2]:u8", "{report:?}");
    assert_eq!(t.index("i").unwrap().count(&[7u8.into()]).unwrap(), 2000);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_table_has_no_more_than_64_indexes() {
    let storage = MemStorage::default();
    let db = open_on(&storage);
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let other = db.create_table("other", TableKind::Ordered).unwrap();
    t.put("a", "1").unwrap();
    for n in 0..64 {
        t.create_index(&format!("i{n}"), "v").unwrap();
    }
    match t.create_index("i64", "v") {
        Err(Error::TooLarge { what, found: 65, limit: 64 }) => {
            assert_eq!(what, "number of indexes of a table");
        }
        other => panic!("{other:?}"),
    }
    t.create_index("i63", "v").unwrap();
    other.create_index("i64", "v").unwrap();
    t.drop_index("i5").unwrap();
    t.create_index("i64", "v").unwrap();
    drop((t, other));
    db.close().unwrap();
    let db = open_on(&storage);
    let t = db.open_table("t").unwrap();
    t.put("b", "1").unwrap();
    assert_eq!(t.indexes().unwrap().len(), 64);
    for n in (0..65).filter(|n| *n != 5) {
        assert_eq!(t.index(&format!("i{n}")).unwrap().count(&["1".into()]).unwrap(), 2, "i{n}");
    }
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

fn change(txn: &mut WriteTxn, t: &Table, rng: &mut Rng) -> Result<()> {
    for _ in 0..1 + rng.below(4) {
        let (key, value) = (rng.below(40).to_be_bytes(), rng.below(30).to_be_bytes());
        match rng.below(8) {
            0 => txn.remove(t, key)?,
            1 => txn.remove_range(t, &key[..]..&(rng.below(4) + u64::from_be_bytes(key)).to_be_bytes())?,
            2 => _ = txn.pop_first(t)?,
            3 => _ = txn.increment(t, key, 1)?,
            _ => txn.put(t, key, value)?,
        }
    }
    Ok(())
}

#[test]
fn many_threads_change_a_table_with_indexes() {
    for seed in 0..4u64 {
        doing(format!("seed {seed}"));
        let db = open();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        let specs = ["v[7..8]:u8", "v[0..1]:u8, k[7..8]:u8", "v unique"];
        for (i, spec) in specs.iter().enumerate() {
            t.create_index(&format!("i{i}"), spec).unwrap();
        }
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let (db, t) = (&db, &t);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed << 8 | thread);
                    let isolation = if thread == 0 { Isolation::Snapshot } else { Isolation::Serializable };
                    let options = WriteOptions { isolation, ..WriteOptions::default() };
                    for _ in 0..300 {
                        let start = rng.clone();
                        let done = db.transact_with(options, |txn| {
                            rng = start.clone();
                            change(txn, t, &mut rng)
                        });
                        match done {
                            // Not `Conflict`: it tries a hundred times, and pauses.
                            Ok(()) | Err(Error::NotUnique { .. }) => {}
                            Err(e) => panic!("{e}"),
                        }
                    }
                });
            }
        });
        let table: Map = records(t.iter().unwrap()).into_iter().collect();
        for (i, spec) in specs.iter().enumerate() {
            let wanted = expected(&IndexSpec::parse(spec).unwrap(), &table);
            let found = records(t.index(&format!("i{i}")).unwrap().get(&[]).unwrap());
            assert!(
                found.into_iter().eq(wanted.into_iter().map(|(_, record)| record)),
                "seed {seed}: {spec}"
            );
        }
        assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn a_large_value_is_indexed_by_what_it_is() {
    let db = open();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.create_index("i", "v[0..2]").unwrap();
    t.put("a", vec![b'x'; 5000]).unwrap();
    let mut txn = db.write();
    txn.put(&t, "b", vec![b'x'; 500]).unwrap();
    txn.put(&t, "a", vec![b'y'; 500]).unwrap();
    txn.commit().unwrap();
    assert_eq!((keys(&t, "xx"), keys(&t, "yy")), (vec!["b".to_owned()], vec!["a".to_owned()]));
}

/// What a transaction adds to a unique index stands near what there is, or far from it.
#[test]
fn many_unique_values_are_compared_with_those_around_them() {
    for apart in [1, 2, 15, 16, 17, 18, 60] {
        let (db, t) = with_index("v:u64be unique");
        t.put_many((0..2000u64).map(|n| (n.to_be_bytes(), (n * 3).to_be_bytes()))).unwrap();
        if apart % 2 == 0 {
            db.flush().unwrap();
        }
        let count = 2000 / apart;
        let put = |first: u64, rest: u64, hit: Option<u64>| {
            // Not in their order.
            let some = (0..count).rev().map(|n| {
                let rest = if hit == Some(n) { 0 } else { rest };
                ((first + n).to_be_bytes(), (n * 3 * apart + rest).to_be_bytes())
            });
            t.put_many(some)
        };
        put(10_000, 1, None).unwrap();
        for hit in [0, 1, count / 2, count - 1] {
            match put(20_000, 2, Some(hit)) {
                Err(Error::NotUnique { key, other, .. }) => {
                    assert_eq!(
                        (key, other),
                        ((20_000 + hit).to_be_bytes().into(), (hit * apart).to_be_bytes().into())
                    );
                }
                other => panic!("{apart} apart, {hit}: {other:?}"),
            }
        }
        put(20_000, 2, None).unwrap();
        assert_eq!(t.index("i").unwrap().count(&[]).unwrap(), 2000 + 2 * count);
        assert_eq!(db.check(|_| {}).unwrap().problems, [""; 0]);
    }
}

/// Old values that others write meanwhile are a conflict, however they were read, and what comes before a
/// record that is refused is in the transaction.
#[test]
fn records_that_are_put_together_are_put_as_one_by_one() {
    let (db, t) = with_index("v");
    t.put_many((0..100u32).map(|i| (i.to_be_bytes(), "old"))).unwrap();
    let mut txn = db.write();
    txn.put_many(&t, (0..100u32).map(|i| (i.to_be_bytes(), "new"))).unwrap();
    t.put(70u32.to_be_bytes(), "other").unwrap();
    assert!(matches!(txn.commit(), Err(Error::Conflict { .. })));
    assert_eq!((keys_with(&t, "old"), keys_with(&t, "other"), keys_with(&t, "new")), (99, 1, 0));
    let mut txn = db.write();
    let long = vec![0; KEY_BYTES_MAX + 1];
    let records = (0..40u32).map(|i| (i.to_be_bytes().to_vec(), "new")).chain([(long, "x")]);
    let refused = txn.put_many(&t, records);
    assert!(matches!(refused, Err(Error::TooLarge { what: "key", .. })), "{refused:?}");
    txn.commit().unwrap();
    assert_eq!((keys_with(&t, "old"), keys_with(&t, "new"), keys_with(&t, "other")), (59, 40, 1));
}

/// What a transaction has removed it does not read, so nothing that others do to it is a conflict; and what a
/// call has not come to was not read either.
#[test]
fn records_that_are_put_together_are_read_only_where_one_would_be() {
    let (db, t) = with_index("v");
    t.put_many((0..40u32).map(|i| (i.to_be_bytes(), "old"))).unwrap();
    let mut txn = db.write();
    txn.clear(&t).unwrap();
    txn.put_many(&t, (0..20u32).map(|i| (i.to_be_bytes(), "new"))).unwrap();
    t.put(7u32.to_be_bytes(), "other").unwrap();
    txn.commit().unwrap();
    assert_eq!((keys_with(&t, "new"), t.count().unwrap()), (20, 20));
    let mut txn = db.write();
    let key = |i: u32| if i == 10 { vec![0; KEY_BYTES_MAX + 1] } else { i.to_be_bytes().to_vec() };
    assert!(txn.put_many(&t, (0..20u32).map(|i| (key(i), "newer"))).is_err());
    t.put(15u32.to_be_bytes(), "other").unwrap();
    txn.commit().unwrap();
    assert_eq!((keys_with(&t, "newer"), keys_with(&t, "new"), keys_with(&t, "other")), (10, 9, 1));
}

fn keys_with(t: &Table, value: &str) -> u64 {
    t.index("i").unwrap().count(&[value.into()]).unwrap()
}
