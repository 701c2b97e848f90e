//! Where reads wait for the disk, the system is told of those to come.

use super::hooked::{Call, Hooked};
use crate::api::{Db, Options};
use crate::base::key::TableKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const RECORDS: u64 = 4_000;

fn value(i: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (i.wrapping_mul(31) ^ at.wrapping_mul(i | 1) >> 3) as u8).collect()
}

fn options() -> Options {
    Options::new().memory_bytes(8 << 20)
}

/// A database on a disk whose reads take a while, with a table of small values and one of large values. Also
/// gives how often the disk is told of reads to come.
fn slow() -> (Hooked, Arc<AtomicU64>) {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "db", options()).unwrap();
    for (name, len) in [("small", 200), ("large", 1_500)] {
        let table = db.table(name, TableKind::Ordered).unwrap();
        table.put_many((0..RECORDS).map(|i| (i.to_be_bytes(), value(i, len)))).unwrap();
    }
    db.compact().unwrap();
    db.close().unwrap();
    let hints = Arc::new(AtomicU64::new(0));
    let counted = hints.clone();
    disk.hook(move |call| {
        match call {
            Call::Read => std::thread::sleep(Duration::from_micros(100)),
            Call::WillRead => drop(counted.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
        Ok(())
    });
    (disk, hints)
}

#[test]
fn gets_of_many_keys_ask_for_pages_and_values_ahead() {
    let (disk, hints) = slow();
    let db = Db::open_on(&disk, "db", options()).unwrap();
    for (name, len, least) in [("small", 200, 20), ("large", 1_500, 100)] {
        let table = db.open_table(name).unwrap();
        let before = hints.load(Ordering::Relaxed);
        let mut seen = 0;
        for round in 0..4 {
            let order: Vec<u64> = (0..400).map(|j| (j * 1_009 + round * 400) % RECORDS).collect();
            let keys: Vec<_> = order.iter().map(|i| i.to_be_bytes()).collect();
            let check = |at: usize, found: Option<&[u8]>| {
                assert_eq!(found, Some(&value(order[at], len)[..]), "{name} {at}");
                seen += 1;
            };
            table.get_many_with(&keys, check).unwrap();
        }
        let given = hints.load(Ordering::Relaxed) - before;
        assert!(seen == 1_600 && given >= least, "{name}: {seen} values, {given} hints");
    }
}

#[test]
fn walks_ask_for_pages_and_values_ahead_both_ways() {
    let (disk, hints) = slow();
    for (name, len) in [("small", 200), ("large", 1_500)] {
        for forward in [true, false] {
            // Opened anew, so that nothing is in memory.
            let db = Db::open_on(&disk, "db", options()).unwrap();
            let table = db.open_table(name).unwrap();
            let before = hints.load(Ordering::Relaxed);
            let mut cursor = table.cursor().unwrap();
            if !forward {
                cursor.seek_last();
            }
            for n in 0..RECORDS {
                let i = if forward { n } else { RECORDS - 1 - n };
                let (key, found) = if forward { cursor.next() } else { cursor.prev() }.unwrap().unwrap();
                assert_eq!(
                    (key, found.bytes().unwrap()),
                    (&i.to_be_bytes()[..], &value(i, len)[..]),
                    "{name}"
                );
            }
            let given = hints.load(Ordering::Relaxed) - before;
            // Many pages and values a hint: they stand together.
            assert!((1..RECORDS / 8).contains(&given), "{name}, forward {forward}: {given} hints");
        }
    }
}
