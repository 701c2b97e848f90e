//! The bounds within which a cursor moves.

use super::source::CursorSource;
use super::{CursorPosition, Direction};
use crate::base::error::Result;
use crate::format::ranges::Range;
use std::borrow::Cow;
use std::ops::Bound;

/// From a sort key (inclusive) to another (exclusive).
#[derive(Clone)]
pub(crate) struct Limits {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl Limits {
    pub(crate) fn none() -> Limits {
        Limits { start: Vec::new(), end: None }
    }

    pub(crate) fn range(start: Bound<&[u8]>, end: Bound<&[u8]>) -> Limits {
        let Range { start, end } = Range::between(start, end);
        Limits { start, end }
    }

    pub(crate) fn prefix(prefix: &[u8]) -> Limits {
        Limits { start: prefix.to_vec(), end: after_prefix(prefix) }
    }

    pub(crate) fn as_range(&self) -> Range {
        Range { start: self.start.clone(), end: self.end.clone() }
    }

    /// Whether a key is inside, if it was reached from inside.
    #[inline(always)]
    pub(super) fn allows(&self, to: Direction, key: &[u8]) -> bool {
        match to {
            Direction::Forward => self.end.as_ref().is_none_or(|e| key < e.as_slice()),
            // A comparison with an empty key is slow. An empty vector points to no memory, and the
            // processor's masked loads are slow there.
            Direction::Backward => self.start.is_empty() || key >= self.start.as_slice(),
        }
    }

    /// Where the sources begin that go from a place in a direction. `at` is the place's key.
    pub(super) fn goal<'a>(&'a self, place: CursorPosition, to: Direction, at: &'a [u8]) -> Goal<'a> {
        let after = || Cow::Owned([at, &[0]].concat());
        match (place, to) {
            (CursorPosition::Start | CursorPosition::Given, Direction::Forward) => self.begin(),
            (CursorPosition::End, Direction::Backward) => self.finish(),
            (CursorPosition::Start | CursorPosition::Given, Direction::Backward)
            | (CursorPosition::End, Direction::Forward) => Goal::Nowhere,
            (CursorPosition::Before, Direction::Forward) => {
                Goal::AtOrAbove(Cow::Borrowed(at.max(self.start.as_slice())))
            }
            (CursorPosition::After, Direction::Forward) => Goal::AtOrAbove(after()),
            (CursorPosition::Before, Direction::Backward) => self.below(Cow::Borrowed(at)),
            (CursorPosition::After, Direction::Backward) => self.below(after()),
        }
    }

    fn begin(&self) -> Goal<'_> {
        if self.start.is_empty() { Goal::First } else { Goal::AtOrAbove(Cow::Borrowed(&self.start)) }
    }

    fn finish(&self) -> Goal<'_> {
        self.end.as_ref().map_or(Goal::Last, |end| Goal::Below(Cow::Borrowed(end)))
    }

    /// Below a place, and inside the limits.
    fn below<'a>(&'a self, at: Cow<'a, [u8]>) -> Goal<'a> {
        match &self.end {
            Some(end) if end.as_slice() < &*at => Goal::Below(Cow::Borrowed(end)),
            _ => Goal::Below(at),
        }
    }
}

/// Where sources go.
pub(super) enum Goal<'a> {
    Nowhere,
    First,
    Last,
    /// To the first record at or above a key.
    AtOrAbove(Cow<'a, [u8]>),
    /// To the last record below a key.
    Below(Cow<'a, [u8]>),
}

impl Goal<'_> {
    /// Its key, if it has one.
    pub(super) fn key(&self) -> Option<&[u8]> {
        match self {
            Goal::AtOrAbove(key) | Goal::Below(key) => Some(key),
            Goal::Nowhere | Goal::First | Goal::Last => None,
        }
    }

    /// Sends a source there.
    pub(super) fn send(&self, source: &mut CursorSource) -> Result<()> {
        match self {
            Goal::Nowhere => {
                source.invalidate();
                Ok(())
            }
            Goal::First => source.first(),
            Goal::Last => source.last(),
            Goal::AtOrAbove(key) => source.seek_ge(key),
            Goal::Below(key) => source.seek_lt(key),
        }
    }
}

impl From<Range> for Limits {
    fn from(Range { start, end }: Range) -> Limits {
        Limits { start, end }
    }
}

/// The first key above all that begin with `prefix`; none if there is no such key.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut end = prefix[..=keep].to_vec();
    end[keep] += 1;
    Some(end)
}
