//! Durable commits that wait for mirrors.

use super::hooked::{Call, Hooked};
use super::{COPY, DB, contents, followed, level, mirror, options};
use crate::engine::{Db, Table};
use crate::mirror::pipe::{MirrorPipe, stream_mirror_on};
use crate::storage::MemStorage;
use crate::{CopyOptions, Durability, Error, Freshness, Mirror, Options, TableKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(600);
/// For so long nobody goes on who waits.
const WHILE: Duration = Duration::from_millis(150);

fn open(disk: &MemStorage, options: Options) -> (Db, Table) {
    let db = Db::open_on(disk, DB, options).unwrap();
    let table = db.open_table("t").unwrap_or_else(|_| db.create_table("t", TableKind::Ordered).unwrap());
    (db, table)
}

fn waiting() -> Options {
    options().mirror_timeout(LONG)
}

/// A mirror for which commits wait.
fn synchronous(disk: &MemStorage) -> Mirror {
    let mut mirror = mirror(disk);
    mirror.synchronous(true);
    level(&mut mirror);
    assert!(mirror.status().synchronous);
    mirror
}

/// Puts a record by a thread of its own.
fn put(table: &Table, key: &'static str) -> JoinHandle<crate::Result<()>> {
    let table = table.clone();
    std::thread::spawn(move || table.put(key, "value"))
}

fn waits<T>(thread: &JoinHandle<T>) {
    std::thread::sleep(WHILE);
    assert!(!thread.is_finished(), "it does not wait");
}

/// A mirror that goes on by itself until it is ended.
struct Running {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn of(mut mirror: Mirror) -> Running {
        let ends = Arc::new(AtomicBool::new(false));
        let asked = ends.clone();
        let thread = std::thread::spawn(move || mirror.run(|_| !asked.load(Ordering::Relaxed)).unwrap());
        Running { ends, thread: Some(thread) }
    }

    fn end(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(|thread| thread.join().unwrap());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// Four threads write. After each of their commits a follower of the mirror sees it.
fn write_and_look(db: &Db, copy: &MemStorage) {
    let table = db.open_table("t").unwrap();
    // It brings what was committed before commits waited.
    table.put("first", "value").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let table = &table;
            scope.spawn(move || {
                let db = Db::open_on(copy, COPY, Options::new().freshness(Freshness::Log)).unwrap();
                let there = db.open_table("t").unwrap();
                for n in 0..60u32 {
                    let key = [&[thread][..], &n.to_be_bytes()].concat();
                    let value = vec![thread; if n % 9 == 0 { 5000 } else { 10 }];
                    table.put(&key, &value).unwrap();
                    assert!(there.get(&key).unwrap().as_deref() == Some(&value[..]), "{thread} {n}");
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..5 {
                db.flush().unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
            db.compact().unwrap();
        });
    });
    let stats = db.stats();
    assert!(stats.unmirrored_commits == 0 && stats.mirrored_commit.is_some(), "{stats:?}");
}

#[test]
fn what_was_committed_is_in_the_mirror() {
    for threads in [false, true] {
        let disk = MemStorage::default();
        let (db, _) = open(&disk, waiting().threads(threads));
        let mut running = Running::of(synchronous(&disk));
        write_and_look(&db, &disk);
        db.create_tables(&[("a", TableKind::Hash), ("b", TableKind::Ordered)]).unwrap();
        assert_eq!(followed(&disk), contents(&db));
        db.transact(|txn| txn.drop_table("a")).unwrap();
        assert_eq!(followed(&disk), contents(&db));
        running.end();
        assert_eq!(db.stats().mirrored_commit, None);
    }
}

#[test]
fn what_was_committed_is_in_the_mirror_behind_a_pipe() {
    let (disk, dest) = (MemStorage::default(), MemStorage::default());
    let (db, _) = open(&disk, waiting());
    let ((mut questions, ask), (answers, mut answer)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let source = disk.clone();
    let served = std::thread::spawn(move || {
        stream_mirror_on(&source, Path::new(DB), &mut questions, &mut answer, &mut |_| {})
    });
    let pipe = MirrorPipe::new(answers, ask).unwrap();
    let mut mirror = pipe.mirror_on(Arc::new(dest.clone()), COPY, CopyOptions::default()).unwrap();
    drop(pipe);
    mirror.synchronous(true);
    mirror.run(|status| !status.synchronous).unwrap();
    let mut running = Running::of(mirror);
    write_and_look(&db, &dest);
    running.end();
    served.join().unwrap().unwrap();
    assert_eq!(db.stats().mirrored_commit, None, "it went with the pipe");
}

#[test]
fn one_acknowledgement_lets_all_go() {
    let disk = MemStorage::default();
    let (db, table) = open(&disk, waiting());
    let mut mirror = synchronous(&disk);
    let keys = ["a", "b", "c", "d", "e", "f"];
    let threads: Vec<_> = keys.iter().map(|key| put(&table, key)).collect();
    threads.iter().for_each(waits);
    assert!(keys.iter().all(|key| table.get(key).unwrap().is_some()), "readers see them already");
    let syncing = db.clone();
    let syncing = std::thread::spawn(move || syncing.sync());
    waits(&syncing);
    let behind = db.stats().mirrored_commit.unwrap();
    level(&mut mirror);
    assert!(db.stats().mirrored_commit.unwrap() > behind);
    threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    syncing.join().unwrap().unwrap();
    assert_eq!(followed(&disk), contents(&db));
}

#[test]
fn eventual_commits_do_not_wait() {
    let disk = MemStorage::default();
    let eventual = waiting().threads(true).durability(Durability::Eventual).eventual_delay(LONG);
    let (db, table) = open(&disk, eventual);
    let _mirror = synchronous(&disk);
    for n in 0..100u32 {
        table.put(n.to_be_bytes(), "value").unwrap();
    }
    db.flush().unwrap();
    assert_eq!(db.stats().unmirrored_commits, 0);
}

#[test]
fn who_has_waited_too_long_goes_on() {
    let disk = MemStorage::default();
    let (db, table) = open(&disk, options().mirror_timeout(WHILE));
    let mut mirror = synchronous(&disk);
    let began = Instant::now();
    table.put("one", "value").unwrap();
    assert!(began.elapsed() >= WHILE);
    assert_eq!(db.stats().unmirrored_commits, 1);
    let began = Instant::now();
    table.put("two", "value").unwrap();
    assert!(began.elapsed() < WHILE, "the mirror was left behind");
    assert_eq!(db.stats().unmirrored_commits, 2);
    // It has all that went without it, however long ago that was.
    level(&mut mirror);
    std::thread::sleep(Duration::from_millis(1100));
    let _running = Running::of(mirror);
    table.put("three", "value").unwrap();
    assert_eq!(db.stats().unmirrored_commits, 2, "it has caught up");
    assert_eq!(followed(&disk), contents(&db));
}

#[test]
fn a_mirror_may_be_required() {
    let disk = MemStorage::default();
    drop(open(&disk, options()));
    let required = || options().mirror_timeout(WHILE).require_mirror(true);
    let (db, table) = open(&disk, required());
    let behind = |done: crate::Result<()>| match done {
        Err(e @ Error::MirrorBehind { commit, waited }) => {
            assert!(commit > 0 && waited >= WHILE, "{e}");
            assert_eq!(std::io::Error::from(e).kind(), std::io::ErrorKind::TimedOut);
        }
        other => panic!("{other:?}"),
    };
    // No mirror is known to have what an earlier handle has committed.
    behind(db.sync());
    behind(table.put("one", "value"));
    behind(db.sync());
    behind(db.create_table("made", TableKind::Hash).map(drop));
    assert!(table.get("one").unwrap().is_some() && db.open_table("made").is_ok(), "all of that was done");
    let mut mirror = synchronous(&disk);
    behind(table.put("two", "value"));
    behind(table.put("two", "value"));
    level(&mut mirror);
    let mut running = Running::of(mirror);
    table.put("three", "value").unwrap();
    db.sync().unwrap();
    assert_eq!(followed(&disk), contents(&db));
    running.end();
    behind(table.put("four", "value"));
    assert_eq!(db.stats().unmirrored_commits, 0, "each of them was told");
    drop((table, db));
    let (db, table) = open(&disk, required());
    assert!(table.get("four").unwrap().is_some());
    behind(db.sync());
}

#[test]
fn waiting_ends_with_the_mirror() {
    let disk = MemStorage::default();
    let (db, table) = open(&disk, waiting());
    let mirror = synchronous(&disk);
    let thread = put(&table, "one");
    waits(&thread);
    drop(mirror);
    thread.join().unwrap().unwrap();
    table.put("two", "value").unwrap();
    assert_eq!(db.stats().unmirrored_commits, 0, "there was none to wait for");
    let mut mirror = synchronous(&disk);
    let thread = put(&table, "three");
    waits(&thread);
    mirror.synchronous(false);
    thread.join().unwrap().unwrap();
}

#[test]
fn waiting_ends_when_the_handle_is_closed() {
    for is_required in [false, true] {
        let disk = MemStorage::default();
        drop(open(&disk, options()));
        let (db, table) = open(&disk, waiting().require_mirror(is_required));
        let _mirror = synchronous(&disk);
        let thread = put(&table, "one");
        waits(&thread);
        db.close().unwrap();
        let done = thread.join().unwrap();
        assert_eq!(matches!(done, Err(Error::MirrorBehind { .. })), is_required, "{done:?}");
        let (_, table) = open(&disk, options());
        assert!(table.get("one").unwrap().is_some());
    }
}

#[test]
fn commits_wait_for_all_mirrors() {
    let disk = MemStorage::default();
    let (_db, table) = open(&disk, waiting());
    let mut first = synchronous(&disk);
    let other = MemStorage::default();
    let options = CopyOptions::default();
    let mut second = Mirror::open_on(Arc::new(disk.clone()), DB, Arc::new(other), COPY, options).unwrap();
    second.synchronous(true);
    level(&mut second);
    let thread = put(&table, "one");
    waits(&thread);
    level(&mut first);
    waits(&thread);
    level(&mut second);
    thread.join().unwrap().unwrap();
}

/// Nobody waits for one that has failed, or that is built anew.
#[test]
fn a_mirror_that_cannot_go_on_acknowledges_nothing() {
    let (disk, dest) = (MemStorage::default(), Hooked::default());
    let (_db, table) = open(&disk, waiting());
    let open = || {
        let (source, dest) = (Arc::new(disk.clone()), Arc::new(dest.clone()));
        let mut mirror = Mirror::open_on(source, DB, dest, COPY, CopyOptions::default()).unwrap();
        mirror.synchronous(true);
        mirror
    };
    let mut mirror = open();
    level(&mut mirror);
    let thread = put(&table, "one");
    waits(&thread);
    dest.fail_once(Call::Sync);
    assert!(mirror.step().is_err());
    thread.join().unwrap().unwrap();
    assert!(!mirror.status().synchronous);
    drop(mirror);
    let mut mirror = open();
    assert!(!mirror.status().synchronous, "it is not level yet");
    level(&mut mirror);
    assert!(mirror.status().synchronous);
}

/// What is durable by a flush, or by the end of a handle, is waited for no more than what the log has.
#[test]
fn a_sync_waits_for_what_this_handle_has_committed() {
    let disk = MemStorage::default();
    let (db, table) = open(&disk, waiting());
    table.put("one", "value").unwrap();
    drop((table, db));
    let (db, table) = open(&disk, waiting());
    let mirror = synchronous(&disk);
    db.sync().unwrap();
    let running = Running::of(mirror);
    table.put("two", "value").unwrap();
    db.flush().unwrap();
    db.sync().unwrap();
    db.drop_table("t").unwrap();
    db.create_table("u", TableKind::Hash).unwrap();
    assert_eq!(followed(&disk), contents(&db));
    drop(running);
}

/// Whoever has passed the jump to a new segment before its group was durable hears of that by a frame.
#[test]
fn the_first_commit_of_a_segment_comes_without_a_second_one() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, DB, options()).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    let mut going = mirror(&disk.files);
    level(&mut going);
    let going = Arc::new(parking_lot::Mutex::new(going));
    let looking = going.clone();
    // When the frames are written and not durable yet.
    disk.hook(move |path, call| {
        if path == Path::new(DB) && call == Call::Sync {
            looking.lock().step().unwrap();
        }
    });
    for n in 0..100u32 {
        table.put("n", n.to_be_bytes()).unwrap();
        db.sync().unwrap();
        level(&mut going.lock());
        let copy = Db::open_on(&disk.files, COPY, Options::new().freshness(Freshness::Log)).unwrap();
        let there = copy.open_table("t").unwrap().get("n").unwrap();
        assert_eq!(there.as_deref(), Some(&n.to_be_bytes()[..]));
    }
    disk.hook(|_, _| {});
}
