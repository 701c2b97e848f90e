//! What is known of a page without a look into it: its checked header, and where its keys lie.
//!
//! A guide is made once, when a page is read, and takes one cache line. So a lookup need not check the header
//! again, nor wait for the header's line. It guesses from the guide where the record is, prefetches the few
//! lines of keys and values around that place at once, and searches from there.
//!
//! # The guess
//!
//! The span of the page's heads is cut into sixteen equal segments. A mark says which part of the records, in
//! 255ths, lies before the end of a segment. Between two marks the keys are taken to be evenly spread. For a
//! page of a thousand random keys, the worst miss of a straight line from the first key to the last is 16
//! places on average (the keys' deviation is a Brownian bridge). With marks it is 4 places: one or two cache
//! lines.

use super::block::{Fixed, Tag};
use super::expiry::WORD_BYTES;
use super::packed::Packed;
use super::page::{
    EXPIRIES_HEADER_BYTES, HEADER_BYTES, REFUSED_BYTES_MIN, SHAPE_EXPIRING, SHAPE_GENERAL, TAGS_DIFFER,
    TAIL_BYTES,
};
use super::search::bisect;
use crate::base::codec::{u16_at, u32_at, u32_of, u64_at, usize_of, usize_of64};

/// Into how many segments the span of the heads is cut.
const SEGMENTS: usize = 16;
/// A place is counted in fractions of a segment of this many bits.
const FRACTION_BITS: u32 = 8;
/// The end of the last segment, in those fractions.
const SPAN_UNITS: usize = SEGMENTS << FRACTION_BITS;
/// The mark that stands for all records.
const MARK_MAX: usize = 255;
/// If no mark is farther than this from a straight line, the keys are evenly spread, as hashes are.
const EVEN_MARKS: usize = 32;
/// A bit of `shift`: the keys are not evenly spread.
const UNEVEN: u8 = 0x80;
/// A bit of `tag`: the page is general. The next one: it has a column of expiries. The other bits are the tag
/// of all records, or `MIXED`.
const GENERAL: u8 = 0x80;
const EXPIRING: u8 = 0x40;
const MIXED: u8 = 0x3f;
/// The most to prefetch of one column; below, of all columns of a page whose keys are not evenly spread.
const COLUMN_BYTES_MAX: usize = 4 * LINE_BYTES;
const COLUMNS_BYTES_MAX: usize = 16 * LINE_BYTES;
/// The most to prefetch of values of which one is wanted. Random gets of 1,000 bytes take 0.84 to 0.87 of the
/// time, of 500 bytes 0.87 to 0.89 (800 MB, one level; a program that switched between both, not kept).
const VALUE_BYTES_MAX: usize = 16 * LINE_BYTES;
const LINE_BYTES: usize = 64;
/// How many places a guess may be off: so many, and one more for each so many records of the page. It is
/// about twice the deviation of evenly spread keys between two marks. With half of it gets of 8 + 8 bytes
/// from an ordered table took 1.05 times as long (10M records, two pairs).
const OFF_MIN: usize = 2;
const OFF_PART: usize = 192;

/// What is known of one page. All zeros is the guide of no page.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Guide {
    base: u64,
    slope: u64,
    /// Turns a distance between heads into fractions of a segment: the distance, shifted left by `shift`,
    /// times `density`, divided by 2^64. The shift gives the span its highest bit.
    density: u32,
    /// Where the heads begin. `heap_at`: where the values (fixed) or the heap (general) begin.
    heads_at: u32,
    heap_at: u32,
    /// Fixed: the length of each value. General: the slope of the ends.
    stride: u32,
    lens_base: u32,
    ends_base: u32,
    n: u16,
    /// The mark at the start of each segment and at the end of the last. They ascend.
    marks: [u8; SEGMENTS + 1],
    shift: u8,
    heads_width: u8,
    lens_width: u8,
    ends_width: u8,
    tag: u8,
}

const _: () = assert!(size_of::<Guide>() == LINE_BYTES);

impl Guide {
    /// The guide of no page.
    pub(crate) const NONE: Guide = Guide {
        base: 0,
        slope: 0,
        density: 0,
        heads_at: 0,
        heap_at: 0,
        stride: 0,
        lens_base: 0,
        ends_base: 0,
        n: 0,
        marks: [0; SEGMENTS + 1],
        shift: 0,
        heads_width: 0,
        lens_width: 0,
        ends_width: 0,
        tag: 0,
    };

    /// Reads the header of a page, without marks: enough to decode the page. `bytes` are whole units. `Err`
    /// says what is wrong. On success every column lies inside `bytes`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Guide, &'static str> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Err("page without a header") };
        let n = u16_at(header, 6);
        let heads =
            Packed { base: u64_at(header, 8), slope: u64_at(header, 16), width: u32::from(header[24]) };
        let shape = header[5];
        if heads.width > 64 || n == 0 || header[4] != 1 || shape > SHAPE_GENERAL | SHAPE_EXPIRING {
            return Err("page header out of range");
        }
        let mut guide = Guide {
            base: heads.base,
            slope: heads.slope,
            heads_at: HEADER_BYTES as u32,
            stride: u32_at(header, 28),
            n,
            heads_width: header[24],
            tag: header[27],
            ..Guide::NONE
        };
        let expiring = (shape & SHAPE_EXPIRING != 0).then_some(bytes);
        let end = match shape & SHAPE_GENERAL {
            0 => guide.lay_out_fixed(expiring)?,
            _ => guide.lay_out_general(header, expiring)?,
        };
        if end > bytes.len() - TAIL_BYTES {
            return Err("columns pass the end of the page");
        }
        Ok(guide)
    }

    /// Lays out the columns. Returns where the last one ends. `expiring`: the bytes of a page with a column
    /// of expiries.
    fn lay_out_fixed(&mut self, expiring: Option<&[u8]>) -> Result<usize, &'static str> {
        let is_of_one = Tag::from_code(self.tag).ok_or("unknown tag")? == Tag::Expiring;
        if is_of_one != expiring.is_some() {
            return Err("records expire without a column for that, or do not with one");
        }
        let mut heap_at = HEADER_BYTES + self.heads().bytes(self.len());
        if let Some(bytes) = expiring {
            self.tag |= EXPIRING;
            heap_at += expiries_bytes(bytes, heap_at, self.len())?;
        }
        self.heap_at = u32_of(heap_at);
        // No overflow: n < 2^16, and the stride has 32 bits.
        Ok(heap_at + usize_of(self.stride) * self.len())
    }

    /// As `lay_out_fixed`. Returns where the heap begins; the heap may have any length.
    fn lay_out_general(
        &mut self,
        header: &[u8; HEADER_BYTES],
        expiring: Option<&[u8]>,
    ) -> Result<usize, &'static str> {
        let n = self.len();
        (self.lens_width, self.ends_width) = (header[25], header[26]);
        if self.lens_width > 64 || self.ends_width > 64 {
            return Err("column width out of range");
        }
        let tags = match self.tag {
            TAGS_DIFFER => n.div_ceil(4),
            code => match (Tag::from_code(code).ok_or("unknown tag")?, expiring) {
                (Tag::Expiring, None) => return Err("records expire without a column for that"),
                _ => 0,
            },
        };
        self.tag = GENERAL | if self.tag == TAGS_DIFFER { MIXED } else { self.tag };
        self.lens_base = u32_at(header, 36);
        self.ends_base = u32_at(header, 40);
        self.stride = u32_at(header, 44);
        let prefix_len = usize_of(u32_at(header, 28));
        if n > 1 && prefix_len.saturating_mul(n) > REFUSED_BYTES_MIN {
            return Err("a prefix too long for so many records");
        }
        let heads_at = prefix_len.saturating_add(HEADER_BYTES);
        let columns = self.heads().bytes(n) + self.lens().bytes(n) + self.ends().bytes(n);
        let mut heap_at = heads_at.saturating_add(columns);
        if let Some(bytes) = expiring {
            self.tag |= EXPIRING;
            heap_at += expiries_bytes(bytes, heap_at, n)?;
        }
        let heap_at = heap_at.saturating_add(tags);
        self.heads_at = u32::try_from(heads_at).map_err(|_| "prefix passes the end of the page")?;
        self.heap_at = u32::try_from(heap_at).map_err(|_| "columns pass the end of the page")?;
        Ok(heap_at)
    }

    /// As `read`, with marks as if the keys were evenly spread. For lookups that touch as little of the page
    /// as they can.
    pub(crate) fn read_even(bytes: &[u8]) -> Result<Guide, &'static str> {
        let mut guide = Guide::read(bytes)?;
        guide.measure(&bytes[usize_of(guide.heads_at)..]);
        for (i, mark) in guide.marks.iter_mut().enumerate() {
            *mark = (i * MARK_MAX / SEGMENTS) as u8;
        }
        Ok(guide)
    }

    /// Sets `shift` and `density`. Returns the span of the heads in `bits`.
    fn measure(&mut self, bits: &[u8]) -> u64 {
        let heads = self.heads();
        // The line may begin below zero. So distances from it are compared, and not the heads.
        let span = heads.get(bits, self.len() - 1).wrapping_sub(heads.base).max(1);
        self.shift = span.leading_zeros() as u8;
        let density = ((SPAN_UNITS as u128) << 64) / u128::from(span << self.shift);
        self.density = u32::try_from(density).unwrap_or(u32::MAX);
        span
    }

    /// A guide that holds a page number as its record count, and nothing else.
    #[cfg(test)]
    pub(crate) fn numbered(page: u32) -> Guide {
        Guide { n: u16::try_from(page + 1).unwrap_or(u16::MAX), ..Guide::NONE }
    }

    /// As `read`, with marks, for lookups.
    pub(crate) fn read_marked(bytes: &[u8]) -> Result<Guide, &'static str> {
        let mut guide = Guide::read(bytes)?;
        let (heads, bits, n) = (guide.heads(), &bytes[usize_of(guide.heads_at)..], guide.len());
        let above = |i: usize| heads.get(bits, i).wrapping_sub(heads.base);
        let span = guide.measure(bits);
        for (i, before) in (0..SEGMENTS).zip(1..) {
            let end = span / SEGMENTS as u64 * before;
            let rank = if i + 1 < SEGMENTS { bisect(0, n, end, above) } else { n };
            let mark = (rank * MARK_MAX + n / 2) / n;
            guide.marks[i + 1] = u8::try_from(mark).unwrap_or(u8::MAX).max(guide.marks[i]);
            if usize::from(guide.marks[i + 1]).abs_diff((i + 1) * MARK_MAX / SEGMENTS) > EVEN_MARKS {
                guide.shift |= UNEVEN;
            }
        }
        Ok(guide)
    }

    /// How many records the page has.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.n)
    }

    /// The widths of a fixed page. None for a general one.
    #[inline(always)]
    pub(crate) fn fixed(&self) -> Option<Fixed> {
        if self.is_general() {
            return None;
        }
        let word = if self.is_expiring() { WORD_BYTES } else { 0 };
        Some(Fixed { stride: self.stride + u32_of(word), tag: self.common_tag() })
    }

    /// Whether the page has a column of expiries.
    #[inline(always)]
    pub(crate) fn is_expiring(&self) -> bool {
        self.tag & EXPIRING != 0
    }

    /// Where that column begins, with its header.
    pub(crate) fn expiries_at(&self) -> usize {
        let (at, n) = (self.heads_at() + self.heads().bytes(self.len()), self.len());
        if self.is_general() { at + self.lens().bytes(n) + self.ends().bytes(n) } else { at }
    }

    #[inline(always)]
    pub(crate) fn is_general(&self) -> bool {
        self.tag & GENERAL != 0
    }

    /// The tag of all records. REQUIRES: not `tags_differ`.
    #[inline(always)]
    pub(crate) fn common_tag(&self) -> Tag {
        Tag::from_code(self.tag & MIXED).unwrap_or(Tag::Tombstone)
    }

    #[inline(always)]
    pub(crate) fn tags_differ(&self) -> bool {
        self.tag & !EXPIRING == GENERAL | MIXED
    }

    /// The length of each value of a fixed page.
    #[inline(always)]
    pub(crate) fn stride(&self) -> usize {
        usize_of(self.stride)
    }

    #[inline(always)]
    pub(crate) fn heads(&self) -> Packed {
        Packed { base: self.base, slope: self.slope, width: u32::from(self.heads_width) }
    }

    #[inline(always)]
    pub(crate) fn lens(&self) -> Packed {
        Packed { base: u64::from(self.lens_base), slope: 0, width: u32::from(self.lens_width) }
    }

    #[inline(always)]
    pub(crate) fn ends(&self) -> Packed {
        // Signed: the line may begin below zero, if the first parts are shorter than the mean.
        let base = i64::from(self.ends_base.cast_signed()).cast_unsigned();
        Packed { base, slope: u64::from(self.stride), width: u32::from(self.ends_width) }
    }

    #[inline(always)]
    pub(crate) fn heads_at(&self) -> usize {
        usize_of(self.heads_at)
    }

    #[inline(always)]
    pub(crate) fn heap_at(&self) -> usize {
        usize_of(self.heap_at)
    }

    /// The likely place of a head, below `len()`. REQUIRES: the guide has marks.
    #[inline(always)]
    pub(crate) fn place_of(&self, head: u64) -> usize {
        let units = self.units(head.wrapping_sub(self.base)).min(SPAN_UNITS - 1);
        let segment = units >> FRACTION_BITS;
        let fraction = units & ((1 << FRACTION_BITS) - 1);
        let (low, high) = (usize::from(self.marks[segment]), usize::from(self.marks[segment + 1]));
        let part = (low << FRACTION_BITS) + (high - low) * fraction;
        // A division by 255 * 256.
        ((part * self.len() * 257) >> 24).min(self.len() - 1)
    }

    /// Whether the keys are so evenly spread that a guess is better than halving.
    #[inline(always)]
    pub(crate) fn is_even(&self) -> bool {
        self.shift & UNEVEN == 0
    }

    /// The number of places that corresponds to a distance between heads.
    #[inline(always)]
    pub(crate) fn places(&self, distance: u64) -> usize {
        self.units(distance) * self.len() / SPAN_UNITS
    }

    /// A distance in fractions of a segment. For a distance longer than the span the result may be anything
    /// up to twice the span's: the key is outside the page, and a bad guess only costs steps.
    #[inline(always)]
    fn units(&self, distance: u64) -> usize {
        let normal = distance << (self.shift & 63);
        usize_of64(((u128::from(normal) * u128::from(self.density)) >> 64) as u64)
    }

    /// Calls `send` with a byte of each line that a lookup with the guess `place` will likely read. `whole`:
    /// the record is likely here, and more of a long value is asked for.
    #[inline(always)]
    pub(crate) fn lines_around(&self, place: usize, whole: bool, mut send: impl FnMut(usize)) {
        let heads_at = self.heads_at();
        if heads_at > HEADER_BYTES {
            // The prefix is compared first.
            send(HEADER_BYTES);
        }
        if self.is_general() && !self.is_even() {
            return lines(heads_at, self.heap_at(), COLUMNS_BYTES_MAX, &mut send);
        }
        let off = OFF_MIN + self.len() / OFF_PART;
        let (from, to) = (place.saturating_sub(off), (place + off + 1).min(self.len()));
        let width = usize::from(self.heads_width);
        if width > 0 {
            lines(heads_at + from * width / 8, heads_at + to * width / 8, COLUMN_BYTES_MAX, &mut send);
        }
        if self.is_general() {
            let lens_at = heads_at + self.heads().bytes(self.len());
            let ends_at = lens_at + self.lens().bytes(self.len());
            if self.lens_width > 0 {
                send(lens_at + place * usize::from(self.lens_width) / 8);
            }
            if self.ends_width > 0 {
                send(ends_at + place * usize::from(self.ends_width) / 8);
            }
        }
        let (mut first, last) = (self.likely_start(from), self.likely_start(to));
        if last.saturating_sub(first) > COLUMN_BYTES_MAX {
            // From the likeliest record on, and from a little before a short one.
            let before = COLUMN_BYTES_MAX.saturating_sub(self.stride()) / 2;
            first = self.likely_start(place).saturating_sub(before);
        }
        let heap_bytes = if whole { VALUE_BYTES_MAX } else { COLUMN_BYTES_MAX };
        lines(self.heap_at() + first, self.heap_at() + last, heap_bytes, &mut send);
    }

    /// Where record `i` likely begins, from the heap's start: exact where all are of one length, else no
    /// later than it does. (Half of the residuals' range later, gets of text took 1.09 times as long: hash,
    /// three pairs.)
    #[inline(always)]
    fn likely_start(&self, i: usize) -> usize {
        if !self.is_general() {
            return i * self.stride();
        }
        let ends = self.ends();
        let line = ends.base.wrapping_add(ends.slope.wrapping_mul(i as u64)).wrapping_sub(ends.slope);
        usize_of64(line.cast_signed().max(0).cast_unsigned())
    }
}

/// The bytes of a column of `n` expiries that begins at `at`, with its header.
fn expiries_bytes(bytes: &[u8], at: usize, n: usize) -> Result<usize, &'static str> {
    match bytes.get(at) {
        Some(&width @ 0..=64) => Ok(EXPIRIES_HEADER_BYTES + (n * usize::from(width)).div_ceil(8)),
        Some(_) => Err("column width out of range"),
        None => Err("columns pass the end of the page"),
    }
}

/// Sends a byte of each line of a range, or of the range's first `bytes_max` bytes.
#[inline(always)]
fn lines(from: usize, to: usize, bytes_max: usize, send: &mut impl FnMut(usize)) {
    let to = to.min(from + bytes_max);
    let mut at = from;
    while at + 1 < to {
        send(at);
        at += LINE_BYTES;
    }
    send(to);
}
