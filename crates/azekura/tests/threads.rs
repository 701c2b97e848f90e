//! The engine's threads start when there is something for them to do, and end with the database. They are
//! counted by their names, where the system lists them.
#![cfg(target_os = "linux")]

mod common;

use azekura::storage::{MemStorage, OpenMode, Storage};
use azekura::{Db, Durability, Options, Table, TableKind};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const FILE: &str = "/threads.azk";

/// One test at a time: they count the threads of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    common::watch(PATIENCE);
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The names of the engine's threads, sorted. (A thread has the name of the one that made it until it has
/// run.)
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    let mut names: Vec<String> =
        names.map(|name| name.trim().to_owned()).filter(|n| n.starts_with("azekura")).collect();
    names.sort();
    names
}

/// The nice value of a thread.
fn nice(name: &str) -> String {
    let mut tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let task = tasks
        .find(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|n| n.trim() == name))
        .unwrap();
    let stat = std::fs::read_to_string(task.join("stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(16).unwrap().to_owned()
}

fn has(name: &str) -> bool {
    threads().iter().any(|n| n == name)
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    common::doing(what.into());
    while !holds() {
        // The watchdog ends a wait in vain.
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Opened as by default, but for who merges: the file's garbage and runs stay as they are without.
fn open(disk: &MemStorage, merges: bool) -> Db {
    let options =
        Options::new().memory_bytes(16 << 20).durability(Durability::Eventual).background_merges(merges);
    Db::open_on(disk, FILE, options).unwrap()
}

fn fill(table: &Table, keys: std::ops::Range<u64>, value: u8) {
    table.put_many(keys.map(|k| (k.to_be_bytes(), [value; 100]))).unwrap();
}

/// The threads have ended. (The system may list a thread for a moment after it was joined.)
fn none_is_left() {
    wait_until("no thread is left", || threads().is_empty());
}

/// A closed database of one sorted run, in which nothing is dead.
fn settled() -> MemStorage {
    let disk = MemStorage::default();
    let db = open(&disk, true);
    fill(&db.create_table("t", TableKind::Ordered).unwrap(), 0..20_000, 1);
    db.compact().unwrap();
    db.close().unwrap();
    none_is_left();
    disk
}

/// What a disk has of the file now.
fn copy(disk: &MemStorage) -> MemStorage {
    let file = disk.open(Path::new(FILE), OpenMode::ReadOnly).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_at(&mut bytes, 0).unwrap();
    let copy = MemStorage::default();
    copy.open(Path::new(FILE), OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
    copy
}

#[test]
fn opening_and_reading_start_no_thread() {
    let _alone = alone();
    let disk = settled();
    let db = open(&disk, true);
    let t = db.open_table("t").unwrap();
    assert_eq!(t.get(&7u64.to_be_bytes()).unwrap().unwrap(), [1; 100]);
    let read = db.read();
    let mut cursor = read.cursor(&t).unwrap();
    let mut records = 0;
    while cursor.next().unwrap().is_some() {
        records += 1;
    }
    assert_eq!(records, 20_000);
    drop((cursor, read));
    assert_eq!(threads(), Vec::<String>::new());
    // Two of the idle time's looks, had there been anything.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(threads(), Vec::<String>::new());
    drop(t);
    db.close().unwrap();
    none_is_left();
}

#[test]
fn each_thread_starts_with_its_work_and_ends_with_the_database() {
    let _alone = alone();
    let disk = settled();
    let db = open(&disk, true);
    let t = db.open_table("t").unwrap();
    t.put(b"key", b"value").unwrap();
    wait_until("a commit starts the log's thread", || has("azekura-log"));
    wait_until("and that the one for idle time", || has("azekura-merge"));
    wait_until("and that the one for flushes", || has("azekura-flush"));
    assert!(!has("azekura-values"), "{:?}", threads());
    assert_eq!(nice("azekura-flush"), nice("azekura-log"), "no merging thread has started it");
    let large = vec![7; 3 << 20];
    for key in 0..4u64 {
        t.put(&key.to_be_bytes(), &large).unwrap();
    }
    wait_until("large values start their writer", || has("azekura-values"));
    assert_eq!(t.get(&3u64.to_be_bytes()).unwrap().unwrap(), large);
    drop(t);
    db.close().unwrap();
    none_is_left();
    let db = open(&disk, true);
    assert_eq!(db.open_table("t").unwrap().get(&3u64.to_be_bytes()).unwrap().unwrap(), large);
}

#[test]
fn merges_and_garbage_that_wait_when_it_is_opened_are_seen_to() {
    let _alone = alone();
    let disk = settled();
    let db = open(&disk, false);
    let t = db.open_table("t").unwrap();
    for round in 2..5 {
        fill(&t, 0..20_000, round);
        db.flush().unwrap();
    }
    assert!(db.stats().levels.len() > 1, "the test wants several runs");
    drop(t);
    db.close().unwrap();
    let db = open(&disk, true);
    let before = db.stats();
    assert!(before.levels.len() > 1 && before.commits == 0);
    wait_until("idle time merges all", || db.stats().levels.len() == 1);
    wait_until("and cuts the file", || db.stats().file_bytes < before.file_bytes / 2);
    assert_eq!(db.open_table("t").unwrap().get(&9u64.to_be_bytes()).unwrap().unwrap(), [4; 100]);
}

#[test]
fn holes_that_wait_when_it_is_opened_are_filled() {
    let _alone = alone();
    let disk = settled();
    let db = open(&disk, false);
    // What stands behind the dropped table's runs is the file's tail.
    fill(&db.create_table("second", TableKind::Ordered).unwrap(), 0..20_000, 1);
    db.compact().unwrap();
    let long = db.stats().file_bytes;
    db.drop_table("t").unwrap();
    // As a kill leaves it: closing would fill them.
    let killed = copy(&disk);
    drop(db);
    let db = open(&killed, true);
    assert_eq!(db.stats().commits, 0);
    wait_until("idle time fills the holes", || db.stats().file_bytes < long * 3 / 4);
}

#[test]
fn a_commit_is_durable_within_its_delay_without_another_call() {
    let _alone = alone();
    let disk = settled();
    let options = Options::new().durability(Durability::Eventual).eventual_delay(Duration::from_millis(50));
    let db = Db::open_on(&disk, FILE, options).unwrap();
    let t = db.open_table("t").unwrap();
    std::thread::sleep(Duration::from_millis(10));
    let before = db.stats().syncs;
    t.put(b"key", b"value").unwrap();
    wait_until("the log's thread syncs", || db.stats().syncs > before);
}

#[test]
fn without_threads_there_are_none() {
    let _alone = alone();
    let disk = settled();
    let db = Db::open_on(&disk, FILE, Options::new().threads(false)).unwrap();
    let t = db.open_table("t").unwrap();
    t.put(b"large", &vec![7; 3 << 20]).unwrap();
    fill(&t, 0..20_000, 9);
    db.flush().unwrap();
    assert_eq!(threads(), Vec::<String>::new());
    assert_eq!(t.get(b"large").unwrap().unwrap().len(), 3 << 20);
}
