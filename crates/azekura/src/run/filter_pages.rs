//! The pages of a run's filter in memory.
//!
//! A filter is asked at random, and by many lookups for nothing else; pinning a frame of the page
//! cache for that costs two locked instructions, which keep the processor from looking for two
//! keys at once. So the filters of the first runs that ask, up to a part of the cache's budget, are
//! kept for as long as their run is open, and read without a pin. Those of further runs are pages of
//! the cache like any others.

use super::filter::BLOCK_BYTES;
use crate::base::codec::usize_of;
use crate::base::error::Result;
use crate::base::limits::PAGE_BYTES;
use crate::cache::{Cache, KeptPages, PageSlots, prefetch_line};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A line of the processor's cache.
type Line = [u8; BLOCK_BYTES];

/// How much memory filters may keep.
pub(crate) struct FilterBudget {
    bytes: usize,
    taken: AtomicUsize,
}

impl FilterBudget {
    pub(crate) fn new(bytes: usize) -> Arc<FilterBudget> {
        Arc::new(FilterBudget { bytes, taken: AtomicUsize::new(0) })
    }

    /// What is kept now, in bytes.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let more = |taken: usize| taken.checked_add(bytes).filter(|&sum| sum <= self.bytes);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Share { budget: self.clone(), bytes })
    }
}

/// A part of the budget, until it is dropped.
struct Share {
    budget: Arc<FilterBudget>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The filter pages of one run, each read when it is first asked for.
pub(super) struct FilterPages {
    /// Decided at the first lookup: kept here, or in the cache.
    kept: OnceLock<Option<Kept>>,
    cached: PageSlots,
    /// Which pages were checked, where they are read in the file's mapping.
    checked: OnceLock<Box<[AtomicBool]>>,
    budget: Arc<FilterBudget>,
    pages: u32,
}

struct Kept {
    pages: KeptPages,
    _share: Share,
}

impl FilterPages {
    pub(super) fn new(cache: Arc<Cache>, budget: Arc<FilterBudget>, pages: u32) -> FilterPages {
        let cached = PageSlots::new(cache, pages);
        FilterPages { kept: OnceLock::new(), cached, checked: OnceLock::new(), budget, pages }
    }

    /// Whether there is no such page.
    #[inline(always)]
    pub(super) fn is_beyond(&self, page: u32) -> bool {
        page >= self.pages
    }

    /// Whether a page was found whole before.
    #[inline(always)]
    pub(super) fn is_checked(&self, page: u32) -> bool {
        let checked = self.checked.get().and_then(|checked| checked.get(usize_of(page)));
        checked.is_some_and(|checked| checked.load(Ordering::Relaxed))
    }

    /// A page was found whole.
    pub(super) fn set_checked(&self, page: u32) {
        let none = || (0..self.pages).map(|_| AtomicBool::new(false)).collect();
        if let Some(checked) = self.checked.get_or_init(none).get(usize_of(page)) {
            checked.store(true, Ordering::Relaxed);
        }
    }

    /// Leaves it without pages. REQUIRES: none was asked for yet.
    pub(super) fn clear(&mut self) {
        self.pages = 0;
    }

    #[inline(always)]
    fn kept(&self) -> Option<&Kept> {
        self.kept.get_or_init(|| self.keep()).as_ref()
    }

    /// None beyond the budget, or if the system refuses the addresses.
    #[cold]
    fn keep(&self) -> Option<Kept> {
        let share = self.budget.take(usize_of(self.pages) * PAGE_BYTES)?;
        Some(Kept { pages: KeptPages::new(self.pages, PAGE_BYTES).ok()?, _share: share })
    }

    /// Whether the pages are kept outside the cache.
    pub(super) fn is_kept(&self) -> bool {
        self.kept().is_some()
    }

    /// Whether the cache can take a page in without driving another out.
    pub(super) fn has_room(&self) -> bool {
        self.cached.has_room()
    }

    /// Hands a line of a page to `f`; `load` fills a page and checks it.
    #[inline(always)]
    pub(super) fn line<R>(
        &self,
        page: u32,
        line: usize,
        load: impl FnOnce(&mut [u8]) -> Result<()>,
        f: impl FnOnce(&Line) -> R,
    ) -> Result<Option<R>> {
        let Some(kept) = self.kept() else {
            if page >= self.pages {
                return Ok(None);
            }
            let bytes = self.cached.get(page, |frame, _| load(frame))?;
            return Ok(bytes.as_chunks().0.get(line).map(f));
        };
        let bytes = kept.pages.get(page, load)?;
        Ok(bytes.and_then(|bytes| bytes.as_chunks().0.get(line)).map(f))
    }

    /// Has the processor fetch a line, if it is in memory.
    #[inline(always)]
    pub(super) fn prefetch(&self, page: u32, line: usize) {
        match self.kept.get() {
            Some(Some(kept)) => {
                if let Some(line) = kept.pages.peek(page).and_then(|bytes| bytes.get(line * BLOCK_BYTES)) {
                    prefetch_line(line);
                }
            }
            _ => self.cached.prefetch(page, line * BLOCK_BYTES),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn pages(cache: &Arc<Cache>, budget: &Arc<FilterBudget>, n: u32) -> FilterPages {
        FilterPages::new(cache.clone(), budget.clone(), n)
    }

    fn stamp(pages: &FilterPages, page: u32, loads: &mut u32) -> u8 {
        let load = |bytes: &mut [u8]| {
            *loads += 1;
            bytes[5 * BLOCK_BYTES] = u8::try_from(page).unwrap();
            Ok(())
        };
        pages.line(page, 5, load, |line| line[0]).unwrap().unwrap()
    }

    #[test]
    fn filters_beyond_the_budget_are_pages_of_the_cache() {
        let cache = Cache::new(4 * PAGE_BYTES, PAGE_BYTES, false).unwrap();
        let budget = FilterBudget::new(3 * PAGE_BYTES);
        let (first, second) = (pages(&cache, &budget, 2), pages(&cache, &budget, 2));
        let mut loads = 0;
        for page in [0, 1, 0, 1] {
            assert_eq!(stamp(&first, page, &mut loads), u8::try_from(page).unwrap());
        }
        assert_eq!((loads, cache.stats().frames_used, budget.taken()), (2, 0, 2 * PAGE_BYTES));
        for page in [0, 1, 0, 1] {
            assert_eq!(stamp(&second, page, &mut loads), u8::try_from(page).unwrap());
        }
        assert_eq!((loads, cache.stats().frames_used, budget.taken()), (4, 2, 2 * PAGE_BYTES));
        assert!(first.is_kept() && !second.is_kept());
        drop(first);
        assert_eq!(budget.taken(), 0);
        assert!(pages(&cache, &budget, 3).is_kept());
    }

    #[test]
    fn a_page_that_cannot_be_read_is_asked_for_again() {
        let cache = Cache::new(PAGE_BYTES, PAGE_BYTES, false).unwrap();
        let pages = pages(&cache, &FilterBudget::new(PAGE_BYTES), 1);
        let refuse = |_: &mut [u8]| Err(crate::Error::ReadOnly);
        assert!(pages.line(0, 5, refuse, |_| ()).is_err());
        assert_eq!(stamp(&pages, 0, &mut 0), 0);
        assert!(pages.line(0, PAGE_BYTES, |_| Ok(()), |_| ()).unwrap().is_none(), "no such line");
        assert!(pages.line(1, 0, |_| Ok(()), |_| ()).unwrap().is_none(), "no such page");
    }
}
