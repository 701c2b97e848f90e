//! CRC32C by folding, 256 bytes at a time, where the processor multiplies polynomials in wide registers.
//!
//! A message is a polynomial, and its checksum a remainder. 64 bytes that stand `n` bits before others may be
//! added to these once they are multiplied by x^n, whose remainder does as well (Gopal and others, "Fast CRC
//! Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009). So four registers of 64
//! bytes are folded onto the next 256 bytes of the message, and in the end onto each other, down to 16 bytes
//! with the same remainder.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi32_si128,
    _mm_cvtsi128_si64, _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128, _mm512_broadcast_i32x4,
    _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32, _mm512_loadu_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512, _mm512_zextsi128_si512,
};

/// From this length on folding is the faster way.
pub(super) const FOLD_BYTES_MIN: usize = 256;

/// Bytes of a register.
const WIDE: usize = 64;

/// The polynomial of CRC32C without its highest term, the highest of the others first.
const POLYNOMIAL: u32 = 0x1edc_6f41;

/// The remainder of x^n, as the product of two reflected numbers needs it.
const fn power(n: u32) -> i64 {
    let mut remainder: u32 = 1;
    let mut i = 0;
    while i < n {
        let carry = remainder >> 31;
        remainder = (remainder << 1) ^ (carry * POLYNOMIAL);
        i += 1;
    }
    (remainder.reverse_bits() as i64) << 1
}

/// The two multipliers that move 16 bytes by `bits`: for their first half, and for their second.
const fn multipliers(bits: u32) -> (i64, i64) {
    (power(bits + 32), power(bits - 32))
}

const BY_2048: (i64, i64) = multipliers(2048);
const BY_512: (i64, i64) = multipliers(512);
const BY_128: (i64, i64) = multipliers(128);

/// Whether the processor has what `crc_folded` needs.
#[inline(always)]
pub(super) fn can_fold() -> bool {
    is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("sse4.2")
}

#[target_feature(enable = "sse2")]
fn pair((first, second): (i64, i64)) -> __m128i {
    _mm_set_epi64x(second, first)
}

/// Moves the blocks of `from` onto those of `to`.
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold_wide(from: __m512i, to: __m512i, by: __m512i) -> __m512i {
    let first = _mm512_clmulepi64_epi128::<0x00>(from, by);
    let second = _mm512_clmulepi64_epi128::<0x11>(from, by);
    _mm512_ternarylogic_epi64::<0x96>(first, second, to)
}

#[target_feature(enable = "pclmulqdq,sse2")]
fn fold(from: __m128i, to: __m128i, by: __m128i) -> __m128i {
    let first = _mm_clmulepi64_si128::<0x00>(from, by);
    let second = _mm_clmulepi64_si128::<0x11>(from, by);
    _mm_xor_si128(_mm_xor_si128(first, second), to)
}

/// The checksum of `bytes` behind those of which `crc` is the checksum.
#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
pub(super) fn crc_folded(crc: u32, bytes: &[u8]) -> u32 {
    let load = |block: &[u8; WIDE]| {
        // SAFETY: the block has 64 bytes, and the load asks for no alignment.
        unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
    };
    // The block's bytes are in the order of the polynomial's terms, so the checksum so far is added to the
    // first four.
    let (blocks, rest) = bytes.as_chunks::<WIDE>();
    let (fours, ones) = blocks.as_chunks::<4>();
    let Some((head, fours)) = fours.split_first() else { return finish(!crc, bytes) };
    let mut a = head.each_ref().map(load);
    a[0] = _mm512_xor_si512(a[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((!crc).cast_signed())));
    let by = _mm512_broadcast_i32x4(pair(BY_2048));
    for four in fours {
        a = [
            fold_wide(a[0], load(&four[0]), by),
            fold_wide(a[1], load(&four[1]), by),
            fold_wide(a[2], load(&four[2]), by),
            fold_wide(a[3], load(&four[3]), by),
        ];
    }
    let by = _mm512_broadcast_i32x4(pair(BY_512));
    let mut all = a[0];
    for next in &a[1..] {
        all = fold_wide(all, *next, by);
    }
    for block in ones {
        all = fold_wide(all, load(block), by);
    }
    let by = pair(BY_128);
    let mut last = _mm512_extracti32x4_epi32::<0>(all);
    last = fold(last, _mm512_extracti32x4_epi32::<1>(all), by);
    last = fold(last, _mm512_extracti32x4_epi32::<2>(all), by);
    last = fold(last, _mm512_extracti32x4_epi32::<3>(all), by);
    let crc = _mm_crc32_u64(0, _mm_cvtsi128_si64(last).cast_unsigned());
    let crc = _mm_crc32_u64(crc, _mm_extract_epi64::<1>(last).cast_unsigned());
    finish(crc as u32, rest)
}

/// The checksum once the last bytes are added, eight at a time.
#[target_feature(enable = "sse4.2")]
fn finish(state: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let state =
        words.iter().fold(u64::from(state), |state, word| _mm_crc32_u64(state, u64::from_le_bytes(*word)));
    !rest.iter().fold(state as u32, |state, &byte| _mm_crc32_u8(state, byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_gives_the_same_checksum() {
        if !can_fold() {
            return;
        }
        let mut x = 1u64;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 32) as u32
        };
        let bytes: Vec<u8> = (0..70_000).map(|_| next().to_le_bytes()[3]).collect();
        for len in (0..1_200).chain([4_095, 4_096, 16_384, 16_388, 65_537]) {
            for start in [0, 1, 7, 63] {
                let (bytes, seed) = (&bytes[start..start + len], next());
                // SAFETY: the processor can fold.
                let folded = unsafe { crc_folded(seed, bytes) };
                assert_eq!(folded, crc32c::crc32c_append(seed, bytes), "{len} bytes from {start}");
            }
        }
    }
}
