//! A column of 64-bit numbers, as a straight line and bit-packed residuals.
//!
//! Number `i` is `base + i * slope + r[i]` (wrapping), with every `r[i] < 2^width`. This is
//! frame-of-reference packing with a slope. Evenly spaced numbers cost no bits. Sorted random numbers need
//! about five bits less each than with a common minimum. The slope is also the guess from which a search
//! begins.

use std::ops::Range;

/// The three numbers that describe a packed column. They stand in a page's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) base: u64,
    pub(crate) slope: u64,
    pub(crate) width: u32,
}

/// Columns with a span of this or more are packed without a slope, so that residuals fit an i64.
const SPAN_MAX: u64 = 1 << 62;

impl Packed {
    /// The tightest description of a column in ascending order.
    pub(crate) fn fit_ascending(v: &[u64]) -> Packed {
        let (Some(&first), Some(&last)) = (v.first(), v.last()) else {
            return Packed { base: 0, slope: 0, width: 0 };
        };
        if last < first {
            // Only a forged page has records out of order. They keep their order.
            return Packed::fit_any(v);
        }
        let span = last - first;
        if span >= SPAN_MAX || v.len() < 2 {
            return Packed { base: first, slope: 0, width: 64 - span.leading_zeros() };
        }
        let slope = span / (v.len() as u64 - 1);
        let (mut low, mut high) = (0i64, 0i64);
        let mut line = first;
        for &x in v {
            let r = x.wrapping_sub(line) as i64;
            low = low.min(r);
            high = high.max(r);
            line = line.wrapping_add(slope);
        }
        // Exact: `low` <= 0 <= `high`. In a forged page they may be 2^63 or more apart.
        let width = 64 - (high.wrapping_sub(low) as u64).leading_zeros();
        Packed { base: first.wrapping_add(low as u64), slope, width }
    }

    /// The description of a column in any order: a common minimum and no slope.
    pub(crate) fn fit_any(v: &[u64]) -> Packed {
        let low = v.iter().copied().min().unwrap_or(0);
        let high = v.iter().copied().max().unwrap_or(0);
        Packed { base: low, slope: 0, width: 64 - (high - low).leading_zeros() }
    }

    /// How many bytes `n` residuals take.
    #[inline(always)]
    pub(crate) const fn bytes(&self, n: usize) -> usize {
        (n * self.width as usize).div_ceil(8)
    }

    /// Writes the residuals. REQUIRES: `out` is zeroed and holds `bytes(v.len())`; the description was fitted
    /// to `v`.
    pub(crate) fn write(&self, v: &[u64], out: &mut [u8]) {
        let width = self.width;
        if width == 0 {
            return;
        }
        let (mut acc, mut filled, mut at) = (0u128, 0u32, 0usize);
        let mut line = self.base;
        for &x in v {
            acc |= u128::from(x.wrapping_sub(line)) << filled;
            line = line.wrapping_add(self.slope);
            filled += width;
            if filled >= 64 {
                out[at..at + 8].copy_from_slice(&(acc as u64).to_le_bytes());
                at += 8;
                acc >>= 64;
                filled -= 64;
            }
        }
        let left = (filled as usize).div_ceil(8);
        out[at..at + left].copy_from_slice(&(acc as u64).to_le_bytes()[..left]);
    }

    /// Number `i`. REQUIRES: `bits` has at least 16 bytes, of any content, from the start of the residual on.
    /// Every caller passes the rest of a page, whose last 16 bytes are never used. Where there are no
    /// residuals none is read: it would be a line of memory that nobody has asked for.
    #[inline(always)]
    pub(crate) fn get(&self, bits: &[u8], i: usize) -> u64 {
        let bit = i * self.width as usize;
        let r = if self.width == 0 {
            0
        } else if self.width <= 57 {
            let mut raw = [0; 8];
            raw.copy_from_slice(&bits[bit / 8..bit / 8 + 8]);
            (u64::from_le_bytes(raw) >> (bit % 8)) & ((1 << self.width) - 1)
        } else {
            let mut raw = [0; 16];
            raw.copy_from_slice(&bits[bit / 8..bit / 8 + 16]);
            (u128::from_le_bytes(raw) >> (bit % 8)) as u64 & self.mask()
        };
        self.base.wrapping_add(self.slope.wrapping_mul(i as u64)).wrapping_add(r)
    }

    #[inline(always)]
    fn mask(&self) -> u64 {
        if self.width == 0 { 0 } else { u64::MAX >> (64 - self.width) }
    }

    /// Appends the first `n` numbers to `out`. REQUIRES: as `get`.
    pub(crate) fn read(&self, bits: &[u8], n: usize, out: &mut Vec<u64>) {
        if self.width > 57 {
            out.extend((0..n).map(|i| self.get(bits, i)));
        } else {
            out.extend(self.narrow(bits, 0..n));
        }
    }

    /// The numbers of `some`, of a column whose width is at most 57 bits. REQUIRES: as `get`.
    #[inline(always)]
    pub(crate) fn narrow(&self, bits: &[u8], some: Range<usize>) -> impl ExactSizeIterator<Item = u64> {
        let (mask, width, slope) = (self.mask(), self.width as usize, self.slope);
        let mut line = self.base.wrapping_add(slope.wrapping_mul(some.start as u64));
        some.map(move |i| {
            let bit = i * width;
            let mut raw = [0; 8];
            raw.copy_from_slice(&bits[bit / 8..bit / 8 + 8]);
            let r = (u64::from_le_bytes(raw) >> (bit % 8)) & mask;
            let x = line.wrapping_add(r);
            line = line.wrapping_add(slope);
            x
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(v: &[u64], p: Packed) {
        let mut bits = vec![0; p.bytes(v.len()) + 16];
        let used = p.bytes(v.len());
        p.write(v, &mut bits[..used]);
        let mut out = Vec::new();
        p.read(&bits, v.len(), &mut out);
        assert_eq!(out, v);
        if p.width <= 57 {
            let from = v.len() / 3;
            assert!(p.narrow(&bits, from..v.len()).eq(v[from..].iter().copied()));
        }
        for (i, &x) in v.iter().enumerate() {
            assert_eq!(p.get(&bits, i), x);
        }
    }

    #[test]
    fn columns_of_every_width_come_back() {
        let mut x = 7u64;
        for width in 0..=64u32 {
            for n in [1usize, 2, 3, 63, 64, 65, 1000] {
                let mut v: Vec<u64> = (0..n)
                    .map(|_| {
                        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                        if width == 0 { 5 } else { x >> (64 - width) }
                    })
                    .collect();
                round_trip(&v, Packed::fit_any(&v));
                v.sort_unstable();
                round_trip(&v, Packed::fit_ascending(&v));
            }
        }
    }

    /// Found by the fuzzer: in a page with a forged checksum, heads may be in any order.
    #[test]
    fn forged_columns_out_of_order_come_back() {
        for middle in [u64::MAX, u64::MAX >> 1, (u64::MAX >> 1) + 100, 0, 1 << 40] {
            for v in [[10, middle, 20, 30], [10, 0, middle, 30], [10, middle, !middle, 30]] {
                round_trip(&v, Packed::fit_ascending(&v));
            }
        }
    }

    #[test]
    fn evenly_spaced_numbers_cost_nothing() {
        let v: Vec<u64> = (0..500).map(|i| 1_000 + i * 3).collect();
        assert_eq!(Packed::fit_ascending(&v).width, 0);
    }
}
