//! The records that a cursor gives out one after the other without looking at its sources: those of one source that are
//! nearer than the next source's record, inside the limits, and not deleted.
//!
//! A window is a stretch of one page or chunk. It begins small, for a seek may be followed by a few records only,
//! and doubles as long as it is used up.

use super::Direction;
use super::source::Source;
use crate::base::error::Result;
use crate::base::key::Kind;
use crate::format::block::Tag;
use crate::format::unpacked::{Record, Unpacked};
use std::ops::Range;

/// Records of the first window after a seek, and of the largest.
const FIRST: usize = 8;
const LARGEST: usize = 128;

/// See the module.
pub(super) struct Window {
    unpacked: Unpacked,
    /// Which of the unpacked records may be given out, and which was given out last.
    open: Range<usize>,
    given: usize,
    /// The place in its page or chunk of the first unpacked record.
    from: usize,
    /// How it is to be walked; none if it is not to be.
    direction: Option<Direction>,
    /// How many records the next one is to have.
    size: usize,
}

impl Window {
    pub(super) fn new() -> Window {
        let unpacked = Unpacked::default();
        Window { unpacked, open: 0..0, given: 0, from: 0, direction: None, size: FIRST }
    }

    /// Forgets what it holds.
    pub(super) fn close(&mut self) {
        self.direction = None;
        self.size = FIRST;
    }

    /// Goes to the next record; false if that is not in the window.
    #[inline(always)]
    pub(super) fn step(&mut self, to: Direction) -> bool {
        let next = match to {
            Direction::Forward => self.given + 1,
            Direction::Backward => self.given.wrapping_sub(1),
        };
        // (One before the first is a very large number.)
        let inside = self.direction == Some(to) && next >= self.open.start && next < self.open.end;
        if inside {
            self.given = next;
        }
        inside
    }

    /// The record given out last and its key.
    #[inline(always)]
    pub(super) fn record(&self) -> (&[u8], Record) {
        let record = self.unpacked.record(self.given);
        (self.unpacked.key(record), record)
    }

    /// The place in its page or chunk of the record given out last.
    pub(super) fn place(&self) -> usize {
        self.from + self.given
    }

    /// Fills it from the record at which a source stands, which is given out. Others are there if `within` says so of
    /// their sort keys, and before it of all those nearer.
    pub(super) fn fill(
        &mut self,
        source: &Source,
        to: Direction,
        kind: Kind,
        seed: u64,
        within: impl Fn(&[u8]) -> bool,
    ) -> Result<()> {
        self.direction = None;
        let wanted = self.size;
        let more = self.unpack(source, to, wanted).and_then(|()| {
            self.cut(to, within);
            self.unpacked.change_keys(self.open.clone(), |key| kind.user_part(key, seed))
        });
        if more.is_err() {
            // Records that make no sense are the business of whoever comes to them.
            self.unpack(source, to, 1)?;
            self.unpacked.change_keys(0..1, |key| kind.user_part(key, seed))?;
        }
        let used = self.open.len();
        self.size = if used < self.unpacked.len() { used * 2 } else { wanted * 2 }.min(LARGEST);
        self.direction = Some(to);
        Ok(())
    }

    fn unpack(&mut self, source: &Source, to: Direction, size: usize) -> Result<()> {
        self.unpacked.clear();
        let (from, given) = source.unpack(to, size, &mut self.unpacked)?;
        (self.from, self.given, self.open) = (from, given, 0..self.unpacked.len());
        Ok(())
    }

    /// Leaves out what is not to be given out, and all that is farther.
    fn cut(&mut self, to: Direction, within: impl Fn(&[u8]) -> bool) {
        let is_within = |i: usize| within(self.unpacked.key(self.unpacked.record(i)));
        let is_deleted = |i: &usize| self.unpacked.record(*i).tag == Tag::Delete;
        let (given, last) = (self.given, self.unpacked.len() - 1);
        match to {
            Direction::Forward => {
                let mut end = last + 1;
                if last > given && !is_within(last) {
                    end = bisect(given + 1, last, is_within);
                }
                end = (given + 1..end).find(is_deleted).unwrap_or(end);
                self.open = given..end;
            }
            Direction::Backward => {
                let mut start = 0;
                if given > 0 && !is_within(0) {
                    start = bisect(1, given, |i| !is_within(i));
                }
                start = (start..given).rev().find(is_deleted).map_or(start, |i| i + 1);
                self.open = start..given + 1;
            }
        }
    }
}

/// The first of some numbers of which `f` does not hold; it holds of all before and of none behind.
fn bisect(from: usize, to: usize, f: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (from, to);
    while low < high {
        let middle = low + (high - low) / 2;
        if f(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
