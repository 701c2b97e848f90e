//! The distribution of requests in the Yahoo! Cloud Serving Benchmark.

use crate::measure::count;

/// The skew: the benchmark's constant.
const THETA: f64 = 0.99;

/// Ranks that follow Zipf's law, by the method of Gray and others ("Quickly generating billion-record
/// synthetic databases"). Rank 0 is the most frequent.
#[derive(Debug, Clone)]
pub struct Zipf {
    items: u64,
    zeta: f64,
    eta: f64,
    /// Below this the rank is 0 or 1.
    two: f64,
}

impl Zipf {
    /// Over this many ranks.
    pub fn new(items: u64) -> Self {
        let zeta: f64 = (1..=items).map(|rank| count(rank).powf(-THETA)).sum();
        let two = 1.0 + 0.5f64.powf(THETA);
        let eta = (1.0 - (2.0 / count(items)).powf(1.0 - THETA)) / (1.0 - two / zeta);
        Self { items, zeta, eta, two }
    }

    /// The rank for a random number from 0 to 1.
    #[inline]
    pub fn rank(&self, random: f64) -> u64 {
        let scaled = random * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < self.two {
            return 1.min(self.items - 1);
        }
        let position = count(self.items) * (self.eta * random - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        floor(position).min(self.items - 1)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position from 0 to the number of items"
)]
fn floor(position: f64) -> u64 {
    position as u64
}

/// Random numbers from 0 to 1, made from 53 bits.
#[inline]
pub fn unit(bits: u64) -> f64 {
    count(bits >> 11) / count(1 << 53)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn ranks_follow_the_law() {
        let zipf = Zipf::new(1000);
        let mut seen = vec![0u32; 1000];
        for number in 0..200_000 {
            let rank = zipf.rank(unit(mix(number)));
            seen[usize::try_from(rank).expect("small")] += 1;
        }
        // The first comes at 1/zeta of all, and nearly twice as often as the second.
        let first = f64::from(seen[0]) / 200_000.0;
        assert!((first * zipf.zeta - 1.0).abs() < 0.03, "{first}");
        let ratio = f64::from(seen[0]) / f64::from(seen[1]);
        assert!((ratio - 2f64.powf(THETA)).abs() < 0.1, "{ratio}");
        assert!(seen[100] > 0 && seen[999] < seen[10]);
    }

    #[test]
    fn few_items_have_ranks_too() {
        for items in 1..5 {
            let zipf = Zipf::new(items);
            assert!((0..100).all(|number| zipf.rank(unit(mix(number))) < items));
        }
    }
}
