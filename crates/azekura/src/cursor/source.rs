//! One source of a cursor: a block of records or a page and a place in it, whatever it comes from.
//!
//! Chunks are searched where they are. The page of a sorted run is held while the cursor is in it: nothing of it is
//! copied but keys, which are packed there, so values that nobody asks for are not touched. Entries of the active
//! buffer are looked at one by one, newest visible version first.

use super::Direction;
use crate::base::error::Result;
use crate::base::key::{SortKey, compare_keys};
use crate::base::sync::CountedArc;
use crate::engine::state::{ActiveBuf, SortedRun, tag_of};
use crate::format::block::Tag;
use crate::format::page::Page;
use crate::format::unpacked::Unpacked;
use crate::memtable::active::{ActiveCursor, Entry};
use crate::memtable::chunk::Chunk;
use crate::memtable::ranges::Ranges;
use crate::run::HeldPage;
use std::cmp::Ordering;
use std::sync::Arc;

/// A place before the first or after the last record.
const NOWHERE: usize = usize::MAX;

enum Feed {
    Chunk(Arc<Chunk>),
    Level(LevelFeed),
    Active(ActiveFeed),
}

/// A walk over a sorted run.
struct LevelFeed {
    /// The page in which the source stands.
    held: Option<HeldPage>,
    /// In a general page: the record.
    record: Unpacked,
    /// The place among the level's runs of the one that has the page.
    run: usize,
    level: Arc<SortedRun>,
}

/// A walk over an active buffer as of a sequence number.
struct ActiveFeed {
    /// Borrows from `_owner`, which is dropped after it.
    cursor: ActiveCursor<'static>,
    seq: u64,
    entry: Option<Entry<'static>>,
    _owner: CountedArc<ActiveBuf>,
}

/// A source and where it stands.
pub(super) struct Source {
    feed: Feed,
    at: usize,
    /// How many records there are in the chunk or page: between its first and its last the source just counts.
    len: usize,
    /// The key where the source stands, if all keys of the chunk or page are stored as numbers.
    number: Option<[u8; 8]>,
}

static NO_RANGES: Ranges = Ranges::none();

impl Source {
    fn new(feed: Feed) -> Source {
        Source { feed, at: NOWHERE, len: 0, number: None }
    }

    pub(super) fn chunk(chunk: Arc<Chunk>) -> Source {
        Source::new(Feed::Chunk(chunk))
    }

    pub(super) fn level(level: Arc<SortedRun>) -> Source {
        Source::new(Feed::Level(LevelFeed { held: None, record: Unpacked::default(), run: 0, level }))
    }

    pub(super) fn active(owner: CountedArc<ActiveBuf>, seq: u64) -> Source {
        // SAFETY: the buffer is behind an Arc that is kept in `_owner`, so it neither moves nor
        // goes while the cursor lives; entries are dropped with the feed.
        let list: &'static crate::memtable::active::Active = unsafe { &*std::ptr::from_ref(&owner.list) };
        Source::new(Feed::Active(ActiveFeed { cursor: list.cursor(), seq, entry: None, _owner: owner }))
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

    /// The key of the record. REQUIRES: `valid`, as for all that is asked of a record.
    #[inline(always)]
    pub(super) fn key(&self) -> &[u8] {
        if let Some(key) = &self.number {
            return key;
        }
        match &self.feed {
            Feed::Chunk(chunk) => chunk.block.general_key(self.at),
            Feed::Level(feed) => feed.record.key(feed.record.record(0)),
            Feed::Active(feed) => feed.entry().key,
        }
    }

    /// The order of two records' keys.
    #[inline(always)]
    pub(super) fn compare(&self, other: &Source) -> Ordering {
        compare_keys(self.key(), other.key())
    }

    #[inline(always)]
    pub(super) fn tag(&self) -> Tag {
        match &self.feed {
            Feed::Chunk(chunk) => chunk.block.tag(self.at),
            Feed::Level(feed) => feed.page().map_or(Tag::Delete, |page| page.tag(self.at)),
            Feed::Active(feed) => tag_of(feed.entry().kind),
        }
    }

    /// Appends the record and those after it to `out`, which has none: `size` or as many as are in the chunk or page. Gives
    /// the place of the first, and which of them is the record.
    pub(super) fn unpack(&self, to: Direction, size: usize, out: &mut Unpacked) -> Result<(usize, usize)> {
        let some = match to {
            Direction::Forward => self.at..self.len.min(self.at + size),
            Direction::Backward => (self.at + 1).saturating_sub(size)..self.at + 1,
        };
        let from = some.start;
        match &self.feed {
            Feed::Chunk(chunk) => chunk.block.unpack_some(some, out),
            Feed::Level(LevelFeed { held: Some(held), .. }) => {
                held.page().unpack_some(some, out).map_err(|detail| held.corrupt(detail))?;
            }
            Feed::Level(_) => {}
            Feed::Active(feed) => {
                out.push(feed.entry().key, tag_of(feed.entry().kind), 0, feed.entry().value.len());
                return Ok((0, 0));
            }
        }
        Ok((from, self.at - from))
    }

    /// What the values of unpacked records are parts of.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.feed {
            Feed::Level(feed) => feed.page().map_or(&[], |page| page.bytes()),
            Feed::Chunk(chunk) => &chunk.block.heap,
            Feed::Active(feed) => feed.entry().value,
        }
    }

    /// Goes to a place to which a window has gone on.
    #[inline(always)]
    pub(super) fn land_again(&mut self, at: usize) -> Result<()> {
        if at == self.at { Ok(()) } else { self.land(at) }
    }

    /// Goes to place `at` of the chunk or page, which has one.
    #[inline(always)]
    fn land(&mut self, at: usize) -> Result<()> {
        self.at = at;
        match &mut self.feed {
            Feed::Chunk(chunk) => self.number = chunk.block.number(at),
            Feed::Level(feed) => self.number = feed.land(at)?,
            Feed::Active(_) => {}
        }
        Ok(())
    }

    /// Goes to the next record if the chunk or page has one; false if not, or if that takes more than counting.
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
            (Feed::Active(feed), Direction::Forward) => self.at = feed.next(),
            (Feed::Active(feed), Direction::Backward) => self.at = feed.prev(),
            (Feed::Chunk(_), _) => self.at = NOWHERE,
            (Feed::Level(_), _) => return self.turn_page(to),
        }
        Ok(())
    }

    #[cold]
    fn turn_page(&mut self, to: Direction) -> Result<()> {
        self.at = NOWHERE;
        let Feed::Level(LevelFeed { held: Some(held), run, .. }) = &self.feed else { return Ok(()) };
        match to {
            Direction::Forward => self.load_forward(*run, held.number + 1),
            Direction::Backward => self.load_backward(*run, held.number),
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
            Feed::Active(feed) => self.at = feed.first(),
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
            Feed::Active(feed) => self.at = feed.last(),
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
                self.at = feed.seek_ge(key);
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
                self.at = feed.seek_lt(key);
                Ok(())
            }
            Feed::Level(_) => match self.load_around(key)? {
                Some((run, page, 0)) => self.load_backward(run, page),
                Some((_, _, at)) => self.land(at - 1),
                None => self.last(),
            },
        }
    }

    /// Takes hold of the page of a level in which a key is or would be: the run, the page, and the place in it of the
    /// first record at or above the key. None if all records are below it.
    fn load_around(&mut self, key: &[u8]) -> Result<Option<(usize, usize, usize)>> {
        self.at = NOWHERE;
        let Feed::Level(feed) = &mut self.feed else { return Ok(None) };
        let run = feed.level.runs.partition_point(|r| r.info.max.as_slice() < key);
        let Some(r) = feed.level.runs.get(run) else { return Ok(None) };
        let key = SortKey::new(key);
        let number = r.meta()?.page_of(key).unwrap_or(0);
        if r.meta()?.pages() == 0 {
            // It has range deletes only.
            self.len = 0;
            return Ok(Some((run, 0, 0)));
        }
        let page = feed.hold(run, number)?;
        self.len = page.len();
        Ok(Some((run, number, page.lower_bound(key, page.guess(key)).0)))
    }

    /// Takes hold of a page, or the next one that exists, and goes to its first record.
    fn load_forward(&mut self, from_run: usize, from_page: usize) -> Result<()> {
        self.at = NOWHERE;
        let Feed::Level(feed) = &mut self.feed else { return Ok(()) };
        let (mut run, mut page) = (from_run, from_page);
        while let Some(r) = feed.level.runs.get(run) {
            if page < r.meta()?.pages() {
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
        self.len = feed.hold(run, page - 1)?.len();
        self.land(self.len - 1)
    }
}

impl LevelFeed {
    #[inline(always)]
    fn page(&self) -> Option<Page<'_>> {
        self.held.as_ref().map(HeldPage::page)
    }

    /// Takes hold of a page instead of the one before.
    fn hold(&mut self, run: usize, number: usize) -> Result<Page<'_>> {
        self.run = run;
        if self.held.as_ref().is_none_or(|held| held.number != number || !held.is_of(&self.level.runs[run])) {
            // First, so that the cache may use its frame for the next.
            self.held = None;
            self.held = Some(HeldPage::new(self.level.runs[run].clone(), number)?);
        }
        let Some(held) = &self.held else { unreachable!("it was just taken hold of") };
        Ok(held.page())
    }

    /// Makes the key of a record: as a number if all of the page are.
    #[inline(always)]
    fn land(&mut self, at: usize) -> Result<Option<[u8; 8]>> {
        let Some(held) = &self.held else { return Ok(None) };
        let page = held.page();
        if let Some(number) = page.number(at) {
            return Ok(Some(number));
        }
        self.record.clear();
        page.unpack_some(at..at + 1, &mut self.record).map_err(|detail| held.corrupt(detail))?;
        Ok(None)
    }
}

impl ActiveFeed {
    #[inline(always)]
    fn entry(&self) -> Entry<'_> {
        match self.entry {
            Some(entry) => entry,
            None => unreachable!("only called where the source is valid"),
        }
    }

    /// From here on forward, the newest visible version of the first key that has one.
    fn settle_forward(&mut self) -> usize {
        while let Some(entry) = self.cursor.entry() {
            if entry.seq <= self.seq {
                self.entry = Some(entry);
                return 0;
            }
            self.cursor.next();
        }
        self.entry = None;
        NOWHERE
    }

    /// From here on backward, likewise.
    fn settle_backward(&mut self) -> usize {
        while let Some(found) = self.cursor.entry() {
            // Versions of a key stand newest first, so the oldest is met first.
            let mut best = (found.seq <= self.seq).then_some(found);
            let mut newest = self.cursor.clone();
            self.cursor.prev();
            while let Some(entry) = self.cursor.entry().filter(|e| e.key == found.key) {
                if entry.seq <= self.seq {
                    best = Some(entry);
                    newest = self.cursor.clone();
                }
                self.cursor.prev();
            }
            if best.is_some() {
                self.entry = best;
                self.cursor = newest;
                return 0;
            }
        }
        self.entry = None;
        NOWHERE
    }

    fn first(&mut self) -> usize {
        self.cursor.seek_first();
        self.settle_forward()
    }

    fn last(&mut self) -> usize {
        self.cursor.seek_last();
        self.settle_backward()
    }

    fn seek_ge(&mut self, key: &[u8]) -> usize {
        self.cursor.seek_ge(key);
        self.settle_forward()
    }

    fn seek_lt(&mut self, key: &[u8]) -> usize {
        self.cursor.seek_lt(key);
        self.settle_backward()
    }

    fn next(&mut self) -> usize {
        let Some(here) = self.entry else { return NOWHERE };
        while self.cursor.entry().is_some_and(|e| e.key == here.key) {
            self.cursor.next();
        }
        self.settle_forward()
    }

    fn prev(&mut self) -> usize {
        let Some(here) = self.entry else { return NOWHERE };
        self.cursor.seek_lt(here.key);
        self.settle_backward()
    }
}
