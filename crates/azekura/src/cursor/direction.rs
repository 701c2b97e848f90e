//! The two ways in which a cursor moves, and where it stands.

use std::cmp::Ordering;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

impl Direction {
    /// How the key of a record compares with that of one that is farther this way.
    #[inline(always)]
    pub(super) fn order(self) -> Ordering {
        match self {
            Direction::Forward => Ordering::Less,
            Direction::Backward => Ordering::Greater,
        }
    }

    /// The other way.
    pub(super) fn reverse(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }

    /// Where a cursor stands that has seen all records this way.
    pub(super) fn end(self) -> CursorPosition {
        match self {
            Direction::Forward => CursorPosition::End,
            Direction::Backward => CursorPosition::Start,
        }
    }
}

/// Where the cursor stands between records.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum CursorPosition {
    /// At the record given out last, where the first source stands.
    Given,
    /// Before the first record.
    Start,
    /// After the last record.
    End,
    /// At `at`: the next record forward is the first at or above it, backward the last below.
    Before,
    /// Just after the record with key `at`.
    After,
}
