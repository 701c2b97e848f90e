//! One source of a cursor: a block of records or a page and a place in it, whatever it comes from.
//!
//! Chunks are searched where they are. The page of a level is held while the cursor is in it. Nothing of it
//! is copied but keys, which are packed there. So values that nobody asks for are not touched. Keys are
//! unpacked some at a time: few after a seek, which may be followed by few steps only, then more. Entries of
//! the active buffer are looked at one by one, newest visible version first.

mod feed;
mod spare;

use super::Direction;
use crate::base::error::Result;
use crate::base::key::{SortKey, compare_keys};
use crate::base::sync::CountedArc;
use crate::engine::state::{ActiveBuf, Level};
use crate::format::block::Tag;
use crate::format::expiry::Expiry;
use crate::format::operand::Fold;
use crate::format::ranges::Ranges;
use crate::format::unpacked::{Record, Unpacked};
use crate::memtable::chunk::Chunk;
use feed::{ActiveFeed, LevelFeed, NOWHERE, Sought};
use std::cmp::Ordering;

/// How many records are unpacked at a time after a seek, and at most.
const BATCH_FIRST: usize = 8;
const BATCH_MAX: usize = 128;

enum Feed {
    /// Borrows from the cursor's view.
    Chunk(&'static Chunk),
    Level(LevelFeed),
    Active(ActiveFeed),
}

/// A source and where it stands.
pub(super) struct CursorSource {
    feed: Feed,
    at: usize,
    /// How many records there are in the chunk or page: between its first and its last the source just
    /// counts.
    len: usize,
    /// Some of them, among which is the one at `at`, and the place of the first.
    batch: Unpacked,
    batch_at: usize,
    /// How many the next batch is to have, and which way it goes.
    batch_len: usize,
    to: Direction,
    /// What has expired by then counts as deleted.
    now: u64,
}

impl Drop for CursorSource {
    fn drop(&mut self) {
        spare::give(std::mem::take(&mut self.batch));
    }
}

static NO_RANGES: Ranges = Ranges::none();

impl CursorSource {
    fn new(feed: Feed) -> CursorSource {
        CursorSource {
            feed,
            at: NOWHERE,
            len: 0,
            batch: spare::take(),
            batch_at: 0,
            batch_len: BATCH_FIRST,
            to: Direction::Forward,
            now: 0,
        }
    }

    pub(super) fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// # Safety
    /// The caller keeps the chunk where it is until the source has been dropped.
    pub(super) unsafe fn chunk(chunk: &Chunk) -> CursorSource {
        // SAFETY: the caller's promise. What is given out borrows from the source.
        CursorSource::new(Feed::Chunk(unsafe { &*std::ptr::from_ref(chunk) }))
    }

    /// # Safety
    /// The caller keeps the level where it is until the source has been dropped.
    pub(super) unsafe fn level(level: &Level) -> CursorSource {
        // SAFETY: the caller's promise. What is given out borrows from the source.
        CursorSource::new(Feed::Level(LevelFeed::new(unsafe { &*std::ptr::from_ref(level) })))
    }

    pub(super) fn active(owner: CountedArc<ActiveBuf>, seq: u64) -> CursorSource {
        // SAFETY: the buffer is behind an Arc that is kept in `_owner`, so it neither moves nor
        // goes while the cursor lives; entries are dropped with the feed.
        let list: &'static crate::memtable::active::Active = unsafe { &*std::ptr::from_ref(&*owner.list) };
        CursorSource::new(Feed::Active(ActiveFeed { cursor: list.cursor(), seq, entry: None, _owner: owner }))
    }

    pub(super) fn ranges(&self) -> &Ranges {
        match &self.feed {
            Feed::Chunk(chunk) => &chunk.ranges,
            Feed::Level(feed) => &feed.level.ranges,
            Feed::Active(_) => &NO_RANGES,
        }
    }

    #[inline(always)]
    pub(super) fn valid(&self) -> bool {
        self.at != NOWHERE
    }

    pub(super) fn invalidate(&mut self) {
        self.at = NOWHERE;
    }

    /// The source will be sought in, and then walked in this direction.
    pub(super) fn face(&mut self, to: Direction) {
        (self.to, self.batch_len) = (to, BATCH_FIRST);
        if let Feed::Level(feed) = &mut self.feed {
            feed.begin();
        }
    }

    /// The record. REQUIRES: `valid`, as for all that is asked of a record.
    #[inline(always)]
    fn record(&self) -> Record {
        self.batch.record(self.at - self.batch_at)
    }

    #[inline(always)]
    pub(super) fn key(&self) -> &[u8] {
        self.batch.key(self.record())
    }

    #[inline(always)]
    pub(super) fn tag(&self) -> Tag {
        self.record().tag
    }

    /// When it expires.
    pub(super) fn expiry(&self) -> Expiry {
        if self.valid() { self.batch.expiry(self.at - self.batch_at) } else { Expiry::NEVER }
    }

    /// The value, or the reference to a large one, where it stands.
    #[inline(always)]
    pub(super) fn value(&self) -> &[u8] {
        self.record().value(self.bytes())
    }

    /// Folds what is older of the key in the same buffer.
    pub(super) fn fold_versions(&self, fold: &mut Fold) -> Result<()> {
        match &self.feed {
            Feed::Active(feed) => feed.fold_versions(self.now, fold),
            Feed::Chunk(_) | Feed::Level(_) => Ok(()),
        }
    }

    /// What the records of the batch point into.
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        match &self.feed {
            Feed::Level(feed) => feed.held.as_ref().map_or(&[][..], |held| held.page().bytes()),
            Feed::Chunk(chunk) => &chunk.block.heap,
            Feed::Active(feed) => feed.entry().value,
        }
    }

    /// References of the large values of the batch that come after the record.
    pub(super) fn next_references(&self) -> impl Iterator<Item = &[u8]> {
        let (here, len) = (self.at.wrapping_sub(self.batch_at), self.batch.len());
        let next = match self.to {
            _ if here >= len => 0..0,
            Direction::Forward => here + 1..len,
            Direction::Backward => 0..here,
        };
        let back = self.to == Direction::Backward;
        let nth = move |n| if back { next.end - 1 - n } else { next.start + n };
        let records = (0..next.len()).map(move |n| self.batch.record(nth(n)));
        records.filter(|record| record.tag == Tag::Large).map(|record| record.value(self.bytes()))
    }

    /// The order of two records' keys.
    #[inline(always)]
    pub(super) fn compare(&self, other: &CursorSource) -> Ordering {
        compare_keys(self.key(), other.key())
    }

    /// How many records follow in the batch that may be given out: `within` says so of their keys, and they
    /// are no tombstones and no operands.
    #[inline(always)]
    pub(super) fn count_open(&self, within: impl Fn(&[u8]) -> bool) -> usize {
        let here = self.at - self.batch_at;
        // (One farther back is the largest number farther on.)
        let (most, one) = match self.to {
            Direction::Forward => (self.batch.len() - 1 - here, 1),
            Direction::Backward => (here, usize::MAX),
        };
        let record = |n: usize| self.batch.record(here.wrapping_add(n.wrapping_mul(one)));
        let is_within = |n| within(self.batch.key(record(n)));
        if most == 0 || !is_within(1) {
            return 0;
        }
        let mut open = most;
        if !is_within(most) {
            let (mut low, mut high) = (1, most);
            while low + 1 < high {
                let middle = low + (high - low) / 2;
                if is_within(middle) { low = middle } else { high = middle }
            }
            open = low;
        }
        let is_more = |n: &usize| matches!(record(*n).tag, Tag::Tombstone | Tag::Operand);
        (1..=open).find(is_more).map_or(open, |n| n - 1)
    }

    /// Goes to one of the records that `count_open` has counted.
    #[inline(always)]
    pub(super) fn step_open(&mut self, to: Direction) {
        match to {
            Direction::Forward => self.at += 1,
            Direction::Backward => self.at -= 1,
        }
    }

    /// Goes to place `at` of the chunk or page, which has one.
    #[inline(always)]
    fn land(&mut self, at: usize) -> Result<()> {
        self.at = at;
        if at.wrapping_sub(self.batch_at) < self.batch.len() { Ok(()) } else { self.unpack_batch() }
    }

    #[inline(never)]
    fn unpack_batch(&mut self) -> Result<()> {
        // Records that make no sense are reported when the cursor comes to them.
        if self.unpack(self.batch_len).is_err() {
            self.unpack(1)?;
        }
        self.batch_len = (self.batch_len * 2).min(BATCH_MAX);
        Ok(())
    }

    /// Unpacks the record and some after it: `n`, or as many as there are.
    fn unpack(&mut self, n: usize) -> Result<()> {
        let some = match self.to {
            Direction::Forward => self.at..self.len.min(self.at + n),
            Direction::Backward => (self.at + 1).saturating_sub(n)..self.at + 1,
        };
        self.batch.clear();
        self.batch_at = some.start;
        match &self.feed {
            Feed::Chunk(chunk) => chunk.block.unpack_some(some, self.now, &mut self.batch),
            Feed::Level(LevelFeed { held: Some(held), .. }) => {
                let unpacked = held.page().unpack_some(some, self.now, &mut self.batch);
                unpacked.map_err(|detail| held.corrupt(detail))?;
            }
            Feed::Level(_) | Feed::Active(_) => {}
        }
        Ok(())
    }

    /// The walk over the active buffer has come to a place.
    fn land_active(&mut self, at: usize) {
        (self.at, self.batch_at) = (at, 0);
        self.batch.clear();
        if let Feed::Active(ActiveFeed { entry: Some(entry), .. }) = &self.feed {
            self.batch.push_stored(entry.key, entry.tag(), entry.value, 0, self.now);
        }
    }

    /// Goes to the next record if the chunk or page has one; false if not, or if that takes more than
    /// counting.
    #[inline(always)]
    fn step_inside(&mut self, to: Direction) -> Result<bool> {
        let next = match to {
            Direction::Forward => self.at.wrapping_add(1),
            Direction::Backward => self.at.wrapping_sub(1),
        };
        // (One before the first is a very large number.)
        if next >= self.len {
            return Ok(false);
        }
        self.land(next)?;
        Ok(true)
    }

    /// Goes to the next record.
    pub(super) fn step(&mut self, to: Direction) -> Result<()> {
        if self.step_inside(to)? {
            return Ok(());
        }
        match (&mut self.feed, to) {
            (Feed::Active(feed), Direction::Forward) => {
                let at = feed.next();
                self.land_active(at);
            }
            (Feed::Active(feed), Direction::Backward) => {
                let at = feed.prev();
                self.land_active(at);
            }
            (Feed::Chunk(_), _) => self.at = NOWHERE,
            (Feed::Level(_), _) => return self.turn_page(to),
        }
        Ok(())
    }

    #[cold]
    fn turn_page(&mut self, to: Direction) -> Result<()> {
        self.at = NOWHERE;
        let Feed::Level(feed) = &mut self.feed else { return Ok(()) };
        let Some(number) = feed.held.as_ref().map(|held| held.number) else { return Ok(()) };
        feed.look_ahead(number, to);
        let run = feed.run;
        match to {
            Direction::Forward => self.load_forward(run, number + 1),
            Direction::Backward => self.load_backward(run, number),
        }
    }

    /// Goes to a place of a chunk, or nowhere.
    fn land_in_chunk(&mut self, at: usize) -> Result<()> {
        if let Feed::Chunk(chunk) = &self.feed {
            self.len = chunk.block.len();
        }
        if at < self.len {
            return self.land(at);
        }
        self.at = NOWHERE;
        Ok(())
    }

    pub(super) fn first(&mut self) -> Result<()> {
        match &mut self.feed {
            Feed::Chunk(_) => return self.land_in_chunk(0),
            Feed::Active(feed) => {
                let at = feed.first();
                self.land_active(at);
            }
            Feed::Level(_) => return self.load_forward(0, 0),
        }
        Ok(())
    }

    pub(super) fn last(&mut self) -> Result<()> {
        match &mut self.feed {
            Feed::Chunk(chunk) => {
                let last = chunk.block.len().wrapping_sub(1);
                return self.land_in_chunk(last);
            }
            Feed::Active(feed) => {
                let at = feed.last();
                self.land_active(at);
            }
            Feed::Level(feed) => {
                let runs = feed.level.runs.len();
                return self.load_backward(runs, 0);
            }
        }
        Ok(())
    }

    /// Goes to the first record at or above a key.
    pub(super) fn seek_ge(&mut self, key: &[u8]) -> Result<()> {
        match &mut self.feed {
            Feed::Chunk(chunk) => {
                let (at, _) = chunk.block.lower_bound(SortKey::new(key));
                self.land_in_chunk(at)
            }
            Feed::Active(feed) => {
                let at = feed.seek_ge(key);
                self.land_active(at);
                Ok(())
            }
            Feed::Level(_) => match self.load_around(key)? {
                Some((_, _, at)) if at < self.len => self.land(at),
                // The page after has none below the key.
                Some((run, page, _)) => self.load_forward(run, page + 1),
                None => Ok(()),
            },
        }
    }

    /// Goes to the last record below a key.
    pub(super) fn seek_lt(&mut self, key: &[u8]) -> Result<()> {
        match &mut self.feed {
            Feed::Chunk(chunk) => {
                let (at, _) = chunk.block.lower_bound(SortKey::new(key));
                self.land_in_chunk(at.wrapping_sub(1))
            }
            Feed::Active(feed) => {
                let at = feed.seek_lt(key);
                self.land_active(at);
                Ok(())
            }
            Feed::Level(_) => match self.load_around(key)? {
                Some((run, page, 0)) => self.load_backward(run, page),
                Some((_, _, at)) => self.land(at - 1),
                None => self.last(),
            },
        }
    }

    /// The first step of a seek to a key. What follows waits for memory. So a cursor takes each step in all
    /// sources before the next one. Sources that stand in memory have one step.
    pub(super) fn find_page(&mut self, key: SortKey<'_>) -> Result<()> {
        if let Feed::Level(feed) = &mut self.feed { feed.find_page(key, self.to) } else { Ok(()) }
    }

    /// The second step.
    pub(super) fn take_page(&mut self, key: SortKey<'_>) -> Result<()> {
        if let Feed::Level(feed) = &mut self.feed {
            self.at = NOWHERE;
            self.batch.clear();
            feed.take_page(key)?;
        }
        Ok(())
    }

    /// The last step in a level. Gives the run, the page, and the place in it of the first record at or above
    /// the key, or where one would be. None if there is none that way.
    fn load_around(&mut self, key: &[u8]) -> Result<Option<(usize, usize, usize)>> {
        let key = SortKey::new(key);
        if !matches!(&self.feed, Feed::Level(feed) if feed.sought.is_some()) {
            self.find_page(key)?;
            self.take_page(key)?;
        }
        let Feed::Level(feed) = &mut self.feed else { return Ok(None) };
        let Some(Sought { run, page, guess }) = feed.sought.take() else { return Ok(None) };
        if feed.level.runs[run].meta()?.pages() == 0 {
            // It has range deletes only.
            self.len = 0;
            return Ok(Some((run, 0, 0)));
        }
        let held = feed.hold(run, page)?;
        self.len = held.len();
        Ok(Some((run, page, held.lower_bound(key, guess).0)))
    }

    /// Takes hold of a page, or the next one that exists, and goes to its first record.
    fn load_forward(&mut self, from_run: usize, from_page: usize) -> Result<()> {
        self.at = NOWHERE;
        let Feed::Level(feed) = &mut self.feed else { return Ok(()) };
        let (mut run, mut page) = (from_run, from_page);
        while let Some(r) = feed.level.runs.get(run) {
            if page < r.meta()?.pages() {
                self.batch.clear();
                self.len = feed.hold(run, page)?.len();
                return self.land(0);
            }
            run += 1;
            page = 0;
        }
        Ok(())
    }

    /// Takes hold of the page before a place, and goes to its last record.
    fn load_backward(&mut self, from_run: usize, from_page: usize) -> Result<()> {
        self.at = NOWHERE;
        let Feed::Level(feed) = &mut self.feed else { return Ok(()) };
        let (mut run, mut page) = (from_run, from_page);
        while page == 0 {
            if run == 0 {
                return Ok(());
            }
            run -= 1;
            page = feed.level.runs[run].meta()?.pages();
        }
        self.batch.clear();
        self.len = feed.hold(run, page - 1)?.len();
        self.land(self.len - 1)
    }
}
