//! Random keys and values: families of keys as applications use them, and sizes that cross every
//! boundary of the format.

use crate::common::Rng;

/// How the keys of a table look.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// Eight bytes, big-endian, counting up.
    Dense,
    /// Eight bytes, spread over all numbers.
    Sparse,
    /// Eight bytes that differ only in the first ones.
    LittleEndian,
    /// Text with shared prefixes.
    Text,
    /// Sixteen bytes.
    Sixteen,
    /// 0 to 300 bytes of few different values, so that many are prefixes of others.
    Any,
    /// Mostly short, some up to the limit.
    Huge,
}

/// How the values of a table look.
#[derive(Clone, Copy, Debug)]
enum Values {
    Fixed(usize),
    UpTo(u64),
    /// One length most of the time, and others.
    Mostly(usize),
}

/// Keys and values of one table.
#[derive(Clone, Debug)]
pub struct Family {
    keys: Keys,
    values: Values,
    seed: u64,
    /// Keys are made from the numbers below this.
    pub space: u64,
    large_one_in: u64,
}

impl Family {
    /// A random family.
    pub fn random(rng: &mut Rng) -> Family {
        use Keys::*;
        let keys =
            [Dense, Dense, Sparse, Sparse, LittleEndian, Text, Sixteen, Any, Huge][rng.below(9) as usize];
        let values = match rng.below(9) {
            0 => Values::Fixed(0),
            1 => Values::Fixed(4),
            2..=3 => Values::Fixed(8),
            4 => Values::Fixed(16),
            5 => Values::Fixed(100),
            6 => Values::UpTo(2000),
            7 => Values::UpTo(40),
            _ => Values::Mostly(8),
        };
        let space = match keys {
            Huge => [20, 300][rng.below(2) as usize],
            Any => [50, 3000][rng.below(2) as usize],
            _ => [30, 1000, 6000, 30_000][rng.below(4) as usize],
        };
        let large_one_in = [0, 0, 300, 40][rng.below(4) as usize];
        Family { keys, values, seed: rng.number(), space, large_one_in }
    }

    /// Key number `i`; different numbers may give the same key.
    pub fn key(&self, i: u64) -> Vec<u8> {
        let mut rng = Rng::new(self.seed ^ i.wrapping_mul(0x9e37_79b9));
        match self.keys {
            Keys::Dense => (i + (self.seed >> 8)).to_be_bytes().to_vec(),
            Keys::Sparse => rng.number().to_be_bytes().to_vec(),
            Keys::LittleEndian => i.to_le_bytes().to_vec(),
            Keys::Text => format!("user:{:03}/{}", rng.below(50), i).into_bytes(),
            Keys::Sixteen => [rng.below(4).to_be_bytes(), i.to_be_bytes()].concat(),
            Keys::Any => {
                let len = if i == 0 { 0 } else { rng.below(301) };
                (0..len).map(|_| [0, 1, b'a', 0xff][rng.below(4) as usize]).collect()
            }
            Keys::Huge => {
                let len = match rng.below(12) {
                    0 => 65_536 - rng.below(3),
                    1 => rng.below(65_536),
                    2 => 16_000 + rng.below(800),
                    _ => rng.below(40),
                };
                let same = [b'x', b'y'][rng.below(2) as usize];
                let mut key = vec![same; len as usize];
                for (at, byte) in key.iter_mut().rev().zip(i.to_be_bytes().iter().rev()) {
                    *at = *byte;
                }
                key
            }
        }
    }

    /// A key that exists or may exist.
    pub fn random_key(&self, rng: &mut Rng) -> Vec<u8> {
        match rng.below(20) {
            0 => {
                // One beside it, or a part of it.
                let mut key = self.key(rng.below(self.space));
                match rng.below(3) {
                    0 => key.truncate(rng.below(key.len() as u64 + 1) as usize),
                    1 if key.len() < 65_536 => key.push(0),
                    _ => {
                        if let Some(last) = key.last_mut() {
                            *last = last.wrapping_add(1)
                        }
                    }
                }
                key
            }
            _ => self.key(rng.below(self.space)),
        }
    }

    /// A value.
    pub fn value(&self, rng: &mut Rng) -> Vec<u8> {
        let len = if self.large_one_in > 0 && rng.one_in(self.large_one_in) {
            [5000, 8192, 20_000, 100_000][rng.below(4) as usize] - rng.below(3)
        } else {
            match self.values {
                Values::Fixed(n) => n as u64,
                Values::UpTo(n) => rng.below(n + 1),
                Values::Mostly(n) => {
                    if rng.one_in(20) {
                        rng.below(200)
                    } else {
                        n as u64
                    }
                }
            }
        };
        let mut value = vec![0; len as usize];
        let mut bits = rng.number();
        let compressible = rng.one_in(3);
        for byte in &mut value {
            *byte = bits as u8;
            bits = if compressible { bits } else { bits.rotate_left(7).wrapping_mul(0x2545_f491_4f6c_dd1d) };
        }
        value
    }
}
