//! The active buffer under loom. Loom runs the buffer's own code in every order of the threads' steps, with a
//! bound on preemptions. It tries every value that the memory model lets a load see. It watches every access
//! to a node's bytes for races.

use super::*;
use crate::base::sync::atomic::AtomicU64;
use loom::thread;
use std::sync::Arc;

/// Room for a handful of entries.
const ARENA_BYTES: usize = 640;

/// Runs a model in every order of its threads, with up to `preemptions` preemptions.
fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// The buffer, and the number up to which its commits are visible, as in `engine/state.rs`.
struct Shared {
    list: Active,
    visible: AtomicU64,
}

/// Inserts and publishes, as a commit does.
fn commit(shared: &Shared, seq: u64, key: &[u8]) {
    // SAFETY: each model commits from one thread at a time, joined before the next one begins.
    assert!(unsafe { shared.list.insert(key, seq, 0, &seq.to_be_bytes()) }.is_some());
    shared.visible.store(seq, Ordering::Release);
}

/// The commits of the models: keys that begin, end and split the list, that share heads, and that come twice.
const COMMITS: [&[u8]; 4] = [b"middle", b"a", b"middle", b"middle and more"];
/// Inserted before the first commit. The heights of the next entries are then 1, 2, 3 and 1, so that several
/// levels are in play.
const FILLERS: [&[u8]; 2] = [b"filler", b"the last"];

/// What a snapshot must see of a key: the newest commit up to `seq` that wrote it.
fn expected(key: &[u8], seq: u64) -> Option<u64> {
    (1..=seq).rev().find(|&s| COMMITS[usize_of64(s - 1)] == key)
}

fn gets_match(shared: &Shared) {
    let seq = shared.visible.load(Ordering::Acquire);
    for key in [b"a".as_slice(), b"middle"] {
        let found = shared.list.get(key, seq).map(|e| (e.seq, e.value.to_vec()));
        let wanted = expected(key, seq).map(|s| (s, s.to_be_bytes().to_vec()));
        assert_eq!(found, wanted, "{key:?} at {seq}");
    }
}

fn new_shared(before: u64) -> Arc<Shared> {
    let shared = Arc::new(Shared { list: Active::new(ARENA_BYTES), visible: AtomicU64::new(0) });
    for key in FILLERS {
        commit(&shared, 0, key);
    }
    for seq in 1..=before {
        commit(&shared, seq, COMMITS[usize_of64(seq - 1)]);
    }
    shared
}

#[test]
fn a_reader_finds_every_commit_that_it_sees() {
    explore(3, || {
        let shared = new_shared(1);
        let writer = shared.clone();
        let writing = thread::spawn(move || {
            commit(&writer, 2, COMMITS[1]);
            commit(&writer, 3, COMMITS[2]);
        });
        gets_match(&shared);
        writing.join().unwrap();
        gets_match(&shared);
    });
}

#[test]
fn two_readers_find_every_commit_that_they_see() {
    explore(2, || {
        let shared = new_shared(2);
        let (writer, reader) = (shared.clone(), shared.clone());
        let writing = thread::spawn(move || commit(&writer, 3, COMMITS[2]));
        let reading = thread::spawn(move || gets_match(&reader));
        gets_match(&shared);
        writing.join().unwrap();
        reading.join().unwrap();
    });
}

#[test]
fn a_walk_meets_every_commit_that_it_sees_in_order() {
    explore(2, || {
        let shared = new_shared(2);
        let writer = shared.clone();
        let writing = thread::spawn(move || {
            commit(&writer, 3, COMMITS[2]);
            commit(&writer, 4, COMMITS[3]);
        });
        let seq = shared.visible.load(Ordering::Acquire);
        let mut cursor = shared.list.cursor();
        cursor.seek_first();
        let mut met = Vec::new();
        while let Some(entry) = cursor.entry() {
            met.push((entry.key.to_vec(), std::cmp::Reverse(entry.seq)));
            cursor.next();
        }
        assert!(met.is_sorted(), "{met:?}");
        for s in 1..=seq {
            let entry = (COMMITS[usize_of64(s - 1)].to_vec(), std::cmp::Reverse(s));
            assert!(met.contains(&entry), "commit {s} of {seq} is not in {met:?}");
        }
        writing.join().unwrap();
    });
}

#[test]
fn a_walk_backwards_meets_them_too() {
    explore(2, || {
        let shared = new_shared(2);
        let writer = shared.clone();
        let writing = thread::spawn(move || commit(&writer, 3, COMMITS[2]));
        let mut cursor = shared.list.cursor();
        cursor.seek_last();
        let mut met = Vec::new();
        while let Some(entry) = cursor.entry() {
            met.push((entry.key.to_vec(), std::cmp::Reverse(entry.seq)));
            cursor.prev();
        }
        met.reverse();
        assert!(met.is_sorted() && met.len() >= 4, "{met:?}");
        writing.join().unwrap();
        assert_eq!(shared.list.height.load(Ordering::Relaxed), 3, "the model has levels to get wrong");
    });
}

#[test]
fn a_finger_leads_to_whole_nodes() {
    explore(3, || {
        let shared = new_shared(3);
        let writer = shared.clone();
        // It becomes the last node of its slot, where the search for "the last" begins.
        let writing = thread::spawn(move || commit(&writer, 4, COMMITS[3]));
        let place = SearchKey::new(FILLERS[1], u64::MAX);
        let (before, found) = shared.list.search_near(&place).expect("a finger leads there");
        assert!(shared.list.entry(before).is_some_and(|e| e.key.starts_with(b"middle")));
        assert!(shared.list.entry(found).is_some_and(|e| e.key == FILLERS[1] && e.value == [0; 8]));
        gets_match(&shared);
        writing.join().unwrap();
    });
}
