//! The page: the unit in which runs are written, read and cached. Builder and reader are twins.
//!
//! ```text
//! offset size
//!  0     4   CRC32C of bytes 4.. of the page, seeded by file, run and page number
//!  4     1   type: 1 = records
//!  5     1   shape: 0 = fixed, 1 = general
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
//! ```
//!
//! A packed column is a line and residuals (see `packed`). In a general page the head of a key is
//! the eight bytes after the common prefix, zero-padded; the heap holds, record after record, what
//! follows of the key and then the value, and `ends` says where each record's part stops. Widths
//! of zero make lengths that do not vary free. The last 16 bytes of a page are never used, so that
//! a residual may be read as 16 bytes wherever it stands. Number, table and run are for whoever has nothing
//! but the page (`salvage`): readers know them from the manifest, and the checksum holds only where they are right.

use super::block::{Block, Fixed, Tag};
use super::guide::Guide;
use super::packed::Packed;
use super::search::{bisect, lower_bound_from};
use super::unpacked::Unpacked;
use crate::base::checksum::{crc, page_seed};
use crate::base::codec::{u32_at, u32_of, u64_at, usize_of};
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SortKey, common_prefix, head_after, head_of};
use crate::base::limits::{KEY_BYTES_MAX, PAGE_BYTES, SMALL_PAGE_BYTES};
use crate::base::prefetch::prefetch_lines;
use std::cmp::Ordering;
use std::ops::Range;

/// Where the columns begin.
pub(crate) const HEADER_BYTES: usize = 64;
/// Never used, so that wide reads stay inside.
pub(crate) const TAIL_BYTES: usize = 16;
/// A page of keys that cost nothing stops here.
const RECORDS_MAX: usize = 32_768;
/// `tag` of a page whose records differ.
pub(super) const TAGS_DIFFER: u8 = 255;
/// No page is larger: it holds the longest sort key, the longest inline value and the header.
const LARGEST_BYTES: usize = 6 * PAGE_BYTES;
/// Values from here on are never stored inline, whatever the options say.
pub(crate) const INLINE_VALUE_BYTES_MAX: usize = 8_192;

const _: () = assert!(KEY_BYTES_MAX + 8 + INLINE_VALUE_BYTES_MAX + 2 * HEADER_BYTES + PAGE_BYTES <= LARGEST_BYTES);
const _: () = assert!(LARGEST_BYTES / SMALL_PAGE_BYTES <= u8::MAX as usize && LARGEST_BYTES < 1 << 24);
const _: () = assert!(LARGEST_BYTES.is_multiple_of(PAGE_BYTES) && PAGE_BYTES.is_multiple_of(SMALL_PAGE_BYTES));

/// What a page of one unit can hold.
#[inline(always)]
const fn room_bytes(unit_bytes: usize) -> usize {
    unit_bytes - HEADER_BYTES - TAIL_BYTES
}

/// How many records of `stride`-byte values are surely enough to fill a page.
pub(crate) fn records_to_fill(stride: usize, unit_bytes: usize) -> usize {
    (room_bytes(unit_bytes) / stride.max(1) + 1).min(RECORDS_MAX)
}

/// Where a page of records belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) table: u32,
    pub(crate) kind: Kind,
    pub(crate) run: u64,
    /// The first of its units in the run.
    pub(crate) number: u32,
}

/// In the field of the table: it is a hash table.
const IS_HASH: u32 = 1 << 31;

/// The number by which a page or a meta block names its table.
pub(crate) fn table_of(table: u32, kind: Kind) -> u32 {
    debug_assert!(table < IS_HASH, "ids of tables have 31 bits");
    table | if kind == Kind::Hash { IS_HASH } else { 0 }
}

/// And back.
pub(crate) fn split_table(table: u32) -> (u32, Kind) {
    (table & !IS_HASH, if table & IS_HASH == 0 { Kind::Ordered } else { Kind::Hash })
}

impl Place {
    fn write(self, page: &mut [u8]) {
        page[32..36].copy_from_slice(&self.number.to_le_bytes());
        page[52..56].copy_from_slice(&table_of(self.table, self.kind).to_le_bytes());
        page[56..64].copy_from_slice(&self.run.to_le_bytes());
    }

    /// What the header of a page says. REQUIRES: `page` has at least a header.
    pub(crate) fn read(page: &[u8]) -> Place {
        let (table, kind) = split_table(u32_at(page, 52));
        Place { table, kind, run: u64_at(page, 56), number: u32_at(page, 32) }
    }
}

/// Completes a page of records: writes where it belongs and its checksum. `page` is all units of it.
pub(crate) fn seal_records(page: &mut [u8], run_seed: u32, place: Place) {
    place.write(page);
    seal(page, run_seed, place.number);
}

/// Writes the checksum of a page of any type. `page` is all units of it.
pub(crate) fn seal(page: &mut [u8], run_seed: u32, number: u32) {
    let sum = crc(page_seed(run_seed, number), &page[4..]);
    page[..4].copy_from_slice(&sum.to_le_bytes());
}

/// Whether the checksum holds: `Err((expected, found))` if not.
pub(crate) fn verify(page: &[u8], run_seed: u32, number: u32) -> std::result::Result<(), (u32, u32)> {
    #[cfg(azekura_canary)]
    if crate::base::canary::sings("skip_page_checksum") {
        return Ok(());
    }
    let expected = u32_at(page, 0);
    let found = crc(page_seed(run_seed, number), &page[4..]);
    if crate::base::checksum::is_ignored() || expected == found { Ok(()) } else { Err((expected, found)) }
}

/// How many records of `heads` go into the next fixed page. `hint` is the answer for the page
/// before; the guess that starts from it is nearly always right.
fn fixed_count(heads: &[u64], stride: usize, hint: usize, room_bytes: usize) -> (usize, Packed) {
    let room_for = |width: u32| {
        let bits = width as usize + stride * 8;
        (room_bytes * 8).checked_div(bits).map_or(RECORDS_MAX, |n| n.min(RECORDS_MAX))
    };
    let most = heads.len().min(room_for(0));
    let mut n = hint.clamp(1, most);
    let mut best = None;
    for _ in 0..6 {
        let packed = Packed::fit_ascending(&heads[..n]);
        let room = room_for(packed.width);
        if room >= n {
            best = Some((n, packed));
            let more = room.min(most);
            if more <= n + n / 64 {
                break;
            }
            n = more;
        } else {
            if best.is_some_and(|(b, _)| b >= room) {
                break;
            }
            n = room.max(1);
        }
    }
    best.unwrap_or_else(|| {
        let n = most.min(room_for(64)).max(1);
        (n, Packed::fit_ascending(&heads[..n]))
    })
}

/// Fills a zeroed page of one unit from fixed records; gives how many went in and how many bytes are used.
pub(crate) fn build_fixed(heads: &[u64], values: &[u8], fixed: Fixed, hint: usize, page: &mut [u8]) -> (usize, usize) {
    let stride = usize_of(fixed.stride);
    let (n, packed) = fixed_count(heads, stride, hint, room_bytes(page.len()));
    let at = HEADER_BYTES + packed.bytes(n);
    let used = at + n * stride;
    packed.write(&heads[..n], &mut page[HEADER_BYTES..at]);
    page[at..used].copy_from_slice(&values[..n * stride]);
    write_header(page, n, used, packed, 1);
    page[5] = 0;
    page[27] = fixed.tag as u8;
    page[28..32].copy_from_slice(&fixed.stride.to_le_bytes());
    (n, used)
}

fn write_header(page: &mut [u8], n: usize, used: usize, heads: Packed, units: usize) {
    page[4] = 1;
    page[6..8].copy_from_slice(&u32_of(n).to_le_bytes()[..2]);
    page[8..16].copy_from_slice(&heads.base.to_le_bytes());
    page[16..24].copy_from_slice(&heads.slope.to_le_bytes());
    page[24] = heads.width as u8;
    page[48..51].copy_from_slice(&u32_of(used).to_le_bytes()[..3]);
    page[51] = units as u8;
}

/// The columns of a general page, fitted to the first `n` records after `from`.
struct GeneralFit {
    n: usize,
    prefix_len: usize,
    heads: Packed,
    lens: Packed,
    ends: Packed,
    tag: u8,
    heap_bytes: usize,
    columns: Columns,
}

/// Scratch of the fit, kept between pages.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    heads: Vec<u64>,
    lens: Vec<u64>,
    ends: Vec<u64>,
}

impl GeneralFit {
    fn new(block: &Block, from: usize, n: usize, columns: Columns) -> GeneralFit {
        let (first, last) = (block.general_key(from), block.general_key(from + n - 1));
        let prefix_len = if n == 1 { first.len().saturating_sub(8) } else { common_prefix(first, last) };
        GeneralFit::with_prefix(block, from, n, columns, prefix_len)
    }

    fn with_prefix(block: &Block, from: usize, n: usize, mut columns: Columns, prefix_len: usize) -> GeneralFit {
        columns.heads.clear();
        columns.lens.clear();
        columns.ends.clear();
        let mut end = 0u64;
        let mut tag = block.tag(from) as u8;
        for i in from..from + n {
            let (key, record) = (block.general_key(i), block.general_bytes(i));
            if key.len() < prefix_len {
                // Only records of a forged page can be out of order; they have no prefix in common then.
                return GeneralFit::with_prefix(block, from, n, columns, 0);
            }
            columns.heads.push(head_after(key, prefix_len));
            columns.lens.push(key.len() as u64);
            end += (record.len() - key.len().min(prefix_len + 8)) as u64;
            columns.ends.push(end);
            if block.tag(i) as u8 != tag {
                tag = TAGS_DIFFER;
            }
        }
        GeneralFit {
            n,
            prefix_len,
            heads: Packed::fit_ascending(&columns.heads),
            lens: Packed::fit_any(&columns.lens),
            ends: Packed::fit_ascending(&columns.ends),
            tag,
            heap_bytes: crate::base::codec::usize_of64(end),
            columns,
        }
    }

    fn tags_bytes(&self) -> usize {
        if self.tag == TAGS_DIFFER { self.n.div_ceil(4) } else { 0 }
    }

    fn bytes(&self) -> usize {
        self.prefix_len
            + self.heads.bytes(self.n)
            + self.lens.bytes(self.n)
            + self.ends.bytes(self.n)
            + self.tags_bytes()
            + self.heap_bytes
    }
}

/// Builds general pages from a general block, remembering what the last page was like.
#[derive(Debug)]
pub(crate) struct GeneralBuilder {
    columns: Columns,
    hint: usize,
    unit_bytes: usize,
}

impl GeneralBuilder {
    /// A builder of pages of `unit_bytes`, or more where one record needs it.
    pub(crate) fn new(unit_bytes: usize) -> GeneralBuilder {
        GeneralBuilder { columns: Columns::default(), hint: 0, unit_bytes }
    }

    /// Appends the next page to `out`, from the records of `block` from `from` on; gives how many
    /// went in. A record too large for one unit gets a page of several units to itself.
    pub(crate) fn build(&mut self, block: &Block, from: usize, out: &mut Vec<u8>) -> (usize, usize) {
        let fit = self.fit(block, from);
        self.hint = fit.n;
        let units = (fit.bytes() + HEADER_BYTES + TAIL_BYTES).div_ceil(self.unit_bytes);
        let start = out.len();
        out.resize(start + units * self.unit_bytes, 0);
        let used = write_general(&fit, block, from, &mut out[start..], units);
        let n = fit.n;
        self.columns = fit.columns;
        (n, used)
    }

    /// The longest prefix of the records that fits a page, near enough: the search stops when less
    /// than an average record's room is left.
    fn fit(&mut self, block: &Block, from: usize) -> GeneralFit {
        let most = (block.len() - from).min(RECORDS_MAX);
        let room = room_bytes(self.unit_bytes);
        let (mut low, mut high) = (0, most + 1);
        let mut n = if self.hint == 0 { 64 } else { self.hint }.clamp(1, most);
        loop {
            let fit = GeneralFit::new(block, from, n, std::mem::take(&mut self.columns));
            let bytes = fit.bytes();
            let mean = (bytes / n).max(1);
            if bytes <= room || n == 1 {
                low = n;
                let more = if bytes >= room { 0 } else { (room - bytes) / mean };
                let next = (n + more.max(1)).min(high - 1);
                if next <= n || (more == 0 && high != most + 1) || bytes > room {
                    return fit;
                }
                n = next;
            } else {
                high = n;
                let less = (bytes - room).div_ceil(mean).max(1);
                n = n.saturating_sub(less).max(low).max(1);
            }
            if n == low && low > 0 {
                // The larger one did not fit; the fit for `low` must be made again.
                self.columns = fit.columns;
                return GeneralFit::new(block, from, low, std::mem::take(&mut self.columns));
            }
            self.columns = fit.columns;
        }
    }
}

fn write_general(fit: &GeneralFit, block: &Block, from: usize, page: &mut [u8], units: usize) -> usize {
    let n = fit.n;
    let mut at = HEADER_BYTES;
    page[at..at + fit.prefix_len].copy_from_slice(&block.general_key(from)[..fit.prefix_len]);
    at += fit.prefix_len;
    for (packed, column) in
        [(fit.heads, &fit.columns.heads), (fit.lens, &fit.columns.lens), (fit.ends, &fit.columns.ends)]
    {
        let len = packed.bytes(n);
        packed.write(&column[..n], &mut page[at..at + len]);
        at += len;
    }
    if fit.tag == TAGS_DIFFER {
        for i in 0..n {
            page[at + i / 4] |= (block.tag(from + i) as u8) << (i % 4 * 2);
        }
        at += fit.tags_bytes();
    }
    for i in from..from + n {
        let skip = block.general_key(i).len().min(fit.prefix_len + 8);
        let rest = &block.general_bytes(i)[skip..];
        page[at..at + rest.len()].copy_from_slice(rest);
        at += rest.len();
    }
    write_header(page, n, at, fit.heads, units);
    page[5] = 1;
    page[25] = fit.lens.width as u8;
    page[26] = fit.ends.width as u8;
    page[27] = fit.tag;
    page[28..32].copy_from_slice(&u32_of(fit.prefix_len).to_le_bytes());
    page[36..40].copy_from_slice(&(fit.lens.base as u32).to_le_bytes());
    page[40..44].copy_from_slice(&(fit.ends.base as u32).to_le_bytes());
    page[44..48].copy_from_slice(&(fit.ends.slope as u32).to_le_bytes());
    at
}

/// Units of the largest page.
pub(crate) const fn units_max(unit_bytes: usize) -> usize {
    LARGEST_BYTES / unit_bytes
}

/// How many units the page that starts with these bytes claims to have, if that is possible.
pub(crate) fn units_of(header: &[u8], unit_bytes: usize) -> Option<usize> {
    let units = usize::from(header[51]);
    (1..=units_max(unit_bytes)).contains(&units).then_some(units)
}

/// How many bytes of the page that starts with these are used, as it claims: those behind them are zero.
pub(crate) fn used_of(header: &[u8]) -> usize {
    usize_of(u32_at(header, 48) & 0xff_ffff)
}

/// A page whose header has been checked against its size, so that every column lies inside.
/// Its records may still be nonsense if the checksum was forged: lookups stay in bounds and fail.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    bytes: &'a [u8],
    guide: &'a Guide,
}

impl<'a> Page<'a> {
    /// The page of these bytes, of which `guide` was read.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8], guide: &'a Guide) -> Page<'a> {
        Page { bytes, guide }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.guide.len()
    }

    /// The bytes with which all keys of a general page begin; of a fixed page none.
    #[inline(always)]
    pub(crate) fn prefix(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..self.guide.heads_at()]
    }

    #[inline(always)]
    fn head(&self, i: usize) -> u64 {
        self.guide.heads().get(&self.bytes[self.guide.heads_at()..], i)
    }

    /// Where a key likely stands, to search from. REQUIRES: the guide has marks.
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

    /// Gives `send` a byte of each line that a search from a guess will likely read.
    #[inline(always)]
    pub(crate) fn lines_around(&self, guess: usize, send: impl FnMut(usize)) {
        self.guide.lines_around(guess, send);
    }

    /// The first record at or above `key`, and whether it is equal. REQUIRES: `guess < len()`.
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
            // The rest of the key and the value, which are likely wanted: guesses do not reach so far.
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

    /// As `lower_bound_head`, by halving: where keys are not evenly spread, as text is not, no guess
    /// beats it.
    fn bisect_heads(&self, head: u64) -> usize {
        let heads = self.guide.heads();
        let bits = &self.bytes[self.guide.heads_at()..];
        bisect(0, self.len(), head, |i| heads.get(bits, i))
    }

    /// Record `i` against a key that shares the page's prefix.
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

    /// The length of key `i`, and the record's part of the heap, kept in bounds.
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
        Tag::from_code((self.bytes[at + i / 4] >> (i % 4 * 2)) & 3).unwrap_or(Tag::Delete)
    }

    /// Whether record `i` has this key. REQUIRES: `i < len()`.
    #[inline(always)]
    pub(crate) fn key_is(&self, i: usize, key: SortKey<'_>) -> bool {
        if !self.guide.is_general() {
            return key.bytes.len() == 8 && self.head(i) == key.head;
        }
        let prefix = self.prefix();
        key.bytes.starts_with(prefix)
            && self.compare_rest(i, head_after(key.bytes, prefix.len()), key.bytes, prefix.len()) == Ordering::Equal
    }

    /// Appends some records to `out`, which has none.
    pub(crate) fn unpack_some(&self, some: Range<usize>, out: &mut Unpacked) -> std::result::Result<(), &'static str> {
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

    fn unpack_general(&self, some: Range<usize>, out: &mut Unpacked) -> std::result::Result<(), &'static str> {
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

    /// The columns of the keys' lengths and of the ends, each with its bits.
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

    /// Tag and value of record `i`. REQUIRES: `i < len()`.
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

    /// Appends all records to `out`, which becomes fixed if the page is and `out` is empty.
    pub(crate) fn decode(&self, out: &mut Block) -> std::result::Result<(), &'static str> {
        let (guide, n) = (self.guide, self.len());
        out.reset(guide.fixed());
        guide.heads().read(&self.bytes[guide.heads_at()..], n, &mut out.heads);
        if !guide.is_general() {
            let at = guide.heap_at();
            out.heap.extend_from_slice(&self.bytes[at..at + n * guide.stride()]);
            return Ok(());
        }
        let prefix = self.prefix();
        let skip = prefix.len() + 8;
        for i in 0..n {
            let (key_len, part) = self.part(i);
            if !self.is_length(key_len) || key_len.saturating_sub(skip) > part.len() {
                return Err("key length out of range");
            }
            out.recs.push(super::block::Rec::new(out.heap.len(), key_len, self.tag_general(i)));
            let head = out.heads[i].to_be_bytes();
            out.heap.extend_from_slice(prefix);
            out.heap.extend_from_slice(&head[..(key_len - prefix.len()).min(8)]);
            out.heap.extend_from_slice(part);
        }
        out.prefix_len = prefix.len();
        Ok(())
    }
}

/// Turns a complaint about a page into an error that says where.
pub(crate) fn corrupt_page(offset: u64, run: u64, page: u32, detail: impl std::fmt::Display) -> Error {
    Error::corrupt("page", offset, format!("run {run}, page {page}: {detail}"))
}

/// As `verify`, with the error made.
pub(crate) fn check(bytes: &[u8], seed: u32, run: u64, page: u32, offset: u64) -> Result<()> {
    verify(bytes, seed, page).map_err(|(expected, found)| {
        corrupt_page(offset, run, page, format_args!("checksum {found:08x}, expected {expected:08x}"))
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A forged page may give a merge keys of which one in the middle is shorter than what the first and the last share.
    #[test]
    fn keys_out_of_order_stay_as_they_are() {
        let mut block = Block::default();
        let keys: [&[u8]; 5] = [b"a long prefix, one", b"b", b"", b"a long", b"a long prefix, two"];
        for key in keys {
            block.push(key, Tag::Put, b"value");
        }
        let mut out = Vec::new();
        let (n, _) = GeneralBuilder::new(16 << 10).build(&block, 0, &mut out);
        assert_eq!(n, keys.len());
        let guide = Guide::read(&out).unwrap();
        let mut found = Block::default();
        Page::new(&out, &guide).decode(&mut found).unwrap();
        for (i, key) in keys.into_iter().enumerate() {
            assert_eq!((found.general_key(i), found.value(i)), (key, &b"value"[..]), "{i}");
        }
    }
}
