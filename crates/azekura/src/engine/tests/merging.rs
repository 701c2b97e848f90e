//! Merges of chunks and of levels, beside readers and flushes.

use super::*;
use crate::engine::chunks::merge_small_chunks;
use crate::engine::compaction::pick::MergeJob;

/// A merge that goes on after one of its steps still holds what it has put in place. A flush or another merge
/// that looks at what is busy never finds the new run without its mark.
#[test]
fn a_step_of_a_merge_is_busy_from_the_moment_it_is_seen() {
    let db = database();
    let engine = db.engine.clone();
    let state = engine.state.load_full();
    let (id, old) = (state.tables[0].id, bottom(&state));
    let new = Arc::new(Level::new(old.runs.clone(), 0.0, old.newest).unwrap());
    engine.background.lock().turns.busy.push((0, old.clone()));
    // Whoever looks holds this lock.
    let work = engine.background.lock();
    let step = {
        let (engine, old, new) = (engine.clone(), old.clone(), new.clone());
        std::thread::spawn(move || engine.installer().replace(id, &[old], &[Some(new)], Vec::new()).unwrap())
    };
    std::thread::sleep(Duration::from_millis(100));
    assert!(!work.turns.bottom_is_free(&engine.state.load().tables[0].levels), "the new run may be taken");
    drop(work);
    assert!(step.join().unwrap());
    let state = engine.state.load_full();
    assert!(Arc::ptr_eq(&bottom(&state), &new));
    assert!(!engine.background.lock().turns.bottom_is_free(&state.tables[0].levels));
}

/// Tries until there is something, for no longer than a minute.
fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A commit leaves chunks that take long to merge to the thread that flushes, while that waits, and writers
/// write little.
#[test]
fn the_thread_that_flushes_merges_large_chunks() {
    let db = database();
    let engine = &db.engine;
    let table = db.open_table("t").unwrap();
    table.put("k", "v").unwrap();
    db.flush().unwrap();
    let value = vec![7; 900];
    let put = |n: u64| table.put_many((0..400u64).map(|i| ((i * 3 + n).to_be_bytes(), &value))).unwrap();
    let chunks = || engine.state.load().tables[0].chunks.len();
    {
        let _nobody_merges = engine.committer.chunk_merges.take_turn().unwrap();
        (0..4).for_each(put);
        assert_eq!(chunks(), 4);
    }
    let id = engine.state.load().tables[0].id;
    let background = &engine.background;
    // Now it is long ago that anybody wrote.
    std::thread::sleep(Duration::from_millis(200));
    std::thread::scope(|scope| {
        // Who merges needs this lock.
        let commit = engine.committer.lock();
        // While this is held, the thread that flushes waits on.
        let work = until(|| Some(background.lock()).filter(|_| background.is_flusher_waiting()));
        let asking =
            scope.spawn(|| merge_small_chunks(&engine.committer, &engine.state, &[id], Some(background)));
        until(|| background.is_asked_for_chunk_merge().then_some(()));
        drop(work);
        // Who commits has asked, and does not need the commit lock.
        until(|| asking.is_finished().then_some(()));
        assert_eq!(chunks(), 4);
        drop(commit);
    });
    until(|| (chunks() == 1).then_some(()));
    until(|| {
        put(1);
        (!engine.committer.rate.is_low()).then_some(())
    });
    for i in 0..1200u64 {
        assert_eq!(table.get(i.to_be_bytes()).unwrap().as_ref(), Some(&value), "{i}");
    }
    db.close().unwrap();
}

/// The cost that the rate is told of is that of all commits, whatever way these go.
#[test]
fn every_commit_counts_once() {
    let db = database();
    let table = db.open_table("t").unwrap();
    let cost = || db.engine.committer.lock().cost;
    for told in [None, Some(crate::FeedContent::Keys)] {
        table.set_feed(told).unwrap();
        for durability in [Durability::Eventual, Durability::Sync] {
            let before = cost();
            let mut txn =
                db.write_with(WriteOptions { durability: Some(durability), ..WriteOptions::default() });
            txn.put(&table, "k", [1; 1000]).unwrap();
            txn.commit().unwrap();
            assert!((1000..2000).contains(&(cost() - before)), "{told:?}, {durability:?}");
        }
        let before = cost();
        table.put("k", [2; 1000]).unwrap();
        assert!((1000..2000).contains(&(cost() - before)), "{told:?}");
    }
}

/// Chunks merged outside the commit lock take the place of those they were made of, whatever came before them
/// meanwhile. If a flush has taken those, they take nobody's place. A reader sees the same all along.
#[test]
fn merged_chunks_replace_what_still_stands() {
    for flushed in [false, true] {
        let db = database();
        let engine = db.engine.clone();
        let table = db.open_table("t").unwrap();
        let put = |n: u64| {
            table.put_many((0..2000u64).map(|i| ((i * 3).to_be_bytes(), (i + n).to_be_bytes()))).unwrap()
        };
        let turn = engine.committer.chunk_merges.take_turn().unwrap();
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
        engine.committer.lock().replace_chunks(&engine.state, id, &chunks[2..], merged.clone());
        let after = engine.state.load_full();
        if flushed {
            assert!(Arc::ptr_eq(&before, &after), "a flush has taken the chunks");
        } else {
            let now = &after.tables[0].chunks;
            assert_eq!(now.len(), 4);
            assert!(Arc::ptr_eq(&now[3], &merged) && Arc::ptr_eq(&now[2], &chunks[1]));
            assert_eq!(engine.committer.lock().live_bytes, after.tables[0].live_bytes());
        }
        for read in [held, db.read()] {
            for i in 0..2000u64 {
                assert_eq!(
                    read.get(&table, &(i * 3).to_be_bytes()).unwrap().unwrap(),
                    (i + 100).to_be_bytes()
                );
            }
        }
        drop(turn);
        put(200);
        assert!(engine.state.load().tables[0].chunks.len() < 4, "the next commit tidies up");
        assert_eq!(table.get(&9u64.to_be_bytes()).unwrap().unwrap(), 203u64.to_be_bytes());
    }
}

/// A transaction goes on reading after the runs that it began with were merged. It looks into the merged one,
/// and what it gave out before stays good. One that began before a later commit keeps its own state.
#[test]
fn a_long_read_takes_over_a_merged_state_of_equal_contents() {
    let db = database();
    let table = db.table("t", TableKind::Ordered).unwrap();
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
    db.engine.compact().unwrap();
    read_all(&long);
    assert_eq!(levels(&long), 1);
    assert_eq!(&held[..], 3u64.to_be_bytes());
    table.put(&1u64.to_be_bytes(), b"later").unwrap();
    db.engine.compact().unwrap();
    read_all(&early);
    assert_eq!(levels(&early), before);
}

/// While a merge replaces its inputs partition by partition, what is left of the newer ones never hides the
/// output. After each step every key has its newest value.
#[test]
fn a_merge_under_way_shows_the_newest_of_each_key() {
    const KEYS: u64 = 100_000;
    let disk = Hooked::default();
    let options =
        Options::new().memtable_bytes(64 << 10).durability(Durability::Eventual).background_merges(false);
    let db = Db::open_on(&disk, "engine.azk", options).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    // Eight levels of many partitions each; half of the keys, but of the oldest, which has all. One in
    // nine of a run's records is a tombstone.
    let mut model = std::collections::BTreeMap::new();
    let mixed =
        |key: u64, generation: u64| (key ^ generation << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
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
    let (steps, end) =
        (Arc::new(AtomicU32::new(0)), disk.open(Path::new("engine.azk"), OpenMode::ReadWrite).unwrap());
    let before = end.len().unwrap();
    let (seen, reader) = (steps.clone(), table.clone());
    disk.hook(move |call| {
        if call == Call::WriteDurable {
            seen.fetch_add(1, Ordering::SeqCst);
            let mut expected = model.iter();
            let mut cursor = reader.cursor().unwrap();
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
    let job = |inputs, bottom| MergeJob::new(engine.state.load().tables[0].id, inputs, bottom);
    // Three in the middle, then all.
    assert!(engine.merges().run(job(levels[2..5].to_vec(), false)).unwrap());
    let in_the_middle = steps.load(Ordering::SeqCst);
    drop(levels);
    let levels = engine.state.load().tables[0].levels.to_vec();
    assert!(engine.merges().run(job(levels, true)).unwrap());
    let into_the_bottom = steps.load(Ordering::SeqCst) - in_the_middle;
    assert!(
        in_the_middle > 3 && into_the_bottom > 3,
        "the test wants many steps: {in_the_middle}, {into_the_bottom}"
    );
    let grown = end.len().unwrap() - before;
    assert!(grown <= before / 3, "the file grew by {grown} of {before} bytes");
    disk.heal();
    assert!(db.check(|_| {}).unwrap().problems.is_empty());
}

/// A few keys are overwritten again and again. The log knows every version. Yet no more of them wait in
/// memory than memtables may hold, and the file does not keep the room that they had in the log.
#[test]
fn a_few_keys_overwritten_for_long_take_little() {
    const MEMTABLE_BYTES: u64 = 1 << 20;
    let disk = Hooked::default();
    let options = Options::new().memtable_bytes(MEMTABLE_BYTES).eventual_delay(Duration::from_secs(60));
    let db = Db::open_on(&disk, "engine.azk", options.durability(Durability::Eventual)).unwrap();
    let table = db.create_table("t", TableKind::Hash).unwrap();
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

/// What is looked at is not free. So whoever holds merges back waits for those who look, and no look begins
/// then.
#[test]
fn a_look_at_the_runs_ends_before_merges_are_held_back() {
    let db = database();
    let engine = db.engine.clone();
    let (begun, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let looking = {
        let (engine, begun, ended) = (engine.clone(), begun.clone(), ended.clone());
        std::thread::spawn(move || {
            engine.background.look_at_runs(|go_on| {
                begun.store(true, Ordering::Release);
                wait_until(|| !go_on());
                std::thread::sleep(Duration::from_millis(50));
                ended.store(true, Ordering::Release);
            })
        })
    };
    wait_until(|| begun.load(Ordering::Acquire));
    let paused = engine.background.pause_merges();
    assert!(ended.load(Ordering::Acquire), "somebody still looks");
    assert!(engine.background.look_at_runs(|_| ()).is_none());
    drop(paused);
    assert!(engine.background.look_at_runs(|go_on| go_on()).unwrap());
    looking.join().unwrap().unwrap();
}

/// Nobody of the background looks at the runs uncounted: who holds merges back is alone with the state. Else
/// a thread that has to wait for a processor would keep what is to be moved, and `shrink` would leave it.
#[test]
fn who_holds_merges_back_is_alone_with_the_runs() {
    let db = database();
    // Of many tables each look takes a while.
    let names: Vec<String> = (0..2000).map(|n| format!("t{n}")).collect();
    let tables: Vec<_> = names.iter().map(|name| (name.as_str(), TableKind::Ordered)).collect();
    let mut txn = db.write();
    for table in db.create_tables(&tables).unwrap() {
        txn.put(&table, b"key", &[7; 600]).unwrap();
    }
    txn.commit().unwrap();
    db.flush().unwrap();
    let (engine, ended) = (db.engine.clone(), Arc::new(AtomicBool::new(false)));
    let background = {
        let (engine, ended) = (engine.clone(), ended.clone());
        std::thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                engine.sweeper().sweep(false).unwrap();
                engine.reclaimer().tidy(0, || true).unwrap();
            }
        })
    };
    for _ in 0..100 {
        let paused = engine.background.pause_merges();
        // A checkpoint has its own lock, and ends soon.
        drop(engine.checkpointer.lock());
        let state = engine.state.load_full();
        assert_eq!(Arc::strong_count(&state), 2, "the engine's and this one");
        drop((state, paused));
        std::thread::sleep(Duration::from_micros(300));
    }
    ended.store(true, Ordering::Release);
    background.join().unwrap();
}

/// On a nearly full disk a commit that needs room has merges held back. One of the background ends at its
/// next step, and what it has put in place stays.
#[test]
fn a_commit_that_needs_room_does_not_wait_for_a_merge() {
    let disk = Hooked::default();
    let options = Options::new().memory_bytes(16 << 20).memtable_bytes(1 << 20).background_merges(false);
    let db = Db::open_on(&disk, "engine.azk", options.durability(Durability::Eventual)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    for generation in 0..6u64 {
        let key = |i: u64| (i * 6 + generation).to_be_bytes();
        table.put_many((0..3000u64).map(|i| (key(i), [i as u8 ^ 7; 300]))).unwrap();
        db.flush().unwrap();
    }
    let engine = db.engine.clone();
    let job = || {
        let state = engine.state.load_full();
        MergeJob::new(state.tables[0].id, state.tables[0].levels.to_vec(), true)
    };
    // Room for a merge, and no more than that is tight.
    disk.limit(64 << 20);
    engine.store.room.look();
    assert!(engine.store.room.is_tight());
    let (begun, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (seen, counted, background) = (begun.clone(), writes.clone(), engine.clone());
    disk.hook(move |call| {
        if call == Call::Write && std::thread::current().name() == Some("merge") {
            counted.fetch_add(1, Ordering::AcqRel);
            seen.store(true, Ordering::Release);
            wait_until(|| background.background.are_merges_paused());
        }
        Ok(())
    });
    let merge = {
        let (engine, job) = (engine.clone(), job());
        engine.background.lock().turns.begin(0, &job);
        let merge = move || engine.merges().run_in_turn(0, job);
        std::thread::Builder::new().name("merge".into()).spawn(merge).unwrap()
    };
    wait_until(|| begun.load(Ordering::Acquire));
    // Others take the disk's room, but for what a merge may take and a commit may not.
    let left = engine.merges().flush_need() + engine.relief.reserve_bytes() * 3 / 4;
    disk.limit(engine.store.room.taken_bytes() + left);
    engine.store.room.look();
    let _refused_or_not = table.put(b"key", &[7; 100]);
    assert!(!merge.join().unwrap().unwrap(), "it has ended before its end");
    let until_then = writes.load(Ordering::Acquire);
    disk.heal();
    disk.limit(64 << 20);
    engine.store.room.look();
    assert!(engine.merges().run(job()).unwrap());
    assert!(until_then <= 2, "{until_then} writes");
    assert!(table.count().unwrap() >= 18_000);
}

/// A merge passes over partitions in which all has expired. What newer runs have between their keys stands
/// until it has been given out, wherever the merge ends.
#[test]
fn what_lies_within_expired_partitions_outlives_a_merge_that_gives_up() {
    // Where in a partition the expired ones begin decides whether the output may end before them.
    for first in (1_000..1_300).step_by(30) {
        keep_what_lies_within(first);
    }
}

/// Lets a merge give up at each of its checkpoints. The records from `first` to 2,000 have expired.
fn keep_what_lies_within(first: u64) {
    let hooked = Hooked::default();
    let seconds = Arc::new(AtomicU64::new(1_700_000_000));
    let options = || {
        let seconds = seconds.clone();
        let now = move || SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.load(Ordering::Relaxed));
        Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).background_merges(false).clock(now)
    };
    let db = Db::open_on(&hooked, "engine.azk", options()).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    for i in 0..3_000u64 {
        let (key, value) = (i.to_be_bytes(), [i as u8; 400]);
        if (first..2_000).contains(&i) {
            table.put_for(key, value, Duration::from_secs(1)).unwrap();
        } else {
            table.put(key, value).unwrap();
        }
    }
    db.compact().unwrap();
    seconds.fetch_add(1, Ordering::Relaxed);
    table.put(1_500u64.to_be_bytes(), "within").unwrap();
    db.flush().unwrap();
    let now = seconds.load(Ordering::Relaxed) * 1_000;
    let state = db.engine.state.load_full();
    let past = bottom(&state).runs.iter().filter(|r| r.is_past(now)).count();
    assert!(past >= 2 && state.tables[0].levels.len() == 2, "{past} of {}", bottom(&state).runs.len());
    drop(state);
    drop((table, db));
    // The merge comes as far as its first checkpoint, its second, and so on to its end.
    for steps in 0.. {
        let db = Db::open_on(&hooked, "engine.azk", options()).unwrap();
        let table = db.open_table("t").unwrap();
        let within = table.get(1_500u64.to_be_bytes()).unwrap();
        assert_eq!(within.as_deref(), Some(&b"within"[..]), "{first} {steps}");
        assert_eq!(table.count().unwrap(), first + 1_001, "{first} {steps}");
        let checkpoints = AtomicU64::new(0);
        hooked.hook(move |call| match call {
            Call::WriteSuperblock if checkpoints.fetch_add(1, Ordering::Relaxed) == steps => {
                Err(io::ErrorKind::Other.into())
            }
            _ => Ok(()),
        });
        let merged = db.compact();
        hooked.heal();
        if merged.is_ok() {
            return;
        }
    }
}
