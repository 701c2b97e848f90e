//! A run's pages where they stand in the mapped file: what of them is kept, and what holders get.

use super::known::{Guides, KnownPages};
use crate::base::prefetch::prefetch_line;
use crate::format::guide::Guide;
use crate::format::page::Page;
use crate::storage::FileMapping;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicPtr};
use std::sync::{Arc, OnceLock};

/// The pages of a run, in the file's mapping.
pub(super) struct MappedPages {
    pub(super) mapping: Arc<FileMapping>,
    /// Where the run begins in the mapping, if it is in one piece and was read from. Else null.
    pub(super) first: AtomicPtr<u8>,
    pub(super) data: KnownPages,
    /// Which pages of the filter were found whole.
    pub(super) filter: OnceLock<Box<[AtomicBool]>>,
    pub(super) filter_pages: u32,
}

impl MappedPages {
    pub(super) fn new(
        mapping: Arc<FileMapping>,
        guides: Arc<Guides>,
        units: u32,
        filter_pages: u32,
    ) -> MappedPages {
        let (first, filter) = (AtomicPtr::default(), OnceLock::new());
        MappedPages { mapping, first, data: KnownPages::new(units, guides), filter, filter_pages }
    }
}

/// A page in the mapping, with its guide.
pub(crate) struct MappedPage<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) guide: GuideOf<'a>,
}

pub(super) enum GuideOf<'a> {
    Kept(&'a Guide),
    /// Shared, so that a value that borrows from it may be moved together with it.
    Own(Arc<Guide>),
}

impl MappedPage<'_> {
    #[inline(always)]
    pub(super) fn page(&self) -> Page<'_> {
        match &self.guide {
            GuideOf::Kept(guide) => Page::new(self.bytes, guide),
            GuideOf::Own(guide) => Page::new(self.bytes, guide),
        }
    }

    /// Has the processor fetch the line of a byte of the page.
    #[inline(always)]
    pub(super) fn prefetch(&self, byte: usize) {
        // A page with a forged checksum may name any byte. A prefetch may have any address.
        prefetch_line(self.bytes.as_ptr().wrapping_add(byte));
    }

    /// The same page, with a longer lifetime.
    ///
    /// # Safety
    /// The caller keeps the run until the result has been dropped.
    pub(super) unsafe fn extend<'b>(self) -> MappedPage<'b> {
        // SAFETY: the page borrows from the run, which the caller keeps.
        unsafe { std::mem::transmute::<MappedPage<'_>, MappedPage<'b>>(self) }
    }
}

impl Deref for MappedPage<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}
