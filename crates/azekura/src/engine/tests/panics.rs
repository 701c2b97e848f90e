//! Panics in the middle: nobody hangs, and nobody builds on what was left half-way.

use super::hooked::{Call, Hooked};
use super::wait_until;
use crate::api::{Db, Durability, Options};
use crate::base::error::Error;
use crate::base::key::TableKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Three durable commits wait for a fourth. Then one of them panics as it writes for all three. The others do
/// not hang, and are not told that they are durable.
#[test]
fn a_leader_that_panics_leaves_nobody_waiting() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "engine.azk", Options::new().durability(Durability::Sync)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    table.put(b"before", b"1").unwrap();
    let writes = Arc::new(AtomicU64::new(0));
    let engine = db.engine.clone();
    disk.hook(move |call| {
        if call != Call::WriteDurable {
            return Ok(());
        }
        // The first write waits until the three others have queued, the second is done for them.
        if writes.fetch_add(1, Ordering::Relaxed) == 0 {
            // Another thread looks, for this one holds the log.
            let look = || wait_until(|| engine.committer.waiting.lock().queue.len() == 3);
            std::thread::scope(|scope| scope.spawn(look).join().unwrap());
            return Ok(());
        }
        panic!("as this test wants it");
    });
    let commit = |key: &'static [u8]| {
        let table = table.clone();
        std::thread::spawn(move || table.put(key, b"2"))
    };
    let first = commit(b"first");
    wait_until(|| first_is_writing(&db));
    let others = [commit(b"a"), commit(b"b"), commit(b"c")];
    first.join().unwrap().unwrap();
    wait_until(|| others.iter().all(|other| other.is_finished()));
    let mut panicked = 0;
    for other in others {
        match other.join() {
            Err(_) => panicked += 1,
            Ok(result) => assert!(matches!(result, Err(Error::Poisoned { .. })), "{result:?}"),
        }
    }
    assert_eq!(panicked, 1, "one of them has led");
    disk.heal();
    assert!(matches!(table.put(b"after", b"3"), Err(Error::Poisoned { .. })));
    assert_eq!(table.get(b"first").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(table.get(b"a").unwrap(), None);
    drop(table);
    assert!(db.close().is_err());
    let db = Db::open_on(&disk, "engine.azk", Options::new()).unwrap();
    assert_eq!(db.open_table("t").unwrap().get(b"first").unwrap().as_deref(), Some(&b"2"[..]));
}

/// Whether somebody leads and has taken the commits that waited.
fn first_is_writing(db: &Db) -> bool {
    let waiting = db.engine.committer.waiting.lock();
    waiting.leading && waiting.queue.is_empty() && db.engine.committer.is_locked()
}

/// A thread of the engine that panics does not take those with it who wait for what it does.
#[test]
fn a_flush_that_panics_poisons_the_handle() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "engine.azk", Options::new().durability(Durability::Eventual)).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    table.put_many((0..5000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    disk.hook(|call| if call == Call::Write { panic!("as this test wants it") } else { Ok(()) });
    let flushed = {
        let db = db.clone();
        std::thread::spawn(move || db.flush())
    };
    wait_until(|| flushed.is_finished());
    assert!(matches!(flushed.join().unwrap(), Err(Error::Poisoned { .. })));
    assert!(matches!(table.put(b"after", b"3"), Err(Error::Poisoned { .. })));
    assert_eq!(table.count().unwrap(), 5000);
    drop(table);
    assert!(db.close().is_err());
}

/// The same for a merge, for which whoever closes the database waits.
#[test]
fn a_merge_that_panics_does_not_keep_the_database_open() {
    let disk = Hooked::default();
    let db = Db::open_on(&disk, "engine.azk", Options::new()).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    disk.hook(|_| match std::thread::current().name() {
        Some("azekura-merge") => panic!("as this test wants it"),
        _ => Ok(()),
    });
    for round in 0..2u64 {
        table.put_many((0..5000u64).map(|i| (i.to_be_bytes(), round.to_be_bytes()))).unwrap();
        db.flush().unwrap();
    }
    // Idle time merges the two.
    wait_until(|| db.sync().is_err());
    disk.heal();
    drop(table);
    let closed = std::thread::spawn(move || db.close());
    wait_until(|| closed.is_finished());
    assert!(matches!(closed.join().unwrap(), Err(Error::Poisoned { .. })));
}

/// The log's thread is what makes eventual commits durable: without it none may be acknowledged.
#[test]
fn a_panic_of_the_logs_thread_poisons_the_handle() {
    let disk = Hooked::default();
    let options = Options::new().durability(Durability::Eventual).eventual_delay(Duration::from_millis(20));
    let db = Db::open_on(&disk, "engine.azk", options).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    disk.hook(|call| match std::thread::current().name() {
        Some("azekura-log") if call == Call::Room => panic!("as this test wants it"),
        _ => Ok(()),
    });
    wait_until(|| table.put(b"key", b"value").is_err());
    let Err(Error::Poisoned { cause }) = table.put(b"key", b"value") else { panic!("acknowledged") };
    assert_eq!(cause, "a panic while looking after the log");
    disk.heal();
    drop(table);
    assert!(matches!(db.close(), Err(Error::Poisoned { .. })));
}
