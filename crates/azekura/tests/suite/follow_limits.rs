//! Followers of a writer with limits for what they keep: a pin that is not honoured any more gives
//! `SnapshotTooOld`, never a wrong value, and never damage.

use crate::common::Rng;
use azekura::storage::{MemStorage, Storage};
use azekura::{Db, Durability, Error, Freshness, Options, PinStats, ReadTxn, Table, TableKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn path(name: &str) -> PathBuf {
    crate::common::watch(Duration::from_secs(120));
    std::env::temp_dir().join(format!("azekura-limits-{}-{name}.azk", std::process::id()))
}

/// Without threads, so that a checkpoint comes when a test says so.
fn options() -> Options {
    Options::new().memory_bytes(8 << 20).threads(false)
}

fn follower(path: &Path, freshness: Freshness) -> Db {
    options().freshness(freshness).open(path).unwrap()
}

const RECORDS: u64 = 3_000;

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// The value of a key in some round: one in ten is large.
fn value(i: u64, round: u64) -> Vec<u8> {
    let len = if i.is_multiple_of(10) { 2000 + i as usize % 3000 } else { 20 + i as usize % 60 };
    let mut rng = Rng::new(i << 20 | round);
    (0..len).map(|_| rng.number() as u8).collect()
}

fn fill(t: &Table, round: u64) {
    t.put_many((0..RECORDS).map(|i| (key(i), value(i, round)))).unwrap();
}

/// Replaces all, and brings it to the file in the place of what was there.
fn replace(db: &Db, t: &Table, round: u64) {
    fill(t, round);
    db.compact().unwrap();
    db.shrink(|_| {}).unwrap();
}

/// How many records of a snapshot are too old. The others are right.
fn too_old(txn: &ReadTxn, t: &Table, round: u64) -> usize {
    let is_old = |i: &u64| match txn.get(t, key(*i)) {
        Ok(found) => {
            assert_eq!(found, Some(value(*i, round)), "record {i} of round {round}");
            false
        }
        Err(Error::SnapshotTooOld { checkpoint, honoured_from }) => {
            assert!(checkpoint < honoured_from, "{checkpoint}, {honoured_from}");
            true
        }
        Err(e) => panic!("record {i} of round {round}: {e}"),
    };
    (0..RECORDS).filter(is_old).count()
}

fn has_round(db: &Db, round: u64) {
    assert_eq!(too_old(&db.read(), &db.open_table("t").unwrap(), round), 0);
}

/// What a handle that does not write knows of pins.
fn pins_from_outside(path: &Path) -> Vec<PinStats> {
    follower(path, Freshness::Checkpoint).stats().pins
}

/// What is known of the pins of a checkpoint that is not the newest: bytes, and whether they are revoked.
fn known_of(pins: &[PinStats], checkpoint: u64) -> (Option<u64>, Option<bool>) {
    let pin = pins.iter().find(|pin| pin.checkpoint == checkpoint).expect("its pin");
    assert_eq!(pin.age, None, "only the writer knows");
    (pin.bytes, pin.revoked)
}

#[test]
fn a_snapshot_beyond_the_limit_is_too_old_and_the_next_one_is_right() {
    for mapped in [true, false] {
        for freshness in [Freshness::Checkpoint, Freshness::Log] {
            let path = path(&format!("bytes-{mapped}-{freshness:?}"));
            let db = options().pinned_bytes_max(1 << 20).open(&path).unwrap();
            let t = db.create_table("t", TableKind::Hash).unwrap();
            replace(&db, &t, 0);
            let follower = options().freshness(freshness).mapped(mapped).open(&path).unwrap();
            let followed = follower.open_table("t").unwrap();
            has_round(&follower, 0);
            let (held, unread, held_at) = (follower.read(), follower.read(), db.stats().checkpoint);
            let in_hand = (0..40).map(|i| followed.get_ref(key(i)).unwrap().unwrap());
            let in_hand: Vec<_> = in_hand.collect();
            let mut cursor = unread.cursor(&followed).unwrap();
            let first =
                cursor.next().unwrap().map(|(key, value)| (key.to_vec(), value.bytes().unwrap().to_vec()));
            for round in 1..6 {
                replace(&db, &t, round);
                has_round(&follower, round);
            }
            for (i, value_of_0) in (0..).zip(&in_hand) {
                assert_eq!(&**value_of_0, value(i, 0), "what is in somebody's hand stays");
            }
            let lost = too_old(&held, &followed, 0);
            assert!(lost > 0, "mapped: {mapped}, {freshness:?}");
            let mut seen = 1;
            let walk = loop {
                match cursor.next() {
                    Ok(Some((_, value))) => match value.bytes() {
                        Ok(_) => seen += 1,
                        Err(e) => break e,
                    },
                    Ok(None) => panic!("the walk has ended after {seen} records"),
                    Err(e) => break e,
                }
            };
            assert!(matches!(walk, Error::SnapshotTooOld { .. }), "{walk}");
            assert!(first.is_some());
            let stats = db.stats();
            assert_eq!(stats.pins.len(), 1, "that of the newest: {:?}", stats.pins);
            assert_eq!(stats.pinned_bytes, 0);
            let seen = pins_from_outside(&path);
            assert_eq!(known_of(&seen, held_at), (Some(0), Some(true)), "that of the snapshots: {seen:?}");
            let mut others = seen.iter().filter(|pin| pin.checkpoint != held_at);
            assert!(others.all(|pin| pin.revoked == Some(false)), "{seen:?}");
            has_round(&follower, 5);
            assert_eq!(follower.check(|_| {}).unwrap().problems, Vec::<String>::new());
            drop((cursor, in_hand, held, unread, followed, follower, t));
            assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
            db.close().unwrap();
            std::fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn within_the_limit_pins_are_honoured_and_the_oldest_goes_first() {
    let path = path("oldest");
    let db = options().pinned_bytes_max(1 << 30).open(&path).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    replace(&db, &t, 0);
    let follower = follower(&path, Freshness::Checkpoint);
    let followed = follower.open_table("t").unwrap();
    let mut held = Vec::new();
    for round in 0..4 {
        held.push(follower.read());
        replace(&db, &t, round + 1);
    }
    for (round, txn) in (0..).zip(&held) {
        assert_eq!(too_old(txn, &followed, round), 0, "round {round}");
    }
    assert!(db.stats().pinned_bytes > 5 << 20, "{:?}", db.stats().pins);
    drop((held, followed, follower, t));
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();

    let db = options().pinned_bytes_max(5 << 20).open(&path).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    replace(&db, &t, 0);
    let follower = self::follower(&path, Freshness::Checkpoint);
    let followed = follower.open_table("t").unwrap();
    let mut held = Vec::new();
    for round in 0..6 {
        held.push(follower.read());
        replace(&db, &t, round + 1);
        assert!(db.stats().pinned_bytes <= 2 * (5 << 20), "{:?}", db.stats().pins);
    }
    let lost: Vec<bool> = (0..).zip(&held).map(|(round, txn)| too_old(txn, &followed, round) > 0).collect();
    assert!(lost[0] && !lost[5] && lost.is_sorted_by(|a, b| a >= b), "{lost:?}");
    drop((held, followed, follower, t));
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_snapshot_from_before_the_limit_is_honoured_for_good() {
    let path = path("before");
    let db = options().open(&path).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    replace(&db, &t, 0);
    let follower = follower(&path, Freshness::Log);
    let followed = follower.open_table("t").unwrap();
    let held = follower.read();
    drop(t);
    db.close().unwrap();
    let db = options().pinned_bytes_max(0).pinned_age_max(Duration::ZERO).open(&path).unwrap();
    let t = db.open_table("t").unwrap();
    // Opening has said that there are limits.
    has_round(&follower, 0);
    let (limited, limited_at) = (follower.read(), db.stats().checkpoint);
    for round in 1..4 {
        replace(&db, &t, round);
        has_round(&follower, round);
    }
    assert_eq!(too_old(&held, &followed, 0), 0);
    assert!(too_old(&limited, &followed, 0) > 0);
    let seen = pins_from_outside(&path);
    assert_eq!((seen[0].bytes, seen[0].revoked), (None, Some(false)), "that of before the limits: {seen:?}");
    assert_eq!(known_of(&seen, limited_at), (Some(0), Some(true)), "{seen:?}");
    drop(t);
    db.close().unwrap();
    // A writer without limits does not bring back what was revoked, and its own checkpoints are read in
    // place.
    let db = options().open(&path).unwrap();
    let t = db.open_table("t").unwrap();
    replace(&db, &t, 4);
    let unlimited = follower.read();
    for round in 5..8 {
        replace(&db, &t, round);
        has_round(&follower, round);
    }
    assert_eq!((too_old(&held, &followed, 0), too_old(&unlimited, &followed, 4)), (0, 0));
    assert!(too_old(&limited, &followed, 0) > 0);
    // Nothing tells any more which ones were revoked.
    let seen = pins_from_outside(&path);
    assert_eq!(known_of(&seen, limited_at), (None, None), "{seen:?}");
    drop((held, limited, unlimited, followed, follower));
    db.shrink(|_| {}).unwrap();
    assert_eq!((db.stats().pins, db.stats().pinned_bytes), (vec![], 0));
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
    drop(t);
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

/// The engine's own threads look at the age, though nobody commits.
#[test]
fn an_old_snapshot_is_let_go_while_the_writer_rests() {
    let path = path("age");
    let db =
        Options::new().memory_bytes(8 << 20).pinned_age_max(Duration::from_millis(300)).open(&path).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    fill(&t, 0);
    db.compact().unwrap();
    let follower = follower(&path, Freshness::Checkpoint);
    let followed = follower.open_table("t").unwrap();
    let held = follower.read();
    fill(&t, 1);
    db.compact().unwrap();
    assert!(db.stats().pinned_bytes > 1 << 20, "{:?}", db.stats().pins);
    assert_eq!(held.get(&followed, key(1)).unwrap(), Some(value(1, 0)));
    let began = Instant::now();
    while db.stats().pinned_bytes > 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", db.stats().pins);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(too_old(&held, &followed, 0) > 0);
    has_round(&follower, 1);
    // The newest checkpoint is honoured, however old it is. Idle time may write one more, or a few.
    let honoured = (0..10).any(|_| {
        let (number, newest) = (db.stats().checkpoint, follower.read());
        std::thread::sleep(Duration::from_millis(700));
        let too_old = too_old(&newest, &followed, 1);
        let is_newest = number == db.stats().checkpoint;
        assert!(too_old == 0 || !is_newest, "{too_old} gets");
        is_newest
    });
    assert!(honoured, "a writer at rest goes on to write checkpoints");
    drop((held, followed, follower, t));
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

/// Pages that were checked once come from memory, also those of runs that later checkpoints name too.
#[test]
fn a_follower_keeps_its_pages_from_one_checkpoint_to_the_next() {
    let (storage, path) = (MemStorage::default(), Path::new("pages.azk"));
    let db = Db::open_on(&storage, path, options().pinned_bytes_max(0)).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    t.put_many((0..RECORDS).map(|i| (key(i), [7; 60]))).unwrap();
    db.compact().unwrap();
    let follower = Db::open_on(&storage, path, options().follow(true)).unwrap();
    let followed = follower.open_table("t").unwrap();
    let read_all = || (0..RECORDS).for_each(|i| assert_eq!(followed.get(key(i)).unwrap(), Some(vec![7; 60])));
    read_all();
    let misses = follower.stats().cache_misses;
    assert!(misses > 0, "it reads copies");
    for n in 0..20 {
        db.create_table(&format!("table {n}"), TableKind::Hash).unwrap().put("a", "b").unwrap();
        db.flush().unwrap();
        read_all();
    }
    assert_eq!(follower.tables().len(), 21);
    assert!(follower.stats().cache_misses < misses + 60, "{misses}, {}", follower.stats().cache_misses);
    // An old snapshot and the newest one read the same run, which is where it was.
    let held = follower.read();
    db.create_table("last", TableKind::Hash).unwrap();
    db.flush().unwrap();
    read_all();
    (0..RECORDS).for_each(|i| assert_eq!(held.get(&followed, key(i)).unwrap(), Some(vec![7; 60])));
    drop((held, followed, follower, t));
    db.close().unwrap();
}

/// With everybody's threads, and readers that hold snapshots for as long as they like.
#[test]
fn readers_beside_a_writer_that_revokes_see_no_wrong_value() {
    let path = path("busy");
    let options = Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10);
    let options = options.durability(Durability::Eventual);
    let db = options.pinned_bytes_max(100_000).pinned_age_max(Duration::from_millis(40)).open(&path).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    let set = |n: u64| {
        let mut txn = db.write();
        txn.put(&t, "n", n.to_le_bytes()).unwrap();
        (0..40).for_each(|i| txn.put(&t, key(n * 40 % 400 + i), value(n * 40 % 400 + i, n)).unwrap());
        txn.commit()
    };
    set(1).unwrap();
    db.flush().unwrap();
    let until = Instant::now() + Duration::from_secs(2);
    let read = |freshness| {
        let (follower, mut old, mut right) = (follower(&path, freshness), 0, 0u64);
        let (followed, mut held) = (follower.open_table("t").unwrap(), Vec::<(u64, ReadTxn)>::new());
        let mut rng = Rng::new(7);
        let number = |txn: &ReadTxn| -> Result<u64, Error> {
            Ok(txn.get(&followed, "n")?.map_or(0, |v| u64::from_le_bytes(v.try_into().unwrap())))
        };
        let mut look = |n: u64, txn: &ReadTxn, i: u64| match txn.get(&followed, key(i)) {
            Ok(found) => {
                // The last commit up to `n` that wrote it.
                let since = (n % 10 + 10 - i / 40) % 10;
                let expected = n.checked_sub(since).filter(|&m| m > 0).map(|m| value(i, m));
                assert_eq!(found, expected, "record {i} of commit {n}");
                right += 1;
            }
            Err(Error::SnapshotTooOld { .. }) => old += 1,
            Err(e) => panic!("record {i} of commit {n}: {e}"),
        };
        while Instant::now() < until {
            let txn = follower.read();
            match number(&txn) {
                Ok(n) => {
                    (0..20).for_each(|_| look(n, &txn, rng.below(400)));
                    held.push((n, txn));
                }
                Err(Error::SnapshotTooOld { .. }) => {}
                Err(e) => panic!("{e}"),
            }
            if held.len() > 20 {
                let (n, txn) = held.swap_remove(rng.below(20) as usize);
                (0..400).for_each(|i| look(n, &txn, i));
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        (old, right)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 2.. {
                if Instant::now() >= until {
                    break;
                }
                set(n).unwrap();
            }
        });
        let readers =
            [Freshness::Log, Freshness::Checkpoint].map(|freshness| scope.spawn(move || read(freshness)));
        for reader in readers {
            let (old, right) = reader.join().unwrap();
            assert!(right > 1000 && old > 0, "{right} reads were right, {old} too old");
        }
    });
    drop(t);
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_backup_of_a_revoked_snapshot_is_an_error() {
    let (path, copy) = (path("backup"), path("backup-copy"));
    let db = options().pinned_bytes_max(0).open(&path).unwrap();
    let t = db.create_table("t", TableKind::Hash).unwrap();
    replace(&db, &t, 0);
    let follower = follower(&path, Freshness::Checkpoint);
    let mut rounds = 0;
    let done = follower.copy_to(&copy, |_| {
        rounds += 1;
        if rounds == 1 {
            (1..4).for_each(|round| replace(&db, &t, round));
        }
    });
    assert!(rounds > 0 && matches!(done, Err(Error::SnapshotTooOld { .. })), "{rounds}, {done:?}");
    assert!(!copy.exists());
    follower.copy_to(&copy, |_| {}).unwrap();
    has_round(&options().open(&copy).unwrap(), 3);
    let mut rounds = 0;
    let checked = follower.check(|_| {
        rounds += 1;
        (0..3).for_each(|round| replace(&db, &t, round));
    });
    assert!(rounds > 0 && matches!(checked, Err(Error::SnapshotTooOld { .. })), "{rounds}, {checked:?}");
    drop((follower, t));
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&copy).unwrap();
}

/// Only a writer has limits, and they cost a file nothing that never had any.
#[test]
fn a_file_without_limits_says_nothing_of_them() {
    let (storage, path) = (MemStorage::default(), Path::new("plain.azk"));
    let said = || {
        let file = storage.open(path, azekura::storage::OpenMode::ReadOnly).unwrap();
        let mut bytes = [0; 24];
        file.read_at(&mut bytes, 4072).unwrap();
        bytes
    };
    let open = |options: Options| Db::open_on(&storage, path, options).unwrap();
    let db = open(options());
    db.create_table("t", TableKind::Hash).unwrap().put("k", "v").unwrap();
    db.flush().unwrap();
    assert_eq!(said(), [0; 24]);
    db.close().unwrap();
    open(options().pinned_bytes_max(5)).close().unwrap();
    let limited = said();
    assert_ne!(limited[..8], [0; 8]);
    open(options().pinned_age_max(Duration::from_secs(5))).close().unwrap();
    assert_eq!(said(), limited, "the checkpoints before may be revoked as before");
    let db = open(options());
    db.open_table("t").unwrap().put("k", "w").unwrap();
    db.close().unwrap();
    assert_eq!(said()[..8], [0; 8]);
}
