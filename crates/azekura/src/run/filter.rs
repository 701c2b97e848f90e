//! The filter of a run: a blocked Bloom filter, one cache line per lookup.
//!
//! A filter is an array of blocks of 64 bytes. A key's hash picks one block, by the high part of a
//! multiplication (`block_of`), and six bits in the block. The block's number rises with the hash, so keys in
//! hash order fill the array from end to end. The six bits come from a product whose high bits depend on the
//! whole hash, so they differ among the keys of one block. At 10 bits a key, 1.0 % of absent keys pass (see
//! the tests).
//!
//! The hashes must be spread over all 64 bits. A hash table's keys are hashed once more. By the hashes that
//! order them, a quarter of the keys in order would share a quarter of the blocks.
//!
//! # Layout
//!
//! In the file the blocks are in pages, behind each page's header:
//!
//! ```text
//!   page p:  header, 64 bytes | block 255 p | block 255 p + 1 | … | block 255 p + 254
//!   block:   bit i (0 … 511) is bit i mod 8 of byte i / 8
//! ```
//!
//! Bits are numbered by bytes, so the file's bytes do not depend on the host's endianness. Block b begins b +
//! b / 255 + 1 cache lines after the start of the first page. The builder works on the pages themselves, so
//! finishing copies nothing. Blocks that the last page lacks are zero.

use crate::base::codec::usize_of64;
use crate::base::limits::PAGE_BYTES;
use crate::base::prefetch::prefetch_lines;
use crate::format::page::BLOCKS_PER_PAGE;

/// Bytes of a block, and of a page's header.
pub(crate) const BLOCK_BYTES: usize = 64;

/// Bits of filter for each key. With six probes, 8 bits let 2.5 % of absent keys pass, 12 bits 0.5 %.
const BITS_PER_KEY: u64 = 10;
const BLOCK_BITS: u64 = 512;
/// Bits that are set for each key.
const PROBES: usize = 6;
/// Bits of a bit's number in a block.
const POSITION_BITS: u32 = 9;
/// Cache lines of a page: the header and the blocks.
const LINES_PER_PAGE: u64 = BLOCKS_PER_PAGE + 1;
/// How many keys ahead `add_all` prefetches: enough to keep the processor's line buffers busy.
const PREFETCH_KEYS: usize = 16;
/// Pages begin at multiples of this, so that they can be written past the kernel's cache.
const PAGES_ALIGN: usize = 4096;

const _: () = assert!(PAGE_BYTES == BLOCK_BYTES * 256 && LINES_PER_PAGE == 256);
const _: () = assert!(BLOCK_BITS == 1 << POSITION_BITS && PROBES as u32 * POSITION_BITS <= 64);

/// How many blocks a filter of this many keys has.
pub(crate) const fn blocks_for(keys: u64) -> u64 {
    let blocks = keys.saturating_mul(BITS_PER_KEY).div_ceil(BLOCK_BITS);
    if blocks == 0 { 1 } else { blocks }
}

/// The block of a hash, of `blocks` in all. It never falls as the hash rises.
#[inline(always)]
pub(crate) const fn block_of(hash: u64, blocks: u64) -> u64 {
    ((hash as u128 * blocks as u128) >> 64) as u64
}

/// The page of a block, and the block's line in that page.
#[inline(always)]
pub(crate) const fn block_place(block: u64) -> (u32, usize) {
    let line = line_of(block);
    // A run has fewer pages of each kind than a u32 counts.
    ((line / LINES_PER_PAGE) as u32, usize_of64(line % LINES_PER_PAGE))
}

/// Whether a key of this hash may have been added. False is certain.
#[inline(always)]
pub(crate) fn block_contains(block: &[u8; BLOCK_BYTES], hash: u64) -> bool {
    let (words, _) = block.as_chunks::<8>();
    let mut all = 1;
    for at in positions(hash) {
        // Words of eight bytes take fewer instructions than bytes: shifts ignore the high bits.
        all &= u64::from_le_bytes(words[at / 64]) >> (at % 64);
    }
    all & 1 == 1
}

/// Adds a key to its block.
#[inline(always)]
pub(crate) fn block_add(block: &mut [u8; BLOCK_BYTES], hash: u64) {
    for at in positions(hash) {
        block[at / 8] |= 1 << (at % 8);
    }
}

/// The bits of a hash in its block.
#[inline(always)]
fn positions(hash: u64) -> [usize; PROBES] {
    let h = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    [55, 46, 37, 28, 19, 10].map(|shift| usize_of64(h >> shift & (BLOCK_BITS - 1)))
}

/// Cache lines from the start of the first page to a block.
#[inline(always)]
const fn line_of(block: u64) -> u64 {
    block + block / BLOCKS_PER_PAGE + 1
}

/// The pages' cache lines, in a vector that is a little longer, so that they can be aligned.
struct Lines {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Lines {
    fn zeroed(len: usize) -> Lines {
        let bytes = vec![0; len + PAGES_ALIGN];
        // The alignment is only for speed. Without it (under Miri) all is still correct.
        let start = bytes.as_ptr().align_offset(PAGES_ALIGN).min(PAGES_ALIGN);
        Lines { bytes, start, len }
    }

    #[inline(always)]
    fn all_mut(&mut self) -> &mut [[u8; BLOCK_BYTES]] {
        self.bytes[self.start..self.start + self.len].as_chunks_mut().0
    }
}

/// A filter that is being filled.
pub(crate) struct FilterBuilder {
    lines: Lines,
    blocks: u64,
}

impl FilterBuilder {
    /// A filter for at most `expected_keys`. With fewer keys it is larger than it need be.
    pub(crate) fn new(expected_keys: u64) -> FilterBuilder {
        let blocks = blocks_for(expected_keys);
        let pages = usize_of64(blocks.div_ceil(BLOCKS_PER_PAGE));
        FilterBuilder { lines: Lines::zeroed(pages * PAGE_BYTES), blocks }
    }

    /// Adds keys by their hashes, in any order.
    pub(crate) fn add_all(&mut self, hashes: &[u64]) {
        let blocks = self.blocks;
        let lines = self.lines.all_mut();
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&ahead) = hashes.get(i + PREFETCH_KEYS) {
                prefetch_lines(&lines[usize_of64(line_of(block_of(ahead, blocks)))]);
            }
            add_to(lines, blocks, hash);
        }
    }

    /// The pages. Their headers are zeros.
    pub(crate) fn finish_pages(self) -> FilterPages {
        FilterPages { lines: self.lines, blocks: self.blocks }
    }
}

/// A finished filter, in memory that begins at a multiple of 4 KiB.
pub(crate) struct FilterPages {
    lines: Lines,
    blocks: u64,
}

impl FilterPages {
    /// How many blocks the filter has.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The pages, to be given their headers and written. `as_flattened` turns them into bytes.
    pub(crate) fn pages_mut(&mut self) -> &mut [[u8; PAGE_BYTES]] {
        self.lines.bytes[self.lines.start..self.lines.start + self.lines.len].as_chunks_mut().0
    }
}

#[inline(always)]
fn add_to(lines: &mut [[u8; BLOCK_BYTES]], blocks: u64, hash: u64) {
    block_add(&mut lines[usize_of64(line_of(block_of(hash, blocks)))], hash);
}

#[cfg(test)]
mod tests;
