//! The sum over a scan of all records. shim/peer.h has the same function in C.

/// The result of a scan: the number of records, and the sum of [`record_sum`] over them. The sum does not
/// depend on their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScanSum {
    /// Records seen.
    pub records: u64,
    /// Wrapping sum of what each adds.
    pub sum: u64,
}

impl ScanSum {
    /// Adds one record.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.records += 1;
        self.sum = self.sum.wrapping_add(record_sum(key, value));
    }
}

#[inline]
fn record_sum(key: &[u8], value: &[u8]) -> u64 {
    let x = words(key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 29)).wrapping_add(words(value));
    let x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ (x >> 32)
}

/// The sum of the bytes as little-endian 64-bit words, the last one padded with zeros.
#[inline]
fn words(bytes: &[u8]) -> u64 {
    let (whole, rest) = bytes.as_chunks::<8>();
    let mut sum = 0u64;
    for word in whole {
        sum = sum.wrapping_add(u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        let mut last = [0u8; 8];
        last[..rest.len()].copy_from_slice(rest);
        sum = sum.wrapping_add(u64::from_le_bytes(last));
    }
    sum
}
