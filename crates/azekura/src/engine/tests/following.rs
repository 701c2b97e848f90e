//! Followers, and what the system tells of their pins, at moments that only a hook can choose.

use super::hooked::{Call, Hooked};
use crate::api::{Db, Options};
use crate::base::error::Error;
use crate::base::key::TableKind;
use crate::engine::config::Freshness;
use crate::engine::followed::Followed;
use crate::engine::state::State;
use crate::storage::forward::forward_names;
use crate::storage::{File, OpenMode, OsStorage, Storage};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

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

/// A reader has loaded the newest state and was held up, and another one has read the log on meanwhile. What
/// the log says is in a later state, and not in the one that the first reader has.
#[test]
fn a_state_that_others_have_left_behind_is_not_the_newest() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "behind.azk", options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("a", "1").unwrap();
    let follower = Db::open_on(&disk, "behind.azk", options().freshness(Freshness::Log)).unwrap();
    let followed = follower.open_table("t").unwrap();
    assert!(followed.contains("a").unwrap());
    let is_newest = |state: &State| Followed::of(state).unwrap().is_newest(state.visible());
    let held_up = follower.engine.newest_full().unwrap();
    assert!(is_newest(&held_up));
    t.put("a", "2").unwrap();
    assert!(!is_newest(&held_up), "the file has more");
    assert_eq!(followed.get("a").unwrap().as_deref(), Some(&b"2"[..]));
    let now = follower.engine.newest_full().unwrap();
    assert!(std::ptr::eq(Followed::of(&now).unwrap(), Followed::of(&held_up).unwrap()), "one checkpoint");
    assert!(is_newest(&now) && !is_newest(&held_up));
}

/// Threads that share a follower: each read sees every commit that was durable before it began.
#[test]
fn readers_of_one_follower_miss_no_durable_commit() {
    const COMMITS: u32 = 3000;
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "shared.azk", options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("n", 0_u32.to_be_bytes()).unwrap();
    let follower = Db::open_on(&disk, "shared.azk", options().freshness(Freshness::Log)).unwrap();
    let followed = follower.open_table("t").unwrap();
    let (durable, began) = (AtomicU32::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                // The time is for a writer that has failed.
                let mut least = 0;
                while least < COMMITS && began.elapsed() < Duration::from_secs(100) {
                    least = durable.load(Ordering::Acquire);
                    let found = followed.get("n").unwrap().unwrap();
                    let found = u32::from_be_bytes(found.try_into().unwrap());
                    assert!(found >= least, "commit {found} is seen, and {least} was durable before");
                }
            });
        }
        for n in 1..=COMMITS {
            t.put("n", n.to_be_bytes()).unwrap();
            durable.store(n, Ordering::Release);
        }
    });
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
                (0..20u8).try_for_each(|i| txn.put(&t, [i], vec![i; 8900]))?;
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
            t.put([i], vec![round; 9000]).unwrap();
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

/// A look that fails leaves it with what it has seen before. That need not be the newest checkpoint.
#[test]
fn what_a_follower_does_not_know_of_pins_it_does_not_say() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "unknown.azk", options()).unwrap();
    let t = db.create_table("t", TableKind::Ordered).unwrap();
    t.put("k", "old").unwrap();
    db.flush().unwrap();
    let open = || Db::open_on(&disk, "unknown.azk", options().freshness(Freshness::Checkpoint)).unwrap();
    let (reader, other) = (open(), open());
    let _reading = reader.read();
    let seen =
        || -> Vec<_> { other.stats().pins.iter().map(|pin| (pin.age, pin.bytes, pin.revoked)).collect() };
    assert_eq!(seen(), [(Some(Duration::ZERO), Some(0), Some(false))]);
    t.put("k", "new").unwrap();
    db.flush().unwrap();
    disk.fail_all(Call::Read);
    assert_eq!(seen(), [(None, None, None)]);
    disk.heal();
    assert_eq!(seen(), [(None, None, Some(false))]);
}

/// The system's files, as if they stood on a file system of some kind.
struct OnKind {
    files: OsStorage,
    kind: u64,
}

impl Storage for OnKind {
    forward_names!(files);

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        OsStorage::open_on_kind(path, mode, self.kind)
    }
}

/// A pin that the writer may not see would keep nothing. So there is an error at once, that says why, and the
/// writer goes on as if nobody had asked.
#[test]
fn a_file_whose_locks_are_elsewhere_is_written_and_not_followed() {
    let path = std::env::temp_dir().join(format!("azekura-elsewhere-{}.azk", std::process::id()));
    let kinds = [
        (0x6969, "NFS"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB"),
        (0x6573_5546, "FUSE"),
        (0x0102_1997, "9P"),
        (0x1234_5678, "of the type 0x12345678"),
    ];
    for (kind, name) in kinds {
        let disk = OnKind { files: OsStorage, kind };
        let db = Db::open_on(&disk, &path, options()).unwrap();
        let t = db.create_table("t", TableKind::Ordered).unwrap();
        t.put("k", "v").unwrap();
        db.flush().unwrap();
        for freshness in [Freshness::Checkpoint, Freshness::Log] {
            let refused = Db::open_on(&disk, &path, options().freshness(freshness)).map(drop);
            let Err(Error::Open { path: said, kind, detail }) = refused else {
                panic!("{name}: {refused:?}")
            };
            assert_eq!((said, kind), (path.display().to_string(), io::ErrorKind::Unsupported), "{name}");
            let expected = format!("the file cannot be followed: its file system, {name}, keeps no locks");
            assert!(detail.starts_with(&expected), "{detail}");
        }
        t.put("k", "w").unwrap();
        db.compact().unwrap();
        db.shrink(|_| {}).unwrap();
        assert_eq!((db.stats().pins, db.stats().pinned_bytes), (vec![], 0));
        assert_eq!(db.stats().mirrored_commit, None);
        drop(t);
        db.close().unwrap();
        let db = Db::open_on(&disk, &path, options().read_only(true)).unwrap();
        assert_eq!(db.open_table("t").unwrap().get("k").unwrap().as_deref(), Some(&b"w"[..]), "{name}");
        drop(db);
        std::fs::remove_file(&path).unwrap();
    }
    let disk = OnKind { files: OsStorage, kind: 0xef53 };
    let db = Db::open_on(&disk, &path, options()).unwrap();
    let follower = Db::open_on(&disk, &path, options().follow(true)).unwrap();
    assert_eq!(db.stats().pins.len(), 1, "on ext4 it is followed");
    drop(follower);
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}
