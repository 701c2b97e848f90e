//! Range deletes: a sorted list of disjoint key ranges that hide everything older.
//!
//! A chunk or run holds, beside its records, the ranges that were deleted in the same span of commits. The
//! ranges hide every record of an older chunk or run. They hide no record of their own: the transaction has
//! settled that.

use crate::base::codec::{Reader, Writer, u32_of};
use crate::base::error::Result;
use std::ops::Bound;

/// From a key (inclusive) to a key (exclusive), or to the end of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Option<Vec<u8>>,
}

impl Range {
    /// The range between two bounds.
    pub(crate) fn between(start: Bound<&[u8]>, end: Bound<&[u8]>) -> Range {
        let after = |k: &[u8]| [k, &[0]].concat();
        let start = match start {
            Bound::Included(k) => k.to_vec(),
            Bound::Excluded(k) => after(k),
            Bound::Unbounded => Vec::new(),
        };
        let end = match end {
            Bound::Included(k) => Some(after(k)),
            Bound::Excluded(k) => Some(k.to_vec()),
            Bound::Unbounded => None,
        };
        Range { start, end }
    }

    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        key >= self.start.as_slice() && self.end.as_ref().is_none_or(|e| key < e.as_slice())
    }

    /// Whether no key can lie in the range.
    pub(crate) fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|e| *e <= self.start)
    }
}

/// Disjoint ranges in key order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    list: Vec<Range>,
}

impl Ranges {
    pub(crate) const fn none() -> Ranges {
        Ranges { list: Vec::new() }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// About how many bytes the ranges take in a file.
    pub(crate) fn bytes(&self) -> u64 {
        self.iter().map(|r| (r.start.len() + r.end.as_ref().map_or(0, Vec::len) + 16) as u64).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Range> {
        self.list.iter()
    }

    /// Whether one of the ranges deletes a key.
    #[inline]
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        self.covering(key).is_some()
    }

    /// The range that deletes a key.
    #[inline]
    pub(crate) fn covering(&self, key: &[u8]) -> Option<&Range> {
        if self.list.is_empty() {
            return None;
        }
        let i = self.list.partition_point(|r| r.start.as_slice() <= key);
        self.list.get(i.wrapping_sub(1)).filter(|r| r.covers(key))
    }

    /// Adds a range and joins it with those that it touches.
    pub(crate) fn add(&mut self, mut range: Range) {
        if range.is_empty() {
            return;
        }
        let from = self.list.partition_point(|r| r.end.as_ref().is_some_and(|e| *e < range.start));
        let mut to = from;
        while to < self.list.len() && range.end.as_ref().is_none_or(|e| self.list[to].start <= *e) {
            let met = &self.list[to];
            if met.start < range.start {
                range.start.clone_from(&met.start);
            }
            match (&range.end, &met.end) {
                (Some(a), Some(b)) if b > a => range.end = met.end.clone(),
                (Some(_), None) => range.end = None,
                _ => {}
            }
            to += 1;
        }
        self.list.splice(from..to, [range]);
    }

    pub(crate) fn add_all(&mut self, other: &Ranges) {
        for range in &other.list {
            self.add(range.clone());
        }
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        w.u32(u32_of(self.list.len()));
        for range in &self.list {
            w.blob(&range.start);
            w.u8(u8::from(range.end.is_some()));
            w.blob(range.end.as_deref().unwrap_or_default());
        }
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Ranges> {
        let mut ranges = Ranges::default();
        for _ in 0..r.count(9)? {
            let start = r.blob()?.to_vec();
            let bounded = r.u8()? != 0;
            let end = r.blob()?.to_vec();
            ranges.add(Range { start, end: bounded.then_some(end) });
        }
        Ok(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_agree_with_a_set_of_bytes() {
        let mut x = 5u64;
        let mut next = move |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            (x >> 33) % n
        };
        for _ in 0..300 {
            let mut ranges = Ranges::default();
            let mut set = [false; 256];
            for _ in 0..8 {
                let (a, b) = (next(256) as u8, next(256) as u8);
                let open = next(8) == 0;
                ranges.add(Range { start: vec![a], end: (!open).then(|| vec![b]) });
                let end = if open { 256 } else { usize::from(b) };
                set.iter_mut().take(end).skip(usize::from(a)).for_each(|s| *s = true);
            }
            for k in 0..=255u8 {
                assert_eq!(ranges.covers(&[k]), set[usize::from(k)], "{k} {ranges:?}");
            }
        }
    }
}
