//! Pages of a run in the mapped file. Memory holds only what is known of them.
//!
//! A page is first read into a buffer of the thread, and checked there. A read reports an error where a touch
//! of the mapping would end the process. Where the system has entered the page's stretch of the file into the
//! mapping, which reports errors too, the page is checked in place. From then on (`known`) holders of the run
//! use the page through the mapping. Nobody else is given the run's extents meanwhile. What is known of a
//! page that stays goes over to the run that succeeds when other parts are moved (`moved.rs`).
//!
//! A page that is not in one piece (it was moved in parts) is copied at each use.

use super::Run;
use super::filter::BLOCK_BYTES;
use super::handle::{LargePage, PageHandle};
use super::known::Known;
use super::standing::{GuideOf, MappedPage, MappedPages};
use crate::base::codec::{usize_of, usize_of64};
use crate::base::error::Result;
use crate::base::limits::PAGE_BYTES;
use crate::base::prefetch::prefetch_line;
use crate::format::guide::Guide;
use crate::format::page::{TAIL_BYTES, check, corrupt_page, units_max, units_of, used_of};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

thread_local! {
    /// The buffer into which this thread reads what it checks. It grows to the largest page.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Calls `f` with a buffer of `len` bytes. It is usually the thread's own. It is a fresh one where the thread
/// is ending, and where `f` calls this again because its storage reads a database itself.
fn with_buffer<T>(len: usize, f: impl FnOnce(&mut [u8]) -> Result<T>) -> Result<T> {
    let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
    buffer.resize(buffer.len().max(len), 0);
    let done = f(&mut buffer[..len]);
    let _ending = BUFFER.try_with(|kept| kept.set(buffer));
    done
}

impl Run {
    /// The address of `len` bytes of the run from `at` on, or of as many of these as are in one piece.
    #[inline(always)]
    fn standing(&self, pages: &MappedPages, at: u64, len: usize) -> Option<NonNull<[u8]>> {
        let first = NonNull::new(pages.first.load(Ordering::Relaxed));
        if let Some(first) = first.filter(|_| at + len as u64 <= self.info.meta_at()) {
            // SAFETY: all of the run is there, and these bytes are inside it.
            let start = unsafe { first.add(usize_of64(at)) };
            return Some(NonNull::slice_from_raw_parts(start, len));
        }
        let (offset, together) = self.stretch(at)?;
        let len = usize_of64(together.min(len as u64));
        Some(NonNull::slice_from_raw_parts(pages.mapping.at(offset, len)?, len))
    }

    /// Remembers where the run begins, if it is in one piece: lookups then need not ask for the place of each
    /// page.
    pub(super) fn find_first(&self, pages: &MappedPages) {
        let len = self.info.meta_at();
        if let Some((offset, _)) = self.stretch(0).filter(|(_, together)| *together >= len) {
            let first = usize::try_from(len).ok().and_then(|len| pages.mapping.at(offset, len));
            pages.first.store(first.map_or(std::ptr::null_mut(), NonNull::as_ptr), Ordering::Relaxed);
        }
    }

    /// The part of a page of `units` units that is in one piece. In the file the last page may be cut behind
    /// its used bytes, and the filter follows there.
    #[inline(always)]
    fn page_standing(&self, pages: &MappedPages, unit: u32, units: usize) -> Option<NonNull<[u8]>> {
        let at = self.unit_at(unit);
        let data = self.info.data_bytes.saturating_sub(at);
        self.standing(pages, at, usize_of64(data.min((units * self.info.page_bytes) as u64)))
    }

    /// A page, if it was checked.
    #[inline(always)]
    pub(super) fn known_page<'a>(
        &self,
        pages: &'a MappedPages,
        unit: u32,
        units: usize,
    ) -> Option<PageHandle<'a>> {
        let known = pages.data.get(unit)?;
        let bytes = self.page_standing(pages, unit, units)?;
        // SAFETY: the bytes were checked at this place (`check_page`, for this run or the one before it:
        // `know_as`), and all columns of the page are in this piece. The run is borrowed as long as the
        // result, so nobody is given its extents.
        let bytes: &'a [u8] = unsafe { bytes.as_ref() };
        let guide = match known {
            Known::Guide(guide) => GuideOf::Kept(guide),
            Known::Checked => GuideOf::Own(Arc::new(Guide::read_even(bytes).ok()?)),
        };
        Some(PageHandle::Mapped(MappedPage { bytes, guide }))
    }

    /// A page of `units` units. It is checked if it was not.
    #[inline(always)]
    pub(super) fn mapped_page<'a>(
        &self,
        pages: &'a MappedPages,
        unit: u32,
        units: usize,
    ) -> Result<PageHandle<'a>> {
        match self.known_page(pages, unit, units) {
            Some(page) => Ok(page),
            None => self.check_page(pages, unit, units),
        }
    }

    /// Reads and checks a page, and keeps what is then known of it.
    #[cold]
    #[inline(never)]
    fn check_page<'a>(&self, pages: &'a MappedPages, unit: u32, units: usize) -> Result<PageHandle<'a>> {
        let offset = self.unit_offset(unit);
        let bad = |detail: &str| corrupt_page(offset, self.info.id, unit, detail);
        if units > units_max(self.info.page_bytes) {
            return Err(bad("impossible number of units"));
        }
        let len = units * self.info.page_bytes;
        self.find_first(pages);
        let standing = self.page_standing(pages, unit, units);
        if let Some(whole) = standing.filter(|bytes| bytes.len() == len)
            && self.has_entered(pages, unit, len)
        {
            // SAFETY: the bytes are in the mapping, and were entered. The run is borrowed as long as they
            // are, so nobody is given its extents.
            return self.checked_page(pages, unit, units, unsafe { whole.as_ref() }, standing);
        }
        with_buffer(len, |buffer| {
            self.read_units(unit, buffer)?;
            self.checked_page(pages, unit, units, buffer, standing)
        })
    }

    /// Whether a page may be touched in the mapping before it was read.
    fn has_entered(&self, pages: &MappedPages, unit: u32, len: usize) -> bool {
        let at = self.unit_at(unit);
        pages.has_entered(at..at + len as u64, self.info.meta_at(), |start| self.stretch(start))
    }

    /// Checks a page, whose bytes are `read`, and keeps what is then known of it. `standing` is where it is
    /// in the mapping.
    fn checked_page<'a>(
        &self,
        pages: &'a MappedPages,
        unit: u32,
        units: usize,
        read: &[u8],
        standing: Option<NonNull<[u8]>>,
    ) -> Result<PageHandle<'a>> {
        let offset = self.unit_offset(unit);
        let bad = |detail: &str| corrupt_page(offset, self.info.id, unit, detail);
        check(read, self.seed, self.info.id, unit, offset)?;
        if units > 1 && units_of(read, self.info.page_bytes) != Some(units) {
            return Err(bad("impossible number of units"));
        }
        let guide = Guide::read_marked(read).map_err(bad)?;
        // The used part of the page must be in one piece, and so must its columns, whatever `used` claims.
        let all_of = |part: usize| used_of(read) + TAIL_BYTES <= part && Guide::read(&read[..part]).is_ok();
        let fits = |bytes: &NonNull<[u8]>| bytes.len() == read.len() || all_of(bytes.len());
        let Some(bytes) = standing.filter(fits) else {
            return Ok(PageHandle::Large(Arc::new(LargePage { bytes: Box::from(read), guide })));
        };
        let guide = match pages.data.keep_guide(unit, guide) {
            Some(kept) => GuideOf::Kept(kept),
            None => GuideOf::Own(Arc::new(guide)),
        };
        // SAFETY: as in `known_page`. The bytes were checked just now.
        Ok(PageHandle::Mapped(MappedPage { bytes: unsafe { bytes.as_ref() }, guide }))
    }

    /// A line of a filter page. The page is checked if it was not. None if the page is not in one piece: then
    /// the filter cannot tell.
    #[inline(always)]
    pub(super) fn mapped_filter<'a>(
        &self,
        pages: &'a MappedPages,
        page: u32,
        line: usize,
    ) -> Result<Option<&'a [u8; BLOCK_BYTES]>> {
        if page >= pages.filter_pages {
            return Ok(None);
        }
        let Some(bytes) = self.standing(pages, self.filter_at(page), PAGE_BYTES) else { return Ok(None) };
        if bytes.len() < PAGE_BYTES {
            return Ok(None);
        }
        let checked = pages.filter.get().and_then(|checked| checked.get(usize_of(page)));
        if !checked.is_some_and(|checked| checked.load(Ordering::Relaxed)) {
            self.check_filter(pages, page)?;
        }
        // SAFETY: the bytes are in the file, as they were read there. The run is borrowed as long as the
        // result, so nobody is given its extents.
        Ok(unsafe { bytes.as_ref() }.as_chunks().0.get(line))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn check_filter(&self, pages: &MappedPages, page: u32) -> Result<()> {
        with_buffer(PAGE_BYTES, |buffer| self.load_filter(page, buffer))?;
        pages.note_filter(page);
        Ok(())
    }

    /// Has the processor fetch a line of the filter.
    #[inline(always)]
    pub(super) fn prefetch_mapped_filter(&self, pages: &MappedPages, page: u32, line: usize) {
        if let Some(bytes) = self.standing(pages, self.filter_at(page), PAGE_BYTES) {
            prefetch_line(bytes.cast::<u8>().as_ptr().wrapping_add(line * BLOCK_BYTES));
        }
    }
}
