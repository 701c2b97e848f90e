//! Backups by those who follow a file that another handle writes: they have the log.

use super::*;
use crate::Table;
use crate::format::point::digest;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(super) fn writer(disk: &MemStorage) -> Db {
    let options = Options::new().memory_bytes(8 << 20).threads(false).large_value_bytes(512);
    Db::open_on(disk, DB, options).unwrap()
}

pub(super) fn follower(disk: &MemStorage, freshness: Freshness) -> Db {
    Db::open_on(disk, DB, Options::new().memory_bytes(8 << 20).freshness(freshness)).unwrap()
}

pub(super) fn commit_of(db: &Db) -> u64 {
    db.engine.state.load().visible()
}

/// A random commit of any kind. One in a hundred is none: a table is renamed by a checkpoint. Where tables
/// are dropped, one comes too.
pub(super) fn change(db: &Db, n: u64) {
    let names: Vec<String> = db.tables().into_iter().map(|t| t.name).collect();
    let random = |below: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % below;
    let name = &names[usize::try_from(random(names.len() as u64)).unwrap()];
    let key = |k: u64| (k * 7 % 97).to_be_bytes();
    if n % 100 == 40 {
        return db.rename_table(name, &format!("called {n} at once")).unwrap();
    }
    let mut txn = db.write();
    match n % 11 {
        3 => drop(txn.create_table(&format!("made {n}"), TableKind::Hash).unwrap()),
        6 if names.len() > 3 => txn.drop_table(name).unwrap(),
        9 => txn.rename_table(name, &format!("called {n}")).unwrap(),
        _ => {
            let (table, len) = (db.open_table(name).unwrap(), if n.is_multiple_of(4) { 2000 } else { 30 });
            for k in n..n + 1 + random(20) {
                txn.put(&table, &key(k), &vec![n as u8; len]).unwrap();
            }
            txn.remove(&table, &key(n + 50)).unwrap();
            if n.is_multiple_of(13) {
                txn.clear(&table).unwrap();
            }
            if n.is_multiple_of(5) {
                let made = txn.create_table(&format!("with records {n}"), TableKind::Ordered).unwrap();
                txn.put(&made, b"first", &[n as u8; 8700]).unwrap();
            }
        }
    }
    txn.commit().unwrap();
}

pub(super) fn begin(db: &Db) {
    fill(db, 0, 2000, 1);
    db.open_table("ordered").unwrap().create_index("by_tag", "v[0..1], k").unwrap();
    db.flush().unwrap();
}

/// Names of the pieces of logs.
fn logs_of(repository: &Repository<'_>, point: u64) -> Vec<Piece> {
    let pieces = repository.read_point(point).unwrap().pieces;
    pieces.into_iter().filter(|piece| matches!(piece.part, PartId::Log(_))).collect()
}

#[test]
fn each_commit_since_the_checkpoint_can_be_restored_and_none_is_left_out() {
    for freshness in [Freshness::Checkpoint, Freshness::Log] {
        let disk = MemStorage::default();
        let db = writer(&disk);
        begin(&db);
        let follower = follower(&disk, freshness);
        let mut expected = BTreeMap::from([(commit_of(&db), contents(&db))]);
        let mut points = Vec::new();
        for n in 0..60 {
            change(&db, n);
            expected.insert(commit_of(&db), contents(&db));
            match n {
                26 => db.flush().unwrap(),
                10 | 24 | 27 | 59 => {
                    let report = follower.backup_on(&disk, REPO, |_| {}).unwrap();
                    assert_eq!(report.commit, commit_of(&db));
                    points.push(report.commit);
                    assert_eq!(restored(&disk, Which::Point(report.point)).unwrap(), contents(&db), "{n}");
                    let mut stream = Vec::new();
                    let info = follower.backup_to(&mut stream, |_| {}).unwrap();
                    let mut bytes = stream.as_slice();
                    assert_eq!(restore_stream_on(&disk, &mut bytes, OUT, |_| {}).unwrap().point, info);
                    assert_eq!(contents(&open(&disk, OUT)), contents(&db));
                    assert_eq!(info.tables, db.tables().len() as u64);
                    disk.remove(Path::new(OUT)).unwrap();
                    follower.copy_to_on(&disk, OUT, |_| {}).unwrap();
                    assert_eq!(contents(&open(&disk, OUT)), contents(&db));
                    disk.remove(Path::new(OUT)).unwrap();
                }
                _ => {}
            }
        }
        let repository = Repository::open_on(&disk, REPO).unwrap();
        let list = repository.points().unwrap().points;
        let there: Vec<u64> = (0..=points[3] + 1)
            .filter(|c| list.iter().any(|p| (p.first_commit..=p.commit).contains(c)))
            .collect();
        assert!(there.len() > 20 && there.len() < expected.len(), "{list:?}");
        assert!(list[3].first_commit > list[2].first_commit, "tables were changed by checkpoints");
        for commit in 0..=points[3] + 1 {
            let found = restored(&disk, Which::Commit(commit));
            match there.contains(&commit) {
                true => {
                    let (_, expected) = expected.range(..=commit).next_back().unwrap();
                    assert_eq!(found.unwrap(), *expected, "commit {commit}");
                }
                false => {
                    let Err(Error::Invalid { detail }) = found else { panic!("{commit}: {found:?}") };
                    assert!(detail.contains("no point has exactly"), "{detail}");
                }
            }
        }
        // Between the second point and the flush, which the third one follows.
        let Err(Error::Invalid { detail }) = restored(&disk, Which::Commit(points[1] + 1)) else { panic!() };
        let near = [points[1], list[2].first_commit].map(|n| n.to_string());
        assert!(near.iter().all(|n| detail.contains(n)), "{detail}");
        let report = repository.verify(|_| {}).unwrap();
        assert_eq!((report.points, report.unused, report.problems), (4, 0, Vec::new()));
        repository.prune(&"1".parse().unwrap(), |_| {}).unwrap();
        let report = repository.verify(|_| {}).unwrap();
        assert_eq!((report.points, report.unused, report.problems), (1, 0, Vec::new()));
        let logs = names(&disk, "saved/chunks").iter().filter(|name| name.contains("-l")).count();
        assert_eq!(logs, logs_of(&repository, 4).len());
        assert_eq!(restored(&disk, Which::Newest).unwrap(), contents(&db));
    }
}

#[test]
fn the_table_count_and_the_report_are_of_the_commit_that_was_restored() {
    let disk = MemStorage::default();
    let db = writer(&disk);
    begin(&db);
    let tables = db.tables().len() as u64;
    let first = commit_of(&db);
    db.transact(|txn| txn.create_table("made", TableKind::Ordered).map(drop)).unwrap();
    db.open_table("made").unwrap().put("k", "MARK-OF-LATER").unwrap();
    db.transact(|txn| txn.create_table("more", TableKind::Ordered).map(drop)).unwrap();
    let follower = follower(&disk, Freshness::Checkpoint);
    let report = follower.backup_on(&disk, REPO, |_| {}).unwrap();
    let repository = Repository::open_on(&disk, REPO).unwrap();
    let info = repository.points().unwrap().points.remove(0);
    assert_eq!((info.first_commit, info.commit, info.tables), (first, report.commit, tables + 2));
    for (commit, expected) in [(first, tables), (first + 1, tables + 1), (first + 2, tables + 1)] {
        let done = repository.restore(Which::Commit(commit), OUT, |_| {}).unwrap();
        assert_eq!((done.point.commit, done.point.tables, done.point.number), (commit, expected, 1));
        let has_later = bytes_of(&disk, Path::new(OUT)).windows(13).any(|bytes| bytes == b"MARK-OF-LATER");
        assert_eq!(has_later, commit == first + 2, "frames of later commits are gone");
        let again = open(&disk, OUT);
        // It goes on as any other: the next commits have the next numbers.
        assert_eq!((commit_of(&again), again.tables().len() as u64), (commit, expected));
        fill(&again, 0, 10, 9);
        let now = contents(&again);
        again.close().unwrap();
        assert_eq!(contents(&open(&disk, OUT)), now);
        disk.remove(Path::new(OUT)).unwrap();
    }
}

#[test]
fn a_log_that_has_grown_costs_what_was_added() {
    let disk = MemStorage::default();
    let options = Options::new().memory_bytes(1 << 30).memtable_bytes(64 << 20).threads(false);
    let db = Db::open_on(&disk, DB, options).unwrap();
    begin(&db);
    let follower = follower(&disk, Freshness::Checkpoint);
    let table = db.open_table("ordered").unwrap();
    let big = |n: u32| {
        let mut txn = db.write();
        for k in 0..6000u32 {
            txn.put(&table, &(n * 6000 + k).to_be_bytes(), &[n as u8; 400]).unwrap();
        }
        txn.commit().unwrap();
    };
    (0..5).for_each(big);
    let first = follower.backup_on(&disk, REPO, |_| {}).unwrap();
    table.put("one", "more").unwrap();
    let second = follower.backup_on(&disk, REPO, |_| {}).unwrap();
    let repository = Repository::open_on(&disk, REPO).unwrap();
    let logs = logs_of(&repository, 2);
    assert!(logs.len() >= 2, "else this tries nothing: {logs:?}, {first:?}");
    assert_eq!(second.new_bytes, u64::from(logs.last().unwrap().bytes), "{second:?}");
    assert_eq!(restored(&disk, Which::Point(2)).unwrap(), contents(&db));
}

#[test]
fn a_log_that_is_damaged_cut_or_of_another_point_gives_an_error_and_no_file() {
    let disk = MemStorage::default();
    let db = writer(&disk);
    begin(&db);
    let follower = follower(&disk, Freshness::Checkpoint);
    (0..10).for_each(|n| change(&db, n));
    follower.backup_on(&disk, REPO, |_| {}).unwrap();
    (10..20).for_each(|n| change(&db, n));
    follower.backup_on(&disk, REPO, |_| {}).unwrap();
    let repository = Repository::open_on(&disk, REPO).unwrap();
    let paths = [1, 2].map(|point| repository.chunk(&logs_of(&repository, point)[0]));
    let whole = paths.each_ref().map(|path| bytes_of(&disk, path));
    let before = names(&disk, "");
    let expect_refused = |which: Which, what: &str| {
        let refused = restored(&disk, which);
        let is_told = matches!(&refused, Err(Error::Corrupt { .. } | Error::Open { .. }));
        assert!(is_told, "{what}: {refused:?}");
        assert_eq!(names(&disk, ""), before, "{what}: something is left");
    };
    let first = repository.points().unwrap().points[1].first_commit;
    for (what, bad) in [
        ("a flipped bit", [&whole[1][..70], &[whole[1][70] ^ 1], &whole[1][71..]].concat()),
        ("cut", whole[1][..1000].to_vec()),
        ("empty", Vec::new()),
        ("of another point", whole[0].clone()),
    ] {
        set_bytes(&disk, &paths[1], &bad);
        expect_refused(Which::Newest, what);
        expect_refused(Which::Commit(first + 1), what);
        let problems = repository.verify(|_| {}).unwrap().problems;
        assert!(problems.len() == 1 && problems[0].starts_with("point 2"), "{what}: {problems:?}");
        restored(&disk, Which::Point(1)).unwrap();
    }
    disk.remove(&paths[1]).unwrap();
    expect_refused(Which::Newest, "gone");
    // Whose digests hold, but it is not what its point says.
    disk.open(&paths[1], OpenMode::CreateNew).unwrap().write_at(&whole[1], 0).unwrap();
    let point = repository.read_point(2).unwrap();
    let told = |change: &dyn Fn(&mut Point, &mut Vec<u8>)| {
        let (mut point, mut bytes) = (point.clone(), whole[1].clone());
        change(&mut point, &mut bytes);
        let piece = point.pieces.last_mut().unwrap();
        piece.digest = digest(&bytes);
        let path = repository.chunk(piece);
        if !disk.exists(&path).unwrap() {
            disk.open(&path, OpenMode::CreateNew).unwrap();
        }
        set_bytes(&disk, &path, &bytes);
        set_bytes(&disk, &repository.point(2), &point.encode());
        expect_refused(Which::Newest, "what its point does not say");
    };
    told(&|point, _| point.commit += 1);
    told(&|point, _| point.commit -= 1);
    told(&|point, _| point.manifest.logs[0].end_frame += 1);
    told(&|point, _| point.manifest.logs[0].chain += 1);
    told(&|point, _| point.identity.file_id ^= 1);
    told(&|_, bytes| bytes[70] ^= 1);
    told(&|_, bytes| bytes[70..].fill(0));
}

/// A database whose memtables are soon full.
pub(super) fn busy(disk: &MemStorage) -> Db {
    let options = Options::new().memtable_bytes(64 << 10).memory_bytes(8 << 20).large_value_bytes(256);
    Db::open_on(disk, DB, options).unwrap()
}

/// Puts the same into two tables again and again, with the number of the transaction. `commit` ends each.
pub(super) fn keep_writing(
    db: &Db,
    tables: [&Table; 2],
    stop: &AtomicBool,
    mut commit: impl FnMut(WriteTxn, u64),
) {
    for n in 1u64.. {
        let mut txn = db.write();
        let value = vec![n as u8; if n.is_multiple_of(5) { 700 } else { 30 }];
        for table in tables {
            txn.put(table, &(n % 97).to_be_bytes(), &value).unwrap();
            txn.put(table, b"newest", &n.to_be_bytes()).unwrap();
        }
        commit(txn, n);
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// What was acknowledged as durable before a backup beside a writer begins is in it.
#[test]
fn a_backup_beside_a_busy_writer_has_what_was_durable_before() {
    let disk = MemStorage::default();
    let db = busy(&disk);
    let (a, b) = (db.table("a", TableKind::Ordered).unwrap(), db.table("b", TableKind::Hash).unwrap());
    let (stop, durable) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            keep_writing(&db, [&a, &b], &stop, |mut txn, n| {
                if n.is_multiple_of(50) {
                    txn.create_table(&format!("of {n}"), TableKind::Ordered).unwrap();
                }
                txn.commit().unwrap();
                durable.store(n, Ordering::Release);
            });
        });
        let follower = follower(&disk, Freshness::Checkpoint);
        let mut logged = 0;
        for _ in 0..12 {
            let least = durable.load(Ordering::Acquire);
            let point = follower.backup_on(&disk, REPO, |_| {}).unwrap().point;
            let info = Repository::open_on(&disk, REPO).unwrap().points().unwrap().points.pop().unwrap();
            logged += usize::from(info.first_commit < info.commit);
            let middle = info.first_commit + (info.commit - info.first_commit) / 2;
            for (which, least) in [(Which::Point(point), least), (Which::Commit(middle), 0)] {
                let found = restored(&disk, which).unwrap();
                let (Some(a), Some(b)) = (found.get("a"), found.get("b")) else {
                    assert_eq!(least, 0);
                    continue;
                };
                assert_eq!(a, b, "{which:?}");
                let newest =
                    a.get(&b"newest"[..]).map_or(0, |v| u64::from_be_bytes(v[..].try_into().unwrap()));
                assert!(newest >= least, "{which:?}: {newest} of {least}");
                let last = a.get(&(newest % 97).to_be_bytes()[..]);
                assert!(newest == 0 || last.map(|v| v[0]) == Some(newest as u8), "{which:?}");
                assert_eq!(found.len() as u64, 2 + newest / 50, "{which:?}");
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(logged > 0, "no point had a log");
    });
    db.close().unwrap();
}
