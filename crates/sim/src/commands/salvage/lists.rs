//! Lists: values that grow by pieces of one length, each of which is there once. So what is found tells which
//! pieces it has, and whether one is missing between them.

use super::values::{Id, value_of};
use crate::rng::Rng;
use crate::script::Stamp;
use azekura::{Merge, Result, SalvageReport, Table, WriteTxn};
use std::collections::{BTreeMap, BTreeSet};

/// What was written to the lists of a database.
#[derive(Default)]
pub(super) struct Lists {
    /// Their tables, and how long a piece is there.
    pub(super) tables: BTreeMap<usize, usize>,
    /// Pieces with which a value began, for each key.
    first: BTreeMap<Id, BTreeSet<u32>>,
    /// Keys that are there.
    there: BTreeSet<Id>,
}

impl Lists {
    /// Puts a piece, or appends it to what is there.
    pub(super) fn write(
        &mut self,
        w: &mut WriteTxn,
        table: &Table,
        id: &Id,
        stamp: Stamp,
        rng: &mut Rng,
    ) -> Result<()> {
        let (is_put, is_new) = (rng.one_in(5), self.there.insert(id.clone()));
        if is_put || is_new {
            self.first.entry(id.clone()).or_default().insert(stamp.0);
        }
        match is_put {
            true => w.put(table, &id.1, value_of(stamp)),
            false => w.merge(table, &id.1, Merge::Append(&value_of(stamp))),
        }
    }

    /// A key was removed.
    pub(super) fn remove(&mut self, id: &Id) {
        self.there.remove(id);
    }

    /// Whether all of a list was written at some time.
    pub(super) fn is_of_pieces(&self, id: &Id, found: &[u8], written: &[Stamp]) -> bool {
        self.tables.get(&id.0).is_some_and(|len| pieces(found, *len, written).is_some())
    }

    /// What is wrong with a list that was found. `wanted` is what the engine can read, if it can.
    pub(super) fn wrong(
        &self,
        id: &Id,
        found: &[u8],
        wanted: Option<&Option<Vec<u8>>>,
        written: &[Stamp],
        report: &SalvageReport,
    ) -> Option<&'static str> {
        let pieces = pieces(found, *self.tables.get(&id.0)?, written)?;
        let lost = |text: &str| report.losses.iter().any(|loss| loss.contains(text));
        if !report.manifest || lost("range deletes") {
            return None;
        }
        if !pieces.is_sorted_by(|a, b| a < b) {
            return Some("pieces that are twice there, or in another order");
        }
        let key = format!("\"{}\"", id.1.escape_ascii());
        let is_named = report.losses_unlisted > 0
            || lost(&format!("what {key} had before"))
            || lost(&format!("the value of {key}"))
            || lost(&format!("what was merged into {key}"));
        (wanted.is_none() && !is_named && !self.was_once(id, &pieces, written))
            .then_some("a part of a value, and nobody says so")
    }

    /// Whether a key has had just these pieces.
    fn was_once(&self, id: &Id, pieces: &[u32], written: &[Stamp]) -> bool {
        let (Some(first), Some((begin, more))) = (self.first.get(id), pieces.split_first()) else {
            return pieces.is_empty();
        };
        let behind = written.iter().map(|stamp| stamp.0).skip_while(|serial| serial != begin).skip(1);
        let follow: Vec<u32> = behind.take_while(|serial| !first.contains(serial)).collect();
        first.contains(begin) && follow.starts_with(more)
    }
}

/// The serial numbers of the pieces of a value. None if it has others.
fn pieces(value: &[u8], len: usize, written: &[Stamp]) -> Option<Vec<u32>> {
    let serial = |piece: &[u8]| written.iter().find(|stamp| value_of(**stamp) == piece).map(|stamp| stamp.0);
    value.len().is_multiple_of(len).then(|| value.chunks(len).map(serial).collect::<Option<Vec<u32>>>())?
}

/// Whether all pieces of one value are in another one, in their order.
pub(super) fn has_all(found: &[u8], wanted: &[u8], len: usize) -> bool {
    let mut found = found.chunks(len);
    wanted.chunks(len).all(|piece| found.any(|other| other == piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_lacks_a_piece_has_to_be_named() {
        const LEN: u32 = 24;
        let id = (0, b"k".to_vec());
        let written = [1, 2, 3, 4, 5].map(|serial| (serial, LEN));
        let list =
            |serials: &[u32]| -> Vec<u8> { serials.iter().flat_map(|s| value_of((*s, LEN))).collect() };
        // It was put anew with the fourth piece.
        let lists = Lists {
            tables: BTreeMap::from([(0, LEN as usize)]),
            first: BTreeMap::from([(id.clone(), BTreeSet::from([1, 4]))]),
            there: BTreeSet::from([id.clone()]),
        };
        let mut report = SalvageReport::default();
        let wrong = |serials: &[u32], report: &SalvageReport| {
            lists.wrong(&id, &list(serials), None, &written, report).is_some()
        };
        assert!(!wrong(&[1, 3], &report), "without the manifest much may be");
        report.manifest = true;
        for right in [&[1][..], &[1, 2], &[1, 2, 3], &[4], &[4, 5]] {
            assert!(!wrong(right, &report), "{right:?}");
        }
        for part in [&[2][..], &[2, 3], &[1, 3], &[5], &[1, 2, 3, 4], &[1, 2, 5]] {
            assert!(wrong(part, &report), "{part:?}");
        }
        report.losses.push("table \"t\": what \"k\" had before, if a lost page had it".into());
        assert!(!wrong(&[1, 3], &report));
        for never in [&[2, 1][..], &[1, 1]] {
            assert!(wrong(never, &report), "{never:?}");
        }
        assert!(!lists.is_of_pieces(&id, &list(&[1, 9]), &written) && lists.is_of_pieces(&id, b"", &written));
        assert!(
            has_all(&list(&[1, 2, 1, 3]), &list(&[1, 3]), 24) && !has_all(&list(&[3, 1]), &list(&[1, 3]), 24)
        );
    }
}
