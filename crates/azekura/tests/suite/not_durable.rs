//! What was acknowledged before it was durable, on a full disk: it stays while the handle lives, and closing
//! says what is at stake. And the log of small commits does not fill a disk by itself.

use azekura::{Db, Durability, Error, Options, TableKind};
use sim::disk::{Disk, Keep};
use sim::rng::Rng;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);

fn open(disk: &Disk, durability: Durability) -> Db {
    open_with(disk, durability, 256 << 10)
}

fn open_with(disk: &Disk, durability: Durability, memtable_bytes: u64) -> Db {
    let options = Options::new().durability(durability).eventual_delay(Duration::from_millis(50));
    Db::open_on(disk, "small.azk", options.memory_bytes(8 << 20).memtable_bytes(memtable_bytes)).unwrap()
}

/// Keys come in no order.
fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn value(n: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng(n);
    (0..len.div_ceil(8)).flat_map(|_| rng.number().to_le_bytes()).take(len).collect()
}

fn holds(db: &Db, keys: &BTreeSet<u64>, len: usize) {
    let table = db.open_table("t").unwrap();
    assert_eq!(table.count().unwrap(), keys.len() as u64);
    for &n in keys {
        assert_eq!(table.get(&key(n)).unwrap(), Some(value(n, len)), "{n}");
    }
    let report = db.check(|_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// Closing fails as often as it is tried, and nothing else changes; with room again all is as if there always
/// had been.
#[test]
fn nothing_is_closed_while_commits_would_be_lost() {
    for len in [100, 20_000] {
        let disk = Disk::new();
        // Nothing is flushed before the disk is full: the log has no room from before.
        let db = open_with(&disk, Durability::Eventual, 4 << 20);
        let table = db.table("t", TableKind::Ordered).unwrap();
        let mut keys = BTreeSet::new();
        let mut next = 0;
        let mut put = |keys: &mut BTreeSet<u64>| {
            table.put(&key(next), &value(next, len))?;
            keys.insert(next);
            next += 1;
            Ok::<(), Error>(())
        };
        for _ in 0..10 {
            put(&mut keys).unwrap();
        }
        disk.set_bytes_max(1);
        while put(&mut keys).is_ok() {}
        for _ in 0..3 {
            assert!(matches!(db.sync(), Err(Error::NoSpace { .. })));
            match db.clone().close() {
                Err(e @ Error::NotDurable { commits, bytes, .. }) => {
                    assert!(commits >= 10 && bytes >= 10 * 16, "{e}");
                    assert_eq!(e.code(), 19);
                }
                done => panic!("{done:?}"),
            }
            assert!(matches!(put(&mut keys), Err(Error::NoSpace { .. })));
            holds(&db, &keys, len);
        }
        disk.set_bytes_max(u64::MAX);
        // The background tries again too, and is done when it is.
        let until = Instant::now() + SOON;
        while put(&mut keys).is_err() {
            assert!(Instant::now() < until, "there is room");
            std::thread::sleep(Duration::from_millis(5));
        }
        db.sync().unwrap();
        let cut = disk.after_cut(Keep::None, &mut Rng(1));
        db.try_close().unwrap();
        assert!(matches!(db.try_close(), Err(Error::Closed)));
        drop(db);
        for disk in [cut, disk] {
            holds(&open(&disk, Durability::Eventual), &keys, len);
        }
    }
}

/// A handle that goes without being closed lets go of the file, though commits are lost with it.
#[test]
fn the_last_handle_gives_the_file_up() {
    let disk = Disk::new();
    let db = open(&disk, Durability::Eventual);
    let table = db.table("t", TableKind::Ordered).unwrap();
    table.put(&key(0), &value(0, 100)).unwrap();
    db.sync().unwrap();
    disk.set_bytes_max(1);
    for n in 1.. {
        if table.put(&key(n), &value(n, 100)).is_err() {
            break;
        }
    }
    assert!(matches!(db.try_close(), Err(Error::NotDurable { .. })));
    drop((db, table));
    disk.set_bytes_max(u64::MAX);
    let db = open(&disk, Durability::Eventual);
    let table = db.open_table("t").unwrap();
    assert_eq!(table.get(&key(0)).unwrap(), Some(value(0, 100)));
}

/// Each durable put takes a block of the log: that is no reason to be full.
#[test]
fn the_log_of_small_puts_does_not_fill_the_disk() {
    let disk = Disk::new();
    disk.set_bytes_max(8 << 20);
    let db = open(&disk, Durability::Sync);
    let table = db.table("t", TableKind::Ordered).unwrap();
    for n in 0..20_000 {
        table.put(&key(n), &[1]).unwrap_or_else(|e| panic!("put {n}: {e}"));
    }
    assert_eq!(table.count().unwrap(), 20_000);
}
