//! Bijections that scatter indices. They make keys from an index, and orders in which to visit records.

/// The last step of SplitMix64: it scrambles 64 bits and can be inverted. So distinct indices give distinct
/// keys.
#[inline]
pub fn mix(index: u64) -> u64 {
    let x = index.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A pseudo-random order of the numbers below a bound, without storing a table of them.
#[derive(Debug, Clone, Copy)]
pub struct Shuffle {
    bound: u64,
    mask: u64,
    shift: u32,
}

impl Shuffle {
    /// An order of `0..bound`.
    pub fn new(bound: u64) -> Self {
        let bits = u64::BITS - bound.saturating_sub(1).leading_zeros();
        let bits = bits.max(2);
        let mask = if bits == u64::BITS { u64::MAX } else { (1 << bits) - 1 };
        Self { bound, mask, shift: bits / 2 }
    }

    /// The number at a position below the bound. Each number comes once: a bijection of the next power of two
    /// is applied until it lands below the bound. That takes at most two steps on average.
    #[inline]
    pub fn at(&self, position: u64) -> u64 {
        let mut x = position;
        loop {
            x = self.scramble(x);
            if x < self.bound {
                return x;
            }
        }
    }

    #[inline]
    fn scramble(&self, x: u64) -> u64 {
        let x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x1234_5678_9ABC_DEF1) & self.mask;
        let x = x ^ (x >> self.shift);
        let x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93) & self.mask;
        let x = x ^ (x >> self.shift);
        let x = x.wrapping_mul(0xCAF6_49A9_E6E8_DC65) & self.mask;
        x ^ (x >> self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_visits_every_number_once() {
        for bound in [1, 2, 3, 5, 64, 1000, 4097] {
            let shuffle = Shuffle::new(bound);
            let mut seen: Vec<u64> = (0..bound).map(|position| shuffle.at(position)).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..bound), "bound {bound}");
        }
    }
}
