//! After a kill: whether the database holds what the oracle demands, and nothing else.

use super::child::newest;
use super::oracle::Oracle;
use super::plan::{ACCOUNTS, KEPT, Model, TABLES, WRITERS, account, bytes, counter, key, step};
use azekura::Db;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// The number of each writer's commits that are there.
pub type Found = [u64; WRITERS];

/// Compares a database with the oracle and the models. Returns what it has found.
pub fn verify(db: &Db, oracle: &Oracle, seed: u64, models: &mut [Model; WRITERS]) -> Result<Found, String> {
    let mut found = [0; WRITERS];
    for (w, n) in found.iter_mut().enumerate() {
        *n = newest(db, w)?;
        let known = oracle.known(w);
        if *n < known.durable {
            return Err(format!(
                "writer {w}: {n} commits are there, but {} were durable ({known:?})",
                known.durable
            ));
        }
        if *n > known.begun {
            return Err(format!("writer {w}: {n} commits are there, but {} were begun", known.begun));
        }
    }
    prefix(oracle, found)?;
    steps(db, oracle)?;
    records(db, seed, found, models)?;
    if oracle.opened().load(Ordering::SeqCst) > 0 {
        indexes(db)?;
    }
    let report = db.check(|_| {}).map_err(|e| format!("check: {e}"))?;
    if report.problems.is_empty() { Ok(found) } else { Err(format!("check says {:?}", report.problems)) }
}

/// Checks that the commits that are there are a prefix: nothing that was begun after a lost commit was
/// acknowledged stays.
fn prefix(oracle: &Oracle, found: Found) -> Result<(), String> {
    for (lost_by, &n) in found.iter().enumerate() {
        if n >= oracle.known(lost_by).acknowledged {
            continue;
        }
        let Some(lost_at) = oracle.acknowledged_at(lost_by, n + 1) else { continue };
        for (w, &kept) in found.iter().enumerate() {
            if oracle.begun_at(w, kept).is_some_and(|begun| begun > lost_at) {
                return Err(format!(
                    "commit {kept} of writer {w} is there, but not commit {} of writer {lost_by}, \
                     which was acknowledged before it began",
                    n + 1
                ));
            }
        }
    }
    Ok(())
}

/// Checks that the tables are those after some step that was done or begun.
fn steps(db: &Db, oracle: &Oracle) -> Result<(), String> {
    let names: Vec<String> =
        db.tables().into_iter().map(|t| t.name).filter(|n| n.starts_with("extra")).collect();
    let (done, begun) =
        (oracle.steps_done().load(Ordering::SeqCst), oracle.steps_begun().load(Ordering::SeqCst));
    let after = |n: u64| match step(n) {
        (name, true) if n > 0 => vec![name],
        _ => Vec::new(),
    };
    match (done..=begun).find(|&n| after(n) == names) {
        Some(n) => {
            oracle.steps_done().store(n, Ordering::SeqCst);
            oracle.steps_begun().store(n, Ordering::SeqCst);
            Ok(())
        }
        None => Err(format!("tables {names:?} after {done} to {begun} steps")),
    }
}

/// Checks that each table's index is complete since the first opening, and finds as many records as there
/// are. (That they are the right ones `check` says.)
fn indexes(db: &Db) -> Result<(), String> {
    for (name, _) in TABLES {
        let counts = || {
            let table = db.open_table(name)?;
            Ok((table.count()?, table.index(KEPT.0)?.count(&[])?))
        };
        let (records, found) =
            counts().map_err(|e: azekura::Error| format!("the index of table {name}: {e}"))?;
        if records != found {
            return Err(format!("table {name} has {records} records, and its index finds {found}"));
        }
    }
    Ok(())
}

/// Checks that the records are exactly what the commits that are there have left.
fn records(db: &Db, seed: u64, found: Found, models: &mut [Model; WRITERS]) -> Result<(), String> {
    let mut expected = TABLES.map(|_| BTreeMap::new());
    for (w, model) in models.iter_mut().enumerate() {
        if model.commits > found[w] {
            return Err(format!("writer {w}: {} commits were there before, now {}", model.commits, found[w]));
        }
        model.advance(seed, w, found[w]);
        for (&(table, slot), &stamp) in &model.records {
            expected[table].insert(key(w, slot), stamp);
        }
    }
    for (t, (name, _)) in TABLES.into_iter().enumerate() {
        let table = match db.open_table(name) {
            Ok(table) => table,
            Err(_) if found == [0; WRITERS] => continue,
            Err(e) => return Err(format!("table {name}: {e}")),
        };
        for (key, &stamp) in &expected[t] {
            let value = table.get(key).map_err(|e| format!("get: {e}"))?;
            if value.as_deref() != Some(&bytes(stamp)[..]) {
                let what = value.map_or("nothing".into(), |v| format!("{} other bytes", v.len()));
                return Err(format!(
                    "table {name}: {:?} has {what}, commits {found:?}",
                    String::from_utf8_lossy(key)
                ));
            }
        }
        let mut others = 0;
        let mut sum = 0i64;
        for record in table.cursor().map_err(|e| format!("cursor: {e}"))?.owned() {
            let (key, value) = record.map_err(|e| format!("scan: {e}"))?;
            if (0..ACCOUNTS).any(|a| account(a) == key) {
                sum += i64::from_le_bytes(value.try_into().map_err(|_| "an account is no number")?);
            } else if !expected[t].contains_key(&key) && !(0..WRITERS).any(|w| counter(w) == key) {
                others += 1;
            }
        }
        if others > 0 || sum != 0 {
            return Err(format!(
                "table {name}: {others} records that nobody wrote; the accounts' sum is {sum}"
            ));
        }
    }
    Ok(())
}
