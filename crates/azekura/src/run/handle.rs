//! A page of a run, as its users hold it.

use super::standing::MappedPage;
use crate::base::key::SortKey;
use crate::cache::PageRef;
use crate::format::guide::Guide;
use crate::format::page::Page;
use std::ops::Deref;
use std::sync::Arc;

/// A page held in memory: a pinned frame of the cache, one in the file's mapping, or a copy.
pub(crate) enum PageHandle<'a> {
    Cached(PageRef<'a>),
    Mapped(MappedPage<'a>),
    Large(Arc<LargePage>),
}

/// A copy of a page that is not kept. The page has several units, is not in one piece in the file, or was
/// read for a sample (`look`).
pub(crate) struct LargePage {
    pub(super) bytes: Box<[u8]>,
    pub(super) guide: Guide,
}

impl PageHandle<'_> {
    /// The same page for longer than the borrow says.
    ///
    /// # Safety
    /// The caller keeps the run until the result has been dropped.
    pub(crate) unsafe fn extend<'b>(self) -> PageHandle<'b> {
        match self {
            // SAFETY: the caller's promise.
            PageHandle::Cached(page) => PageHandle::Cached(unsafe { page.extend() }),
            // SAFETY: the caller's promise.
            PageHandle::Mapped(page) => PageHandle::Mapped(unsafe { page.extend() }),
            PageHandle::Large(page) => PageHandle::Large(page),
        }
    }

    /// The page, to be searched.
    #[inline(always)]
    pub(crate) fn page(&self) -> Page<'_> {
        match self {
            PageHandle::Cached(page) => Page::new(page, page.guide()),
            PageHandle::Mapped(page) => page.page(),
            PageHandle::Large(large) => Page::new(&large.bytes, &large.guide),
        }
    }

    /// Guesses where a key stands, and asks the processor for the lines around. `whole`: see `lines_around`.
    #[inline(always)]
    pub(crate) fn prefetch_key(&self, key: SortKey<'_>, whole: bool) -> usize {
        let page = self.page();
        let guess = page.guess(key);
        match self {
            PageHandle::Cached(cached) => page.lines_around(guess, whole, |byte| cached.prefetch(byte)),
            PageHandle::Mapped(mapped) => page.lines_around(guess, whole, |byte| mapped.prefetch(byte)),
            PageHandle::Large(_) => {}
        }
        guess
    }
}

impl Deref for PageHandle<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            PageHandle::Cached(page) => page,
            PageHandle::Mapped(page) => page,
            PageHandle::Large(large) => &large.bytes,
        }
    }
}
