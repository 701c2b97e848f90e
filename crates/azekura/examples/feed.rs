//! A table and its feed of changes: what feeding costs the writer, and how fast a reader is.
//!
//! `cargo run --release -p azekura --example feed -- [RECORDS]`

use azekura::{Db, Durability, FeedContent, Options, Result, TableKind};
use std::path::Path;
use std::time::Instant;

const VALUE_BYTES: usize = 44;
const ROUNDS: u64 = 3;

fn main() -> Result<()> {
    let records: u64 = std::env::args().nth(1).map_or(1_000_000, |n| n.parse().expect("a number of records"));
    let path = std::env::temp_dir().join(format!("azekura-example-feed-{}.azk", std::process::id()));
    println!("{records} records of 16 + {VALUE_BYTES} bytes; best of {ROUNDS}");
    println!("commits of              not fed      fed       ratio   read");
    for batch in [1, 100, 10_000] {
        compare(&path, records, batch, Durability::Eventual)?;
    }
    // A commit of one thread waits for a write to the disk.
    for batch in [1, 100] {
        compare(&path, records.min(10_000 * batch), batch, Durability::Sync)?;
    }
    Ok(())
}

/// Prints the rates of commits of `batch` records, which are fed and not, in turns.
fn compare(path: &Path, records: u64, batch: u64, durability: Durability) -> Result<()> {
    let [mut plain, mut fed, mut read] = [0.0_f64; 3];
    for round in 0..ROUNDS {
        plain = plain.max(load(path, records, batch, round, false, durability)?.0);
        let (write, reads) = load(path, records, batch, round, true, durability)?;
        (fed, read) = (fed.max(write), read.max(reads));
    }
    let durable = if durability == Durability::Sync { ", durable" } else { "" };
    let (plain_k, fed_k, read_k) = (plain / 1e3, fed / 1e3, read / 1e3);
    let ratio = fed / plain;
    println!(
        "{batch:>10}{durable:<9}   {plain_k:>6.1} K/s  {fed_k:>6.1} K/s  {ratio:>5.2}   {read_k:>6.0} K/s"
    );
    Ok(())
}

/// Loads a new database, and gives records a second, and changes a second of a reader.
fn load(
    path: &Path,
    records: u64,
    batch: u64,
    round: u64,
    is_fed: bool,
    durability: Durability,
) -> Result<(f64, f64)> {
    let _ = std::fs::remove_file(path);
    let db = Db::open(path, Options::new().durability(durability))?;
    let table = db.create_table("t", TableKind::Ordered)?;
    let mut after = 0;
    if is_fed {
        table.set_feed(Some(FeedContent::Values))?;
        after = db.feed_info()?.map_or(0, |info| info.newest);
    }
    let began = Instant::now();
    for first in (0..records).step_by(usize::try_from(batch).expect("a small number")) {
        let numbers = first..(first + batch).min(records);
        table.put_many(numbers.map(|i| (key(i, round), value(i))))?;
    }
    db.sync()?;
    let write = records as f64 / began.elapsed().as_secs_f64();
    let (began, mut changes) = (Instant::now(), 0u64);
    if is_fed {
        let mut feed = db.feed(after)?;
        while feed.next()?.is_some() {
            changes += 1;
        }
        assert_eq!(changes, records, "every record is told of once");
    }
    let read = changes as f64 / began.elapsed().as_secs_f64();
    drop(table);
    db.close()?;
    let _ = std::fs::remove_file(path);
    Ok((write, read))
}

/// Scattered keys.
fn key(i: u64, round: u64) -> [u8; 16] {
    let mut key = [0; 16];
    let scattered = (i ^ round << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    key[..8].copy_from_slice(&scattered.to_be_bytes());
    key[8..].copy_from_slice(&i.to_be_bytes());
    key
}

/// Bytes that cannot be compressed.
fn value(i: u64) -> [u8; VALUE_BYTES] {
    let (mut state, mut value) = (i.wrapping_mul(0xd134_2543_de82_ef95) | 1, [0; VALUE_BYTES]);
    for byte in &mut value {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state as u8;
    }
    value
}
