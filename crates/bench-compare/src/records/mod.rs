//! The records that every peer gets: a key and a value made from an index. Both are cheap to make.
//!
//! Values are cut from a pool of random bytes, at an offset that depends on the record's index. So they do
//! not compress, cost nothing to make, and every byte can be verified when it is read again. Indices from the
//! number of records on give absent keys.

mod buffer;
mod mix;
mod sum;
mod text;

pub use buffer::KeyBuffer;
pub use mix::{Shuffle, mix};
pub use sum::ScanSum;
use text::TextKeys;

/// Bytes of the pool in which values begin. It fits the second-level cache.
const POOL_OFFSETS_LOG2: u32 = 18;
/// Lengths of the values of [`Shape::Text`].
const TEXT_VALUE_BYTES_MIN: usize = 20;
const TEXT_VALUE_BYTES_MAX: usize = 200;

/// What the records look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// 8-byte big-endian keys in ascending order.
    Ascending,
    /// 8-byte keys, scattered.
    Random8,
    /// 16-byte keys, scattered.
    Random16,
    /// Text keys of 8 to 40 bytes, scattered, with values of 20 to 200 bytes.
    Text,
    /// The same keys as `Text`, with values of one length.
    Pairs,
}

/// A set of records.
#[derive(Debug)]
pub struct Records {
    shape: Shape,
    value_bytes: usize,
    pool: Vec<u8>,
    text: Option<TextKeys>,
    /// Scatters the identifiers of text keys. Otherwise they would ascend within a prefix.
    ids: Shuffle,
}

impl Records {
    /// `count` records. [`Shape::Text`] ignores the length of values.
    pub fn new(shape: Shape, count: u64, value_bytes: usize) -> Self {
        let longest = value_bytes.max(TEXT_VALUE_BYTES_MAX);
        Self {
            shape,
            value_bytes,
            pool: random_bytes((1 << POOL_OFFSETS_LOG2) + longest),
            text: matches!(shape, Shape::Text | Shape::Pairs).then(TextKeys::new),
            ids: Shuffle::new(count.max(1).next_power_of_two() * 2),
        }
    }

    /// Whether keys ascend with the index.
    pub fn ascending(&self) -> bool {
        self.shape == Shape::Ascending
    }

    /// The key for an index.
    #[inline]
    pub fn key<'a>(&self, index: u64, buffer: &'a mut KeyBuffer) -> &'a [u8] {
        buffer.clear();
        match self.shape {
            Shape::Ascending => buffer.push(&index.to_be_bytes()),
            Shape::Random8 => buffer.push(&mix(index).to_be_bytes()),
            Shape::Random16 => {
                buffer.push(&mix(index).to_be_bytes());
                buffer.push(&mix(index ^ 0xA5A5_0000_0000_0000).to_be_bytes());
            }
            Shape::Text | Shape::Pairs => {
                if let Some(text) = &self.text {
                    text.write(self.ids.at(index), buffer);
                }
            }
        }
        buffer.bytes()
    }

    /// The value for an index.
    #[inline]
    pub fn value(&self, index: u64) -> &[u8] {
        let scattered = index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let length = match self.shape {
            Shape::Text => {
                let spread = TEXT_VALUE_BYTES_MAX - TEXT_VALUE_BYTES_MIN + 1;
                TEXT_VALUE_BYTES_MIN + to_usize(scattered & 0xFFFF_FFFF) % spread
            }
            _ => self.value_bytes,
        };
        self.cut(scattered, length)
    }

    /// The value of a version of a record, after 8 bytes that hold the version. It replaces the content of
    /// the buffer.
    #[inline]
    pub fn versioned_value(&self, index: u64, version: u64, buffer: &mut Vec<u8>) {
        buffer.clear();
        buffer.extend_from_slice(&version.to_le_bytes());
        buffer.extend_from_slice(self.versioned_rest(index, version));
    }

    /// Whether a value is, in whole, some version of the record of this index.
    #[inline]
    pub fn is_versioned_value(&self, index: u64, value: &[u8]) -> bool {
        match value.split_first_chunk::<8>() {
            Some((version, rest)) => rest == self.versioned_rest(index, u64::from_le_bytes(*version)),
            None => false,
        }
    }

    fn versioned_rest(&self, index: u64, version: u64) -> &[u8] {
        self.cut(mix(index ^ version.rotate_left(32)), self.value_bytes.saturating_sub(8))
    }

    #[inline]
    fn cut(&self, scattered: u64, length: usize) -> &[u8] {
        let offset = to_usize(scattered >> (u64::BITS - POOL_OFFSETS_LOG2));
        &self.pool[offset..offset + length]
    }

    /// Bytes of the keys and values of the first `count` records.
    pub fn raw_bytes(&self, count: u64) -> u64 {
        let mut buffer = KeyBuffer::default();
        let mut bytes = |index| to_u64(self.key(index, &mut buffer).len() + self.value(index).len());
        match self.shape {
            Shape::Text | Shape::Pairs => (0..count).map(bytes).sum(),
            _ => count * bytes(0),
        }
    }

    /// The sum that a scan of the first `count` records must have.
    pub fn sum(&self, count: u64) -> ScanSum {
        let mut buffer = KeyBuffer::default();
        let mut sum = ScanSum::default();
        for index in 0..count {
            sum.add(self.key(index, &mut buffer), self.value(index));
        }
        sum
    }
}

fn random_bytes(count: usize) -> Vec<u8> {
    let words = u64::try_from(count.div_ceil(8)).unwrap_or(u64::MAX);
    let mut bytes: Vec<u8> = (0..words).flat_map(|word| mix(word ^ 0x5EED_0000_0000).to_le_bytes()).collect();
    bytes.truncate(count);
    bytes
}

/// A count of bytes as `u64`. No machine that this runs on has wider addresses.
#[inline]
pub fn to_u64(count: usize) -> u64 {
    u64::try_from(count).expect("addresses have at most 64 bits")
}

/// A small count as `usize`.
#[inline]
pub fn to_usize(small: u64) -> usize {
    usize::try_from(small).expect("an offset within a buffer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_lengths_and_differ() {
        let fixed = Records::new(Shape::Random8, 100, 44);
        assert_eq!(fixed.value(1).len(), 44);
        assert_ne!(fixed.value(1), fixed.value(2));
        let text = Records::new(Shape::Text, 100, 0);
        let lengths: Vec<usize> = (0..100).map(|index| text.value(index).len()).collect();
        assert!(lengths.iter().all(|length| (20..=200).contains(length)));
        assert!(lengths.iter().min() < Some(&60) && lengths.iter().max() > Some(&160));
    }

    #[test]
    fn a_versioned_value_is_recognised_and_a_torn_one_is_not() {
        let records = Records::new(Shape::Random8, 100, 100);
        let mut value = Vec::new();
        records.versioned_value(7, 3, &mut value);
        assert_eq!(value.len(), 100);
        assert!(records.is_versioned_value(7, &value));
        assert!(!records.is_versioned_value(8, &value));
        value[99] ^= 1;
        assert!(!records.is_versioned_value(7, &value));
    }
}
