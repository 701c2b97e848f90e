//! A small disk that is filled to the last, again and again: what frees space always works and gives it to
//! what comes next, and nothing that was acknowledged is lost, durable or not. On ext4 of 64 MiB where one
//! can be mounted, and on the simulated disk everywhere.

use azekura::storage::{OpenMode, Storage as _};
use azekura::{Db, Durability, Error, FeedContent, Options, Table, TableKind};
use sim::disk::Disk;
use sim::mounted::Mounted;
use sim::rng::Rng;
use sim::watchdog::Watchdog;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

const ROUNDS: u64 = 10;
const HANG_SECONDS: u64 = 180;

/// Where the database is, and how large that is.
enum Place {
    Real(Mounted, u64),
    Simulated(Disk, u64),
}

impl Place {
    fn open(&self, durability: Durability) -> Db {
        let options = Options::new().durability(durability).eventual_delay(Duration::from_millis(50));
        match self {
            Place::Real(mounted, _) => {
                Db::open(mounted.path().join("small.azk"), options.memory_bytes(16 << 20))
            }
            Place::Simulated(disk, _) => {
                Db::open_on(disk, "small.azk", options.memory_bytes(8 << 20).memtable_bytes(256 << 10))
            }
        }
        .unwrap()
    }

    fn bytes(&self) -> u64 {
        let (Place::Real(_, bytes) | Place::Simulated(_, bytes)) = self;
        *bytes
    }
}

fn simulated(bytes: u64) -> Place {
    let disk = Disk::new();
    disk.set_bytes_max(bytes);
    Place::Simulated(disk, bytes)
}

/// A real one, or none, of which a line is written.
fn real(bytes: u64) -> Option<Place> {
    match Mounted::new(bytes) {
        Ok(mounted) => Some(Place::Real(mounted, bytes)),
        Err(e) => {
            // Past what the test runner keeps of a test that passes.
            let _unseen = writeln!(std::io::stderr(), "skipped: no small file system can be mounted ({e})");
            None
        }
    }
}

/// Keys come in no order.
fn key(n: u64) -> [u8; 8] {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes()
}

fn value(n: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng(n);
    (0..len.div_ceil(8)).flat_map(|_| rng.number().to_le_bytes()).take(len).collect()
}

/// The table, and what must be in it.
struct Model {
    keys: BTreeSet<u64>,
    next: u64,
    len: usize,
    /// Puts go in transactions of so many.
    batch: u64,
}

impl Model {
    /// Puts until the disk is full; how many.
    fn fill(&mut self, db: &Db, table: &Table) -> u64 {
        let first = self.next;
        loop {
            let mut txn = db.write();
            let more = self.next..self.next + self.batch;
            let put = more.clone().try_for_each(|n| txn.put(table, &key(n), &value(n, self.len)));
            match put.and_then(|()| txn.commit()) {
                Ok(()) => self.keys.extend(more.clone()),
                Err(e @ Error::NoSpace { .. }) => {
                    println!("full after {} more: {e}", self.next - first);
                    return self.next - first;
                }
                Err(e) => panic!("putting: {e}"),
            }
            self.next = more.end;
        }
    }

    /// Removes every second one, the first of them by themselves.
    fn free_half(&mut self, db: &Db, table: &Table) {
        let gone: Vec<u64> = self.keys.iter().copied().step_by(2).collect();
        let (alone, together) = gone.split_at(gone.len().min(30));
        for &n in alone {
            table.remove(&key(n)).unwrap_or_else(|e| panic!("removing: {e}"));
        }
        for some in together.chunks(1000) {
            let mut txn = db.write();
            some.iter().for_each(|&n| txn.remove(table, &key(n)).unwrap());
            txn.commit().unwrap_or_else(|e| panic!("removing many: {e}"));
        }
        self.keys.retain(|n| gone.binary_search(n).is_err());
    }

    fn holds(&self, db: &Db, table: &Table) {
        assert_eq!(table.count().unwrap(), self.keys.len() as u64);
        let step = (self.keys.len() / 2000).max(1);
        for &n in self.keys.iter().step_by(step) {
            assert_eq!(table.get(&key(n)).unwrap(), Some(value(n, self.len)), "{n}");
        }
        let report = db.check(|_| {}).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

/// Fills, frees half, goes on, and opens anew.
fn rounds(place: &Place, durability: Durability, len: usize, batch: u64) {
    let watchdog = Watchdog::start(HANG_SECONDS);
    let mut model = Model { keys: BTreeSet::new(), next: 0, len, batch };
    let mut most = 0;
    for round in 0..ROUNDS {
        let at = |what: &str| watchdog.at(format!("{durability:?}, {len} bytes, round {round}: {what}"));
        let db = place.open(durability);
        let table = db.table("t", TableKind::Ordered).unwrap();
        at("filling");
        let put = model.fill(&db, &table);
        let raw = model.keys.len() as u64 * (len as u64 + 8);
        println!(
            "{durability:?}, {len} bytes, round {round}: {put} more, {raw} bytes raw of {}",
            place.bytes()
        );
        assert!(raw >= place.bytes() / 2, "round {round}: full at {raw} bytes");
        assert!(raw >= most / 4 * 3, "round {round}: full at {raw} bytes, after {most} before");
        most = most.max(raw);
        // It is durable, too: there is room for that.
        db.sync().unwrap_or_else(|e| panic!("round {round}: {e}"));
        at("removing");
        model.free_half(&db, &table);
        at("flushing");
        match round % 3 {
            0 => db.flush().unwrap(),
            1 => db.compact().unwrap(),
            _ => drop(db.shrink(|_| {}).unwrap()),
        }
        at("looking");
        model.holds(&db, &table);
        drop(table);
        at("closing");
        db.close().unwrap_or_else(|e| panic!("round {round}: {e}"));
        at("opening");
        let db = place.open(durability);
        let table = db.open_table("t").unwrap();
        model.holds(&db, &table);
        drop(table);
        db.close().unwrap();
    }
}

const SIMULATED_BYTES: u64 = 24 << 20;
const REAL_BYTES: u64 = 64 << 20;

#[test]
fn small_values_durable() {
    rounds(&simulated(SIMULATED_BYTES), Durability::Sync, 100, 50);
}

#[test]
fn small_values_eventual() {
    rounds(&simulated(SIMULATED_BYTES), Durability::Eventual, 100, 50);
}

#[test]
fn large_values_durable() {
    rounds(&simulated(SIMULATED_BYTES), Durability::Sync, 20_000, 1);
}

#[test]
fn large_values_eventual() {
    rounds(&simulated(SIMULATED_BYTES), Durability::Eventual, 20_000, 1);
}

#[test]
fn ten_rounds_on_a_real_disk() {
    for (durability, len, batch) in [
        (Durability::Sync, 100, 1000),
        (Durability::Eventual, 100, 200),
        (Durability::Sync, 20_000, 10),
        (Durability::Eventual, 20_000, 1),
    ] {
        let Some(place) = real(REAL_BYTES) else { return };
        rounds(&place, durability, len, batch);
    }
}

/// Whatever frees works on a full disk, and makes room.
#[test]
fn everything_that_frees_works() {
    for (len, durability) in [(100, Durability::Sync), (20_000, Durability::Eventual)] {
        type Free = fn(&Db, &Table);
        let frees: [(&str, Free); 7] = [
            ("remove_range", |_, table| table.remove_range(..).unwrap()),
            ("clear", |db, table| {
                let mut txn = db.write();
                txn.clear(table).unwrap();
                txn.commit().unwrap();
            }),
            ("drop_table", |db, _| {
                db.drop_table("t").unwrap();
                db.table("t", TableKind::Ordered).map(drop).unwrap();
            }),
            ("remove and flush", |db, table| {
                remove_all(db, table);
                db.flush().unwrap();
            }),
            ("remove and compact", |db, table| {
                remove_all(db, table);
                db.compact().unwrap();
            }),
            ("remove and shrink", |db, table| {
                remove_all(db, table);
                db.shrink(|_| {}).unwrap();
            }),
            ("remove_range and shrink", |db, table| {
                table.remove_range(..).unwrap();
                let report = db.shrink(|_| {}).unwrap();
                assert!(report.after_bytes < report.before_bytes / 2, "{report:?}");
            }),
        ];
        for (name, free) in frees {
            let bytes = 24 << 20;
            let place = simulated(bytes);
            let db = place.open(durability);
            let table = db.table("t", TableKind::Ordered).unwrap();
            let mut model = Model { keys: BTreeSet::new(), next: 0, len, batch: 10 };
            let first = model.fill(&db, &table);
            free(&db, &table);
            let table = db.open_table("t").unwrap();
            let second = model.fill(&db, &table);
            assert!(second >= first / 4 * 3, "{name}, {len}, {durability:?}: {first} records, then {second}");
            drop(table);
            db.close().unwrap();
        }
    }
}

/// What is told of removes finds room, too, unless it is the values that were there.
#[test]
fn removing_from_a_table_that_is_fed_works() {
    for content in [FeedContent::Keys, FeedContent::Values] {
        let place = simulated(24 << 20);
        let db = place.open(Durability::Sync);
        let table = db.table("t", TableKind::Ordered).unwrap();
        table.set_feed(Some(content)).unwrap();
        db.set_feed_limits(1 << 20, None).unwrap();
        let mut model = Model { keys: BTreeSet::new(), next: 0, len: 100, batch: 10 };
        for round in 0..3 {
            let put = model.fill(&db, &table);
            assert!(put > 1_000, "{content:?}, round {round}: {put} records");
            model.free_half(&db, &table);
            db.flush().unwrap();
            model.holds(&db, &table);
        }
        model.fill(&db, &table);
        table.clear().unwrap();
        drop(table);
        db.close().unwrap();
    }
}

/// What is overwritten makes room, however often it is done.
#[test]
fn overwriting_on_a_small_disk_goes_on() {
    for (len, keys) in [(20_000, 27), (100, 20_000)] {
        let place = simulated(24 << 20);
        let db = place.open(Durability::Eventual);
        let table = db.table("t", TableKind::Ordered).unwrap();
        let rounds = (80 << 20) / (len as u64 * keys);
        for round in 0..rounds {
            for first in (0..keys).step_by(100) {
                let mut txn = db.write();
                let some = first..(first + 100).min(keys);
                let put = some.clone().try_for_each(|n| txn.put(&table, &key(n), &value(n + round, len)));
                put.and_then(|()| txn.commit())
                    .unwrap_or_else(|e| panic!("{len}, round {round} of {rounds}: {e}"));
            }
        }
        for n in 0..keys {
            assert_eq!(table.get(&key(n)).unwrap(), Some(value(n + rounds - 1, len)));
        }
        drop(table);
        db.close().unwrap();
    }
}

/// Large transactions cannot take the room that freeing needs, nor is any half there.
#[test]
fn large_transactions_leave_room_to_free() {
    let place = simulated(24 << 20);
    let db = place.open(Durability::Sync);
    let table = db.table("t", TableKind::Ordered).unwrap();
    let mut model = Model { keys: BTreeSet::new(), next: 0, len: 100, batch: 20_000 };
    for _ in 0..3 {
        model.fill(&db, &table);
        model.free_half(&db, &table);
        model.holds(&db, &table);
    }
}

/// What a commit needs is held before it is acknowledged: others may take the rest of the disk.
#[test]
fn what_was_acknowledged_is_durable_though_others_fill_the_disk() {
    for len in [100, 20_000] {
        let disk = Disk::new();
        disk.set_bytes_max(24 << 20);
        let place = Place::Simulated(disk.clone(), 0);
        let db = place.open(Durability::Eventual);
        let table = db.table("t", TableKind::Ordered).unwrap();
        let mut model = Model { keys: BTreeSet::new(), next: 0, len, batch: 10 };
        for n in 0..4_000_000 / len as u64 {
            table.put(&key(n), &value(n, len)).unwrap();
            model.keys.insert(n);
        }
        // No file grows any more.
        disk.set_bytes_max(1);
        db.sync().unwrap();
        model.free_half(&db, &table);
        drop(table);
        db.close().unwrap();
        disk.set_bytes_max(u64::MAX);
        let db = place.open(Durability::Eventual);
        model.holds(&db, &db.open_table("t").unwrap());
    }
}

/// A damaged table full of garbage is not what those are told who need room for another.
#[test]
fn a_damaged_table_keeps_nobody_from_freeing_another() {
    let disk = Disk::new();
    disk.set_bytes_max(24 << 20);
    // Merges of the background would write what is damaged anew.
    let options = Options::new().memory_bytes(8 << 20).memtable_bytes(256 << 10).background_merges(false);
    let db = Db::open_on(&disk, "small.azk", options.durability(Durability::Sync)).unwrap();
    let damaged = db.table("damaged", TableKind::Ordered).unwrap();
    for round in 0..2 {
        for first in (0..20_000).step_by(1000) {
            damaged.put_many((first..first + 1000).map(|n| (key(n), value(n + round, 100)))).unwrap();
        }
        db.flush().unwrap();
    }
    // All but the superblocks, with the manifest in them.
    let file = disk.open(Path::new("small.azk"), OpenMode::ReadWrite).unwrap();
    for page in 1..64u64 {
        file.write_at(&[0xa5; 64], page * 16_384 + 100).unwrap();
    }
    let table = db.table("t", TableKind::Ordered).unwrap();
    let mut model = Model { keys: BTreeSet::new(), next: 0, len: 100, batch: 10 };
    model.fill(&db, &table);
    model.free_half(&db, &table);
    assert!(model.fill(&db, &table) > 0);
    assert!(!db.check(|_| {}).unwrap().problems.is_empty());
}

/// Removes every record, the first of them by themselves.
fn remove_all(db: &Db, table: &Table) {
    let keys: Vec<_> = table.cursor().unwrap().owned().map(|r| r.unwrap().0).collect();
    let (alone, together) = keys.split_at(keys.len().min(200));
    alone.iter().for_each(|k| table.remove(k).unwrap());
    for some in together.chunks(500) {
        let mut txn = db.write();
        some.iter().for_each(|k| txn.remove(table, k).unwrap());
        txn.commit().unwrap();
    }
}
