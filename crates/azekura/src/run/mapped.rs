//! Pages of a run where they stand in the file: what is kept of them in memory is that they were checked.
//!
//! A page is read into a buffer of the thread's own once, which gives an error where a touch of the mapping would
//! end the process, and checked there; its guide then goes to the cache. As long as it is there, the page is used
//! through the mapping: by whoever holds the run, whose extents nobody else is given meanwhile.
//!
//! A page that does not stand together (it was moved in parts) is copied each time that it is used.

use super::Run;
use super::filter::BLOCK_BYTES;
use super::lookup::{LargePage, PageHold};
use crate::base::codec::usize_of64;
use crate::base::error::Result;
use crate::base::limits::PAGE_BYTES;
use crate::cache::prefetch_line;
use crate::format::guide::Guide;
use crate::format::page::{TAIL_BYTES, check, corrupt_page, units_max, units_of, used_of};
use crate::storage::FileMapping;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;

thread_local! {
    /// Where this thread reads what it checks. It grows to the largest page.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Calls `f` with a buffer of `len` bytes. It is a fresh one where the thread is ending, and a handle that it kept closes
/// the database, or where the storage that `f` reads from reads the database itself.
fn with_buffer<T>(len: usize, f: impl FnOnce(&mut [u8]) -> Result<T>) -> Result<T> {
    let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
    buffer.resize(buffer.len().max(len), 0);
    let done = f(&mut buffer[..len]);
    let _ending = BUFFER.try_with(|kept| kept.set(buffer));
    done
}

impl Run {
    /// Where `len` bytes of the run from `at` on stand, or as many of them as stand together.
    #[inline(always)]
    fn standing(&self, mapping: &FileMapping, at: u64, len: usize) -> Option<NonNull<[u8]>> {
        let (offset, together) = self.stretch(at)?;
        let len = usize_of64(together.min(len as u64));
        Some(NonNull::slice_from_raw_parts(mapping.at(offset, len)?, len))
    }

    /// As much of a page of some units as stands together, and as there is: the last one may be cut off behind what is
    /// used of it, and what follows is the filter's.
    #[inline(always)]
    fn page_standing(&self, mapping: &FileMapping, unit: u32, units: usize) -> Option<NonNull<[u8]>> {
        let at = self.unit_at(unit);
        let data = self.info.data_bytes.saturating_sub(at);
        self.standing(mapping, at, usize_of64(data.min((units * self.info.page_bytes) as u64)))
    }

    /// A page if its guide is known.
    #[inline(always)]
    pub(super) fn known_page(&self, mapping: &FileMapping, unit: u32, units: usize) -> Option<PageHold<'_>> {
        let guide = self.data.peek(unit)?;
        let bytes = self.page_standing(mapping, unit, units)?;
        // SAFETY: the guide is there, so the bytes were checked (`learn_page`) and stand together as far as the
        // page's columns reach. The run is borrowed as long as the result, so nobody is given its extents.
        Some(PageHold::Cached(unsafe { guide.over(bytes) }))
    }

    /// A page of some units, checked before.
    #[inline(always)]
    pub(super) fn mapped_page(&self, mapping: &FileMapping, unit: u32, units: usize) -> Result<PageHold<'_>> {
        match self.known_page(mapping, unit, units) {
            Some(page) => Ok(page),
            None => self.learn_page(mapping, unit, units),
        }
    }

    /// Reads and checks a page, and keeps its guide.
    #[cold]
    #[inline(never)]
    fn learn_page(&self, mapping: &FileMapping, unit: u32, units: usize) -> Result<PageHold<'_>> {
        let offset = self.unit_offset(unit);
        let bad = |detail: &str| corrupt_page(offset, self.info.id, unit, detail);
        if units > units_max(self.info.page_bytes) {
            return Err(bad("impossible number of units"));
        }
        let len = units * self.info.page_bytes;
        let standing = self.page_standing(mapping, unit, units);
        with_buffer(len, |buffer| {
            self.read_units(unit, buffer)?;
            check(buffer, self.seed, self.info.id, unit, offset)?;
            if units > 1 && units_of(buffer, self.info.page_bytes) != Some(units) {
                return Err(bad("impossible number of units"));
            }
            let guide = Guide::read_marked(buffer).map_err(bad)?;
            // What is used of the page is to stand together, and the columns whatever it says is used.
            let all_of = |part: usize| used_of(buffer) + TAIL_BYTES <= part && Guide::read(&buffer[..part]).is_ok();
            let fits = |bytes: &NonNull<[u8]>| bytes.len() == len || all_of(bytes.len());
            match standing.filter(fits) {
                Some(bytes) => {
                    let kept = self.data.get(unit, |_, place| {
                        *place = guide;
                        Ok(())
                    })?;
                    // SAFETY: as in `known_page`; the bytes were checked just now.
                    Ok(PageHold::Cached(unsafe { kept.over(bytes) }))
                }
                None => Ok(PageHold::Large(Arc::new(LargePage { bytes: Box::from(&*buffer), guide }))),
            }
        })
    }

    /// A line of a page of the filter, checked before; none if it does not stand together: then nobody can tell.
    #[inline(always)]
    pub(super) fn mapped_filter(
        &self,
        mapping: &FileMapping,
        page: u32,
        line: usize,
    ) -> Result<Option<&[u8; BLOCK_BYTES]>> {
        if self.filter.is_beyond(page) {
            return Ok(None);
        }
        let Some(bytes) = self.standing(mapping, self.filter_at(page), PAGE_BYTES) else { return Ok(None) };
        if bytes.len() < PAGE_BYTES {
            return Ok(None);
        }
        if !self.filter.is_checked(page) {
            with_buffer(PAGE_BYTES, |buffer| self.load_filter(page, buffer))?;
            self.filter.set_checked(page);
        }
        // SAFETY: the bytes are in the file, as they were read there; the run is borrowed as long as the result, so
        // nobody is given its extents.
        Ok(unsafe { bytes.as_ref() }.as_chunks().0.get(line))
    }

    /// Asks the processor for a line of the filter.
    #[inline(always)]
    pub(super) fn prefetch_mapped_filter(&self, mapping: &FileMapping, page: u32, line: usize) {
        if let Some(bytes) = self.standing(mapping, self.filter_at(page), PAGE_BYTES) {
            prefetch_line(bytes.cast::<u8>().as_ptr().wrapping_add(line * BLOCK_BYTES));
        }
    }
}
