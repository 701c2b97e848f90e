//! The bounds within which a cursor moves.

use super::Direction;
use super::source::CursorSource;
use crate::base::error::Result;
use crate::format::ranges::Range;
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

    pub(super) fn to_start(&self, source: &mut CursorSource) -> Result<()> {
        if self.start.is_empty() { source.first() } else { source.seek_ge(&self.start) }
    }

    pub(super) fn to_end(&self, source: &mut CursorSource) -> Result<()> {
        match &self.end {
            Some(end) => source.seek_lt(end),
            None => source.last(),
        }
    }

    pub(super) fn to_before_start(&self, source: &mut CursorSource) -> Result<()> {
        source.invalidate();
        Ok(())
    }

    /// A place from which to go forward, not before the start.
    pub(super) fn raise<'a>(&'a self, at: &'a [u8]) -> &'a [u8] {
        at.max(self.start.as_slice())
    }

    /// Goes to the last record below a place and inside the limits.
    pub(super) fn seek_lt(&self, source: &mut CursorSource, at: &[u8]) -> Result<()> {
        match &self.end {
            Some(end) if end.as_slice() < at => source.seek_lt(end),
            _ => source.seek_lt(at),
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
