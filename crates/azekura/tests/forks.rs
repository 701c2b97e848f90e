//! Real forks: the parent goes on as if nothing had happened, and in the child every inherited handle says
//! what it is, while databases of its own are as good as anywhere if no other thread was at work at the fork.
//!
//! One test at a time: the threads of another would be such.
#![cfg(all(unix, not(miri)))]

mod common;

use azekura::{
    Cursor, Db, Durability, Error, Index, IndexRecords, Isolation, Options, ReadTxn, Result, Table,
    TableKind, WriteOptions, WriteTxn,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::scope;
use std::time::{Duration, Instant};

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn kill(pid: i32, signal: i32) -> i32;
    fn _exit(status: i32) -> !;
}

const WNOHANG: i32 = 1;
const SIGKILL: i32 = 9;

/// Runs `child` in a fork of this process and gives its exit status; it hangs for no more than a minute.
fn in_a_fork(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs nothing but `child` and ends by `_exit`. Of what other threads may have held at
    // the fork it needs the allocator only, which the C library makes usable.
    let pid = unsafe { fork() };
    assert!(pid >= 0, "no fork");
    if pid == 0 {
        let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(255);
        // SAFETY: it takes no pointer, and does not return.
        unsafe { _exit(status) };
    }
    let begun = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: `status` is there for the call's time.
        let found = unsafe { waitpid(pid, &mut status, WNOHANG) };
        if found == pid {
            assert_eq!(status & 0x7f, 0, "the child was ended by a signal");
            return status >> 8 & 0xff;
        }
        if begun.elapsed() > Duration::from_secs(60) {
            // SAFETY: the child is ours and was not waited for yet, so that its number is nobody else's.
            unsafe { kill(pid, SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Held by the test that runs.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn path(name: &str) -> PathBuf {
    common::watch(Duration::from_secs(120));
    std::env::temp_dir().join(format!("azekura-forks-{}-{name}.azk", std::process::id()))
}

fn options() -> Options {
    Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10)
}

/// The first of the calls that was not refused, counted from 1.
struct Calls {
    made: i32,
    wrong: i32,
}

impl Calls {
    fn refused<T>(&mut self, result: Result<T>) {
        self.made += 1;
        if self.wrong == 0 && !matches!(result, Err(Error::Forked)) {
            self.wrong = self.made;
        }
    }
}

/// What a child inherits.
struct Handles {
    db: Db,
    t: Table,
    read: ReadTxn,
    blind: WriteTxn,
    txn: WriteTxn,
    cursor: Cursor,
}

impl Handles {
    fn of(db: &Db, t: &Table) -> Handles {
        let snapshot = WriteOptions { isolation: Isolation::Snapshot, ..WriteOptions::default() };
        let (read, mut blind, mut txn) = (db.read(), db.write_with(snapshot), db.write());
        blind.put(t, b"blind", b"").unwrap();
        blind.put(t, b"blind and large", &[1; 3000]).unwrap();
        txn.get(t, b"first").unwrap();
        txn.put(t, b"key", b"").unwrap();
        let mut cursor = t.cursor().unwrap();
        cursor.next().unwrap();
        Handles { db: db.clone(), t: t.clone(), read, blind, txn, cursor }
    }

    /// Makes every call: 0 if all were refused, else which was not.
    fn refuse_all(self) -> i32 {
        let Handles { db, t, read, blind, mut txn, mut cursor } = self;
        let mut calls = Calls { made: 0, wrong: 0 };
        let c = &mut calls;
        let k = b"first";
        c.refused(t.get(k));
        c.refused(t.get_ref(k));
        c.refused(t.get_many(&[k]));
        c.refused(t.contains(k));
        c.refused(t.count());
        c.refused(t.cursor()); // 6
        c.refused(t.put(k, b"child"));
        c.refused(t.put(k, &[7; 4000]));
        c.refused(t.put_many([(k, b"child")]));
        c.refused(t.remove(k));
        c.refused(t.increment(k, 1));
        c.refused(t.clear()); // 12
        c.refused(read.get(&t, k));
        c.refused(read.cursor(&t));
        c.refused(cursor.next());
        c.refused(cursor.prev());
        let point = txn.savepoint();
        c.refused(txn.get(&t, k));
        c.refused(txn.put(&t, k, b"child")); // 18
        c.refused(txn.cursor(&t));
        c.refused(txn.rollback_to(&point));
        c.refused(txn.commit());
        c.refused(blind.commit());
        let snapshot = WriteOptions { isolation: Isolation::Snapshot, ..WriteOptions::default() };
        c.refused(db.write_with(snapshot).put(&t, k, b"child"));
        c.refused(db.write().commit()); // 24
        c.refused(db.table("new", TableKind::Hash));
        c.refused(db.open_table("t"));
        c.refused(db.create_table("new", TableKind::Hash));
        c.refused(db.rename_table("t", "u"));
        c.refused(db.drop_table("t"));
        c.refused(db.sync()); // 30
        c.refused(db.flush());
        c.refused(db.compact());
        c.refused(db.shrink(|_| {}));
        c.refused(db.check(|_| {}));
        let _harmless = (db.stats(), db.tables(), t.name());
        c.refused(db.clone().close());
        // Dropped here, for the last time in this process.
        drop((t, read, cursor));
        c.refused(db.close());
        calls.wrong
    }
}

/// What a child inherits of a table with an index.
struct Indexed {
    db: Db,
    t: Table,
    index: Index,
    read: ReadTxn,
    /// It has looked by the index, and written.
    txn: WriteTxn,
    /// It has written to a unique index, and not read.
    blind: WriteTxn,
    found: IndexRecords,
}

impl Indexed {
    fn of(db: &Db, t: &Table, round: u64) -> Indexed {
        let index = t.index("i").unwrap();
        let (read, mut txn, mut blind) = (db.read(), db.write(), db.write());
        assert!(index.read_in(&txn).count(&[]).unwrap() > 1);
        txn.put(t, format!("txn {round}"), format!("txn {round}")).unwrap();
        blind.put(t, format!("blind {round}"), format!("blind {round}")).unwrap();
        let mut found = index.get(&[]).unwrap();
        found.next().unwrap().unwrap();
        Indexed { db: db.clone(), t: t.clone(), index, read, txn, blind, found }
    }

    /// As `Handles::refuse_all`.
    fn refuse_all(self) -> i32 {
        let Indexed { db, t, index, read, mut txn, blind, mut found } = self;
        let mut calls = Calls { made: 0, wrong: 0 };
        let c = &mut calls;
        let first = [azekura::IndexValue::from("first")];
        c.refused(index.get(&first));
        c.refused(index.prefix(&first));
        c.refused(index.range(first..));
        c.refused(index.first(&first));
        c.refused(index.last(&first));
        c.refused(index.count(&first)); // 6
        c.refused(found.next().unwrap_or(Ok((Vec::new(), Vec::new()))));
        c.refused(index.read_in(&read).get(&first));
        c.refused(index.read_in(&read).count(&[]));
        c.refused(index.read_in(&txn).get(&first));
        c.refused(index.read_in(&txn).count(&[]));
        c.refused(index.read_in(&db.read()).count(&[])); // 12
        c.refused(index.read_in(&db.write()).count(&[]));
        c.refused(t.index("i"));
        c.refused(t.index("none"));
        c.refused(t.indexes());
        c.refused(t.create_index("i", "v unique"));
        c.refused(t.create_index("another", "v")); // 18
        c.refused(t.drop_index("i"));
        c.refused(t.put("first", "child"));
        c.refused(t.put("first", [b'x'; 3000]));
        c.refused(t.put_many([("a", "child a"), ("b", "child b")]));
        c.refused(t.remove("first"));
        c.refused(t.remove_range("a".."z")); // 24
        c.refused(t.clear());
        c.refused(t.take("first"));
        c.refused(t.increment("first", 1));
        c.refused(txn.put(&t, "first", "child"));
        c.refused(txn.remove(&t, "first"));
        c.refused(txn.remove_range(&t, "a".."z")); // 30
        c.refused(txn.clear(&t));
        c.refused(db.write().put(&t, "first", "child"));
        c.refused(txn.commit());
        c.refused(blind.commit());
        drop((index, found, read, t));
        c.refused(db.close());
        calls.wrong
    }
}

#[test]
fn a_child_can_neither_look_by_an_index_nor_keep_one() {
    let _turn = turn();
    let file = path("indexed");
    let db = options().open(&file).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put_many([("first", "of the parent"), ("second", "too")]).unwrap();
    let index = t.create_index("i", "v unique").unwrap();
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    scope(|s| {
        // So that commits, and the making of other indexes, are under way when the forks come.
        let (db, t, stop, written) = (&db, &t, &stop, &written);
        s.spawn(move || {
            for i in 0u64.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let lazy = WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() };
                let put = |txn: &mut WriteTxn| txn.put(t, i.to_be_bytes(), i.to_be_bytes());
                db.transact_with(lazy, put).unwrap();
                written.store(i + 1, Ordering::Relaxed);
            }
        });
        s.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                t.create_index("other", "k").unwrap();
                t.drop_index("other").unwrap();
            }
        });
        for round in 0..8 {
            common::doing(format!("fork {round}"));
            let handles = Indexed::of(db, t, round);
            let status = in_a_fork(|| handles.refuse_all());
            assert_eq!(status, 0, "round {round}: the call of this number was not refused in the child");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(index.count(&[]).unwrap(), 2 + written.load(Ordering::Relaxed));
    assert_eq!(index.first(&["too".into()]).unwrap().unwrap().0, b"second");
    assert_eq!(db.check(|_| {}).unwrap().problems, [""; 0]);
    drop((t, index));
    db.close().unwrap();
    let db = options().create(false).open(&file).unwrap();
    assert_eq!(db.check(|_| {}).unwrap().problems, [""; 0]);
    drop(db);
    std::fs::remove_file(&file).unwrap();
}

/// A child's own database: 0 if it is all right.
fn own_database(path: &Path, parents: &Path) -> i32 {
    let own = || -> Result<bool> {
        let db = options().open(path)?;
        let t = db.table("own", TableKind::Hash)?;
        for i in 0..50u64 {
            t.put(&i.to_be_bytes(), b"of the child")?;
        }
        let mut txn = db.write();
        txn.put(&t, b"in", b"a transaction")?;
        txn.commit()?;
        let right = t.count()? == 51 && db.check(|_| {})?.problems.is_empty();
        drop(t);
        db.close()?;
        let db = options().open(path)?;
        Ok(right && db.open_table("own")?.count()? == 51)
    };
    match (own(), options().open(parents)) {
        (Ok(true), Err(Error::Locked { .. })) => 0,
        (Ok(true), _) => 101,
        (Ok(false), _) => 102,
        (Err(_), _) => 103,
    }
}

#[test]
fn a_child_is_refused_everything_and_the_parent_loses_nothing() {
    let _turn = turn();
    let file = path("busy");
    let db = options().open(&file).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put(b"first", b"of the parent").unwrap();
    let (stop, acknowledged) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 2]);
    scope(|s| {
        // So that locks are held, and flushes, merges and cache misses are under way, when the forks come.
        for (n, acknowledged) in acknowledged.iter().enumerate() {
            let (db, t, stop) = (&db, &t, &stop);
            s.spawn(move || {
                let durable = n == 0;
                let lazy = WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() };
                for i in 0u64.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let key = [n as u64, i].map(u64::to_be_bytes).concat();
                    if durable {
                        t.put(&key, b"durable").unwrap();
                    } else {
                        let mut txn = db.write_with(lazy);
                        txn.put(t, &key, &vec![1; if i.is_multiple_of(8) { 2000 } else { 200 }]).unwrap();
                        txn.commit().unwrap();
                        t.get(&[n as u64, i / 2].map(u64::to_be_bytes).concat()).unwrap().unwrap();
                    }
                    acknowledged.store(i + 1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..12 {
            common::doing(format!("fork {round}"));
            let handles = Handles::of(&db, &t);
            let status = in_a_fork(|| handles.refuse_all());
            assert_eq!(status, 0, "round {round}: the call of this number was not refused in the child");
        }
        stop.store(true, Ordering::Relaxed);
    });
    let counts = acknowledged.map(AtomicU64::into_inner);
    assert!(counts.iter().all(|&n| n > 0));
    t.put(b"last", b"of the parent").unwrap();
    assert_eq!(db.check(|_| {}).unwrap().problems, [""; 0]);
    drop(t);
    db.close().unwrap();
    let db = options().create(false).open(&file).unwrap();
    let t = db.open_table("t").unwrap();
    assert_eq!(t.count().unwrap(), 2 + counts.iter().sum::<u64>());
    assert_eq!(t.get(b"first").unwrap().unwrap(), b"of the parent");
    drop((t, db));
    std::fs::remove_file(&file).unwrap();
}

/// The parent's database has no threads, so that nobody is at work at the fork.
#[test]
fn a_child_of_a_quiet_process_has_databases_of_its_own() {
    let _turn = turn();
    let (file, own) = (path("quiet"), path("quiet-own"));
    let db = options().threads(false).open(&file).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put(b"first", b"of the parent").unwrap();
    for round in 0..4 {
        let handles = Handles::of(&db, &t);
        let status = in_a_fork(|| match handles.refuse_all() {
            0 => own_database(&own, &file),
            wrong => wrong,
        });
        assert_eq!(status, 0, "round {round}");
        std::fs::remove_file(&own).unwrap();
    }
    drop(t);
    db.close().unwrap();
    std::fs::remove_file(&file).unwrap();
}

/// A child of a child knows that its parent's handles are not its own, as well as those of its parent's
/// parent; and a parent can close, and others open the file, while a child that has inherited it lives.
#[test]
fn forks_of_forks_and_a_file_that_is_closed_while_a_child_lives() {
    let _turn = turn();
    let (file, own) = (path("chain"), path("chain-own"));
    let db = options().threads(false).open(&file).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    t.put(b"first", b"1").unwrap();
    let status = in_a_fork(|| {
        let child = options().open(&own).unwrap();
        let of_child = child.create_table("t", TableKind::Hash).unwrap();
        of_child.put(b"first", b"1").unwrap();
        let grandchild = in_a_fork(|| {
            let of_both =
                matches!((t.get(b"first"), of_child.get(b"first")), (Err(Error::Forked), Err(Error::Forked)));
            i32::from(!of_both)
        });
        let fine =
            matches!(of_child.get(b"first"), Ok(Some(_))) && matches!(t.get(b"first"), Err(Error::Forked));
        drop(of_child);
        grandchild * 2 + i32::from(!fine) + 4 * i32::from(child.close().is_err())
    });
    assert_eq!(status, 0);
    let (forked, closed) = (path("chain-forked"), path("chain-closed"));
    for marker in [&forked, &closed] {
        let _none = std::fs::remove_file(marker);
    }
    scope(|s| {
        let waiting = s.spawn(|| {
            in_a_fork(|| {
                let _told = std::fs::write(&forked, b"");
                // Lives on with all that it has inherited, until the parent is done.
                let begun = Instant::now();
                while !closed.exists() && begun.elapsed() < Duration::from_secs(50) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                i32::from(!closed.exists())
            })
        });
        while !forked.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        t.put(b"second", b"2").unwrap();
        db.clone().close().unwrap();
        let again = options().open(&file).unwrap();
        assert_eq!(again.open_table("t").unwrap().count().unwrap(), 2);
        again.close().unwrap();
        std::fs::write(&closed, b"").unwrap();
        assert_eq!(waiting.join().unwrap(), 0);
    });
    for path in [file, own, forked, closed] {
        std::fs::remove_file(path).unwrap();
    }
}
