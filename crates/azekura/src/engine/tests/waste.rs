//! What is written anew when a file is closed or left alone, and what is not.

use super::hooked::Hooked;
use crate::api::{Db, Durability, Options, Table};
use crate::base::error::Error;
use crate::base::key::TableKind;
use crate::base::sync::atomic::Ordering;
use crate::engine::compaction::pick::MergeJob;
use crate::space::Extent;
use crate::storage::{MemStorage, OpenMode, Storage};
use std::path::Path;

fn options() -> Options {
    let options =
        Options::new().memory_bytes(16 << 20).memtable_bytes(1 << 20).durability(Durability::Eventual);
    options.background_merges(false)
}

fn open(storage: &MemStorage) -> (Db, Table) {
    let db = Db::open_on(storage, "waste.azk", options()).unwrap();
    let table = db.table("t", TableKind::Ordered).unwrap();
    (db, table)
}

/// Records of 100 bytes whose keys are spread all over, in a level of their own.
fn put(db: &Db, table: &Table, numbers: std::ops::Range<u64>) {
    let key = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    table.put_many(numbers.map(|i| (key(i), [i as u8; 100]))).unwrap();
    db.flush().unwrap();
}

#[test]
fn loads_of_new_keys_are_not_merged_for_closing() {
    let storage = MemStorage::default();
    let (db, table) = open(&storage);
    for n in 0..6 {
        put(&db, &table, n * 5000..n * 5000 + 5000);
    }
    let levels = db.stats().levels.len();
    assert!(levels >= 6, "{:?}", db.stats());
    assert!(db.engine.merges().survey().excess().is_empty());
    // A twentieth of the keys once more is little.
    put(&db, &table, 0..1500);
    assert!(db.engine.merges().survey().excess().is_empty());
    put(&db, &table, 3000..9000);
    assert!(!db.engine.merges().survey().excess().is_empty(), "a fifth of the records is dead");
}

/// A load of new keys comes to the limit before anybody has looked at them.
#[test]
fn who_loads_new_keys_waits_for_no_flush() {
    let (db, table) = open(&MemStorage::default());
    let engine = &db.engine;
    let flushes_of_a_sweep = || {
        engine.bound.note_look(1, 1);
        assert!(engine.bound.is_reached(engine.space.used_bytes()));
        engine.bound.room.store(true, Ordering::Relaxed);
        let before = db.stats().flushes;
        engine.sweeper().sweep_as_due();
        assert!(!engine.bound.is_due() && !engine.bound.is_reached(engine.space.used_bytes()));
        db.stats().flushes - before
    };
    for n in 0..8 {
        put(&db, &table, n * 5000..n * 5000 + 5000);
    }
    table.put("in memory", "").unwrap();
    assert_eq!(flushes_of_a_sweep(), 0);
    for _ in 0..8 {
        put(&db, &table, 0..5000);
    }
    table.put("in memory", "again").unwrap();
    assert_eq!(flushes_of_a_sweep(), 1, "much is dead");
    drop(table);
    db.close().unwrap();
}

/// Programs that put some records and end: `records` says how many each does, of `value` bytes. Threads would
/// help, but most such programs end before one has merged.
fn short_sessions(records: impl Fn(u64) -> u64, value: usize) {
    let storage = MemStorage::default();
    let session = |work: &dyn Fn(&Db, &Table)| {
        let options = Options::new().memory_bytes(64 << 20).threads(false);
        let db = Db::open_on(&storage, "short.azk", options).unwrap();
        let table = db.table("t", TableKind::Ordered).unwrap();
        work(&db, &table);
        db.close().unwrap();
    };
    let spread = |n: u64| [n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), [b'n'; 8]].concat();
    session(&|db, table| put(db, table, 0..100_000));
    let (mut count, most) = (100_000, std::cell::Cell::new(0));
    for n in 0..150u64 {
        session(&|db, table| {
            most.set(most.get().max(db.stats().levels.len()));
            table.put("again", n.to_be_bytes()).unwrap();
            let new = count..count + records(n);
            table.put_many(new.map(|i| (spread(i), vec![i as u8; value]))).unwrap();
        });
        count += records(n);
    }
    session(&|db, table| {
        let stats = db.stats();
        assert!(most.get() <= 12, "{} levels", most.get());
        let alive = 100_000 * 108 + (count - 100_000) * (16 + value as u64);
        assert!(stats.file_bytes <= alive * 13 / 10 + (64 << 10), "{alive} alive, {stats:?}");
        assert_eq!(table.get("again").unwrap().as_deref(), Some(&149u64.to_be_bytes()[..]));
        assert_eq!(table.count().unwrap(), count + 1);
        db.check(|_| {}).unwrap();
    });
}

#[test]
fn short_sessions_of_one_record_leave_few_levels_and_a_small_file() {
    short_sessions(|_| 1, 8);
}

#[test]
fn short_sessions_of_all_sizes_leave_few_levels_and_a_small_file() {
    short_sessions(|n| [1, 40, 700, 3000][n as usize % 4], 50);
}

#[test]
fn short_sessions_of_large_values_leave_few_levels_and_a_small_file() {
    short_sessions(|_| 1, 150_000);
}

/// What many small runs have beside their records is dead, whatever the records hide.
#[test]
fn many_small_runs_are_merged_for_what_they_have_beside_their_records() {
    let storage = MemStorage::default();
    let (db, table) = open(&storage);
    put(&db, &table, 0..20_000);
    for n in 0..100u64 {
        let new = [n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), [b'n'; 8]].concat();
        table.put_many([(&b"again"[..], b"1"), (&new, b"1")]).unwrap();
        db.flush().unwrap();
    }
    assert!(!db.engine.merges().survey().excess().is_empty(), "{:?}", db.stats());
}

/// Few keys may hide much.
#[test]
fn a_few_keys_are_all_looked_up() {
    let storage = MemStorage::default();
    let (db, table) = open(&storage);
    for i in 0..3u64 {
        table.put(&i.to_be_bytes(), &vec![7; 1 << 20]).unwrap();
    }
    put(&db, &table, 100..20_000);
    put(&db, &table, 20_000..20_500);
    assert!(db.engine.merges().survey().excess().is_empty(), "new keys hide nothing");
    table.remove(&1u64.to_be_bytes()).unwrap();
    db.flush().unwrap();
    assert!(!db.engine.merges().survey().excess().is_empty(), "a large value was removed");
    drop(table);
    let db = {
        drop(db);
        open(&storage).0
    };
    db.compact().unwrap();
    assert!(db.engine.merges().survey().excess().is_empty());
    assert!(db.stats().value_bytes < 5 << 19, "{:?}", db.stats());
}

/// A range that was removed hides what stands in it, without a key that says so.
#[test]
fn removed_ranges_hide_what_stands_in_them() {
    let storage = MemStorage::default();
    let (db, table) = open(&storage);
    put(&db, &table, 0..20_000);
    let mut txn = db.write();
    let end = (1u64 << 62).to_be_bytes();
    txn.remove_range(&table, ..end).unwrap();
    txn.commit().unwrap();
    db.flush().unwrap();
    assert!(!db.engine.merges().survey().excess().is_empty(), "a quarter of the records is dead");
}

/// Values that a merge was moving when the disk was full keep nobody waiting: nobody refers to them.
#[test]
fn values_that_found_no_room_where_they_were_moved_to_are_forgotten() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "waste.azk", options().threads(false)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    let put = |keys: std::ops::Range<u64>, round: u8| {
        table.put_many(keys.map(|k| (k.to_be_bytes(), vec![round; 30_000]))).unwrap();
        db.flush().unwrap();
    };
    put(0..60, 0);
    put(0..20, 1);
    disk.fill_at(4);
    db.compact().unwrap();
    disk.fill_at(1);
    db.engine.values.sync().unwrap();
    disk.heal();
    assert!((0..60u64).all(|k| table.get(&k.to_be_bytes()).unwrap().unwrap() == [u8::from(k < 20); 30_000]));
    db.compact().unwrap();
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
    assert!(db.engine.merges().survey().excess().is_empty());
}

/// What cannot be read of one table keeps no other from being written anew, and is told.
#[test]
fn a_damaged_table_is_left_as_it_is_and_the_others_are_not() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, "waste.azk", options()).unwrap();
    let tables: Vec<Table> =
        ["a", "b", "c"].iter().map(|name| db.create_table(name, TableKind::Ordered).unwrap()).collect();
    for table in &tables {
        put(&db, table, 0..3000);
        put(&db, table, 0..3000);
    }
    let due = || {
        let (excess, state) = (db.engine.merges().survey().excess(), db.engine.state.load_full());
        tables.iter().map(|t| excess.job(state.table(t.id).unwrap()).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(due(), [true; 3]);
    let run = db.engine.state.load().table(tables[1].id).unwrap().levels[0].runs[0].clone();
    let file = storage.open(Path::new("waste.azk"), OpenMode::ReadWrite).unwrap();
    file.write_at(&[0xa5; 4096], run.info.extents[0].offset).unwrap();
    assert!(!db.check(|_| {}).unwrap().problems.is_empty());
    let paused = db.engine.background.pause_merges();
    let dropped = db.engine.reclaimer().drop_dead(false);
    drop(paused);
    assert!(matches!(dropped, Err(Error::Corrupt { .. })), "{dropped:?}");
    assert_eq!(due(), [false, true, false]);
    assert_eq!(tables[2].count().unwrap(), 3000);
}

/// `compact` too, and it writes no checkpoint for each table.
#[test]
fn settling_goes_on_after_a_damaged_table() {
    let storage = MemStorage::default();
    let db = Db::open_on(&storage, "waste.azk", options()).unwrap();
    let name = |n| format!("t{n:02}");
    let tables: Vec<Table> =
        (0..20).map(|n| db.create_table(&name(n), TableKind::Ordered).unwrap()).collect();
    for table in &tables {
        put(&db, table, 0..2000);
        put(&db, table, 0..2000);
    }
    let levels = |table: &Table| db.engine.state.load().table(table.id).unwrap().levels.clone();
    assert!(tables.iter().all(|t| levels(t).len() == 2));
    let run = levels(&tables[3])[0].runs[0].clone();
    let file = storage.open(Path::new("waste.azk"), OpenMode::ReadWrite).unwrap();
    file.write_at(&[0xa5; 4096], run.info.extents[0].offset).unwrap();
    let before = db.engine.checkpointer.lock().number;
    let settled = db.compact();
    assert!(matches!(settled, Err(Error::Corrupt { .. })), "{settled:?}");
    let left: Vec<usize> = (0..20).filter(|&n| levels(&tables[n]).len() != 1).collect();
    assert_eq!(left, [3]);
    let written = db.engine.checkpointer.lock().number - before;
    assert!(written < 10, "{written} checkpoints");
}

/// What merges of a load free is written to soon. What is merged or moved at rest goes from the system's
/// memory where it stood, and nobody reads it: this disk zeroes it.
#[test]
fn what_is_merged_or_moved_at_rest_goes_from_memory() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "waste.azk", options()).unwrap();
    let table = |name| db.table(name, TableKind::Ordered).unwrap();
    let (first, table) = (table("first"), table("t"));
    put(&db, &first, 0..20_000);
    let engine = db.engine.clone();
    let places = |id: u32| -> Vec<Extent> {
        let levels = engine.state.load().table(id).unwrap().levels.clone();
        levels.iter().flat_map(|l| l.runs.iter()).flat_map(|run| run.info.extents.clone()).collect()
    };
    let all_of = |extents: &[Extent], forgotten: &[std::ops::Range<u64>]| {
        let mut sorted = forgotten.to_vec();
        sorted.sort_unstable_by_key(|f| f.start);
        extents.iter().all(|e| {
            let reached = sorted.iter().fold(e.offset, |at, f| if f.contains(&at) { f.end } else { at });
            reached >= e.offset + e.len
        })
    };
    let merge = |at_rest: bool| {
        (0..3).for_each(|_| put(&db, &table, 0..20_000));
        let levels = engine.state.load().table(table.id).unwrap().levels.to_vec();
        let (inputs, many) = (places(table.id), levels.last().is_some_and(|l| l.runs.len() > 1));
        let _before = disk.forgotten();
        let job = MergeJob { at_rest, ..MergeJob::new(table.id, levels, true) };
        assert_eq!(job.is_stepwise(), many);
        assert!(engine.merges().run(job).unwrap());
        (inputs, disk.forgotten())
    };
    assert_eq!(merge(false).1, []);
    // A thread that looks at an older state just then holds some of them.
    super::wait_until(|| {
        let (inputs, forgotten) = merge(true);
        all_of(&inputs, &forgotten)
    });
    // What a reader holds goes when it has gone.
    let held = db.read();
    let (inputs, forgotten) = merge(true);
    assert!(!all_of(&inputs, &forgotten));
    drop(held);
    // The log's thread may free more after that, until the log rests.
    super::wait_until(|| {
        assert!(engine.reclaimer().tidy(0, || true).unwrap());
        let forgotten = disk.forgotten();
        let is_forgotten = |hole| if all_of(&[hole], &forgotten) { Ok(()) } else { Err(()) };
        engine.space.with_holes(is_forgotten).is_ok()
    });
    let before = places(table.id);
    db.drop_table("first").unwrap();
    super::wait_until(|| super::leaked(&engine) == 0);
    let _before = disk.forgotten();
    engine.reclaimer().relocator(u64::MAX).move_while(|| true).unwrap();
    let after = places(table.id);
    let moved: Vec<Extent> = before.into_iter().filter(|e| !after.contains(e)).collect();
    let forgotten = disk.forgotten();
    assert!(!moved.is_empty() && !forgotten.is_empty(), "{moved:?}, {forgotten:?}");
    assert_eq!(table.count().unwrap(), 20_000);
    drop((first, table, engine));
    db.close().unwrap();
    let db = Db::open_on(&disk, "waste.azk", options()).unwrap();
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
    assert_eq!(db.open_table("t").unwrap().count().unwrap(), 20_000);
}
