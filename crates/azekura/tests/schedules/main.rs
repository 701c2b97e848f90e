//! Schedules: the engine's own code, its locks, atomics, waits and threads under shuttle, which decides at
//! each of them who goes on. Half of the schedules are random, half follow PCT (few preemptions, at random
//! places).
//!
//! `cargo xtask schedules` runs them and says how to run one that failed again. A schedule is also a choice
//! of the moment at which the power goes, and of what a power cut leaves: see `disk.rs`.

#![cfg(shuttle)]

mod disk;
mod followers;
#[path = "../../src/storage/forward.rs"]
mod forward;

use azekura::{Db, Durability, Error, Options, ReadTxn, Table, TableKind, WriteOptions};
use disk::{Disk, PATH};
use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner, thread};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Schedules of each kind and test, unless `AZEKURA_SCHEDULES` says otherwise.
const SCHEDULES: usize = 100;
/// Preemptions that PCT aims at.
const PCT_DEPTH: usize = 4;
/// Stacks of the threads.
const STACK_BYTES: usize = 512 << 10;
/// Writers of the models that cut the power.
const WRITERS: usize = 3;

/// Runs a model in many schedules, or in the one that the file `AZEKURA_REPLAY` holds.
fn explore(model: fn()) {
    let number = |name, otherwise| std::env::var(name).map_or(otherwise, |n| n.parse().expect(name));
    let count = number("AZEKURA_SCHEDULES", SCHEDULES as u64);
    let seed = number("AZEKURA_SEED", 1);
    if let Some(file) = std::env::var_os("AZEKURA_REPLAY") {
        let mut replay = ReplayScheduler::new_from_file(PathBuf::from(file)).expect("a schedule");
        replay.set_allow_incomplete();
        run(replay, model);
        return;
    }
    let count = usize::try_from(count).expect("a count");
    // PCT first: of the faults that are put in, those that are hard to find are found by it.
    let pct = run(PctScheduler::new_from_seed(seed, PCT_DEPTH, count), model);
    let random = run(RandomScheduler::new_from_seed(seed, count), model);
    println!("{} schedules from seed {seed}", random + pct);
}

fn run(scheduler: impl Scheduler + 'static, model: fn()) -> usize {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.failure_persistence = FailurePersistence::File(Some(env!("CARGO_TARGET_TMPDIR").into()));
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(model)
}

/// Without threads of the engine's own: what they do, the model's threads do.
fn options() -> Options {
    Options::new().memory_bytes(8 << 20).memtable_bytes(64 << 10).large_value_bytes(64).threads(false)
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// What is known of the commits of each writer. (No atomics of the checker's: there is no choice to be made
/// here.)
#[derive(Default)]
struct Known {
    begun: [AtomicU64; WRITERS],
    done: [AtomicU64; WRITERS],
    durable: [AtomicU64; WRITERS],
}

impl Known {
    fn numbers(numbers: &[AtomicU64; WRITERS]) -> [u64; WRITERS] {
        std::array::from_fn(|w| numbers[w].load(Ordering::Relaxed))
    }
}

/// A database with a table of each kind, and what its writers know.
#[derive(Clone)]
struct World {
    disk: Disk,
    db: Db,
    ordered: Table,
    hash: Table,
    known: Arc<Known>,
}

impl World {
    fn new(options: Options) -> World {
        World::open(Disk::new(), options)
    }

    fn open(disk: Disk, options: Options) -> World {
        let db = Db::open_on(&disk, PATH, options).unwrap();
        let ordered = db.table("ordered", TableKind::Ordered).unwrap();
        let hash = db.table("hash", TableKind::Hash).unwrap();
        World { disk, db, ordered, hash, known: Arc::default() }
    }

    /// Commit `n` of a writer: its number in both tables, with values of `len` bytes.
    fn commit(&self, w: usize, n: u64, durability: Durability, len: usize) -> Result<(), Error> {
        let mut txn =
            self.db.write_with(WriteOptions { durability: Some(durability), ..WriteOptions::default() });
        let mut value = n.to_be_bytes().to_vec();
        value.resize(len, w as u8);
        txn.put(&self.ordered, &[w as u8], &value)?;
        txn.put(&self.hash, &[w as u8; 8], &value)?;
        self.known.begun[w].store(n, Ordering::Relaxed);
        txn.commit()?;
        self.known.done[w].store(n, Ordering::Relaxed);
        if durability == Durability::Sync {
            self.known.durable[w].store(n, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A thread with handles of its own, which are gone when it ends.
    fn spawn(&self, work: impl FnOnce(&World) + Send + 'static) -> thread::JoinHandle<()> {
        let world = self.clone();
        thread::spawn(move || {
            let world = world;
            work(&world);
        })
    }

    /// A thread that makes a few commits.
    fn writer(&self, w: usize, commits: u64, durability: Durability, len: usize) -> thread::JoinHandle<()> {
        self.spawn(move |world| (1..=commits).for_each(|n| world.commit(w, n, durability, len).unwrap()))
    }

    /// The newest commit of each writer that a snapshot shows, which must be whole.
    fn seen(&self, snapshot: &ReadTxn) -> [u64; WRITERS] {
        std::array::from_fn(|w| {
            let a = snapshot.get(&self.ordered, &[w as u8]).unwrap();
            let b = snapshot.get(&self.hash, &[w as u8; 8]).unwrap();
            assert_eq!(a, b, "a commit of writer {w} is torn");
            a.map_or(0, |v| u64::from_be_bytes(v[..8].try_into().unwrap()))
        })
    }

    /// Cuts the power now, and opens what is left: nothing durable is missing, nothing is torn.
    fn cut(&self) {
        let (durable, cut) = (Known::numbers(&self.known.durable), self.disk.cut());
        let begun = Known::numbers(&self.known.begun);
        let left = World::open(cut, options());
        let seen = left.seen(&left.db.read());
        let fits = (0..WRITERS).all(|w| durable[w] <= seen[w] && seen[w] <= begun[w]);
        assert!(fits, "durable {durable:?}, begun {begun:?}, but there is {seen:?}");
        left.is_sound();
    }

    fn is_sound(&self) {
        let report = self.db.check(|_| {}).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }

    /// A power cut beside the threads and one after them, then the end.
    fn end_after(self, threads: Vec<thread::JoinHandle<()>>) {
        self.cut();
        join(threads);
        self.cut();
        self.end();
    }

    /// Ends: all that was acknowledged is there, before and after the file is closed.
    fn end(self) {
        let done = Known::numbers(&self.known.done);
        assert_eq!(self.seen(&self.db.read()), done);
        self.is_sound();
        let disk = self.disk.clone();
        self.db.close().unwrap();
        drop((self.ordered, self.hash));
        let again = World::open(disk, options());
        assert_eq!(again.seen(&again.db.read()), done);
        again.is_sound();
    }
}

#[test]
fn group_commits_outlive_a_power_cut() {
    explore(|| {
        let world = World::new(options());
        let threads = (0..WRITERS).map(|w| world.writer(w, 2, Durability::Sync, 8)).collect();
        world.end_after(threads);
    });
}

#[test]
fn durable_commits_beside_a_flush_and_a_merge_outlive_a_power_cut() {
    explore(|| {
        let world = World::new(options());
        world.commit(0, 1, Durability::Sync, 8).unwrap();
        world.db.flush().unwrap();
        let threads = vec![
            world.writer(1, 2, Durability::Sync, 8),
            world.writer(2, 2, Durability::Eventual, 8),
            world.spawn(|world| world.db.flush().unwrap()),
            world.spawn(|world| world.db.compact().unwrap()),
        ];
        world.end_after(threads);
    });
}

/// The keys of a writer's bulk: its number, which is the key of every commit, and one of two behind it.
fn bulk_keys(w: usize, n: u64) -> [Vec<u8>; 3] {
    let (w, twin) = (w as u8, (n % 2) as u8);
    [vec![w], vec![w, twin], vec![w, twin, 1]]
}

impl World {
    /// As `commit`, of 24 KiB, which stand in a chunk of their own as the writer's other keys are removed by
    /// a range: four of them in a row are merged outside the commit lock.
    fn commit_bulk(&self, w: usize, n: u64) {
        let mut txn = self
            .db
            .write_with(WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() });
        let mut value = n.to_be_bytes().to_vec();
        value.resize(8000, w as u8);
        let (from, to) = ([w as u8, 0], [w as u8 + 1]);
        txn.remove_range(&self.ordered, &from[..]..&to[..]).unwrap();
        bulk_keys(w, n).iter().for_each(|key| txn.put(&self.ordered, key, &value).unwrap());
        txn.put(&self.hash, &[w as u8; 8], &value).unwrap();
        self.known.begun[w].store(n, Ordering::Relaxed);
        txn.commit().unwrap();
        self.known.done[w].store(n, Ordering::Relaxed);
    }

    /// What a snapshot shows of writers of bulks is what `seen` gives, and nothing of their older commits.
    fn bulks(&self, snapshot: &ReadTxn) -> [u64; WRITERS] {
        let seen = self.seen(snapshot);
        let there: Vec<_> = snapshot.cursor(&self.ordered).unwrap().owned().map(Result::unwrap).collect();
        let expected = (0..WRITERS)
            .filter(|&w| seen[w] > 0)
            .flat_map(|w| bulk_keys(w, seen[w]).map(|key| (key, seen[w])));
        let found =
            there.iter().map(|(key, v)| (key.clone(), u64::from_be_bytes(v[..8].try_into().unwrap())));
        assert!(
            found.eq(expected),
            "{seen:?}, but there is {:?}",
            there.iter().map(|r| &r.0).collect::<Vec<_>>()
        );
        seen
    }
}

#[test]
fn chunks_that_are_merged_while_a_flush_takes_them_are_there_once() {
    explore(|| {
        // Two writers' eight commits fill it once; a flush may freeze it at any other moment.
        let world = World::new(options().memtable_bytes(160 << 10).large_value_bytes(8192));
        (1..=3).for_each(|n| world.commit_bulk(0, n));
        let writer =
            |w, from: u64| world.spawn(move |world| (from..from + 2).for_each(|n| world.commit_bulk(w, n)));
        let threads = vec![writer(0, 4), writer(1, 1), world.spawn(|world| world.db.flush().unwrap())];
        let done = Known::numbers(&world.known.done);
        let snapshot = world.db.read();
        let first = world.bulks(&snapshot);
        assert!((0..WRITERS).all(|w| done[w] <= first[w]), "{done:?} {first:?}");
        world.cut();
        assert_eq!(world.bulks(&snapshot), first, "the snapshot has changed");
        join(threads);
        drop(snapshot);
        world.bulks(&world.db.read());
        world.end();
    });
}

#[test]
fn what_was_acknowledged_before_a_sync_outlives_a_power_cut() {
    explore(|| {
        let world = World::new(options());
        // Large values, which stand apart and are durable before the log that names them.
        let mut threads: Vec<_> = (0..2).map(|w| world.writer(w, 2, Durability::Eventual, 100)).collect();
        threads.push(world.spawn(|world| {
            for _ in 0..2 {
                let done = Known::numbers(&world.known.done);
                world.db.sync().unwrap();
                for (durable, done) in world.known.durable.iter().zip(done) {
                    durable.fetch_max(done, Ordering::Relaxed);
                }
            }
        }));
        world.end_after(threads);
    });
}

#[test]
fn the_engines_own_threads_lose_nothing() {
    explore(|| {
        let delay = Duration::from_millis(16);
        let world = World::new(options().threads(true).eventual_delay(delay));
        // Values of 30 KiB, which a thread of the engine's own writes, beside its log and its flush at the
        // end.
        let threads =
            vec![world.writer(0, 3, Durability::Eventual, 30 << 10), world.writer(1, 2, Durability::Sync, 8)];
        world.end_after(threads);
    });
}

#[test]
fn snapshots_are_whole_and_stay_as_they_are() {
    explore(|| {
        let world = World::new(options());
        world.commit(0, 1, Durability::Eventual, 8).unwrap();
        let mut threads: Vec<_> = (1..WRITERS).map(|w| world.writer(w, 3, Durability::Eventual, 8)).collect();
        threads.push(world.spawn(|world| world.db.compact().unwrap()));
        for _ in 0..2 {
            let done = Known::numbers(&world.known.done);
            let snapshot = world.db.read();
            let begun = Known::numbers(&world.known.begun);
            let first = world.seen(&snapshot);
            assert!(
                (0..WRITERS).all(|w| done[w] <= first[w] && first[w] <= begun[w]),
                "{done:?} {first:?} {begun:?}"
            );
            let records = snapshot.cursor(&world.ordered).unwrap().owned().count();
            assert_eq!(records, first.iter().filter(|&&n| n > 0).count());
            assert_eq!(world.seen(&snapshot), first, "the snapshot has changed");
        }
        join(threads);
        world.end();
    });
}

#[test]
fn increments_are_not_lost_and_conflicts_are_noticed() {
    explore(|| {
        let world = World::new(options());
        let add = |durability| {
            world.spawn(move |world| {
                for _ in 0..2 {
                    loop {
                        let set = WriteOptions { durability: Some(durability), ..WriteOptions::default() };
                        let mut txn = world.db.write_with(set);
                        let a = txn.increment(&world.ordered, b"sum", 1).unwrap();
                        let b = txn.increment(&world.hash, b"sum", 1).unwrap();
                        match txn.commit() {
                            // What was read is one snapshot, or there would have been a conflict.
                            Ok(()) => break assert_eq!(a, b),
                            Err(Error::Conflict { .. }) => {}
                            Err(e) => panic!("{e}"),
                        }
                    }
                }
            })
        };
        join(vec![
            add(Durability::Sync),
            add(Durability::Eventual),
            world.spawn(|world| world.db.flush().unwrap()),
        ]);
        let sum = |t: &Table| i64::from_le_bytes(t.get(b"sum").unwrap().unwrap().try_into().unwrap());
        assert_eq!((sum(&world.ordered), sum(&world.hash)), (4, 4));
        world.is_sound();
    });
}

#[test]
fn closing_under_writers_keeps_what_was_acknowledged() {
    explore(|| {
        let world = World::new(options());
        let commit = |w: usize, durability| {
            world.spawn(move |world| {
                for n in 1..=2 {
                    match world.commit(w, n, durability, 100) {
                        Ok(()) => {}
                        Err(Error::Closed) => return,
                        Err(e) => panic!("{e}"),
                    }
                }
            })
        };
        let threads = vec![commit(0, Durability::Sync), commit(1, Durability::Eventual)];
        world.db.clone().close().unwrap();
        join(threads);
        let (done, disk) = (Known::numbers(&world.known.done), world.disk.clone());
        drop(world);
        let again = World::open(disk, options());
        let seen = again.seen(&again.db.read());
        assert!((0..WRITERS).all(|w| done[w] <= seen[w]), "acknowledged {done:?}, there is {seen:?}");
        again.is_sound();
    });
}

#[test]
fn tables_come_and_go_beside_commits() {
    explore(|| {
        let world = World::new(options());
        let threads = vec![
            world.writer(0, 2, Durability::Sync, 100),
            world.spawn(|world| {
                let table = world.db.create_table("passing", TableKind::Ordered).unwrap();
                table.put(b"key", &[7; 100]).unwrap();
                world.db.drop_table("passing").unwrap();
                assert!(table.put(b"key", b"value").is_err(), "a table that is gone takes a record");
            }),
            world.spawn(|world| world.db.flush().unwrap()),
        ];
        world.end_after(threads);
    });
}
