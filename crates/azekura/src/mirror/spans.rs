//! Sets of places in a file.

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
}
