//! Hashes: the order of hash tables, and the bits of filters.
//!
//! `mix` is the finalizer of SplitMix64 (Steele, Lea, Flood, 2014). It is invertible: a hash table stores
//! `mix(key)` for keys of eight bytes and needs no copy of the key.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// An invertible mix of 64 bits.
#[inline(always)]
pub(crate) const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The inverse of `mix`.
#[inline(always)]
pub(crate) const fn unmix(mut x: u64) -> u64 {
    x = (x ^ (x >> 31) ^ (x >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    x = (x ^ (x >> 27) ^ (x >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    x ^ (x >> 30) ^ (x >> 60)
}

/// The hash of a byte string under a seed.
#[inline]
pub(crate) fn hash_bytes(bytes: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// The filter hash of a sort key of exactly eight bytes, given as a big-endian number.
#[inline(always)]
pub(crate) const fn filter_hash8(head: u64) -> u64 {
    let x = (head ^ (head >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_is_undone_by_unmix() {
        let mut x = 1u64;
        for _ in 0..100_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            assert_eq!(unmix(mix(x)), x);
        }
    }
}
