//! What merges cost, which read nothing, beside what reads. Many counters from one thread (`increment`
//! reads), one counter from four, and many short lists that get eight bytes at a time (a get and a put read).
//!
//! `--counters N` says how many counters there are (10 million), `--lists N` how many lists (1 million),
//! `--seconds N` how long each part takes (20), `--budget MIB` how much memory the database has (256).

use azekura::{Db, Durability, Merge, Options, Result, Table, TableKind, WriteOptions, WriteTxn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Increments of a transaction.
const BATCH: u64 = 1_000;

/// Random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 20) % n
    }
}

fn argument(name: &str, usual: u64) -> u64 {
    let mut arguments = std::env::args();
    let value = arguments.find(|argument| argument == name).and_then(|_| arguments.next());
    value.map_or(usual, |value| value.parse().expect("a number"))
}

fn eventual() -> WriteOptions {
    WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() }
}

/// Does something for some time, many times in a transaction. Gives how often, how often a second until it is
/// durable, and until it is folded, too, and the table is one run again.
fn many(
    db: &Db,
    time: Duration,
    mut change: impl FnMut(&mut WriteTxn) -> Result<()>,
) -> Result<(u64, f64, f64)> {
    let (began, mut done) = (Instant::now(), 0);
    while began.elapsed() < time {
        let mut txn = db.write_with(eventual());
        for _ in 0..BATCH {
            change(&mut txn)?;
        }
        txn.commit()?;
        done += BATCH;
    }
    db.sync()?;
    let durable = done as f64 / began.elapsed().as_secs_f64();
    db.compact()?;
    Ok((done, durable, done as f64 / began.elapsed().as_secs_f64()))
}

/// Increments random counters.
fn increments(db: &Db, table: &Table, count: u64, time: Duration, reads: bool) -> Result<(u64, f64, f64)> {
    let mut random = Random(7);
    many(db, time, |txn| {
        let key = random.below(count).to_be_bytes();
        if reads { txn.increment(table, key, 1).map(drop) } else { txn.merge(table, key, Merge::AddI64(1)) }
    })
}

/// Increments one counter from four threads, each time in a transaction of its own.
fn one(db: &Db, table: &Table, time: Duration, reads: bool) -> Result<(u64, f64)> {
    let (began, done) = (Instant::now(), AtomicU64::new(0));
    thread::scope(|scope| {
        let work = || -> Result<()> {
            while began.elapsed() < time {
                for _ in 0..100 {
                    if reads {
                        db.transact_with(eventual(), |txn| txn.increment(table, "all", 1))?;
                    } else {
                        let mut txn = db.write_with(eventual());
                        txn.merge(table, "all", Merge::AddI64(1))?;
                        txn.commit()?;
                    }
                }
                done.fetch_add(100, Ordering::Relaxed);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    let done = done.into_inner();
    Ok((done, done as f64 / began.elapsed().as_secs_f64()))
}

/// Appends eight random bytes to random lists.
fn lists(db: &Db, table: &Table, count: u64, time: Duration, reads: bool) -> Result<(u64, f64, f64)> {
    let mut random = Random(9);
    many(db, time, |txn| {
        let (key, entry) = (random.below(count).to_be_bytes(), random.below(1 << 40).to_le_bytes());
        if !reads {
            return txn.merge(table, key, Merge::Append(&entry));
        }
        let mut list = txn.get(table, key)?.unwrap_or_default();
        list.extend_from_slice(&entry);
        txn.put(table, key, list)
    })
}

/// Gets random lists: how many a second, and what they have on average.
fn look(table: &Table, lists: u64, time: Duration) -> Result<(f64, f64)> {
    let (began, mut random, mut done, mut bytes) = (Instant::now(), Random(11), 0u64, 0);
    while began.elapsed() < time {
        for _ in 0..BATCH {
            bytes += table.get_with(random.below(lists).to_be_bytes(), <[u8]>::len)?.unwrap_or_default();
        }
        done += BATCH;
    }
    Ok((done as f64 / began.elapsed().as_secs_f64(), bytes as f64 / done as f64))
}

/// All entries are there.
fn expect_entries(table: &Table, wanted: u64) -> Result<()> {
    let (mut entries, mut cursor) = (0, table.cursor()?);
    while let Some((_, list)) = cursor.next()? {
        entries += list.len() as u64 / 8;
    }
    assert_eq!(entries, wanted);
    Ok(())
}

/// All increments are there.
fn expect(table: &Table, wanted: u64) -> Result<()> {
    let mut sum = 0;
    let mut cursor = table.cursor()?;
    while let Some((_, value)) = cursor.next()? {
        sum += u64::from_le_bytes(value.bytes()?.try_into().expect("eight bytes"));
    }
    assert_eq!(sum, wanted);
    Ok(())
}

fn main() -> Result<()> {
    let (counters, seconds) = (argument("--counters", 10_000_000), argument("--seconds", 20));
    let time = Duration::from_secs(seconds);
    for reads in [false, true] {
        let what = if reads { "increment" } else { "merge" };
        let path = std::env::temp_dir().join(format!("azekura-increments-{}.azk", std::process::id()));
        let options = Options::new().memory_bytes(argument("--budget", 256) << 20);
        let db = Db::open(&path, options)?;
        let table = db.table("counters", TableKind::Hash)?;
        for from in (0..counters).step_by(100_000) {
            let mut txn = db.write_with(eventual());
            for i in from..(from + 100_000).min(counters) {
                txn.put(&table, i.to_be_bytes(), 0i64.to_le_bytes())?;
            }
            txn.commit()?;
        }
        db.compact()?;
        let (done, rate, folded) = increments(&db, &table, counters, time, reads)?;
        println!("{what}: {rate:.0}/s over {counters} counters from one thread, {folded:.0}/s with compact");
        expect(&table, done)?;
        let single = db.table("one", TableKind::Hash)?;
        let (done, rate) = one(&db, &single, time / 2, reads)?;
        println!("{what}: {rate:.0}/s on one counter from four threads");
        expect(&single, done)?;
        let (name, n) = (if reads { "get and put" } else { "append" }, argument("--lists", 1_000_000));
        let list = db.table("lists", TableKind::Hash)?;
        let (done, rate, folded) = lists(&db, &list, n, time, reads)?;
        println!("{name}: {rate:.0}/s to {n} lists from one thread, {folded:.0}/s with compact");
        expect_entries(&list, done)?;
        let (rate, bytes) = look(&list, n, time / 4)?;
        println!("{name}: {rate:.0} gets/s of lists of {bytes:.0} bytes, compacted");
        drop((table, single, list));
        db.close()?;
        std::fs::remove_file(&path).expect("the example's file");
    }
    Ok(())
}
