//! Logs that are kept: each commit that was in the log can be restored, and nothing else comes of it.

use super::beside::{begin, busy, change, commit_of, follower, keep_writing, writer};
use super::*;
use crate::WriteOptions;
use crate::backup::limits::LogLimits;
use crate::storage::File;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

fn keeper(disk: &MemStorage, freshness: Freshness) -> LogKeeper<'_> {
    follower(disk, freshness).keep_log_with(disk, REPO, CopyOptions::default()).unwrap()
}

fn points(disk: &MemStorage) -> Vec<PointInfo> {
    let list = Repository::open_on(disk, REPO).unwrap().points().unwrap();
    assert_eq!(list.damaged.len(), 0);
    list.points
}

/// The commits that some point has.
fn there(points: &[PointInfo]) -> BTreeSet<u64> {
    points.iter().flat_map(|p| p.first_commit..=p.commit).collect()
}

/// A disk on which something is done at the next calls that list a directory: as many as there are things to
/// do. A keeper lists the chunks before it takes another point.
struct Meddled<'d> {
    disk: &'d MemStorage,
    at_listing: Mutex<Vec<Box<dyn FnOnce() + Send + 'd>>>,
}

impl<'d> Meddled<'d> {
    fn new(disk: &'d MemStorage) -> Meddled<'d> {
        Meddled { disk, at_listing: Mutex::default() }
    }
}

impl Storage for Meddled<'_> {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.disk.open(path, mode)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
        self.disk.rename(from, to, replace)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir_of(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir_of(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn names_in(&self, dir: &Path) -> io::Result<Vec<String>> {
        let work = self.at_listing.lock().unwrap().pop();
        work.into_iter().for_each(|work| work());
        self.disk.names_in(dir)
    }

    fn random(&self) -> io::Result<u64> {
        self.disk.random()
    }
}

/// Commits that replace the same thousand records again and again, of so many bytes together.
fn replace(db: &Db, bytes: u64) {
    let table = db.open_table("ordered").unwrap();
    for n in 0..bytes / 400_000 {
        let mut txn = db.write();
        for k in 0..1000u32 {
            txn.put(&table, &k.to_be_bytes(), &[n as u8; 400]).unwrap();
        }
        txn.commit().unwrap();
    }
}

/// Each commit is flushed by itself just when the next point is begun, and the one before has it.
#[test]
fn what_is_flushed_when_another_point_begins_is_in_the_one_before() {
    let disk = MemStorage::default();
    let db = writer(&disk);
    begin(&db);
    let meddled = Meddled::new(&disk);
    let follower = follower(&disk, Freshness::Checkpoint);
    let mut keeper = follower.keep_log_with(&meddled, REPO, CopyOptions::default()).unwrap();
    keeper.limits = LogLimits { short_bytes: 1 << 20, long_bytes: 2 << 20, ..LogLimits::USUAL };
    let first = keeper.step(|_| {}).unwrap();
    let flushed = || {
        db.open_table("small").unwrap().put("flushed", "1").unwrap();
        db.flush().unwrap();
    };
    meddled.at_listing.lock().unwrap().push(Box::new(flushed));
    // There comes to be so much log that another point costs less.
    while keeper.status().points == 1 {
        replace(&db, 400_000);
        db.flush().unwrap();
        keeper.step(|_| {}).unwrap();
    }
    let kept = keeper.status();
    assert_eq!((kept.points, kept.point, kept.commit), (2, 2, commit_of(&db)));
    assert!(meddled.at_listing.lock().unwrap().is_empty());
    let points = points(&disk);
    assert!(points[0].commit >= points[1].first_commit, "{points:?}");
    let there = there(&points);
    assert!((first.commit..=kept.commit).all(|commit| there.contains(&commit)), "{points:?}");
    for commit in [points[0].commit, kept.commit - 1, kept.commit] {
        let found = restored(&disk, Which::Commit(commit)).unwrap();
        assert_eq!(found["small"].contains_key(&b"flushed"[..]), commit == kept.commit, "{commit}");
    }
    let repository = Repository::open_on(&disk, REPO).unwrap();
    let report = repository.verify(|_| {}).unwrap();
    assert_eq!((report.unused, report.problems), (0, Vec::new()));
}

/// A point is copied so slowly that its log becomes too long meanwhile. It goes on all the same, until the
/// next point has taken over: but not for ever, and then it is seen what is missing.
#[test]
fn a_log_that_becomes_too_long_while_a_point_is_copied_is_kept_for_some_time() {
    for (end_bytes, is_kept) in [(64 << 20, true), (1_500_000, false)] {
        let disk = MemStorage::default();
        let db = writer(&disk);
        begin(&db);
        for n in 0..8 {
            let table = db.table(&format!("more {n}"), TableKind::Ordered).unwrap();
            (0..2000u32).for_each(|k| table.put(k.to_be_bytes(), [n; 8]).unwrap());
        }
        db.flush().unwrap();
        let mut keeper = keeper(&disk, Freshness::Checkpoint);
        let short = LogLimits { long_bytes: 1 << 20, increment_bytes: 256 << 10, ..LogLimits::USUAL };
        keeper.limits = LogLimits { end_bytes, ..short };
        let (begun, mut steps) = (commit_of(&db), 0);
        let copied = keeper.step(|_| {
            replace(&db, 400_000);
            db.flush().unwrap();
            steps += 1;
        });
        assert_eq!((copied.unwrap().points, steps > 10), (1, true), "{steps}");
        let kept = keeper.step(|_| {}).unwrap();
        assert_eq!((kept.points, kept.commit), (2, commit_of(&db)));
        let points = points(&disk);
        assert_eq!(points[0].commit >= points[1].first_commit, is_kept, "{points:?}");
        let there = there(&points);
        for commit in begun..=kept.commit {
            let found = restored(&disk, Which::Commit(commit));
            assert_eq!(found.is_ok(), there.contains(&commit) && commit >= points[0].first_commit);
            let is_missing = (points[0].commit + 1..points[1].first_commit).contains(&commit);
            match found {
                // They have replaced this record again and again.
                Ok(found) => assert!(!is_missing && found["ordered"][&0u32.to_be_bytes()[..]].len() >= 20),
                Err(Error::Invalid { detail }) => {
                    let near = [points[0].commit, points[1].first_commit].map(|n| n.to_string());
                    assert!(is_missing && near.iter().all(|n| detail.contains(n)), "{detail}");
                }
                Err(e) => panic!("{e}"),
            }
        }
        let report = Repository::open_on(&disk, REPO).unwrap().verify(|_| {}).unwrap();
        assert_eq!((report.unused, report.problems), (0, Vec::new()));
    }
}

/// Puts large values, each by a commit of its own, and makes them durable together.
fn put_together(db: &Db, numbers: std::ops::Range<u32>) {
    let table = db.open_table("small").unwrap();
    for n in numbers {
        let durability = Some(Durability::Eventual);
        let mut txn = db.write_with(WriteOptions { durability, ..WriteOptions::default() });
        txn.put(&table, &n.to_be_bytes(), &[n as u8; 3000]).unwrap();
        txn.commit().unwrap();
    }
    db.sync().unwrap();
}

/// A writer has much that is not flushed, in long frames and with many large values in one, when the log is
/// read. The repository is locked first, and reading waits.
#[test]
fn what_is_read_at_once_is_written_in_parts() {
    const PART: u64 = 256 << 10;
    for is_locked in [false, true] {
        let disk = MemStorage::default();
        let options = Options::new().memory_bytes(64 << 20).threads(false).large_value_bytes(512);
        let db = Db::open_on(&disk, DB, options).unwrap();
        begin(&db);
        let mut keeper = keeper(&disk, Freshness::Checkpoint);
        keeper.limits = LogLimits { increment_bytes: PART as usize, ..LogLimits::USUAL };
        let first = keeper.step(|_| {}).unwrap();
        let point = || Repository::open_on(&disk, REPO).unwrap().read_point(1).unwrap();
        let before = point().manifest.values.len();
        put_together(&db, 0..1000);
        let together = commit_of(&db);
        replace(&db, 4_000_000);
        if is_locked {
            let head = disk.open(Path::new("saved/repository"), OpenMode::ReadWrite).unwrap();
            assert!(head.try_lock(true).unwrap());
            assert!(matches!(keeper.step(|_| {}), Err(Error::Locked { .. })));
            // What was read until now is between two checkpoints.
            db.flush().unwrap();
            put_together(&db, 1000..1100);
            assert!(matches!(keeper.step(|_| {}), Err(Error::Locked { .. })));
            drop(head);
        }
        let kept = keeper.step(|_| {}).unwrap();
        assert_eq!((kept.points, kept.commit), (1, commit_of(&db)));
        let manifest = point().manifest;
        let (logs, values) = (&manifest.logs, &manifest.values[before..]);
        assert!(logs.len() > 20, "{}", logs.len());
        let commit_bytes = 450_000;
        assert!(logs.iter().all(|log| log.first.len < PART + commit_bytes), "{logs:?}");
        assert!(values.len() > 10 && values.iter().all(|v| v.used < PART + 3000), "{values:?}");
        for n in (0..1000).step_by(97) {
            let commit = together - 999 + n;
            let found = restored(&disk, Which::Commit(commit)).unwrap();
            assert_eq!(found["small"].len() as u64, 1 + n + 1, "commit {commit} of {first:?}");
        }
        assert_eq!(restored(&disk, Which::Newest).unwrap(), contents(&db));
    }
}

/// Each commit from the first step on, through flushes, compaction, tables that come, go and are renamed, and
/// value segments whose numbers are given again.
#[test]
fn each_commit_since_the_first_step_can_be_restored() {
    for (freshness, stride) in [(Freshness::Checkpoint, 1), (Freshness::Log, 7), (Freshness::Checkpoint, 20)]
    {
        let disk = MemStorage::default();
        let db = writer(&disk);
        begin(&db);
        let mut keeper = keeper(&disk, freshness);
        let first = keeper.step(|_| {}).unwrap();
        assert_eq!((first.point, first.commit), (1, commit_of(&db)));
        let mut expected = BTreeMap::from([(first.commit, contents(&db))]);
        // A table that is renamed by a checkpoint changes what is there after the last commit.
        let mut renamed = Vec::new();
        for n in 0..130 {
            let before = (commit_of(&db), contents(&db));
            change(&db, n);
            if commit_of(&db) == before.0 {
                renamed.push(before);
            }
            expected.insert(commit_of(&db), contents(&db));
            match n % 43 {
                // Each of these is a checkpoint, and no frame before it may be missed.
                11 => db.flush().unwrap(),
                25 => db.compact().unwrap(),
                30 => db.sync().unwrap(),
                _ => {}
            }
            if n % stride == 0 {
                let kept = keeper.step(|_| {}).unwrap();
                assert_eq!(kept.commit, commit_of(&db), "{n}");
            }
        }
        let kept = keeper.step(|_| {}).unwrap();
        let points = points(&disk);
        assert_eq!(kept.points, points.len() as u64);
        let there = there(&points);
        if stride == 1 {
            // A table that was renamed by a checkpoint begins another point.
            assert_eq!((points.len(), there.last()), (2, Some(&commit_of(&db))), "{points:?}");
            assert!((first.commit..=commit_of(&db)).all(|commit| there.contains(&commit)), "{points:?}");
        }
        assert!(there.len() > 60, "{points:?}");
        for &commit in &there {
            let (_, expected) = expected.range(..=commit).next_back().unwrap();
            assert_eq!(restored(&disk, Which::Commit(commit)).unwrap(), *expected, "commit {commit}");
        }
        for point in &points {
            let found = restored(&disk, Which::Point(point.number)).unwrap();
            let is_before =
                renamed.iter().any(|(commit, before)| *commit == point.commit && *before == found);
            assert!(is_before || found == expected[&point.commit], "{point:?}");
        }
        let repository = Repository::open_on(&disk, REPO).unwrap();
        let report = repository.verify(|_| {}).unwrap();
        assert_eq!((report.unused, report.problems), (0, Vec::new()));
        repository.prune(&"1".parse().unwrap(), |_| {}).unwrap();
        assert_eq!(restored(&disk, Which::Newest).unwrap(), contents(&db));
        // It goes on after the point was pruned that it has gone on from, or was not.
        change(&db, 500);
        assert_eq!(keeper.step(|_| {}).unwrap().commit, commit_of(&db));
        assert_eq!(restored(&disk, Which::Newest).unwrap(), contents(&db));
    }
}

#[test]
fn a_step_costs_what_was_committed_and_nothing_if_nothing_was() {
    let disk = MemStorage::default();
    let db = writer(&disk);
    fill(&db, 0, 20_000, 1);
    let mut keeper = keeper(&disk, Freshness::Checkpoint);
    let first = keeper.step(|_| {}).unwrap();
    assert!(first.new_bytes > 200_000, "{first:?}");
    let before = names(&disk, "saved/chunks");
    assert_eq!(keeper.step(|_| {}).unwrap(), first);
    assert_eq!(names(&disk, "saved/chunks"), before);
    let table = db.open_table("ordered").unwrap();
    for n in 0..10u8 {
        table.put([n], vec![n; 1500]).unwrap();
        let bytes = keeper.status().new_bytes;
        let kept = keeper.step(|_| {}).unwrap();
        let new_bytes = kept.new_bytes - bytes;
        assert!((1500..12_000).contains(&new_bytes), "a value, and a frame: {new_bytes}");
        assert_eq!((kept.point, kept.points), (1, 1));
    }
    // Flushed, and still the log is less than the runs.
    db.flush().unwrap();
    table.put("later", "1").unwrap();
    let kept = keeper.step(|_| {}).unwrap();
    assert_eq!((kept.point, kept.commit, kept.first_commit), (1, commit_of(&db), first.first_commit));
    assert_eq!(restored(&disk, Which::Newest).unwrap(), contents(&db));
}

/// Commits that were flushed before they were logged are in no log. They are in another point.
#[test]
fn what_was_never_logged_begins_another_point() {
    let disk = MemStorage::default();
    let options = Options::new().memory_bytes(8 << 20).threads(false).durability(Durability::Eventual);
    let db = Db::open_on(&disk, DB, options).unwrap();
    begin(&db);
    let mut keeper = keeper(&disk, Freshness::Checkpoint);
    let first = keeper.step(|_| {}).unwrap();
    let table = db.open_table("ordered").unwrap();
    table.put("logged", "1").unwrap();
    db.sync().unwrap();
    let logged = commit_of(&db);
    for n in 0..100u32 {
        table.put(n.to_be_bytes(), "flushed").unwrap();
    }
    db.flush().unwrap();
    let kept = keeper.step(|_| {}).unwrap();
    assert_eq!((kept.points, kept.commit, kept.first_commit), (2, commit_of(&db), commit_of(&db)));
    let points = points(&disk);
    assert_eq!(there(&points), [first.commit, logged, kept.commit].into());
    let found = restored(&disk, Which::Commit(logged)).unwrap();
    assert_eq!(found["ordered"].get(&b"logged"[..]).map(Vec::as_slice), Some(&b"1"[..]));
    assert!(!found["ordered"].values().any(|value| value == b"flushed"));
    let Err(Error::Invalid { detail }) = restored(&disk, Which::Commit(logged + 1)) else { panic!() };
    assert!(detail.contains(&logged.to_string()) && detail.contains(&kept.commit.to_string()), "{detail}");
}

#[test]
fn a_time_is_the_last_commit_that_was_known_then() {
    let disk = MemStorage::default();
    let db = writer(&disk);
    begin(&db);
    let mut keeper = keeper(&disk, Freshness::Checkpoint);
    let begun = SystemTime::now();
    let mut seen = Vec::new();
    for n in 0..4 {
        if n > 0 {
            db.open_table("ordered").unwrap().put("n", [n]).unwrap();
        }
        keeper.step(|_| {}).unwrap();
        std::thread::sleep(Duration::from_millis(3));
        seen.push((SystemTime::now(), contents(&db)));
        std::thread::sleep(Duration::from_millis(3));
    }
    for (time, expected) in &seen {
        assert_eq!(restored(&disk, Which::Time(*time)).unwrap(), *expected);
    }
    let points = points(&disk);
    assert_eq!(points.len(), 1);
    assert!(points[0].time < seen[0].0 && points[0].last_time > seen[2].0 && points[0].last_time < seen[3].0);
    let Err(Error::Invalid { .. }) = restored(&disk, Which::Time(begun - Duration::from_secs(1))) else {
        panic!()
    };
}

/// The writer is closed and opened again and again, and the log has other chains.
#[test]
fn a_log_is_kept_through_the_lives_of_its_writers() {
    let disk = MemStorage::default();
    let options = || Options::new().memory_bytes(8 << 20).threads(false).large_value_bytes(512);
    let open = || Db::open_on(&disk, DB, options()).unwrap();
    let mut db = open();
    begin(&db);
    let mut keeper = keeper(&disk, Freshness::Checkpoint);
    let first = keeper.step(|_| {}).unwrap();
    let mut expected = BTreeMap::from([(first.commit, contents(&db))]);
    for n in 100..160 {
        if n != 140 {
            change(&db, n);
        }
        expected.insert(commit_of(&db), contents(&db));
        if n % 6 == 0 {
            keeper.step(|_| {}).unwrap();
        }
        if n % 10 == 9 {
            db.close().unwrap();
            db = open();
        }
    }
    assert_eq!(keeper.step(|_| {}).unwrap().commit, commit_of(&db));
    let there = there(&points(&disk));
    assert!(there.len() > 30, "{there:?}");
    for &commit in &there {
        let (_, expected) = expected.range(..=commit).next_back().unwrap();
        assert_eq!(restored(&disk, Which::Commit(commit)).unwrap(), *expected, "commit {commit}");
    }
}

/// A step that fails leaves the repository as it was, and the next one goes on.
#[test]
fn what_fails_is_tried_again_and_a_log_that_lost_its_chunks_is_an_error() {
    let disk = MemStorage::default();
    let db = writer(&disk);
    begin(&db);
    let mut keeper = keeper(&disk, Freshness::Checkpoint);
    keeper.step(|_| {}).unwrap();
    change(&db, 1);
    // As while it is pruned.
    let head = disk.open(Path::new("saved/repository"), OpenMode::ReadWrite).unwrap();
    assert!(head.try_lock(true).unwrap());
    assert!(matches!(keeper.step(|_| {}), Err(Error::Locked { .. })));
    drop(head);
    assert_eq!(keeper.step(|_| {}).unwrap().commit, commit_of(&db));
    assert_eq!(keeper.status().points, 1, "the same point goes on");
    assert_eq!(restored(&disk, Which::Newest).unwrap(), contents(&db));
    let repository = Repository::open_on(&disk, REPO).unwrap();
    let point = repository.read_point(1).unwrap();
    let last = point.pieces.last().unwrap();
    assert!(matches!(last.part, PartId::Log(_)));
    let path = repository.chunk(last);
    let whole = bytes_of(&disk, &path);
    for bit in (0..whole.len() * 8).step_by(997) {
        let mut bad = whole.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        set_bytes(&disk, &path, &bad);
        assert!(matches!(restored(&disk, Which::Newest), Err(Error::Corrupt { .. })), "bit {bit}");
    }
    // The increment is not needed for what was before it, but its chunk is looked at all the same.
    disk.remove(&path).unwrap();
    assert!(matches!(restored(&disk, Which::Newest), Err(Error::Open { .. })));
}

/// A table is renamed, or dropped, by a checkpoint, and commits follow before the log is read again.
#[test]
fn what_follows_a_change_that_is_no_commit_is_not_in_the_point_before_it() {
    for drops in [false, true] {
        let disk = MemStorage::default();
        let db = writer(&disk);
        begin(&db);
        let mut keeper = keeper(&disk, Freshness::Checkpoint);
        keeper.step(|_| {}).unwrap();
        db.open_table("ordered").unwrap().put("before", "1").unwrap();
        let (before, last_before) = (contents(&db), commit_of(&db));
        keeper.step(|_| {}).unwrap();
        match drops {
            false => db.rename_table("hash", "renamed").unwrap(),
            true => db.drop_table("hash").unwrap(),
        }
        for n in 0..5u8 {
            db.open_table("ordered").unwrap().put([n], "after").unwrap();
        }
        db.flush().unwrap();
        db.open_table("ordered").unwrap().put("flushed", "1").unwrap();
        let kept = keeper.step(|_| {}).unwrap();
        assert_eq!((kept.point, kept.commit), (2, commit_of(&db)));
        assert_eq!(restored(&disk, Which::Newest).unwrap(), contents(&db));
        assert_eq!(points(&disk)[0].commit, last_before);
        assert_eq!(restored(&disk, Which::Point(1)).unwrap(), before);
    }
}

/// A point that grows may be newer than one that was made later.
#[test]
fn the_newest_point_is_that_with_the_last_commit() {
    let disk = MemStorage::default();
    let db = writer(&disk);
    begin(&db);
    let mut keeper = keeper(&disk, Freshness::Checkpoint);
    keeper.step(|_| {}).unwrap();
    let other = follower(&disk, Freshness::Checkpoint);
    db.open_table("ordered").unwrap().put("one", "1").unwrap();
    assert_eq!(other.backup_on(&disk, REPO, |_| {}).unwrap().point, 2);
    let at_two = (SystemTime::now(), contents(&db));
    std::thread::sleep(Duration::from_millis(5));
    db.open_table("ordered").unwrap().put("two", "2").unwrap();
    assert_eq!(keeper.step(|_| {}).unwrap().point, 1);
    assert_eq!(restored(&disk, Which::Newest).unwrap(), contents(&db));
    assert_eq!(restored(&disk, Which::Time(SystemTime::now())).unwrap(), contents(&db));
    assert_eq!(restored(&disk, Which::Time(at_two.0)).unwrap(), at_two.1);
    assert_eq!(restored(&disk, Which::Point(2)).unwrap(), at_two.1);
}

/// It goes on until it is told to end, and what was committed until then is there.
#[test]
fn a_keeper_that_runs_has_the_last_commits_when_it_ends() {
    let disk = MemStorage::default();
    let db = writer(&disk);
    begin(&db);
    let mut keeper = keeper(&disk, Freshness::Checkpoint);
    let mut rounds = 0;
    let every = Duration::from_secs(3600);
    keeper
        .run(every, |kept, step| {
            if step.is_some() || kept.point == 0 {
                return true;
            }
            rounds += 1;
            change(&db, 100 + rounds);
            rounds < 8
        })
        .unwrap();
    // The last change came after the last reading.
    let kept = keeper.status();
    assert!(kept.points == 1 && kept.commit + 4 > commit_of(&db), "{kept:?}, {}", commit_of(&db));
    assert_eq!(points(&disk)[0].commit, kept.commit);
}

#[test]
fn who_does_not_follow_keeps_no_log() {
    let disk = MemStorage::default();
    let db = writer(&disk);
    let refused = db.keep_log_with(&disk, REPO, CopyOptions::default()).map(|_| ());
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}

/// A busy writer, and a keeper that looks as often as it can.
#[test]
fn beside_a_busy_writer_each_commit_that_is_told_can_be_restored() {
    let disk = MemStorage::default();
    let db = busy(&disk);
    let (a, b) = (db.table("a", TableKind::Ordered).unwrap(), db.table("b", TableKind::Hash).unwrap());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            keep_writing(&db, [&a, &b], &stop, |txn, _| {
                txn.commit().unwrap();
                std::thread::sleep(Duration::from_micros(300));
            });
        });
        let mut keeper = keeper(&disk, Freshness::Checkpoint);
        // Until so many commits were added to points that there were.
        let mut added = 0;
        while added < 200 {
            let before = keeper.status();
            let kept = keeper.step(|_| {}).unwrap();
            added += if kept.points == before.points { kept.commit - before.commit } else { 0 };
        }
        stop.store(true, Ordering::Relaxed);
    });
    let points = points(&disk);
    let there: Vec<u64> = there(&points).into_iter().collect();
    assert!(there.len() >= 200, "{points:?}");
    // The number in the tables goes up with the commits.
    let newest = |commit| {
        let found = restored(&disk, Which::Commit(commit)).unwrap();
        if found.len() == 2 {
            assert_eq!(found["a"], found["b"], "commit {commit}");
        }
        let newest = found.get("a").and_then(|a| a.get(&b"newest"[..]));
        newest.map_or(0, |v| u64::from_be_bytes(v[..].try_into().unwrap()))
    };
    let first = there.iter().copied().find(|&commit| newest(commit) > 0).unwrap();
    let base = first - newest(first);
    for &commit in there.iter().skip_while(|&&c| c < first).step_by(there.len() / 40 + 1) {
        assert_eq!(newest(commit), commit - base, "commit {commit}");
    }
    db.close().unwrap();
}
