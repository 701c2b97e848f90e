//! Followers beside a writer. A follower pins the superblock that it has found, reads the number again,
//! begins anew if there is a newer one, and reads what the superblock names. Meanwhile the writer writes
//! checkpoints, asks for pins, frees what no pin means, and uses that again.
//!
//! In each round the writer replaces all records, so that the bytes of a round take the place of an earlier
//! one's. A snapshot has the records of one round, for as long as it is held.

use super::disk::{Disk, PATH};
use super::{explore, options};
use azekura::{Db, Error, Freshness, Options, ReadTxn, Table, TableKind};
use shuttle::thread;
use std::ops::Range;

/// More than a table without runs may have.
const RECORDS: u8 = 24;
/// Rounds beside the followers.
const ROUNDS: Range<u64> = 1..6;
/// Snapshots that each follower takes. It holds all of them.
const SNAPSHOTS: u8 = 8;
/// A look at a snapshot takes one in so many records.
const LOOK_STEP: u8 = 3;

/// The value that a record has in a round. Every fourth is large, and stands apart.
fn value(i: u8, round: u64) -> Vec<u8> {
    let mut value = round.to_be_bytes().to_vec();
    let filler = i ^ value[7].wrapping_mul(41);
    value.resize(if i.is_multiple_of(4) { 5000 } else { 40 }, filler);
    value
}

/// Replaces all records in one commit, and brings that to the file.
fn replace(db: &Db, table: &Table, round: u64) {
    let mut txn = db.write();
    (0..RECORDS).for_each(|i| txn.put(table, [i], value(i, round)).unwrap());
    txn.commit().unwrap();
    db.compact().unwrap();
    db.shrink(|_| {}).unwrap();
}

/// A follower's view. With limits its snapshots may be too old.
struct Follower {
    db: Db,
    table: Table,
    limited: bool,
}

/// A snapshot, and the round that it shows.
struct Snapshot {
    txn: ReadTxn,
    round: u64,
}

impl Follower {
    fn open(disk: &Disk, freshness: Freshness, limited: bool) -> Follower {
        let db = Db::open_on(disk, PATH, options().freshness(freshness)).unwrap();
        let table = db.open_table("t").unwrap();
        Follower { db, table, limited }
    }

    /// A record of a snapshot. None: the snapshot is too old.
    fn get(&self, txn: &ReadTxn, i: u8) -> Option<Vec<u8>> {
        match txn.get(&self.table, [i]) {
            Ok(found) => Some(found.unwrap_or_else(|| panic!("record {i} is missing"))),
            Err(Error::SnapshotTooOld { .. }) if self.limited => None,
            Err(e) => panic!("record {i}: {e}"),
        }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let txn = self.db.read();
        let first = self.get(&txn, 1)?;
        Some(Snapshot { round: u64::from_be_bytes(*first.first_chunk().unwrap()), txn })
    }

    /// What is read of a snapshot is of its round.
    fn look(&self, snapshot: &Snapshot, first: u8) {
        for i in (first % LOOK_STEP..RECORDS).step_by(usize::from(LOOK_STEP)) {
            if let Some(found) = self.get(&snapshot.txn, i) {
                assert!(found == value(i, snapshot.round), "record {i} of round {}", snapshot.round);
            }
        }
    }

    /// Takes snapshots, each as new as the one before or newer.
    fn follow(&self) -> Vec<Snapshot> {
        let mut held: Vec<Snapshot> = Vec::new();
        for n in 0..SNAPSHOTS {
            let Some(snapshot) = self.snapshot() else { continue };
            let newest = held.last().map_or(0, |held| held.round);
            assert!(snapshot.round >= newest, "round {} after {newest}", snapshot.round);
            held.push(snapshot);
            held.first().into_iter().chain(held.last()).for_each(|held| self.look(held, n));
        }
        held
    }
}

/// A writer with these options, and a follower of each kind. In the end nothing that was freed and used again
/// may have been in a snapshot.
fn followed(options: Options, limited: bool) {
    let disk = Disk::new();
    let db = Db::open_on(&disk, PATH, options).unwrap();
    let table = db.create_table("t", TableKind::Hash).unwrap();
    replace(&db, &table, 0);
    let followers = [Freshness::Checkpoint, Freshness::Log].map(|freshness| {
        let disk = disk.clone();
        thread::spawn(move || {
            let follower = Follower::open(&disk, freshness, limited);
            let held = follower.follow();
            (follower, held)
        })
    });
    ROUNDS.for_each(|round| replace(&db, &table, round));
    let followers = followers.map(|follower| follower.join().unwrap());
    replace(&db, &table, ROUNDS.end);
    for (follower, held) in &followers {
        held.iter().for_each(|held| (0..LOOK_STEP).for_each(|first| follower.look(held, first)));
    }
    drop(followers);
    let stats = db.stats();
    assert_eq!((stats.pins, stats.pinned_bytes), (vec![], 0), "nobody reads any more");
    assert_eq!(db.check(|_| {}).unwrap().problems, Vec::<String>::new());
}

/// Pin, read the number again, read; against checkpoints that free, and writes that use the space again.
#[test]
fn what_a_follower_has_pinned_stays() {
    explore(|| followed(options(), false));
}

/// The same where the writer gives pins up: announce, use again; against read, look at the announcement.
#[test]
fn what_was_revoked_under_a_follower_is_too_old_and_never_wrong() {
    explore(|| followed(options().pinned_bytes_max(0), true));
}
