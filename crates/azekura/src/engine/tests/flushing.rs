//! Flushes: how they write, what they leave when they fail, and tables that go meanwhile.

use super::*;
use crate::engine::config::Freshness;
use crate::engine::crew::Role;
use std::sync::atomic::AtomicU64;

/// A flush that is written while durable commits are expected lets them through. (The system lets one thread
/// at a time write to a file.)
#[test]
fn flushes_are_written_in_pieces_beside_durable_commits() {
    let calls_of_a_flush = |durable: bool| {
        let options = Options::new().background_merges(false).durability(Durability::Eventual);
        let disk = Hooked::default();
        let db = Db::open_on(&disk, "engine.azk", options).unwrap();
        let table = db.create_table("t", TableKind::Hash).unwrap();
        let mix = |i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i << 40).to_be_bytes();
        table.put_many((0..100_000u64).map(|i| (mix(i), mix(!i)))).unwrap();
        db.sync().unwrap();
        if durable {
            let sync = WriteOptions { durability: Some(Durability::Sync), ..WriteOptions::default() };
            let mut txn = db.write_with(sync);
            txn.put(&table, b"a", b"b").unwrap();
            txn.commit().unwrap();
        }
        let calls = Arc::new(AtomicU64::new(0));
        let counted = calls.clone();
        disk.hook(move |call| {
            // The log's thread may be filling its next segment meanwhile.
            if call == Call::Write && std::thread::current().name() != Some(Role::Log.name()) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        let before = db.stats().written_bytes;
        db.flush().unwrap();
        assert!(db.stats().written_bytes - before > 1 << 20);
        calls.load(Ordering::Relaxed)
    };
    let (alone, beside) = (calls_of_a_flush(false), calls_of_a_flush(true));
    assert!(alone <= 16 && beside >= 32, "{alone} calls, and beside commits {beside}");
}

/// A flush whose run is written and then cannot be read is done again, and takes no more room for it.
#[test]
fn a_flush_that_fails_at_its_end_leaves_no_extent_behind() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "engine.azk", Options::new().background_merges(false)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    table.put_many((0..5000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    db.flush().unwrap();
    table.remove_range(1000u64.to_be_bytes()..2000u64.to_be_bytes()).unwrap();
    disk.fail_all(Call::Read);
    assert!(matches!(db.flush(), Err(Error::Io { .. })));
    disk.heal();
    wait_until(|| db.flush().is_ok());
    wait_until(|| leaked(&db.engine) == 0);
    assert_eq!(table.count().unwrap(), 4000);
}

/// A table whose flush fails is dropped while it is frozen. Neither its memory nor its error is held against
/// those who write to other tables.
#[test]
fn a_frozen_table_that_is_dropped_is_forgotten() {
    let disk = Hooked::default();
    let options = Options::new().background_merges(false).durability(Durability::Eventual);
    let db = Db::open_on(&disk, "engine.azk", options).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    let other = db.create_table("other", TableKind::Ordered).unwrap();
    table.put_many((0..5000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    disk.hook(|call| match std::thread::current().name() {
        Some("azekura-flush") if call == Call::Write => Err(io::ErrorKind::Other.into()),
        _ => Ok(()),
    });
    assert!(matches!(db.flush(), Err(Error::Io { .. })));
    assert!(db.stats().memtable_bytes > 5000 * 16);
    db.drop_table("t").unwrap();
    assert_eq!(db.stats().memtable_bytes, 0);
    disk.heal();
    other.put(b"a", &[b'1'; 1000]).unwrap();
    db.flush().unwrap();
    assert!(db.stats().runs == 1 && db.stats().memtable_bytes == 0);
}

#[test]
fn a_flush_of_a_dropped_table_says_nothing_of_what_was_frozen_since() {
    // What the flushing thread writes: it waits while the gate is shut, and shuts it after a checkpoint when
    // told to.
    const OPEN: u32 = 0;
    const SHUT: u32 = 1;
    const ONE_CHECKPOINT: u32 = 2;
    let disk = Hooked::default();
    let (gate, waits) = (Arc::new(AtomicU32::new(OPEN)), Arc::new(AtomicU32::new(0)));
    let options = || Options::new().background_merges(false).durability(Durability::Sync);
    let db = Db::open_on(&disk, "engine.azk", options()).unwrap();
    let gone = db.create_table("gone", TableKind::Ordered).unwrap();
    let kept = db.create_table("kept", TableKind::Ordered).unwrap();
    gone.put_many((0..100_000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    gate.store(SHUT, Ordering::SeqCst);
    let (at, waiting) = (gate.clone(), waits.clone());
    disk.hook(move |call| {
        if std::thread::current().name() != Some("azekura-flush") {
            return Ok(());
        }
        if call == Call::WriteDurable {
            let _other = at.compare_exchange(ONE_CHECKPOINT, SHUT, Ordering::SeqCst, Ordering::SeqCst);
        }
        if call == Call::Write && at.load(Ordering::SeqCst) == SHUT {
            waiting.fetch_add(1, Ordering::SeqCst);
            wait_until(|| at.load(Ordering::SeqCst) != SHUT);
        }
        Ok(())
    });
    let flush = || {
        let db = db.clone();
        std::thread::spawn(move || db.flush())
    };
    let first = flush();
    wait_until(|| waits.load(Ordering::SeqCst) == 1);
    db.drop_table("gone").unwrap();
    // Enough for a run.
    kept.put(b"key", &[b'a'; 1000]).unwrap();
    let second = flush();
    wait_until(|| db.engine.freezer().has_frozen());
    // The first flush's checkpoint is durable when the second comes to its run.
    gate.store(ONE_CHECKPOINT, Ordering::SeqCst);
    wait_until(|| waits.load(Ordering::SeqCst) == 2);
    let after = Db::open_on(&copy_of(&disk, "engine.azk"), "engine.azk", options()).unwrap();
    let found = after.open_table("kept").unwrap().get(b"key").unwrap();
    gate.store(OPEN, Ordering::SeqCst);
    disk.heal();
    first.join().unwrap().unwrap();
    second.join().unwrap().unwrap();
    assert_eq!(found.as_deref(), Some(&[b'a'; 1000][..]));
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

/// A bulk is written to a run when it is synced, and not to the log before.
#[test]
fn syncing_a_bulk_writes_it_once() {
    let storage = MemStorage::default();
    let options = || {
        Options::new().memory_bytes(64 << 20).durability(Durability::Eventual).eventual_delay(Duration::MAX)
    };
    let db = Db::open_on(&storage, "bulk.azk", options()).unwrap();
    let table = db.table("t", TableKind::Ordered).unwrap();
    table.put_many((0..400_000u64).map(|i| (i.to_be_bytes(), i.to_le_bytes()))).unwrap();
    db.sync().unwrap();
    assert!(db.engine.checkpointer.lock().flushed_seq > 0);
    let (written, file) = (db.stats().written_bytes, db.stats().file_bytes);
    assert!(written < file * 5 / 4, "{written} bytes written for a file of {file}");
    // A little is synced by the log, which is one write and one sync.
    let flushes = db.stats().flushes;
    table.put(&7u64.to_be_bytes(), b"seven").unwrap();
    db.sync().unwrap();
    assert_eq!(db.stats().flushes, flushes);
    db.close().unwrap();
    let db = Db::open_on(&storage, "bulk.azk", options()).unwrap();
    assert_eq!(db.read().count(&db.open_table("t").unwrap()).unwrap(), 400_000);
}

/// Commits that wait by reference stand between those that wait as copies. Each piece of copies takes no more
/// memory than it needs.
#[test]
fn copies_between_commits_by_reference_take_little_memory() {
    let options = Options::new()
        .background_merges(false)
        .durability(Durability::Eventual)
        .eventual_delay(Duration::from_secs(3600));
    let db = Db::open_on(&MemStorage::default(), "engine.azk", options).unwrap();
    let (long, short) = (
        db.create_table("long", TableKind::Ordered).unwrap(),
        db.create_table("short", TableKind::Hash).unwrap(),
    );
    for i in 0..1000u64 {
        long.put(i.to_be_bytes(), [7; 300]).unwrap();
        short.put(i.to_be_bytes(), [7; 8]).unwrap();
    }
    assert!(db.engine.log.queued_bytes() > 300_000);
    let bytes = db.engine.log.copies_capacity();
    assert!((16_000..1 << 20).contains(&bytes), "{bytes} bytes for copies of 1,000 short commits");
}

/// A moment from which on what waits for the log's thread has waited long enough.
fn long_ago() -> Option<crate::base::sync::Instant> {
    let then = crate::base::sync::Instant::now().checked_sub(Duration::from_secs(2));
    assert!(then.is_some(), "the machine has been up for two seconds");
    then
}

/// Whether the newest checkpoint has a part of a commit, and the log the rest.
fn is_torn(follower: &Db) -> bool {
    let state = follower.engine.newest_state();
    state.joint_seq > state.flushed_seq
}

/// A table goes between the freeze and the flush, and with it all that was frozen. The newest checkpoint
/// still has a part of the commit that made it, and the log the rest.
#[test]
fn a_checkpoint_is_whole_soon_though_nothing_is_left_to_be_flushed() {
    let storage = MemStorage::default();
    let open = |options: Options| Db::open_on(&storage, "engine.azk", options).unwrap();
    let db = open(Options::new().threads(false));
    let make = |txn: &mut crate::WriteTxn| {
        let t = txn.create_table("t", TableKind::Ordered)?;
        txn.put(&t, "k", "v")
    };
    db.transact(make).unwrap();
    let engine = &db.engine;
    assert!(engine.freezer().rotate(&mut engine.committer.lock()).unwrap());
    db.drop_table("t").unwrap();
    let follower = open(Options::new().freshness(Freshness::Checkpoint));
    assert!(is_torn(&follower));
    engine.log_thread().flush_joint(&mut long_ago());
    assert!(!is_torn(&follower));
    // There is nothing more to do.
    let number = engine.checkpointer.lock().number;
    engine.log_thread().flush_joint(&mut long_ago());
    assert_eq!(engine.checkpointer.lock().number, number);
}

/// A checkpoint has been written since a transaction made a table and put records. Then its writer is killed.
/// The next one rests.
#[test]
fn a_checkpoint_that_is_found_torn_is_whole_soon_though_nobody_commits() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "engine.azk", Options::new().threads(false)).unwrap();
    db.create_table("scratch", TableKind::Ordered).unwrap();
    let make = |txn: &mut crate::WriteTxn| {
        let t = txn.create_table("t", TableKind::Ordered)?;
        txn.put(&t, "k", "v")
    };
    db.transact(make).unwrap();
    db.drop_table("scratch").unwrap();
    let killed = copy_of(&disk, "engine.azk");
    let options = || Options::new().freshness(Freshness::Checkpoint);
    let follower = Db::open_on(&killed, "engine.azk", options()).unwrap();
    assert!(is_torn(&follower));
    let again = Db::open_on(&killed, "engine.azk", Options::new()).unwrap();
    // A copy has what the log says besides.
    follower.copy_to_on(&killed, "copy.azk", |_| {}).unwrap();
    let copy = Db::open_on(&killed, "copy.azk", Options::new()).unwrap();
    assert_eq!(copy.open_table("t").unwrap().get("k").unwrap(), Some(b"v".to_vec()));
    let began = std::time::Instant::now();
    while is_torn(&follower) {
        assert!(began.elapsed() < Duration::from_secs(30), "nobody makes it whole");
        std::thread::sleep(Duration::from_millis(10));
    }
    again.close().unwrap();
}

/// As above, but the manifest needs an extent of its own, and the disk is full just then.
#[test]
fn a_checkpoint_that_is_to_be_whole_is_tried_again_after_a_full_disk() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "engine.azk", Options::new().threads(false)).unwrap();
    for n in 0..100 {
        db.create_table(&format!("{n} {}", "a long name ".repeat(8)), TableKind::Ordered).unwrap();
    }
    let make = |txn: &mut crate::WriteTxn| {
        let t = txn.create_table("t", TableKind::Ordered)?;
        txn.put(&t, "k", "v")
    };
    db.transact(make).unwrap();
    let engine = &db.engine;
    assert!(engine.freezer().rotate(&mut engine.committer.lock()).unwrap());
    db.drop_table("t").unwrap();
    let options = Options::new().freshness(Freshness::Checkpoint);
    let follower = Db::open_on(&disk, "engine.azk", options).unwrap();
    assert!(is_torn(&follower));
    let joint = engine.state.load().joint_seq;
    disk.fill_at(1);
    engine.log_thread().flush_joint(&mut long_ago());
    assert!(is_torn(&follower));
    assert!(engine.state.load().flushed_seq >= joint, "the manifest is what has found no room");
    disk.heal();
    engine.log_thread().flush_joint(&mut long_ago());
    assert!(!is_torn(&follower));
}
