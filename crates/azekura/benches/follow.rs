//! What following costs: gets of a follower beside those of the writer's own handle, opening, and what a
//! commit costs until a follower has seen it.
//!
//! `cargo bench -p azekura --bench follow [-- FILE]`. The three handles are of one process, and take
//! turns on the same keys, so that they meet the same machine.

use azekura::{Db, Freshness, Options, Table, TableKind};
use std::path::{Path, PathBuf};
use std::time::Instant;

const RECORDS: u64 = 1_000_000;
const GETS: u64 = 300_000;
const ROUNDS: usize = 21;
const OPENINGS: usize = 50;
const COMMITS: u64 = 2_000;

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn follow(path: &Path, freshness: Freshness) -> (Db, Table) {
    let db = Options::new().freshness(freshness).open(path).expect("it can be followed");
    let table = db.open_table("t").expect("the table is there");
    (db, table)
}

/// Nanoseconds for each get.
fn gets(table: &Table, round: usize) -> f64 {
    let began = Instant::now();
    let mut bytes = 0;
    for n in 0..GETS {
        let wanted = (n * 7_919 + round as u64 * 31) % RECORDS;
        bytes += table.get_with(key(wanted), <[u8]>::len).expect("it is read").unwrap_or(0);
    }
    assert_eq!(bytes as u64, GETS * 100);
    began.elapsed().as_nanos() as f64 / GETS as f64
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() {
    let given = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let path = given.map_or_else(|| std::env::temp_dir().join("azekura-bench-follow.azk"), PathBuf::from);
    let _none_yet = std::fs::remove_file(&path);
    let db = Options::new().open(&path).expect("it opens");
    let table = db.create_table("t", TableKind::Hash).expect("it is new");
    table.put_many((0..RECORDS).map(|n| (key(n), [7; 100]))).expect("it is written");
    db.compact().expect("it is merged");
    let (_checkpoints, at_checkpoint) = follow(&path, Freshness::Checkpoint);
    let (_log, with_log) = follow(&path, Freshness::Log);
    let mut found = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        // Each begins in turn: who is second finds the records in the processor's caches.
        for turn in 0..3 {
            let which = (round + turn) % 3;
            found[which].push(gets([&table, &at_checkpoint, &with_log][which], round));
        }
    }
    let [own, checkpoint, log] = found.map(median);
    println!(
        "gets: writer {own:.0} ns, follower {checkpoint:.0} ns ({:.3}), with the log {log:.0} ns ({:.3})",
        own / checkpoint,
        own / log
    );
    let mut openings = Vec::new();
    for _ in 0..OPENINGS {
        let began = Instant::now();
        let opened = follow(&path, Freshness::Log);
        openings.push(began.elapsed().as_secs_f64() * 1e6);
        drop(opened);
    }
    println!("opening: {:.0} µs", median(openings));
    sees(&table, &with_log);
    drop((table, at_checkpoint, with_log));
    db.close().expect("it closes");
    let _gone = std::fs::remove_file(&path);
}

/// Small commits, each of which a follower sees at once.
fn sees(table: &Table, followed: &Table) {
    let timed = |see: bool| {
        let began = Instant::now();
        for n in 0..COMMITS {
            table.put(key(n), [9; 100]).expect("it is durable");
            if see {
                assert_eq!(followed.get(key(n)).expect("it is read").as_deref(), Some(&[9; 100][..]));
            }
        }
        began.elapsed().as_secs_f64() * 1e6 / COMMITS as f64
    };
    let (alone, seen) = (timed(false), timed(true));
    println!("a durable commit: {alone:.1} µs, and seen by a follower {seen:.1} µs");
}
