//! One source of a cursor: a block of records and a place in it, whatever it comes from.
//!
//! Chunks are searched where they are; pages of a sorted run are decoded as the cursor comes to
//! them; entries of the active buffer are looked at one by one, newest visible version first.

use super::Direction;
use crate::base::error::Result;
use crate::base::key::SortKey;
use crate::base::sync::CountedArc;
use crate::engine::state::{ActiveBuf, SortedRun, tag_of};
use crate::format::block::{Block, Tag};
use crate::memtable::active::{ActiveCursor, Entry};
use crate::memtable::chunk::Chunk;
use crate::memtable::ranges::Ranges;
use std::cmp::Ordering;
use std::sync::Arc;

/// A place before the first or after the last record.
const NOWHERE: usize = usize::MAX;

enum Feed {
    Chunk(Arc<Chunk>),
    Level { level: Arc<SortedRun>, run: usize, page: usize, block: Block },
    Active(ActiveFeed),
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
}

static NO_RANGES: Ranges = Ranges::none();

impl Source {
    pub(super) fn chunk(chunk: Arc<Chunk>) -> Source {
        Source { feed: Feed::Chunk(chunk), at: NOWHERE }
    }

    pub(super) fn level(level: Arc<SortedRun>) -> Source {
        let feed = Feed::Level { level, run: 0, page: 0, block: Block::new(None) };
        Source { feed, at: NOWHERE }
    }

    pub(super) fn active(owner: CountedArc<ActiveBuf>, seq: u64) -> Source {
        // SAFETY: the buffer is behind an Arc that is kept in `_owner`, so it neither moves nor
        // goes while the cursor lives; entries are dropped with the feed.
        let list: &'static crate::memtable::active::Active = unsafe { &*std::ptr::from_ref(&owner.list) };
        let feed = ActiveFeed { cursor: list.cursor(), seq, entry: None, _owner: owner };
        Source { feed: Feed::Active(feed), at: NOWHERE }
    }

    pub(super) fn ranges(&self) -> &Ranges {
        match &self.feed {
            Feed::Chunk(chunk) => &chunk.ranges,
            Feed::Level { level, .. } => &level.ranges,
            Feed::Active(_) => &NO_RANGES,
        }
    }

    #[inline(always)]
    fn block(&self) -> Option<&Block> {
        match &self.feed {
            Feed::Chunk(chunk) => Some(&chunk.block),
            Feed::Level { block, .. } => Some(block),
            Feed::Active(_) => None,
        }
    }

    #[inline(always)]
    pub(super) fn valid(&self) -> bool {
        self.at != NOWHERE
    }

    pub(super) fn invalidate(&mut self) {
        self.at = NOWHERE;
    }

    #[inline(always)]
    fn entry(&self) -> Entry<'_> {
        match &self.feed {
            Feed::Active(ActiveFeed { entry: Some(entry), .. }) => *entry,
            _ => unreachable!("only called where the source is valid"),
        }
    }

    #[inline(always)]
    fn key<'a>(&'a self, tmp: &'a mut [u8; 8]) -> &'a [u8] {
        match self.block() {
            Some(block) => block.key(self.at, tmp),
            None => self.entry().key,
        }
    }

    #[inline(always)]
    pub(super) fn copy_key(&self, out: &mut Vec<u8>) {
        let mut tmp = [0; 8];
        let key = self.key(&mut tmp);
        out.clear();
        out.extend_from_slice(key);
    }

    /// The key as a number, if all keys of the block have eight bytes.
    #[inline(always)]
    fn head(&self) -> Option<u64> {
        let block = self.block().filter(|b| b.fixed.is_some())?;
        Some(block.heads[self.at])
    }

    #[inline(always)]
    pub(super) fn key_is(&self, key: &[u8]) -> bool {
        if let Some(head) = self.head() {
            return key.as_array::<8>().is_some_and(|k| u64::from_be_bytes(*k) == head);
        }
        let mut tmp = [0; 8];
        self.key(&mut tmp) == key
    }

    #[inline(always)]
    pub(super) fn compare(&self, other: &Source) -> Ordering {
        if let (Some(a), Some(b)) = (self.head(), other.head()) {
            return a.cmp(&b);
        }
        let (mut a, mut b) = ([0; 8], [0; 8]);
        self.key(&mut a).cmp(other.key(&mut b))
    }

    #[inline(always)]
    pub(super) fn tag(&self) -> Tag {
        match self.block() {
            Some(block) => block.tag(self.at),
            None => tag_of(self.entry().kind),
        }
    }

    #[inline(always)]
    pub(super) fn value(&self) -> &[u8] {
        match self.block() {
            Some(block) => block.value(self.at),
            None => self.entry().value,
        }
    }

    #[inline(always)]
    pub(super) fn step(&mut self, to: Direction) -> Result<()> {
        match to {
            Direction::Forward => self.next(),
            Direction::Backward => self.prev(),
        }
    }

    fn next(&mut self) -> Result<()> {
        if let Feed::Active(feed) = &mut self.feed {
            self.at = feed.next();
            return Ok(());
        }
        if self.at != NOWHERE && self.at + 1 < self.block().map_or(0, Block::len) {
            self.at += 1;
            return Ok(());
        }
        match self.position() {
            Some((run, page)) if self.at != NOWHERE => self.load_forward(run, page + 1),
            _ => {
                self.at = NOWHERE;
                Ok(())
            }
        }
    }

    fn prev(&mut self) -> Result<()> {
        if let Feed::Active(feed) = &mut self.feed {
            self.at = feed.prev();
            return Ok(());
        }
        if self.at != NOWHERE && self.at > 0 {
            self.at -= 1;
            return Ok(());
        }
        match self.position() {
            Some((run, page)) if self.at != NOWHERE => self.load_backward(run, page),
            _ => {
                self.at = NOWHERE;
                Ok(())
            }
        }
    }

    /// The run and page of a level.
    fn position(&self) -> Option<(usize, usize)> {
        match &self.feed {
            Feed::Level { run, page, .. } => Some((*run, *page)),
            _ => None,
        }
    }

    pub(super) fn first(&mut self) -> Result<()> {
        match &mut self.feed {
            Feed::Chunk(chunk) => self.at = if chunk.block.is_empty() { NOWHERE } else { 0 },
            Feed::Active(feed) => self.at = feed.first(),
            Feed::Level { .. } => return self.load_forward(0, 0),
        }
        Ok(())
    }

    pub(super) fn last(&mut self) -> Result<()> {
        match &mut self.feed {
            Feed::Chunk(chunk) => self.at = chunk.block.len().checked_sub(1).unwrap_or(NOWHERE),
            Feed::Active(feed) => self.at = feed.last(),
            Feed::Level { level, .. } => {
                let runs = level.runs.len();
                return self.load_backward(runs, 0);
            }
        }
        Ok(())
    }

    /// Goes to the first record at or above a key.
    pub(super) fn seek_ge(&mut self, key: &[u8]) -> Result<()> {
        match &mut self.feed {
            Feed::Chunk(chunk) => {
                let (i, _) = chunk.block.lower_bound(SortKey::new(key));
                self.at = if i < chunk.block.len() { i } else { NOWHERE };
                Ok(())
            }
            Feed::Active(feed) => {
                self.at = feed.seek_ge(key);
                Ok(())
            }
            Feed::Level { level, .. } => {
                let run = level.runs.partition_point(|r| r.info.max.as_slice() < key);
                let Some(r) = level.runs.get(run) else {
                    self.at = NOWHERE;
                    return Ok(());
                };
                let page = r.meta()?.page_of(SortKey::new(key)).unwrap_or(0);
                self.load_forward(run, page)?;
                self.skip_below(key)
            }
        }
    }

    /// In the page just loaded, passes records below a key; the page after has none.
    fn skip_below(&mut self, key: &[u8]) -> Result<()> {
        let Some(block) = self.block() else { return Ok(()) };
        if self.at == NOWHERE {
            return Ok(());
        }
        let i = lower_bound(block, key);
        if i < block.len() {
            self.at = i;
            return Ok(());
        }
        match self.position() {
            Some((run, page)) => self.load_forward(run, page + 1),
            None => Ok(()),
        }
    }

    /// Goes to the last record below a key.
    pub(super) fn seek_lt(&mut self, key: &[u8]) -> Result<()> {
        match &mut self.feed {
            Feed::Chunk(chunk) => {
                let (i, _) = chunk.block.lower_bound(SortKey::new(key));
                self.at = i.checked_sub(1).unwrap_or(NOWHERE);
                Ok(())
            }
            Feed::Active(feed) => {
                self.at = feed.seek_lt(key);
                Ok(())
            }
            Feed::Level { .. } => {
                self.seek_ge(key)?;
                if self.valid() { self.prev() } else { self.last() }
            }
        }
    }

    /// Decodes a page, or the next one that exists, and goes to its first record.
    fn load_forward(&mut self, from_run: usize, from_page: usize) -> Result<()> {
        self.at = NOWHERE;
        let Feed::Level { level, run, page, block } = &mut self.feed else { return Ok(()) };
        (*run, *page) = (from_run, from_page);
        while let Some(r) = level.runs.get(*run) {
            if *page < r.meta()?.pages() {
                decode(r, *page, block)?;
                self.at = 0;
                return Ok(());
            }
            *run += 1;
            *page = 0;
        }
        Ok(())
    }

    /// Decodes the page before a place, and goes to its last record.
    fn load_backward(&mut self, from_run: usize, from_page: usize) -> Result<()> {
        self.at = NOWHERE;
        let Feed::Level { level, run, page, block } = &mut self.feed else { return Ok(()) };
        (*run, *page) = (from_run, from_page);
        while *page == 0 {
            if *run == 0 {
                return Ok(());
            }
            *run -= 1;
            *page = level.runs[*run].meta()?.pages();
        }
        *page -= 1;
        decode(&level.runs[*run], *page, block)?;
        self.at = block.len() - 1;
        Ok(())
    }
}

/// Records of a decoded page are not indexed, so this is a plain bisection.
fn lower_bound(block: &Block, key: &[u8]) -> usize {
    let (mut low, mut high) = (0, block.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match block.compare(middle, SortKey::new(key)) {
            Ordering::Less => low = middle + 1,
            _ => high = middle,
        }
    }
    low
}

fn decode(run: &crate::run::Run, page: usize, block: &mut Block) -> Result<()> {
    let hold = run.page(page)?;
    hold.page().decode(block).map_err(|detail| run.corrupt(page, detail))
}

impl ActiveFeed {
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
