//! The arithmetic of checksums. A checksum's **state** is a polynomial over the bits, and appending a zero
//! byte multiplies it. So the checksum of any stretch follows from the states at its two ends, however long
//! it is. That of two stretches, one after the other, follows from the states of both.

use crate::base::checksum::crc;

/// CRC32C, the lowest power in the highest bit.
const POLYNOMIAL: u32 = 0x82f6_3b78;
const ONE: u32 = 1 << 31;

/// The state with which a checksum begins.
const FIRST: u32 = !0;

/// The state after more bytes.
pub(super) fn after(state: u32, bytes: &[u8]) -> u32 {
    !crc(!state, bytes)
}

/// The states before each byte and behind the last one. The first state is 0.
pub(super) fn fill(states: &mut [u32], bytes: &[u8]) {
    const TABLE: [u32; 256] = table();
    let mut state = 0u32;
    states[0] = 0;
    for (next, &byte) in states[1..].iter_mut().zip(bytes) {
        let [low, ..] = state.to_le_bytes();
        state = TABLE[usize::from(low ^ byte)] ^ (state >> 8);
        *next = state;
    }
}

const fn table() -> [u32; 256] {
    let mut out = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut state, mut bit) = (byte as u32, 0);
        while bit < 8 {
            state = by_x(state);
            bit += 1;
        }
        out[byte] = state;
        byte += 1;
    }
    out
}

const fn by_x(a: u32) -> u32 {
    (a >> 1) ^ (if a & 1 == 1 { POLYNOMIAL } else { 0 })
}

/// The product of two polynomials.
pub(super) fn product(a: u32, mut b: u32) -> u32 {
    let mut sum = 0;
    for bit in (0..32).rev() {
        if a >> bit & 1 == 1 {
            sum ^= b;
        }
        b = by_x(b);
    }
    sum
}

/// The factor by which this many zero bytes multiply a state.
pub(super) fn zeroes(mut bytes: u64) -> u32 {
    let (mut out, mut power) = (ONE, ONE >> 8);
    while bytes > 0 {
        if bytes & 1 == 1 {
            out = product(out, power);
        }
        power = product(power, power);
        bytes >>= 1;
    }
    out
}

/// Computes checksums of stretches of one length.
pub(super) struct Stretch {
    /// For each byte of a state, its product with the factor of the stretch's length.
    products: [[u32; 256]; 4],
    /// What the first state contributes.
    first: u32,
}

impl Stretch {
    pub(super) fn new(bytes: u64) -> Stretch {
        let mut products = [[0; 256]; 4];
        let mut power = zeroes(bytes);
        for at in (0..4).rev() {
            let of_byte = &mut products[at];
            for bit in (0..8).rev() {
                let half = 1 << bit;
                of_byte[half] = power;
                power = by_x(power);
            }
            for i in 1..256usize {
                let rest = i & (i - 1);
                of_byte[i] = of_byte[rest] ^ of_byte[i ^ rest];
            }
        }
        let mut out = Stretch { products, first: 0 };
        out.first = out.multiply(FIRST);
        out
    }

    fn multiply(&self, state: u32) -> u32 {
        let bytes = state.to_le_bytes().into_iter();
        self.products.iter().zip(bytes).fold(0, |sum, (of_byte, byte)| sum ^ of_byte[usize::from(byte)])
    }

    /// The checksum of the bytes between two places with these states.
    #[inline]
    pub(super) fn checksum(&self, before: u32, behind: u32) -> u32 {
        !(behind ^ self.multiply(before) ^ self.first)
    }
}

/// Checksums of stretches that begin as one stretch and end as another of the same length, one checksum for
/// each border between them, from the last border on. `first` and `second` are the stretches' states before
/// each block and behind the last block, which has `tail` bytes.
pub(super) fn joined<'a>(
    first: &'a [u32],
    second: &'a [u32],
    tail: u64,
    block: u64,
) -> impl Iterator<Item = u32> + 'a {
    let n = first.len().min(second.len()).saturating_sub(1);
    let (by_block, whole) = (zeroes(block), second.get(n).copied().unwrap_or(0));
    let mut power = zeroes(tail);
    (1..n).rev().map(move |border| {
        let sum = product(first[border] ^ second[border], power) ^ whole;
        power = product(power, by_block);
        !sum
    })
}

/// The states that `joined` needs. The first block has `head` bytes.
pub(super) fn states(bytes: &[u8], head: usize, block: usize) -> Vec<u32> {
    let (head, rest) = bytes.split_at(head.min(bytes.len()));
    let mut state = after(FIRST, head);
    let mut out = vec![FIRST, state];
    for part in rest.chunks(block) {
        state = after(state, part);
        out.push(state);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(n: usize, salt: usize) -> Vec<u8> {
        (0..n).map(|i| (i * i * 31 + i * salt + (i >> 9)) as u8).collect()
    }

    #[test]
    fn the_checksum_of_a_stretch_follows_from_its_ends() {
        let bytes = bytes(9000, 3);
        let mut states = vec![0; bytes.len() + 1];
        fill(&mut states, &bytes);
        for (from, to) in [(0, 9000), (0, 1), (17, 17), (100, 4196), (4095, 4097), (8999, 9000), (1, 8888)] {
            let stretch = Stretch::new((to - from) as u64);
            assert_eq!(
                stretch.checksum(states[from], states[to]),
                crc(0, &bytes[from..to]),
                "{from} to {to}"
            );
            assert_eq!(after(states[from], &bytes[from..to]), states[to]);
        }
    }

    #[test]
    fn two_parts_are_joined_at_any_border() {
        let (a, b) = (bytes(10_000, 3), bytes(10_000, 5));
        let (head, block) = (700, 1000);
        let tail = (a.len() - head) % block;
        let found: Vec<u32> =
            joined(&states(&a, head, block), &states(&b, head, block), tail as u64, block as u64).collect();
        let borders = (0..).map(|i| head + i * block).take_while(|&at| at < a.len());
        let expected: Vec<u32> = borders.map(|at| crc(0, &[&a[..at], &b[at..]].concat())).collect();
        assert_eq!(found.into_iter().rev().collect::<Vec<_>>(), expected);
    }
}
