//! Followers, and what the system tells of their pins, at moments that only a hook can choose.

use super::hooked::{Call, Hooked};
use crate::api::{Db, Options};
use crate::base::error::Error;
use crate::base::key::TableKind;
use crate::engine::config::Freshness;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn options() -> Options {
    Options::new().memory_bytes(64 << 20).threads(false)
}

/// The file grows while the follower looks at it, and the log leads it to what was not there when it began.
#[test]
fn a_follower_reads_large_values_in_a_file_that_grows() {
    const LEN: usize = 2 << 20;
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "grows.azk", options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("small", "v").unwrap();
    db.flush().unwrap();
    t.put("another", "v").unwrap();
    let follower = Db::open_on(&disk, "grows.azk", options().freshness(Freshness::Log)).unwrap();
    let followed = follower.open_table("t").unwrap();
    t.put("value", vec![0; LEN]).unwrap();
    // At each of the reads of one look in turn, the writer stores a value before it.
    for nth in 0..12 {
        let (at, writer, calls) = (u32::from(nth), t.clone(), AtomicU32::new(0));
        disk.hook(move |call| {
            if call == Call::Read && calls.fetch_add(1, Ordering::Relaxed) == at {
                writer.put(format!("value {nth}"), vec![nth; LEN]).unwrap();
            }
            Ok(())
        });
        t.put("next", [nth]).unwrap();
        t.put("value", vec![nth; LEN]).unwrap();
        assert_eq!(followed.get("value").unwrap(), Some(vec![nth; LEN]));
        disk.heal();
        for before in 0..nth {
            assert_eq!(followed.get(format!("value {before}")).unwrap(), Some(vec![before; LEN]), "{nth}");
        }
    }
}

/// While a follower reads what a checkpoint has in the log, the writer has the next one, and the log's
/// segments are used again. What the follower has pinned is there all the same, so it need not begin anew.
#[test]
fn a_follower_of_checkpoints_is_not_held_up_by_tables_that_come_and_go() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "swaps.azk", options().memtable_bytes(64 << 10)).unwrap();
    let kept = db.create_table("kept", TableKind::Ordered).unwrap();
    kept.put("swaps", [0; 8]).unwrap();
    db.create_table("t", TableKind::Ordered).unwrap();
    db.flush().unwrap();
    let swap = {
        let (db, kept) = (db.clone(), kept.clone());
        move || {
            let swap = |txn: &mut crate::WriteTxn| {
                txn.increment(&kept, "swaps", 1)?;
                txn.drop_table("t")?;
                let t = txn.create_table("t", TableKind::Ordered)?;
                (0..20u8).try_for_each(|i| txn.put(&t, [i], vec![i; 900]))?;
                txn.put(&t, "large", vec![7; 50_000])
            };
            db.transact(swap).unwrap();
        }
    };
    let swap = Arc::new(swap);
    let follower = Db::open_on(&disk, "swaps.azk", options().freshness(Freshness::Checkpoint)).unwrap();
    let followed = follower.open_table("kept").unwrap();
    for round in 0..40 {
        swap();
        let before = kept.get("swaps").unwrap();
        let (writer, again, looks) = (db.clone(), swap.clone(), Arc::new(AtomicU32::new(0)));
        let (reads, all) = (AtomicU32::new(u32::MAX / 2), looks.clone());
        disk.hook(move |call| {
            if call == Call::Pin {
                reads.store(0, Ordering::Relaxed);
            }
            // The first two are of the superblocks.
            if call == Call::Read && reads.fetch_add(1, Ordering::Relaxed) == 2 + round % 4 {
                all.fetch_add(1, Ordering::Relaxed);
                (0..5).for_each(|_| again());
                writer.flush().unwrap();
                again();
            }
            Ok(())
        });
        assert_eq!(followed.get("swaps").unwrap(), before);
        disk.heal();
        assert!(looks.load(Ordering::Relaxed) == 1, "{looks:?} looks");
    }
    assert_eq!(follower.open_table("t").unwrap().get("large").unwrap(), Some(vec![7; 50_000]));
    assert!(follower.check(|_| {}).unwrap().problems.is_empty());
}

#[test]
fn who_cannot_ask_for_pins_keeps_what_they_may_mean() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "pins.azk", options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    let fill = |round: u8| {
        for i in 0..200u8 {
            t.put([i], vec![round; 3000]).unwrap();
        }
        db.compact().unwrap();
    };
    fill(0);
    assert_eq!(db.stats().pinned_bytes, 0);
    let fail_with = |kind: io::ErrorKind| {
        disk.hook(move |call| if call == Call::Pins { Err(kind.into()) } else { Ok(()) });
    };
    fail_with(io::ErrorKind::Unsupported);
    fill(1);
    assert_eq!(db.stats().pinned_bytes, 0, "nobody can pin");
    fail_with(io::ErrorKind::OutOfMemory);
    fill(2);
    fill(3);
    assert!(db.stats().pinned_bytes > 500_000, "{:?}", db.stats());
    disk.heal();
    assert_eq!(db.stats().pinned_bytes, 0);
    drop(t);
    db.close().unwrap();
    fail_with(io::ErrorKind::OutOfMemory);
    let refused = Db::open_on(&disk, "pins.azk", options());
    assert!(matches!(&refused, Err(Error::Io { .. })), "{:?}", refused.err());
    fail_with(io::ErrorKind::InvalidInput);
    Db::open_on(&disk, "pins.azk", options()).unwrap().close().unwrap();
}
