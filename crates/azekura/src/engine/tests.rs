//! What only the engine's inside can show: moments between two locks, and extents that nobody names.

mod ahead;
mod dropped;
mod few;
mod forged;
mod hooked;
mod opening;
mod pages;
mod panics;
mod refused;
mod waste;

use super::Engine;
use super::state::{SortedRun, State};
use crate::WriteOptions;
use crate::api::{Db, Durability, Options};
use crate::base::error::Error;
use crate::base::key::Kind;
use crate::base::limits::{SEGMENT_BYTES, SUPERBLOCKS_BYTES, align_up};
use crate::storage::{MemStorage, OpenMode, Storage};
use hooked::{Call, Hooked};
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A database with one table of one sorted run, and no merges of its own.
fn database() -> Db {
    let options = Options::new().background_merges(false);
    let db = Db::open_on(&MemStorage::default(), "engine.azk", options).unwrap();
    let table = db.create_table("t", Kind::Ordered).unwrap();
    table.put_many((0..1000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    db.flush().unwrap();
    db
}

fn bottom(state: &State) -> Arc<SortedRun> {
    state.tables[0].levels.last().expect("the table was flushed").clone()
}

/// A merge that goes on after one of its steps still holds what it has put in place: whoever looks
/// at what is busy, as a flush and other merges do, never finds the new run without its mark.
#[test]
fn a_step_of_a_merge_is_busy_from_the_moment_it_is_seen() {
    let db = database();
    let engine = db.engine.clone();
    let state = engine.state.load_full();
    let (id, old) = (state.tables[0].id, bottom(&state));
    let new = Arc::new(SortedRun::new(old.runs.clone(), 0.0, old.newest).unwrap());
    engine.lock_work().busy.push((0, old.clone()));
    // Whoever looks holds this lock.
    let work = engine.lock_work();
    let step = {
        let (engine, old, new) = (engine.clone(), old.clone(), new.clone());
        std::thread::spawn(move || engine.replace_levels(id, &[old], &[Some(new)], Vec::new()).unwrap())
    };
    std::thread::sleep(Duration::from_millis(100));
    assert!(!work.bottom_is_free(&engine.state.load().tables[0].levels), "the new run may be taken");
    drop(work);
    assert!(step.join().unwrap());
    let state = engine.state.load_full();
    assert!(Arc::ptr_eq(&bottom(&state), &new));
    assert!(!engine.lock_work().bottom_is_free(&state.tables[0].levels));
}

/// A flush looks up some of its keys, to estimate how many replace older ones. That reads pages, but not for
/// anybody: a merge would take all that it writes into the cache.
#[test]
fn a_load_that_nobody_reads_takes_no_cache() {
    let db = database();
    let table = db.open_table("t").unwrap();
    table.put_many((500..1500u64).map(|i| (i.to_be_bytes(), [1; 8]))).unwrap();
    db.flush().unwrap();
    let is_read = || db.engine.state.load().tables[0].levels.iter().flat_map(|l| &l.runs).any(|r| r.is_read());
    let updates = db.engine.state.load().tables[0].levels[0].updates;
    assert!((0.3..0.7).contains(&updates), "half of the keys were there: {updates}");
    assert!(!is_read());
    db.settle().unwrap();
    assert!(!is_read());
    assert_eq!((db.stats().cache_misses, db.stats().cache_bytes), (0, 0));
    assert_eq!(table.get(&700u64.to_be_bytes()).unwrap().as_deref(), Some(&[1; 8][..]));
    assert!(is_read());
}

/// A flush that is written while durable commits are expected lets them through: the system has a file written
/// by one at a time.
#[test]
fn flushes_are_written_in_pieces_beside_durable_commits() {
    let calls_of_a_flush = |durable: bool| {
        let options = Options::new().background_merges(false).durability(Durability::Eventual);
        let db = Db::open_on(&MemStorage::default(), "engine.azk", options).unwrap();
        let table = db.create_table("t", Kind::Hash).unwrap();
        let mix = |i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i << 40).to_be_bytes();
        table.put_many((0..100_000u64).map(|i| (mix(i), mix(!i)))).unwrap();
        db.sync().unwrap();
        if durable {
            let sync = WriteOptions { durability: Some(Durability::Sync), ..WriteOptions::default() };
            let mut txn = db.write_with(sync);
            txn.put(&table, b"a", b"b").unwrap();
            txn.commit().unwrap();
        }
        let before = db.stats();
        db.flush().unwrap();
        let after = db.stats();
        assert!(after.written_bytes - before.written_bytes > 1 << 20);
        after.write_calls - before.write_calls
    };
    let (alone, beside) = (calls_of_a_flush(false), calls_of_a_flush(true));
    assert!(alone <= 16 && beside >= 32, "{alone} calls, and beside commits {beside}");
}

/// Chunks merged outside the commit lock take the place of those they were made of, whatever came before
/// them meanwhile, and nobody's place if a flush has taken those; who looks sees the same all along.
#[test]
fn merged_chunks_replace_what_still_stands() {
    for flushed in [false, true] {
        let db = database();
        let engine = db.engine.clone();
        let table = db.open_table("t").unwrap();
        let put =
            |n: u64| table.put_many((0..2000u64).map(|i| ((i * 3).to_be_bytes(), (i + n).to_be_bytes()))).unwrap();
        let turn = engine.tidying.take_turn().unwrap();
        (0..6).for_each(put);
        let state = engine.state.load_full();
        let (id, chunks) = (state.tables[0].id, &state.tables[0].chunks);
        assert_eq!(chunks.len(), 6, "as many as were put, for nobody merges them");
        let merged = state.tables[0].merge_chunks(&chunks[2..]).unwrap();
        put(100);
        let held = db.read();
        if flushed {
            db.flush().unwrap();
        }
        let before = engine.state.load_full();
        engine.replace_chunks(&mut engine.lock_commit(), id, &chunks[2..], merged.clone());
        let after = engine.state.load_full();
        if flushed {
            assert!(Arc::ptr_eq(&before, &after), "a flush has taken the chunks");
        } else {
            let now = &after.tables[0].chunks;
            assert_eq!(now.len(), 4);
            assert!(Arc::ptr_eq(&now[3], &merged) && Arc::ptr_eq(&now[2], &chunks[1]));
            assert_eq!(engine.lock_commit().live_bytes, after.tables[0].live_bytes());
        }
        for read in [held, db.read()] {
            for i in 0..2000u64 {
                assert_eq!(read.get(&table, &(i * 3).to_be_bytes()).unwrap().unwrap(), (i + 100).to_be_bytes());
            }
        }
        drop(turn);
        put(200);
        assert!(engine.state.load().tables[0].chunks.len() < 4, "the next commit tidies up");
        assert_eq!(table.get(&9u64.to_be_bytes()).unwrap().unwrap(), 203u64.to_be_bytes());
    }
}

/// Waits for what the engine's threads are about to do; not for ever.
fn wait_until(done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < until, "it does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Bytes that are taken and belong to nothing.
fn leaked(engine: &Engine) -> u64 {
    let state = engine.state.load_full();
    let runs = state.tables.iter().flat_map(|t| t.levels.iter()).flat_map(|l| &l.runs);
    let mut live: u64 = runs.flat_map(|r| &r.info.extents).map(|e| e.len).sum();
    live += engine.values.segments().iter().map(|s| s.bytes()).sum::<u64>();
    live += engine.live_extents().iter().map(|e| e.len).sum::<u64>();
    engine.space.end() - SUPERBLOCKS_BYTES - engine.space.free_bytes() - live
}

/// Every way in which reading can fail while a run is moved.
#[test]
fn a_run_that_cannot_be_moved_leaves_no_extent_behind() {
    let disk = Hooked::default();
    // Nothing is written to the log, so that the runs stand one after the other.
    let options = Options::new().background_merges(false).durability(Durability::Eventual);
    let db = Db::open_on(&disk, "engine.azk", options.eventual_delay(Duration::from_secs(60))).unwrap();
    let hole = db.create_table("hole", Kind::Ordered).unwrap();
    hole.put_many((0..100_000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    db.flush().unwrap();
    // The upper run deletes a range, which is read when a sorted run is made of it.
    let table = db.create_table("t", Kind::Ordered).unwrap();
    table.put_many((0..5000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    db.flush().unwrap();
    table.put_many((0..5000u64).map(|i| (i.to_be_bytes(), [7; 8]))).unwrap();
    table.remove_range(Bound::Included(&1000u64.to_be_bytes()), Bound::Excluded(&2000u64.to_be_bytes())).unwrap();
    db.flush().unwrap();
    db.drop_table("hole").unwrap();
    drop(hole);
    let engine = &db.engine;
    wait_until(|| leaked(engine) == 0);
    let mut failures = 0;
    for nth in 1.. {
        disk.fail_nth(Call::Read, nth);
        let moved = engine.move_tail(&mut super::tail::Allowance::new(u64::MAX));
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

/// A flush whose run is written and then cannot be read is done again, and takes no more room for it.
#[test]
fn a_flush_that_fails_at_its_end_leaves_no_extent_behind() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "engine.azk", Options::new().background_merges(false)).unwrap();
    let table = db.create_table("t", Kind::Ordered).unwrap();
    table.put_many((0..5000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    db.flush().unwrap();
    table.remove_range(Bound::Included(&1000u64.to_be_bytes()), Bound::Excluded(&2000u64.to_be_bytes())).unwrap();
    disk.fail_all(Call::Read);
    assert!(matches!(db.flush(), Err(Error::Io { .. })));
    disk.heal();
    wait_until(|| db.flush().is_ok());
    wait_until(|| leaked(&db.engine) == 0);
    assert_eq!(table.count().unwrap(), 4000);
}

/// A table whose flush fails is dropped while it is frozen: neither its memory nor its error is held
/// against those who write to others.
#[test]
fn a_frozen_table_that_is_dropped_is_forgotten() {
    let disk = Hooked::default();
    let options = Options::new().background_merges(false).durability(Durability::Eventual);
    let db = Db::open_on(&disk, "engine.azk", options).unwrap();
    let table = db.create_table("t", Kind::Ordered).unwrap();
    let other = db.create_table("other", Kind::Ordered).unwrap();
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

/// A database of so many runs that its manifest needs an extent of its own, on a disk that is full from
/// any write of a flush on: the manifest's too. It is refused, and done when there is room.
#[test]
fn a_checkpoint_on_a_full_disk_is_tried_again() {
    let disk = Hooked::default();
    let options = Options::new().background_merges(false).durability(Durability::Sync);
    let db = Db::open_on(&disk, "engine.azk", options).unwrap();
    let table = db.create_table("t", Kind::Ordered).unwrap();
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

/// A transaction that goes on reading after the runs that it began with were merged looks into the merged one,
/// and what it gave out before stays good; one that began before a later commit keeps its own state.
#[test]
fn a_long_read_takes_over_a_merged_state_of_equal_contents() {
    let db = database();
    let table = db.table("t", Kind::Ordered).unwrap();
    for round in 0..4u64 {
        table.put_many((0..500u64).map(|i| ((2 * i).to_be_bytes(), round.to_be_bytes()))).unwrap();
        db.flush().unwrap();
    }
    let (early, long) = (db.read(), db.read());
    let levels = |r: &crate::ReadTxn| r.snapshot.state().tables[0].levels.len();
    let before = levels(&long);
    assert!(before > 1);
    let held = long.get_ref(&table, &8u64.to_be_bytes()).unwrap().unwrap();
    let read_all = |r: &crate::ReadTxn| {
        for i in (0..1000u64).cycle().take(5000) {
            let expected = if i % 2 == 0 { 3 } else { i };
            assert_eq!(r.get(&table, &i.to_be_bytes()).unwrap().unwrap(), expected.to_be_bytes());
        }
    };
    db.engine.settle().unwrap();
    read_all(&long);
    assert_eq!(levels(&long), 1);
    assert_eq!(&held[..], 3u64.to_be_bytes());
    table.put(&1u64.to_be_bytes(), b"later").unwrap();
    db.engine.settle().unwrap();
    read_all(&early);
    assert_eq!(levels(&early), before);
}

/// The snapshot of a transaction is the one that the history watches for it, whatever is committed between
/// the two; else the history would grow for ever.
#[test]
fn a_commit_between_entering_and_reading_is_not_seen_and_nothing_stays_watched() {
    let db = database();
    let table = db.table("t", Kind::Ordered).unwrap();
    table.put(b"small", b"1").unwrap();
    let (state, seq) = db.engine.enter();
    table.put(b"small", b"2").unwrap();
    assert!(state.visible() > seq, "the commit went into the same state");
    let read = crate::ReadTxn::from_state(db.clone(), state, seq);
    assert_eq!(read.get(&table, b"small").unwrap().unwrap(), b"1");
    db.engine.leave(read.snapshot.seq());
    assert!(!db.engine.lock_commit().history.wanted());
}

/// The bytes of the file as they are, as after a kill.
fn copy_of(disk: &Hooked, path: &str) -> Hooked {
    let copy = Hooked::default();
    let old = disk.open(Path::new(path), OpenMode::ReadWrite).unwrap();
    let mut bytes = vec![0; usize::try_from(old.len().unwrap()).unwrap()];
    old.read_at(&mut bytes, 0).unwrap();
    copy.open(Path::new(path), OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
    copy
}

#[test]
fn a_flush_of_a_dropped_table_says_nothing_of_what_was_frozen_since() {
    // What the flushing thread writes: it waits while the gate is shut, and shuts it after a checkpoint when told to.
    const OPEN: u32 = 0;
    const SHUT: u32 = 1;
    const ONE_CHECKPOINT: u32 = 2;
    let disk = Hooked::default();
    let (gate, waits) = (Arc::new(AtomicU32::new(OPEN)), Arc::new(AtomicU32::new(0)));
    let options = || Options::new().background_merges(false).durability(Durability::Sync);
    let db = Db::open_on(&disk, "engine.azk", options()).unwrap();
    let gone = db.create_table("gone", Kind::Ordered).unwrap();
    let kept = db.create_table("kept", Kind::Ordered).unwrap();
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
    wait_until(|| db.engine.has_frozen());
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

/// A bulk of log is written in slices, and between two of them a checkpoint gets what it needs of the log: a
/// flush does not wait for all that it has just made needless.
#[test]
fn a_bulk_of_log_lets_a_checkpoint_through() {
    const SLICES: u32 = 8;
    let disk = Hooked::default();
    let options = Options::new().durability(Durability::Eventual).eventual_delay(Duration::from_secs(60));
    let db = Db::open_on(&disk, "engine.azk", options.memtable_bytes(1 << 30)).unwrap();
    let table = db.create_table("t", Kind::Hash).unwrap();
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

/// While a merge replaces its inputs partition by partition, what is left of the newer ones never hides what
/// the output says: after each step every key has its newest value.
#[test]
fn a_merge_under_way_shows_the_newest_of_each_key() {
    const KEYS: u64 = 100_000;
    let disk = Hooked::default();
    let options = Options::new().memtable_bytes(64 << 10).durability(Durability::Eventual).background_merges(false);
    let db = Db::open_on(&disk, "engine.azk", options).unwrap();
    let table = db.create_table("t", Kind::Ordered).unwrap();
    // Eight sorted runs of many partitions each; half of the keys, but of the oldest, which has all. One in
    // nine of a run's records is a delete.
    let mut model = std::collections::BTreeMap::new();
    let mixed = |key: u64, generation: u64| (key ^ generation << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    for generation in 0..8u64 {
        let mut write = db.write();
        for key in (0..KEYS).filter(|&k| generation == 0 || mixed(k, generation) % 2 == 0) {
            if mixed(key, generation) % 9 == 0 {
                write.remove(&table, &key.to_be_bytes()).unwrap();
                model.remove(&key);
            } else {
                let noise = mixed(key, generation).pow(2).to_be_bytes();
                let value = [generation.to_be_bytes(), noise, noise, noise].concat();
                write.put(&table, &key.to_be_bytes(), &value).unwrap();
                model.insert(key, generation);
            }
        }
        write.commit().unwrap();
        db.flush().unwrap();
    }
    assert!(db.engine.state.load().tables[0].levels.iter().all(|l| l.runs.len() > 1));
    let (steps, end) = (Arc::new(AtomicU32::new(0)), disk.open(Path::new("engine.azk"), OpenMode::ReadWrite).unwrap());
    let before = end.len().unwrap();
    let (seen, reader) = (steps.clone(), table.clone());
    disk.hook(move |call| {
        if call == Call::WriteDurable {
            seen.fetch_add(1, Ordering::SeqCst);
            let mut expected = model.iter();
            let mut cursor = reader.iter().unwrap();
            while let Some((key, value)) = cursor.next().unwrap() {
                let of = |b: &[u8]| u64::from_be_bytes(b[..8].try_into().unwrap());
                assert_eq!(expected.next(), Some((&of(key), &of(value.bytes().unwrap()))));
            }
            assert_eq!(expected.next(), None);
        }
        Ok(())
    });
    let engine = db.engine.clone();
    let levels = engine.state.load().tables[0].levels.to_vec();
    let job = |inputs, bottom| super::pick::Job::new(engine.state.load().tables[0].id, inputs, bottom);
    // Three in the middle, then all.
    assert!(engine.run_job(job(levels[2..5].to_vec(), false)).unwrap());
    let in_the_middle = steps.load(Ordering::SeqCst);
    drop(levels);
    let levels = engine.state.load().tables[0].levels.to_vec();
    assert!(engine.run_job(job(levels, true)).unwrap());
    let into_the_bottom = steps.load(Ordering::SeqCst) - in_the_middle;
    assert!(in_the_middle > 3 && into_the_bottom > 3, "the test wants many steps: {in_the_middle}, {into_the_bottom}");
    let grown = end.len().unwrap() - before;
    assert!(grown <= before / 3, "the file grew by {grown} of {before} bytes");
    disk.heal();
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

/// A few keys overwritten again and again: the log knows every version, and yet no more of them wait in memory than
/// memtables may hold, nor does the file keep the room that they had in the log.
#[test]
fn a_few_keys_overwritten_for_long_take_little() {
    const MEMTABLE_BYTES: u64 = 1 << 20;
    let disk = Hooked::default();
    let options = Options::new().memtable_bytes(MEMTABLE_BYTES).eventual_delay(Duration::from_secs(60));
    let db = Db::open_on(&disk, "engine.azk", options.durability(Durability::Eventual)).unwrap();
    let table = db.create_table("t", Kind::Hash).unwrap();
    let mut most = 0;
    let put = |round: u64| {
        table.put_many((0..10u64).map(|key| (key.to_be_bytes(), round.to_be_bytes().repeat(90)))).unwrap();
    };
    for round in 0..3000 {
        put(round);
        most = most.max(db.engine.log.queued_bytes() as u64);
    }
    assert!(most <= 4 * MEMTABLE_BYTES, "{most} bytes waited for the log");
    // And now the log is written.
    for round in 3000..6000 {
        put(round);
        if round % 50 == 0 {
            db.sync().unwrap();
        }
    }
    assert_eq!(table.get(&7u64.to_be_bytes()).unwrap().unwrap(), 5999u64.to_be_bytes().repeat(90));
    drop(table);
    db.close().unwrap();
    let file = disk.open(Path::new("engine.azk"), OpenMode::ReadWrite).unwrap();
    assert!(file.len().unwrap() <= 128 << 10, "{} bytes for 7 KB", file.len().unwrap());
}

/// By reading: a value segment whose tail found no room when it was closed kept all of the extent that it was opened
/// with, and was never moved.
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
    let others = values.adopt(1000, vec![db.engine.space.alloc(256 << 20)], 0);
    disk.fill_at(1);
    let (_, segment) = values.append(&vec![7; PARTS * SEGMENT_BYTES + 100]).unwrap();
    db.engine.need(super::crew::Role::Values).unwrap();
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

/// A bulk is written to a run when it is synced, and not to the log before.
#[test]
fn syncing_a_bulk_writes_it_once() {
    let storage = MemStorage::default();
    let options =
        || Options::new().memory_bytes(64 << 20).durability(Durability::Eventual).eventual_delay(Duration::MAX);
    let db = Db::open_on(&storage, "bulk.azk", options()).unwrap();
    let table = db.table("t", Kind::Ordered).unwrap();
    table.put_many((0..400_000u64).map(|i| (i.to_be_bytes(), i.to_le_bytes()))).unwrap();
    db.sync().unwrap();
    assert!(db.engine.checkpoint.lock().flushed_seq > 0);
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
