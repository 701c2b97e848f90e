//! The page: the unit in which runs are written, read and cached. Builder and reader are twins.
//!
//! ```text
//! offset size
//!  0     4   CRC32C of bytes 4.. of the page, seeded by file, run and page number
//!  4     1   type: 1 = records
//!  5     1   shape: 0 = fixed, 1 = general; 2 more with a column of expiries
//!  6     2   records in the page
//!  8     8   heads: base        16  8  heads: slope      24  1  heads: width in bits
//! 25     1   key lengths: width 26  1  ends: width       27  1  tag of all records, or 255
//! 28     4   length of every value (fixed), of the common prefix (general)
//! 32     4   its number: the first of its units in the run
//! 36     4   key lengths: base  40  4  ends: base, signed 44 4  ends: slope
//! 48     3   bytes used         51  1  units, of 16 or 4 KiB (over 1 only for a record that needs it)
//! 52     4   table, and 2^31 if that is a hash table
//! 56     8   run
//! 64         fixed:   heads | values
//!            general: common prefix | heads | key lengths | ends | tags (2 bits) | heap
//!            expiries, behind the heads or the ends: u8 width | u64 base | residuals
//! ```
//!
//! A packed column is a line and residuals (see `packed`). In a general page the head of a key is the eight
//! bytes after the common prefix, padded with zeros. The heap holds, record after record, the rest of the key
//! and then the value; `ends` says where each record's part ends. A width of zero makes lengths that do not
//! vary free. The last 16 bytes of a page are never used, so that any residual can be read as 16 bytes.
//! Number, table and run are there for `salvage`, which may have nothing but the page. Other readers know
//! them from the manifest, and the checksum holds only if they are right.

mod builder;
mod expiring;
mod layout;

use super::block::{Block, Tag};
use super::guide::Guide;
use super::packed::Packed;
use super::search::{bisect, lower_bound_from};
use super::unpacked::Unpacked;
use crate::base::checksum::{crc, page_seed};
use crate::base::codec::{u32_at, u64_at, usize_of};
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::key::{SortKey, TableKind, head_after, head_of};
use crate::base::limits::{INLINE_VALUE_BYTES_MAX, KEY_BYTES_MAX, PAGE_BYTES, SMALL_PAGE_BYTES};
use crate::base::prefetch::prefetch_lines;
use std::cmp::Ordering;
use std::ops::Range;

pub(crate) use builder::{GeneralBuilder, build_fixed};
pub(super) use layout::REFUSED_BYTES_MIN;
pub(super) use layout::{EXPIRIES_HEADER_BYTES, SHAPE_EXPIRING, SHAPE_GENERAL, TAGS_DIFFER};
pub(crate) use layout::{HEADER_BYTES, SHAPE_MAX, TAIL_BYTES};
use layout::{RECORDS_MAX, UNPACKED_BYTES_MAX, room_bytes};

/// No page is larger. It has room for the longest sort key, the longest inline value and the header.
const LARGEST_BYTES: usize = 6 * PAGE_BYTES;

const _: () =
    assert!(KEY_BYTES_MAX + 8 + 8 + INLINE_VALUE_BYTES_MAX + 2 * HEADER_BYTES + PAGE_BYTES <= LARGEST_BYTES);
const _: () = assert!(LARGEST_BYTES / SMALL_PAGE_BYTES <= u8::MAX as usize && LARGEST_BYTES < 1 << 24);
const _: () =
    assert!(LARGEST_BYTES.is_multiple_of(PAGE_BYTES) && PAGE_BYTES.is_multiple_of(SMALL_PAGE_BYTES));

/// A number of records, with values of `stride` bytes, that surely fills a page.
pub(crate) fn records_to_fill(stride: usize, unit_bytes: usize) -> usize {
    (room_bytes(unit_bytes) / stride.max(1) + 1).min(RECORDS_MAX)
}

/// Filter pages are numbered from here on, for their checksums. Numbers of data units are below.
pub(crate) const FILTER_PAGE_BASE: u32 = 1 << 31;
/// Blocks in a filter page.
pub(crate) const BLOCKS_PER_PAGE: u64 = 255;

/// Where a page of records belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageIdentity {
    pub(crate) table: u32,
    pub(crate) kind: TableKind,
    pub(crate) run: u64,
    /// The number of the page's first unit in the run.
    pub(crate) number: u32,
}

/// A bit of the table field: the table is a hash table.
const IS_HASH: u32 = 1 << 31;

/// The number by which a page or a meta block names its table.
pub(crate) fn table_of(table: u32, kind: TableKind) -> u32 {
    debug_assert!(table < IS_HASH, "ids of tables have 31 bits");
    table | if kind == TableKind::Hash { IS_HASH } else { 0 }
}

/// The inverse of `table_of`.
pub(crate) fn split_table(table: u32) -> (u32, TableKind) {
    (table & !IS_HASH, if table & IS_HASH == 0 { TableKind::Ordered } else { TableKind::Hash })
}

impl PageIdentity {
    fn write(self, page: &mut [u8]) {
        page[32..36].copy_from_slice(&self.number.to_le_bytes());
        page[52..56].copy_from_slice(&table_of(self.table, self.kind).to_le_bytes());
        page[56..64].copy_from_slice(&self.run.to_le_bytes());
    }

    /// The identity in the header of a page. REQUIRES: `page` has at least a header.
    pub(crate) fn read(page: &[u8]) -> PageIdentity {
        let (table, kind) = split_table(u32_at(page, 52));
        PageIdentity { table, kind, run: u64_at(page, 56), number: u32_at(page, 32) }
    }
}

/// Completes a page of records: writes its identity and its checksum. `page` is all units of it.
pub(crate) fn seal_records(page: &mut [u8], run_seed: u32, place: PageIdentity) {
    place.write(page);
    seal(page, run_seed, place.number);
}

/// Writes the checksum of a page of any type. `page` is all units of it.
pub(crate) fn seal(page: &mut [u8], run_seed: u32, number: u32) {
    let sum = crc(page_seed(run_seed, number), &page[4..]);
    page[..4].copy_from_slice(&sum.to_le_bytes());
}

/// Checks the checksum. `Err((expected, found))` if it does not hold.
pub(crate) fn verify(page: &[u8], run_seed: u32, number: u32) -> std::result::Result<(), (u32, u32)> {
    if fault!("skip_page_checksum") {
        return Ok(());
    }
    let expected = u32_at(page, 0);
    let found = crc(page_seed(run_seed, number), &page[4..]);
    if crate::base::checksum::is_ignored() || expected == found { Ok(()) } else { Err((expected, found)) }
}

/// How many units the largest page has.
pub(crate) const fn units_max(unit_bytes: usize) -> usize {
    LARGEST_BYTES / unit_bytes
}

/// How many units a page has, by its header. None if that number is impossible.
pub(crate) fn units_of(header: &[u8], unit_bytes: usize) -> Option<usize> {
    let units = usize::from(header[51]);
    (1..=units_max(unit_bytes)).contains(&units).then_some(units)
}

/// How many bytes of a page are used, by its header. The bytes behind them are zero.
pub(crate) fn used_of(header: &[u8]) -> usize {
    usize_of(u32_at(header, 48) & 0xff_ffff)
}

/// A page whose header was checked against its size, so that every column lies inside. If the checksum was
/// forged, its records may be nonsense: lookups stay in bounds and fail.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    bytes: &'a [u8],
    guide: &'a Guide,
}

impl<'a> Page<'a> {
    /// The page in `bytes`. REQUIRES: `guide` was read from these bytes.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8], guide: &'a Guide) -> Page<'a> {
        Page { bytes, guide }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.guide.len()
    }

    /// The bytes with which all keys of a general page begin. Empty for a fixed page.
    #[inline(always)]
    pub(crate) fn prefix(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..self.guide.heads_at()]
    }

    #[inline(always)]
    fn head(&self, i: usize) -> u64 {
        self.guide.heads().get(&self.bytes[self.guide.heads_at()..], i)
    }

    /// The likely place of a key, to search from. REQUIRES: the guide has marks.
    #[inline(always)]
    pub(crate) fn guess(&self, key: SortKey<'_>) -> usize {
        let skip = self.guide.heads_at() - HEADER_BYTES;
        let head = match key.bytes.get(skip..) {
            _ if skip == 0 => key.head,
            Some(rest) => head_of(rest),
            None => 0,
        };
        self.guide.place_of(head)
    }

    /// Calls `send` with a byte of each line that a search from `guess` will likely read, and with more of a
    /// long value if `whole`.
    #[inline(always)]
    pub(crate) fn lines_around(&self, guess: usize, whole: bool, send: impl FnMut(usize)) {
        self.guide.lines_around(guess, whole, send);
    }

    /// The first record at or above `key`, and whether it is equal to it. REQUIRES: `guess < len()`.
    #[inline(always)]
    pub(crate) fn lower_bound(&self, key: SortKey<'_>, guess: usize) -> (usize, bool) {
        if self.guide.is_general() {
            return self.lower_bound_general(key, guess);
        }
        let i = self.lower_bound_head(key.head, guess);
        if i >= self.len() || self.head(i) != key.head {
            return (i, false);
        }
        match key.bytes.len().cmp(&8) {
            Ordering::Less => (i, false),
            Ordering::Equal => (i, true),
            Ordering::Greater => (i + 1, false),
        }
    }

    #[inline(always)]
    fn lower_bound_head(&self, head: u64, guess: usize) -> usize {
        let (guide, heads) = (self.guide, self.guide.heads());
        let bits = &self.bytes[guide.heads_at()..];
        lower_bound_from(guide.len(), head, guess, |d| guide.places(d), |i| heads.get(bits, i))
    }

    fn lower_bound_general(&self, key: SortKey<'_>, guess: usize) -> (usize, bool) {
        let prefix = self.prefix();
        let shared = &key.bytes[..key.bytes.len().min(prefix.len())];
        match shared.cmp(prefix) {
            Ordering::Less => return (0, false),
            Ordering::Greater => return (self.len(), false),
            Ordering::Equal => {}
        }
        let wanted = head_after(key.bytes, prefix.len());
        let even = self.guide.is_even();
        let mut i = if even { self.lower_bound_head(wanted, guess) } else { self.bisect_heads(wanted) };
        if i < self.len() && self.head(i) == wanted {
            // The rest of the key and the value are likely wanted next. `lines_around` may not cover them.
            prefetch_lines(self.part(i).1);
        }
        let mut end = i;
        let mut step = 1;
        while end < self.len() && self.head(end) == wanted {
            end = (end + step).min(self.len());
            step *= 2;
        }
        while i < end {
            let middle = i + (end - i) / 2;
            match self.compare_rest(middle, wanted, key.bytes, prefix.len()) {
                Ordering::Less => i = middle + 1,
                Ordering::Equal => return (middle, true),
                Ordering::Greater => end = middle,
            }
        }
        (i, false)
    }

    /// As `lower_bound_head`, by halving. Where keys are not evenly spread, as in text, no guess is better.
    fn bisect_heads(&self, head: u64) -> usize {
        let heads = self.guide.heads();
        let bits = &self.bytes[self.guide.heads_at()..];
        bisect(0, self.len(), head, |i| heads.get(bits, i))
    }

    /// Compares record `i` with a key that shares the page's prefix.
    fn compare_rest(&self, i: usize, head: u64, key: &[u8], prefix_len: usize) -> Ordering {
        let by_head = self.head(i).cmp(&head);
        if by_head != Ordering::Equal {
            return by_head;
        }
        let skip = prefix_len + 8;
        let (key_len, part) = self.part(i);
        if key_len < skip || key.len() < skip {
            return key_len.cmp(&key.len());
        }
        part[..(key_len - skip).min(part.len())].cmp(&key[skip..])
    }

    /// The length of key `i`, and the record's part of the heap. The part is kept in bounds.
    #[inline(always)]
    fn part(&self, i: usize) -> (usize, &'a [u8]) {
        let heap = &self.bytes[self.guide.heap_at()..self.bytes.len() - TAIL_BYTES];
        let (lens, lens_bits, ends, ends_bits) = self.columns();
        let key_len = crate::base::codec::usize_of64(lens.get(lens_bits, i));
        let start = if i == 0 { 0 } else { ends.get(ends_bits, i - 1) };
        let end = ends.get(ends_bits, i).min(heap.len() as u64);
        let start = start.min(end);
        (key_len, &heap[start as usize..end as usize])
    }

    #[inline(always)]
    fn tag_general(&self, i: usize) -> Tag {
        if !self.guide.tags_differ() {
            return self.guide.common_tag();
        }
        // The tags stand just before the heap.
        let at = self.guide.heap_at() - self.len().div_ceil(4);
        match Tag::from_code((self.bytes[at + i / 4] >> (i % 4 * 2)) & 3) {
            Some(Tag::Expiring) if !self.guide.is_expiring() => Tag::Tombstone,
            tag => tag.unwrap_or(Tag::Tombstone),
        }
    }

    /// Whether record `i` has this key. REQUIRES: `i < len()`.
    #[inline(always)]
    pub(crate) fn key_is(&self, i: usize, key: SortKey<'_>) -> bool {
        if !self.guide.is_general() {
            return key.bytes.len() == 8 && self.head(i) == key.head;
        }
        let prefix = self.prefix();
        key.bytes.starts_with(prefix)
            && self.compare_rest(i, head_after(key.bytes, prefix.len()), key.bytes, prefix.len())
                == Ordering::Equal
    }

    /// Appends the records of `some` to `out`, which must be empty, as they are at `now`.
    pub(crate) fn unpack_some(
        &self,
        some: Range<usize>,
        now: u64,
        out: &mut Unpacked,
    ) -> std::result::Result<(), &'static str> {
        if self.guide.is_expiring() {
            return self.unpack_expiring(some, now, out);
        }
        self.unpack_stored(some, out)
    }

    /// As `unpack_some`, with the tags that are stored.
    #[inline(always)]
    fn unpack_stored(&self, some: Range<usize>, out: &mut Unpacked) -> std::result::Result<(), &'static str> {
        if self.guide.is_general() {
            return self.unpack_general(some, out);
        }
        let (heads, bits) = (self.guide.heads(), &self.bytes[self.guide.heads_at()..]);
        let (tag, stride) = (self.guide.common_tag(), self.guide.stride());
        let value_at = self.guide.heap_at() + some.start * stride;
        if heads.width > 57 {
            out.push_numbers(some.map(|i| heads.get(bits, i)), tag, value_at, stride);
        } else {
            out.push_numbers(heads.narrow(bits, some), tag, value_at, stride);
        }
        Ok(())
    }

    fn unpack_general(
        &self,
        some: Range<usize>,
        out: &mut Unpacked,
    ) -> std::result::Result<(), &'static str> {
        let prefix = self.prefix();
        let heap = &self.bytes[..self.bytes.len() - TAIL_BYTES];
        let heap_len = heap.len() - self.guide.heap_at();
        let (lens, lens_bits, ends, ends_bits) = self.columns();
        let heads = self.guide.heads();
        let heads_bits = &self.bytes[self.guide.heads_at()..];
        let mut start = if some.start == 0 { 0 } else { ends.get(ends_bits, some.start - 1) };
        for i in some {
            let key_len = crate::base::codec::usize_of64(lens.get(lens_bits, i));
            let end = ends.get(ends_bits, i).min(heap_len as u64);
            let at = self.guide.heap_at() + start.min(end) as usize;
            let part = &heap[at..self.guide.heap_at() + end as usize];
            let rest_len = key_len.saturating_sub(prefix.len() + 8);
            if !self.is_length(key_len) || rest_len > part.len() {
                return Err("key length out of range");
            }
            let first = out.keys.len();
            out.keys.extend_from_slice(prefix);
            out.keys.extend_from_slice(&heads.get(heads_bits, i).to_be_bytes());
            out.keys.extend_from_slice(&part[..rest_len]);
            out.keys.truncate(first + key_len);
            out.push_key_since(first, self.tag_general(i), at + rest_len..at + part.len());
            start = end;
        }
        Ok(())
    }

    /// The columns of key lengths and of ends, each with its bits.
    #[inline(always)]
    fn columns(&self) -> (Packed, &'a [u8], Packed, &'a [u8]) {
        let (guide, n) = (self.guide, self.len());
        let (lens, ends) = (guide.lens(), guide.ends());
        let lens_at = guide.heads_at() + guide.heads().bytes(n);
        let ends_at = lens_at + lens.bytes(n);
        (lens, &self.bytes[lens_at..], ends, &self.bytes[ends_at..])
    }

    /// Whether a key of the page may have this length.
    #[inline(always)]
    fn is_length(&self, key_len: usize) -> bool {
        (self.prefix().len()..=KEY_BYTES_MAX + 8).contains(&key_len)
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Tag and value of record `i`, without its word. REQUIRES: `i < len()`.
    #[inline(always)]
    pub(crate) fn value(&self, i: usize) -> (Tag, &'a [u8]) {
        if !self.guide.is_general() {
            let stride = self.guide.stride();
            let at = self.guide.heap_at() + i * stride;
            return (self.guide.common_tag(), &self.bytes[at..at + stride]);
        }
        let (key_len, part) = self.part(i);
        let skip = key_len.saturating_sub(self.prefix().len() + 8).min(part.len());
        (self.tag_general(i), &part[skip..])
    }

    /// Replaces the records of `out` by those of the page. `out` becomes fixed if the page is.
    pub(crate) fn decode(&self, out: &mut Block) -> std::result::Result<(), &'static str> {
        let (guide, n) = (self.guide, self.len());
        out.reset(guide.fixed());
        guide.heads().read(&self.bytes[guide.heads_at()..], n, &mut out.heads);
        if !guide.is_general() {
            let values = &self.bytes[guide.heap_at()..][..n * guide.stride()];
            if guide.is_expiring() {
                self.decode_expiring(values, out);
            } else {
                out.heap.extend_from_slice(values);
            }
            return Ok(());
        }
        let prefix = self.prefix();
        let skip = prefix.len() + 8;
        for i in 0..n {
            let (key_len, part) = self.part(i);
            if !self.is_length(key_len) || key_len.saturating_sub(skip) > part.len() {
                return Err("key length out of range");
            }
            let tag = self.tag_general(i);
            out.recs.push(super::block::Rec::new(out.heap.len(), key_len, tag));
            let head = out.heads[i].to_be_bytes();
            out.heap.extend_from_slice(prefix);
            out.heap.extend_from_slice(&head[..(key_len - prefix.len()).min(8)]);
            if tag == Tag::Expiring {
                let (rest, value) = part.split_at(key_len.saturating_sub(skip));
                out.heap.extend_from_slice(rest);
                out.heap.extend_from_slice(&self.word(i).to_le_bytes());
                out.heap.extend_from_slice(value);
            } else {
                out.heap.extend_from_slice(part);
            }
        }
        out.prefix_len = prefix.len();
        Ok(())
    }
}

/// The error for a bad page: says where it is.
pub(crate) fn corrupt_page(offset: u64, run: u64, page: u32, detail: impl std::fmt::Display) -> Error {
    Error::corrupt("page", offset, format!("run {run}, page {page}: {detail}"))
}

/// As `verify`, but returns an `Error`.
pub(crate) fn check(bytes: &[u8], seed: u32, run: u64, page: u32, offset: u64) -> Result<()> {
    verify(bytes, seed, page).map_err(|(expected, found)| {
        corrupt_page(offset, run, page, format_args!("checksum {found:08x}, expected {expected:08x}"))
    })
}

#[cfg(all(test, not(loom)))]
mod tests;
