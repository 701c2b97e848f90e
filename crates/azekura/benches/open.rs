//! What opening a database costs that was closed and stands in the system's memory: the figures behind the
//! threads that start when there is something for them to do.
//!
//! `cargo bench -p azekura --bench open [-- FILE [TIMES]]` fills a database with a million records, settles
//! and closes it, and then opens it again and again: with one get, and with one get and one durable commit.
//! Beside the medians it prints how many threads the process has while the database is open.

use azekura::{Db, Durability, Options, TableKind, WriteOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const RECORDS: u64 = 1_000_000;
const TIMES: usize = 1_000;

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn fill(path: &Path) -> azekura::Result<()> {
    let db = Db::open(path, Options::new())?;
    let table = db.table("records", TableKind::Hash)?;
    for first in (0..RECORDS).step_by(10_000) {
        let mut txn =
            db.write_with(WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() });
        for i in first..first + 10_000 {
            txn.put(&table, &key(i), &i.to_le_bytes())?;
        }
        txn.commit()?;
    }
    db.compact()?;
    drop(table);
    db.close()
}

/// Threads of this process, where the system tells.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[derive(Default)]
struct Times {
    open: Vec<Duration>,
    get: Vec<Duration>,
    both: Vec<Duration>,
    put: Vec<Duration>,
    close: Vec<Duration>,
}

fn line(what: &str, times: &mut [Duration]) {
    if times.is_empty() {
        return;
    }
    times.sort_unstable();
    let us = |part: usize| times[(times.len() - 1) * part / 100].as_nanos() as f64 / 1e3;
    println!("{what:<32} median {:>8.1} us   p10 {:>8.1}   p99 {:>8.1}", us(50), us(10), us(99));
}

fn measure(path: &Path, times: usize, put: bool) -> azekura::Result<()> {
    let mut seen = Times::default();
    let mut most = 0;
    for i in 0..times as u64 {
        let begun = Instant::now();
        let db = Db::open(path, Options::new())?;
        let opened = Instant::now();
        let table = db.open_table("records")?;
        let i = i * 997 % RECORDS;
        assert!(table.get(&key(i))?.is_some(), "the record is there");
        let got = Instant::now();
        seen.open.push(opened - begun);
        seen.get.push(got - opened);
        seen.both.push(got - begun);
        if put {
            let mut txn = db.write();
            txn.put(&table, &key(i), &i.to_le_bytes())?;
            let ready = Instant::now();
            txn.commit()?;
            seen.put.push(ready.elapsed());
        }
        most = most.max(threads());
        drop(table);
        let closing = Instant::now();
        db.close()?;
        seen.close.push(closing.elapsed());
    }
    line("open", &mut seen.open);
    line("first get", &mut seen.get);
    line("open and first get", &mut seen.both);
    line("first durable commit", &mut seen.put);
    line("close", &mut seen.close);
    println!("threads while it was open: {most} at most");
    Ok(())
}

fn main() -> azekura::Result<()> {
    // cargo adds an option of its own.
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let given = args.next().map(PathBuf::from);
    let times = args.next().and_then(|n| n.parse().ok()).unwrap_or(TIMES);
    let path = given
        .unwrap_or_else(|| std::env::temp_dir().join(format!("azekura-open-{}.azk", std::process::id())));
    if !path.exists() {
        fill(&path)?;
    }
    println!("opened {times} times, with one get");
    measure(&path, times, false)?;
    println!("opened {} times, with one get and one commit", times / 10);
    measure(&path, times / 10, true)?;
    std::fs::remove_file(&path).map_err(|e| azekura::Error::Open {
        path: path.display().to_string(),
        kind: e.kind(),
        detail: e.to_string(),
    })
}
