//! What `check` counts and reads: records as `count` has them, also those that stand in the log only, and the
//! log itself, again, from the file.

use azekura::{CheckReport, Db, Durability, Options, TableKind, WriteOptions};
use sim::disk::Disk;
use sim::judge::{PATH, Setting};

fn options() -> Options {
    Setting::QUIET.options()
}

fn report(db: &Db) -> CheckReport {
    let report = db.check(|_| {}).unwrap();
    assert_eq!(report.problems, [""; 0]);
    let count = |t: azekura::TableInfo| db.open_table(&t.name).unwrap().count().unwrap();
    assert_eq!(report.records, db.tables().into_iter().map(count).sum::<u64>(), "check and count differ");
    report
}

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

#[test]
fn records_deletes_and_hidden_versions_are_told_apart() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let (a, b) = (db.table("a", TableKind::Ordered).unwrap(), db.table("b", TableKind::Hash).unwrap());
    // Too much to stand in the manifest.
    a.put_many((0..10).map(|i| (key(i), [b'o'; 100]))).unwrap();
    b.put(b"k", b"v").unwrap();
    db.flush().unwrap();
    assert_eq!((report(&db).records, report(&db).deletes, report(&db).hidden), (11, 0, 0));
    // In memory: one replaced twice, one removed, three in a range.
    a.put(&key(0), b"new").unwrap();
    a.put(&key(0), b"newer").unwrap();
    a.remove(&key(1)).unwrap();
    let in_memory = report(&db);
    assert_eq!((in_memory.records, in_memory.deletes, in_memory.hidden), (10, 1, 3));
    a.remove_range(key(4)..key(7)).unwrap();
    assert_eq!(report(&db).records, 7);
    db.flush().unwrap();
    // In runs, where a newer run has one version of each key.
    let in_runs = report(&db);
    assert_eq!((in_runs.records, in_runs.deletes, in_runs.hidden), (7, 1, 5));
    db.compact().unwrap();
    let settled = report(&db);
    assert_eq!((settled.records, settled.deletes, settled.hidden), (7, 0, 0));
}

/// Between the commit that drops a table and the checkpoint that follows, the file still needs its runs. Who
/// only reads writes no checkpoint.
#[test]
fn a_table_that_the_log_has_dropped_keeps_its_place() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, options().durability(Durability::Sync)).unwrap();
    let tables = ["a", "b", "c"].map(|name| db.table(name, TableKind::Ordered).unwrap());
    for table in &tables {
        table.put_many((0..100).map(|i| (key(i), [b'o'; 2000]))).unwrap();
    }
    db.flush().unwrap();
    disk.record(1, 0);
    let mut txn = db.write();
    txn.drop_table("b").unwrap();
    txn.commit().unwrap();
    let mut dropped_in_the_log = 0;
    for moment in disk.moments() {
        let image = moment.disk.after_kill();
        let found = Db::open_on(&image, PATH, options().read_only(true)).unwrap();
        dropped_in_the_log += u64::from(found.tables().len() == 2 && report(&found).log_commits > 0);
        assert_eq!(report(&found).records, 100 * found.tables().len() as u64);
    }
    assert!(dropped_in_the_log > 0, "no moment was between them");
}

#[test]
fn the_log_of_a_database_that_was_not_closed_is_counted() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    // A commit too.
    let t = db.table("t", TableKind::Ordered).unwrap();
    (0..400).for_each(|i| t.put(&key(i), &[7; 100]).unwrap());
    t.remove(&key(3)).unwrap();
    t.put_many((500..600).map(|i| (key(i), [5; 40]))).unwrap();
    t.put(b"large", &[9; 40_000]).unwrap();
    for (read_only, relogged) in [(true, false), (false, true)] {
        let crashed = disk.after_kill();
        let db = Db::open_on(&crashed, PATH, options().read_only(read_only)).unwrap();
        let found = report(&db);
        assert_eq!((found.records, found.deletes), (500, 1));
        assert_eq!((found.log_commits, found.log_records), (404, 502), "read-only: {read_only}");
        assert!(found.log_bytes >= 402 * 4096, "every durable commit has a block: {}", found.log_bytes);
        let stats = db.stats();
        assert!(stats.log_bytes >= found.log_bytes, "{} of {}", stats.log_bytes, found.log_bytes);
        assert_eq!((stats.log_commits, stats.log_records), (404, 502));
        if relogged {
            db.flush().unwrap();
            let flushed = report(&db);
            assert_eq!((flushed.records, flushed.hidden), (500, 0));
            assert_eq!((flushed.log_commits, flushed.log_records), (0, 0));
            assert!(db.stats().log_bytes < stats.log_bytes, "the old chain is gone");
        }
        crashed.stop();
    }
    // What waits in memory for the log is counted as a record, and is not in the log.
    let eventual = WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() };
    let mut txn = db.write_with(eventual);
    txn.put(&t, b"waits", b"").unwrap();
    txn.commit().unwrap();
    let waiting = report(&db);
    assert_eq!((waiting.records, waiting.log_commits), (501, 404));
}

/// What memory holds was read before the damage.
#[test]
fn damage_to_the_log_after_the_opening_is_found() {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, options()).unwrap();
    let t = db.table("t", TableKind::Ordered).unwrap();
    (0..50).for_each(|i| t.put(&key(i), &[7; 100]).unwrap());
    let frames = |bytes: &[u8]| -> Vec<u64> {
        let is_frame = |block: &[u8]| block[4..8] == *b"AZLF" && block[40] == 0;
        (0..).zip(bytes.chunks_exact(4096)).filter(|(_, b)| is_frame(b)).map(|(i, _)| i * 4096).collect()
    };
    for read_only in [true, false] {
        // The handle that wrote the log, and one that only replays it.
        let crashed = disk.after_kill();
        let other = read_only.then(|| Db::open_on(&crashed, PATH, options().read_only(true)).unwrap());
        let (disk, db) = other.as_ref().map_or((&disk, &db), |other| (&crashed, other));
        let found = frames(&disk.bytes(PATH));
        assert!(found.len() >= 50, "{found:?}");
        let at = found[found.len() / 2];
        assert_eq!(report(db).records, 50);
        let byte = disk.peek(PATH, at + 100, 1)[0];
        disk.patch(PATH, at + 100, &[byte ^ 1]);
        let problems = db.check(|_| {}).unwrap().problems;
        assert!(problems.len() == 1 && problems[0].contains("log"), "read-only {read_only}: {problems:?}");
        disk.patch(PATH, at + 100, &[byte]);
        assert_eq!(report(db).records, 50);
    }
}
