//! What only the engine's inside can show: moments between two locks, and extents that nobody names.

mod ahead;
mod checkpoints;
mod chunks;
mod dropped;
mod feeding;
mod few;
mod flushing;
mod following;
mod forged;
pub(in crate::engine) mod hooked;
mod logged;
mod merging;
mod opening;
mod pages;
mod panics;
mod refused;
mod segments;
mod walks;
mod waste;

use super::Engine;
use super::state::{Level, State};
use crate::WriteOptions;
use crate::api::{Db, Durability, Options};
use crate::base::error::Error;
use crate::base::key::TableKind;
use crate::base::limits::{SEGMENT_BYTES, SUPERBLOCKS_BYTES, align_up};
use crate::storage::{MemStorage, OpenMode, Storage};
use hooked::{Call, Hooked};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// A database with one table of one level, and no merges of its own.
fn database() -> Db {
    let options = Options::new().background_merges(false);
    let db = Db::open_on(&MemStorage::default(), "engine.azk", options).unwrap();
    let table = db.create_table("t", TableKind::Ordered).unwrap();
    table.put_many((0..1000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    db.flush().unwrap();
    db
}

fn bottom(state: &State) -> Arc<Level> {
    state.tables[0].levels.last().expect("the table was flushed").clone()
}

/// A flush looks up some of its keys, to estimate how many replace older ones. That reads pages, but not for
/// anybody: a merge would take all that it writes into the cache.
#[test]
fn a_load_that_nobody_reads_takes_no_cache() {
    let db = database();
    let table = db.open_table("t").unwrap();
    table.put_many((500..1500u64).map(|i| (i.to_be_bytes(), [1; 8]))).unwrap();
    db.flush().unwrap();
    let is_read =
        || db.engine.state.load().tables[0].levels.iter().flat_map(|l| &l.runs).any(|r| r.is_read());
    let updates = db.engine.state.load().tables[0].levels[0].updates;
    assert!((0.3..0.7).contains(&updates), "half of the keys were there: {updates}");
    assert!(!is_read());
    db.compact().unwrap();
    assert!(!is_read());
    assert_eq!((db.stats().cache_misses, db.stats().cache_bytes), (0, 0));
    assert_eq!(table.get(&700u64.to_be_bytes()).unwrap().as_deref(), Some(&[1; 8][..]));
    assert!(is_read());
}

/// Waits for what the engine's threads are about to do; not for ever.
fn wait_until(done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < until, "it does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Bytes that are taken and belong to nothing.
fn leaked(engine: &Engine) -> u64 {
    let state = engine.state.load_full();
    let runs = state.tables.iter().flat_map(|t| t.levels.iter()).flat_map(|l| &l.runs);
    let mut live: u64 = runs.flat_map(|r| &r.info.extents).map(|e| e.len).sum();
    live += engine.values.segments().iter().map(|s| s.bytes()).sum::<u64>();
    live += engine.checkpoints().live_extents().iter().map(|e| e.len).sum::<u64>();
    engine.space.end() - SUPERBLOCKS_BYTES - engine.space.free_bytes() - live
}

/// The history watches the very snapshot that a transaction has, whatever is committed meanwhile. Else the
/// history would grow for ever.
#[test]
fn a_commit_between_entering_and_reading_is_not_seen_and_nothing_stays_watched() {
    let db = database();
    let table = db.table("t", TableKind::Ordered).unwrap();
    table.put(b"small", b"1").unwrap();
    let (state, seq) = db.engine.committer.track_snapshot(&db.engine.state);
    table.put(b"small", b"2").unwrap();
    assert!(state.visible() > seq, "the commit went into the same state");
    let read = crate::ReadTxn::from_state(db.clone(), state, seq);
    assert_eq!(read.get(&table, b"small").unwrap().unwrap(), b"1");
    db.engine.committer.untrack_snapshot(read.snapshot.seq());
    assert!(!db.engine.committer.lock().history.wanted(0));
}

/// The bytes of the file as they are, as after a kill.
fn copy_of(disk: &Hooked, path: &str) -> Hooked {
    let copy = Hooked::default();
    let old = disk.open(Path::new(path), OpenMode::ReadWrite).unwrap();
    let mut bytes = vec![0; usize::try_from(old.len().unwrap()).unwrap()];
    old.read_at(&mut bytes, 0).unwrap();
    copy.open(Path::new(path), OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
    copy
}
