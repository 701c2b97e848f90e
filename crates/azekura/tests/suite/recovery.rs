//! Orders of events that recovery must survive, each of which once broke it or nearly did.

use azekura::{Db, Durability, Error, Options, TableKind, WriteOptions};
use sim::disk::{Call, Disk, Effect, Fault, Keep, Plan};
use sim::judge::{self, Setting};
use sim::rng::Rng;
use sim::watchdog::Watchdog;
use std::io::ErrorKind;
use std::time::Duration;

const PATH: &str = "recovery.azk";

fn small() -> Options {
    let options = Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).background_merges(false);
    options.eventual_delay(Duration::from_secs(60))
}

fn cut(disk: &Disk) -> Disk {
    disk.after_cut(Keep::None, &mut Rng(1))
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng(seed);
    (0..len.div_ceil(8)).flat_map(|_| rng.number().to_le_bytes()).take(len).collect()
}

fn check(db: &Db) {
    let report = db.check(|_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// A value segment is closed and its end given back, and the log takes that place, before any
/// checkpoint says so: the log's own words about the segment's extent are out of date then.
#[test]
fn the_end_of_a_closed_value_segment_is_used_by_the_log() {
    let options = || Options::new().background_merges(false).eventual_delay(Duration::from_secs(60));
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    for i in 0..7u64 {
        t.put(&i.to_be_bytes(), &noise(i, 10 << 20)).unwrap();
    }
    for i in 100..600u64 {
        t.put(&i.to_be_bytes(), &noise(i, 1000)).unwrap();
    }
    let disk = cut(&disk);
    for _ in 0..2 {
        let db = Db::open_on(&disk, PATH, options()).unwrap();
        let t = db.open_table("t").unwrap();
        for i in 0..7u64 {
            assert!(t.get(&i.to_be_bytes()).unwrap().unwrap() == noise(i, 10 << 20));
        }
        for i in 100..600u64 {
            assert!(t.get(&i.to_be_bytes()).unwrap().unwrap() == noise(i, 1000));
        }
        check(&db);
    }
}

/// The values of a dropped table make room for others, though the log still speaks of them.
#[test]
fn the_values_of_a_dropped_table_make_room() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, small()).unwrap();
    let kept = db.create_table("kept", TableKind::Hash).unwrap();
    for round in 0..4u64 {
        let gone = db.create_table("gone", TableKind::Ordered).unwrap();
        let mut txn = db.write();
        txn.put(&gone, b"k", &noise(round, 20_000)).unwrap();
        txn.put(&kept, &round.to_be_bytes(), b"small").unwrap();
        txn.commit().unwrap();
        db.drop_table("gone").unwrap();
        kept.put(&(100 + round).to_be_bytes(), &noise(round, 30_000)).unwrap();
    }
    let disk = cut(&disk);
    for _ in 0..2 {
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let kept = db.open_table("kept").unwrap();
        for round in 0..4u64 {
            assert_eq!(kept.get(&round.to_be_bytes()).unwrap().unwrap(), b"small");
            assert!(kept.get(&(100 + round).to_be_bytes()).unwrap().unwrap() == noise(round, 30_000));
        }
        check(&db);
    }
}

/// A snapshot keeps the places of a run that compaction has moved in part, and merges replaced then.
#[test]
fn a_snapshot_outlives_the_moving_of_its_runs() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, small()).unwrap();
    let a = db.create_table("a", TableKind::Ordered).unwrap();
    let b = db.create_table("b", TableKind::Ordered).unwrap();
    let fill = |t: &azekura::Table, seed: u64, n: u64| {
        let mut txn = db.write();
        (0..n).for_each(|i| txn.put(t, &i.to_be_bytes(), &noise(seed + i, 500)).unwrap());
        txn.commit().unwrap();
        db.compact().unwrap();
    };
    // `a` stands before `b`; when it is gone, `b` moves down piece by piece.
    fill(&a, 1, 1000);
    fill(&b, 100_000, 4000);
    let mut cursor = b.cursor().unwrap();
    assert!(cursor.next().unwrap().is_some());
    a.clear().unwrap();
    db.shrink(|_| {}).unwrap();
    for round in 0..3 {
        fill(&b, 200_000 + round, 4000);
        fill(&a, 300_000 + round, 3000);
        db.shrink(|_| {}).unwrap();
    }
    let mut n = 1;
    while let Some((key, value)) = cursor.next().unwrap() {
        let i = u64::from_be_bytes(key.try_into().unwrap());
        assert!(value.bytes().unwrap() == noise(100_000 + i, 500), "record {i}");
        n += 1;
    }
    assert_eq!(n, 4000);
    drop(cursor);
    db.shrink(|_| {}).unwrap();
    check(&db);
}

/// A large value that nobody refers to waits in memory when the database is closed.
#[test]
fn closing_with_a_value_of_a_transaction_that_was_given_up() {
    let watchdog = Watchdog::start(20);
    watchdog.at("closing");
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, small()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put(b"a", b"b").unwrap();
    db.flush().unwrap();
    let mut txn = db.write();
    txn.put(&t, b"large", &noise(1, 50_000)).unwrap();
    txn.rollback();
    drop(t);
    db.close().unwrap();
    let db = Db::open_on(&disk, PATH, small()).unwrap();
    assert_eq!(db.open_table("t").unwrap().count().unwrap(), 1);
    check(&db);
}

/// What `flush` calls durable survives, though no log was written.
#[test]
fn a_flush_is_durable_when_it_returns() {
    for _ in 0..30 {
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, small().durability(Durability::Eventual)).unwrap();
        let t = db.create_table("t", TableKind::Hash).unwrap();
        t.put(b"k", b"v").unwrap();
        db.flush().unwrap();
        let disk = cut(&disk);
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        assert_eq!(db.open_table("t").unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    }
}

/// One thread waits for a sync while another's, of the same records, fails.
#[test]
fn nobody_is_told_of_durability_by_a_sync_that_failed_for_another() {
    let watchdog = Watchdog::start(30);
    for round in 0..10 {
        watchdog.at(format!("round {round}"));
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let t = db.create_table("t", TableKind::Hash).unwrap();
        t.put(b"first", b"").unwrap();
        disk.set_fault(Some(Fault { call: Call::Write, nth: 1, forever: true, effect: Effect::Error(5) }));
        let eventual = WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() };
        let mut txn = db.write_with(eventual);
        txn.put(&t, b"k", b"v").unwrap();
        txn.commit().unwrap();
        disk.set_delay(Duration::from_millis(10));
        std::thread::scope(|s| {
            for i in 0..4u8 {
                let (db, t) = (&db, &t);
                s.spawn(move || {
                    let told = if i % 2 == 0 { db.sync() } else { t.put(&[i], b"") };
                    assert!(told.is_err(), "thread {i} was told that its commit is durable");
                });
            }
        });
    }
}

/// A range delete in the log alone, then in a run alone, over records in older runs.
#[test]
fn range_deletes_survive() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, small()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put_many((0..2000u64).map(|i| (i.to_be_bytes(), noise(i, 100)))).unwrap();
    db.flush().unwrap();
    let (low, high) = (500u64.to_be_bytes(), 1500u64.to_be_bytes());
    t.remove_range(low..high).unwrap();
    let disk = cut(&disk);
    for _ in 0..3 {
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        assert_eq!(db.open_table("t").unwrap().cursor().unwrap().owned().count(), 1000);
        check(&db);
        db.flush().unwrap();
    }
}

/// A sync fails, the process ends, and the next one finds the lost bytes still in the system's cache:
/// what it builds on them must survive the power cut that shows that they were never written.
#[test]
fn bytes_of_a_failed_sync_are_not_built_upon() {
    for call in [Call::Sync, Call::Write] {
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        t.put(b"a", b"1").unwrap();
        // Two frames of the log are written, and then synced in vain.
        disk.set_fault(Some(Fault { call: Call::Sync, nth: 1, forever: false, effect: Effect::Error(5) }));
        assert!(t.put_many((0..1400u64).map(|i| (i.to_be_bytes(), noise(i, 900)))).is_err());
        drop((t, db));
        let disk = disk.after_kill();
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let t = db.open_table("t").unwrap();
        let seen = t.count().unwrap();
        if call == Call::Write {
            t.put(b"b", b"2").unwrap();
        } else {
            db.sync().unwrap();
        }
        let disk = cut(&disk);
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let t = db.open_table("t").unwrap();
        assert_eq!(t.count().unwrap(), seen + u64::from(call == Call::Write), "{call:?}");
    }
}

/// A power cut while the database is being opened leaves garbage in a sector that was being written: none
/// of them may hold an acknowledged commit, though the log's last frames have to be secured.
#[test]
fn opening_writes_over_nothing_that_counts() {
    let quiet = Setting::QUIET;
    let disk = Disk::new();
    let db = quiet.open(&disk).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    for i in 0..3u8 {
        t.put(&[i], &noise(u64::from(i), 900)).unwrap();
    }
    let disk = cut(&disk);
    disk.record(1, 0);
    drop(quiet.open(&disk).unwrap());
    let moments = disk.moments();
    assert!(moments.len() > 2, "opening writes something");
    for moment in &moments {
        for choice in moment.disk.choices(Plan { subsets_max: 4, torn: true }) {
            let at = format!("cut at call {}, {choice:?}", moment.mark.calls);
            let db = quiet.open(&moment.disk.image(&choice)).unwrap_or_else(|e| panic!("{at}: {e}"));
            assert_eq!(db.open_table("t").unwrap().count().unwrap(), 3, "{at}");
            check(&db);
        }
    }
}

/// A process that dies again and again as soon as it has opened the file does not make it grow.
#[test]
fn opening_after_crashes_does_not_grow_the_file() {
    let disk = Disk::new();
    let db = Setting::QUIET.open(&disk).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put_many((0..50u64).map(|i| (i.to_be_bytes(), noise(i, 900)))).unwrap();
    let mut disk = cut(&disk);
    let mut len = 0;
    for round in 0..40 {
        let db = Setting::QUIET.open(&disk).unwrap();
        assert_eq!(db.open_table("t").unwrap().count().unwrap(), 50);
        disk = cut(&disk);
        let now = disk.used_blocks(judge::PATH).0;
        assert!(round < 4 || now <= len, "round {round}: {len} bytes, then {now}");
        len = len.max(now);
    }
}

/// A full disk is no reason not to open.
#[test]
fn a_crashed_database_opens_on_a_full_disk() {
    let disk = Disk::new();
    let db = Setting::QUIET.open(&disk).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put(b"k", b"v").unwrap();
    let disk = cut(&disk);
    disk.set_bytes_max(disk.used_blocks(judge::PATH).0);
    let db = Setting::QUIET.open(&disk).unwrap();
    let t = db.open_table("t").unwrap();
    assert_eq!(t.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    t.remove(b"k").expect_err("there is no room for a log");
    let db = Setting::QUIET.open(&cut(&disk)).unwrap();
    assert_eq!(db.open_table("t").unwrap().count().unwrap(), 1);
    check(&db);
}

/// Two power cuts tear one copy of the superblock each: whichever is whole must never be the one that
/// is written next.
#[test]
fn torn_superblocks_one_after_the_other() {
    let watchdog = Watchdog::start(20);
    for (n, m) in (1..36).flat_map(|n| (1..9).map(move |m| (n, m))) {
        watchdog.at(format!("cuts {n}, {m}"));
        let disk = Disk::new();
        disk.cut_after(n);
        let mut safe = Vec::new();
        if let Ok(db) = Db::open_on(&disk, PATH, small()) {
            for i in 0..4u8 {
                let name = format!("table {i}");
                let made = db.create_table(&name, TableKind::Hash).and_then(|t| t.put(&[i], b"v"));
                safe.extend(made.map(|()| name));
            }
        }
        disk.stop();
        let disk = disk.after_cut(Keep::Blocks(512), &mut Rng(n * 100 + m));
        disk.cut_after(m);
        if let Ok(db) = Db::open_on(&disk, PATH, small()) {
            let made = db.create_table("late", TableKind::Hash).and_then(|t| t.put(b"k", b"v"));
            safe.extend(made.map(|()| "late".to_owned()));
        }
        disk.stop();
        let disk = disk.after_cut(Keep::Blocks(512), &mut Rng(n * 100 + m));
        let db = Db::open_on(&disk, PATH, small()).unwrap_or_else(|e| panic!("cuts {n}, {m}: {e}"));
        for name in &safe {
            let count = db.open_table(name).and_then(|t| t.count());
            assert_eq!(count.ok(), Some(1), "cuts {n}, {m}: {name}");
        }
        check(&db);
    }
}

/// One thread makes a table; another finds it before that is durable, and commits to it.
#[test]
fn commits_to_a_table_that_another_thread_is_making() {
    for round in 0..150u64 {
        let disk = Disk::new();
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let base = db.create_table("base", TableKind::Hash).unwrap();
        base.put(b"a", b"a").unwrap();
        disk.cut_after(2 + round % 4);
        let told = std::thread::scope(|s| {
            s.spawn(|| db.create_table("new", TableKind::Hash).map(drop));
            let commit = || {
                let new = (0..20_000).find_map(|_| db.open_table("new").ok())?;
                let mut txn = db.write();
                txn.put(&new, b"k", b"v").unwrap();
                txn.put(&base, b"k", b"v").unwrap();
                txn.commit().ok()
            };
            s.spawn(commit).join().unwrap().is_some()
        });
        disk.stop();
        drop((base, db));
        let db = Db::open_on(&cut(&disk), PATH, small()).unwrap();
        let there = |name: &str| db.open_table(name).is_ok_and(|t| t.contains(b"k").unwrap());
        assert_eq!(there("base"), there("new"), "round {round}: a commit is torn");
        assert!(!told || there("new"), "round {round}: an acknowledged commit is lost");
    }
}

/// All that follows in the log hangs on a jump from one segment to the next; it stands twice, so
/// that one damaged block of it costs nothing.
#[test]
fn either_copy_of_a_jump_is_enough() {
    const BLOCK: usize = 4096;
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, Options::new().background_merges(false)).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let n = 200u64;
    for i in 0..n {
        t.put(&i.to_be_bytes(), &noise(i, 3000)).unwrap();
    }
    let disk = disk.after_kill();
    drop((t, db));
    let bytes = disk.bytes(PATH);
    let is_jump = |block: &[u8]| block[4..8] == *b"AZLF" && block[40] == 1;
    let jumps: Vec<usize> =
        bytes.chunks_exact(BLOCK).enumerate().filter(|(_, b)| is_jump(b)).map(|(i, _)| i).collect();
    assert!(jumps.len() >= 4 && jumps.len().is_multiple_of(2), "the log has jumped twice or more: {jumps:?}");
    for pair in jumps.chunks_exact(2) {
        assert_eq!(pair[0] + 1, pair[1]);
    }
    for damaged in jumps {
        let disk = disk.after_kill();
        disk.patch(PATH, (damaged * BLOCK) as u64, &noise(7, BLOCK));
        let db = Db::open_on(&disk, PATH, small()).unwrap();
        let t = db.open_table("t").unwrap();
        for i in 0..n {
            assert!(
                t.get(&i.to_be_bytes()).unwrap().is_some_and(|v| v == noise(i, 3000)),
                "{i}, block {damaged}"
            );
        }
        check(&db);
    }
}

/// A crash while an empty file becomes a database leaves a database or an empty file.
#[test]
fn an_empty_file_becomes_a_database_whole_or_not_at_all() {
    for n in 1.. {
        let disk = Disk::with_file(PATH, b"");
        disk.cut_after(n);
        let opened = Db::open_on(&disk, PATH, small()).and_then(|db| db.close());
        assert_eq!(opened.is_err(), disk.is_dead(), "cut {n}: {opened:?}");
        if !disk.is_dead() {
            assert!(n > 3, "cuts came");
            break;
        }
        for seed in 0..60 {
            let keep = [Keep::None, Keep::All, Keep::Prefix, Keep::Blocks(512), Keep::Blocks(4096)][seed % 5];
            let disk = disk.after_cut(keep, &mut Rng(seed as u64));
            let db = Db::open_on(&disk, PATH, small())
                .unwrap_or_else(|e| panic!("cut {n}, {keep:?}, seed {seed}: {e}"));
            db.table("t", TableKind::Hash).unwrap().put(b"a", b"1").unwrap();
            check(&db);
            db.close().unwrap();
            let db = Db::open_on(&cut(&disk), PATH, small()).unwrap();
            assert_eq!(db.open_table("t").unwrap().get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
        }
    }
    // What is somebody else's stays as it is.
    for (bytes, length) in [(&b"hello"[..], 5), (&[0; 8191], 8191), (&[0; 1 << 14], 1 << 14)] {
        let disk = Disk::with_file(PATH, bytes);
        let opened = Db::open_on(&disk, PATH, small());
        assert!(matches!(opened.err(), Some(Error::NotADatabase { .. })), "{length}");
        assert_eq!(disk.bytes(PATH), bytes);
    }
}

/// Only who wants a database to be made gets one of an empty file; for others it is no database.
#[test]
fn an_empty_file_stays_empty_if_nothing_is_to_be_made() {
    for bytes in [&[][..], &[0; 8192]] {
        let disk = Disk::with_file(PATH, bytes);
        for read_only in [false, true] {
            let opened = Db::open_on(&disk, PATH, small().create(false).read_only(read_only));
            assert!(matches!(opened.err(), Some(Error::NotADatabase { .. })), "{} bytes", bytes.len());
            assert_eq!(disk.bytes(PATH), bytes);
        }
        Db::open_on(&disk, PATH, small()).unwrap();
    }
}

/// What the system refuses is said with the file's name.
#[test]
fn an_error_of_the_system_while_opening_names_the_file() {
    let path = std::env::temp_dir().join(format!("azekura-no-such-folder-{}/db.azk", std::process::id()));
    let refused = |opened: azekura::Result<Db>| match opened.err() {
        Some(Error::Open { path: named, detail, .. }) => {
            assert!(named == path.display().to_string(), "{named}: {detail}")
        }
        other => panic!("{other:?}"),
    };
    refused(Db::open(&path, Options::new()));
    let kind = |opened: azekura::Result<Db>| opened.err().map(|e| std::io::Error::from(e).kind());
    assert_eq!(kind(Db::open(&path, Options::new())), Some(ErrorKind::NotFound));
    let disk = Disk::new();
    disk.set_fault(Some(Fault { call: Call::Name, nth: 1, forever: false, effect: Effect::Error(13) }));
    let opened = Db::open_on(&disk, PATH, small());
    assert!(matches!(opened.err(), Some(Error::Open { path, .. }) if path == PATH));
    let disk = Disk::new();
    assert_eq!(kind(Db::open_on(&disk, PATH, small().create(false))), Some(ErrorKind::NotFound));
    assert_eq!(kind(Db::open_on(&disk, PATH, small().read_only(true))), Some(ErrorKind::NotFound));
    Db::open_on(&disk, PATH, small()).unwrap();
    assert_eq!(kind(Db::open_on(&disk, PATH, small().exclusive(true))), Some(ErrorKind::AlreadyExists));
    disk.set_fault(Some(Fault { call: Call::Name, nth: 1, forever: false, effect: Effect::Error(13) }));
    assert_eq!(kind(Db::open_on(&disk, "other", small())), Some(ErrorKind::PermissionDenied));
}
