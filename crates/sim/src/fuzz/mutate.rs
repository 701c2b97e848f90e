//! Random damage to an input, as fuzzers do it: flipped bits, extreme numbers, and pieces that are moved,
//! doubled, cut off, or taken from another input.

use crate::rng::Rng;

const NUMBERS: [u64; 12] =
    [0, 1, 7, 8, 255, 256, 65_535, 65_536, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX];

/// Damages `bytes` in a few places, perhaps with pieces of `other`. The result has at most `max` bytes.
pub fn mutate(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng, max: usize) {
    for _ in 0..1 + rng.below(6) {
        once(bytes, other, rng);
    }
    bytes.truncate(max);
}

fn below(rng: &mut Rng, n: usize) -> usize {
    usize::try_from(rng.below(n as u64)).unwrap_or(0)
}

/// A random place. Bytes that are not zero are likelier.
fn place(bytes: &[u8], rng: &mut Rng) -> usize {
    let mut at = below(rng, bytes.len());
    for _ in 0..40 {
        if bytes.get(at).is_some_and(|&b| b != 0) {
            break;
        }
        at = below(rng, bytes.len());
    }
    at
}

fn once(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    if bytes.is_empty() {
        bytes.extend_from_slice(&other[..other.len().min(64)]);
        bytes.push(rng.below(256) as u8);
        return;
    }
    let at = place(bytes, rng);
    match rng.below(12) {
        0..=2 => bytes[at] ^= 1 << rng.below(8),
        3 => bytes[at] = rng.below(256) as u8,
        4 => bytes[at] = bytes[at].wrapping_add(1 + 254 * rng.below(2) as u8),
        5..=7 => {
            let width = *rng.pick(&[2, 4, 8]);
            let number = rng.pick(&NUMBERS).wrapping_add(rng.below(3)).to_le_bytes();
            let end = (at + width).min(bytes.len());
            bytes[at..end].copy_from_slice(&number[..end - at]);
        }
        8 => {
            let n = (1 + below(rng, 64)).min(bytes.len() - at);
            let to = below(rng, bytes.len() - n + 1);
            bytes.copy_within(at..at + n, to);
        }
        9 => {
            let n = (1 + below(rng, 64)).min(bytes.len() - at);
            if rng.one_in(2) {
                bytes.drain(at..at + n);
            } else {
                let piece = bytes[at..at + n].to_vec();
                bytes.splice(at..at, piece);
            }
        }
        10 if !other.is_empty() => {
            let from = below(rng, other.len());
            let n = (1 + below(rng, 4096)).min(other.len() - from).min(bytes.len() - at);
            bytes[at..at + n].copy_from_slice(&other[from..from + n]);
        }
        _ => bytes.truncate(at + 1),
    }
}
