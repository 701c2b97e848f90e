//! Hashes and checksums: sections 3 and 7.2.

use super::page::Doc;

pub(super) fn head(b: &[u8]) -> u64 {
    (0..8).fold(0, |n, i| n << 8 | u64::from(b.get(i).copied().unwrap_or(0)))
}

pub fn mix(doc: &Doc, x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(doc.constant("mix_multiplier_1"));
    let x = (x ^ x >> 27).wrapping_mul(doc.constant("mix_multiplier_2"));
    x ^ x >> 31
}

pub fn unmix(doc: &Doc, x: u64) -> u64 {
    let x = (x ^ x >> 31 ^ x >> 62).wrapping_mul(doc.constant("unmix_multiplier_1"));
    let x = (x ^ x >> 27 ^ x >> 54).wrapping_mul(doc.constant("unmix_multiplier_2"));
    x ^ x >> 30 ^ x >> 60
}

pub fn filter_hash8(doc: &Doc, x: u64) -> u64 {
    let x = (x ^ x >> 32).wrapping_mul(doc.constant("filter_hash_multiplier_1"));
    (x ^ x >> 29).wrapping_mul(doc.constant("filter_hash_multiplier_2"))
}

pub fn hash(bytes: &[u8], seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}

pub fn page_checksum(file_id: u64, run: u64, page: u64, bytes: &[u8]) -> u64 {
    let identity =
        [&file_id.to_le_bytes()[..], &run.to_le_bytes(), &(page as u32).to_le_bytes(), bytes].concat();
    u64::from(crc32c::crc32c(&identity))
}
