//! A page that is held for longer than a call: by a read transaction that follows keys in order, or by a
//! cursor.
//!
//! `unsafe` is needed because the page is stored beside the run that it borrows from.

use super::{PageHandle, Run};
use crate::base::error::{Error, Result};
use crate::base::key::SortKey;
use crate::format::page::Page;
use std::ops::Deref;
use std::sync::Arc;

/// What keeps a run open as long as it lives.
///
/// # Safety
/// It always gives the same run, which stays where it is when this is moved.
pub(crate) unsafe trait RunKeeper: Deref<Target = Run> {}

// SAFETY: the run is in the heap.
unsafe impl RunKeeper for Arc<Run> {}
// SAFETY: the run is borrowed as long as this lives.
unsafe impl RunKeeper for &Run {}

/// A page, and what keeps its bytes from changing.
pub(crate) struct HeldPage<R = Arc<Run>> {
    /// Borrows from `handle`.
    page: Page<'static>,
    /// Pins a page of `run`. Fields are dropped in their order, so `run` is dropped after it.
    handle: PageHandle<'static>,
    run: R,
    /// The page's index in the fence.
    pub(crate) number: usize,
}

impl<R: RunKeeper> HeldPage<R> {
    pub(crate) fn new(run: R, number: usize) -> Result<HeldPage<R>> {
        // SAFETY: `run` is kept beside the page, and dropped after it.
        let handle = unsafe { run.page(number)?.extend() };
        // SAFETY: `page` points into what `handle` pins, which does not move. It is never given out for
        // longer than this is borrowed.
        let page = unsafe { std::mem::transmute::<Page<'_>, Page<'static>>(handle.page()) };
        Ok(HeldPage { page, handle, run, number })
    }

    #[inline(always)]
    pub(crate) fn page(&self) -> Page<'_> {
        self.page
    }

    /// Whether it is a page of this run.
    pub(crate) fn is_of(&self, run: &Run) -> bool {
        std::ptr::eq(&raw const *self.run, run)
    }

    /// See `PageHandle::prefetch_key`.
    #[inline(always)]
    pub(crate) fn prefetch_key(&self, key: SortKey<'_>) -> usize {
        self.handle.prefetch_key(key, false)
    }

    /// The error for bytes of the page that make no sense.
    #[cold]
    pub(crate) fn corrupt(&self, detail: &str) -> Error {
        self.run.corrupt(self.number, detail)
    }

    pub(crate) fn run(&self) -> &R {
        &self.run
    }

    /// Where a part of the page begins in it.
    pub(crate) fn place_of(&self, part: &[u8]) -> usize {
        part.as_ptr() as usize - self.handle.as_ptr() as usize
    }
}
