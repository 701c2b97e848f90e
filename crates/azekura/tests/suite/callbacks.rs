//! Whatever calls the caller's code can be called from there too: each call works, or says clearly why not.

use azekura::storage::MemStorage;
use azekura::{Db, Error, Options, Result, Table, TableKind};
use std::cell::{Cell, RefCell};
use std::time::Duration;

struct World {
    db: Db,
    ordered: Table,
    hash: Table,
}

impl World {
    /// Two tables with runs, holes in the file, and something in memory.
    fn new() -> World {
        let db = Db::open_on(&MemStorage::default(), "/c.azk", Options::new().memory_bytes(8 << 20)).unwrap();
        let ordered = db.create_table("ordered", TableKind::Ordered).unwrap();
        let hash = db.create_table("hash", TableKind::Hash).unwrap();
        for t in [&ordered, &hash] {
            t.put_many((0..300u64).map(|i| (i.to_be_bytes(), vec![1; 100]))).unwrap();
            t.put(b"large", &[3; 9000]).unwrap();
            db.flush().unwrap();
            t.put_many((0..300u64).map(|i| (i.to_be_bytes(), vec![2; 90]))).unwrap();
            db.flush().unwrap();
            t.put(b"key", b"value").unwrap();
        }
        World { db, ordered, hash }
    }
}

type Call = fn(&World) -> Result<()>;

/// Every call that there is.
const CALLS: [(&str, Call); 30] = [
    ("get", |w| w.hash.get(&7u64.to_be_bytes()).map(|_| ())),
    ("get_with", |w| w.ordered.get_with(b"key", |_| ()).map(|_| ())),
    ("get_ref", |w| w.ordered.get_ref(b"large").map(|_| ())),
    ("get_many", |w| w.hash.get_many(&[b"key"]).map(|_| ())),
    ("contains", |w| w.hash.contains(b"key").map(|_| ())),
    ("count", |w| w.hash.count().map(|_| ())),
    ("cursor", |w| w.ordered.cursor()?.owned().try_for_each(|r| r.map(|_| ()))),
    ("range", |w| w.ordered.range(..)?.prev().map(|_| ())),
    ("put", |w| w.ordered.put(b"other", b"1")),
    ("put of a large value", |w| w.ordered.put(b"other", &[4; 9000])),
    ("put_many", |w| w.hash.put_many((900..1000u64).map(|i| (i.to_be_bytes(), b"x")))),
    ("remove", |w| w.ordered.remove(b"other")),
    ("remove_range", |w| w.ordered.remove_range("o".."p")),
    ("clear", |w| w.hash.clear()),
    ("add", |w| w.ordered.add(b"added", b"1").map(|_| ())),
    ("increment", |w| w.hash.increment(b"number", 1).map(|_| ())),
    ("update", |w| w.hash.update(b"updated", |_| Some(b"1".to_vec()))),
    ("take", |w| w.hash.take(b"updated").map(|_| ())),
    ("a read transaction", |w| w.db.read().get(&w.ordered, b"key").map(|_| ())),
    ("a write transaction", |w| {
        let mut txn = w.db.write();
        txn.get(&w.ordered, b"other")?;
        txn.put(&w.hash, b"other", b"1")?;
        txn.commit()
    }),
    ("create_table", |w| w.db.create_table("new", TableKind::Hash).map(|_| ())),
    ("rename_table", |w| w.db.rename_table("hash", "renamed")),
    ("drop_table", |w| w.db.drop_table("hash")),
    ("sync", |w| w.db.sync()),
    ("flush", |w| w.db.flush()),
    ("compact", |w| w.db.compact()),
    ("shrink", |w| w.db.shrink(|_| {}).map(|_| ())),
    ("check", |w| {
        w.db.check(|_| {}).map(|report| assert!(report.problems.is_empty(), "{:?}", report.problems))
    }),
    ("tables and stats", |w| {
        let _figures = (w.db.tables(), w.db.stats());
        Ok(())
    }),
    ("close", |w| w.db.clone().close()),
];

/// Something that calls back; the closure is to be called whenever it does.
type Caller = fn(&World, &dyn Fn()) -> Result<()>;

const CALLERS: [(&str, Caller); 11] = [
    ("shrink's progress", |w, f| w.db.shrink(|_| f()).map(|_| ())),
    ("check's progress", |w, f| w.db.check(|_| f()).map(|_| ())),
    ("get_with, in memory", |w, f| w.hash.get_with(b"key", |_| f()).map(|_| ())),
    ("get_with, in a run", |w, f| w.ordered.get_with(&7u64.to_be_bytes(), |_| f()).map(|_| ())),
    ("get_with, a large value", |w, f| w.ordered.get_with(b"large", |_| f()).map(|_| ())),
    ("get_with of a transaction", |w, f| {
        let read = w.db.read();
        (0..20u64).try_for_each(|i| read.get_with(&w.ordered, &i.to_be_bytes(), |_| f()).map(|_| ()))
    }),
    ("get_many_with", |w, f| w.hash.get_many_with(&[&b"key"[..], b"absent", &[0; 8]], |_, _| f())),
    ("update", |w, f| {
        w.ordered.update(b"key", |old| {
            f();
            old.map(<[u8]>::to_vec)
        })
    }),
    ("update of a transaction", |w, f| {
        let mut txn = w.db.write();
        txn.update(&w.ordered, b"key", |old| {
            f();
            old.map(<[u8]>::to_vec)
        })?;
        txn.commit()
    }),
    ("put_many's iterator", |w, f| {
        w.ordered.put_many((0..3u64).inspect(|_| f()).map(|i| (i.to_be_bytes(), b"v")))
    }),
    ("a savepoint between", |w, f| {
        let mut txn = w.db.write();
        txn.put(&w.ordered, b"key", b"1")?;
        let point = txn.savepoint();
        f();
        txn.rollback_to(&point)?;
        txn.commit()
    }),
];

#[test]
fn every_call_from_every_callback_works_or_says_why_not() {
    crate::common::watch(Duration::from_secs(60));
    for (caller, call_out) in CALLERS {
        for (name, call) in CALLS {
            crate::common::doing(format!("{name} from {caller}"));
            let w = World::new();
            let (calls, inner) = (Cell::new(0), RefCell::new(None));
            let outer = call_out(&w, &|| {
                calls.set(calls.get() + 1);
                if calls.get() == 1 {
                    inner.replace(Some(call(&w)));
                }
            });
            let inner = inner.into_inner().unwrap_or_else(|| panic!("{caller} has called nobody"));
            assert!(inner.is_ok(), "{name} from {caller}: {inner:?}");
            match outer {
                Ok(()) => {}
                Err(Error::Closed) if name == "close" => continue,
                Err(Error::NoSuchTable { .. }) if name == "drop_table" => {}
                // A range delete counts for all keys of its table.
                Err(Error::Conflict { .. })
                    if caller == "update of a transaction" && name == "remove_range" => {}
                Err(e) => panic!("{caller}, from where {name} was called: {e}"),
            }
            if name != "close" {
                assert_eq!(w.db.check(|_| {}).unwrap().problems, [""; 0], "{name} from {caller}");
                w.ordered.put(b"the handle", b"works").unwrap();
                w.db.close().unwrap();
            }
        }
    }
}

/// It would be called for ever.
#[test]
fn an_update_whose_closure_changes_the_key_is_told_so() {
    crate::common::watch(Duration::from_secs(60));
    let w = World::new();
    for t in [&w.ordered, &w.hash] {
        let calls = Cell::new(0);
        let done = t.update(b"key", |_| {
            calls.set(calls.get() + 1);
            t.increment(b"another", 1).unwrap();
            t.put(b"key", b"changed within").unwrap();
            Some(b"changed".to_vec())
        });
        assert!(matches!(&done, Err(Error::Invalid { detail }) if detail.contains("closure")), "{done:?}");
        assert_eq!((calls.get(), t.get(b"key").unwrap().unwrap()), (1, b"changed within".to_vec()));
        // Other keys are free, and nested updates of others too.
        t.update(b"key", |_| {
            t.update(b"inner", |old| Some([old.unwrap_or_default(), b"+"].concat())).unwrap();
            Some(b"changed".to_vec())
        })
        .unwrap();
        assert_eq!(t.get(b"key").unwrap().unwrap(), b"changed");
    }
}

#[test]
fn an_update_whose_closure_deletes_a_range_is_told_so_if_the_key_was_in_it() {
    crate::common::watch(Duration::from_secs(60));
    let w = World::new();
    let remove = |from: &[u8], to: &[u8]| {
        let calls = Cell::new(0);
        w.ordered.put(b"key", b"before").unwrap();
        let done = w.ordered.update(b"key", |_| {
            calls.set(calls.get() + 1);
            w.ordered.remove_range(from..to).unwrap();
            Some(b"changed".to_vec())
        });
        assert_eq!(calls.get(), 1);
        done.map(|()| w.ordered.get(b"key").unwrap().unwrap())
    };
    assert_eq!(remove(b"a", b"key").unwrap(), b"changed");
    assert_eq!(remove(b"key0", b"z").unwrap(), b"changed");
    for (from, to) in [(&b"a"[..], &b"z"[..]), (b"key", b"key0")] {
        let done = remove(from, to);
        assert!(matches!(&done, Err(Error::Invalid { detail }) if detail.contains("closure")), "{done:?}");
    }
    // Another's range delete is in the way of the first try only.
    let mut first = true;
    w.ordered
        .update(b"key", |_| {
            if std::mem::take(&mut first) {
                let other = || w.ordered.remove_range("o".."p");
                std::thread::scope(|s| s.spawn(other).join().unwrap().unwrap());
            }
            Some(b"again".to_vec())
        })
        .unwrap();
    assert_eq!(w.ordered.get(b"key").unwrap().unwrap(), b"again");
}

/// While one thread stands in compact's progress, others settle, compact and close.
#[test]
fn compacts_progress_may_wait_for_another_thread() {
    crate::common::watch(Duration::from_secs(60));
    let calls: [Call; 3] =
        [|w| w.db.compact(), |w| w.db.shrink(|_| {}).map(|_| ()), |w| w.db.clone().close()];
    for call in calls {
        let w = World::new();
        let mut waited = false;
        let compacted = w.db.shrink(|_| {
            if !std::mem::replace(&mut waited, true) {
                std::thread::scope(|s| s.spawn(|| call(&w)).join().unwrap().unwrap());
            }
        });
        assert!(matches!(compacted, Ok(_) | Err(Error::Closed)), "{compacted:?}");
    }
}
