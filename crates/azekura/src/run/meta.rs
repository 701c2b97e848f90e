//! The meta block at the end of a run: the fence and the range deletes.
//!
//! ```text
//! u32 CRC32C of what follows, seeded by file, run and page number 2^32-1
//! the run's label (see `label`)
//! u32 n, pages | u8 form: 0 = n keys of 8 bytes, 1 = n blobs
//! the fence: these keys | u8 has units: 1 = n times u32, the first unit of each page
//! range deletes: u32 count, each blob start, u8 bounded, blob end
//! ```
//!
//! Key `i` of the fence is above every key of page `i - 1`, and not above the first key of page `i`.

use super::label::Label;
use crate::base::checksum::{crc, page_seed};
use crate::base::codec::{Reader, Writer, u32_at, u32_of, usize_of};
use crate::base::error::{Error, Result};
use crate::base::key::{SortKey, head_of};
use crate::base::prefetch::prefetch_lines;
use crate::format::block::{Block, Fixed, Tag};
use crate::format::ranges::Ranges;
use crate::format::search::{Density, bisect};

/// What a run knows of its pages.
#[derive(Debug, Default)]
pub(crate) struct Meta {
    /// A key for each page, as the keys of a block without values.
    pub(crate) fence: Block,
    /// The span of the heads of these keys is cut into about twice as many buckets as there are pages.
    /// `buckets[i]` is how many keys lie in the buckets before `i`.
    buckets: Vec<u32>,
    /// Buckets per unit of key, as a fraction of 2^64.
    density: Density,
    /// The first unit of each page, if some page has several units. Else a page is a unit.
    pub(crate) units: Option<Vec<u32>>,
    pub(crate) ranges: Ranges,
}

const FENCE_KEY: Fixed = Fixed { stride: 0, tag: Tag::Put };

impl Meta {
    /// A meta with the keys of a fence, which must ascend.
    pub(crate) fn new(keys: &[Vec<u8>], units: Option<Vec<u32>>, ranges: Ranges) -> Meta {
        let fixed = keys.iter().all(|key| key.len() == 8).then_some(FENCE_KEY);
        let mut fence = Block::new(fixed);
        for key in keys {
            fence.push(key, Tag::Put, &[]);
        }
        fence.index();
        Meta::with(fence, units, ranges)
    }

    fn with(fence: Block, units: Option<Vec<u32>>, ranges: Ranges) -> Meta {
        let (buckets, density) = count_buckets(&fence.heads);
        Meta { fence, buckets, density, units, ranges }
    }

    pub(crate) fn pages(&self) -> usize {
        self.fence.len()
    }

    /// The page that may hold a key. None if the key is below all pages.
    #[inline(always)]
    pub(crate) fn page_of(&self, key: SortKey<'_>) -> Option<usize> {
        let &first = self.fence.heads.first()?;
        if key.bytes.len() == 8 && self.fence.fixed.is_some() {
            return if key.head < first { None } else { Some(self.page_of_head(key.head, first)) };
        }
        let found = match self.fence.head_for(key) {
            Some(wanted) => self.fence.lower_bound_among(key, wanted, self.first_not_below(wanted, first)),
            // The key lies before or behind all keys with the common prefix.
            None => self.fence.lower_bound(key),
        };
        match found {
            (i, true) => Some(i),
            (0, false) => None,
            (i, false) => Some(i - 1),
        }
    }

    /// The first key of the fence whose head is not below `wanted`.
    #[inline(always)]
    fn first_not_below(&self, wanted: u64, first: u64) -> usize {
        if wanted <= first {
            return 0;
        }
        let (low, high) = self.bucket(wanted, first);
        let heads = &self.fence.heads;
        bisect(low, high, wanted, |i| heads[i])
    }

    /// The range of the fence in a head's bucket. REQUIRES: the head is not below that of the first key.
    #[inline(always)]
    fn bucket(&self, head: u64, first: u64) -> (usize, usize) {
        let bucket = self.density.places(head - first).min(self.buckets.len() - 2);
        let (low, high) = (usize_of(self.buckets[bucket]), usize_of(self.buckets[bucket + 1]));
        prefetch_lines(&self.fence.heads[low..high]);
        (low, high)
    }

    /// The last page whose key in the fence is not above a key of eight bytes.
    #[inline(always)]
    fn page_of_head(&self, head: u64, first: u64) -> usize {
        let (mut low, mut high) = self.bucket(head, first);
        let heads = &self.fence.heads;
        while low < high {
            let middle = (low + high) / 2;
            if heads[middle] <= head { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    /// The first unit of a page.
    #[inline(always)]
    pub(crate) fn unit_of(&self, page: usize) -> u32 {
        match &self.units {
            None => u32_of(page),
            Some(units) => units[page],
        }
    }

    pub(crate) fn encode(&self, run_seed: u32, label: &Label) -> Vec<u8> {
        let mut w = Writer::default();
        w.u32(0);
        label.encode(&mut w);
        w.u32(u32_of(self.fence.len()));
        w.u8(u8::from(self.fence.fixed.is_none()));
        let mut tmp = [0; 8];
        for i in 0..self.fence.len() {
            let key = self.fence.key(i, &mut tmp);
            if self.fence.fixed.is_some() { w.bytes.extend_from_slice(key) } else { w.blob(key) }
        }
        w.u8(u8::from(self.units.is_some()));
        for &unit in self.units.iter().flatten() {
            w.u32(unit);
        }
        self.ranges.encode(&mut w);
        Label::close(&mut w.bytes);
        let sum = crc(page_seed(run_seed, u32::MAX), &w.bytes[4..]);
        w.bytes[..4].copy_from_slice(&sum.to_le_bytes());
        w.bytes
    }

    /// Reads the block at offset `at` of the file. `units_total` bounds the units that it may name.
    pub(crate) fn decode(bytes: &[u8], run_seed: u32, at: u64, units_total: u32) -> Result<Meta> {
        Meta::decode_labelled(bytes, run_seed, at, units_total).map(|(_, meta)| meta)
    }

    /// As `decode`. Also returns the run's label.
    pub(crate) fn decode_labelled(
        bytes: &[u8],
        run_seed: u32,
        at: u64,
        units_total: u32,
    ) -> Result<(Label, Meta)> {
        let bad = |detail: &str| Error::corrupt("run meta block", at, detail);
        if bytes.len() < 4 {
            return Err(bad("too short"));
        }
        let (expected, found) = (u32_at(bytes, 0), crc(page_seed(run_seed, u32::MAX), &bytes[4..]));
        if !crate::base::checksum::is_ignored() && expected != found {
            return Err(bad(&format!("checksum {found:08x}, expected {expected:08x}")));
        }
        let mut r = Reader::new(&bytes[4..], "run meta block", at);
        let label = Label::decode(&mut r)?;
        let n = r.count(4)?;
        let fixed = (r.u8()? == 0).then_some(FENCE_KEY);
        let mut fence = Block::with_capacity(fixed, n, 0);
        for i in 0..n {
            let key = if fixed.is_some() { r.take(8)? } else { r.blob()? };
            if i > 0 && fence.compare(i - 1, SortKey::new(key)) != std::cmp::Ordering::Less {
                return Err(bad("fence out of order"));
            }
            match fixed {
                Some(_) => fence.heads.push(head_of(key)),
                None => fence.push(key, Tag::Put, &[]),
            }
        }
        fence.index();
        let units =
            if r.u8()? == 0 { None } else { Some((0..n).map(|_| r.u32()).collect::<Result<Vec<u32>>>()?) };
        if n == 0 && units.is_some() {
            return Err(bad("units of no pages"));
        }
        let ascending = units.as_ref().is_none_or(|u| u.windows(2).all(|w| w[0] < w[1]));
        let last = units.as_ref().map_or(n, |u| u.last().map_or(0, |&x| usize_of(x) + 1));
        if !ascending || last > usize_of(units_total) {
            return Err(bad("pages beyond the run's end"));
        }
        let ranges = Ranges::decode(&mut r)?;
        r.finish()?;
        Ok((label, Meta::with(fence, units, ranges)))
    }
}

/// Counts ascending numbers into buckets. Returns how many lie before each bucket, and the density. (A merge
/// of forged pages may bring numbers that do not ascend. They are counted somewhere, and refused when the run
/// is read.)
fn count_buckets(heads: &[u64]) -> (Vec<u32>, Density) {
    let (Some(&first), Some(&last)) = (heads.first(), heads.last()) else { return Default::default() };
    let density = Density::of(heads.len() * 2, first, last);
    let mut buckets = vec![0u32; density.places(last.saturating_sub(first)) + 2];
    let most = buckets.len() - 1;
    for &head in heads {
        buckets[(density.places(head.saturating_sub(first)) + 1).min(most)] += 1;
    }
    let mut before = 0;
    for count in &mut buckets {
        before += *count;
        *count = before;
    }
    (buckets, density)
}

#[cfg(test)]
mod tests {
    use super::super::label::Origin;
    use super::*;
    use crate::base::key::TableKind;

    #[test]
    fn pages_are_found_however_the_fence_lies() {
        let mut x = 9u64;
        for (n, shift) in [(1usize, 0u32), (2, 0), (100, 0), (100, 50), (1000, 40), (1000, 54), (3, 63)] {
            let mut heads: Vec<u64> = (0..n)
                .map(|_| {
                    x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                    x >> shift
                })
                .collect();
            heads.push(u64::MAX);
            heads.sort_unstable();
            heads.dedup();
            let fence: Vec<Vec<u8>> = heads.iter().map(|h| h.to_be_bytes().to_vec()).collect();
            let meta = Meta::new(&fence, None, Ranges::default());
            for k in heads.iter().flat_map(|&k| [k.saturating_sub(1), k, k.saturating_add(1)]) {
                let expected = heads.partition_point(|&h| h <= k).checked_sub(1);
                assert_eq!(meta.page_of(SortKey::new(&k.to_be_bytes())), expected, "{k} in {heads:?}");
            }
        }
    }

    #[test]
    fn units_without_pages_are_refused() {
        let origin = Origin { table: 1, kind: TableKind::Ordered, name: "t".into(), newest: 0, oldest: true };
        let label = Label { file_id: 1, hash_seed: 2, run: 3, origin, covers: Ranges::default() };
        let encoded = |units| Meta::new(&[], units, Ranges::default()).encode(7, &label);
        assert!(Meta::decode(&encoded(None), 7, 0, 9).is_ok());
        assert!(Meta::decode(&encoded(Some(Vec::new())), 7, 0, 9).is_err());
    }

    #[test]
    fn keys_of_forged_pages_are_counted_somewhere() {
        for heads in [[5, 9, 7], [5, 1, 7], [9, 5, 1], [0, u64::MAX, 1]] {
            let (buckets, _) = count_buckets(&heads);
            assert_eq!(buckets.last(), Some(&3));
            assert!(buckets.is_sorted());
        }
    }

    #[test]
    fn pages_are_found_by_keys_of_any_length() {
        let mut x = 5u64;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            (x >> 33) as usize
        };
        for (n, prefix, letters) in
            [(1, "", 3), (50, "", 2), (500, "www.example/", 3), (3000, "", 190), (700, "b", 1)]
        {
            let mut key = |longest: usize| {
                let mut key = prefix.as_bytes().to_vec();
                key.extend((0..next() % longest).map(|_| u8::try_from(60 + next() % letters).unwrap()));
                key
            };
            let mut fence: Vec<Vec<u8>> = (0..n).map(|_| key(14)).collect();
            fence.sort_unstable();
            fence.dedup();
            let meta = Meta::new(&fence, None, Ranges::default());
            let others: Vec<Vec<u8>> = (0..2000).map(|_| key(20)).collect();
            let outside = [b"".to_vec(), b"a".to_vec(), b"z".to_vec(), vec![255; 12]];
            for k in fence.iter().chain(&others).chain(&outside) {
                let expected = fence.partition_point(|s| s <= k).checked_sub(1);
                assert_eq!(meta.page_of(SortKey::new(k)), expected, "{k:?} among {} keys", fence.len());
            }
        }
    }
}
