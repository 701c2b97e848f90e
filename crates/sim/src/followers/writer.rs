//! The process that writes, until it is killed: commits, flushes, compacts, shrinks, closes and opens again.

use super::plan::{COUNTER, TABLES, is_limited, key_bytes, table_of, window, written};
use crate::rng::Rng;
use azekura::{Db, Durability, Options, Table};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The writer's arguments.
#[derive(clap::Args, Clone, Debug)]
pub struct Orders {
    /// The database
    pub path: PathBuf,
    /// What the commits follow from
    pub seed: u64,
    /// Which life of the database this is
    pub life: u64,
}

/// Small memtables and budgets, so that checkpoints and merges follow each other within milliseconds.
fn options(rng: &mut Rng, limited: bool) -> Options {
    let options = Options::new()
        .memory_bytes(8 << 20)
        .memtable_bytes(*rng.pick(&[64, 64, 256, 1024]) << 10)
        .durability(*rng.pick(&[Durability::Sync, Durability::Eventual, Durability::Eventual]))
        .eventual_delay(Duration::from_millis(*rng.pick(&[1, 5, 30])))
        .large_value_bytes(*rng.pick(&[64, 512, 8192]))
        .background_merges(!rng.one_in(4))
        .mapped(!rng.one_in(4));
    // Writers without limits come in between.
    if !limited || rng.one_in(5) {
        return options;
    }
    let bytes = *rng.pick(&[0, 64 << 10, 512 << 10, u64::MAX]);
    let age = Duration::from_millis(*rng.pick(&[0, 5, 50, 10_000]));
    match rng.below(3) {
        0 => options.pinned_bytes_max(bytes),
        1 => options.pinned_age_max(age),
        _ => options.pinned_bytes_max(bytes).pinned_age_max(age),
    }
}

/// Runs until it is killed. Ends by itself only if something is wrong, and prints what.
pub fn run(orders: &Orders) -> ExitCode {
    for open in 0.. {
        let mut rng = Rng::of(orders.seed ^ orders.life << 20, open);
        if let Err(e) = write_for_a_while(orders, &mut rng) {
            eprintln!("the writer failed: {e}");
            break;
        }
    }
    ExitCode::FAILURE
}

fn write_for_a_while(orders: &Orders, rng: &mut Rng) -> Result<(), String> {
    let db = options(rng, is_limited(orders.seed)).open(&orders.path).map_err(|e| format!("opening: {e}"))?;
    let mut tables = Vec::new();
    for (name, kind) in TABLES {
        tables.push(db.table(name, kind).map_err(|e| format!("table {name}: {e}"))?);
    }
    let first = newest(&tables[0])?;
    for n in first + 1..first + 50 + rng.below(3000) {
        commit(&db, &tables, orders.seed, n).map_err(|e| format!("commit {n}: {e}"))?;
        let done = match rng.below(600) {
            0 => db.flush(),
            1 => db.compact(),
            2 => db.shrink(|_| {}).map(drop),
            3 => db.sync(),
            4 => {
                std::thread::sleep(Duration::from_millis(rng.below(30)));
                Ok(())
            }
            _ => Ok(()),
        };
        done.map_err(|e| format!("after commit {n}: {e}"))?;
    }
    drop(tables);
    db.close().map_err(|e| format!("closing: {e}"))
}

/// The number of the newest commit that a table has.
///
/// # Errors
/// If it cannot be read, or is no number.
pub fn newest(table: &Table) -> Result<u64, String> {
    let found = table.get(COUNTER).map_err(|e| format!("reading the counter: {e}"))?;
    match found.map(<[u8; 8]>::try_from) {
        None => Ok(0),
        Some(Ok(bytes)) => Ok(u64::from_le_bytes(bytes)),
        Some(Err(bytes)) => Err(format!("the counter has {} bytes", bytes.len())),
    }
}

fn commit(db: &Db, tables: &[Table], seed: u64, n: u64) -> azekura::Result<()> {
    let mut txn = db.write();
    for key in window(n) {
        let table = &tables[table_of(key)];
        match written(seed, key, n) {
            Some(value) => txn.put(table, key_bytes(key), value)?,
            None => txn.remove(table, key_bytes(key))?,
        }
    }
    for table in tables {
        txn.put(table, COUNTER, n.to_le_bytes())?;
    }
    txn.commit()
}
