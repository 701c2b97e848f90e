//! Operands that have a length: what is appended to a value, and the elements that are united with a set.
//!
//! ```text
//! u8 10: append                         the bytes
//! u8 11: union     u8 element's bytes   the elements, in ascending order, each once
//! u8 12: append                         a reference to the bytes
//! u8 13: union     u8 element's bytes   a reference to the elements
//! ```
//!
//! The last two are those of runs alone: an operand that is too long for a page stands apart, in a value
//! segment, as a value does.
//!
//! What operands and their base make is *gathered*, the newest first: nothing is read for it. So it may be
//! some bytes and some references. In memory that is one more form:
//!
//! ```text
//! u8 14   u8 operator (10, 11)   u8 element's bytes, or 0   u8 1 if it is a value, 0 if it is an operand
//! u64     when it expires, all ones: never
//! and each part, the newest first:   u8 0 = bytes, 1 = a reference   u32 length   these
//! ```
//!
//! What writes runs makes a value or an operand of it again (`engine/compaction/output.rs`), and so does who
//! reads it. No file has it.
//!
//! A base that is no set, but whose length is a whole number of elements, becomes one when elements are
//! united with it.

use super::operator::{APPEND, APPEND_APART, Operator, PARTS, UNION, UNION_APART, no_operand};
use crate::base::codec::{u32_at, u64_at, usize_of};
use crate::base::error::Result;
use crate::format::expiry::Expiry;
use std::cmp::Ordering;

/// Bytes of a reference to a value segment. Its length stands at the ninth of them.
pub(super) const REFERENCE_BYTES: usize = 16;
pub(super) const REFERENCE_LEN_AT: usize = 8;

/// Bytes of the form with parts before the first of them, and of a part before its bytes.
const PARTS_HEAD_BYTES: usize = 12;
const PART_HEAD_BYTES: usize = 5;

/// Whether what was gathered is a value.
pub(crate) fn is_value(bytes: &[u8]) -> bool {
    Long::read(bytes).is_some_and(|long| long.base.is_some())
}

/// Whether an operand, by its bytes behind the word, was gathered of parts.
pub(crate) fn is_gathered(bytes: &[u8]) -> bool {
    bytes.first() == Some(&PARTS)
}

/// When the value expires that was gathered.
pub(crate) fn expiry_of(bytes: &[u8]) -> Expiry {
    Long::read(bytes).and_then(|long| long.base).unwrap_or(Expiry::NEVER)
}

/// Some bytes of a value or operand.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    Here(&'a [u8]),
    Apart(&'a [u8]),
}

/// An operand with a length, or what was gathered of some and their base.
pub(super) struct Long<'a> {
    pub(super) operator: Operator,
    /// If it is a value: when that expires.
    pub(super) base: Option<Expiry>,
    pub(super) parts: Parts<'a>,
}

/// The parts, the newest first.
#[derive(Clone)]
pub(super) struct Parts<'a> {
    only: Option<Part<'a>>,
    rest: &'a [u8],
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        if let Some(part) = self.only.take() {
            return Some(part);
        }
        let (part, rest) = split_part(self.rest)?;
        self.rest = rest;
        Some(part)
    }
}

/// The first of some parts, and the others. None at their end, and where they make no sense.
fn split_part(bytes: &[u8]) -> Option<(Part<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(PART_HEAD_BYTES)?;
    let (bytes, rest) = rest.split_at_checked(usize_of(u32_at(head, 1)))?;
    match head[0] {
        0 => Some((Part::Here(bytes), rest)),
        1 if bytes.len() == REFERENCE_BYTES => Some((Part::Apart(bytes), rest)),
        _ => None,
    }
}

impl<'a> Long<'a> {
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Long<'a>> {
        Long::read(bytes).ok_or_else(|| no_operand(bytes))
    }

    fn read(bytes: &'a [u8]) -> Option<Long<'a>> {
        let operator = Operator::of(bytes).filter(|operator| operator.is_long())?;
        let one = |part| Some(Long { operator, base: None, parts: Parts { only: Some(part), rest: &[] } });
        let here = |bytes| one(Part::Here(bytes));
        match bytes[0] {
            APPEND => here(&bytes[1..]),
            UNION if (bytes.len() - 2).is_multiple_of(usize::from(operator.width)) => here(&bytes[2..]),
            APPEND_APART | UNION_APART => reference(bytes).and_then(|reference| one(Part::Apart(reference))),
            PARTS if bytes.len() >= PARTS_HEAD_BYTES => {
                let expiry = match u64_at(bytes, 4) {
                    u64::MAX => Expiry::NEVER,
                    ms => Expiry::at(ms),
                };
                let parts = Parts { only: None, rest: &bytes[PARTS_HEAD_BYTES..] };
                let mut left = parts.clone();
                left.by_ref().for_each(drop);
                left.rest.is_empty().then_some(Long {
                    operator,
                    base: (bytes[3] == 1).then_some(expiry),
                    parts,
                })
            }
            _ => None,
        }
    }

    /// Refuses what is no operand with all its bytes, and one whose elements are in no order.
    pub(super) fn check_whole(bytes: &[u8]) -> Result<()> {
        match (bytes[0], Long::decode(bytes)?.operator.width) {
            (APPEND, _) => Ok(()),
            (UNION, width) if is_set(&bytes[2..], usize::from(width)) => Ok(()),
            _ => Err(no_operand(bytes)),
        }
    }
}

/// The reference of an operand that stands apart, by its bytes behind the word.
pub(crate) fn reference(bytes: &[u8]) -> Option<&[u8]> {
    let rest = match *bytes {
        [APPEND_APART, ref rest @ ..] => rest,
        [UNION_APART, width, ref rest @ ..] if width > 0 => rest,
        _ => return None,
    };
    (rest.len() == REFERENCE_BYTES).then_some(rest)
}

/// The references of an operand, or of what was gathered, by its bytes behind the word.
pub(crate) fn references(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = Long::read(bytes).map(|long| long.parts);
    parts.into_iter().flatten().filter_map(|part| match part {
        Part::Apart(reference) => Some(reference),
        Part::Here(_) => None,
    })
}

/// Whether some bytes are elements in ascending order.
fn is_set(bytes: &[u8], width: usize) -> bool {
    bytes.len().is_multiple_of(width) && bytes.chunks_exact(width).is_sorted_by(|a, b| a < b)
}

/// So many elements are sorted at once. What that takes is small beside the bytes of the longest value.
const SORTED_AT_ONCE: usize = 1 << 16;

/// The elements in ascending order, each once. It takes up to three times their bytes, whatever their width:
/// pieces of them are sorted, and united two by two, those of about one size.
pub(super) fn set_of(bytes: &[u8], width: usize) -> Vec<u8> {
    if is_set(bytes, width) {
        return bytes.to_vec();
    }
    let mut sets: Vec<Vec<u8>> = Vec::new();
    for piece in bytes.chunks(SORTED_AT_ONCE * width) {
        let mut elements: Vec<&[u8]> = piece.chunks_exact(width).collect();
        elements.sort_unstable();
        elements.dedup();
        let mut set = elements.concat();
        while sets.last().is_some_and(|last| last.len() <= 2 * set.len()) {
            set = united(&sets.pop().unwrap_or_default(), &set, width);
        }
        sets.push(set);
    }
    sets.into_iter().rev().reduce(|all, set| united(&set, &all, width)).unwrap_or_default()
}

/// The elements of two sets.
pub(super) fn united(a: &[u8], b: &[u8], width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a, b);
    while let (Some((x, rest_a)), Some((y, rest_b))) = (a.split_at_checked(width), b.split_at_checked(width))
    {
        let order = x.cmp(y);
        out.extend_from_slice(if order == Ordering::Greater { y } else { x });
        if order != Ordering::Greater {
            a = rest_a;
        }
        if order != Ordering::Less {
            b = rest_b;
        }
    }
    out.extend_from_slice(a);
    out.extend_from_slice(b);
    out
}

/// The bytes of an operand before those that it appends or unites.
pub(super) fn operand_head(operator: Operator) -> impl Iterator<Item = u8> {
    [operator.code, operator.width].into_iter().take(if operator.width > 0 { 2 } else { 1 })
}

/// An operand whose bytes a reference has.
pub(super) fn apart(operator: Operator, reference: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = operand_head(operator).chain(reference.iter().copied()).collect();
    bytes[0] = if operator.width > 0 { UNION_APART } else { APPEND_APART };
    bytes
}

/// The operand that stands apart: `stored` with its bytes where `reference` leads. REQUIRES: `stored` has all
/// its bytes.
pub(crate) fn stored_apart(stored: &[u8], reference: &[u8]) -> Result<Vec<u8>> {
    let operator = Operator::of(stored).ok_or_else(|| no_operand(stored))?;
    Ok(apart(operator, reference))
}

/// What an operand that has all its bytes appends or unites.
pub(crate) fn bytes_of(stored: &[u8]) -> &[u8] {
    match *stored {
        [APPEND, ref bytes @ ..] | [UNION, _, ref bytes @ ..] => bytes,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn many_elements_become_a_set() {
        let mut x = 5u64;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            x >> 40
        };
        for width in [1, 2, 3, 8] {
            for count in [0, 1, 2, 1000, SORTED_AT_ONCE, SORTED_AT_ONCE + 1, 5 * SORTED_AT_ONCE + 7] {
                let bytes: Vec<u8> = (0..count * width).map(|_| next().to_le_bytes()[0]).collect();
                let due: BTreeSet<&[u8]> = bytes.chunks_exact(width).collect();
                let set = set_of(&bytes, width);
                assert!(set.chunks_exact(width).eq(due), "{count} elements of {width} bytes");
            }
        }
    }
}
