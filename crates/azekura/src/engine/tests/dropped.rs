//! Tables that are dropped while somebody else is at work on them.

use super::hooked::{Call, Hooked};
use crate::api::{Db, Options};
use crate::base::error::Result;
use crate::base::key::TableKind;
use crate::format::operand::Merge;
use crate::storage::{MemStorage, OpenMode, Storage};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Two tables of two levels each, which a merge makes one.
fn two_tables(disk: &Hooked) -> Db {
    let db = Db::open_on(disk, "dropped.azk", Options::new().background_merges(false)).unwrap();
    for name in ["first", "second"] {
        let table = db.create_table(name, TableKind::Ordered).unwrap();
        for round in 0..2u64 {
            table.put_many((0..2000u64).map(|i| (i.to_be_bytes(), (i + round).to_be_bytes()))).unwrap();
            db.flush().unwrap();
        }
    }
    db
}

#[test]
fn a_table_that_is_dropped_while_its_merge_begins_stops_nobody() {
    type Operation = fn(&Db) -> Result<()>;
    let operations: [(&str, Operation); 2] =
        [("compact", |db| db.compact()), ("shrink", |db| db.shrink(|_| {}).map(|_| ()))];
    for dropped in ["first", "second"] {
        for (name, operation) in operations {
            let disk = Hooked::default();
            let db = two_tables(&disk);
            // The first read of this thread is the merge's, of its first input.
            let (worker, other) = (std::thread::current().id(), Arc::new(Mutex::new(Some(db.clone()))));
            disk.hook(move |call| {
                if call == Call::Read && std::thread::current().id() == worker {
                    let once = other.lock().take();
                    once.into_iter().for_each(|db| db.drop_table(dropped).unwrap());
                }
                Ok(())
            });
            operation(&db).unwrap_or_else(|e| panic!("{name} while {dropped} is dropped: {e}"));
            disk.heal();
            let left = db.tables();
            assert_eq!(left.len(), 1);
            assert_ne!(left[0].name, dropped);
            assert_eq!(db.engine.state.load().tables[0].levels.len(), 1, "{name} has merged the other table");
            assert_eq!(db.open_table(&left[0].name).unwrap().count().unwrap(), 2000);
            assert!(db.check(|_| {}).unwrap().problems.is_empty());
        }
    }
}

/// However the threads meet, no call is told of a table that it did not name.
#[test]
fn tables_come_and_go_while_others_settle_compact_flush_and_check() {
    const CYCLES: u64 = 120;
    let options = Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10);
    let db = Db::open_on(&MemStorage::default(), "come-and-go.azk", options.clone()).unwrap();
    let working = AtomicU32::new(2);
    let kept = db.create_table("kept", TableKind::Hash).unwrap();
    std::thread::scope(|s| {
        for n in 0..2u64 {
            let (db, kept, working) = (&db, &kept, &working);
            s.spawn(move || {
                for cycle in 0..CYCLES {
                    let name = format!("table {n}.{}", cycle % 3);
                    let t = db
                        .create_table(&name, [TableKind::Ordered, TableKind::Hash][(cycle % 2) as usize])
                        .unwrap();
                    for round in 0..1 + cycle % 3 {
                        let value = vec![7; if cycle % 4 == 0 { 1500 } else { 20 }];
                        t.put_many((0..40u64).map(|i| ((i * (round + 1)).to_be_bytes(), &value))).unwrap();
                    }
                    kept.put(&[n, cycle].map(u64::to_be_bytes).concat(), b"kept").unwrap();
                    db.drop_table(&name).unwrap();
                }
                working.fetch_sub(1, Ordering::Relaxed);
            });
        }
        for n in 0..2 {
            let (db, working) = (&db, &working);
            s.spawn(move || {
                for turn in n.. {
                    match turn % 4 {
                        0 => db.compact().unwrap(),
                        1 => db.flush().unwrap(),
                        2 => db.shrink(|_| {}).map(|_| ()).unwrap(),
                        _ => assert_eq!(db.check(|_| {}).unwrap().problems, [""; 0]),
                    }
                    if working.load(Ordering::Relaxed) == 0 {
                        break;
                    }
                }
            });
        }
    });
    assert_eq!(kept.count().unwrap(), 2 * CYCLES);
    assert_eq!(db.tables().len(), 1);
}

/// What operands a table has is kept as long as the table is, also by a later opening, and no longer.
#[test]
fn what_is_known_of_operands_goes_with_the_table() {
    let storage = MemStorage::default();
    let open = || Db::open_on(&storage, "operators.azk", Options::new().memory_bytes(8 << 20)).unwrap();
    let db = open();
    for name in ["by itself", "in a transaction", "in the log", "stays"] {
        let table = db.create_table(name, TableKind::Ordered).unwrap();
        table.merge_many((0..1000u64).map(|i| (i.to_be_bytes(), Merge::AddU64(1)))).unwrap();
        table.put("none", "a second record").unwrap();
        db.flush().unwrap();
        table.merge("in the log", Merge::AddU64(1)).unwrap();
    }
    assert_eq!(db.engine.catalog.operators.len(), 4);
    db.drop_table("by itself").unwrap();
    db.transact(|txn| txn.drop_table("in a transaction")).unwrap();
    assert_eq!(db.engine.catalog.operators.len(), 2);
    db.transact(|txn| txn.drop_table("in the log")).unwrap();
    db.sync().unwrap();
    // As after a crash: the log has operands of tables that are gone.
    let copy = MemStorage::default();
    let bytes = storage.open("operators.azk".as_ref(), OpenMode::ReadOnly).unwrap();
    let mut all = vec![0; usize::try_from(bytes.len().unwrap()).unwrap()];
    bytes.read_at(&mut all, 0).unwrap();
    copy.open("operators.azk".as_ref(), OpenMode::CreateNew).unwrap().write_at(&all, 0).unwrap();
    let other = Db::open_on(&copy, "operators.azk", Options::new().memory_bytes(8 << 20)).unwrap();
    assert_eq!(other.engine.catalog.operators.len(), 1);
    let stays = other.open_table("stays").unwrap();
    assert_eq!(stays.get("in the log").unwrap().unwrap(), 1u64.to_le_bytes());
    let before = other.engine.catalog.operators.len();
    stays.merge("another", Merge::MaxU64(9)).unwrap();
    assert_eq!(other.engine.catalog.operators.len(), before);
    assert_eq!(stays.get("another").unwrap().unwrap(), 9u64.to_le_bytes());
}
