//! Random numbers that are the same on every machine.

/// A small generator (SplitMix64). Any seed is good, and neighbouring seeds are unrelated.
#[derive(Clone, Debug, Default)]
pub struct Rng(pub u64);

impl Rng {
    /// The generator for trial `n` of a run with `seed`, so that each trial can be repeated alone.
    pub fn of(seed: u64, n: u64) -> Rng {
        let mut rng = Rng(seed);
        let base = rng.number();
        Rng(base ^ n.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.number() % n.max(1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of the items. REQUIRES: there is at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let i = self.below(items.len() as u64);
        &items[usize::try_from(i).unwrap_or(0)]
    }

    /// `len` random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut out: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| self.number().to_le_bytes()).collect();
        out.truncate(len);
        out
    }
}
