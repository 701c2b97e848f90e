//! Sets of places in a file, and what was copied to them.

use crate::format::point::PartId;
use std::collections::BTreeMap;
use std::ops::Range;

/// Stretches of a file that do not meet.
#[derive(Default, Clone)]
pub(super) struct Spans(BTreeMap<u64, u64>);

impl Spans {
    /// Adds a stretch. It may meet others.
    pub(super) fn add(&mut self, offset: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let (mut from, mut to) = (offset, offset.saturating_add(bytes));
        while let Some((&start, &end)) = self.0.range(..=to).next_back().filter(|(_, end)| **end >= from) {
            self.0.remove(&start);
            from = from.min(start);
            to = to.max(end);
        }
        self.0.insert(from, to);
    }

    /// Whether one of them has some of these bytes.
    pub(super) fn meets(&self, offset: u64, bytes: u64) -> bool {
        let before = self.0.range(..offset.saturating_add(bytes)).next_back();
        before.is_some_and(|(_, &end)| end > offset)
    }

    /// The parts of a stretch of the file that are in one of them.
    pub(super) fn parts_of(&self, offset: u64, bytes: u64) -> impl Iterator<Item = Range<u64>> {
        let end = offset.saturating_add(bytes);
        let first = self.0.range(..=offset).next_back().map_or(offset, |(&start, _)| start);
        let there = self.0.range(first..end).map(move |(&from, &to)| from.max(offset)..to.min(end));
        there.filter(|part| !part.is_empty())
    }

    /// Where the last one ends.
    pub(super) fn end(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(_, &end)| end)
    }
}

/// A stretch of a run or of a value segment, and where it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) part: PartId,
    /// Where it begins in the part.
    pub(super) at: u64,
    /// Where it stands.
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + self.bytes
    }

    /// The part of it between two places of the file.
    fn between(&self, from: u64, to: u64) -> Piece {
        Piece { at: self.at + (from - self.offset), offset: from, bytes: to - from, ..*self }
    }
}

/// What of runs and value segments stands where.
#[derive(Default)]
pub(super) struct Copied(BTreeMap<u64, Piece>);

impl Copied {
    /// Some other bytes have come to a place, or are about to.
    pub(super) fn forget(&mut self, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes);
        while let Some((&start, &piece)) = self.0.range(..end).next_back().filter(|(_, p)| p.end() > offset) {
            self.0.remove(&start);
            if start < offset {
                self.0.insert(start, piece.between(start, offset));
            }
            if end < piece.end() {
                self.0.insert(end, piece.between(end, piece.end()));
            }
        }
    }

    /// A piece stands in its place now.
    pub(super) fn note(&mut self, piece: Piece) {
        self.forget(piece.offset, piece.bytes);
        self.0.insert(piece.offset, piece);
    }

    /// What of a piece does not stand in its place.
    pub(super) fn lacks(&self, piece: &Piece) -> Vec<Piece> {
        let mut lacking = Vec::new();
        let mut at = piece.offset;
        let first = self.0.range(..=at).next_back().map_or(at, |(&start, _)| start);
        for there in self.0.range(first..piece.end()).map(|(_, there)| there) {
            let (from, to) = (there.offset.max(at), there.end().min(piece.end()));
            let is_same = there.part == piece.part
                && there.at.wrapping_sub(there.offset) == piece.at.wrapping_sub(piece.offset);
            if from >= to || !is_same {
                continue;
            }
            if at < from {
                lacking.push(piece.between(at, from));
            }
            at = to;
        }
        if at < piece.end() {
            lacking.push(piece.between(at, piece.end()));
        }
        lacking
    }

    /// Forgets value segments of which it is not sure that they are what they were.
    pub(super) fn keep_values(&mut self, are_sure: impl Fn(u32) -> bool) {
        self.0.retain(|_, piece| match piece.part {
            PartId::Run(_) | PartId::Log(_) => true,
            PartId::Values(id) => are_sure(id),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_joined_and_found() {
        let mut spans = Spans::default();
        for (offset, bytes) in [(10, 5), (30, 5), (15, 5), (28, 4), (0, 1), (7, 0)] {
            spans.add(offset, bytes);
        }
        assert_eq!(spans.0.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>(), [(0, 1), (10, 20), (28, 35)]);
        let meets = |offset, bytes| spans.meets(offset, bytes);
        assert!(meets(0, 1) && meets(19, 1) && meets(5, 6) && meets(20, 9) && meets(0, 100));
        assert!(!meets(1, 9) && !meets(20, 8) && !meets(35, 100));
        assert_eq!((spans.end(), Spans::default().end()), (35, 0));
        let parts = |offset, bytes| spans.parts_of(offset, bytes).collect::<Vec<_>>();
        assert_eq!(parts(0, 100), [0..1, 10..20, 28..35]);
        assert_eq!(parts(12, 20), [12..20, 28..32]);
        assert_eq!(parts(12, 3).first(), Some(&(12..15)));
        assert!(parts(20, 8).is_empty() && parts(35, 9).is_empty() && parts(1, 9).is_empty());
        spans.add(0, 100);
        assert_eq!(spans.0.len(), 1);
    }

    fn piece(id: u64, at: u64, offset: u64, bytes: u64) -> Piece {
        Piece { part: PartId::Run(id), at, offset, bytes }
    }

    #[test]
    fn what_stands_in_its_place_is_not_lacking() {
        let mut copied = Copied::default();
        assert_eq!(copied.lacks(&piece(1, 0, 100, 50)), [piece(1, 0, 100, 50)]);
        copied.note(piece(1, 0, 100, 50));
        assert_eq!(copied.lacks(&piece(1, 0, 100, 50)), []);
        assert_eq!(copied.lacks(&piece(1, 10, 110, 50)), [piece(1, 50, 150, 10)]);
        assert_eq!(copied.lacks(&piece(1, 0, 110, 50)), [piece(1, 0, 110, 50)], "elsewhere in the run");
        assert_eq!(copied.lacks(&piece(2, 0, 100, 50)), [piece(2, 0, 100, 50)]);
        copied.note(piece(2, 0, 120, 10));
        assert_eq!(copied.lacks(&piece(1, 0, 100, 50)), [piece(1, 20, 120, 10)]);
        copied.forget(90, 20);
        assert_eq!(copied.lacks(&piece(1, 0, 100, 50)), [piece(1, 0, 100, 10), piece(1, 20, 120, 10)]);
        copied.note(Piece { part: PartId::Values(7), ..piece(0, 0, 0, 10) });
        copied.note(Piece { part: PartId::Values(8), ..piece(0, 0, 10, 10) });
        copied.keep_values(|id| id == 7);
        let values = |id, offset| Piece { part: PartId::Values(id), ..piece(0, 0, offset, 10) };
        assert!(copied.lacks(&values(7, 0)).is_empty() && !copied.lacks(&values(8, 10)).is_empty());
    }
}
