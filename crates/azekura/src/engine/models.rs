//! Publishing and pinning versions under loom. The models run the engine's own code for it: `publish`,
//! sealing the active buffer, using it again, looking up. Loom tries every order of the threads' steps, with
//! a bound on preemptions, and every value that the memory model lets a load see.
//!
//! A commit to one table is followed by one that seals the active buffer. A third one may take the buffer
//! again, if no reader holds the state that names it. Whoever loads a state must find exactly the commits up
//! to its number, however long it looks.

use super::commit::Commit;
use super::state::{ActiveBuf, State, TableState, publish};
use crate::base::key::{SortKey, TableKind};
use crate::base::sync::{ArcSwap, CountedArc};
use crate::format::block::Tag;
use crate::memtable::pool::Pool;
use crate::txn::get::lookup;
use loom::thread;
use std::sync::Arc;

/// Room for a few entries.
const ACTIVE_BYTES: usize = 512;

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

fn new_cell() -> Arc<ArcSwap<State>> {
    let mut table = TableState::new(1, TableKind::Ordered, "t".into());
    table.active = Some(CountedArc::new(ActiveBuf::new(ACTIVE_BYTES)));
    Arc::new(ArcSwap::from_pointee(State::new(0).with_table(table)))
}

fn insert(active: &ActiveBuf, key: &[u8], seq: u64) {
    // SAFETY: one thread of the model commits.
    assert!(unsafe { active.list.insert(key, seq, Tag::Put as u8, &seq.to_be_bytes()) }.is_some());
}

/// A small commit into the active buffer that is there.
fn commit_small(cell: &ArcSwap<State>, key: &[u8], seq: u64) {
    let state = cell.load();
    insert(state.tables[0].active.as_ref().unwrap(), key, seq);
    publish(cell, seq, None);
}

/// A commit that finds the active buffer full: seals it, and writes to another.
fn commit_sealing(cell: &ArcSwap<State>, commit: &mut Commit, key: &[u8], seq: u64) {
    let state = cell.load();
    let mut table = TableState::clone(&state.tables[0]);
    commit.spare.extend(table.seal_active(&Pool::new(0)).unwrap());
    let free = commit.spare.iter_mut().any(|a| ActiveBuf::unshared_list(a).is_some());
    table.active = Some(if free {
        commit.new_active(ACTIVE_BYTES, 1, 16)
    } else {
        CountedArc::new(ActiveBuf::new(ACTIVE_BYTES))
    });
    insert(table.active.as_ref().unwrap(), key, seq);
    let next = state.with_table(table);
    drop(state);
    publish(cell, seq, Some(next));
}

fn value(state: &State, seq: u64, key: &[u8]) -> Option<u64> {
    let found = lookup(
        &state.tables[0],
        seq,
        SortKey::new(key),
        || 0,
        |_, slot, _| u64::from_be_bytes(slot.bytes().try_into().unwrap()),
    );
    found.unwrap()
}

/// Key "x" is written by every commit, key "y" by the first only.
fn snapshot_is_whole(cell: &ArcSwap<State>) {
    let state = cell.load_full();
    let seq = state.visible();
    for _ in 0..2 {
        let newest = (seq > 0).then_some(seq);
        assert_eq!(value(&state, seq, b"x"), newest, "x at {seq}");
        thread::yield_now();
    }
}

#[test]
fn a_snapshot_sees_all_of_its_commits_and_no_later_one() {
    explore(2, || {
        let cell = new_cell();
        let writer = cell.clone();
        let writing = thread::spawn(move || {
            let mut commit = Commit::new(1, ACTIVE_BYTES);
            commit_small(&writer, b"x", 1);
            commit_sealing(&writer, &mut commit, b"x", 2);
        });
        snapshot_is_whole(&cell);
        writing.join().unwrap();
        assert_eq!(value(&cell.load(), 2, b"x"), Some(2));
    });
}

#[test]
fn a_buffer_is_used_again_only_when_no_reader_holds_it() {
    explore(2, || {
        let cell = new_cell();
        commit_small(&cell, b"x", 1);
        let writer = cell.clone();
        let writing = thread::spawn(move || {
            let mut commit = Commit::new(2, ACTIVE_BYTES);
            commit_sealing(&writer, &mut commit, b"x", 2);
            commit_sealing(&writer, &mut commit, b"x", 3);
        });
        snapshot_is_whole(&cell);
        writing.join().unwrap();
    });
}
