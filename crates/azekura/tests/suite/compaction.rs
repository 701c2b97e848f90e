//! `shrink`: whatever stands at the file's end moves into its holes, so that the file is hardly longer than
//! what is live in it; snapshots, readers and power cuts beside it notice nothing.

use azekura::{Db, Options, ReadTxn, Table, TableKind};
use sim::disk::{Disk, Keep, Plan};
use sim::rng::Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PATH: &str = "compaction.azk";
/// What a compacted file may have beside what is live: holes too small for a move.
const LOOSE_BYTES_MAX: u64 = 256 << 10;

fn options() -> Options {
    crate::common::watch(Duration::from_secs(60));
    let options = Options::new().memory_bytes(16 << 20).memtable_bytes(1 << 20).background_merges(false);
    options.eventual_delay(Duration::from_secs(60))
}

fn open(disk: &Disk) -> Db {
    Db::open_on(disk, PATH, options()).unwrap()
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng(seed);
    (0..len.div_ceil(8)).flat_map(|_| rng.number().to_le_bytes()).take(len).collect()
}

fn check(db: &Db) -> u64 {
    let report = db.check(|_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    report.live_bytes
}

/// Compacts, and what is left must be little more than what is live.
fn compact(db: &Db) {
    db.shrink(|_| {}).unwrap();
    let (live, stats) = (check(db), db.stats());
    assert!(stats.file_bytes <= live + LOOSE_BYTES_MAX, "{live} bytes are live in {stats:?}");
}

/// Fills a table with small records, in runs alone.
fn fill_runs(db: &Db, name: &str, mib: u64) {
    let table = db.create_table(name, TableKind::Ordered).unwrap();
    let mut txn = db.write();
    for i in 0..mib << 11 {
        txn.put(&table, &i.to_be_bytes(), &noise(i, 512)).unwrap();
    }
    txn.commit().unwrap();
    db.flush().unwrap();
}

/// The value of a key in a round, of 2 to 60 KB.
fn value(key: u64, round: u64) -> Vec<u8> {
    let seed = key << 8 | round;
    noise(seed, 2000 + usize::try_from(Rng(seed).below(58_000)).unwrap())
}

fn put_values(table: &Table, keys: std::ops::Range<u64>, round: u64) {
    for key in keys {
        table.put(&key.to_be_bytes(), &value(key, round)).unwrap();
    }
}

fn expect(read: &ReadTxn, table: &Table, keys: std::ops::Range<u64>, round: u64) {
    assert_eq!(read.cursor(table).unwrap().owned().count() as u64, keys.end - keys.start);
    for key in keys {
        let found = read.get(table, &key.to_be_bytes()).unwrap();
        assert!(found.is_some_and(|v| v == value(key, round)), "key {key}, round {round}");
    }
}

#[test]
fn value_segments_at_the_end_move_into_holes() {
    let disk = Disk::new();
    let db = open(&disk);
    fill_runs(&db, "gone", 12);
    let table = db.create_table("t", TableKind::Hash).unwrap();
    put_values(&table, 0..400, 0);
    db.flush().unwrap();
    db.drop_table("gone").unwrap();
    compact(&db);
    assert!(db.stats().file_bytes < 15 << 20, "12 MB of values: {:?}", db.stats());
    expect(&db.read(), &table, 0..400, 0);
    // As a new process finds it, whether or not the power went.
    for _ in 0..2 {
        let db = open(&disk.after_cut(Keep::None, &mut Rng(1)));
        expect(&db.read(), &db.open_table("t").unwrap(), 0..400, 0);
        check(&db);
    }
}

/// A segment that is longer than each hole stands in several of them then.
#[test]
fn a_segment_that_fits_no_hole_moves_in_parts() {
    let disk = Disk::new();
    let db = open(&disk);
    for i in 0..5 {
        fill_runs(&db, &format!("gone {i}"), 2);
        fill_runs(&db, &format!("kept {i}"), 1);
    }
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    let large = noise(7, 7 << 20);
    table.put(b"large", &large).unwrap();
    table.put(b"small", &noise(8, 3000)).unwrap();
    db.flush().unwrap();
    (0..5).for_each(|i| db.drop_table(&format!("gone {i}")).unwrap());
    let whole = |db: &Db| {
        let table = db.open_table("t").unwrap();
        assert!(table.get(b"large").unwrap().unwrap() == large);
        assert!(table.get(b"small").unwrap().unwrap() == noise(8, 3000));
        let mut cursor = table.cursor().unwrap();
        assert!(cursor.next().unwrap().unwrap().1.bytes().unwrap() == large);
    };
    compact(&db);
    whole(&db);
    // Records that follow refer to the segment while it stands in parts, in the log too.
    table.put(b"more", &noise(9, 5000)).unwrap();
    let cut = open(&disk.after_cut(Keep::None, &mut Rng(1)));
    whole(&cut);
    check(&cut);
    compact(&cut);
    whole(&cut);
    drop((table, cut));
    db.close().unwrap();
    let db = open(&disk);
    whole(&db);
    // What stood in parts is free in parts.
    db.drop_table("t").unwrap();
    compact(&db);
    assert!(db.stats().file_bytes < 7 << 20, "{:?}", db.stats());
}

#[test]
fn the_log_at_the_end_moves_down() {
    let disk = Disk::new();
    let db = open(&disk);
    fill_runs(&db, "gone", 8);
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    // Durable commits: the log's segments grow to 4 MiB.
    (0..2000u64).for_each(|i| table.put(&i.to_be_bytes(), &noise(i, 700)).unwrap());
    db.drop_table("gone").unwrap();
    for round in 0..3 {
        compact(&db);
        assert!(db.stats().file_bytes < 3 << 20, "round {round}: {:?}", db.stats());
        // The log goes on where it stands now.
        (0..50u64).for_each(|i| table.put(&i.to_be_bytes(), &noise(round << 32 | i, 600)).unwrap());
        let cut = open(&disk.after_cut(Keep::None, &mut Rng(1)));
        let t = cut.open_table("t").unwrap();
        assert_eq!(t.count().unwrap(), 2000);
        assert!((0..50u64).all(|i| t.get(&i.to_be_bytes()).unwrap().unwrap() == noise(round << 32 | i, 600)));
        check(&cut);
    }
}

#[test]
fn closing_fills_holes_that_are_a_good_part_of_the_file() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, options().memory_bytes(64 << 20).memtable_bytes(8 << 20)).unwrap();
    fill_runs(&db, "gone", 20);
    fill_runs(&db, "kept", 20);
    db.drop_table("gone").unwrap();
    let (live, before) = (check(&db), db.stats().file_bytes);
    assert!(before > live + (16 << 20), "{live} bytes are live in a file of {before}");
    db.close().unwrap();

    let db = open(&disk);
    let after = db.stats().file_bytes;
    assert!(after <= live + (9 << 20), "{live} bytes are live in a file of {after}");
    check(&db);
    let table = db.open_table("kept").unwrap();
    for i in (0..20 << 11).step_by(77) {
        assert_eq!(table.get(&u64::to_be_bytes(i)).unwrap(), Some(noise(i, 512)));
    }
}

/// Overwritten again and again: what is dead in the segments goes, and the rest moves together.
#[test]
fn overwritten_values_leave_a_small_file() {
    let disk = Disk::new();
    let db = open(&disk);
    let table = db.create_table("t", TableKind::Hash).unwrap();
    for round in 0..6 {
        put_values(&table, 0..200, round);
        db.flush().unwrap();
    }
    compact(&db);
    expect(&db.read(), &table, 0..200, 5);
    let raw: u64 = (0..200).map(|key| value(key, 5).len() as u64).sum();
    assert!(db.stats().file_bytes < raw * 2, "{raw} bytes of values: {:?}", db.stats());
}

/// Snapshots and readers from before, and in the middle.
#[test]
fn snapshots_read_what_moves_under_them() {
    let disk = Disk::new();
    let db = open(&disk);
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    put_values(&table, 0..150, 0);
    let mut snapshots = vec![(db.read(), 0)];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (read, table, done) = (db.read(), &table, &done);
            scope.spawn(move || {
                let mut rng = Rng(thread);
                while !done.load(Ordering::Acquire) {
                    let key = rng.below(150);
                    let found = read.get(table, &key.to_be_bytes()).unwrap();
                    assert!(found.is_some_and(|v| v == value(key, 0)), "key {key}");
                    let mut cursor = read.cursor(table).unwrap();
                    cursor.seek(&key.to_be_bytes()).unwrap();
                    for key in key..150.min(key + 9) {
                        assert!(
                            cursor.next().unwrap().unwrap().1.bytes().unwrap() == value(key, 0),
                            "key {key}"
                        );
                    }
                }
            });
        }
        for round in 1..6 {
            crate::common::doing(format!("round {round}"));
            fill_runs(&db, "gone", 4);
            put_values(&table, 0..150, round);
            db.flush().unwrap();
            snapshots.push((db.read(), round));
            db.drop_table("gone").unwrap();
            db.shrink(|_| {}).unwrap();
            check(&db);
            snapshots.iter().for_each(|(read, round)| expect(read, &table, 0..150, *round));
        }
        done.store(true, Ordering::Release);
    });
    snapshots.drain(..4);
    db.shrink(|_| {}).unwrap();
    snapshots.iter().for_each(|(read, round)| expect(read, &table, 0..150, *round));
    drop(snapshots);
    compact(&db);
    expect(&db.read(), &table, 0..150, 5);
}

/// Commits of large values beside compaction after compaction; then the power goes.
#[test]
fn commits_beside_compactions_survive() {
    let disk = Disk::new();
    let db = open(&disk);
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    fill_runs(&db, "gone", 4);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| put_values(&table, 0..300, 1));
        db.drop_table("gone").unwrap();
        while !writer.is_finished() {
            db.shrink(|_| {}).unwrap();
        }
    });
    let cut = open(&disk.after_cut(Keep::None, &mut Rng(1)));
    expect(&cut.read(), &cut.open_table("t").unwrap(), 0..300, 1);
    check(&cut);
    compact(&db);
    expect(&db.read(), &table, 0..300, 1);
}

/// The power goes at every call to the disk that a compaction makes, and anything unsynced is lost or kept.
#[test]
fn a_power_cut_at_any_call_loses_nothing() {
    let quiet = || options().threads(false);
    let disk = Disk::seeded(3);
    let db = Db::open_on(&disk, PATH, quiet()).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    fill_runs(&db, "gone", 1);
    put_values(&table, 0..40, 0);
    db.flush().unwrap();
    fill_runs(&db, "gone too", 1);
    put_values(&table, 40..80, 0);
    db.flush().unwrap();
    let write = |key: u64| table.put(&key.to_be_bytes(), &value(key, 0));
    db.drop_table("gone").unwrap();
    db.drop_table("gone too").unwrap();
    write(80).unwrap();
    disk.record(1, 0);
    db.shrink(|_| {}).unwrap();
    write(81).unwrap();
    let moments = disk.moments();
    let mut images = 0;
    for moment in &moments {
        crate::common::doing(format!("cut at call {}", moment.mark.calls));
        for choice in moment.disk.choices(Plan { subsets_max: 2, torn: false }) {
            let db = Db::open_on(&moment.disk.image(&choice), PATH, quiet()).unwrap();
            let table = db.open_table("t").unwrap();
            let n = table.count().unwrap();
            assert!(n == 81 || n == 82, "{n} keys");
            expect(&db.read(), &table, 0..n, 0);
            check(&db);
            images += 1;
        }
    }
    println!("{} calls, {images} images", moments.len());
    assert!(moments.len() > 30);
    assert!(db.stats().file_bytes < 3 << 20, "{:?}", db.stats());
    drop(table);
}
