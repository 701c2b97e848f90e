//! Where a source takes its records from: the pages of a level, or the entries of an active buffer.

use crate::base::error::Result;
use crate::base::key::SortKey;
use crate::base::sync::CountedArc;
use crate::cursor::Direction;
use crate::engine::state::{ActiveBuf, Level};
use crate::format::expiry::Content;
use crate::format::operand::Fold;
use crate::format::page::Page;
use crate::memtable::active::{ActiveCursor, Entry};
use crate::run::{HeldPage, Run};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A place before the first or after the last record.
pub(super) const NOWHERE: usize = usize::MAX;

/// If the records of a page take longer to walk, the walk waits for the disk, or its caller is slow.
const WAITED: Duration = Duration::from_micros(20);
/// How many bytes of pages the system is asked for ahead of such a walk.
const AHEAD_BYTES: usize = 1 << 20;

/// A walk over a level.
pub(super) struct LevelFeed {
    /// When the walk came to the page.
    pub(super) since: Option<Instant>,
    /// The pages that the system was asked for: those next to the walk are not asked for again.
    pub(super) asked: Range<usize>,
    /// The page in which the source stands.
    pub(super) held: Option<HeldPage<&'static Run>>,
    /// The place among the level's runs of the one that has the page.
    pub(super) run: usize,
    /// How far a seek has come.
    pub(super) sought: Option<Sought>,
    /// Borrows from the cursor's view.
    pub(super) level: &'static Level,
}

/// Where a key is or would be: in which page of which run, and about where in the page, once that is held.
#[derive(Clone, Copy)]
pub(super) struct Sought {
    pub(super) run: usize,
    pub(super) page: usize,
    pub(super) guess: usize,
}

/// A walk over an active buffer as of a sequence number.
pub(super) struct ActiveFeed {
    /// Borrows from `_owner`, which is dropped after it.
    pub(super) cursor: ActiveCursor<'static>,
    pub(super) seq: u64,
    pub(super) entry: Option<Entry<'static>>,
    pub(super) _owner: CountedArc<ActiveBuf>,
}

impl LevelFeed {
    pub(super) fn new(level: &'static Level) -> LevelFeed {
        LevelFeed { since: None, asked: 0..0, held: None, run: 0, sought: None, level }
    }

    /// A walk begins, after a seek.
    pub(super) fn begin(&mut self) {
        (self.since, self.asked, self.sought) = (None, 0..0, None);
    }

    /// The first step of a seek: finds the page by the fence, and asks the processor for its guide. A walk
    /// forward does not touch a partition that ends below the key.
    pub(super) fn find_page(&mut self, key: SortKey<'_>, to: Direction) -> Result<()> {
        let mut run = self.level.place_for(key);
        let ends_below = |r: &Arc<Run>| r.info.max.as_slice() < key.bytes;
        if to == Direction::Forward && self.level.runs.get(run).is_some_and(ends_below) {
            run += 1;
        }
        let Some(r) = self.level.runs.get(run) else { return Ok(()) };
        let meta = r.meta()?;
        let page = meta.page_of(key).unwrap_or(0);
        if page < meta.pages() {
            r.prefetch_page(page);
        }
        self.sought = Some(Sought { run, page, guess: 0 });
        Ok(())
    }

    /// The second step: takes hold of the page, and asks the processor for the lines where the key likely is.
    pub(super) fn take_page(&mut self, key: SortKey<'_>) -> Result<()> {
        let Some(Sought { run, page, .. }) = self.sought else { return Ok(()) };
        if page < self.level.runs[run].meta()?.pages() {
            self.hold(run, page)?;
            let guess = self.held.as_ref().map_or(0, |held| held.prefetch_key(key));
            self.sought = Some(Sought { run, page, guess });
        }
        Ok(())
    }

    /// The walk leaves a page of the run: if it was long in it, the system is asked for those that come next.
    pub(super) fn look_ahead(&mut self, number: usize, to: Direction) {
        let now = Instant::now();
        let is_slow = self.since.replace(now).is_some_and(|since| now - since > WAITED);
        if !is_slow {
            return;
        }
        let run = &self.level.runs[self.run];
        let pages = (AHEAD_BYTES / run.info.page_bytes).max(2);
        let next = match to {
            Direction::Forward => number + 1..number + 1 + pages,
            Direction::Backward => number.saturating_sub(pages)..number,
        };
        // Half of it at a time.
        let middle = next.start + next.len() / 2;
        if !self.asked.contains(&middle) {
            let new = match to {
                Direction::Forward if self.asked.contains(&next.start) => self.asked.end..next.end,
                Direction::Backward if self.asked.contains(&next.end.saturating_sub(1)) => {
                    next.start..self.asked.start
                }
                _ => next.clone(),
            };
            run.will_read(new);
            self.asked = next;
        }
    }

    /// Takes hold of a page instead of the one before.
    pub(super) fn hold(&mut self, run: usize, number: usize) -> Result<Page<'_>> {
        if self.run != run {
            (self.run, self.asked) = (run, 0..0);
        }
        if self.held.as_ref().is_none_or(|held| held.number != number || !held.is_of(&self.level.runs[run])) {
            // First, so that the cache may use its frame for the next.
            self.held = None;
            self.held = Some(HeldPage::new(&*self.level.runs[run], number)?);
        }
        let Some(held) = &self.held else { unreachable!("it was just taken hold of") };
        Ok(held.page())
    }
}

impl ActiveFeed {
    #[inline(always)]
    pub(super) fn entry(&self) -> Entry<'_> {
        match self.entry {
            Some(entry) => entry,
            None => unreachable!("only called where the source is valid"),
        }
    }

    /// Folds the versions of the key that are older than the one at which the walk stands.
    pub(super) fn fold_versions(&self, now: u64, fold: &mut Fold) -> Result<()> {
        let Some(here) = self.entry else { return Ok(()) };
        let mut cursor = self.cursor.clone();
        cursor.next();
        while fold.goes_on()
            && let Some(older) = cursor.entry().filter(|older| older.key == here.key)
        {
            fold.add(Content::of(older.tag(), older.value).at(now))?;
            cursor.next();
        }
        Ok(())
    }

    /// From here on forward, the newest visible version of the first key that has one.
    pub(super) fn settle_forward(&mut self) -> usize {
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
    pub(super) fn settle_backward(&mut self) -> usize {
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

    pub(super) fn first(&mut self) -> usize {
        self.cursor.seek_first();
        self.settle_forward()
    }

    pub(super) fn last(&mut self) -> usize {
        self.cursor.seek_last();
        self.settle_backward()
    }

    pub(super) fn seek_ge(&mut self, key: &[u8]) -> usize {
        self.cursor.seek_ge(key);
        self.settle_forward()
    }

    pub(super) fn seek_lt(&mut self, key: &[u8]) -> usize {
        self.cursor.seek_lt(key);
        self.settle_backward()
    }

    pub(super) fn next(&mut self) -> usize {
        let Some(here) = self.entry else { return NOWHERE };
        while self.cursor.entry().is_some_and(|e| e.key == here.key) {
            self.cursor.next();
        }
        self.settle_forward()
    }

    pub(super) fn prev(&mut self) -> usize {
        let Some(here) = self.entry else { return NOWHERE };
        self.cursor.seek_lt(here.key);
        self.settle_backward()
    }
}
