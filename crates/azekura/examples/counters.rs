//! Counters: how often each page was seen, by day, from many threads; and which were seen most.
//!
//! Nobody reads a counter to add to it (`merge_add`), so the threads never meet, however often they count the
//! same page.

use azekura::{Db, Durability, Options, Result, TableDefinition, TypedTable, WriteOptions};
use std::collections::HashMap;
use std::thread;

/// How often a page was seen on a day.
const SEEN: TableDefinition<(u32, String), i64> = TableDefinition::ordered("seen");

/// Adds what a thread has counted: all or nothing.
fn add(db: &Db, seen: &TypedTable<(u32, String), i64>, counted: &HashMap<(u32, &str), i64>) -> Result<()> {
    // Counts of the last second may be lost with the power; they are never half there.
    let options = WriteOptions { durability: Some(Durability::Eventual), ..WriteOptions::default() };
    let mut txn = db.write_with(options);
    for (page, times) in counted {
        seen.write_in(&mut txn).merge_add(*page, *times)?;
    }
    txn.commit()
}

/// The pages that were seen most on a day.
fn most_seen(seen: &TypedTable<(u32, String), i64>, day: u32, n: usize) -> Result<Vec<(i64, String)>> {
    let mut pages = Vec::new();
    for record in seen.prefix((day,))? {
        let ((_, page), times) = record?;
        pages.push((times, page));
    }
    pages.sort_by(|a, b| b.cmp(a));
    pages.truncate(n);
    Ok(pages)
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("azekura-counters-{}.azk", std::process::id()));
    let db = Db::open(&path, Options::new())?;
    let seen = db.typed_table(&SEEN)?;

    // One by one: a durable transaction each. Who wants to know the sum increments, and reads.
    seen.merge_add((19, "/"), 1)?;
    seen.merge_add((19, "/"), 1)?;
    assert_eq!(seen.increment((19, "/about"), 1)?, 1);

    // Four threads, each of which sees some pages 1000 times.
    thread::scope(|scope| {
        let count = |thread: i64| {
            let (db, seen) = (&db, &seen);
            move || -> Result<()> {
                for _ in 0..10 {
                    let mut counted = HashMap::new();
                    for visit in 0..100 {
                        let page = if visit % 4 == thread { "/about" } else { "/" };
                        *counted.entry((20, page)).or_default() += 1;
                    }
                    add(db, seen, &counted)?;
                }
                Ok(())
            }
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(count(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    db.sync()?;

    assert_eq!(most_seen(&seen, 20, 9)?, [(3000, "/".to_owned()), (1000, "/about".to_owned())]);
    assert_eq!(most_seen(&seen, 19, 1)?, [(2, "/".to_owned())]);
    assert_eq!(most_seen(&seen, 18, 9)?, []);

    // A counter is a number like any other: it can be set back, or compared.
    assert!(seen.compare_and_swap((19, "/"), Some(2), Some(0))?);
    assert!(!seen.compare_and_swap((19, "/"), Some(2), Some(7))?);
    seen.update((19, "/about"), |times| times.map(|times| times * 10))?;
    assert_eq!((seen.get((19, "/"))?, seen.get((19, "/about"))?), (Some(0), Some(10)));

    // Days that are over go by one step.
    seen.remove_range(..(20, ""))?;
    assert_eq!(seen.first()?, Some(((20, "/".to_owned()), 3000)));

    drop(seen);
    db.close()?;
    std::fs::remove_file(&path).expect("the example's file");
    Ok(())
}
