//! What the child writes. Commit `i` of writer `w` follows only from the database's seed, `w` and `i`. So the
//! numbers of commits of all writers determine every record.
//!
//! Each writer has its own keys in two tables, and a counter in both that holds its newest commit. Some
//! commits also move money between accounts that all writers share; the sum must stay the same.

use crate::rng::Rng;
use azekura::{FeedContent, TableKind};
use std::collections::BTreeMap;

/// How many writers there are at most.
pub const WRITERS: usize = 4;
/// The tables of records.
pub const TABLES: [(&str, TableKind); 2] = [("ordered", TableKind::Ordered), ("hash", TableKind::Hash)];
/// The index that each of them has from its first life on: its name, and what it is of.
pub const KEPT: (&str, &str) = ("kept", "v[0..2], k unique");
/// An index that comes and goes.
pub const PASSING: (&str, &str) = ("passing", "v[..1] where present");
/// One that cannot be, once there are some records. Until it is given up commits may be refused for it.
pub const REFUSED: (&str, &str) = ("refused", "k[0..1] unique");
/// Slots of each writer in each table. From `SLOTS_SHORT` on, keys do not have eight bytes.
const SLOTS: u64 = 240;
const SLOTS_SHORT: u64 = 160;
/// Accounts in the first table.
pub const ACCOUNTS: u64 = 6;

/// A value: the seed of its bytes, and its length.
pub type Stamp = (u64, u32);

/// A write of a commit, by table and slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Stores a value.
    Put(usize, u64, Stamp),
    /// Removes a key.
    Remove(usize, u64),
    /// Removes the slots from the first to below the second. Ordered table only.
    Range(u64, u64),
}

/// One commit.
pub struct Commit {
    /// Whether it is durable when it returns.
    pub durable: bool,
    /// From one account to another, and the amount.
    pub transfer: Option<(u64, u64, i64)>,
    /// The writes, in order.
    pub writes: Vec<Write>,
}

/// The key of a slot.
pub fn key(writer: usize, slot: u64) -> Vec<u8> {
    if slot < SLOTS_SHORT {
        return ((writer as u64) << 32 | slot).to_be_bytes().to_vec();
    }
    let pad = usize::try_from(slot % 7 * 9).unwrap_or(0);
    format!("writer {writer} slot {slot}{}", "-".repeat(pad)).into_bytes()
}

/// The key of a writer's counter.
pub fn counter(writer: usize) -> Vec<u8> {
    format!("counter of writer {writer}").into_bytes()
}

/// The key of an account.
pub fn account(n: u64) -> Vec<u8> {
    format!("account {n}").into_bytes()
}

/// The bytes of a value.
pub fn bytes((seed, len): Stamp) -> Vec<u8> {
    Rng(seed).bytes(usize::try_from(len).unwrap_or(0))
}

/// Commit `i` of a writer.
pub fn commit(seed: u64, writer: usize, i: u64) -> Commit {
    let mut rng = Rng::of(seed ^ (writer as u64) << 56, i);
    let durable = rng.one_in(3);
    let transfer = rng.one_in(4).then(|| (rng.below(ACCOUNTS), rng.below(ACCOUNTS), 1 + rng.below(9) as i64));
    // Mostly a few records. Sometimes enough for a chunk, or for one that is logged by reference.
    let (writes, large) = match rng.below(200) {
        0 => (30, true),
        1..=5 => (100, false),
        _ => (1 + rng.below(5), rng.one_in(30)),
    };
    let writes = (0..writes).map(|_| write(&mut rng, large)).collect();
    Commit { durable, transfer, writes }
}

fn write(rng: &mut Rng, large: bool) -> Write {
    let (table, slot) = (usize::from(rng.one_in(2)), rng.below(SLOTS));
    match rng.below(24) {
        0 => {
            let (a, b) = (rng.below(SLOTS_SHORT), rng.below(12));
            Write::Range(a, (a + b).min(SLOTS_SHORT - 1))
        }
        1..=3 => Write::Remove(table, slot),
        _ => {
            let len = match rng.below(30) {
                0 if large => 20_000,
                0..=1 => 1500,
                _ => rng.below(100) as u32,
            };
            let len = if large && rng.one_in(2) { 16_000 } else { len };
            Write::Put(table, slot, (rng.number(), len))
        }
    }
}

/// The records that a writer's commits have left.
#[derive(Default)]
pub struct Model {
    /// How many commits it includes.
    pub commits: u64,
    /// The records, by table and slot.
    pub records: BTreeMap<(usize, u64), Stamp>,
}

impl Model {
    /// Advances the model to commit `to`.
    pub fn advance(&mut self, seed: u64, writer: usize, to: u64) {
        for i in self.commits + 1..=to {
            for write in commit(seed, writer, i).writes {
                self.apply(write);
            }
        }
        self.commits = self.commits.max(to);
    }

    fn apply(&mut self, write: Write) {
        match write {
            Write::Put(table, slot, stamp) => {
                self.records.insert((table, slot), stamp);
            }
            Write::Remove(table, slot) => {
                self.records.remove(&(table, slot));
            }
            Write::Range(from, to) => (from..to).for_each(|slot| {
                self.records.remove(&(0, slot));
            }),
        }
    }
}

/// The table of step `n` of making and dropping tables (from 1 on), and whether the step makes it.
pub fn step(n: u64) -> (String, bool) {
    (format!("extra {}", n.div_ceil(2)), n % 2 == 1)
}

/// What a table of a database is fed with, which follows from its seed.
pub fn content(seed: u64, table: usize) -> FeedContent {
    if seed.is_multiple_of(3) && table == 1 { FeedContent::Values } else { FeedContent::Both }
}

/// How many bytes of the feed a database keeps.
pub fn kept(seed: u64) -> u64 {
    if seed.is_multiple_of(4) { 256 << 10 } else { 1 << 30 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_the_same_in_one_stride_and_in_many() {
        let (mut one, mut many) = (Model::default(), Model::default());
        one.advance(7, 2, 400);
        (1..=400).for_each(|i| many.advance(7, 2, i));
        assert!(one.records == many.records && one.records.len() > 100);
        assert_eq!(one.commits, 400);
    }

    #[test]
    fn keys_of_writers_differ_and_ranges_stay_within_a_writer() {
        let mut keys: Vec<_> = (0..WRITERS).flat_map(|w| (0..SLOTS).map(move |s| key(w, s))).collect();
        keys.extend((0..WRITERS).map(counter));
        keys.extend((0..ACCOUNTS).map(account));
        let n = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), n);
        assert!(key(1, SLOTS_SHORT - 1) < key(2, 0));
    }
}
