//! Runs and large values read where they stand in the file, beside the same read into memory: the same
//! answers, no second copy, and errors where something is wrong before it is first touched.

use crate::common::Rng;
use azekura::{Db, Durability, Error, Options, Table, TableKind, WriteOptions};
use sim::disk::{Call, Disk, Effect, Fault};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const RECORDS: u64 = 60_000;

fn path(name: &str) -> PathBuf {
    crate::common::watch(Duration::from_secs(120));
    std::env::temp_dir().join(format!("azekura-mapped-{}-{name}.azk", std::process::id()))
}

fn options(mapped: bool) -> Options {
    Options::new().memory_bytes(8 << 20).durability(Durability::Eventual).mapped(mapped)
}

/// Small values, values of a page and more, and large ones that stand in segments.
fn value(i: u64) -> Vec<u8> {
    let len = match i % 100 {
        0 => 5000 + i as usize % 3000,
        1..10 => 700,
        _ => 20 + i as usize % 60,
    };
    let mut rng = Rng::new(i);
    (0..len).map(|_| rng.number() as u8).collect()
}

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// A closed database of more than its budget.
fn filled(path: &Path, kind: TableKind) {
    let db = options(true).open(path).unwrap();
    let t = db.create_table("t", kind).unwrap();
    for part in 0..RECORDS / 1000 {
        t.put_many((part * 1000..(part + 1) * 1000).map(|i| (key(i), value(i)))).unwrap();
    }
    // A record of several pages.
    t.put(b"long", &[7; 900]).unwrap();
    drop(t);
    db.close().unwrap();
}

fn reads_everything(t: &Table) {
    for i in (0..RECORDS).step_by(7) {
        assert_eq!(t.get(&key(i)).unwrap().as_ref(), Some(&value(i)), "key {i}");
        assert_eq!(t.get_ref(&key(i)).unwrap().as_deref(), Some(&value(i)[..]), "key {i}");
        assert!(!t.contains(&(RECORDS + i).to_le_bytes()).unwrap());
    }
}

#[test]
fn what_was_read_once_is_not_read_again() {
    for kind in [TableKind::Ordered, TableKind::Hash] {
        let path = path(&format!("once-{kind:?}"));
        filled(&path, kind);
        for mapped in [true, false] {
            let db = options(mapped).open(&path).unwrap();
            let t = db.open_table("t").unwrap();
            reads_everything(&t);
            let before = db.stats();
            reads_everything(&t);
            let read = db.stats().read_bytes - before.read_bytes;
            assert_eq!(read == 0, mapped, "{read} bytes were read again of {}", before.file_bytes);
            let all: BTreeMap<_, _> = t.cursor().unwrap().owned().map(Result::unwrap).collect();
            assert_eq!(all.len() as u64, RECORDS + 1);
            assert!((0..RECORDS).all(|i| all.get(&key(i)[..]) == Some(&value(i))));
            assert!(db.check(|_| {}).unwrap().problems.is_empty());
            drop(t);
            db.close().unwrap();
        }
        std::fs::remove_file(&path).unwrap();
    }
}

/// Readers hold their values while all that they stand in is replaced, moved and given to others.
#[test]
fn values_in_hand_stay_as_they_are() {
    let path = path("held");
    filled(&path, TableKind::Ordered);
    let db = options(true).open(&path).unwrap();
    let t = db.open_table("t").unwrap();
    let read = db.read();
    let keys: Vec<u64> = (0..RECORDS).step_by(500).collect();
    let held: Vec<_> = keys.iter().map(|&i| t.get_ref(&key(i)).unwrap().unwrap()).collect();
    for round in 0..3u8 {
        t.put_many((0..RECORDS).map(|i| (key(i), vec![round; value(i).len()]))).unwrap();
        db.shrink(|_| {}).unwrap();
        for (&i, held) in keys.iter().zip(&held) {
            assert_eq!(**held, value(i)[..], "key {i}, round {round}");
            assert_eq!(read.get(&t, &key(i)).unwrap(), Some(value(i)), "key {i}, round {round}");
        }
    }
    drop((held, read));
    assert_eq!(t.get(&key(3)).unwrap(), Some(vec![2; value(3).len()]));
    drop(t);
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

/// What of a file is damaged or gone when it is first touched is an error, and no signal.
#[test]
fn damage_before_the_first_touch_is_an_error() {
    for cut in [false, true] {
        let path = path(&format!("damage-{cut}"));
        filled(&path, TableKind::Ordered);
        let db = options(true).read_only(true).open(&path).unwrap();
        let t = db.open_table("t").unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let len = file.metadata().unwrap().len();
        if cut {
            file.set_len(len / 2).unwrap();
        } else {
            (len / 2..len).step_by(4096).for_each(|at| file.write_all_at(&[0xa5; 64], at + 100).unwrap());
        }
        let (mut right, mut errors) = (0, 0);
        for i in 0..RECORDS {
            match t.get(&key(i)) {
                Ok(found) => {
                    assert_eq!(found, Some(value(i)), "key {i}");
                    right += 1;
                }
                Err(Error::Corrupt { .. } | Error::Io { .. } | Error::Truncated { .. }) => errors += 1,
                Err(e) => panic!("key {i}: {e}"),
            }
        }
        // How many are left depends on where the fences stand.
        assert!(errors > RECORDS / 10 && right + errors == RECORDS, "{right} right, {errors} errors");
        assert!(!db.check(|_| {}).unwrap().problems.is_empty());
        drop(t);
        let _refused: Result<(), Error> = Db::close(db);
        std::fs::remove_file(&path).unwrap();
    }
}

/// Blocks of 2 MiB are moved into holes whose old bytes the system has in memory, and readers have mapped.
#[test]
fn readers_of_the_mapping_read_on_while_the_file_moves_under_them() {
    for kind in [TableKind::Ordered, TableKind::Hash] {
        let path = path(&format!("moves-{kind:?}"));
        // Partitions of several blocks.
        let options = options(true).memory_bytes(256 << 20);
        let db = options.clone().open(&path).unwrap();
        let gone = db.create_table("gone", kind).unwrap();
        gone.put_many((0..20_000).map(|i| (key(i), [i as u8; 1000]))).unwrap();
        db.close().unwrap();
        let db = options.clone().open(&path).unwrap();
        let (gone, t) = (db.open_table("gone").unwrap(), db.create_table("t", kind).unwrap());
        t.put_many((0..RECORDS).map(|i| (key(i), value(i)))).unwrap();
        db.flush().unwrap();
        assert!((0..20_000).all(|i| gone.get(&key(i)).unwrap().is_some()));
        let before = db.stats().file_bytes;
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = || {
                // Once more after the last move.
                while !done.load(Ordering::Acquire) {
                    reads_everything(&t);
                }
                reads_everything(&t);
            };
            let readers = [scope.spawn(reader), scope.spawn(reader)];
            db.drop_table("gone").unwrap();
            // A reader that gets no processor in the middle of a get keeps what was dropped. If the file
            // never gets smaller, the watch ends this.
            crate::common::doing(format!("shrinking {kind:?}, {before} bytes before"));
            while db.stats().file_bytes + (16 << 20) > before {
                db.shrink(|_| {}).unwrap();
            }
            done.store(true, Ordering::Release);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
        assert!(db.check(|_| {}).unwrap().problems.is_empty());
        drop((gone, t));
        db.close().unwrap();
        reads_everything(&options.open(&path).unwrap().open_table("t").unwrap());
        std::fs::remove_file(&path).unwrap();
    }
}

/// Pages that were checked are not checked again by readers when they have moved, or others of their run.
#[test]
fn what_is_known_of_pages_moves_with_them() {
    for kind in [TableKind::Ordered, TableKind::Hash] {
        let path = path(&format!("known-{kind:?}"));
        let options = options(true).memory_bytes(256 << 20).background_merges(false);
        let db = options.open(&path).unwrap();
        let gone = db.create_table("gone", kind).unwrap();
        let t = db.create_table("t", kind).unwrap();
        // Holes of less than the run.
        gone.put_many((0..4_000).map(|i| (key(i), [i as u8; 1000]))).unwrap();
        db.flush().unwrap();
        t.put_many((0..RECORDS).map(|i| (key(i), value(i)))).unwrap();
        db.flush().unwrap();
        reads_everything(&t);
        let before = db.stats();
        db.drop_table("gone").unwrap();
        drop(gone);
        db.shrink(|_| {}).unwrap();
        let moved = db.stats();
        assert!(before.file_bytes > moved.file_bytes + (3 << 20), "{before:?}, {moved:?}");
        reads_everything(&t);
        assert_eq!(db.stats().cache_misses, moved.cache_misses, "checked by readers");
        let checked = moved.cache_misses - before.cache_misses;
        assert!(checked > 0 && checked < before.cache_misses, "{checked} of {} pages", before.cache_misses);
        assert!(db.check(|_| {}).unwrap().problems.is_empty());
        drop(t);
        db.close().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

/// Opening that finds no room for a copy of the log tries another way, and has the file's lock after that.
#[test]
fn opening_on_a_full_disk_keeps_the_lock() {
    let disk = Disk::seeded(1);
    disk.set_mapping();
    let open = |disk: &Disk| Db::open_on(disk, "d.azk", options(true).threads(false));
    let db = open(&disk).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let mut txn =
        db.write_with(WriteOptions { durability: Some(Durability::Sync), ..WriteOptions::default() });
    (0..20u64).for_each(|i| txn.put(&t, &key(i), &value(i)).unwrap());
    txn.commit().unwrap();
    let disk = disk.after_kill();
    disk.set_mapping();
    disk.set_fault(Some(Fault { call: Call::Write, nth: 1, forever: false, effect: Effect::Error(28) }));
    let again = open(&disk).unwrap();
    assert_eq!(disk.faults_hit(), 1, "the log was to be copied");
    disk.set_fault(None);
    assert_eq!(again.open_table("t").unwrap().get(&key(3)).unwrap(), Some(value(3)));
    assert!(matches!(open(&disk), Err(Error::Locked { .. })), "nobody else may have the file");
    again.close().unwrap();
    open(&disk).unwrap().close().unwrap();
}
