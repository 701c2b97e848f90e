//! Frames of the log on their way: packed, so that what they say again and again goes over once.
//!
//! A commit of one small record is mostly what the record before said too: lengths, the table, the high bytes
//! of its number. A mirror has whole frames all the same, so the bytes are unpacked before anybody looks at
//! them, and compared with a checksum of what was packed.
//!
//! ```text
//! packed    u32 length of the bytes | u32 their CRC-32C | steps, until all bytes are there:
//! step      varint n | n bytes as they are | varint 2 m, or 2 m + 1 and a varint d
//!             then m bytes are the same as those that stand d before them, or as far as in the step before
//! varint    seven bits in a byte, the lowest first; 128 more if another byte follows
//! ```

use crate::base::checksum::crc;
use crate::base::codec::{u32_at, u32_of, u64_at, usize_of, usize_of64};

const HEAD_BYTES: usize = 8;
/// Shorter repetitions are not worth a step: at the distance of the step before, and at another one.
const SAME_BYTES_MIN: usize = 3;
const OTHER_BYTES_MIN: usize = 8;
/// Places that are remembered, by what stands there.
const PLACES_BITS: u32 = 13;
/// The longest varint that is believed.
const VARINT_BYTES_MAX: u32 = 5;

/// Packs bytes behind what `out` has. REQUIRES: they are fewer than 2^31.
pub(super) fn pack(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(u32_of(bytes.len()).to_le_bytes());
    out.extend(crc(0, bytes).to_le_bytes());
    let mut places = vec![0_u32; 1 << PLACES_BITS];
    let (mut at, mut literals_at, mut distance) = (0, 0, 0);
    while at + OTHER_BYTES_MIN <= bytes.len() {
        let same = common(bytes, at, distance);
        let (len, from) =
            if same >= SAME_BYTES_MIN { (same, distance) } else { other(bytes, at, distance, &mut places) };
        if len == 0 {
            at += 1;
            continue;
        }
        push(out, at - literals_at);
        out.extend_from_slice(&bytes[literals_at..at]);
        push(out, 2 * len + usize::from(from != distance));
        if from != distance {
            push(out, from);
        }
        (at, distance) = (at + len, from);
        literals_at = at;
    }
    if literals_at < bytes.len() {
        push(out, bytes.len() - literals_at);
        out.extend_from_slice(&bytes[literals_at..]);
    }
}

/// What stands somewhere else too: how many bytes, and how far before. 0 if it is not worth it.
fn other(bytes: &[u8], at: usize, distance: usize, places: &mut [u32]) -> (usize, usize) {
    let place = &mut places[hash(bytes, at)];
    let from = at - usize_of(std::mem::replace(place, u32_of(at)));
    let len = common(bytes, at, from);
    // The distance is worth keeping, if as much is there one byte later.
    let is_better = len >= OTHER_BYTES_MIN && len > common(bytes, at + 1, distance) + 1;
    (if is_better { len } else { 0 }, from)
}

/// How many bytes from a place on are the same as those that stand so far before them. 0 if that is nowhere.
fn common(bytes: &[u8], at: usize, distance: usize) -> usize {
    if distance == 0 || distance > at {
        return 0;
    }
    let pairs = bytes[at..].iter().zip(&bytes[at - distance..]);
    pairs.take_while(|(a, b)| a == b).count()
}

/// Where a place is remembered. REQUIRES: eight bytes stand there.
fn hash(bytes: &[u8], at: usize) -> usize {
    usize_of64(u64_at(bytes, at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES_BITS))
}

fn push(out: &mut Vec<u8>, mut n: usize) {
    while n >= 128 {
        out.push(n.to_le_bytes()[0] | 128);
        n /= 128;
    }
    out.push(n.to_le_bytes()[0]);
}

/// The bytes that were packed, which are `bytes_max` at most. None if these are none, or others.
pub(super) fn unpack(packed: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    if packed.len() < HEAD_BYTES {
        return None;
    }
    let len = usize_of(u32_at(packed, 0));
    let sum = u32_at(packed, 4);
    let mut rest = &packed[HEAD_BYTES..];
    if len > bytes_max {
        return None;
    }
    let mut bytes = Vec::with_capacity(len);
    let mut distance = 0;
    while bytes.len() < len {
        let count = take(&mut rest)?;
        let (literals, left) = rest.split_at_checked(count)?;
        rest = left;
        bytes.extend_from_slice(literals);
        if bytes.len() >= len {
            break;
        }
        let step = take(&mut rest)?;
        if step % 2 == 1 {
            distance = take(&mut rest)?;
        }
        repeat(&mut bytes, distance, step / 2, len)?;
    }
    (rest.is_empty() && bytes.len() == len && crc(0, &bytes) == sum).then_some(bytes)
}

/// Adds bytes that stand so far before. None if nothing does, or it would be more than `len` in all.
fn repeat(bytes: &mut Vec<u8>, distance: usize, mut more: usize, len: usize) -> Option<()> {
    let from = bytes.len().checked_sub(distance)?;
    if distance == 0 || more == 0 || more > len - bytes.len() {
        return None;
    }
    while more > 0 {
        // It may repeat what it adds.
        let n = more.min(bytes.len() - from);
        bytes.extend_from_within(from..from + n);
        more -= n;
    }
    Some(())
}

fn take(rest: &mut &[u8]) -> Option<usize> {
    let mut n = 0_u64;
    for i in 0..VARINT_BYTES_MAX {
        let (first, left) = rest.split_first()?;
        *rest = left;
        n |= u64::from(first % 128) << (7 * i);
        if *first < 128 {
            return usize::try_from(n).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        pack(bytes, &mut out);
        out.split_off(6)
    }

    /// Numbers that cannot be packed.
    fn noise(n: u64) -> u64 {
        let n = (n ^ 0x5851_f42d).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ n >> 32
    }

    /// Records of 8 + 8 bytes, each a commit, as the log has them.
    fn commits(count: u64) -> Vec<u8> {
        let record = |n: u64| {
            let fields = [50, 70_000 + n].map(u64::to_le_bytes).concat();
            let counts = [1_u32, 3, 0, 0].map(u32::to_le_bytes).concat();
            let form = [&[1][..], &[1, 0, 0, 0, 8, 0, 0, 0, 0]].concat();
            [fields, counts, form, noise(n).to_le_bytes().to_vec(), noise(!n).to_le_bytes().to_vec()].concat()
        };
        (0..count).flat_map(record).collect()
    }

    #[test]
    fn what_was_packed_comes_out_again() {
        let zeros = vec![0; 100_000];
        let random: Vec<u8> = (0..9000).flat_map(|n| noise(n).to_le_bytes()).collect();
        let mixed =
            [&zeros[..70], &random[..5000], &zeros[..4096], &random[1000..3000], &[1, 2][..]].concat();
        for bytes in [&[][..], &[7], &[7; 7], &[7; 9], &zeros, &random, &mixed, &commits(1000)] {
            let packed = packed(bytes);
            assert_eq!(unpack(&packed, bytes.len()).as_deref(), Some(bytes));
            assert!(packed.len() <= bytes.len() + 16, "{} of {}", packed.len(), bytes.len());
            if !bytes.is_empty() {
                assert_eq!(unpack(&packed, bytes.len() - 1), None, "more than is wanted");
            }
        }
        assert!(packed(&zeros).len() < 24);
        // Three bytes that are repeated after each 16 KiB: a step takes more than it spares.
        let mut odd: Vec<u8> = (0..16_400).flat_map(|n| noise(n).to_le_bytes()).collect();
        odd.copy_within(0..OTHER_BYTES_MIN, 16_390);
        let each = 16_390;
        for at in (2 * each..odd.len() - 8).step_by(each) {
            odd.copy_within(at - each..at - each + SAME_BYTES_MIN, at);
        }
        let long = packed(&odd);
        assert!(long.len() <= odd.len() + odd.len() / (16 << 10) + 64, "{} of {}", long.len(), odd.len());
        assert_eq!(unpack(&long, odd.len()).as_ref(), Some(&odd));
    }

    #[test]
    fn a_commit_of_one_record_takes_little_more_than_the_record() {
        let commits = commits(10_000);
        assert_eq!(commits.len(), 10_000 * 58);
        let len = packed(&commits).len();
        assert!(len < 10_000 * 22, "{len}");
    }

    #[test]
    fn what_has_changed_on_its_way_does_not_come_out() {
        let bytes = [&commits(20)[..], &[0; 300]].concat();
        let packed = packed(&bytes);
        for at in 0..packed.len() {
            for bit in 0..8 {
                let mut harmed = packed.clone();
                harmed[at] ^= 1 << bit;
                assert_ne!(unpack(&harmed, 1 << 20), Some(vec![]), "byte {at}");
                assert!(unpack(&harmed, 1 << 20).is_none_or(|out| out == bytes), "byte {at}");
            }
            assert_eq!(unpack(&packed[..at], 1 << 20), None);
        }
        assert_eq!(unpack(&[&packed[..], &[0]].concat(), 1 << 20), None, "more than all");
    }

    #[test]
    fn what_nobody_has_packed_is_refused() {
        let of = |steps: &[u8]| [&100_u32.to_le_bytes()[..], &[0; 4], steps].concat();
        let nothing_before: &[u8] = &[0, 8];
        let too_far: &[u8] = &[1, 5, 9, 2];
        let no_distance: &[u8] = &[1, 5, 9, 0];
        let no_bytes: &[u8] = &[1, 5, 1, 1, 1, 5, 1, 1];
        let too_many: &[u8] = &[1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f, 1];
        let long: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        for steps in [nothing_before, too_far, no_distance, no_bytes, too_many, long, &[101], &[]] {
            assert_eq!(unpack(&of(steps), 1 << 20), None, "{steps:?}");
        }
        assert_eq!(unpack(&u32::MAX.to_le_bytes().repeat(2), 1 << 20), None);
        for n in 0..20_000_u64 {
            let steps: Vec<u8> = (0..1 + n % 40).flat_map(|i| noise(n * 64 + i).to_le_bytes()).collect();
            assert!(unpack(&of(&steps), 1 << 20).is_none());
        }
    }
}
