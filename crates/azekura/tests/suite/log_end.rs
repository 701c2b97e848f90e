//! The end of a log that was not closed: damage to frames that were acknowledged as durable is an error, also
//! to the last ones once the log has rested.

use azekura::{Db, Durability, Error, Options, Table, TableKind, WriteOptions};
use sim::disk::Disk;
use sim::judge::{PATH, Setting};
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;

/// A frame of the log in a file.
#[derive(Debug, Clone, Copy)]
struct Frame {
    at: usize,
    number: u64,
    payload_bytes: usize,
    jump: bool,
    durable_below: u64,
}

/// The frames of the newest chain of a file, by their place.
fn frames(bytes: &[u8]) -> Vec<Frame> {
    let number = |at: usize, n: usize| (0..n).fold(0, |x, i| x | u64::from(bytes[at + i]) << (8 * i));
    let is_frame = |at: &usize| bytes[at + 4..].starts_with(b"AZLF");
    let places: Vec<usize> = (0..bytes.len() / BLOCK).map(|i| i * BLOCK).filter(is_frame).collect();
    let newest = places.iter().map(|&at| number(at + 16, 8)).max().unwrap_or(0);
    let of_newest = places.into_iter().filter(|&at| number(at + 16, 8) == newest);
    let frame = |at| Frame {
        at,
        number: number(at + 24, 8),
        payload_bytes: number(at + 32, 4) as usize,
        jump: bytes[at + 40] == 1,
        durable_below: number(at + 56, 8),
    };
    of_newest.map(frame).collect()
}

/// What is synced goes to the log: it is no bulk beside a memtable.
fn options() -> Options {
    Setting::QUIET.options().memory_bytes(128 << 20).memtable_bytes(32 << 20)
}

fn put_eventually(db: &Db, t: &Table, from: u32, n: u32, bytes: usize) {
    let eventual = WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() };
    for i in from..from + n {
        let mut txn = db.write_with(eventual);
        txn.put(t, &i.to_be_bytes(), &vec![i as u8; bytes]).unwrap();
        txn.commit().unwrap();
    }
}

/// What opening a damaged file gives: every record, fewer of them in silence, or an error or a problem.
#[derive(Debug, PartialEq, Clone, Copy)]
enum Found {
    All,
    Fewer,
    Error,
}

fn found(bytes: &[u8], records: u64, read_only: bool) -> Found {
    let disk = Disk::with_file(PATH, bytes);
    let db = match Db::open_on(&disk, PATH, options().read_only(read_only)) {
        Ok(db) => db,
        Err(Error::Corrupt { .. } | Error::Truncated { .. }) => return Found::Error,
        Err(e) => panic!("{e}"),
    };
    let count = db.open_table("t").unwrap().cursor().unwrap().owned().filter(Result::is_ok).count() as u64;
    let problems = db.check(|_| {}).unwrap().problems;
    disk.stop();
    match (count == records, problems.is_empty()) {
        (true, true) => Found::All,
        (false, true) => Found::Fewer,
        _ => Found::Error,
    }
}

/// Flips bits of every frame, one at a time, and counts the answers.
fn flip_everywhere(bytes: &[u8], records: u64) -> [usize; 3] {
    let mut answers = [0; 3];
    for frame in frames(bytes) {
        let end = 64 + frame.payload_bytes;
        for place in [0, 5, 9, 17, 24, 33, 37, 40, 49, 56, 63, 64, 65, 64 + frame.payload_bytes / 2, end - 1]
        {
            let mut damaged = bytes.to_vec();
            damaged[frame.at + place.min(end - 1)] ^= 1 << (place % 8);
            for read_only in [true, false] {
                let answer = found(&damaged, records, read_only);
                answers[answer as usize] += 1;
            }
        }
    }
    answers
}

/// One acknowledged sync covers 400 commits in one frame and what comes before.
#[test]
fn damage_to_the_last_group_is_noticed_after_a_rest() {
    let disk = Disk::seeded(1);
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    (0..5u32).for_each(|i| t.put(&i.to_be_bytes(), b"durable").unwrap());
    put_eventually(&db, &t, 5, 400, 20);
    db.sync().unwrap();
    let bytes = disk.bytes(PATH);
    let [all, fewer, error] = flip_everywhere(&bytes, 405);
    assert_eq!(fewer, 0, "of {} damaged files {fewer} give an older state in silence", all + fewer + error);
    assert!(all > 0 && error > 100, "{all} harmless, {error} reported");
    let last = frames(&bytes).pop().unwrap();
    assert_eq!((last.payload_bytes, last.durable_below), (0, last.number), "a frame without records vouches");
}

/// The group goes through several segments; damage to any part of it is noticed by what the jumps say.
#[test]
fn damage_to_a_group_of_several_segments_is_noticed() {
    let disk = Disk::seeded(2);
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    (0..30u32).for_each(|i| t.put(&i.to_be_bytes(), b"durable").unwrap());
    put_eventually(&db, &t, 30, 6000, 900);
    db.sync().unwrap();
    let bytes = disk.bytes(PATH);
    let jumps = frames(&bytes).iter().filter(|f| f.jump).count();
    assert!(jumps >= 4, "{jumps} blocks of jumps");
    for frame in frames(&bytes) {
        let mut damaged = bytes.clone();
        damaged[frame.at + 50] ^= 4;
        assert_ne!(found(&damaged, 6030, true), Found::Fewer, "{frame:?}");
    }
    // Nor is a file that was cut taken for one whose last commits were not finished.
    for len in (4096..bytes.len()).step_by(73_728).chain([bytes.len() - 1]) {
        for read_only in [true, false] {
            assert_ne!(
                found_or_not_open(&bytes[..len], 6030, read_only),
                Found::Fewer,
                "cut at {len} of {}",
                bytes.len()
            );
        }
    }
}

fn found_or_not_open(bytes: &[u8], records: u64, read_only: bool) -> Found {
    let disk = Disk::with_file(PATH, bytes);
    match Db::open_on(&disk, PATH, options().read_only(read_only)) {
        Ok(db) if db.open_table("t").is_err() => Found::Error,
        Ok(_) => found(bytes, records, read_only),
        Err(_) => Found::Error,
    }
}

/// With the engine's threads, whatever the eventual delay, a rest writes one frame, which the next one
/// replaces.
#[test]
fn a_rest_takes_no_room_of_the_log() {
    let disk = Disk::new();
    let steady = Setting { delay_ms: 3_600_000, ..Setting::STEADY };
    let db = steady.open(&disk).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let empty = |bytes: &[u8]| frames(bytes).iter().filter(|f| f.payload_bytes == 0).count();
    let rests =
        |bytes: &[u8]| frames(bytes).iter().max_by_key(|f| f.number).is_some_and(|f| f.payload_bytes == 0);
    let mut records = 0;
    for round in 1..=4 {
        (0..3).for_each(|_| {
            t.put(&u32::to_be_bytes(records), b"v").unwrap();
            records += 1;
        });
        let until = Instant::now() + Duration::from_secs(60);
        while !rests(&disk.bytes(PATH)) {
            assert!(Instant::now() < until, "round {round}: nothing vouches for the last commit");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(350));
        let bytes = disk.bytes(PATH);
        assert_eq!(empty(&bytes), 1, "round {round}: one frame vouches");
        // The first one made the table.
        assert_eq!(
            frames(&bytes).len(),
            records as usize + 2,
            "round {round}: the log is written to while it rests"
        );
        assert_eq!(flip_last_group(&bytes, u64::from(records)), Found::Error, "round {round}");
    }
}

/// Damages the last frame with records.
fn flip_last_group(bytes: &[u8], records: u64) -> Found {
    let last = frames(bytes)
        .into_iter()
        .filter(|f| f.payload_bytes > 0 && !f.jump)
        .max_by_key(|f| f.number)
        .unwrap();
    let mut damaged = bytes.to_vec();
    damaged[last.at + 70] ^= 1;
    found(&damaged, records, true)
}

/// What vouches is not synced: it may be lost or torn, and the next handle goes on.
#[test]
fn what_vouches_may_be_lost() {
    let disk = Disk::seeded(4);
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    put_eventually(&db, &t, 0, 50, 900);
    db.sync().unwrap();
    let bytes = disk.bytes(PATH);
    let last = frames(&bytes).pop().unwrap();
    assert_eq!(last.payload_bytes, 0);
    for kept in [0, 512, 1024, 4096] {
        let mut torn = bytes.clone();
        torn[last.at + kept..last.at + BLOCK].fill(0);
        let disk = Disk::with_file(PATH, &torn);
        let db = Db::open_on(&disk, PATH, options()).unwrap();
        let t = db.open_table("t").unwrap();
        assert_eq!(t.count().unwrap(), 50);
        put_eventually(&db, &t, 50, 10, 20);
        db.sync().unwrap();
        assert_eq!(found(&disk.bytes(PATH), 60, true), Found::All);
    }
}

/// What a manifest knows to be durable is missed, whatever of it is damaged: here the end of the first
/// segment, with both copies of the jump. Else the tables were those of one commit and their records those of
/// an earlier one.
#[test]
fn damage_over_a_jump_is_noticed_by_a_later_checkpoint() {
    let disk = Disk::seeded(3);
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    db.create_table("other", TableKind::Ordered).unwrap();
    (0..30u32).for_each(|i| t.put(&i.to_be_bytes(), &[7; 5000]).unwrap());
    let jump = frames(&disk.bytes(PATH)).into_iter().find(|f| f.jump).expect("two segments");
    db.drop_table("other").unwrap();
    let mut damaged = disk.bytes(PATH);
    assert_eq!(found(&damaged, 30, true), Found::All);
    damaged[jump.at - BLOCK..jump.at + 2 * BLOCK].fill(0);
    for read_only in [true, false] {
        assert_eq!(found(&damaged, 30, read_only), Found::Error);
    }
}

/// A block may hold what it held before a write that never reached the disk: a frame that vouches, where one
/// with commits took its place. What follows it says that it is not the newest.
#[test]
fn a_frame_that_vouches_is_not_taken_for_the_one_that_took_its_place() {
    let disk = Disk::seeded(3);
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let mut before = Vec::new();
    for i in 0..8u32 {
        put_eventually(&db, &t, i, 1, 20);
        db.sync().unwrap();
        before.push(disk.bytes(PATH));
    }
    let bytes = disk.bytes(PATH);
    assert_eq!(found(&bytes, 8, true), Found::All);
    let mut stale = 0;
    for old in &before {
        let last = frames(old).pop().unwrap();
        assert_eq!(last.payload_bytes, 0, "it vouches");
        let mut damaged = bytes.clone();
        damaged[last.at..last.at + BLOCK].copy_from_slice(&old[last.at..last.at + BLOCK]);
        stale += usize::from(damaged != bytes);
        for read_only in [true, false] {
            let expected = if damaged == bytes { Found::All } else { Found::Error };
            assert_eq!(found(&damaged, 8, read_only), expected, "frame {}, {read_only}", last.number);
        }
    }
    assert!(stale >= 5, "{stale} blocks were written since");
}
