mod beside;
mod keep_log;

use super::*;
use crate::base::error::Error;
use crate::engine::Db;
use crate::format::point::{PartId, Piece, Point};
use crate::storage::{MemStorage, OpenMode, Storage};
use crate::{Durability, Freshness, Options, TableKind, WriteTxn};
use std::collections::BTreeMap;
use std::path::Path;

const DB: &str = "db.azk";
const REPO: &str = "saved";
const OUT: &str = "out.azk";

type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

fn options() -> Options {
    Options::new().threads(false).large_value_bytes(512).durability(Durability::Eventual)
}

fn open(disk: &MemStorage, path: &str) -> Db {
    Db::open_on(disk, path, options()).unwrap()
}

fn contents(db: &Db) -> Contents {
    let of = |name: &str| {
        let table = db.open_table(name).unwrap();
        table.cursor().unwrap().owned().map(Result::unwrap).collect()
    };
    db.tables().into_iter().map(|t| (t.name.clone(), of(&t.name))).collect()
}

/// Records that fill runs and segments, from a number on; `tag` is in every value.
fn fill(db: &Db, from: u32, to: u32, tag: u8) {
    let ordered = db.table("ordered", TableKind::Ordered).unwrap();
    let hash = db.table("hash", TableKind::Hash).unwrap();
    let mut txn: WriteTxn = db.write();
    for n in from..to {
        let len = if n % 50 == 0 { 3000 } else { 20 };
        txn.put(&ordered, &n.to_be_bytes(), &vec![tag; len]).unwrap();
        txn.put(&hash, &u64::from(n).to_be_bytes(), &[tag; 8]).unwrap();
    }
    txn.commit().unwrap();
    db.table("small", TableKind::Ordered).unwrap().put(b"tag", &[tag]).unwrap();
}

fn restored(disk: &MemStorage, which: Which) -> Result<Contents, Error> {
    let repository = Repository::open_on(disk, REPO)?;
    repository.restore(which, OUT, |_| {})?;
    let db = open(disk, OUT);
    let found = contents(&db);
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
    db.close().unwrap();
    disk.remove(Path::new(OUT)).unwrap();
    Ok(found)
}

/// The names on the disk, without those that a repository has by itself.
fn names(disk: &MemStorage, dir: &str) -> Vec<String> {
    let mut names = disk.names_in(Path::new(dir)).unwrap();
    names.sort();
    names
}

fn bytes_of(disk: &MemStorage, path: &Path) -> Vec<u8> {
    files::read(disk, path, "reading").unwrap()
}

fn set_bytes(disk: &MemStorage, path: &Path, bytes: &[u8]) {
    let file = disk.open(path, OpenMode::ReadWrite).unwrap();
    file.set_len(0).unwrap();
    file.write_at(bytes, 0).unwrap();
}

#[test]
fn each_point_is_the_database_as_it_was_and_costs_what_has_changed() {
    let disk = MemStorage::default();
    let db = open(&disk, DB);
    let mut expected = vec![contents(&db)];
    let first = db.backup_on(&disk, REPO, |_| {}).unwrap();
    assert_eq!((first.point, first.chunks), (1, 0), "an empty database has a point too");
    fill(&db, 0, 20_000, 1);
    expected.push(contents(&db));
    let second = db.backup_on(&disk, REPO, |_| {}).unwrap();
    assert!(second.chunks >= 3 && second.new_chunks == second.chunks, "{second:?}");
    let third = db.backup_on(&disk, REPO, |_| {}).unwrap();
    assert_eq!((third.new_chunks, third.bytes), (0, second.bytes), "nothing has changed");
    expected.push(contents(&db));
    fill(&db, 20_000, 20_100, 2);
    db.rename_table("small", "tiny").unwrap();
    expected.push(contents(&db));
    let fourth = db.backup_on(&disk, REPO, |_| {}).unwrap();
    assert!(fourth.new_bytes < fourth.bytes / 4, "{fourth:?}");
    db.compact().unwrap();
    db.drop_table("hash").unwrap();
    expected.push(contents(&db));
    db.backup_on(&disk, REPO, |_| {}).unwrap();
    let points = Repository::open_on(&disk, REPO).unwrap().points().unwrap();
    assert_eq!(points.points.len(), 5);
    for (point, expected) in points.points.iter().zip(&expected) {
        assert_eq!(restored(&disk, Which::Point(point.number)).unwrap(), *expected, "{point:?}");
        assert_eq!(point.tables, expected.len() as u64);
    }
    let last = points.points.last().unwrap();
    for which in [Which::Newest, Which::Commit(last.commit), Which::Time(last.time)] {
        assert_eq!(restored(&disk, which).unwrap(), expected[4], "{which:?}");
    }
    for which in [Which::Point(6), Which::Commit(last.commit + 1), Which::Time(std::time::UNIX_EPOCH)] {
        assert!(matches!(restored(&disk, which), Err(Error::Invalid { .. })), "{which:?}");
    }
    let report = Repository::open_on(&disk, REPO).unwrap().verify(|_| {}).unwrap();
    assert_eq!((report.points, report.unused, report.problems.len()), (5, 0, 0));
    db.close().unwrap();
}

/// Of the moment right after a backup there is that backup, and none that has what came later.
#[test]
fn a_point_has_nothing_that_came_after_its_time() {
    let disk = MemStorage::default();
    let db = open(&disk, DB);
    for round in 0..20 {
        fill(&db, round, round + 1, 1);
        db.backup_on(&disk, REPO, |_| {}).unwrap();
        let (between, expected) = (std::time::SystemTime::now(), contents(&db));
        fill(&db, round, round + 1, 2);
        db.backup_on(&disk, REPO, |_| {}).unwrap();
        assert_eq!(restored(&disk, Which::Time(between)).unwrap(), expected, "round {round}");
    }
    db.close().unwrap();
}

/// What stands in an index goes with its table, and is no table of a point.
#[test]
fn indexes_are_in_backups() {
    let disk = MemStorage::default();
    let db = open(&disk, DB);
    fill(&db, 0, 1000, 1);
    db.open_table("ordered").unwrap().create_index("by_tag", "v[0..1], k").unwrap();
    fill(&db, 500, 600, 2);
    db.backup_on(&disk, REPO, |_| {}).unwrap();
    db.close().unwrap();
    let repository = Repository::open_on(&disk, REPO).unwrap();
    let report = repository.restore(Which::Newest, OUT, |_| {}).unwrap();
    assert_eq!(report.point.tables, 3);
    let db = open(&disk, OUT);
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
    let index = db.open_table("ordered").unwrap().index("by_tag").unwrap();
    assert_eq!(index.count(&[b"\x02".into()]).unwrap(), 100);
    assert_eq!(index.first(&[b"\x02".into()]).unwrap().unwrap().0, 500u32.to_be_bytes());
    drop(index);
    db.close().unwrap();
}

/// The number of a value segment is given again when nothing refers to the segment any more.
#[test]
fn a_value_segment_with_the_number_of_an_earlier_one_is_not_taken_for_it() {
    let disk = MemStorage::default();
    let mut expected = Vec::new();
    for tag in 1..=3 {
        let db = open(&disk, DB);
        let table = db.table("values", TableKind::Ordered).unwrap();
        let mut txn = db.write();
        txn.clear(&table).unwrap();
        txn.commit().unwrap();
        db.compact().unwrap();
        drop(table);
        db.close().unwrap();
        let db = open(&disk, DB);
        let table = db.open_table("values").unwrap();
        for n in 0..20u8 {
            table.put(&[n], &[tag; 4096]).unwrap();
        }
        db.backup_on(&disk, REPO, |_| {}).unwrap();
        expected.push(contents(&db));
        drop(table);
        db.close().unwrap();
    }
    let repository = Repository::open_on(&disk, REPO).unwrap();
    let ids = |n| repository.read_point(n).unwrap().manifest.values.iter().map(|v| v.id).collect::<Vec<_>>();
    assert_eq!(ids(1), ids(2), "else this tries nothing");
    for (n, expected) in (1..).zip(&expected) {
        assert_eq!(restored(&disk, Which::Point(n)).unwrap(), *expected, "point {n}");
    }
}

#[test]
fn a_damaged_repository_gives_errors_and_no_file() {
    let disk = MemStorage::default();
    let db = open(&disk, DB);
    fill(&db, 0, 3000, 1);
    db.backup_on(&disk, REPO, |_| {}).unwrap();
    let repository = Repository::open_on(&disk, REPO).unwrap();
    let point = repository.read_point(1).unwrap();
    let mut paths: Vec<_> = point.pieces.iter().map(|p| repository.chunk(p)).collect();
    paths.push(repository.point(1));
    let expect_refused = |path: &Path, what: &str| {
        let refused = restored(&disk, Which::Newest);
        let is_told =
            matches!(&refused, Err(Error::Corrupt { .. } | Error::Open { .. } | Error::Invalid { .. }));
        assert!(is_told, "{what}, {}: {refused:?}", path.display());
        assert_eq!(names(&disk, ""), [DB], "{what}: something is left");
    };
    for path in &paths {
        let whole = bytes_of(&disk, path);
        for at in [0, whole.len() / 2, whole.len() - 1] {
            let mut bad = whole.clone();
            bad[at] ^= 1;
            set_bytes(&disk, path, &bad);
            expect_refused(path, "a flipped bit");
            assert_eq!(repository.verify(|_| {}).unwrap().problems.len(), 1);
            set_bytes(&disk, path, &whole[..at]);
            expect_refused(path, "cut");
        }
        disk.remove(path).unwrap();
        expect_refused(path, "gone");
        disk.open(path, OpenMode::CreateNew).unwrap().write_at(&whole, 0).unwrap();
    }
    assert_eq!(restored(&disk, Which::Newest).unwrap(), contents(&db));
    // A chunk that is gone comes back with the next backup, as long as the database has it.
    disk.remove(&paths[0]).unwrap();
    assert_eq!(db.backup_on(&disk, REPO, |_| {}).unwrap().new_chunks, 1);
    assert_eq!(restored(&disk, Which::Point(1)).unwrap(), contents(&db));
    db.close().unwrap();
}

#[test]
fn a_repository_is_of_one_lineage_of_one_database() {
    let disk = MemStorage::default();
    let db = open(&disk, DB);
    fill(&db, 0, 100, 1);
    db.backup_on(&disk, REPO, |_| {}).unwrap();
    let other = open(&disk, "other.azk");
    let refused = |db: &Db, part: &str| match db.backup_on(&disk, REPO, |_| {}) {
        Err(Error::Invalid { detail }) => assert!(detail.contains(part), "{detail}"),
        other => panic!("{other:?}"),
    };
    refused(&other, "another database");
    db.copy_to_on(&disk, "copy.azk", |_| {}).unwrap();
    Repository::open_on(&disk, REPO).unwrap().restore(Which::Newest, "again.azk", |_| {}).unwrap();
    for path in ["copy.azk", "again.azk"] {
        let copy = open(&disk, path);
        refused(&copy, "another lineage");
        fill(&copy, 0, 50, 2);
        let repository = format!("saved {path}");
        copy.backup_on(&disk, &repository, |_| {}).unwrap();
        let lineage = copy.engine.store.lineage;
        copy.close().unwrap();
        // It is kept by every checkpoint, and by opening.
        let copy = open(&disk, path);
        assert!(lineage != 0 && copy.engine.store.lineage == lineage);
        assert_eq!(copy.engine.store.file_id, db.engine.store.file_id);
        copy.backup_on(&disk, &repository, |_| {}).unwrap();
    }
    for path in [DB, "other.azk", REPO] {
        let there = db.copy_to_on(&disk, path, |_| {});
        assert!(path == REPO || matches!(there, Err(Error::Open { .. })), "{path}: {there:?}");
    }
    assert!(matches!(Repository::open_on(&disk, "nowhere"), Err(Error::Open { .. })));
}

/// Records of about 3 MB, at 10 MB a second.
#[test]
fn a_copy_with_a_limit_takes_its_time_and_is_the_same() {
    let dir = std::env::temp_dir().join(format!("azekura-slowly-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let db = Options::new().memory_bytes(8 << 20).open(dir.join("db.azk")).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    t.put_many((0..3000u32).map(|i| (i.to_be_bytes(), [i as u8; 1000]))).unwrap();
    db.compact().unwrap();
    let options = |rate| CopyOptions { bytes_per_second: Some(rate) };
    let seconds = |work: &mut dyn FnMut()| {
        let began = std::time::Instant::now();
        work();
        began.elapsed().as_secs_f64()
    };
    let (copy, mut stream, mut bytes) = (dir.join("copy.azk"), Vec::new(), 0);
    let slow = 10_000_000;
    let took = seconds(&mut || db.copy_to_with(&copy, options(slow), |step| bytes = step.total).unwrap());
    let least = bytes as f64 / slow as f64 * 0.8;
    assert!(bytes > 2_500_000 && took > least, "{took} s for {bytes} bytes");
    let took = seconds(&mut || bytes = db.backup_to_with(&mut stream, options(slow), |_| {}).unwrap().bytes);
    assert!(took > least, "{took} s for {bytes} bytes");
    let saved = dir.join("saved");
    let took = seconds(&mut || bytes = db.backup_with(&saved, options(slow), |_| {}).unwrap().bytes);
    assert!(took > least, "{took} s for {bytes} bytes");
    // What is there already costs nothing: at this rate it would be ten minutes.
    let mut again = u64::MAX;
    let took =
        seconds(&mut || again = db.backup_with(&saved, options(slow / 2000), |_| {}).unwrap().new_bytes);
    assert!(took < 60.0 && again == 0, "{took} s for {again} bytes");
    let copied = Options::new().open(&copy).unwrap().open_table("t").unwrap();
    assert!((0..3000u32).all(|i| copied.get(i.to_be_bytes()).unwrap() == Some(vec![i as u8; 1000])));
    assert!(matches!(db.backup_with(&saved, options(0), |_| {}), Err(Error::Invalid { .. })));
    drop((copied, t));
    db.close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_stream_is_restored_whole_or_not_at_all() {
    let disk = MemStorage::default();
    let db = open(&disk, DB);
    fill(&db, 0, 200, 1);
    let mut stream = Vec::new();
    let info = db.backup_to(&mut stream, |_| {}).unwrap();
    let restore = |mut bytes: &[u8]| restore_stream_on(&disk, &mut bytes, OUT, |_| {});
    for end in 0..stream.len() {
        assert!(matches!(restore(&stream[..end]), Err(Error::Corrupt { .. })), "cut at {end}");
        assert_eq!(names(&disk, ""), [DB]);
    }
    for at in 0..stream.len() {
        let mut bad = stream.clone();
        bad[at] ^= 0x40;
        assert!(restore(&bad).is_err(), "flipped at {at}");
        assert_eq!(names(&disk, ""), [DB]);
    }
    let mut longer = stream.clone();
    longer.push(0);
    assert!(matches!(restore(&longer), Err(Error::Corrupt { .. })));
    assert_eq!(restore(&stream).unwrap().point, info);
    let out = open(&disk, OUT);
    assert_eq!(contents(&out), contents(&db));
    assert!(matches!(restore(&stream), Err(Error::Open { .. })), "there is something of that name");
}

#[test]
fn what_is_not_kept_goes_and_the_rest_stays_whole() {
    let disk = MemStorage::default();
    let db = open(&disk, DB);
    let mut expected = Vec::new();
    for tag in 0..4u8 {
        fill(&db, u32::from(tag) * 100, 2000, tag);
        db.compact().unwrap();
        db.backup_on(&disk, REPO, |_| {}).unwrap();
        expected.push(contents(&db));
    }
    let repository = Repository::open_on(&disk, REPO).unwrap();
    let keep: Keep = "2".parse().unwrap();
    // A backup is at work.
    let busy = repository.lock(false).unwrap();
    assert!(matches!(repository.prune(&keep, |_| {}), Err(Error::Locked { .. })));
    drop(busy);
    // One that was cut off has left this.
    for left in
        ["saved/chunks/0000000000000000-r1-0-00.new-77", "saved/points/5.new-77", "saved/repository.new-77"]
    {
        disk.open(Path::new(left), OpenMode::CreateNew).unwrap();
    }
    let path = repository.point(1);
    let whole = bytes_of(&disk, &path);
    set_bytes(&disk, &path, &whole[1..]);
    let before = names(&disk, "saved/chunks");
    assert!(matches!(repository.prune(&keep, |_| {}), Err(Error::Corrupt { .. })));
    assert_eq!(names(&disk, "saved/chunks"), before, "nothing is removed while a point cannot be read");
    set_bytes(&disk, &path, &whole);
    let report = repository.prune(&keep, |_| {}).unwrap();
    assert_eq!((report.kept, report.removed), (vec![3, 4], vec![1, 2]));
    assert!(names(&disk, "saved/chunks").len() < before.len());
    assert_eq!(names(&disk, "saved/points"), ["3", "4"]);
    assert_eq!(names(&disk, "saved"), ["repository"]);
    let verified = repository.verify(|_| {}).unwrap();
    assert_eq!((verified.points, verified.unused, verified.problems), (2, 0, Vec::new()));
    for n in [3, 4] {
        assert_eq!(restored(&disk, Which::Point(n)).unwrap(), expected[usize::try_from(n).unwrap() - 1]);
    }
    assert_eq!(db.backup_on(&disk, REPO, |_| {}).unwrap().point, 5);
}

#[test]
fn a_backup_beside_writers_is_one_commit() {
    let disk = MemStorage::default();
    let options = Options::new().memtable_bytes(64 << 10).memory_bytes(8 << 20).large_value_bytes(256);
    let db = Db::open_on(&disk, DB, options.durability(Durability::Eventual)).unwrap();
    let (a, b) = (db.table("a", TableKind::Ordered).unwrap(), db.table("b", TableKind::Hash).unwrap());
    let stop = std::sync::atomic::AtomicBool::new(false);
    let at_most = |n: u64| n % 97;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1u64.. {
                let mut txn = db.write();
                let value = vec![n as u8; if n.is_multiple_of(5) { 700 } else { 30 }];
                txn.put(&a, &at_most(n).to_be_bytes(), &value).unwrap();
                txn.put(&b, &at_most(n).to_be_bytes(), &value).unwrap();
                txn.put(&a, b"newest", &n.to_be_bytes()).unwrap();
                txn.put(&b, b"newest", &n.to_be_bytes()).unwrap();
                txn.commit().unwrap();
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
        for n in 1..=8 {
            let report = db.backup_on(&disk, REPO, |_| {}).unwrap();
            assert_eq!(report.point, n);
            db.copy_to_on(&disk, OUT, |_| {}).unwrap();
            let copy = contents(&open(&disk, OUT));
            disk.remove(Path::new(OUT)).unwrap();
            for found in [restored(&disk, Which::Point(n)).unwrap(), copy] {
                assert_eq!(found["a"], found["b"], "point {n}");
                let newest =
                    found["a"].get(&b"newest"[..]).map(|v| u64::from_be_bytes(v[..].try_into().unwrap()));
                let key = newest.map(|newest| at_most(newest).to_be_bytes());
                let last = key.and_then(|key| found["a"].get(&key[..]));
                assert_eq!(last.map(|v| v[0]), newest.map(|n| n as u8));
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    db.close().unwrap();
}
