//! What of runs and value segments stands where in a mirror.
//!
//! A run's id and a place in the run say which bytes these are: an id is never given again, and moving a run
//! within the file changes nothing in it. So what the source has moved can be taken from where the mirror has
//! it (`stretches`). A value segment's number is given again when the segment is gone and the writer was
//! opened anew. So of those only that is believed which stands where the newest state has it (`keep_values`).

use crate::format::point::PartId;
use std::collections::{BTreeMap, BTreeSet};

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

    /// The part of it from a byte on, of so many bytes at most.
    pub(super) fn part_at(&self, from: u64, bytes: u64) -> Piece {
        let from = from.min(self.bytes);
        Piece { at: self.at + from, offset: self.offset + from, bytes: bytes.min(self.bytes - from), ..*self }
    }

    /// The part of it between two places of the file.
    fn between(&self, from: u64, to: u64) -> Piece {
        Piece { at: self.at + (from - self.offset), offset: from, bytes: to - from, ..*self }
    }
}

/// A piece that stands in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) piece: Piece,
    /// The digest of its bytes, if it was written since the mirror was opened, and all of it is there.
    pub(super) digest: Option<u128>,
}

/// A part of what a mirror lacks, and where else it has these bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) piece: Piece,
    /// It may have more than these.
    pub(super) elsewhere: Option<Standing>,
}

/// What of runs and value segments stands where.
#[derive(Default)]
pub(super) struct Copied {
    places: BTreeMap<u64, Standing>,
    /// The same by their parts: the part, where the piece begins in it, and the place.
    parts: BTreeSet<(PartId, u64, u64)>,
    /// No piece is longer.
    longest: u64,
}

impl Copied {
    fn insert(&mut self, piece: Piece, digest: Option<u128>) {
        self.parts.insert((piece.part, piece.at, piece.offset));
        self.places.insert(piece.offset, Standing { piece, digest });
        self.longest = self.longest.max(piece.bytes);
    }

    fn remove(&mut self, piece: Piece) {
        self.parts.remove(&(piece.part, piece.at, piece.offset));
        self.places.remove(&piece.offset);
    }

    /// Some other bytes have come to a place, or are about to.
    pub(super) fn forget(&mut self, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes);
        let last = |copied: &Copied| {
            let there = copied.places.range(..end).next_back();
            there.map(|(_, there)| there.piece).filter(|piece| piece.end() > offset)
        };
        while let Some(piece) = last(self) {
            self.remove(piece);
            if piece.offset < offset {
                self.insert(piece.between(piece.offset, offset), None);
            }
            if end < piece.end() {
                self.insert(piece.between(end, piece.end()), None);
            }
        }
    }

    /// A piece stands in its place now.
    pub(super) fn note(&mut self, piece: Piece, digest: Option<u128>) {
        self.forget(piece.offset, piece.bytes);
        self.insert(piece, digest);
    }

    /// Whether a piece still stands where it was seen.
    pub(super) fn has(&self, there: &Standing) -> bool {
        self.places.get(&there.piece.offset) == Some(there)
    }

    /// What of a piece does not stand in its place.
    pub(super) fn lacks(&self, piece: &Piece) -> Vec<Piece> {
        let mut lacking = Vec::new();
        let mut at = piece.offset;
        let first = self.places.range(..=at).next_back().map_or(at, |(&start, _)| start);
        for there in self.places.range(first..piece.end()).map(|(_, there)| &there.piece) {
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

    /// The stretches of a piece that lacks: each stands elsewhere, or nowhere.
    pub(super) fn stretches(&self, piece: &Piece) -> Vec<Stretch> {
        let place_of = |at: u64| piece.offset + (at - piece.at);
        let (mut at, end) = (piece.at, piece.at + piece.bytes);
        let (mut stretches, first) = (Vec::new(), at.saturating_sub(self.longest));
        for (.., offset) in self.parts.range((piece.part, first, 0)..(piece.part, end, 0)) {
            let Some(there) = self.places.get(offset) else { continue };
            let (from, to) = (there.piece.at.max(at), (there.piece.at + there.piece.bytes).min(end));
            if from >= to {
                continue;
            }
            if at < from {
                let piece = piece.between(place_of(at), place_of(from));
                stretches.push(Stretch { piece, elsewhere: None });
            }
            let piece = piece.between(place_of(from), place_of(to));
            stretches.push(Stretch { piece, elsewhere: Some(*there) });
            at = to;
        }
        if at < end {
            stretches.push(Stretch { piece: piece.between(place_of(at), piece.end()), elsewhere: None });
        }
        stretches
    }

    /// Forgets pieces of value segments of which it is not sure that they are what they were.
    pub(super) fn keep_values(&mut self, is_sure: impl Fn(u32, &Piece) -> bool) {
        let is_kept = |piece: &Piece| match piece.part {
            PartId::Run(_) | PartId::Log(_) => true,
            PartId::Values(id) => is_sure(id, piece),
        };
        self.places.retain(|_, there| is_kept(&there.piece));
        self.parts.retain(|(.., offset)| self.places.contains_key(offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(id: u64, at: u64, offset: u64, bytes: u64) -> Piece {
        Piece { part: PartId::Run(id), at, offset, bytes }
    }

    #[test]
    fn what_stands_in_its_place_is_not_lacking() {
        let mut copied = Copied::default();
        assert_eq!(copied.lacks(&piece(1, 0, 100, 50)), [piece(1, 0, 100, 50)]);
        copied.note(piece(1, 0, 100, 50), None);
        assert_eq!(copied.lacks(&piece(1, 0, 100, 50)), []);
        assert_eq!(copied.lacks(&piece(1, 10, 110, 50)), [piece(1, 50, 150, 10)]);
        assert_eq!(copied.lacks(&piece(1, 0, 110, 50)), [piece(1, 0, 110, 50)], "elsewhere in the run");
        assert_eq!(copied.lacks(&piece(2, 0, 100, 50)), [piece(2, 0, 100, 50)]);
        copied.note(piece(2, 0, 120, 10), None);
        assert_eq!(copied.lacks(&piece(1, 0, 100, 50)), [piece(1, 20, 120, 10)]);
        copied.forget(90, 20);
        assert_eq!(copied.lacks(&piece(1, 0, 100, 50)), [piece(1, 0, 100, 10), piece(1, 20, 120, 10)]);
        copied.note(Piece { part: PartId::Values(7), ..piece(0, 0, 0, 10) }, None);
        copied.note(Piece { part: PartId::Values(8), ..piece(0, 0, 10, 10) }, None);
        copied.keep_values(|id, _| id == 7);
        let values = |id, offset| Piece { part: PartId::Values(id), ..piece(0, 0, offset, 10) };
        assert!(copied.lacks(&values(7, 0)).is_empty() && !copied.lacks(&values(8, 10)).is_empty());
    }

    #[test]
    fn what_was_moved_is_found_where_it_was() {
        let mut copied = Copied::default();
        let (first, second) = (piece(1, 0, 1000, 50), piece(1, 50, 500, 50));
        copied.note(first, Some(7));
        copied.note(second, Some(8));
        copied.note(piece(2, 0, 2000, 50), Some(9));
        let found = |copied: &Copied, wanted: Piece| {
            let stretches = copied.stretches(&wanted);
            let of = |s: &Stretch| (s.piece.at, s.piece.offset, s.piece.bytes, s.elsewhere);
            stretches.iter().map(of).collect::<Vec<_>>()
        };
        let there = |piece, digest| Some(Standing { piece, digest });
        assert_eq!(
            found(&copied, piece(1, 30, 90, 100)),
            [
                (30, 90, 20, there(first, Some(7))),
                (50, 110, 50, there(second, Some(8))),
                (100, 160, 30, None)
            ]
        );
        assert_eq!(found(&copied, piece(3, 0, 90, 9)), [(0, 90, 9, None)]);
        // A part of it is something else now, and of the rest there is no digest.
        copied.forget(520, 10);
        assert!(!copied.has(&Standing { piece: second, digest: Some(8) }));
        assert_eq!(
            found(&copied, piece(1, 60, 90, 30)),
            [
                (60, 90, 10, there(piece(1, 50, 500, 20), None)),
                (70, 100, 10, None),
                (80, 110, 10, there(piece(1, 80, 530, 20), None))
            ]
        );
        // It stands in both places, and then no more in the first.
        copied.note(piece(1, 0, 100, 50), Some(7));
        copied.forget(1000, 50);
        assert_eq!(found(&copied, piece(1, 0, 0, 50)), [(0, 0, 50, there(piece(1, 0, 100, 50), Some(7)))]);
        copied.keep_values(|_, _| false);
        assert_eq!(copied.places.len(), copied.parts.len());
    }
}
