//! Text keys: like the addresses of a crawl, with 8 to 40 bytes and shared prefixes.
//!
//! A key is one of 4,096 prefixes of 1 to 33 bytes, and then seven characters of base 32 that spell the
//! record's index, scrambled. The last seven characters alone make every key unique and identify its record.
//! Some prefixes are drawn more often, as on the web.

use super::mix::{Random, mix};

/// The longest key.
pub const MAX_KEY_BYTES: usize = 40;
/// Indexes below this are records. As many indexes above it are absent keys.
pub const MAX_RECORDS: u64 = 1 << 34;

const ID_BITS: u32 = 35;
const ID_CHARS: usize = 7;
const ID_MASK: u64 = (1 << ID_BITS) - 1;
/// More than half of the bits, so that `x ^ (x >> SHIFT)` is its own inverse.
const SHIFT: u32 = 18;
/// Odd, so that multiplication by them is invertible.
const FACTORS: [u64; 2] = [0x5_b9d3_29a5, 0x3_6a09_e667];
const INVERSES: [u64; 2] = [inverse(FACTORS[0]), inverse(FACTORS[1])];
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

const PREFIXES: usize = 4096;
const MAX_PREFIX_BYTES: u64 = 33;
const HOSTS: [&str; 16] = [
    "www.example.org",
    "kura.example.jp",
    "nara.example",
    "news.example.com",
    "img.example.net",
    "en.wiki.example",
    "shop.example.com",
    "mail.example.org",
    "a.example",
    "blog.example.net",
    "docs.example.dev",
    "cdn.example.io",
    "todaiji.example",
    "maps.example.com",
    "m.example.org",
    "api.example.dev",
];
const WORDS: [&str; 16] = [
    "index", "archive", "2024", "2025", "article", "image", "user", "item", "tag", "search", "page", "v1",
    "static", "catalog", "log", "about",
];

/// The inverse of an odd number modulo 2^64, by Newton's iteration: each round doubles the correct bits.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut round = 0;
    while round < 6 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        round += 1;
    }
    x
}

/// The prefixes of all keys.
pub struct TextKeys {
    prefixes: Vec<([u8; MAX_KEY_BYTES], usize)>,
}

impl TextKeys {
    /// Makes the prefixes.
    pub fn new(random: &mut Random) -> TextKeys {
        TextKeys { prefixes: (0..PREFIXES).map(|_| prefix(random)).collect() }
    }

    /// Writes the key of a record and returns its length.
    #[inline]
    pub fn write(&self, index: u64, key: &mut [u8; MAX_KEY_BYTES]) -> usize {
        let (prefix, len) = &self.prefixes[choose(index)];
        *key = *prefix;
        let mut id = scramble(index & ID_MASK);
        for place in key[*len..*len + ID_CHARS].iter_mut().rev() {
            *place = ALPHABET[usize::try_from(id & 31).unwrap_or(0)];
            id >>= 5;
        }
        len + ID_CHARS
    }

    /// The record whose key this may be. The caller compares the whole key.
    pub fn record_of(&self, key: &[u8]) -> Option<u64> {
        let id = key.last_chunk::<ID_CHARS>()?;
        let mut scrambled = 0;
        for &byte in id {
            let digit = match byte {
                b'a'..=b'z' => byte - b'a',
                b'2'..=b'7' => byte - b'2' + 26,
                _ => return None,
            };
            scrambled = scrambled << 5 | u64::from(digit);
        }
        Some(unscramble(scrambled))
    }
}

/// A prefix: a host and a path, cut to a length that is drawn evenly.
fn prefix(random: &mut Random) -> ([u8; MAX_KEY_BYTES], usize) {
    let len = usize::try_from(1 + random.below(MAX_PREFIX_BYTES)).unwrap_or(1);
    let mut text = pick(&HOSTS, random).to_owned();
    while text.len() <= len {
        text.push('/');
        text.push_str(pick(&WORDS, random));
    }
    let mut bytes = [0; MAX_KEY_BYTES];
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    (bytes, len)
}

fn pick(words: &[&'static str; 16], random: &mut Random) -> &'static str {
    words[usize::try_from(random.below(16)).unwrap_or(0)]
}

/// The prefix of a record: the smaller of two draws, so that low numbers are frequent.
#[inline]
fn choose(index: u64) -> usize {
    let drawn = mix(index ^ 0x7e57);
    let mask = PREFIXES - 1;
    let draw = |bits: u64| usize::try_from(bits & 0xffff).unwrap_or(0) & mask;
    draw(drawn).min(draw(drawn >> 16))
}

fn scramble(id: u64) -> u64 {
    let mut x = id;
    for factor in FACTORS {
        x = x.wrapping_mul(factor) & ID_MASK;
        x ^= x >> SHIFT;
    }
    x
}

fn unscramble(scrambled: u64) -> u64 {
    let mut x = scrambled;
    for factor in INVERSES.into_iter().rev() {
        x ^= x >> SHIFT;
        x = x.wrapping_mul(factor) & ID_MASK;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrambling_is_invertible() {
        for index in (0..1 << ID_BITS).step_by(1_000_003) {
            assert!(scramble(index) <= ID_MASK);
            assert_eq!(unscramble(scramble(index)), index);
        }
    }

    #[test]
    fn keys_are_text_of_8_to_40_bytes() {
        let keys = TextKeys::new(&mut Random::new(1));
        let mut lengths = [0u32; MAX_KEY_BYTES + 1];
        let mut key = [0; MAX_KEY_BYTES];
        for index in 0..100_000 {
            let len = keys.write(index, &mut key);
            assert!(key[..len].is_ascii());
            lengths[len] += 1;
        }
        assert!(lengths[..8].iter().all(|&count| count == 0));
        assert!(lengths[8..].iter().all(|&count| count > 0), "{lengths:?}");
    }
}
