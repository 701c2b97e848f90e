//! Keys and values, made from a record's index at almost no cost.
//!
//! A value is a slice of a pool of random bytes, at an offset that the index gives. So nothing has to be
//! computed, and nothing can be compressed. The pool fits into the processor's cache and is read in order, so
//! the bench does not measure reading it. After a million records the offsets begin again, shifted. So a
//! value that belongs to another record is noticed.
//!
//! A binary key is the index, big-endian (`Ascending`), or the index put through the finalizer of splitmix64
//! (`Mixed8`; `Mixed16` has a second word). The finalizer is invertible. So keys are unique without a list of
//! them, and a scan can tell from a key which record it must be.

use super::mix::GOLDEN;
use super::text_keys::{MAX_KEY_BYTES, TextKeys};

pub use super::mix::{Random, mix, unmix};

/// The table's name in the file.
pub const TABLE: &str = "bench";
/// Bytes of a key in ascending order.
pub const KEY_BYTES: u64 = 8;
/// The pool has 2^20 offsets: 1 MiB.
const POOL_OFFSET_BITS: u32 = 20;
/// Indexes from here on are never inserted, so their keys are absent.
const ABSENT_FIRST_INDEX: u64 = 1 << 63;
/// Makes the second word of a 16-byte key differ from the first.
const SECOND_WORD: u64 = 0x5851_f42d_4c95_7f2d;
/// The least and the most bytes of values of varying length.
const SPREAD_LEAST: u64 = 20;
const SPREAD_MOST: u64 = 200;

/// What keys look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyShape {
    /// The index itself: 8 bytes, big-endian.
    Ascending,
    /// The index mixed: 8 bytes.
    Mixed8,
    /// The index mixed twice: 16 bytes.
    Mixed16,
    /// URL-like text, 8 to 40 bytes.
    Text,
}

/// How long values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueShape {
    /// This many bytes each.
    Fixed(u64),
    /// From 20 to 200 bytes.
    Spread,
}

/// A key, built in place.
#[derive(Debug, Clone, Copy)]
pub struct KeyBuf {
    bytes: [u8; MAX_KEY_BYTES],
    len: usize,
}

impl KeyBuf {
    /// An empty key.
    pub fn new() -> KeyBuf {
        KeyBuf { bytes: [0; MAX_KEY_BYTES], len: 0 }
    }

    fn set8(&mut self, word: u64) {
        self.bytes[..8].copy_from_slice(&word.to_be_bytes());
        self.len = 8;
    }

    fn set16(&mut self, first: u64, second: u64) {
        self.bytes[..8].copy_from_slice(&first.to_be_bytes());
        self.bytes[8..16].copy_from_slice(&second.to_be_bytes());
        self.len = 16;
    }
}

impl AsRef<[u8]> for KeyBuf {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The records of one run: a function from the index to the key and the value.
pub struct Dataset {
    keys: KeyShape,
    values: ValueShape,
    pool: Vec<u8>,
    /// The distance from one value's offset to the next one's. Odd, so that every offset is used.
    stride: u64,
    text: Option<TextKeys>,
}

impl Dataset {
    /// Makes the pool, and what the keys need.
    pub fn new(keys: KeyShape, values: ValueShape, seed: u64) -> Dataset {
        let longest = match values {
            ValueShape::Fixed(bytes) => bytes,
            ValueShape::Spread => SPREAD_MOST,
        };
        let mut random = Random::new(seed);
        let words = ((1u64 << POOL_OFFSET_BITS) + longest).div_ceil(8);
        let pool = (0..words).flat_map(|_| random.next().to_le_bytes()).collect();
        let text = (keys == KeyShape::Text).then(|| TextKeys::new(&mut random));
        let stride = longest | 1;
        Dataset { keys, values, pool, stride, text }
    }

    /// The key of a record.
    #[inline]
    pub fn key<'k>(&self, index: u64, key: &'k mut KeyBuf) -> &'k [u8] {
        match self.keys {
            KeyShape::Ascending => key.set8(index),
            KeyShape::Mixed8 => key.set8(mix(index)),
            KeyShape::Mixed16 => key.set16(mix(index), mix(index ^ SECOND_WORD)),
            KeyShape::Text => {
                if let Some(text) = &self.text {
                    key.len = text.write(index, &mut key.bytes);
                }
            }
        }
        &key.bytes[..key.len]
    }

    /// A key that no record has. Each `number` gives a different one.
    pub fn absent_key<'k>(&self, number: u64, key: &'k mut KeyBuf) -> &'k [u8] {
        let first = match self.keys {
            KeyShape::Text => super::text_keys::MAX_RECORDS,
            _ => ABSENT_FIRST_INDEX,
        };
        self.key(first + number % first, key)
    }

    /// The value of a record.
    #[inline]
    pub fn value(&self, index: u64) -> &[u8] {
        let len = match self.values {
            ValueShape::Fixed(bytes) => bytes,
            ValueShape::Spread => SPREAD_LEAST + (mix(index) >> 8) % (SPREAD_MOST - SPREAD_LEAST + 1),
        };
        self.cut(index, len)
    }

    /// Writes the value of a record's `version` to a buffer: the version, then bytes that depend on record
    /// and version.
    pub fn write_version(&self, index: u64, version: u64, value: &mut Vec<u8>) {
        let ValueShape::Fixed(len) = self.values else {
            return;
        };
        value.clear();
        value.extend_from_slice(&version.to_le_bytes());
        value.extend_from_slice(self.cut(index ^ mix(version), len.saturating_sub(8)));
    }

    /// Whether `value` is one that [`Dataset::write_version`] made for this record.
    pub fn is_version(&self, index: u64, value: &[u8]) -> bool {
        let Some((version, rest)) = value.split_first_chunk::<8>() else {
            return false;
        };
        let version = u64::from_le_bytes(*version);
        let ValueShape::Fixed(len) = self.values else {
            return false;
        };
        rest == self.cut(index ^ mix(version), len.saturating_sub(8))
    }

    /// `len` bytes of the pool, at the place that `index` gives.
    #[inline]
    fn cut(&self, index: u64, len: u64) -> &[u8] {
        let turn = (index >> POOL_OFFSET_BITS).wrapping_mul(GOLDEN);
        let place = index.wrapping_mul(self.stride).wrapping_add(turn);
        let offset = index_of(place & ((1 << POOL_OFFSET_BITS) - 1));
        &self.pool[offset..offset + index_of(len)]
    }

    /// The record with this key.
    #[inline]
    pub fn record_of(&self, key: &[u8]) -> Option<u64> {
        let word = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
        let (first, rest) = key.split_first_chunk::<8>()?;
        match self.keys {
            KeyShape::Ascending => rest.is_empty().then(|| word(first)),
            KeyShape::Mixed8 => rest.is_empty().then(|| unmix(word(first))),
            KeyShape::Mixed16 => {
                let index = unmix(word(first));
                let second = rest.try_into().ok().map(word);
                (second == Some(mix(index ^ SECOND_WORD))).then_some(index)
            }
            KeyShape::Text => {
                let index = self.text.as_ref()?.record_of(key)?;
                let mut expected = KeyBuf::new();
                (self.key(index, &mut expected) == key).then_some(index)
            }
        }
    }
}

/// A number that is known to fit, as an index.
fn index_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [KeyShape; 4] = [KeyShape::Ascending, KeyShape::Mixed8, KeyShape::Mixed16, KeyShape::Text];

    #[test]
    fn mixing_is_invertible() {
        let mut random = Random::new(7);
        for _ in 0..10_000 {
            let number = random.next();
            assert_eq!(unmix(mix(number)), number);
        }
        assert_eq!(mix(1), 0x5692_161d_100b_05e5);
    }

    #[test]
    fn a_key_tells_its_record() {
        for shape in SHAPES {
            let data = Dataset::new(shape, ValueShape::Fixed(8), 1);
            let mut key = KeyBuf::new();
            for index in (0..100_000).step_by(37) {
                assert_eq!(data.record_of(data.key(index, &mut key)), Some(index), "{shape:?}");
            }
            let mut broken = data.key(5, &mut key).to_vec();
            broken.push(0);
            assert_eq!(data.record_of(&broken), None, "{shape:?}");
        }
    }

    #[test]
    fn absent_keys_are_of_no_record() {
        for shape in [KeyShape::Mixed8, KeyShape::Mixed16, KeyShape::Text] {
            let data = Dataset::new(shape, ValueShape::Fixed(8), 1);
            let mut key = KeyBuf::new();
            for number in 0..10_000 {
                let index = data.record_of(data.absent_key(number, &mut key));
                assert!(index.is_some_and(|index| index >= 1 << 34), "{shape:?} {index:?}");
            }
        }
    }

    #[test]
    fn values_of_other_records_differ() {
        let data = Dataset::new(KeyShape::Ascending, ValueShape::Fixed(16), 1);
        for distance in (0..40).map(|power| 1u64 << power) {
            let same = |index: &u64| data.value(*index) == data.value(index + distance);
            assert_eq!((0..1_000).filter(same).count(), 0, "{distance}");
        }
    }

    #[test]
    fn values_have_their_lengths() {
        let fixed = Dataset::new(KeyShape::Mixed8, ValueShape::Fixed(4096), 1);
        assert!((0..5_000).all(|index| fixed.value(index).len() == 4096));
        let spread = Dataset::new(KeyShape::Text, ValueShape::Spread, 1);
        let lengths: Vec<usize> = (0..50_000).map(|index| spread.value(index).len()).collect();
        assert_eq!(lengths.iter().min(), Some(&20));
        assert_eq!(lengths.iter().max(), Some(&200));
    }

    #[test]
    fn versions_are_recognised() {
        let data = Dataset::new(KeyShape::Mixed8, ValueShape::Fixed(100), 1);
        let mut value = Vec::new();
        data.write_version(3, 9, &mut value);
        assert_eq!(value.len(), 100);
        assert!(data.is_version(3, &value));
        assert!(!data.is_version(4, &value));
        value[50] ^= 1;
        assert!(!data.is_version(3, &value));
    }
}
