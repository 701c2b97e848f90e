//! What a caller gives to be merged, and the operand that it is.

use super::long::{bytes_of, operand_head, set_of};
use super::operator::{
    ADD, ADD_F64, APPEND, BIT_OR, MAX_F64, MAX_I64, MAX_U64, MIN_F64, MIN_I64, MIN_U64, Operator, UNION,
    is_long,
};
use super::{Operand, STORED_BYTES, check_logged};
use crate::base::error::{Error, Result};
use crate::base::limits::{ELEMENT_BYTES_MAX, OPERAND_BYTES_MAX, VALUE_BYTES_MAX};
use crate::format::expiry::{OPERAND_WORD, WORD_BYTES};

/// What [`Table::merge`](crate::Table::merge) does to the value of a key. That is a number of eight bytes,
/// little-endian, but for the last two. A key that is absent gets the operand as its value.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-operators-{}.azk", std::process::id()));
/// use azekura::{Db, Merge, Options, TableKind};
/// let db = Db::open(&path, Options::new())?;
/// let coldest = db.table("coldest", TableKind::Ordered)?;
/// for degrees in [3.5, -1.25, 0.0] {
///     coldest.merge("January", Merge::MinF64(degrees))?;
/// }
/// assert_eq!(coldest.get("January")?.unwrap(), (-1.25f64).to_le_bytes());
///
/// let visitors = db.table("visitors", TableKind::Ordered)?;
/// visitors.merge("Monday", Merge::Union { width: 4, elements: b"ada.bob." })?;
/// visitors.merge("Monday", Merge::Union { width: 4, elements: b"eve.ada." })?;
/// assert_eq!(visitors.get("Monday")?.unwrap(), b"ada.bob.eve.");
/// # drop(visitors);
/// # drop(coldest); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Merge<'a> {
    /// Adds to an integer. Sums wrap around.
    AddI64(i64),
    /// Adds to an integer without sign. It is the same operator as `AddI64`.
    AddU64(u64),
    /// Adds to a floating-point number. Sums are rounded, and in which order is not said: sums of the same
    /// numbers may differ in their last bits, also two reads of one snapshot.
    AddF64(f64),
    /// The smaller of two integers.
    MinI64(i64),
    /// The larger of two integers.
    MaxI64(i64),
    /// The smaller of two integers without sign.
    MinU64(u64),
    /// The larger of two integers without sign.
    MaxU64(u64),
    /// The smaller of two floating-point numbers in their total order ([`f64::total_cmp`]).
    MinF64(f64),
    /// The larger of two floating-point numbers in their total order.
    MaxF64(f64),
    /// All bits that are set in one of both.
    BitOr(u64),
    /// Puts bytes behind those that the value has.
    Append(&'a [u8]),
    /// Unites a set with elements, which stand one after the other, in any order. The value has them in the
    /// order of their bytes, each once.
    Union {
        /// The bytes of an element: 1 to 255. Two widths are two operators.
        width: usize,
        /// The elements.
        elements: &'a [u8],
    },
}

/// The operand of a number.
pub(super) fn number_of(merge: Merge<'_>) -> Operand {
    let (code, number) = match merge {
        Merge::AddI64(n) => (ADD, n.to_le_bytes()),
        Merge::AddU64(n) => (ADD, n.to_le_bytes()),
        Merge::AddF64(n) => (ADD_F64, n.to_le_bytes()),
        Merge::MinI64(n) => (MIN_I64, n.to_le_bytes()),
        Merge::MaxI64(n) => (MAX_I64, n.to_le_bytes()),
        Merge::MinU64(n) => (MIN_U64, n.to_le_bytes()),
        Merge::MaxU64(n) => (MAX_U64, n.to_le_bytes()),
        Merge::MinF64(n) => (MIN_F64, n.to_le_bytes()),
        Merge::MaxF64(n) => (MAX_F64, n.to_le_bytes()),
        Merge::BitOr(n) => (BIT_OR, n.to_le_bytes()),
        Merge::Append(_) | Merge::Union { .. } => unreachable!("the operands of numbers are asked for"),
    };
    Operand::new(code, number)
}

/// An operand that is to be merged.
pub(crate) enum Given {
    Number(Operand),
    /// With a length, as it stands in memory.
    Long(Vec<u8>, Operator),
}

impl Given {
    /// # Errors
    /// `Invalid` for elements of no width, or of which not all are whole; `TooLarge`.
    pub(crate) fn of(merge: Merge<'_>) -> Result<Given> {
        let (operator, bytes) = match merge {
            Merge::Append(bytes) => (Operator { code: APPEND, width: 0 }, bytes),
            Merge::Union { width, elements } => (union_of(width, elements)?, elements),
            number => return Ok(Given::Number(number_of(number))),
        };
        if bytes.len() as u64 > VALUE_BYTES_MAX {
            return Err(Error::TooLarge {
                what: "operand",
                found: bytes.len() as u64,
                limit: VALUE_BYTES_MAX,
            });
        }
        let mut stored = Vec::with_capacity(WORD_BYTES + 2 + bytes.len());
        stored.extend_from_slice(&OPERAND_WORD.to_le_bytes());
        stored.extend(operand_head(operator));
        match operator.width {
            0 => stored.extend_from_slice(bytes),
            width => stored.extend_from_slice(&set_of(bytes, usize::from(width))),
        }
        Ok(Given::Long(stored, operator))
    }

    /// The operand in the bytes behind a word.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Given> {
        if !is_long(bytes) {
            return Operand::decode(bytes).map(Given::Number);
        }
        check_logged(bytes)?;
        let operator = Operator::of(bytes).ok_or_else(|| super::no_operand(bytes))?;
        Ok(Given::Long([&OPERAND_WORD.to_le_bytes(), bytes].concat(), operator))
    }

    /// Its operator. A clash has none.
    pub(crate) fn operator(&self) -> Option<Operator> {
        match self {
            Given::Number(operand) => operand.operator(),
            Given::Long(_, operator) => Some(*operator),
        }
    }

    /// Whether it is too long to wait until it is folded.
    pub(crate) fn is_too_long(&self) -> bool {
        matches!(self, Given::Long(stored, _) if stored.len() - WORD_BYTES > OPERAND_BYTES_MAX)
    }

    /// As it stands in memory. `out` receives that of a number.
    pub(crate) fn stored<'a>(&'a self, out: &'a mut [u8; STORED_BYTES]) -> &'a [u8] {
        match self {
            Given::Number(operand) => {
                *out = operand.stored();
                out
            }
            Given::Long(stored, _) => stored,
        }
    }

    /// The bytes that a caller has given.
    pub(crate) fn user_bytes(&self) -> u64 {
        match self {
            Given::Number(_) => 8,
            Given::Long(stored, _) => bytes_of(&stored[WORD_BYTES..]).len() as u64,
        }
    }
}

fn union_of(width: usize, elements: &[u8]) -> Result<Operator> {
    let code = u8::try_from(width).ok().filter(|&width| width > 0);
    let Some(width) = code.filter(|&width| elements.len().is_multiple_of(usize::from(width))) else {
        return Err(Error::Invalid {
            detail: format!(
                "elements of {width} bytes in {} bytes: an element has 1 to {ELEMENT_BYTES_MAX} bytes, and all must \
                 be whole",
                elements.len()
            ),
        });
    };
    Ok(Operator { code: UNION, width })
}
