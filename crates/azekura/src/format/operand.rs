//! Operands: records that change the value of a key without knowing it.
//!
//! An operand is stored with the tag `Expiring` and the word `OPERAND_WORD`, which is no time, in front of
//! nine bytes:
//!
//! ```text
//! u8 operator: 0 = clash, 1 = add, 2 = add f64, 3 = min i64, 4 = max i64, 5 = min u64, 6 = max u64, 7 = min f64,
//!              8 = max f64, 9 = or
//! [u8; 8] the operand, little-endian
//! ```
//!
//! What stands under its key in anything older is its base. An operand is *folded*: with another one below it to
//! one operand, with a value of eight bytes to a value, with nothing at all to a value too, which is the operand
//! itself. All operators but `add f64` are associative, so it does not matter what is folded first. Two
//! operators do not meet on one key: see `engine/operators.rs`.
//!
//! A value of another length is no number. With it an operand is folded to a *clash*, which hides all that is
//! older as a value does. It has the value's length (all ones if it stood apart), and whoever reads it gets an
//! error.

use super::expiry::{Content, Expiry, OPERAND_WORD, WORD_BYTES};
use super::tag::Tag;
use crate::base::error::{Error, Result, shown};
use crate::base::key::TableKind;

/// Bytes of an operand behind its word.
pub(crate) const OPERAND_BYTES: usize = 9;
/// And with its word, as it stands in memory.
pub(crate) const STORED_BYTES: usize = WORD_BYTES + OPERAND_BYTES;

/// The number that a value is.
pub(crate) type Number = [u8; 8];

/// What [`Table::merge`](crate::Table::merge) does to the value of a key, which is a number of eight bytes,
/// little-endian. A key that is absent gets the operand as its value.
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
/// # drop(coldest); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Merge {
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
}

/// What stands in place of a value of another length than a number's.
const CLASH: u8 = 0;
const ADD: u8 = 1;
const ADD_F64: u8 = 2;
const MIN_I64: u8 = 3;
const MAX_I64: u8 = 4;
const MIN_U64: u8 = 5;
const MAX_U64: u8 = 6;
const MIN_F64: u8 = 7;
const MAX_F64: u8 = 8;
const BIT_OR: u8 = 9;

/// An operator, by its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operator(u8);

impl Operator {
    pub(crate) fn code(self) -> u8 {
        self.0
    }

    /// None for the code of a clash, and for those that are not known.
    pub(crate) fn from_code(code: u8) -> Option<Operator> {
        (ADD..=BIT_OR).contains(&code).then_some(Operator(code))
    }

    /// What becomes of a number.
    fn apply(self, base: Number, operand: Number) -> Number {
        let (a, b) = (u64::from_le_bytes(base), u64::from_le_bytes(operand));
        let (x, y) = (a.cast_signed(), b.cast_signed());
        let (f, g) = (f64::from_le_bytes(base), f64::from_le_bytes(operand));
        let first = |is_first| if is_first { base } else { operand };
        match self.0 {
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

/// An operand, or a clash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    code: u8,
    number: Number,
}

/// What an operand and its base make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folded {
    Value(Number, Expiry),
    Operand(Operand),
}

impl Operand {
    pub(crate) fn of(merge: Merge) -> Operand {
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
        };
        Operand { code, number }
    }

    /// The operand in the bytes behind a word.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Operand> {
        let operand = bytes.split_first().and_then(|(&code, rest)| {
            let number = rest.try_into().ok()?;
            (code <= BIT_OR).then_some(Operand { code, number })
        });
        operand.ok_or_else(|| Error::corrupt("operand", 0, format!("bytes that are none: {}", shown(bytes))))
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
        Operator::from_code(self.code)
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
        let clash = |len: u64| Folded::Operand(Operand { code: CLASH, number: len.to_le_bytes() });
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
                    let detail = format!("operators {} and {} on one key", older.code, self.code);
                    return Err(Error::corrupt("operand", 0, detail));
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
        let len = match u64::from_le_bytes(self.number) {
            u64::MAX => "was a large one".to_owned(),
            len => format!("had {len} bytes"),
        };
        let detail = format!(
            "table {table:?}, {key}: its value {len} when a number was merged into it, and numbers have 8; put or \
             remove it"
        );
        Error::WrongType { detail }
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

/// The records of one key, as a reader comes to them: the newest first.
pub(crate) struct Fold {
    /// What has expired by then is absent.
    now: u64,
    folded: Option<Folded>,
    /// Whether something older may count.
    goes_on: bool,
}

/// What stands where there is nothing.
pub(crate) const ABSENT: Content<'static> =
    Content { tag: Tag::Tombstone, value: &[], expiry: Expiry::NEVER };

impl Fold {
    pub(crate) fn new(now: u64) -> Fold {
        Fold { now, folded: None, goes_on: true }
    }

    /// Whether something older may count.
    pub(crate) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Adds the next older record. It is passed over if it does not count.
    pub(crate) fn add(&mut self, content: Content<'_>) -> Result<()> {
        if !self.goes_on {
            return Ok(());
        }
        let content = content.at(self.now);
        let folded = match (self.folded, content.tag) {
            (Some(Folded::Operand(newer)), _) => newer.onto(content)?,
            (None, Tag::Operand) => Folded::Operand(Operand::decode(content.value)?),
            // Only operands are folded.
            _ => {
                self.hide();
                return Ok(());
            }
        };
        self.goes_on = matches!(folded, Folded::Operand(operand) if !operand.is_clash());
        self.folded = Some(folded);
        Ok(())
    }

    /// Nothing older counts.
    pub(crate) fn hide(&mut self) {
        self.goes_on = false;
    }

    /// The value and when it expires. None if there was no operand.
    ///
    /// # Errors
    /// The clash, if it is one.
    pub(crate) fn end(self) -> std::result::Result<Option<(Number, Expiry)>, Operand> {
        match self.folded {
            None => Ok(None),
            Some(Folded::Value(number, expiry)) => Ok(Some((number, expiry))),
            Some(Folded::Operand(operand)) => {
                operand.alone().map(|number| Some((number, Expiry::NEVER))).ok_or(operand)
            }
        }
    }
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
            self.operator = bytes.first().and_then(|&code| Operator::from_code(code));
        }
    }

    /// These and others.
    pub(crate) fn and(self, other: Operands) -> Operands {
        Operands { records: self.records + other.records, operator: self.operator.or(other.operator) }
    }
}

#[cfg(test)]
mod tests {
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
            i64::from_le_bytes(number(Operand::of(merge).onto(put(&base.to_le_bytes())).unwrap()))
        };
        assert_eq!(i(Merge::AddI64(5), -7), -2);
        assert_eq!(i(Merge::AddI64(1), i64::MAX), i64::MIN);
        assert_eq!(i(Merge::AddU64(u64::MAX), 3), 2);
        assert_eq!((i(Merge::MinI64(-1), 1), i(Merge::MaxI64(-1), 1)), (-1, 1));
        assert_eq!((i(Merge::MinU64(u64::MAX), 1), i(Merge::MaxU64(u64::MAX), 1)), (1, -1));
        assert_eq!(i(Merge::BitOr(0b1100), 0b0110), 0b1110);
        let f = |merge, base: f64| {
            f64::from_le_bytes(number(Operand::of(merge).onto(put(&base.to_le_bytes())).unwrap()))
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
                let (a, b) = (Operand::of(a), Operand::of(b));
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
        let add = Operand::of(Merge::AddI64(1));
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
        let (add, min) = (Operand::of(Merge::AddI64(1)), Operand::of(Merge::MinI64(1)).stored());
        assert!(matches!(add.onto(Content::of(Tag::Expiring, &min)), Err(Error::Corrupt { .. })));
        assert_eq!(Operand::decode(&add.stored()[WORD_BYTES..]).unwrap(), add);
    }

    #[test]
    fn a_base_that_expires_leaves_its_time() {
        let base = Content { tag: Tag::Put, value: &5u64.to_le_bytes(), expiry: Expiry::at(77) };
        let folded = Operand::of(Merge::AddI64(2)).onto(base).unwrap();
        let mut out = [0; STORED_BYTES];
        let (tag, stored) = folded.stored(&mut out);
        let back = Content::of(tag, stored);
        assert_eq!((back.tag, back.value, back.expiry), (Tag::Put, &7u64.to_le_bytes()[..], Expiry::at(77)));
    }
}
