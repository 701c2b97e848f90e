//! Finding one key in a run: filter, fence, page, record.

use super::filter::{BLOCK_BYTES, block_contains, block_of, block_place};
use super::handle::{LargePage, PageHandle};
use super::{Meta, Run, RunPages};
use crate::base::codec::{u32_of, usize_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::key::SortKey;
use crate::base::limits::PAGE_BYTES;
use crate::format::block::{Block, Tag};
use crate::format::expiry::Expiry;
use crate::format::guide::Guide;
use crate::format::page::{FILTER_PAGE_BASE, check, corrupt_page, units_max, units_of};
use crate::storage::read_error;
use std::sync::Arc;

/// A record found in a run.
pub(crate) struct Hit<'a> {
    pub(crate) page: PageHandle<'a>,
    /// As it is stored: see `content`.
    pub(crate) tag: Tag,
    /// Where the value stands in the page.
    pub(crate) value: std::ops::Range<usize>,
    /// The page's number and the record's place in it.
    pub(crate) page_number: usize,
    pub(crate) place: usize,
}

impl Hit<'_> {
    /// The tag, without `Expiring`, and when the record expires.
    #[inline(always)]
    pub(crate) fn content(&self) -> (Tag, Expiry) {
        if self.tag == Tag::Expiring { self.expiring_content() } else { (self.tag, Expiry::NEVER) }
    }

    #[cold]
    fn expiring_content(&self) -> (Tag, Expiry) {
        let (expiry, tag) = Expiry::read(self.page.page().word(self.place));
        (tag, expiry)
    }
}

impl Run {
    /// Whether the filter allows the key. `hash` is the table kind's filter hash.
    #[inline(always)]
    pub(crate) fn may_contain(&self, hash: u64) -> Result<bool> {
        if self.filter_blocks == 0 {
            return Ok(true);
        }
        let (page, line) = block_place(block_of(hash, self.filter_blocks));
        match &self.pages {
            RunPages::Mapped(pages) => {
                let block = self.mapped_filter(pages, page, line)?;
                Ok(block.is_none_or(|block| block_contains(block, hash)))
            }
            RunPages::Cached { filter, .. } => {
                let bytes = filter.get(page, |frame, _| self.load_filter(page, frame))?;
                Ok(bytes.as_chunks().0.get(line).is_none_or(|block| block_contains(block, hash)))
            }
        }
    }

    /// Asks the processor to bring in the line of the filter that `may_contain` will look at.
    #[inline(always)]
    pub(crate) fn prefetch_filter(&self, hash: u64) {
        if self.filter_blocks != 0 {
            let (page, line) = block_place(block_of(hash, self.filter_blocks));
            match &self.pages {
                RunPages::Mapped(pages) => self.prefetch_mapped_filter(pages, page, line),
                RunPages::Cached { filter, .. } => filter.prefetch(page, line * BLOCK_BYTES),
            }
        }
    }

    /// The page that may have the key: the filter allows it, and so does the fence. Without `hash` the filter
    /// is not asked.
    #[inline(always)]
    pub(crate) fn page_for(&self, key: SortKey<'_>, hash: Option<u64>) -> Result<Option<usize>> {
        match hash {
            Some(hash) if !self.may_contain(hash)? => Ok(None),
            _ => Ok(self.meta()?.page_of(key)),
        }
    }

    /// Where filter page `page` begins in the run.
    #[inline(always)]
    pub(super) fn filter_at(&self, page: u32) -> u64 {
        self.info.data_bytes + u64::from(page) * PAGE_BYTES as u64
    }

    /// Reads filter page `page` from the file and verifies it.
    pub(crate) fn load_filter(&self, page: u32, frame: &mut [u8]) -> Result<()> {
        let at = self.filter_at(page);
        self.read(at, frame)?;
        check(frame, self.seed, self.info.id, FILTER_PAGE_BASE + page, self.file_offset(at))
    }

    /// The page of the fence's entry `page`, from the cache or the file.
    #[inline(always)]
    pub(crate) fn page(&self, page: usize) -> Result<PageHandle<'_>> {
        let meta = self.meta()?;
        if meta.units.is_some() {
            return self.page_of_units(page);
        }
        self.page_of_one(u32_of(page))
    }

    /// A page of one unit.
    #[inline(always)]
    fn page_of_one(&self, unit: u32) -> Result<PageHandle<'_>> {
        match &self.pages {
            RunPages::Mapped(pages) => self.mapped_page(pages, unit, 1),
            RunPages::Cached { data, .. } => {
                let page = data.get(unit, |frame, guide| self.load_unit(unit, frame, guide))?;
                Ok(PageHandle::Cached(page.first(self.info.page_bytes)))
            }
        }
    }

    /// A page of one unit, if it is known.
    #[inline(always)]
    fn get_cached_one(&self, unit: u32) -> Option<PageHandle<'_>> {
        match &self.pages {
            RunPages::Mapped(pages) => self.known_page(pages, unit, 1),
            RunPages::Cached { data, .. } => {
                data.get_cached(unit).map(|page| PageHandle::Cached(page.first(self.info.page_bytes)))
            }
        }
    }

    /// Asks the processor for what `page` will read first.
    #[inline(always)]
    pub(crate) fn prefetch_page(&self, page: usize) {
        if let Some(meta) = self.meta.get() {
            match &self.pages {
                RunPages::Mapped(pages) => pages.data.prefetch(meta.unit_of(page)),
                RunPages::Cached { data, .. } => data.prefetch(meta.unit_of(page), 0),
            }
        }
    }

    fn load_unit(&self, unit: u32, frame: &mut [u8], guide: &mut Guide) -> Result<()> {
        let frame = &mut frame[..self.info.page_bytes];
        self.read_units(unit, frame)?;
        let offset = self.unit_offset(unit);
        check(frame, self.seed, self.info.id, unit, offset)?;
        *guide =
            Guide::read_marked(frame).map_err(|detail| corrupt_page(offset, self.info.id, unit, detail))?;
        Ok(())
    }

    /// As `page`, in a run where some page has several units. Those are not cached.
    fn page_of_units(&self, page: usize) -> Result<PageHandle<'_>> {
        let meta = self.meta()?;
        match (self.place_of(meta, page), &self.pages) {
            ((unit, 1), _) => self.page_of_one(unit),
            ((unit, units), RunPages::Mapped(pages)) => self.mapped_page(pages, unit, units),
            ((unit, units), RunPages::Cached { .. }) => self.page_apart(unit, units),
        }
    }

    /// The first unit of the fence's entry `page`, and how many there are.
    pub(super) fn place_of(&self, meta: &Meta, page: usize) -> (u32, usize) {
        let unit = meta.unit_of(page);
        let end = if page + 1 < meta.pages() { meta.unit_of(page + 1) } else { self.info.units };
        (unit, usize_of(end - unit))
    }

    /// A page of some units, read into a buffer of its own.
    pub(super) fn page_apart(&self, unit: u32, units: usize) -> Result<PageHandle<'_>> {
        let offset = self.unit_offset(unit);
        let bad = |detail: &str| corrupt_page(offset, self.info.id, unit, detail);
        if units > units_max(self.info.page_bytes) {
            return Err(bad("impossible number of units"));
        }
        let mut bytes = vec![0; units * self.info.page_bytes].into_boxed_slice();
        self.read_units(unit, &mut bytes)?;
        check(&bytes, self.seed, self.info.id, unit, offset)?;
        if units > 1 && units_of(&bytes, self.info.page_bytes) != Some(units) {
            return Err(bad("impossible number of units"));
        }
        let guide = Guide::read_marked(&bytes).map_err(bad)?;
        Ok(PageHandle::Large(Arc::new(LargePage { bytes, guide })))
    }

    /// Whether lookups or cursors have read from the run, or from what it was before parts of it moved.
    pub(crate) fn is_read(&self) -> bool {
        match &self.pages {
            RunPages::Mapped(pages) => pages.data.is_used(),
            RunPages::Cached { data, .. } => data.is_used(),
        }
    }

    /// Takes the run's pages into the cache, or checks them in the mapping, as long as no others have to go
    /// for them. It is for a run that will take the place of one that is being read, before readers meet it.
    /// In a mapping no more bytes are read than guides may take. A page that cannot be read is an error only
    /// for those who ask for it.
    pub(crate) fn warm(&self) -> Result<()> {
        let bytes_max = match &self.pages {
            RunPages::Mapped(pages) => pages.data.guides_bytes_max(),
            RunPages::Cached { .. } => usize::MAX,
        };
        for page in 0..u32_of(usize_of64(self.info.filter_pages()).min(bytes_max / PAGE_BYTES)) {
            match &self.pages {
                RunPages::Mapped(pages) => drop(self.mapped_filter(pages, page, 0)?),
                RunPages::Cached { filter, .. } if !filter.has_room() => break,
                RunPages::Cached { filter, .. } => {
                    drop(filter.get(page, |frame, _| self.load_filter(page, frame))?)
                }
            }
        }
        for page in 0..self.meta()?.pages().min(bytes_max / self.info.page_bytes) {
            let has_room = match &self.pages {
                RunPages::Mapped(pages) => pages.data.has_room(),
                RunPages::Cached { data, .. } => data.has_room(),
            };
            if !has_room {
                break;
            }
            let _loaded = self.page(page)?;
        }
        Ok(())
    }

    /// Hands the record of a key to `f`, if it is there, expired or not. This does not count as reading: a
    /// page of records does not come into the cache. (Pages of the filter do.)
    pub(crate) fn look<R>(
        &self,
        key: SortKey<'_>,
        hash: u64,
        f: impl FnOnce(Tag, &[u8]) -> R,
    ) -> Result<Option<R>> {
        let Some(page) = self.page_for(key, Some(hash))? else { return Ok(None) };
        let handle = self.page_unread(page)?;
        let guess = handle.prefetch_key(key, false);
        Ok(find_held(page, handle, guess, key, |hit| f(hit.content().0, &hit.page[hit.value.clone()])))
    }

    /// Decodes the page of the fence's entry `page`. This does not count as reading, as in `look`.
    pub(crate) fn decode_page(&self, page: usize, out: &mut Block) -> Result<()> {
        self.page_unread(page)?.page().decode(out).map_err(|detail| self.corrupt(page, detail))
    }

    /// The page of the fence's entry `page`, past the cache if it is not there.
    fn page_unread(&self, page: usize) -> Result<PageHandle<'_>> {
        let (unit, units) = self.place_of(self.meta()?, page);
        let cached = if units == 1 { self.get_cached_one(unit) } else { None };
        match cached {
            Some(handle) => Ok(handle),
            None => self.page_apart(unit, units),
        }
    }

    /// The error of a page whose bytes do not make sense.
    #[cold]
    pub(crate) fn corrupt(&self, page: usize, detail: &str) -> Error {
        let unit = self.meta.get().map_or(0, |m| m.unit_of(page));
        corrupt_page(self.unit_offset(unit), self.info.id, unit, detail)
    }

    /// Whether the file still holds what the cache was filled from; for `check`.
    pub(crate) fn extents_end_inside(&self, file_len: u64) -> Result<()> {
        match self.info.extents.iter().find(|e| e.offset + e.len > file_len) {
            None => Ok(()),
            Some(e) => Err(read_error(std::io::ErrorKind::UnexpectedEof.into(), e.offset)),
        }
    }
}

/// Hands the record of a key in a page to `f`, if it is there. The search begins at a guess. (A closure and
/// not a result: a record goes through many hands, and moving it costs more than finding it.)
#[inline(always)]
pub(crate) fn find_held<'a, R>(
    page_number: usize,
    handle: PageHandle<'a>,
    guess: usize,
    key: SortKey<'_>,
    f: impl FnOnce(Hit<'a>) -> R,
) -> Option<R> {
    let page = handle.page();
    let (place, equal) = page.lower_bound(key, guess);
    if !equal {
        return None;
    }
    let (tag, value) = page.value(place);
    let start = value.as_ptr() as usize - handle.as_ptr() as usize;
    let value = start..start + value.len();
    Some(f(Hit { page: handle, tag, value, page_number, place }))
}
