//! What transactions promise: conflicts are found and only where they are, others see all of a
//! transaction or nothing, and commits that share a sync are all durable.

use crate::common::Rng;
use azekura::storage::MemStorage;
use azekura::{
    Db, Durability, Error, Isolation, Options, ReadTxn, Result, Table, TableKind, WriteOptions, WriteTxn,
};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::scope;
use std::time::Duration;

const KINDS: [TableKind; 2] = [TableKind::Ordered, TableKind::Hash];

fn open(options: Options) -> Db {
    crate::common::watch(Duration::from_secs(60));
    Db::open_on(&MemStorage::default(), "/t.azk", options).unwrap()
}

fn snapshot_isolation(db: &Db) -> WriteTxn {
    db.write_with(WriteOptions { isolation: Isolation::Snapshot, ..WriteOptions::default() })
}

fn conflicts(result: Result<()>) -> bool {
    match result {
        Ok(()) => false,
        Err(Error::Conflict { table }) => {
            assert_eq!(table, "t");
            true
        }
        Err(e) => panic!("{e}"),
    }
}

/// Runs `body` for tables of both kinds, with the records in memory and in runs.
fn everywhere(body: impl Fn(&Db, &Table)) {
    for kind in KINDS {
        for flushed in [false, true] {
            let db = open(Options::new());
            let t = db.create_table("t", kind).unwrap();
            t.put_many([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]).unwrap();
            if flushed {
                db.flush().unwrap();
            }
            body(&db, &t);
        }
    }
}

#[test]
fn an_update_is_never_lost() {
    everywhere(|db, t| {
        for isolation in [Isolation::Serializable, Isolation::Snapshot] {
            let begin = || db.write_with(WriteOptions { isolation, ..WriteOptions::default() });
            let (mut one, mut two) = (begin(), begin());
            one.append(t, b"a", b"x").unwrap();
            two.append(t, b"a", b"y").unwrap();
            let before = t.get(b"a").unwrap().unwrap();
            assert!(!conflicts(one.commit()));
            assert!(conflicts(two.commit()), "the second of two updates was lost under {isolation:?}");
            assert_eq!(t.get(b"a").unwrap().unwrap(), [&before[..], b"x"].concat());
        }
    });
}

#[test]
fn the_first_committer_wins_not_the_first_to_begin() {
    everywhere(|db, t| {
        let (mut one, mut two) = (db.write(), db.write());
        one.get(t, b"a").unwrap();
        one.put(t, b"a", b"one").unwrap();
        two.get(t, b"a").unwrap();
        two.put(t, b"a", b"two").unwrap();
        assert!(!conflicts(two.commit()));
        assert!(conflicts(one.commit()));
        assert_eq!(t.get(b"a").unwrap().unwrap(), b"two");
    });
}

#[test]
fn write_skew_is_a_matter_of_isolation() {
    everywhere(|db, t| {
        for serializable in [true, false] {
            let begin = || if serializable { db.write() } else { snapshot_isolation(db) };
            let (mut one, mut two) = (begin(), begin());
            for txn in [&mut one, &mut two] {
                txn.get(t, b"a").unwrap();
                txn.get(t, b"b").unwrap();
            }
            one.put(t, b"a", b"0").unwrap();
            two.put(t, b"b", b"0").unwrap();
            assert!(!conflicts(one.commit()));
            assert_eq!(conflicts(two.commit()), serializable);
        }
    });
}

#[test]
fn reads_of_absent_keys_and_of_removed_ones_conflict() {
    everywhere(|db, t| {
        let mut txn = db.write();
        assert_eq!(txn.get(t, b"new").unwrap(), None);
        txn.put(t, b"other", b"").unwrap();
        t.put(b"new", b"").unwrap();
        assert!(conflicts(txn.commit()));
        let mut txn = db.write();
        assert!(txn.contains(t, b"c").unwrap());
        txn.put(t, b"other", b"").unwrap();
        t.remove(b"c").unwrap();
        assert!(conflicts(txn.commit()));
        let mut txn = db.write();
        assert!(txn.contains(t, b"a").unwrap());
        txn.put(t, b"other", b"").unwrap();
        t.clear().unwrap();
        assert!(conflicts(txn.commit()));
    });
}

#[test]
fn phantoms_conflict_and_others_do_not() {
    let db = open(Options::new());
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put_many((0..100u8).map(|i| ([i], [i]))).unwrap();
    let read = |txn: &mut WriteTxn| {
        let mut cursor = txn.range(&t, [10]..[20]).unwrap();
        while cursor.next().unwrap().is_some() {}
        txn.put(&t, &[200], b"").unwrap();
    };
    type Change<'a> = &'a dyn Fn() -> Result<()>;
    let changes: [(Change, bool); 9] = [
        (&|| t.put(&[10], b"x"), true),
        (&|| t.put(&[19, 1], b"x"), true),
        (&|| t.remove(&[15]), true),
        (&|| t.remove_range([19]..), true),
        (&|| t.put_many((0..100u8).map(|i| ([i], [1]))), true),
        (&|| t.put(&[20], b"x"), false),
        (&|| t.put(&[9, 9], b"x"), false),
        (&|| t.remove_range([0]..[10]), false),
        (&|| t.put_many((20..120u8).map(|i| ([i], [1]))), false),
    ];
    for (n, (change, meets)) in changes.into_iter().enumerate() {
        let mut txn = db.write();
        read(&mut txn);
        change().unwrap();
        assert_eq!(conflicts(txn.commit()), meets, "change {n}");
        let mut txn = snapshot_isolation(&db);
        read(&mut txn);
        change().unwrap();
        // A range delete may be taken for a change of the key that was written (see `history`).
        let removes_a_range = [3, 7].contains(&n);
        assert!(!conflicts(txn.commit()) || removes_a_range, "change {n} under snapshot isolation");
    }
    let mut counting = db.write();
    counting.count(&t).unwrap();
    t.put(b"phantom", b"").unwrap();
    counting.put(&t, b"counted", b"").unwrap();
    assert!(conflicts(counting.commit()));
}

/// Whoever looks at an end depends on what is there and beyond it, and on nothing else.
#[test]
fn the_ends_of_a_table_are_read_as_far_as_their_records() {
    let looks: [fn(&mut WriteTxn, &Table); 4] = [
        |txn, t| drop(txn.first(t).unwrap()),
        |txn, t| drop(txn.pop_first(t).unwrap()),
        |txn, t| drop(txn.last(t).unwrap()),
        |txn, t| drop(txn.pop_last(t).unwrap()),
    ];
    for (n, look) in looks.into_iter().enumerate() {
        for key in ["a", "b", "c", "v", "w", "x"] {
            let db = open(Options::new());
            let t = db.create_table("t", TableKind::Ordered).unwrap();
            t.put_many([("b", "1"), ("w", "2")]).unwrap();
            let mut txn = db.write();
            look(&mut txn, &t);
            txn.put(&t, "m", "").unwrap();
            t.put(key, "other").unwrap();
            let meets = if n < 2 { key <= "b" } else { key >= "w" };
            assert_eq!(conflicts(txn.commit()), meets, "look {n}, then a put of {key}");
        }
    }
}

/// What `f` has refused is removed only if it is still what `f` has seen; what is beside it does not matter.
#[test]
fn retain_removes_what_it_was_shown() {
    everywhere(|_, t| {
        let mut calls = 0;
        let gone = t.retain(.., |key, value| {
            calls += 1;
            if calls == 1 {
                t.put("b", "changed").unwrap();
                t.put("d", "new").unwrap();
            }
            key == b"a" || value != b"2"
        });
        assert_eq!(gone.unwrap(), 0, "the second look has seen the change");
        assert_eq!(calls, 3 + 4);
        let mut calls = 0;
        let gone = t.retain(.., |key, _| {
            calls += 1;
            t.put("a", "changed").unwrap();
            key != b"c"
        });
        assert_eq!((gone.unwrap(), calls), (1, 4), "a change of what stays is no conflict");
        assert_eq!((t.count().unwrap(), t.contains("c").unwrap()), (3, false));
    });
}

/// Whose closure changes what it says is to go, each time, is told so.
#[test]
fn retain_ends_if_its_closure_is_in_its_own_way() {
    everywhere(|_, t| {
        let kept = t.retain(.., |key, _| {
            t.put(key, "changed").unwrap();
            key != b"a"
        });
        assert!(matches!(kept, Err(Error::Conflict { .. })), "{kept:?}");
        assert_eq!(t.count().unwrap(), 3);
    });
}

/// Longer than it takes until a pop removes the range of what is gone, with others who put beyond the ends.
#[test]
fn a_queue_is_emptied_from_both_ends() {
    for (flushed, pops) in [(true, 1), (true, 50), (false, 1)] {
        let db = open(Options::new().durability(Durability::Eventual));
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        let mut model: std::collections::BTreeMap<_, _> =
            (0..3000u32).map(|i| ((i + 1000).to_be_bytes().to_vec(), i.to_le_bytes().to_vec())).collect();
        t.put_many(&model).unwrap();
        if flushed {
            db.flush().unwrap();
        }
        let mut n = 0u32;
        while !model.is_empty() {
            let mut txn = db.write();
            for _ in 0..pops {
                n += 1;
                let (popped, wanted) = match n % 2 {
                    0 => (txn.pop_first(&t), model.pop_first()),
                    _ => (txn.pop_last(&t), model.pop_last()),
                };
                assert_eq!(popped.unwrap(), wanted, "pop {n}");
            }
            txn.commit().unwrap();
            if n.is_multiple_of(700) {
                for key in [n / 700, 10_000 + n, 500 + n] {
                    t.put(key.to_be_bytes(), "late").unwrap();
                    model.insert(key.to_be_bytes().to_vec(), b"late".to_vec());
                }
                assert_eq!(t.count().unwrap(), model.len() as u64);
                assert!(t.iter().unwrap().rev().map(Result::unwrap).eq(model.clone().into_iter().rev()));
            }
        }
        assert_eq!((t.first().unwrap(), t.last().unwrap(), t.count().unwrap()), (None, None, 0));
    }
}

#[test]
fn bounds_over_the_limit_of_keys_are_refused() {
    let db = open(Options::new());
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("a", "1").unwrap();
    let long = vec![0; azekura::KEY_BYTES_MAX + 1];
    let refused = [
        t.remove_range(&long..),
        t.retain(&long.., |_, _| false).map(|_| ()),
        t.drain(&long..).map(|_| ()),
        t.drain(..&long).map(|_| ()),
    ];
    for (n, refused) in refused.into_iter().enumerate() {
        assert!(matches!(refused, Err(Error::TooLarge { what: "key", .. })), "{n}: {refused:?}");
    }
    assert_eq!(t.count().unwrap(), 1);
}

#[test]
fn what_several_take_at_once_each_gets_once() {
    let db = open(Options::new().durability(Durability::Eventual));
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let taken = std::sync::Mutex::new(Vec::new());
    let (filled, number) = (AtomicBool::new(false), |key: &[u8]| u16::from_be_bytes(key.try_into().unwrap()));
    scope(|s| {
        for n in 0..3 {
            let (t, taken, filled) = (&t, &taken, &filled);
            s.spawn(move || {
                let mut mine = Vec::new();
                loop {
                    // Before the look: what is put after it may be missed.
                    let is_last = filled.load(Ordering::SeqCst);
                    let before = mine.len();
                    match n {
                        0 => mine.extend(t.pop_first().unwrap().map(|r| number(&r.0))),
                        1 => mine.extend(t.pop_last().unwrap().map(|r| number(&r.0))),
                        _ => mine.extend(t.drain(..).unwrap().map(|r| number(&r.unwrap().0))),
                    }
                    if is_last && mine.len() == before {
                        break;
                    }
                }
                taken.lock().unwrap().extend(mine);
            });
        }
        (0..2000u16).for_each(|i| t.put(i.to_be_bytes(), "job").unwrap());
        filled.store(true, Ordering::SeqCst);
    });
    let mut taken = taken.into_inner().unwrap();
    taken.sort_unstable();
    assert_eq!(taken, (0..2000).collect::<Vec<_>>());
}

#[test]
fn those_who_only_write_never_conflict() {
    everywhere(|db, t| {
        let mut one = db.write();
        let mut two = db.write();
        let reader = db.write();
        reader.get(t, b"c").unwrap();
        for (txn, value) in [(&mut one, b"1"), (&mut two, b"2")] {
            txn.put(t, b"a", value).unwrap();
            txn.remove(t, b"b").unwrap();
            // What it wrote itself is not a read of others' writes.
            assert_eq!(txn.get(t, b"a").unwrap().unwrap(), value);
        }
        assert!(!conflicts(one.commit()));
        t.put(b"a", b"3").unwrap();
        assert!(!conflicts(two.commit()));
        assert!(!conflicts(reader.commit()));
        assert_eq!(t.get(b"a").unwrap().unwrap(), b"2");
    });
}

#[test]
fn those_who_only_read_never_conflict() {
    everywhere(|db, t| {
        for isolation in [Isolation::Serializable, Isolation::Snapshot] {
            let mut reader = db.write_with(WriteOptions { isolation, ..WriteOptions::default() });
            reader.get(t, b"a").unwrap();
            reader.count(t).unwrap();
            let undone = reader.savepoint();
            reader.put(t, b"a", b"undone").unwrap();
            reader.rollback_to(&undone).unwrap();
            t.put(b"a", b"changed").unwrap();
            t.clear().unwrap();
            reader.commit().unwrap();
        }
    });
}

#[test]
fn a_snapshot_begins_with_its_transaction_and_a_serializable_one_with_its_first_read() {
    everywhere(|db, t| {
        // Two that write without looking.
        let (mut one, mut two) = (snapshot_isolation(db), snapshot_isolation(db));
        one.put(t, b"a", b"one").unwrap();
        two.put(t, b"a", b"two").unwrap();
        assert!(!conflicts(two.commit()));
        assert!(conflicts(one.commit()), "the second committer has overwritten the first");
        assert_eq!(t.get(b"a").unwrap().unwrap(), b"two");
        // What is committed between the beginning and the first read.
        for (mut txn, seen) in [(snapshot_isolation(db), &b"two"[..]), (db.write(), b"between")] {
            t.put(b"a", b"between").unwrap();
            assert_eq!(txn.get(t, b"a").unwrap().unwrap(), seen);
            txn.put(t, b"b", b"").unwrap();
            assert!(
                !conflicts(txn.commit()),
                "nobody has changed what it wrote, or what it read since it read"
            );
            t.put(b"a", b"two").unwrap();
        }
        // One that is older than the other's commit, but wrote elsewhere.
        let mut elsewhere = snapshot_isolation(db);
        elsewhere.put(t, b"c", b"").unwrap();
        t.put(b"a", b"x").unwrap();
        assert!(!conflicts(elsewhere.commit()));
        // A range that was removed without looking.
        if t.kind() == TableKind::Ordered {
            let mut ranging = snapshot_isolation(db);
            ranging.remove_range(t, "a".."b").unwrap();
            t.put(b"a", b"y").unwrap();
            assert!(conflicts(ranging.commit()));
        }
    });
}

#[test]
fn a_transaction_reads_one_moment() {
    everywhere(|db, t| {
        let txn = db.write();
        assert_eq!(txn.get(t, b"a").unwrap().unwrap(), b"1");
        t.put_many([(b"a", b"9"), (b"b", b"9"), (b"c", b"9")]).unwrap();
        db.flush().unwrap();
        assert_eq!(txn.get(t, b"b").unwrap().unwrap(), b"2");
        assert_eq!(txn.count(t).unwrap(), 3);
        txn.rollback();
    });
}

/// Sixteen accounts in each of two tables.
const ACCOUNTS: u64 = 16;

fn balance(value: Option<Vec<u8>>) -> i64 {
    i64::from_le_bytes(value.unwrap().try_into().unwrap())
}

fn sum(read: &ReadTxn, tables: [&Table; 2], how: u64) -> i64 {
    let keys: Vec<[u8; 8]> = (0..ACCOUNTS).map(u64::to_be_bytes).collect();
    let of = |t: &Table| -> i64 {
        match how % 3 {
            0 => keys.iter().map(|k| balance(read.get(t, k).unwrap())).sum(),
            1 => read.get_many(t, &keys).unwrap().into_iter().map(balance).sum(),
            _ => read.cursor(t).unwrap().owned().map(|r| balance(Some(r.unwrap().1))).sum(),
        }
    };
    tables.into_iter().map(of).sum()
}

#[test]
fn transfers_between_tables_keep_the_sum() {
    let options =
        Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).durability(Durability::Eventual);
    let db = open(options);
    let tables = KINDS.map(|kind| db.create_table(&format!("{kind:?}"), kind).unwrap());
    let [a, b] = &tables;
    for t in [a, b] {
        t.put_many((0..ACCOUNTS).map(|i| (i.to_be_bytes(), 1000i64.to_le_bytes()))).unwrap();
    }
    let total = 2 * 1000 * i64::try_from(ACCOUNTS).unwrap();
    let stop = AtomicBool::new(false);
    scope(|s| {
        for n in 0..2 {
            let (db, stop) = (&db, &stop);
            s.spawn(move || {
                let mut how = n;
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(sum(&db.read(), [a, b], how), total, "seen by a reader, way {how}");
                    how += 1;
                }
            });
        }
        let writers: Vec<_> = (0..2u64)
            .map(|n| {
                let db = &db;
                s.spawn(move || {
                    let mut rng = Rng::new(n);
                    let mut done = 0;
                    while done < 3000 {
                        let (from, to) =
                            (rng.below(ACCOUNTS).to_be_bytes(), rng.below(ACCOUNTS).to_be_bytes());
                        let amount = rng.below(100) as i64;
                        let mut txn = db.write();
                        txn.increment(a, &from, -amount).unwrap();
                        txn.increment(b, &to, amount).unwrap();
                        match txn.commit() {
                            Ok(()) => done += 1,
                            Err(Error::Conflict { .. }) => {}
                            Err(e) => panic!("{e}"),
                        }
                        if done % 500 == 0 {
                            crate::common::doing(format!("transfer {done} of writer {n}"));
                        }
                    }
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|w| w.join()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(|e| e.is_ok()));
    });
    assert_eq!(sum(&db.read(), [a, b], 0), total);
    db.compact().unwrap();
    assert_eq!(sum(&db.read(), [a, b], 1), total);
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

#[test]
fn increments_from_many_threads_add_up() {
    for durability in [Durability::Sync, Durability::Eventual] {
        let db = open(Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).durability(durability));
        let t = db.create_table("t", TableKind::Hash).unwrap();
        let expected = AtomicI64::new(0);
        scope(|s| {
            for n in 0..4i64 {
                let (t, expected) = (&t, &expected);
                s.spawn(move || {
                    for i in 0..500 {
                        t.increment(b"counter", i * n - 7).unwrap();
                        expected.fetch_add(i * n - 7, Ordering::Relaxed);
                    }
                });
            }
        });
        let found = i64::from_le_bytes(t.get(b"counter").unwrap().unwrap().try_into().unwrap());
        assert_eq!(found, expected.into_inner());
    }
}

#[test]
fn commits_that_share_a_sync_are_all_there() {
    // On a real file, where a sync takes long enough for others to queue up behind it.
    crate::common::watch(Duration::from_secs(60));
    let path = std::env::temp_dir().join(format!("azekura-test-group-{}.azk", std::process::id()));
    let db = Db::open(&path, Options::new()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let before = db.stats();
    scope(|s| {
        for n in 0..4u64 {
            let t = &t;
            s.spawn(move || {
                for i in 0..200u64 {
                    let key = (i << 8 | n).to_be_bytes();
                    t.put(&key, &[7; 40]).unwrap();
                    assert!(t.contains(&key).unwrap(), "a commit that has returned is visible");
                }
            });
        }
    });
    let after = db.stats();
    assert_eq!(after.commits - before.commits, 800);
    assert_eq!(t.count().unwrap(), 800);
    let (count, lazy) =
        (t.count().unwrap(), WriteOptions { durability: Some(Durability::Eventual), ..Default::default() });
    let mut txn = db.write_with(lazy);
    txn.put(&t, b"late", b"").unwrap();
    txn.commit().unwrap();
    db.sync().unwrap();
    assert_eq!(t.count().unwrap(), count + 1);
    drop(t);
    db.close().unwrap();
    let db = Db::open(&path, Options::new()).unwrap();
    assert_eq!(db.open_table("t").unwrap().count().unwrap(), 801);
    drop(db);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn transactions_that_run_again_lose_no_update() {
    let db = open(Options::new().durability(Durability::Eventual));
    let [a, b] =
        [("a", TableKind::Ordered), ("b", TableKind::Hash)].map(|(n, k)| db.create_table(n, k).unwrap());
    let tried = AtomicI64::new(0);
    scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..500 {
                    let sum = db.transact(|txn| {
                        tried.fetch_add(1, Ordering::Relaxed);
                        let sum = txn.increment(&a, b"n", 1)?;
                        txn.increment(&b, b"n", 1).map(|other| (sum, other))
                    });
                    let (one, other) = sum.unwrap();
                    assert_eq!(one, other);
                }
            });
        }
    });
    assert_eq!(a.increment(b"n", 0).unwrap(), 2000);
    assert!(tried.load(Ordering::Relaxed) >= 2000);
}

#[test]
fn a_transaction_that_fails_or_always_conflicts_ends() {
    let db = open(Options::new());
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    let refused: Result<()> = db.transact(|txn| {
        txn.put(&table, b"k", b"v")?;
        Err(Error::ReadOnly)
    });
    assert!(matches!(refused, Err(Error::ReadOnly)));
    assert_eq!(table.get(b"k").unwrap(), None);
    // Somebody changes what it has read, each time.
    let mut tried = 0;
    let always = db.transact(|txn| {
        tried += 1;
        txn.increment(&table, b"n", 1)?;
        table.increment(b"n", 1)
    });
    assert!(conflicts(always.map(drop)));
    assert_eq!((tried, table.increment(b"n", 0).unwrap()), (100, 100));
    let error: std::io::Error = refused.unwrap_err().into();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}
