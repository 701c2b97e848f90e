//! What only the engine's inside can show: moments between two locks, and extents that nobody names.

use super::state::{SortedRun, State};
use crate::api::{Db, Options};
use crate::base::key::Kind;
use crate::storage::MemStorage;
use std::sync::Arc;
use std::time::Duration;

/// A database with one table of one sorted run, and no merges of its own.
fn database() -> Db {
    let options = Options::new().background_merges(false);
    let db = Db::open_on(&MemStorage::default(), "engine.azk", options).unwrap();
    let table = db.create_table("t", Kind::Ordered).unwrap();
    table.put_many((0..1000u64).map(|i| (i.to_be_bytes(), i.to_be_bytes()))).unwrap();
    db.flush().unwrap();
    db
}

fn bottom(state: &State) -> Arc<SortedRun> {
    state.tables[0].levels.last().expect("the table was flushed").clone()
}

/// A merge that goes on after one of its steps still holds what it has put in place: whoever looks
/// at what is busy, as a flush and other merges do, never finds the new run without its mark.
#[test]
fn a_step_of_a_merge_is_busy_from_the_moment_it_is_seen() {
    let db = database();
    let engine = db.engine.clone();
    let state = engine.state.load_full();
    let (id, old) = (state.tables[0].id, bottom(&state));
    let new = Arc::new(SortedRun::new(old.runs.clone(), 0.0).unwrap());
    engine.lock_work().busy.push((0, old.clone()));
    // Whoever looks holds this lock.
    let work = engine.lock_work();
    let step = {
        let (engine, old, new) = (engine.clone(), old.clone(), new.clone());
        std::thread::spawn(move || engine.replace_levels(id, &[old], vec![new], Vec::new()).unwrap())
    };
    std::thread::sleep(Duration::from_millis(100));
    assert!(!work.bottom_is_free(&engine.state.load().tables[0].levels), "the new run may be taken");
    drop(work);
    assert!(step.join().unwrap());
    let state = engine.state.load_full();
    assert!(Arc::ptr_eq(&bottom(&state), &new));
    assert!(!engine.lock_work().bottom_is_free(&state.tables[0].levels));
}
