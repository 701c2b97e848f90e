//! A page that is held for longer than a call: by a read transaction that follows keys in order, or by a
//! cursor.
//!
//! `unsafe` is needed because the page is stored beside the run that it borrows from.

use super::{PageHandle, Run};
use crate::base::error::{Error, Result};
use crate::format::page::Page;
use std::sync::Arc;

/// A page, and what keeps its bytes from changing.
pub(crate) struct HeldPage {
    /// Borrows from `handle`.
    page: Page<'static>,
    /// Pins a page of `run`. Fields are dropped in their order, so `run` is dropped after it.
    handle: PageHandle<'static>,
    run: Arc<Run>,
    /// The page's index in the fence.
    pub(crate) number: usize,
}

impl HeldPage {
    pub(crate) fn new(run: Arc<Run>, number: usize) -> Result<HeldPage> {
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
    pub(crate) fn is_of(&self, run: &Arc<Run>) -> bool {
        Arc::ptr_eq(&self.run, run)
    }

    /// The error for bytes of the page that make no sense.
    #[cold]
    pub(crate) fn corrupt(&self, detail: &str) -> Error {
        self.run.corrupt(self.number, detail)
    }

    pub(crate) fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// Where a part of the page begins in it.
    pub(crate) fn place_of(&self, part: &[u8]) -> usize {
        part.as_ptr() as usize - self.handle.as_ptr() as usize
    }
}
