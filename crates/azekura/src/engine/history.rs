//! What recent commits wrote, for transactions that have read: first committer wins.
//!
//! A commit leaves a trace here only while others' such transactions are open. The trace is the hash of each
//! key that it wrote, with its sequence number. For transactions that read ranges it is also its keys and
//! ranges. A clash of hashes can refuse a transaction that might have passed, and do no other harm.

use crate::base::error::Error;
use crate::base::hash::hash_bytes;
use crate::base::life::Moment;
use crate::format::ranges::{Range, Ranges};
use std::collections::HashMap;

/// What one transaction has read, or (under snapshot isolation) written.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// Tables, and hashes of (table, sort key).
    pub(crate) keys: Vec<(u32, u64)>,
    /// Ranges of sort keys by table.
    pub(crate) ranges: Vec<(u32, Range)>,
    /// Many ranges of one table, by table.
    pub(crate) sets: Vec<(u32, Ranges)>,
}

impl Reads {
    /// Forgets what was read of other tables.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.keys.retain(|&(table, _)| is_kept(table));
        self.ranges.retain(|&(table, _)| is_kept(table));
        self.sets.retain(|&(table, _)| is_kept(table));
    }

    /// The tables of what was read, some more than once.
    pub(crate) fn tables(&self) -> impl Iterator<Item = u32> {
        let keys = self.keys.iter().map(|(table, _)| *table);
        let ranges = self.ranges.iter().map(|(table, _)| *table);
        keys.chain(ranges).chain(self.sets.iter().map(|(table, _)| *table))
    }
}

/// The reads of a transaction and the snapshot that they saw.
pub(crate) struct ReadSet {
    pub(crate) snapshot: u64,
    /// No table that the snapshot shows was dropped before.
    pub(crate) since: Moment,
    pub(crate) reads: Reads,
    pub(crate) own: OwnCommits,
}

/// What a transaction's own closure has committed. If it were run again, it would meet that again.
#[derive(Debug, Default)]
pub(crate) struct OwnCommits {
    /// Their numbers.
    pub(crate) commits: Vec<std::ops::Range<u64>>,
    /// The table and the sort key that the transaction has read, if it has read nothing else. Known only if
    /// there are such commits.
    pub(crate) only_read: Option<(u32, Vec<u8>)>,
}

/// The hash under which a key of a table is remembered.
#[inline]
pub(crate) fn key_mark(table: u32, key: &[u8]) -> u64 {
    hash_bytes(key, u64::from(table).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995)
}

/// One commit's writes to one table.
struct Written {
    seq: u64,
    table: u32,
    keys: Vec<Vec<u8>>,
    ranges: Ranges,
}

/// The writes of commits since the oldest open transaction that has read.
#[derive(Default)]
pub(crate) struct History {
    /// Snapshots of open transactions that have read.
    open: Vec<u64>,
    marks: HashMap<u64, u64>,
    /// Oldest first.
    written: std::collections::VecDeque<Written>,
}

impl History {
    /// Whether a commit must leave a trace: somebody else may conflict with it. `own`: so many of the open
    /// snapshots are its own.
    pub(crate) fn wanted(&self, own: usize) -> bool {
        self.open.len() > own
    }

    /// A transaction has read from a snapshot. From now on others' commits leave a trace.
    /// REQUIRES: the snapshot is the newest, which the commit lock guarantees.
    pub(crate) fn track_snapshot(&mut self, snapshot: u64) {
        self.open.push(snapshot);
    }

    pub(crate) fn untrack_snapshot(&mut self, snapshot: u64) {
        if let Some(i) = self.open.iter().position(|&s| s == snapshot) {
            self.open.swap_remove(i);
        }
        let Some(&oldest) = self.open.iter().min() else {
            self.marks = HashMap::new();
            self.written.clear();
            return;
        };
        while self.written.front().is_some_and(|w| w.seq <= oldest) {
            if let Some(old) = self.written.pop_front() {
                for key in &old.keys {
                    let mark = key_mark(old.table, key);
                    if self.marks.get(&mark).is_some_and(|&seq| seq <= oldest) {
                        self.marks.remove(&mark);
                    }
                }
            }
        }
    }

    /// Remembers what a commit wrote.
    pub(crate) fn record(&mut self, seq: u64, table: u32, keys: Vec<Vec<u8>>, ranges: Ranges) {
        for key in &keys {
            self.marks.insert(key_mark(table, key), seq);
        }
        self.written.push_back(Written { seq, table, keys, ranges });
    }

    /// The commits from `seq` on were taken back. They wrote nothing.
    pub(crate) fn rollback_from(&mut self, seq: u64) {
        if self.written.back().is_none_or(|w| w.seq < seq) {
            return;
        }
        while let Some(gone) = self.written.pop_back_if(|w| w.seq >= seq) {
            for key in &gone.keys {
                self.marks.remove(&key_mark(gone.table, key));
            }
        }
        // The marks of older commits that wrote the same keys are put back.
        for w in &self.written {
            for key in &w.keys {
                self.marks.insert(key_mark(w.table, key), w.seq);
            }
        }
    }

    /// A commit after the snapshot that wrote what was read: the table and the commit's number.
    pub(crate) fn conflict(&self, set: &ReadSet) -> Option<(u32, u64)> {
        let newer = |w: &&Written| w.seq > set.snapshot;
        let met = |&(table, mark): &(u32, u64)| {
            let &seq = self.marks.get(&mark)?;
            (seq > set.snapshot).then_some((table, seq))
        };
        if let Some(found) = set.reads.keys.iter().find_map(met) {
            return Some(found);
        }
        for (table, range) in &set.reads.ranges {
            let meets = |w: &&Written| {
                w.table == *table
                    && (w.keys.iter().any(|k| range.covers(k)) || w.ranges.iter().any(|r| overlap(r, range)))
            };
            if let Some(w) = self.written.iter().rev().take_while(newer).find(meets) {
                return Some((*table, w.seq));
            }
        }
        for (table, ranges) in &set.reads.sets {
            let overlaps = |of: &Range| ranges.iter().any(|r| overlap(of, r));
            let meets = |w: &&Written| {
                w.table == *table
                    && (w.keys.iter().any(|k| ranges.covers(k)) || w.ranges.iter().any(overlaps))
            };
            if let Some(w) = self.written.iter().rev().take_while(newer).find(meets) {
                return Some((*table, w.seq));
            }
        }
        // Reads of single keys are kept as hashes, so any range delete in their table counts, unless the key
        // is known.
        let ranged = |w: &&Written| match &set.own.only_read {
            Some((table, key)) => w.table == *table && w.ranges.covers(key),
            None => !w.ranges.is_empty() && set.reads.keys.iter().any(|&(t, _)| t == w.table),
        };
        self.written.iter().rev().take_while(newer).find(ranged).map(|w| (w.table, w.seq))
    }
}

fn overlap(a: &Range, b: &Range) -> bool {
    let before = |x: &Range, y: &Range| x.end.as_ref().is_some_and(|e| *e <= y.start);
    !before(a, b) && !before(b, a)
}

/// The error of a transaction that lost against the code that it called.
pub(crate) fn own_error(name: &str) -> Error {
    let detail =
        format!("the closure of an update has itself changed what the update depends on, in table {name:?}");
    Error::Invalid { detail }
}

/// The error of a transaction that lost.
pub(crate) fn conflict_error(name: &str) -> Error {
    Error::Conflict { table: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_writes_of_what_was_read_conflict() {
        let mut h = History::default();
        h.track_snapshot(5);
        assert!(h.wanted(0) && !h.wanted(1));
        h.record(6, 1, vec![b"k".to_vec()], Ranges::default());
        let set = |keys: Vec<(u32, u64)>, ranges| ReadSet {
            since: Moment::default(),
            snapshot: 5,
            reads: Reads { keys, ranges, sets: vec![] },
            own: OwnCommits::default(),
        };
        assert_eq!(h.conflict(&set(vec![(1, key_mark(1, b"k"))], vec![])), Some((1, 6)));
        assert_eq!(h.conflict(&set(vec![(2, key_mark(2, b"k"))], vec![])), None);
        assert_eq!(h.conflict(&set(vec![(1, key_mark(1, b"j"))], vec![])), None);
        let range = |a: &[u8], b: &[u8]| (1, Range { start: a.to_vec(), end: Some(b.to_vec()) });
        assert_eq!(h.conflict(&set(vec![], vec![range(b"a", b"z")])), Some((1, 6)));
        assert_eq!(h.conflict(&set(vec![], vec![range(b"l", b"z")])), None);
        h.untrack_snapshot(5);
        assert!(!h.wanted(0));
    }

    #[test]
    fn what_was_taken_back_conflicts_with_nobody() {
        let mut h = History::default();
        h.track_snapshot(5);
        for (seq, key) in [(6, b"k"), (7, b"k"), (8, b"l")] {
            h.record(seq, 1, vec![key.to_vec()], Ranges::default());
        }
        let set = |snapshot, key: &[u8]| ReadSet {
            since: Moment::default(),
            snapshot,
            reads: Reads { keys: vec![(1, key_mark(1, key))], ..Reads::default() },
            own: OwnCommits::default(),
        };
        let all = Range { start: Vec::new(), end: None };
        h.rollback_from(9);
        assert_eq!(h.conflict(&set(7, b"l")), Some((1, 8)));
        h.rollback_from(7);
        assert_eq!(h.conflict(&set(5, b"k")), Some((1, 6)), "the one before stays");
        assert_eq!(h.conflict(&set(6, b"k")), None);
        assert_eq!(h.conflict(&set(5, b"l")), None);
        let reads = Reads { ranges: vec![(1, all)], ..Reads::default() };
        let ranged = ReadSet { since: Moment::default(), snapshot: 6, reads, own: OwnCommits::default() };
        assert_eq!(h.conflict(&ranged), None);
    }
}
