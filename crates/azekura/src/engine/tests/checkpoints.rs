//! Checkpoints, the log and value segments on disks that are full or that fail.

use super::*;

/// Every way in which reading can fail while a run is moved.
#[test]
fn a_run_that_cannot_be_moved_leaves_no_extent_behind() {
    let disk = Hooked::default();
    // Nothing is written to the log, so that the runs stand one after the other.
    let options = Options::new().background_merges(false).durability(Durability::Eventual);
    let db = Db::open_on(&disk, "engine.azk", options.eventual_delay(Duration::from_secs(60))).unwrap();
    let hole = db.create_table("hole", TableKind::Ordered).unwrap();
    hole.put_many((0..100_000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    db.flush().unwrap();
    // The upper run deletes a range, which is read when a level is made of it.
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    table.put_many((0..5000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    db.flush().unwrap();
    table.put_many((0..5000u64).map(|i| (i.to_be_bytes(), [7; 8]))).unwrap();
    table.remove_range(1000u64.to_be_bytes()..2000u64.to_be_bytes()).unwrap();
    db.flush().unwrap();
    db.drop_table("hole").unwrap();
    drop(hole);
    let engine = &db.engine;
    wait_until(|| leaked(engine) == 0);
    let mut failures = 0;
    for nth in 1.. {
        disk.fail_nth(Call::Read, nth);
        let moved = engine.reclaimer().relocator(u64::MAX).move_tail();
        disk.heal();
        match moved {
            Err(e) => assert!(matches!(e, Error::Io { .. }), "read {nth}: {e}"),
            Ok(_) => break,
        }
        failures += 1;
        assert_eq!(leaked(engine), 0, "after read {nth} failed");
    }
    assert!(failures >= 2, "the copy's read and that of the range deletes, not {failures}");
    assert_eq!(table.count().unwrap(), 4000);
}

/// A page was whole when it was read, and the copy of it is not: the copy is given up.
#[test]
fn a_run_whose_copy_is_not_whole_stays_where_it_is() {
    use std::os::unix::fs::FileExt;
    let path = std::env::temp_dir().join(format!("azekura-copy-{}.azk", std::process::id()));
    let _none = std::fs::remove_file(&path);
    let options = Options::new().background_merges(false).durability(Durability::Eventual);
    let db = Db::open(&path, options.eventual_delay(Duration::from_secs(60))).unwrap();
    let (hole, t) = (db.create_table("hole", TableKind::Hash), db.create_table("t", TableKind::Ordered));
    let (hole, t) = (hole.unwrap(), t.unwrap());
    for table in [&hole, &t] {
        table.put_many((0..100_000u64).map(|i| (i.to_be_bytes(), (i * i).to_be_bytes()))).unwrap();
        db.flush().unwrap();
    }
    let sum = || -> Result<u64, Error> {
        let get = |i: u64| t.get(&i.to_be_bytes()).map(|value| u64::from(value.unwrap()[7]));
        (0..100_000).map(get).sum()
    };
    let right = sum().unwrap();
    db.drop_table("hole").unwrap();
    drop(hole);
    let engine = &db.engine;
    wait_until(|| leaked(engine) == 0);
    let extent = {
        let state = engine.state.load();
        let levels = state.tables.with_runs().flat_map(|t| t.levels.iter());
        let runs = levels.flat_map(|level| level.runs.iter());
        runs.flat_map(|run| run.info.extents.clone()).max_by_key(|e| e.offset).unwrap()
    };
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, extent.offset + 5000).unwrap();
    file.write_all_at(&[!byte[0]], extent.offset + 5000).unwrap();
    let moved = engine.reclaimer().relocator(u64::MAX).move_tail();
    assert!(matches!(moved, Err(Error::Corrupt { .. })), "{moved:?}");
    assert_eq!(leaked(engine), 0);
    file.write_all_at(&byte, extent.offset + 5000).unwrap();
    assert_eq!(sum().unwrap(), right, "nothing was given up but the copy");
    assert!(engine.reclaimer().relocator(u64::MAX).move_tail().unwrap(), "when it is whole again");
    assert_eq!(sum().unwrap(), right);
    drop(t);
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

/// The database has so many runs that its manifest needs an extent of its own. The disk is full from any
/// write of a flush on, the manifest's among them. It is refused, and done when there is room.
#[test]
fn a_checkpoint_on_a_full_disk_is_tried_again() {
    let disk = Hooked::default();
    let options = Options::new().background_merges(false).durability(Durability::Sync);
    let db = Db::open_on(&disk, "engine.azk", options).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    let put = |n: u64| table.put_many((0..100u64).map(|i| ((i * 1000 + n).to_be_bytes(), n.to_be_bytes())));
    for n in 0..60 {
        put(n).unwrap();
        db.flush().unwrap();
    }
    let mut refused = 0;
    let mut committed = 60;
    for nth in 1.. {
        put(committed).unwrap();
        committed += 1;
        wait_until(|| leaked(&db.engine) == 0);
        disk.fill_at(nth);
        let flushed = db.flush();
        if flushed.is_ok() {
            disk.heal();
            break;
        }
        assert!(matches!(flushed, Err(Error::NoSpace { .. })), "write {nth}: {flushed:?}");
        refused += 1;
        // While it is full, what still has room in the log is committed.
        put(committed).unwrap();
        committed += 1;
        disk.heal();
        put(committed).unwrap();
        committed += 1;
        wait_until(|| db.flush().is_ok());
    }
    assert!(refused >= 2, "the run's write and the manifest's, not {refused}");
    assert_eq!(table.count().unwrap(), committed * 100);
    wait_until(|| leaked(&db.engine) == 0);
    drop(table);
    db.close().unwrap();
    let db = Db::open_on(&disk, "engine.azk", Options::new()).unwrap();
    assert_eq!(db.open_table("t").unwrap().count().unwrap(), committed * 100);
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

/// A bulk of log is written in slices. Between two of them a checkpoint gets what it needs of the log. So a
/// flush does not wait for all that it has just made needless.
#[test]
fn a_bulk_of_log_lets_a_checkpoint_through() {
    const SLICES: u32 = 8;
    let disk = Hooked::default();
    let options = Options::new().durability(Durability::Eventual).eventual_delay(Duration::from_secs(60));
    let db = Db::open_on(&disk, "engine.azk", options.memtable_bytes(1 << 30)).unwrap();
    let table = db.create_table("t", TableKind::Hash).unwrap();
    // The log begins.
    table.put(b"first", b"").unwrap();
    db.sync().unwrap();
    for slice in 0..u64::from(SLICES) {
        // As much as a slice is, each.
        table.put_many((0..300_000u64).map(|i| ((i * 8 + slice).to_be_bytes(), i.to_be_bytes()))).unwrap();
    }
    let (syncs, asking) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let (counted, asked) = (syncs.clone(), asking.clone());
    disk.hook(move |call| {
        if call == Call::Sync && std::thread::current().name() == Some("bulk") {
            counted.fetch_add(1, Ordering::SeqCst);
            wait_until(|| asked.load(Ordering::SeqCst));
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    });
    let bulk = {
        let db = db.clone();
        std::thread::Builder::new().name("bulk".into()).spawn(move || db.sync()).unwrap()
    };
    wait_until(|| syncs.load(Ordering::SeqCst) > 0);
    asking.store(true, Ordering::SeqCst);
    assert!(db.engine.log.chain_after(0).is_some());
    let written_by_then = syncs.load(Ordering::SeqCst);
    bulk.join().unwrap().unwrap();
    assert!(syncs.load(Ordering::SeqCst) >= SLICES, "the test wants a bulk of several slices");
    // On a busy machine more than one slice may pass before this thread has its turn, but not all of them.
    assert!(written_by_then < SLICES, "the log was held for {written_by_then} slices");
}

/// Found by reading: a value segment whose tail found no room when it was closed kept all of the extent that
/// it was opened with. It was never moved.
#[test]
fn a_value_segment_that_is_closed_on_a_full_disk_takes_what_it_needs() {
    /// As many parts as may wait for room.
    const PARTS: usize = 8;
    let until = Instant::now() + Duration::from_secs(60);
    let patient = || {
        assert!(Instant::now() < until, "waited in vain");
        std::thread::sleep(Duration::from_millis(1));
    };
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "engine.azk", Options::new()).unwrap();
    let values = &db.engine.values;
    // A new segment is a part of all there are: with this one it has room behind the value.
    let others = values.adopt(1000, vec![db.engine.space.alloc(512 << 20)], 0);
    disk.fill_at(1);
    let (_, segment) = values.append(&vec![7; PARTS * SEGMENT_BYTES + 100]).unwrap();
    db.engine.background.crew.need(crate::engine::crew::Role::Values).unwrap();
    while values.append(&[1]).is_ok() {
        patient();
    }
    let opened = segment.bytes();
    assert!(matches!(values.close_open(), Err(Error::NoSpace { .. })), "the tail finds no room");
    assert_eq!(segment.bytes(), align_up(segment.used()));
    assert!(segment.bytes() < opened, "the test wants room behind the value");
    disk.heal();
    while values.sync().is_err() {
        patient();
    }
    assert!(values.whole_segments().iter().any(|s| Arc::ptr_eq(s, &segment)), "and it may be moved");
    drop((others, segment));
    db.close().unwrap();
}

/// A write of the log fails in one thread, and what the system has told that one it does not tell another:
/// the sync of a checkpoint succeeds meanwhile, and may have lost the manifest.
#[test]
fn no_superblock_is_written_while_it_is_not_known_whether_the_log_has_failed() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let disk = Hooked::default();
    let options = Options::new().threads(false).durability(Durability::Eventual);
    let db = Db::open_on(&disk, "engine.azk", options).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    table.put(b"k", b"1").unwrap();
    db.sync().unwrap();
    table.put(b"k", b"2").unwrap();
    let [is_synced, is_failing, is_published] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
    let log = std::thread::current().id();
    let (synced, failing, published) = (is_synced.clone(), is_failing.clone(), is_published.clone());
    disk.hook(move |call| match call {
        Call::WriteDurable | Call::Sync if std::thread::current().id() == log => {
            failing.store(true, Ordering::Release);
            std::thread::sleep(Duration::from_millis(100));
            Err(rustix::io::Errno::IO.into())
        }
        Call::Sync => {
            synced.store(true, Ordering::Release);
            wait_until(|| failing.load(Ordering::Acquire));
            Ok(())
        }
        Call::WriteDurable => {
            published.store(true, Ordering::Release);
            Ok(())
        }
        _ => Ok(()),
    });
    std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| db.engine.checkpoints().write());
        wait_until(|| is_synced.load(Ordering::Acquire));
        assert!(matches!(db.sync(), Err(Error::Io { .. })));
        let checkpoint = checkpoint.join().unwrap();
        assert!(matches!(checkpoint, Err(Error::Poisoned { .. })), "{checkpoint:?}");
    });
    assert!(!is_published.load(Ordering::Acquire), "a superblock was written");
    disk.heal();
}
