//! The writing side of the page, the twin of the reading side: which records go into it, and its columns.

use super::{
    EXPIRIES_HEADER_BYTES, HEADER_BYTES, RECORDS_MAX, SHAPE_EXPIRING, SHAPE_GENERAL, TAGS_DIFFER, TAIL_BYTES,
    UNPACKED_BYTES_MAX, room_bytes,
};
use crate::base::codec::{u32_of, u64_at, usize_of};
use crate::base::key::{common_prefix, head_after};
use crate::format::block::{Block, Fixed, Tag};
use crate::format::expiry::WORD_BYTES;
use crate::format::packed::Packed;

/// How many records of `heads` go into the next fixed page. `hint` is the answer for the page before; the
/// search starts from it and is nearly always right at once. `more` says what bits each of the first so many
/// records needs besides.
#[inline(always)]
fn fixed_count(
    heads: &[u64],
    stride: usize,
    hint: usize,
    room_bytes: usize,
    more: impl Fn(usize) -> u32,
) -> (usize, Packed) {
    let room_for = |width: u32| {
        let bits = width as usize + stride * 8;
        (room_bytes * 8).checked_div(bits).map_or(RECORDS_MAX, |n| n.min(RECORDS_MAX))
    };
    let most = heads.len().min(room_for(0));
    let mut n = hint.clamp(1, most);
    let mut best = None;
    for _ in 0..6 {
        let packed = Packed::fit_ascending(&heads[..n]);
        let room = room_for(packed.width + more(n));
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
        let n = most.min(room_for(64 + more(most))).max(1);
        (n, Packed::fit_ascending(&heads[..n]))
    })
}

/// Writes the column of expiries, with its header, to the zeroed start of `out`. Returns how long it is.
fn write_expiries(words: &[u64], packed: Packed, out: &mut [u8]) -> usize {
    let end = EXPIRIES_HEADER_BYTES + packed.bytes(words.len());
    out[0] = packed.width as u8;
    out[1..EXPIRIES_HEADER_BYTES].copy_from_slice(&packed.base.to_le_bytes());
    packed.write(words, &mut out[EXPIRIES_HEADER_BYTES..end]);
    end
}

/// As `build_fixed`, of records that expire.
fn build_expiring(
    heads: &[u64],
    values: &[u8],
    fixed: Fixed,
    hint: usize,
    page: &mut [u8],
) -> (usize, usize) {
    let (stored, stride) = (usize_of(fixed.stride), fixed.page_stride());
    // Of a page that holds many more than the one before some go to the next.
    let most = heads.len().min(hint.max(32) * 2);
    let words: Vec<u64> = values.chunks_exact(stored).take(most).map(|value| u64_at(value, 0)).collect();
    let room = room_bytes(page.len()) - EXPIRIES_HEADER_BYTES;
    let width = |n: usize| Packed::fit_any(&words[..n]).width;
    let (n, packed) = fixed_count(&heads[..words.len()], stride, hint, room, width);
    let mut at = HEADER_BYTES + packed.bytes(n);
    packed.write(&heads[..n], &mut page[HEADER_BYTES..at]);
    at += write_expiries(&words[..n], Packed::fit_any(&words[..n]), &mut page[at..]);
    for value in values.chunks_exact(stored).take(n) {
        page[at..at + stride].copy_from_slice(&value[WORD_BYTES..]);
        at += stride;
    }
    write_header(page, n, at, packed, 1);
    page[5] = SHAPE_EXPIRING;
    page[27] = fixed.tag as u8;
    page[28..32].copy_from_slice(&u32_of(stride).to_le_bytes());
    (n, at)
}

/// Fills a zeroed page of one unit from fixed records. Returns how many records and bytes it uses.
pub(crate) fn build_fixed(
    heads: &[u64],
    values: &[u8],
    fixed: Fixed,
    hint: usize,
    page: &mut [u8],
) -> (usize, usize) {
    if fixed.tag == Tag::Expiring {
        return build_expiring(heads, values, fixed, hint, page);
    }
    let stride = usize_of(fixed.stride);
    let (n, packed) = fixed_count(heads, stride, hint, room_bytes(page.len()), |_| 0);
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

/// The columns of a general page, fitted to `n` records.
struct GeneralFit {
    n: usize,
    prefix_len: usize,
    heads: Packed,
    lens: Packed,
    ends: Packed,
    /// If some of the records expire.
    expiries: Option<Packed>,
    tag: u8,
    heap_bytes: usize,
    columns: Columns,
}

/// Buffers for the columns, reused from page to page.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    heads: Vec<u64>,
    lens: Vec<u64>,
    ends: Vec<u64>,
    /// The words of the records that expire.
    words: Vec<u64>,
}

impl GeneralFit {
    fn new(block: &Block, from: usize, n: usize, columns: Columns) -> GeneralFit {
        let (first, last) = (block.general_key(from), block.general_key(from + n - 1));
        let prefix_len = if n == 1 { first.len().saturating_sub(8) } else { common_prefix(first, last) };
        GeneralFit::with_prefix(block, from, n, columns, prefix_len)
    }

    fn with_prefix(
        block: &Block,
        from: usize,
        n: usize,
        mut columns: Columns,
        prefix_len: usize,
    ) -> GeneralFit {
        columns.heads.clear();
        columns.lens.clear();
        columns.ends.clear();
        columns.words.clear();
        let mut end = 0u64;
        let mut tag = block.tag(from) as u8;
        for i in from..from + n {
            let (key, record) = (block.general_key(i), block.general_bytes(i));
            if key.len() < prefix_len {
                // Only a forged page has records out of order. They have no common prefix then.
                return GeneralFit::with_prefix(block, from, n, columns, 0);
            }
            columns.heads.push(head_after(key, prefix_len));
            columns.lens.push(key.len() as u64);
            end += (record.len() - key.len().min(prefix_len + 8)) as u64;
            if let Some(word) = block.word(i) {
                end -= WORD_BYTES as u64;
                columns.words.push(word);
            }
            columns.ends.push(end);
            if block.tag(i) as u8 != tag {
                tag = TAGS_DIFFER;
            }
        }
        let expiries = (!columns.words.is_empty()).then(|| Packed::fit_any(&columns.words));
        GeneralFit {
            n,
            prefix_len,
            expiries,
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
            + self.expiries.map_or(0, |e| EXPIRIES_HEADER_BYTES + e.bytes(self.n))
            + self.tags_bytes()
            + self.heap_bytes
    }
}

/// Builds general pages from a general block. Remembers how many records the last page had.
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

    /// Appends the next page to `out`, with records of `block` from `from` on. Returns how many records went
    /// in, and how many bytes of the page are used. A record too large for one unit gets a page of several
    /// units to itself.
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

    /// The columns of about as many records as fit into a page. The search stops when there is room for less
    /// than an average record.
    fn fit(&mut self, block: &Block, from: usize) -> GeneralFit {
        let most = most_records(block, from);
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
                // `n` records do not fit, but `low` did: make their fit again.
                self.columns = fit.columns;
                return GeneralFit::new(block, from, low, std::mem::take(&mut self.columns));
            }
            self.columns = fit.columns;
        }
    }
}

/// How many records of `block` from `from` on a page may have.
fn most_records(block: &Block, from: usize) -> usize {
    let recs = &block.recs[from..];
    let start = usize_of(recs[0].offset);
    let recs = &recs[..recs.len().min(RECORDS_MAX)];
    let fit = |bytes: usize| bytes - start <= UNPACKED_BYTES_MAX;
    // Where one record begins, those before it end.
    if fit(block.heap.len()) {
        recs.len()
    } else {
        recs.partition_point(|r| fit(usize_of(r.offset))).max(2) - 1
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
    if let Some(packed) = fit.expiries {
        // Those that do not expire have any word, one that costs nothing.
        let words: Vec<u64> = (from..from + n).map(|i| block.word(i).unwrap_or(packed.base)).collect();
        at += write_expiries(&words, packed, &mut page[at..]);
    }
    if fit.tag == TAGS_DIFFER {
        for i in 0..n {
            page[at + i / 4] |= (block.tag(from + i) as u8) << (i % 4 * 2);
        }
        at += fit.tags_bytes();
    }
    for i in from..from + n {
        let key_len = block.general_key(i).len();
        let mut rest = &block.general_bytes(i)[key_len.min(fit.prefix_len + 8)..];
        if block.word(i).is_some() {
            let (key_rest, value) = rest.split_at(key_len.saturating_sub(fit.prefix_len + 8));
            page[at..at + key_rest.len()].copy_from_slice(key_rest);
            at += key_rest.len();
            rest = &value[WORD_BYTES..];
        }
        page[at..at + rest.len()].copy_from_slice(rest);
        at += rest.len();
    }
    write_header(page, n, at, fit.heads, units);
    page[5] = SHAPE_GENERAL | if fit.expiries.is_some() { SHAPE_EXPIRING } else { 0 };
    page[25] = fit.lens.width as u8;
    page[26] = fit.ends.width as u8;
    page[27] = fit.tag;
    page[28..32].copy_from_slice(&u32_of(fit.prefix_len).to_le_bytes());
    page[36..40].copy_from_slice(&(fit.lens.base as u32).to_le_bytes());
    page[40..44].copy_from_slice(&(fit.ends.base as u32).to_le_bytes());
    page[44..48].copy_from_slice(&(fit.ends.slope as u32).to_le_bytes());
    at
}
