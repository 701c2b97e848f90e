//! Operands: records that change the value of a key without knowing it.
//!
//! An operand is stored with the tag `Expiring` and the word `OPERAND_WORD`, which is no time, in front of
//! its bytes. Those of a number are nine:
//!
//! ```text
//! u8 operator: 0 = clash, 1 = add, 2 = add f64, 3 = min i64, 4 = max i64, 5 = min u64, 6 = max u64, 7 = min f64,
//!              8 = max f64, 9 = or
//! [u8; 8] the operand, little-endian
//! ```
//!
//! `long` has the operators whose operands have a length.
//!
//! What stands under its key in anything older is its base. An operand is *folded*: with another one below it
//! to one operand, with a value of eight bytes to a value, with nothing at all to a value too, which is the
//! operand itself. All operators but `add f64` are associative, so it does not matter what is folded first.
//! Two operators do not meet on one key: see `engine/operators.rs`.
//!
//! A value of another length is no number. With it an operand is folded to a *clash*, which hides all that is
//! older as a value does. It says what the value was, and whoever reads it gets an error:
//!
//! ```text
//! a value that is no number   its length, or all ones if it stood apart
//! a value that is no set      its length, and in bits 32 to 39 the bytes of an element
//! a value that got too long   all ones but the lowest
//! ```

mod fold;
mod gathering;
mod given;
mod long;
mod operator;

pub(crate) use fold::{Fold, FoldedBytes};
pub(crate) use gathering::{Gathered, Gathering, value_of, whole};
pub(crate) use given::Given;
pub use given::Merge;
pub(crate) use long::{bytes_of, expiry_of, is_gathered, is_value, reference, references, stored_apart};
pub(crate) use operator::{Number, Operator, is_long};

use super::expiry::{Content, Expiry, OPERAND_WORD, WORD_BYTES};
use super::tag::Tag;
use crate::base::error::{Error, Result, shown};
use crate::base::key::TableKind;
use crate::base::limits::VALUE_BYTES_MAX;
use long::Long;
use operator::{BIT_OR, no_operand, two_operators};

/// Bytes of the operand of a number behind its word.
pub(crate) const OPERAND_BYTES: usize = 9;
/// And with its word, as it stands in memory.
pub(crate) const STORED_BYTES: usize = WORD_BYTES + OPERAND_BYTES;

/// What stands in place of a value of another length than a number's.
const CLASH: u8 = 0;
/// What a clash says of a value that is longer than values may be.
const TOO_LONG: u64 = u64::MAX - 1;
/// An operand, or a clash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    code: u8,
    number: Number,
}

/// The error of a read of what got longer than values may be.
fn too_long() -> Error {
    let (what, found) = ("value that merges have made", VALUE_BYTES_MAX + 1);
    Error::TooLarge { what, found, limit: VALUE_BYTES_MAX }
}

/// What an operand and its base make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folded {
    Value(Number, Expiry),
    Operand(Operand),
}

impl Operand {
    fn new(code: u8, number: Number) -> Operand {
        Operand { code, number }
    }

    /// What a number's operand has made of a value of so many bytes.
    fn clash(len: u64) -> Operand {
        Operand { code: CLASH, number: len.to_le_bytes() }
    }

    /// The operand in the bytes behind a word.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Operand> {
        let operand = bytes.split_first().and_then(|(&code, rest)| {
            let number = rest.try_into().ok()?;
            (code <= BIT_OR).then_some(Operand { code, number })
        });
        operand.ok_or_else(|| no_operand(bytes))
    }

    /// As it stands in memory.
    pub(crate) fn stored(self) -> [u8; STORED_BYTES] {
        let mut bytes = [0; STORED_BYTES];
        bytes[..WORD_BYTES].copy_from_slice(&OPERAND_WORD.to_le_bytes());
        bytes[WORD_BYTES] = self.code;
        bytes[WORD_BYTES + 1..].copy_from_slice(&self.number);
        bytes
    }

    /// Its operator. A clash has none.
    pub(crate) fn operator(self) -> Option<Operator> {
        Operator::from_code(self.code, 0)
    }

    /// The value where there is no base. None for a clash.
    pub(crate) fn alone(self) -> Option<Number> {
        (self.code != CLASH).then_some(self.number)
    }

    /// Whether nothing older counts.
    pub(crate) fn is_clash(self) -> bool {
        self.code == CLASH
    }

    /// What this operand makes of what is below it.
    pub(crate) fn onto(self, base: Content<'_>) -> Result<Folded> {
        let Some(operator) = self.operator() else { return Ok(Folded::Operand(self)) };
        let clash = |len: u64| Folded::Operand(Operand::clash(len));
        match base.tag {
            Tag::Tombstone => Ok(Folded::Value(self.number, Expiry::NEVER)),
            Tag::Large => Ok(clash(u64::MAX)),
            Tag::Put | Tag::Expiring => Ok(match base.value.try_into() {
                Ok(number) => Folded::Value(operator.apply(number, self.number), base.expiry),
                Err(_) => clash(base.value.len() as u64),
            }),
            Tag::Operand => {
                let older = Operand::decode(base.value)?;
                if older.is_clash() {
                    return Ok(Folded::Operand(older));
                }
                if older.code != self.code {
                    return Err(two_operators(older.code, self.code));
                }
                let number = operator.apply(older.number, self.number);
                Ok(Folded::Operand(Operand { number, ..self }))
            }
        }
    }

    /// The error of a read of a clash.
    pub(crate) fn clash_error(self, table: &str, kind: TableKind, sort_key: &[u8]) -> Error {
        let key = match (kind, sort_key.len()) {
            (TableKind::Hash, 8) => "a key of eight bytes".to_owned(),
            (TableKind::Hash, _) => format!("key {}", shown(sort_key.get(8..).unwrap_or_default())),
            (TableKind::Ordered, _) => format!("key {}", shown(sort_key)),
        };
        let number = u64::from_le_bytes(self.number);
        let (len, width) = (number & u64::from(u32::MAX), number >> 32);
        let what = match number {
            TOO_LONG => return too_long(),
            u64::MAX => {
                "was a large one when a number was merged into it, and numbers have 8 bytes".to_owned()
            }
            _ if width > 0 => format!(
                "had {len} bytes when elements of {width} bytes were merged into it, and that is no whole number \
                 of them"
            ),
            _ => format!("had {len} bytes when a number was merged into it, and numbers have 8"),
        };
        Error::WrongType { detail: format!("table {table:?}, {key}: its value {what}; put or remove it") }
    }
}

impl Folded {
    /// How it is stored: the tag, and in `out` what stands in memory.
    pub(crate) fn stored(self, out: &mut [u8; STORED_BYTES]) -> (Tag, &[u8]) {
        match self {
            Folded::Operand(operand) => {
                *out = operand.stored();
                (Tag::Expiring, out)
            }
            Folded::Value(number, Expiry::NEVER) => {
                out[..8].copy_from_slice(&number);
                (Tag::Put, &out[..8])
            }
            Folded::Value(number, expiry) => {
                out[..WORD_BYTES].copy_from_slice(&expiry.word(Tag::Put).to_le_bytes());
                out[WORD_BYTES..WORD_BYTES + 8].copy_from_slice(&number);
                (Tag::Expiring, &out[..WORD_BYTES + 8])
            }
        }
    }
}

/// What stands where there is nothing.
pub(crate) const ABSENT: Content<'static> =
    Content { tag: Tag::Tombstone, value: &[], expiry: Expiry::NEVER };

/// Refuses what is no operand, or none that the log has.
pub(crate) fn check_logged(bytes: &[u8]) -> Result<()> {
    if is_long(bytes) { Long::check_whole(bytes) } else { Operand::decode(bytes).map(drop) }
}

/// Refuses what is no operand, or none that a run has. Gives the reference of one that stands apart.
pub(crate) fn check_stored(bytes: &[u8]) -> Result<Option<&[u8]>> {
    match long::reference(bytes) {
        Some(reference) => Ok(Some(reference)),
        None => check_logged(bytes).map(|()| None),
    }
}

/// What must be done to fold the records of a block, of a chunk or of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Folding {
    /// None is an operand.
    None,
    /// All operands are those of numbers, or clashes.
    Numbers,
    /// Operands have a length.
    Long,
}

/// Of the records of a run how many are operands, and of which operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Operands {
    pub(crate) records: u64,
    /// None if all of them are clashes.
    pub(crate) operator: Option<Operator>,
}

impl Operands {
    /// Adds a record.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.records += 1;
        if self.operator.is_none() {
            self.operator = Operator::of(bytes);
        }
    }

    /// What must be done to fold them.
    pub(crate) fn folding(self) -> Folding {
        match self.operator {
            _ if self.records == 0 => Folding::None,
            Some(operator) if operator.is_long() => Folding::Long,
            _ => Folding::Numbers,
        }
    }

    /// These and others.
    pub(crate) fn and(self, other: Operands) -> Operands {
        Operands { records: self.records + other.records, operator: self.operator.or(other.operator) }
    }
}

#[cfg(test)]
mod tests {
    use super::given::number_of;
    use super::*;

    fn put(value: &[u8]) -> Content<'_> {
        Content { tag: Tag::Put, value, expiry: Expiry::NEVER }
    }

    fn number(folded: Folded) -> Number {
        match folded {
            Folded::Value(number, Expiry::NEVER) => number,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn operators_do_what_they_say() {
        let i = |merge, base: i64| {
            i64::from_le_bytes(number(number_of(merge).onto(put(&base.to_le_bytes())).unwrap()))
        };
        assert_eq!(i(Merge::AddI64(5), -7), -2);
        assert_eq!(i(Merge::AddI64(1), i64::MAX), i64::MIN);
        assert_eq!(i(Merge::AddU64(u64::MAX), 3), 2);
        assert_eq!((i(Merge::MinI64(-1), 1), i(Merge::MaxI64(-1), 1)), (-1, 1));
        assert_eq!((i(Merge::MinU64(u64::MAX), 1), i(Merge::MaxU64(u64::MAX), 1)), (1, -1));
        assert_eq!(i(Merge::BitOr(0b1100), 0b0110), 0b1110);
        let f = |merge, base: f64| {
            f64::from_le_bytes(number(number_of(merge).onto(put(&base.to_le_bytes())).unwrap()))
        };
        assert_eq!(
            (f(Merge::AddF64(0.25), 1.5), f(Merge::MinF64(0.25), 1.5), f(Merge::MaxF64(0.25), 1.5)),
            (1.75, 0.25, 1.5)
        );
        assert!(f(Merge::MaxF64(f64::NAN), 1.5).is_nan() && f(Merge::MaxF64(1.5), f64::NAN).is_nan());
        assert!(
            f(Merge::MinF64(-0.0), 0.0).is_sign_negative() && f(Merge::MinF64(0.0), -0.0).is_sign_negative()
        );
    }

    #[test]
    fn it_does_not_matter_what_is_folded_first() {
        let merges = |n: u64| {
            let (i, f) = (n.cast_signed(), n as f64);
            [
                Merge::AddI64(i),
                Merge::MinI64(i),
                Merge::MaxI64(i),
                Merge::MinU64(n),
                Merge::MaxU64(n),
                Merge::MinF64(f),
                Merge::MaxF64(f),
                Merge::BitOr(n),
            ]
        };
        let mut x = 99u64;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(7);
            x ^ x >> 31
        };
        for _ in 0..300 {
            let (a, b, base) = (merges(next()), merges(next()), next().to_le_bytes());
            for (a, b) in a.into_iter().zip(b) {
                let (a, b) = (number_of(a), number_of(b));
                let one_by_one = b.onto(put(&number(a.onto(put(&base)).unwrap()))).unwrap();
                let stored = a.stored();
                let Folded::Operand(both) = b.onto(Content::of(Tag::Expiring, &stored)).unwrap() else {
                    panic!()
                };
                assert_eq!(both.onto(put(&base)).unwrap(), one_by_one);
                let absent = Content { tag: Tag::Tombstone, value: &[], expiry: Expiry::NEVER };
                let alone = number(a.onto(absent).unwrap());
                assert_eq!(both.alone().unwrap(), number(b.onto(put(&alone)).unwrap()));
            }
        }
    }

    #[test]
    fn what_is_no_number_clashes_and_stays_so() {
        let add = number_of(Merge::AddI64(1));
        for value in [&b""[..], b"seven b", b"nine byte"] {
            let Folded::Operand(clash) = add.onto(put(value)).unwrap() else { panic!() };
            assert!(clash.is_clash() && clash.alone().is_none() && clash.operator().is_none());
            let stored = clash.stored();
            assert_eq!(add.onto(Content::of(Tag::Expiring, &stored)).unwrap(), Folded::Operand(clash));
            assert_eq!(clash.onto(put(b"8 bytes.")).unwrap(), Folded::Operand(clash));
            let text = clash.clash_error("t", TableKind::Ordered, b"k").to_string();
            assert!(text.contains(&format!("had {} bytes", value.len())) && text.contains("\"t\""), "{text}");
        }
        let large = Content { tag: Tag::Large, value: &[0; 16], expiry: Expiry::NEVER };
        assert!(matches!(add.onto(large).unwrap(), Folded::Operand(clash) if clash.is_clash()));
    }

    #[test]
    fn bytes_that_are_no_operand_and_two_operators_are_errors() {
        assert!(
            Operand::decode(&[1; 8]).is_err()
                && Operand::decode(&[1; 10]).is_err()
                && Operand::decode(&[]).is_err()
        );
        assert!(Operand::decode(&[10, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        let (add, min) = (number_of(Merge::AddI64(1)), number_of(Merge::MinI64(1)).stored());
        assert!(matches!(add.onto(Content::of(Tag::Expiring, &min)), Err(Error::Corrupt { .. })));
        assert_eq!(Operand::decode(&add.stored()[WORD_BYTES..]).unwrap(), add);
    }

    #[test]
    fn a_base_that_expires_leaves_its_time() {
        let base = Content { tag: Tag::Put, value: &5u64.to_le_bytes(), expiry: Expiry::at(77) };
        let folded = number_of(Merge::AddI64(2)).onto(base).unwrap();
        let mut out = [0; STORED_BYTES];
        let (tag, stored) = folded.stored(&mut out);
        let back = Content::of(tag, stored);
        assert_eq!((back.tag, back.value, back.expiry), (Tag::Put, &7u64.to_le_bytes()[..], Expiry::at(77)));
    }
}
