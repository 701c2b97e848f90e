//! What single calls cost: with types beside bytes, removes that look and that do not, reads within a
//! transaction.
//!
//! `cargo bench -p azekura --bench typed` prints a line per figure: nanoseconds a call, the best of many
//! short rounds, those of what is compared in turn, so that what else the machine does meets all of them.

use azekura::{Db, Durability, Options, Table, TableDefinition, TableKind, TypedTable};
use std::hint::black_box;
use std::time::Instant;

const RECORDS: u64 = 200_000;
const ROUNDS: usize = 60;
const CALLS: u64 = 20_000;

const NUMBERS: TableDefinition<u64, u64> = TableDefinition::ordered("numbers");
const TEXTS: TableDefinition<str, str> = TableDefinition::hash("texts");

type Calls<'a> = &'a mut dyn FnMut(&mut dyn Iterator<Item = u64>);

/// Lets the compiler think that a value is needed.
fn keep<T>(value: T) {
    drop(black_box(value));
}

/// Compares calls by name; each gets the numbers of the records that it is to take.
fn compare(calls: &mut [(&str, Calls<'_>)]) {
    let mut best = vec![f64::INFINITY; calls.len()];
    for round in 0..ROUNDS {
        for i in 0..calls.len() {
            let mut numbers =
                (0..CALLS).map(|n| n.wrapping_mul(0x9e37_79b9).wrapping_add(round as u64) % RECORDS);
            let started = Instant::now();
            (calls[i].1)(&mut numbers);
            best[i] = best[i].min(started.elapsed().as_nanos() as f64 / CALLS as f64);
        }
    }
    for ((name, _), ns) in calls.iter().zip(&best) {
        println!("{name:<44} {ns:>8.1} ns {:>7.3}", ns / best[0]);
    }
}

fn gets(raw: &Table, numbers: &TypedTable<u64, u64>, texts: &TypedTable<str, str>) {
    let number =
        |n: u64| raw.get_with(n.to_be_bytes(), |v| v.try_into().map(u64::from_le_bytes)).unwrap().unwrap();
    compare(&mut [
        ("get of a number, bytes", &mut |all| all.for_each(|n| keep(number(black_box(n))))),
        ("get of a number, typed", &mut |all| all.for_each(|n| keep(numbers.get(black_box(n)).unwrap()))),
    ]);
    let (table, key) = (texts.table(), |n: u64| format!("user/{n}"));
    let keys: Vec<String> = (0..RECORDS).map(key).collect();
    let text = |n: u64| table.get_with(&keys[n as usize], |v| std::str::from_utf8(v).map(str::len)).unwrap();
    compare(&mut [
        ("get of text, bytes", &mut |all| all.for_each(|n| keep(text(n)))),
        ("get of text, typed", &mut |all| {
            all.for_each(|n| keep(texts.get_with(&keys[n as usize], str::len).unwrap()));
        }),
    ]);
}

fn puts(db: &Db, raw: &Table, numbers: &TypedTable<u64, u64>) {
    compare(&mut [
        ("put in a transaction, bytes", &mut |all| {
            let mut txn = db.write();
            all.for_each(|n| txn.put(raw, n.to_be_bytes(), n.to_le_bytes()).unwrap());
        }),
        ("put in a transaction, slices", &mut |all| {
            let mut txn = db.write();
            all.for_each(|n| {
                let (key, value) = (n.to_be_bytes(), n.to_le_bytes());
                txn.put(raw, &key[..], &value[..]).unwrap();
            });
        }),
        ("put in a transaction, typed", &mut |all| {
            let mut txn = db.write();
            let mut view = numbers.write_in(&mut txn);
            all.for_each(|n| view.put(n, n).unwrap());
        }),
    ]);
    compare(&mut [
        ("put, bytes", &mut |all| all.for_each(|n| raw.put(n.to_be_bytes(), n.to_le_bytes()).unwrap())),
        ("put, typed", &mut |all| all.for_each(|n| numbers.put(n, n).unwrap())),
    ]);
    let put = |n: u64| raw.put(n.to_be_bytes(), n.to_le_bytes()).unwrap();
    compare(&mut [
        ("put and remove", &mut |all| {
            all.for_each(|n| {
                put(n);
                raw.remove(n.to_be_bytes()).unwrap();
            });
        }),
        ("put and remove_existing", &mut |all| {
            all.for_each(|n| {
                put(n);
                assert!(raw.remove_existing(n.to_be_bytes()).unwrap());
            });
        }),
        ("remove_existing of what is not there", &mut |all| {
            all.for_each(|n| assert!(!raw.remove_existing((n + RECORDS).to_be_bytes()).unwrap()));
        }),
    ]);
}

fn transactions(db: &Db, raw: &Table) {
    let read = db.read();
    let txn = db.write();
    compare(&mut [
        ("get_with in a snapshot", &mut |all| {
            all.for_each(|n| keep(read.get_with(raw, n.to_be_bytes(), <[u8]>::len).unwrap()));
        }),
        ("get_with in a write transaction", &mut |all| {
            all.for_each(|n| keep(txn.get_with(raw, n.to_be_bytes(), <[u8]>::len).unwrap()));
        }),
    ]);
    compare(&mut [
        ("read transaction, empty", &mut |all| all.for_each(|_| keep(db.read()))),
        ("write transaction, empty", &mut |all| all.for_each(|_| keep(db.write()))),
    ]);
}

/// A queue of which records are taken one by one, while nothing is merged; `take` takes one.
fn queue(db: &Db, name: &str, take: impl Fn(&Table)) {
    let jobs = db.create_table(name, TableKind::Ordered).unwrap();
    jobs.put_many((0..RECORDS).map(|n| (n.to_be_bytes(), [0; 16]))).unwrap();
    let mut taken = 0;
    for gone in [100, 1000, 5000, 10_000] {
        let (started, calls) = (Instant::now(), gone - taken);
        (0..calls).for_each(|_| take(&jobs));
        taken = gone;
        println!(
            "{name}, until {gone} are gone {:>16.1} ns",
            started.elapsed().as_nanos() as f64 / calls as f64
        );
    }
    let started = Instant::now();
    let drained = jobs.drain(..).unwrap().count();
    println!("drain of {drained} {:>32.1} ns a record", started.elapsed().as_nanos() as f64 / drained as f64);
}

/// What `pop_first` does, but that it never removes a range.
fn first_and_remove(db: &Db, jobs: &Table) {
    let take = |txn: &mut azekura::WriteTxn| match txn.first(jobs)? {
        Some((key, _)) => txn.remove(jobs, key),
        None => Ok(()),
    };
    db.transact(take).unwrap();
}

fn main() {
    let path = std::env::temp_dir().join(format!("azekura-bench-typed-{}.azk", std::process::id()));
    let db = Db::open(&path, Options::new().durability(Durability::Eventual)).unwrap();
    let (numbers, texts) = (db.typed_table(&NUMBERS).unwrap(), db.typed_table(&TEXTS).unwrap());
    numbers.put_many((0..RECORDS).map(|n| (n, n))).unwrap();
    let keys: Vec<String> = (0..RECORDS).map(|n| format!("user/{n}")).collect();
    texts.put_many(keys.iter().map(|key| (key.as_str(), key.as_str()))).unwrap();
    db.compact().unwrap();
    let raw = numbers.table();
    gets(raw, &numbers, &texts);
    transactions(&db, raw);
    puts(&db, raw, &numbers);
    queue(&db, "pop_first", |jobs| keep(jobs.pop_first().unwrap()));
    queue(&db, "first and remove", |jobs| first_and_remove(&db, jobs));
    drop((numbers, texts));
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}
