//! Gates 1 to 6 of the design, each measured alone through the public interface.
//!
//! `cargo bench -p azekura --bench gates [-- NAME…]` prints a line per figure: what it is, what was
//! reached, what was asked for. Values are verified; nothing is compressed.

use azekura::{Db, Durability, Options, Table, TableKind, WriteOptions};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

const RECORDS: u64 = 10_000_000;
const BATCH: u64 = 65_536;
const GETS: u64 = 4_000_000;

/// The finalizer of SplitMix64: an invertible mix.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Touches memory and gives it back before a gate is measured: the host of a virtual machine takes idle
/// memory back, and fresh pages then cost more than all that is measured here.
fn wake_memory() {
    let mut memory: Vec<u8> = Vec::with_capacity(2 << 30);
    for page in memory.spare_capacity_mut().chunks_mut(4096) {
        page[0].write(1);
    }
    black_box(memory.spare_capacity_mut());
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0) * u128::from(n)) >> 64) as u64
    }
}

fn options() -> Options {
    Options::new().memory_bytes(1 << 30).durability(Durability::Eventual)
}

fn line(gate: &str, what: &str, got: f64, unit: &str, wanted: &str) {
    println!("gate {gate:<3} {what:<58} {got:>8.1} {unit:<12} {wanted}");
}

/// Writes records `from..to`, mixed, in batches of `BATCH`; gives the seconds spent in `put` and
/// `commit`.
fn insert(db: &Db, table: &Table, from: u64, to: u64) -> f64 {
    let started = Instant::now();
    let mut i = from;
    while i < to {
        let mut txn = db.write();
        for x in i..(i + BATCH).min(to) {
            txn.put(table, &mix(x).to_be_bytes(), &x.to_le_bytes()).unwrap();
        }
        txn.commit().unwrap();
        i += BATCH;
    }
    started.elapsed().as_secs_f64()
}

/// Gate 1: one merge pass over eight runs.
fn merge_pass(dir: &Path) {
    for kind in [TableKind::Ordered, TableKind::Hash] {
        let path = fresh(dir, "merge");
        let db = options().background_merges(false).open(&path).unwrap();
        let table = db.create_table("t", kind).unwrap();
        for run in 0..8 {
            insert(&db, &table, run * RECORDS / 8, (run + 1) * RECORDS / 8);
            db.flush().unwrap();
        }
        let runs = db.stats().levels.len();
        db.compact().unwrap();
        let stats = db.stats();
        let ns = stats.merge_ns as f64 / stats.merged_records as f64;
        line("1", &format!("merge pass, {runs} runs, {kind:?}, file to file"), ns, "ns/record", "<= 40");
        let bytes = stats.levels.iter().map(|l| l.bytes).sum::<u64>() as f64 / RECORDS as f64;
        line("1", &format!("size once merged, {kind:?}, 8+8"), bytes, "B/record", "");
    }
}

/// Gate 2: random inserts, seen from the committing thread while nothing flushes.
fn random_insert(dir: &Path) {
    let path = fresh(dir, "random");
    let db = options().memtable_bytes(1 << 30).open(&path).unwrap();
    let table = db.create_table("t", TableKind::Hash).unwrap();
    insert(&db, &table, 0, BATCH);
    let seconds = insert(&db, &table, BATCH, BATCH + 64 * BATCH);
    line(
        "2",
        "random insert, 65,536 a batch, log queued",
        seconds * 1e9 / (64 * BATCH) as f64,
        "ns/record",
        "<= 90",
    );
}

/// Gate 3: ascending inserts, seen from the committing thread.
fn ascending_insert(dir: &Path) {
    let path = fresh(dir, "ascending");
    let db = options().memtable_bytes(1 << 30).open(&path).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    let (n, batch) = (4_000_000u64, 1000);
    let started = Instant::now();
    for from in (0..n).step_by(batch) {
        let mut txn = db.write();
        for x in from..from + batch as u64 {
            txn.put(&table, &x.to_be_bytes(), &(x as u32).to_le_bytes()).unwrap();
        }
        txn.commit().unwrap();
    }
    let ns = started.elapsed().as_secs_f64() * 1e9 / n as f64;
    line("3", "ascending insert, 1,000 a commit", ns, "ns/record", "<= 40");
}

/// Gate 4: random gets of cached records.
fn random_gets(dir: &Path) {
    for kind in [TableKind::Hash, TableKind::Ordered] {
        for runs in [1u64, 8] {
            let path = fresh(dir, "gets");
            let db = options().background_merges(false).open(&path).unwrap();
            let table = db.create_table("t", kind).unwrap();
            for run in 0..runs {
                insert(&db, &table, run * RECORDS / runs, (run + 1) * RECORDS / runs);
                if runs > 1 {
                    db.flush().unwrap();
                }
            }
            if runs == 1 {
                db.compact().unwrap();
            }
            drop(table);
            db.close().unwrap();
            let db = options().background_merges(false).open(&path).unwrap();
            let table = db.open_table("t").unwrap();
            let (present, absent, many) = get_rates(&db, &table);
            let asked = if runs == 1 { [">= 3", ">= 10"] } else { [">= 1.5", ">= 4"] };
            line(
                "4",
                &format!("{kind:?}, {} sorted runs, present", db.stats().levels.len()),
                present,
                "M gets/s",
                asked[0],
            );
            line(
                "4",
                &format!("{kind:?}, {} sorted runs, absent", db.stats().levels.len()),
                absent,
                "M gets/s",
                asked[1],
            );
            line(
                "4",
                &format!("{kind:?}, {} sorted runs, get_many of 100", db.stats().levels.len()),
                many,
                "M gets/s",
                ">= 2.5x",
            );
        }
    }
}

fn get_rates(db: &Db, table: &Table) -> (f64, f64, f64) {
    let txn = db.read();
    let mut random = Random(7);
    let mut value = Vec::new();
    let mut warm = txn.cursor(table).unwrap();
    while warm.next().unwrap().is_some() {}
    for _ in 0..GETS / 4 {
        black_box(txn.get_into(table, &mix(random.below(RECORDS)).to_be_bytes(), &mut value).unwrap());
    }
    let rate = |started: Instant| GETS as f64 / started.elapsed().as_secs_f64() / 1e6;
    let started = Instant::now();
    for _ in 0..GETS {
        let x = random.below(RECORDS);
        assert!(txn.get_into(table, &mix(x).to_be_bytes(), &mut value).unwrap());
        assert_eq!(value, x.to_le_bytes());
    }
    let present = rate(started);
    let started = Instant::now();
    for x in 0..GETS {
        assert!(!txn.get_into(table, &mix(RECORDS + x).to_be_bytes(), &mut value).unwrap());
    }
    let absent = rate(started);
    let started = Instant::now();
    let mut keys = vec![[0u8; 8]; 100];
    let mut wanted = vec![0u64; 100];
    for _ in 0..GETS / 100 {
        for (key, x) in keys.iter_mut().zip(&mut wanted) {
            *x = random.below(RECORDS);
            *key = mix(*x).to_be_bytes();
        }
        txn.get_many_with(table, &keys, |i, v| assert_eq!(v, Some(&wanted[i].to_le_bytes()[..]))).unwrap();
    }
    (present, absent, rate(started))
}

/// Gate 5: gets in sequence after reopening.
fn sequential_gets(dir: &Path) {
    let path = fresh(dir, "sequential");
    let n = RECORDS;
    {
        let db = options().open(&path).unwrap();
        let table = db.create_table("t", TableKind::Ordered).unwrap();
        for from in (0..n).step_by(10_000) {
            table
                .put_many((from..from + 10_000).map(|x| (x.to_be_bytes(), (x as u32).to_le_bytes())))
                .unwrap();
        }
        drop(table);
        db.close().unwrap();
    }
    let started = Instant::now();
    let db = options().open(&path).unwrap();
    let table = db.open_table("t").unwrap();
    let txn = db.read();
    let mut value = Vec::new();
    for x in 0..n {
        assert!(txn.get_into(&table, &x.to_be_bytes(), &mut value).unwrap());
        assert_eq!(value, (x as u32).to_le_bytes());
    }
    line(
        "5",
        "sequential get_into after reopening",
        started.elapsed().as_secs_f64() * 1e9 / n as f64,
        "ns/get",
        "<= 40",
    );
    let started = Instant::now();
    for x in 0..n {
        let v = txn.get_ref(&table, &x.to_be_bytes()).unwrap().unwrap();
        assert_eq!(*v, (x as u32).to_le_bytes());
    }
    line(
        "5",
        "sequential get_ref, cached",
        started.elapsed().as_secs_f64() * 1e9 / n as f64,
        "ns/get",
        "<= 40",
    );
    let started = Instant::now();
    let mut cursor = txn.cursor(&table).unwrap();
    let mut x = 0u64;
    while let Some((key, value)) = cursor.next().unwrap() {
        assert!(key == x.to_be_bytes() && value.bytes().unwrap() == (x as u32).to_le_bytes());
        x += 1;
    }
    assert_eq!(x, n);
    line(
        "5",
        "full scan with a cursor",
        n as f64 / started.elapsed().as_secs_f64() / 1e6,
        "M records/s",
        ">= 50",
    );
}

/// Gate 6: durable commits of one record each, idle and while everything is merged into one run.
fn durable_commits(dir: &Path) {
    let path = fresh(dir, "durable");
    let db = options().background_merges(false).open(&path).unwrap();
    let table = db.create_table("t", TableKind::Hash).unwrap();
    let small = db.create_table("small", TableKind::Hash).unwrap();
    for run in 0..8 {
        insert(&db, &table, run * RECORDS * 3 / 8, (run + 1) * RECORDS * 3 / 8);
        db.flush().unwrap();
    }
    let idle = commit_times(&db, &small, |since| since >= 3.0);
    let merging = std::thread::scope(|scope| {
        let merge = scope.spawn(|| db.compact().unwrap());
        commit_times(&db, &small, |_| merge.is_finished())
    });
    let (idle_us, merging_us) = (p99_us(idle), p99_us(merging));
    line("6", "durable commits, p99, idle", idle_us, "us", "");
    line("6", "durable commits, p99, while 30M records are merged", merging_us, "us", "");
    line("6", "ratio of the two", merging_us / idle_us, "", "<= 2");
}

/// The times of durable commits, in microseconds, until `done` says so of the seconds since the first.
fn commit_times(db: &Db, table: &Table, done: impl Fn(f64) -> bool) -> Vec<f64> {
    let (mut times, started) = (Vec::new(), Instant::now());
    while !done(started.elapsed().as_secs_f64()) {
        let began = Instant::now();
        let durability = Some(Durability::Sync);
        let mut txn = db.write_with(WriteOptions { durability, ..WriteOptions::default() });
        let key = mix(times.len() as u64).to_be_bytes();
        txn.put(table, &key, &key).unwrap();
        txn.commit().unwrap();
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    times
}

fn p99_us(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() * 99 / 100]
}

fn fresh(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(format!("{name}.azk"));
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => panic!("{}: {e}", path.display()),
        _ => path,
    }
}

/// Measures one gate in a directory.
type Gate = fn(&Path);

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let dir = std::env::temp_dir().join(format!("azekura-gates-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let gates: [(&str, Gate); 6] = [
        ("merge", merge_pass),
        ("random", random_insert),
        ("ascending", ascending_insert),
        ("gets", random_gets),
        ("sequential", sequential_gets),
        ("durable", durable_commits),
    ];
    for (name, gate) in gates {
        if asked.is_empty() || asked.iter().any(|a| a == name) {
            wake_memory();
            gate(&dir);
        }
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
