//! Operators: what operands do, by their codes.

use crate::base::error::{Error, shown};

/// The number that a value is.
pub(crate) type Number = [u8; 8];

pub(super) const ADD: u8 = 1;
pub(super) const ADD_F64: u8 = 2;
pub(super) const MIN_I64: u8 = 3;
pub(super) const MAX_I64: u8 = 4;
pub(super) const MIN_U64: u8 = 5;
pub(super) const MAX_U64: u8 = 6;
pub(super) const MIN_F64: u8 = 7;
pub(super) const MAX_F64: u8 = 8;
pub(super) const BIT_OR: u8 = 9;
pub(super) const APPEND: u8 = 10;
pub(super) const UNION: u8 = 11;
pub(super) const APPEND_APART: u8 = 12;
pub(super) const UNION_APART: u8 = 13;
pub(super) const PARTS: u8 = 14;

/// An operator: its code, and the bytes of an element if it unites sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operator {
    pub(super) code: u8,
    pub(super) width: u8,
}

impl Operator {
    pub(crate) fn code(self) -> u8 {
        self.code
    }

    /// The bytes of an element of a set; 0 for other operators.
    pub(crate) fn width(self) -> u8 {
        self.width
    }

    /// Whether operands with this code have a length.
    pub(crate) fn is_long_code(code: u8) -> bool {
        code > BIT_OR
    }

    /// Whether its operands have a length.
    pub(crate) fn is_long(self) -> bool {
        Operator::is_long_code(self.code)
    }

    /// Whether a value of so many bytes may be the base of a set's elements, or of what is appended.
    pub(crate) fn suits(self, bytes: u64) -> bool {
        self.width == 0 || bytes.is_multiple_of(u64::from(self.width))
    }

    /// None for the code of a clash, and for those that are not known.
    pub(crate) fn from_code(code: u8, width: u8) -> Option<Operator> {
        let fits = if code == UNION { width > 0 } else { width == 0 };
        ((ADD..=UNION).contains(&code) && fits).then_some(Operator { code, width })
    }

    /// That of an operand, by its bytes behind the word.
    pub(super) fn of(bytes: &[u8]) -> Option<Operator> {
        match *bytes {
            [APPEND, ..] | [APPEND_APART, _, ..] => Operator::from_code(APPEND, 0),
            [UNION | UNION_APART, width, ..] => Operator::from_code(UNION, width),
            [PARTS, code, width, ..] => Operator::from_code(code, width),
            [code, ..] => Operator::from_code(code, 0),
            [] => None,
        }
    }

    /// What becomes of a number.
    pub(super) fn apply(self, base: Number, operand: Number) -> Number {
        let (a, b) = (u64::from_le_bytes(base), u64::from_le_bytes(operand));
        let (x, y) = (a.cast_signed(), b.cast_signed());
        let (f, g) = (f64::from_le_bytes(base), f64::from_le_bytes(operand));
        let first = |is_first| if is_first { base } else { operand };
        match self.code {
            ADD => a.wrapping_add(b).to_le_bytes(),
            ADD_F64 => (f + g).to_le_bytes(),
            MIN_I64 => x.min(y).to_le_bytes(),
            MAX_I64 => x.max(y).to_le_bytes(),
            MIN_U64 => a.min(b).to_le_bytes(),
            MAX_U64 => a.max(b).to_le_bytes(),
            MIN_F64 => first(f.total_cmp(&g).is_le()),
            MAX_F64 => first(f.total_cmp(&g).is_ge()),
            _ => (a | b).to_le_bytes(),
        }
    }
}

/// Whether an operand, by its bytes behind the word, is one with a length.
#[inline(always)]
pub(crate) fn is_long(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|&code| (APPEND..=PARTS).contains(&code))
}

/// The error of bytes that are no operand.
pub(super) fn no_operand(bytes: &[u8]) -> Error {
    Error::corrupt("operand", 0, format!("bytes that are none: {}", shown(bytes)))
}

/// The error of operands that cannot stand on one key.
pub(super) fn two_operators(older: u8, newer: u8) -> Error {
    Error::corrupt("operand", 0, format!("operators {older} and {newer} on one key"))
}
