//! What walking with a cursor costs: keys alone, keys and values, forward, backward, ranges of 100.
//!
//! `cargo bench -p azekura --bench walks [-- NAME…]` prints a line per figure, of a table that was settled,
//! closed and opened again: the first walk, which checks each page, and the best of five later ones.

use azekura::{Cursor, Durability, Options, Table, TableKind};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

const BATCH: u64 = 65_536;
const RANGES: u64 = 20_000;
const RANGE: u64 = 100;
const AGAIN: usize = 5;

/// The finalizer of SplitMix64: an invertible mix.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A table to walk over.
struct Case {
    name: &'static str,
    kind: TableKind,
    records: u64,
    value_bytes: usize,
    /// How many sorted runs it is in.
    runs: u64,
    key: fn(u64) -> Vec<u8>,
}

fn ascending(i: u64) -> Vec<u8> {
    i.to_be_bytes().to_vec()
}

fn scattered(i: u64) -> Vec<u8> {
    mix(i).to_be_bytes().to_vec()
}

fn text(i: u64) -> Vec<u8> {
    format!("user/{:x}/{}", mix(i), i % 100).into_bytes()
}

const CASES: [Case; 8] = [
    Case {
        name: "small",
        kind: TableKind::Ordered,
        records: 5_000_000,
        value_bytes: 8,
        runs: 1,
        key: scattered,
    },
    Case { name: "hash", kind: TableKind::Hash, records: 5_000_000, value_bytes: 8, runs: 1, key: scattered },
    Case {
        name: "dense",
        kind: TableKind::Ordered,
        records: 5_000_000,
        value_bytes: 4,
        runs: 1,
        key: ascending,
    },
    Case {
        name: "wide",
        kind: TableKind::Ordered,
        records: 2_000_000,
        value_bytes: 64,
        runs: 1,
        key: scattered,
    },
    Case {
        name: "large",
        kind: TableKind::Ordered,
        records: 100_000,
        value_bytes: 4096,
        runs: 1,
        key: scattered,
    },
    Case { name: "text", kind: TableKind::Ordered, records: 2_000_000, value_bytes: 20, runs: 1, key: text },
    Case {
        name: "two",
        kind: TableKind::Ordered,
        records: 2_000_000,
        value_bytes: 8,
        runs: 2,
        key: scattered,
    },
    Case {
        name: "eight",
        kind: TableKind::Ordered,
        records: 2_000_000,
        value_bytes: 8,
        runs: 8,
        key: scattered,
    },
];

fn options() -> Options {
    Options::new().memory_bytes(1 << 30).durability(Durability::Eventual).background_merges(false)
}

fn load(case: &Case, path: &Path) {
    let db = options().open(path).unwrap();
    let table = db.create_table("t", case.kind).unwrap();
    let mut value = vec![0; case.value_bytes];
    let mut i = 0;
    for run in 1..=case.runs {
        let end = case.records * run / case.runs;
        while i < end {
            let mut txn = db.write();
            let next = (i + BATCH).min(end);
            for x in i..next {
                let n = value.len().min(8);
                value[..n].copy_from_slice(&x.to_le_bytes()[..n]);
                txn.put(&table, &(case.key)(x), &value).unwrap();
            }
            txn.commit().unwrap();
            i = next;
        }
        db.flush().unwrap();
    }
    if case.runs == 1 {
        db.compact().unwrap();
    }
    drop(table);
    db.close().unwrap();
}

fn keys(cursor: &mut Cursor) -> u64 {
    let (mut n, mut sum) = (0, 0);
    while let Some((key, _)) = cursor.next().unwrap() {
        sum ^= u64::from(key[7]);
        n += 1;
    }
    black_box(sum);
    n
}

fn values(cursor: &mut Cursor) -> u64 {
    let (mut n, mut sum) = (0, 0);
    while let Some((key, value)) = cursor.next().unwrap() {
        sum ^= u64::from(key[7]) ^ u64::from(value.bytes().unwrap()[0]);
        n += 1;
    }
    black_box(sum);
    n
}

fn backward(cursor: &mut Cursor) -> u64 {
    cursor.seek_last();
    let (mut n, mut sum) = (0, 0);
    while let Some((key, value)) = cursor.prev().unwrap() {
        sum ^= u64::from(key[7]) ^ u64::from(value.bytes().unwrap()[0]);
        n += 1;
    }
    black_box(sum);
    n
}

fn ranges(case: &Case, table: &Table) -> u64 {
    let (mut n, mut sum) = (0, 0);
    for i in 0..RANGES {
        let mut cursor = table.cursor().unwrap();
        cursor.seek(&(case.key)(mix(!i) % case.records)).unwrap();
        for _ in 0..RANGE {
            let Some((key, value)) = cursor.next().unwrap() else { break };
            sum ^= u64::from(key[7]) ^ u64::from(value.bytes().unwrap()[0]);
            n += 1;
        }
    }
    black_box(sum);
    n
}

fn time(case: &Case, what: &str, rounds: usize, mut walk: impl FnMut() -> u64) {
    let round = |_| {
        let started = Instant::now();
        let n = walk();
        started.elapsed().as_secs_f64() * 1e9 / n as f64
    };
    let ns = (0..rounds).map(round).fold(f64::INFINITY, f64::min);
    println!("{:<6} {what:<28} {ns:>8.2} ns/record {:>8.1} M/s", case.name, 1e3 / ns);
}

fn measure(case: &Case, path: &Path) {
    load(case, path);
    let db = options().open(path).unwrap();
    let table = db.open_table("t").unwrap();
    time(case, "keys, first walk", 1, || keys(&mut table.cursor().unwrap()));
    time(case, "keys", AGAIN, || keys(&mut table.cursor().unwrap()));
    time(case, "keys and values", AGAIN, || values(&mut table.cursor().unwrap()));
    time(case, "keys and values, backward", AGAIN, || backward(&mut table.cursor().unwrap()));
    if case.kind == TableKind::Ordered {
        time(case, "ranges of 100", AGAIN, || ranges(case, &table));
    }
    drop(table);
    db.close().unwrap();
    std::fs::remove_file(path).unwrap();
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let path = std::env::temp_dir().join(format!("azekura-walks-{}.azk", std::process::id()));
    for case in &CASES {
        if asked.is_empty() || asked.iter().any(|a| a == case.name) {
            measure(case, &path);
        }
    }
}
