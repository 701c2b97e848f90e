//! A child process writes with two threads and is killed again and again. What it was told is durable
//! is there each time, commits are whole, and the next child goes on from there. Locks, and opening
//! for reading only with a log to replay, are tested on the same file.

use azekura::{Db, Durability, Error, Kind, Options, WriteOptions};
use sim::rng::Rng;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CHILD: &str = "AZEKURA_KILL_CHILD";
const SLOTS: u64 = 300;
const TABLES: [(&str, Kind); 2] = [("ordered", Kind::Ordered), ("hash", Kind::Hash)];

fn options() -> Options {
    Options::new().memory_bytes(8 << 20).memtable_bytes(256 << 10).eventual_delay(Duration::from_millis(30))
}

/// What commit `i` of a writer puts under its key.
fn value(writer: u64, i: u64) -> Vec<u8> {
    let mut rng = Rng(writer * 1_000_000_007 + i);
    let len = match rng.below(50) {
        0 => 20_000,
        1..=4 => 1500,
        _ => rng.below(120),
    };
    (0..len).map(|_| rng.number() as u8).collect()
}

fn key(writer: u64, i: u64) -> [u8; 8] {
    (writer << 32 | (i % SLOTS)).to_be_bytes()
}

/// The oracle's file: for each writer the newest commit begun, and the newest acknowledged as durable.
struct Oracle(File);

impl Oracle {
    fn open(path: &Path) -> Oracle {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path.with_extension("oracle"));
        let oracle = Oracle(file.unwrap());
        if oracle.0.metadata().unwrap().len() < 32 {
            oracle.0.set_len(32).unwrap();
        }
        oracle
    }

    fn begun(&self, writer: u64, i: u64) {
        self.0.write_all_at(&i.to_le_bytes(), writer * 16).unwrap();
    }

    fn durable(&self, writer: u64, i: u64) {
        self.0.write_all_at(&i.to_le_bytes(), writer * 16 + 8).unwrap();
    }

    fn read(&self, writer: u64) -> (u64, u64) {
        let mut b = [0; 16];
        self.0.read_exact_at(&mut b, writer * 16).unwrap();
        (u64::from_le_bytes(b[..8].try_into().unwrap()), u64::from_le_bytes(b[8..].try_into().unwrap()))
    }
}

fn counter(writer: u64) -> Vec<u8> {
    format!("counter of writer {writer}").into_bytes()
}

fn count(db: &Db, writer: u64) -> u64 {
    let of = |name: &str| {
        let v = db.open_table(name).unwrap().get(&counter(writer)).unwrap();
        v.map_or(0, |v| u64::from_le_bytes(v.try_into().unwrap()))
    };
    let counts = TABLES.map(|(name, _)| of(name));
    assert_eq!(counts[0], counts[1], "a commit is torn between the tables");
    counts[0]
}

fn write(db: &Db, oracle: &Oracle, writer: u64) {
    let tables = TABLES.map(|(name, _)| db.open_table(name).unwrap());
    let durability = [Durability::Sync, Durability::Eventual][writer as usize];
    for i in count(db, writer) + 1.. {
        oracle.begun(writer, i);
        let mut txn = db.write_with(WriteOptions { durability: Some(durability), ..WriteOptions::default() });
        for table in &tables {
            txn.put(table, &key(writer, i), &value(writer, i)).unwrap();
            txn.put(table, &counter(writer), &i.to_le_bytes()).unwrap();
        }
        txn.commit().unwrap();
        if durability == Durability::Eventual && i % 64 == 0 {
            db.sync().unwrap();
        }
        if durability == Durability::Sync || i % 64 == 0 {
            oracle.durable(writer, i);
        }
        if i % 5000 == 0 {
            db.compact(|_| {}).unwrap();
        }
    }
}

/// Not a test: what the child process runs until it is killed.
#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let oracle = Oracle::open(&path);
    let db = options().open(&path).unwrap();
    for (name, kind) in TABLES {
        db.table(name, kind).unwrap();
    }
    std::thread::scope(|s| {
        for writer in 0..2 {
            let (db, oracle) = (&db, &oracle);
            s.spawn(move || write(db, oracle, writer));
        }
    });
}

fn start(path: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "--exact"]).env(CHILD, path).stdout(Stdio::null());
    command.spawn().unwrap()
}

fn verify(db: &Db, oracle: &Oracle) {
    for writer in 0..2 {
        let (begun, durable) = oracle.read(writer);
        if durable == 0 && db.tables().len() < 2 {
            continue;
        }
        let n = count(db, writer);
        assert!((durable..=begun).contains(&n), "writer {writer}: {n} commits, {durable}..={begun} expected");
        for (name, _) in TABLES {
            let table = db.open_table(name).unwrap();
            for slot in 0..SLOTS {
                let newest = (n.saturating_sub(SLOTS - 1)..=n).find(|i| *i > 0 && i % SLOTS == slot);
                let found = table.get(&key(writer, slot)).unwrap();
                assert_eq!(found, newest.map(|i| value(writer, i)), "{name}, writer {writer}, slot {slot} of {n}");
            }
        }
    }
    let report = db.check(|_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

fn locked(result: Result<Db, Error>) -> bool {
    matches!(result, Err(Error::Locked { .. }))
}

#[test]
fn killed_again_and_again() {
    let dir = std::env::temp_dir().join(format!("azekura-kill-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("killed.azk");
    let oracle = Oracle::open(&path);
    let seed = std::env::var("AZEKURA_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(u64::from(std::process::id()));
    println!("seed {seed}");
    let mut rng = Rng(seed);
    for round in 0..15 {
        let mut child = start(&path);
        let until = Instant::now() + Duration::from_millis(60 + rng.below(if round % 3 == 0 { 150 } else { 1500 }));
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
            assert!(child.try_wait().unwrap().is_none(), "round {round}: the child ended by itself");
        }
        if round % 4 == 3 {
            assert!(locked(options().create(false).open(&path)), "a second writer");
            assert!(locked(options().read_only(true).open(&path)), "a reader beside a writer");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if !path.exists() {
            continue;
        }
        let begun = [oracle.read(0), oracle.read(1)];
        let before = std::fs::metadata(&path).unwrap().len();
        {
            let reader = options().read_only(true).open(&path).unwrap();
            let other = options().read_only(true).open(&path).unwrap();
            assert!(locked(options().open(&path)), "a writer beside readers");
            verify(&reader, &oracle);
            verify(&other, &oracle);
            assert!(reader.create_table("no", Kind::Hash).is_err() && reader.flush().is_err());
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), before, "a reader changes nothing");
        if round % 2 == 0 {
            let db = options().open(&path).unwrap();
            verify(&db, &oracle);
            assert!(locked(options().open(&path)), "a second writer of the same process");
            if round % 4 == 0 { db.close().unwrap() } else { drop(db) }
        }
        println!("round {round}: {begun:?}, {before} bytes");
    }
    let db = options().open(&path).unwrap();
    verify(&db, &oracle);
    db.close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}
