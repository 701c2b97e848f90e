//! Followers: handles that read a file while another handle writes it. Both are of this process here, which
//! the system's locks tell apart as well as two processes. `sim followers` has real ones, and kills them.

use crate::common::Rng;
use azekura::storage::{MemStorage, OpenMode, OsStorage, Storage};
use azekura::{Db, Durability, Error, Freshness, Options, ReadTxn, Table, TableKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn path(name: &str) -> PathBuf {
    crate::common::watch(Duration::from_secs(120));
    std::env::temp_dir().join(format!("azekura-follow-{}-{name}.azk", std::process::id()))
}

/// Without threads, so that a checkpoint comes when a test says so.
fn writer(path: &Path) -> Db {
    Options::new().memory_bytes(8 << 20).threads(false).open(path).unwrap()
}

fn follower(path: &Path, freshness: Freshness) -> Db {
    Options::new().memory_bytes(8 << 20).freshness(freshness).open(path).unwrap()
}

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// The value of a key in some round: one in ten is large.
fn value(i: u64, round: u64) -> Vec<u8> {
    let len = if i.is_multiple_of(10) { 2000 + i as usize % 3000 } else { 20 + i as usize % 60 };
    let mut rng = Rng::new(i << 20 | round);
    (0..len).map(|_| rng.number() as u8).collect()
}

const RECORDS: u64 = 5_000;

fn fill(t: &Table, round: u64) {
    t.put_many((0..RECORDS).map(|i| (key(i), value(i, round)))).unwrap();
}

fn has_round(db: &Db, round: u64) {
    let (txn, t) = (db.read(), db.open_table("t").unwrap());
    for i in (0..RECORDS).step_by(3) {
        assert_eq!(txn.get(&t, key(i)).unwrap(), Some(value(i, round)), "record {i} of round {round}");
    }
}

#[test]
fn a_follower_sees_checkpoints_or_every_commit() {
    let path = path("sees");
    let db = writer(&path);
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("a", "1").unwrap();
    db.flush().unwrap();
    let at_checkpoint = follower(&path, Freshness::Checkpoint);
    let with_log = follower(&path, Freshness::Log);
    let get =
        |db: &Db, key: &str| db.open_table("t")?.get(key).map(|v| v.map(|v| String::from_utf8(v).unwrap()));
    for db in [&at_checkpoint, &with_log] {
        assert_eq!(get(db, "a").unwrap().as_deref(), Some("1"));
        assert!(matches!(db.open_table("t").unwrap().put("x", "y"), Err(Error::ReadOnly)));
        assert!(matches!(db.table("new", TableKind::Hash), Err(Error::ReadOnly)));
        assert!(matches!(db.flush(), Err(Error::ReadOnly)));
    }
    t.put("a", "2").unwrap();
    t.put("b", "3").unwrap();
    assert_eq!(get(&at_checkpoint, "a").unwrap().as_deref(), Some("1"));
    assert_eq!(get(&with_log, "a").unwrap().as_deref(), Some("2"));
    assert_eq!(get(&with_log, "b").unwrap().as_deref(), Some("3"));
    let before = (with_log.read(), with_log.open_table("t").unwrap());
    t.remove("a").unwrap();
    t.put("large", vec![7; 100_000]).unwrap();
    assert_eq!(before.0.get(&before.1, "a").unwrap().as_deref(), Some(&b"2"[..]), "a snapshot stays");
    assert_eq!(get(&with_log, "a").unwrap(), None);
    assert_eq!(with_log.open_table("t").unwrap().get("large").unwrap(), Some(vec![7; 100_000]));
    db.create_table("second", TableKind::Hash).unwrap().put("k", "v").unwrap();
    assert_eq!(with_log.tables().len(), 2);
    assert_eq!(at_checkpoint.tables().len(), 1);
    db.flush().unwrap();
    assert_eq!(get(&at_checkpoint, "a").unwrap(), None);
    assert_eq!(at_checkpoint.tables(), with_log.tables());
    assert_eq!(before.0.get(&before.1, "a").unwrap().as_deref(), Some(&b"2"[..]));
    db.drop_table("t").unwrap();
    assert!(matches!(get(&at_checkpoint, "b"), Err(Error::NoSuchTable { .. })));
    assert!(matches!(with_log.read().get(&before.1, "b"), Err(Error::NoSuchTable { .. })));
    assert_eq!(before.0.get(&before.1, "b").unwrap().as_deref(), Some(&b"3"[..]));
    drop((before, at_checkpoint, with_log, t));
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn every_commit_is_seen_over_segments_of_the_log_and_many_checkpoints() {
    let path = path("log");
    see_every_commit(&OsStorage, &path, 200);
    std::fs::remove_file(&path).unwrap();
    see_every_commit(&MemStorage::default(), &path, 2000);
}

fn see_every_commit(storage: &dyn Storage, path: &Path, commits: u64) {
    let options = || Options::new().memory_bytes(8 << 20).threads(false);
    let db = Db::open_on(storage, path, options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let follower = Db::open_on(storage, path, options().freshness(Freshness::Log)).unwrap();
    let (mut rng, mut held) = (Rng::new(5), None);
    for n in 0..commits {
        let len = if rng.one_in(20) { 30_000 } else { 100 };
        t.put("n", n.to_le_bytes()).unwrap();
        t.put(key(n % 50), vec![n as u8; len]).unwrap();
        match rng.below(60) {
            0 => db.flush().unwrap(),
            1 => db.compact().unwrap(),
            2 => drop(db.shrink(|_| {}).unwrap()),
            _ => {}
        }
        let followed = follower.open_table("t").unwrap();
        assert_eq!(followed.get("n").unwrap().as_deref(), Some(&n.to_le_bytes()[..]));
        assert_eq!(followed.get(key(n % 50)).unwrap(), Some(vec![n as u8; len]), "commit {n}");
        if rng.one_in(30) {
            held = Some((n, len, follower.read()));
        }
        if let Some((n, len, txn)) = &held {
            assert_eq!(txn.get(&followed, "n").unwrap().as_deref(), Some(&n.to_le_bytes()[..]));
            assert_eq!(txn.get(&followed, key(n % 50)).unwrap(), Some(vec![*n as u8; *len]), "held {n}");
        }
    }
    assert_eq!(follower.check(|_| {}).unwrap().problems, Vec::<String>::new());
    drop((held, follower, t));
    assert_eq!(db.stats().pins, []);
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
    db.close().unwrap();
}

#[test]
fn a_pinned_checkpoint_stays_while_the_writer_replaces_compacts_and_shrinks() {
    for mapped in [true, false] {
        let path = path(if mapped { "pinned" } else { "pinned-cached" });
        let db = writer(&path);
        let t = db.create_table("t", TableKind::Hash).unwrap();
        fill(&t, 0);
        db.flush().unwrap();
        let follower = Options::new().memory_bytes(8 << 20).follow(true).mapped(mapped).open(&path).unwrap();
        let followed = follower.open_table("t").unwrap();
        has_round(&follower, 0);
        assert_eq!(db.stats().pins.len(), 1);
        let pin = db.stats().pins[0];
        assert_eq!((pin.bytes, pin.age, pin.revoked), (Some(0), Some(Duration::ZERO), Some(false)));
        let held = follower.read();
        let large = followed.get_ref(key(10)).unwrap().unwrap();
        for round in 1..12 {
            fill(&t, round);
            db.compact().unwrap();
            db.shrink(|_| {}).unwrap();
            has_round(&follower, round);
        }
        for i in 0..RECORDS {
            assert_eq!(held.get(&followed, key(i)).unwrap(), Some(value(i, 0)), "record {i}");
        }
        assert_eq!(&*large, value(10, 0));
        let stats = db.stats();
        assert_eq!(stats.pins.len(), 2, "that of the snapshot, and the newest: {:?}", stats.pins);
        assert!(stats.pins[0].checkpoint < stats.pins[1].checkpoint);
        let (age, kept) = (stats.pins[0].age.unwrap(), stats.pins[0].bytes.unwrap());
        assert!(age > Duration::ZERO && kept > 1 << 20, "{:?}", stats.pins);
        assert!(stats.pinned_bytes >= kept);
        // Twelve rounds of the same size: what came and went meanwhile was not kept.
        assert!(stats.file_bytes < 6 * kept, "{stats:?}");
        let seen = Options::new().memory_bytes(8 << 20).follow(true).open(&path).unwrap().stats();
        let known: Vec<_> = seen.pins.iter().map(|pin| (pin.checkpoint, pin.age, pin.bytes)).collect();
        let [old, newest] = [0, 1].map(|n| stats.pins[n].checkpoint);
        assert_eq!(known, [(old, None, None), (newest, Some(Duration::ZERO), Some(0))], "from outside");
        assert!(seen.pins.iter().all(|pin| pin.revoked == Some(false)), "{:?}", seen.pins);
        assert!(
            stats.pinned_bytes <= seen.file_bytes - seen.live_bytes,
            "{} of {seen:?}",
            stats.pinned_bytes
        );
        drop((large, held));
        has_round(&follower, 11);
        assert_eq!((db.stats().pinned_bytes, db.stats().pins.len()), (0, 1));
        drop((followed, follower));
        db.shrink(|_| {}).unwrap();
        assert_eq!(db.stats().pins, []);
        let bytes = db.stats().file_bytes;
        assert!(bytes + (1 << 20) < stats.file_bytes, "{bytes} of {}", stats.file_bytes);
        assert!(db.check(|_| {}).unwrap().problems.is_empty());
        drop(t);
        db.close().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

/// A writer that was killed leaves a log, and the next one meets pins of checkpoints older than its first.
#[test]
fn a_follower_outlives_writers_and_writes_nothing_itself() {
    let (path, copy) = (path("outlives"), path("outlives-copy"));
    let db = writer(&path);
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    fill(&t, 0);
    db.flush().unwrap();
    t.put("new", "in the log").unwrap();
    // What a killed writer leaves.
    std::fs::copy(&path, &copy).unwrap();
    drop(t);
    db.close().unwrap();
    let bytes = std::fs::read(&copy).unwrap();
    let old = follower(&copy, Freshness::Checkpoint);
    let new = follower(&copy, Freshness::Log);
    let t = |db: &Db| db.open_table("t").unwrap();
    assert_eq!(t(&old).get("new").unwrap(), None);
    assert_eq!(t(&new).get("new").unwrap().as_deref(), Some(&b"in the log"[..]));
    has_round(&new, 0);
    assert_eq!(std::fs::read(&copy).unwrap(), bytes);
    let held = (old.read(), t(&old));
    for life in 1..4 {
        let db = writer(&copy);
        fill(&t(&db), life);
        db.flush().unwrap();
        db.shrink(|_| {}).unwrap();
        has_round(&old, life);
        assert_eq!(t(&new).get("new").unwrap().as_deref(), Some(&b"in the log"[..]));
        for i in (0..RECORDS).step_by(7) {
            assert_eq!(held.0.get(&held.1, key(i)).unwrap(), Some(value(i, 0)), "life {life}");
        }
        db.close().unwrap();
        has_round(&new, life);
    }
    let long = std::fs::metadata(&copy).unwrap().len();
    drop((held, old, new));
    writer(&copy).close().unwrap();
    let db = writer(&copy);
    db.shrink(|_| {}).unwrap();
    db.close().unwrap();
    let short = std::fs::metadata(&copy).unwrap().len();
    assert!(short * 3 < long * 2, "{short} of {long} bytes");
    std::fs::remove_file(&copy).unwrap();
    std::fs::remove_file(&path).unwrap();
}

/// The log goes on in the same chain, with frames of a checkpoint that the check does not look at.
#[test]
fn a_check_is_not_disturbed_by_a_writer_that_goes_on() {
    let path = path("check");
    let db = writer(&path);
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    fill(&t, 0);
    db.flush().unwrap();
    t.put("in the log", "1").unwrap();
    let follower = follower(&path, Freshness::Log);
    let mut rounds = 0;
    let report = follower.check(|_| {
        if rounds < 3 {
            rounds += 1;
            t.put("in the log", "2").unwrap();
            db.create_table(&format!("table {rounds}"), TableKind::Hash).unwrap();
            db.flush().unwrap();
            t.put("in the log", "3").unwrap();
        }
    });
    let report = report.unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert!(rounds > 0, "the writer did not go on");
    assert!(report.log_commits >= 1, "{}", report.log_commits);
    drop((follower, t));
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

/// A superblock was lost, and a follower still reads what it named.
#[test]
fn a_number_that_is_pinned_is_not_given_again() {
    let (storage, path) = (MemStorage::default(), Path::new("lost.azk"));
    let open = || Db::open_on(&storage, path, Options::new().memory_bytes(8 << 20).threads(false));
    let db = open().unwrap();
    fill(&db.create_table("t", TableKind::Ordered).unwrap(), 0);
    db.flush().unwrap();
    db.compact().unwrap();
    db.close().unwrap();
    let file = storage.open(path, OpenMode::ReadOnly).unwrap();
    let number = || {
        let mut bytes = [0; 8];
        file.read_at(&mut bytes, 24).unwrap();
        u64::from_le_bytes(bytes)
    };
    let (lost, long) = (number() + 5, file.len().unwrap());
    file.pin(lost).unwrap();
    let db = open().unwrap();
    let t = db.open_table("t").unwrap();
    fill(&t, 1);
    db.flush().unwrap();
    assert!(number() > lost, "{} is not above {lost}", number());
    let kept = db.stats().pinned_bytes;
    db.compact().unwrap();
    db.shrink(|_| {}).unwrap();
    assert!(db.stats().pinned_bytes >= kept && file.len().unwrap() >= long);
    has_round(&db, 1);
    file.unpin(lost);
    assert_eq!(db.stats().pinned_bytes, 0);
    drop(t);
    db.close().unwrap();
    file.pin(number() + (1 << 40)).unwrap();
    assert!(matches!(open(), Err(Error::Open { .. })));
    file.unpin(number() + (1 << 40));
    open().unwrap().close().unwrap();
}

/// A frame whose write has stopped is looked at now and then. One that others know to be durable is damaged.
#[test]
fn a_frame_that_stays_torn_costs_little_and_a_damaged_one_is_noticed() {
    let (path, copy) = (path("torn"), path("torn-copy"));
    let db = writer(&path);
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("a", "1").unwrap();
    let before = std::fs::read(&path).unwrap();
    t.put_many((0..300).map(|i| (key(i), [7; 60]))).unwrap();
    let torn = std::fs::read(&path).unwrap();
    t.put("a", "2").unwrap();
    let later = std::fs::read(&path).unwrap();
    assert!(before.len() == torn.len() && torn.len() == later.len() && before[..8192] == later[..8192]);
    let at = 4096 * before.chunks(4096).zip(torn.chunks(4096)).position(|(a, b)| a != b).unwrap();
    let follow = || {
        std::fs::write(&copy, &before).unwrap();
        let follower = follower(&copy, Freshness::Log);
        let followed = follower.open_table("t").unwrap();
        assert_eq!(followed.get("a").unwrap().as_deref(), Some(&b"1"[..]));
        (follower, followed, std::fs::File::options().write(true).open(&copy).unwrap())
    };
    let (follower, followed, file) = follow();
    file.write_all_at(&torn[at..at + 4096], at as u64).unwrap();
    let read = |times: u32| {
        let (bytes, began) = (follower.stats().read_bytes, Instant::now());
        (0..times).for_each(|_| assert_eq!(followed.get(key(5)).unwrap(), None));
        (follower.stats().read_bytes - bytes, began.elapsed().as_millis() as u64)
    };
    let (one_look, _) = read(1);
    std::thread::sleep(Duration::from_millis(60));
    read(1);
    let (bytes, millis) = read(2000);
    assert!(one_look > 0 && bytes <= one_look * (millis / 10 + 4) * 2, "{bytes}, {one_look}, {millis} ms");
    file.write_all_at(&torn[at..], at as u64).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(followed.get(key(5)).unwrap().as_deref(), Some(&[7; 60][..]));
    drop((follower, followed));

    let (follower, followed, file) = follow();
    let mut damaged = later[at..].to_vec();
    damaged[5000] ^= 1;
    file.write_all_at(&damaged, at as u64).unwrap();
    for _ in 0..2 {
        assert!(matches!(followed.get("a"), Err(Error::Corrupt { .. })));
    }
    drop((follower, followed, t));
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&copy).unwrap();
}

/// A reader that has not ended yet.
struct Reader<'a>(&'a AtomicUsize);

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// With threads, so that checkpoints come whenever they like.
#[test]
fn readers_beside_a_busy_writer_see_whole_commits_in_their_order() {
    let path = path("busy");
    let options = Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10);
    let db = options.durability(Durability::Eventual).open(&path).unwrap();
    for name in ["a", "b"] {
        db.create_table(name, TableKind::Hash).unwrap();
    }
    // So that a checkpoint has them.
    db.flush().unwrap();
    let (until, readers) = (Instant::now() + Duration::from_secs(2), AtomicUsize::new(3));
    // On a busy machine it takes longer until they have seen so many states, and commits.
    let read = |freshness, states, commits| {
        let _reader = Reader(&readers);
        let (follower, mut before, mut seen) = (follower(&path, freshness), 0u64, 0);
        let (a, b) = (follower.open_table("a").unwrap(), follower.open_table("b").unwrap());
        while Instant::now() < until || seen < states || before < commits {
            let txn = follower.read();
            let n = |t| txn.get(t, "n").unwrap().map_or(0, |v| u64::from_le_bytes(v.try_into().unwrap()));
            let (x, y) = (n(&a), n(&b));
            assert_eq!(x, y, "a torn commit");
            assert!(x >= before, "{x} after {before}");
            seen += u64::from(x > before);
            before = x;
            for i in x.saturating_sub(20)..=x {
                let found = txn.get(&a, key(i % 3000)).unwrap();
                assert!(x == 0 || found == Some(value(i % 3000, i)), "{i} of {x}");
            }
            assert!(until.elapsed() < Duration::from_secs(60), "{before} commits, {seen} states");
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (a, b) = (db.open_table("a").unwrap(), db.open_table("b").unwrap());
            for n in 0.. {
                if readers.load(Ordering::Relaxed) == 0 {
                    break;
                }
                let mut txn = db.write();
                txn.put(&a, "n", u64::to_le_bytes(n)).unwrap();
                txn.put(&b, "n", u64::to_le_bytes(n)).unwrap();
                txn.put(&a, key(n % 3000), value(n % 3000, n)).unwrap();
                txn.commit().unwrap();
                if n % 100 == 0 {
                    db.sync().unwrap();
                }
            }
        });
        scope.spawn(|| read(Freshness::Log, 6, 101));
        scope.spawn(|| read(Freshness::Log, 6, 101));
        scope.spawn(|| read(Freshness::Checkpoint, 1, 1));
    });
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

/// A database whose commits follow from their numbers: commit `n` replaces the records of one window, and its
/// number. The windows take turns.
struct Windows;

impl Windows {
    const KEYS: u64 = 400;
    const EACH: u64 = 40;
    const TURNS: u64 = Windows::KEYS / Windows::EACH;

    fn commit(db: &Db, t: &Table, n: u64) {
        let mut txn = db.write();
        txn.put(t, "n", n.to_le_bytes()).unwrap();
        let first = n % Windows::TURNS * Windows::EACH;
        (first..first + Windows::EACH).for_each(|i| txn.put(t, key(i), value(i, n)).unwrap());
        txn.commit().unwrap();
    }

    /// The number of the newest commit in a snapshot.
    fn newest(txn: &ReadTxn, t: &Table) -> u64 {
        u64::from_le_bytes(txn.get(t, "n").unwrap().unwrap().try_into().unwrap())
    }

    /// A record of a snapshot, as of commit `n`, is that of the last commit that wrote it.
    fn check(txn: &ReadTxn, t: &Table, n: u64, i: u64) {
        let since = (n + Windows::TURNS - i / Windows::EACH) % Windows::TURNS;
        let expected = n.checked_sub(since).filter(|&m| m > 0).map(|m| value(i, m));
        assert!(txn.get(t, key(i)).unwrap() == expected, "record {i} of commit {n}");
    }
}

/// One of many followers: it takes snapshots until it has seen some states and the time is over, and holds
/// some of them while the writer goes on.
fn read_windows(path: &Path, me: u64, until: Instant) {
    const STATES_MIN: u64 = 3;
    let freshness = if me.is_multiple_of(2) { Freshness::Log } else { Freshness::Checkpoint };
    let options = Options::new().memory_bytes(8 << 20).freshness(freshness);
    let follower = options.mapped(!me.is_multiple_of(8)).open(path).unwrap();
    let (t, mut rng) = (follower.open_table("t").unwrap(), Rng::new(me + 1));
    let (mut before, mut states, mut held) = (0, 0, None);
    while Instant::now() < until || states < STATES_MIN {
        assert!(until.elapsed() < Duration::from_secs(60), "{states} states");
        let txn = follower.read();
        let n = Windows::newest(&txn, &t);
        assert!(n >= before, "commit {n} after {before}");
        states += u64::from(n > before);
        before = n;
        (0..20).for_each(|_| Windows::check(&txn, &t, n, rng.below(Windows::KEYS)));
        // Each held snapshot is read as a whole before another one takes its place.
        if held.is_none() || rng.one_in(20) {
            let old = held.replace((txn, n));
            old.iter().for_each(|(txn, n)| (0..Windows::KEYS).for_each(|i| Windows::check(txn, &t, *n, i)));
        }
        std::thread::sleep(Duration::from_millis(rng.below(5)));
    }
    held.iter().for_each(|(txn, n)| (0..Windows::KEYS).for_each(|i| Windows::check(txn, &t, *n, i)));
}

/// Many more than there are processors: each has a handle of its own, and so pins of its own.
#[test]
fn sixty_four_readers_beside_a_writer_that_compacts_and_shrinks_see_no_wrong_value() {
    const READERS: usize = 64;
    let path = path("many");
    let options = Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10);
    let db = options.durability(Durability::Eventual).open(&path).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    Windows::commit(&db, &t, 1);
    db.flush().unwrap();
    let (until, readers) = (Instant::now() + Duration::from_secs(2), AtomicUsize::new(READERS));
    let (mut pins_max, mut kept_max, mut shrunk) = (0, 0, 0);
    std::thread::scope(|scope| {
        for me in 0..READERS as u64 {
            let (path, readers) = (&path, &readers);
            scope.spawn(move || {
                let _reader = Reader(readers);
                read_windows(path, me, until);
            });
        }
        for n in 2.. {
            if readers.load(Ordering::Relaxed) == 0 {
                break;
            }
            Windows::commit(&db, &t, n);
            match n % 30 {
                0 => db.compact().unwrap(),
                10 => db.flush().unwrap(),
                20 => {
                    db.shrink(|_| {}).unwrap();
                    shrunk += 1;
                }
                _ => continue,
            }
            let stats = db.stats();
            (pins_max, kept_max) = (stats.pins.len().max(pins_max), stats.pinned_bytes.max(kept_max));
        }
    });
    assert!(pins_max > 2 && kept_max > 0 && shrunk > 0, "{pins_max}, {kept_max}, {shrunk}");
    assert_eq!((db.stats().pins, db.stats().pinned_bytes), (vec![], 0), "they have all gone");
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
    drop(t);
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let path = path("refused");
    assert!(matches!(Options::new().follow(true).open(&path), Err(Error::Open { .. })));
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(Options::new().follow(true).open(&path), Err(Error::NotADatabase { .. })));
    std::fs::remove_file(&path).unwrap();
    let db = writer(&path);
    let t = db.create_table("t", TableKind::Hash).unwrap();
    t.put("k", vec![1; 9000]).unwrap();
    db.flush().unwrap();
    let follower = follower(&path, Freshness::Log);
    let followed = follower.open_table("t").unwrap();
    let mut txn = follower.write();
    assert_eq!(txn.get(&followed, "k").unwrap(), Some(vec![1; 9000]));
    txn.put(&followed, "k", "x").unwrap();
    assert!(matches!(txn.commit(), Err(Error::ReadOnly)));
    follower.clone().close().unwrap();
    assert!(matches!(followed.get("k"), Err(Error::Closed)));
    assert!(matches!(follower.read().get(&followed, "k"), Err(Error::Closed)));
    drop((follower, followed, t));
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}
