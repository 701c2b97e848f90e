//! Finding one key in a run: filter, fence, page, record.

use super::filter::{BLOCK_BYTES, BLOCKS_PER_PAGE, block_contains, block_of};
use super::{Run, read_error};
use crate::base::codec::{u32_of, usize_of64};
use crate::base::error::{Error, Result};
use crate::base::key::SortKey;
use crate::base::limits::PAGE_BYTES;
use crate::cache::PageRef;
use crate::format::block::Tag;
use crate::format::page::{Page, check, corrupt_page, units_of};
use std::ops::Deref;

/// Numbers of filter pages, for their checksums, begin here; data units are below.
pub(crate) const FILTER_PAGE_BASE: u32 = 1 << 31;
/// Bytes before the blocks of a filter page; the first four are its checksum.
const FILTER_HEADER_BYTES: usize = 64;

/// A page held in memory: a pinned frame of the cache, or the copy of a page of several units.
pub(crate) enum PageHold<'a> {
    Cached(PageRef<'a>),
    Large(Box<[u8]>),
}

impl Deref for PageHold<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            PageHold::Cached(page) => page,
            PageHold::Large(bytes) => bytes,
        }
    }
}

/// A record found in a run.
pub(crate) struct Hit<'a> {
    pub(crate) page: PageHold<'a>,
    pub(crate) tag: Tag,
    /// Where the value stands in the page.
    pub(crate) value: std::ops::Range<usize>,
    /// The page's number and the record's place in it.
    pub(crate) page_number: usize,
    pub(crate) place: usize,
}

impl Run {
    /// Whether the filter allows the key. `hash` is the table kind's filter hash.
    #[inline(always)]
    pub(crate) fn may_contain(&self, hash: u64) -> Result<bool> {
        if self.info.filter_blocks == 0 {
            return Ok(true);
        }
        let block = block_of(hash, self.info.filter_blocks);
        let page = u32_of(usize_of64(block / BLOCKS_PER_PAGE));
        let at = FILTER_HEADER_BYTES + usize_of64(block % BLOCKS_PER_PAGE) * BLOCK_BYTES;
        let bytes = self.filter.get(page, |frame| self.load_filter(page, frame))?;
        let Some(block) = bytes[at..].first_chunk::<BLOCK_BYTES>() else { return Ok(true) };
        Ok(block_contains(block, hash))
    }

    /// Asks the processor to bring in the line of the filter that `may_contain` will look at.
    #[inline(always)]
    pub(crate) fn prefetch_filter(&self, hash: u64) {
        if self.info.filter_blocks != 0 {
            let block = block_of(hash, self.info.filter_blocks);
            let at = FILTER_HEADER_BYTES + usize_of64(block % BLOCKS_PER_PAGE) * BLOCK_BYTES;
            self.filter.prefetch(u32_of(usize_of64(block / BLOCKS_PER_PAGE)), at);
        }
    }

    /// Reads filter page `page` from the file and verifies it.
    pub(crate) fn load_filter(&self, page: u32, frame: &mut [u8]) -> Result<()> {
        let at = self.info.data_bytes + u64::from(page) * PAGE_BYTES as u64;
        self.read(at, frame)?;
        check(frame, self.seed, self.info.id, FILTER_PAGE_BASE + page, self.file_offset(at))
    }

    /// The page of the fence's entry `page`, from the cache or the file.
    #[inline(always)]
    pub(crate) fn page(&self, page: usize) -> Result<PageHold<'_>> {
        let meta = self.meta()?;
        if meta.units.is_some() {
            return self.page_of_units(page);
        }
        let unit = u32_of(page);
        self.data.get(unit, |frame| self.load_unit(unit, frame)).map(PageHold::Cached)
    }

    /// Brings the header and the likely place of a key into the processor's cache.
    #[inline(always)]
    pub(crate) fn prefetch_page(&self, page: usize) {
        if let Some(meta) = self.meta.get() {
            self.data.prefetch(meta.unit_of(page), 0);
        }
    }

    /// Asks for the line at `byte` of a page, if it is in the cache.
    #[inline(always)]
    pub(crate) fn prefetch_line(&self, page: usize, byte: usize) {
        if let Some(meta) = self.meta.get() {
            self.data.prefetch(meta.unit_of(page), byte);
        }
    }

    /// The page if it is in the cache.
    #[inline(always)]
    pub(crate) fn peek(&self, page: usize) -> Option<PageRef<'_>> {
        let meta = self.meta.get()?;
        if meta.units.is_some() { None } else { self.data.peek(u32_of(page)) }
    }

    fn load_unit(&self, unit: u32, frame: &mut [u8]) -> Result<()> {
        self.read_units(unit, frame)?;
        let offset = self.file_offset(u64::from(unit) * PAGE_BYTES as u64);
        check(frame, self.seed, self.info.id, unit, offset)
    }

    /// As `page`, in a run where some page has several units. Those are not cached.
    fn page_of_units(&self, page: usize) -> Result<PageHold<'_>> {
        let unit = self.meta()?.unit_of(page);
        let offset = self.file_offset(u64::from(unit) * PAGE_BYTES as u64);
        let mut header = vec![0; PAGE_BYTES];
        self.read_units(unit, &mut header)?;
        match units_of(&header) {
            Some(1) => self.data.get(unit, |frame| self.load_unit(unit, frame)).map(PageHold::Cached),
            Some(units) if usize_of64(u64::from(self.info.units - unit)) >= units => {
                let mut bytes = vec![0; units * PAGE_BYTES].into_boxed_slice();
                self.read_units(unit, &mut bytes)?;
                check(&bytes, self.seed, self.info.id, unit, offset)?;
                Ok(PageHold::Large(bytes))
            }
            _ => Err(corrupt_page(offset, self.info.id, unit, "impossible number of units")),
        }
    }

    /// Opens a held page, with an error that says where it is damaged.
    #[inline(always)]
    pub(crate) fn open_page<'p>(&self, page: usize, bytes: &'p [u8]) -> Result<Page<'p>> {
        Page::open(bytes).map_err(|detail| self.corrupt(page, detail))
    }

    /// The error of a page whose bytes do not make sense.
    #[cold]
    pub(crate) fn corrupt(&self, page: usize, detail: &str) -> Error {
        let unit = self.meta.get().map_or(0, |m| m.unit_of(page));
        corrupt_page(self.file_offset(u64::from(unit) * PAGE_BYTES as u64), self.info.id, unit, detail)
    }

    /// The record of a key, if this run has one.
    #[inline(always)]
    pub(crate) fn find(&self, key: SortKey<'_>) -> Result<Option<Hit<'_>>> {
        let Some(page_number) = self.meta()?.page_of(key) else { return Ok(None) };
        self.find_in(page_number, key)
    }

    /// The record of a key in one page.
    #[inline(always)]
    pub(crate) fn find_in(&self, page_number: usize, key: SortKey<'_>) -> Result<Option<Hit<'_>>> {
        let hold = self.page(page_number)?;
        let page = self.open_page(page_number, &hold)?;
        let (place, equal) = page.lower_bound(key);
        if !equal {
            return Ok(None);
        }
        let (tag, value) = page.value(place);
        let start = value.as_ptr() as usize - hold.as_ptr() as usize;
        let value = start..start + value.len();
        Ok(Some(Hit { page: hold, tag, value, page_number, place }))
    }

    /// Whether the file still holds what the cache was filled from; for `check`.
    pub(crate) fn extents_end_inside(&self, file_len: u64) -> Result<()> {
        match self.info.extents.iter().find(|e| e.offset + e.len > file_len) {
            None => Ok(()),
            Some(e) => Err(read_error(std::io::ErrorKind::UnexpectedEof.into(), e.offset)),
        }
    }
}
