//! A value that a lookup in an index is given.

/// A value of an indexed field, for lookups. Most are made by `into()`.
///
/// Numbers may be of any type here: a field of type `i64` takes `IndexValue::U64(7)` as well, and one of type
/// `f64` takes every integer that a float has exactly.
///
/// ```
/// use azekura::IndexValue;
///
/// assert_eq!(IndexValue::from("ada"), IndexValue::Text("ada"));
/// assert_eq!(IndexValue::from(-7), IndexValue::I64(-7));
/// assert_eq!(IndexValue::from(None::<u64>), IndexValue::Null);
/// assert_eq!(IndexValue::from(true), IndexValue::U64(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IndexValue<'a> {
    /// What a field is that a record does not have, or has of another type. It comes before all others.
    Null,
    /// Any bytes.
    Bytes(&'a [u8]),
    /// Text.
    Text(&'a str),
    /// An integer that is not negative.
    U64(u64),
    /// Any integer.
    I64(i64),
    /// A float that is a number.
    F64(f64),
}

macro_rules! from {
    ($($type:ty => $variant:ident),* $(,)?) => {
        $(impl<'a> From<$type> for IndexValue<'a> {
            fn from(value: $type) -> IndexValue<'a> {
                IndexValue::$variant(value.into())
            }
        })*
    };
}

from!(
    u8 => U64, u16 => U64, u32 => U64, u64 => U64, bool => U64,
    i8 => I64, i16 => I64, i32 => I64, i64 => I64,
    f32 => F64, f64 => F64,
    &'a str => Text,
    &'a [u8] => Bytes,
);

impl<'a> From<&'a String> for IndexValue<'a> {
    fn from(value: &'a String) -> IndexValue<'a> {
        IndexValue::Text(value)
    }
}

impl<'a> From<&'a Vec<u8>> for IndexValue<'a> {
    fn from(value: &'a Vec<u8>) -> IndexValue<'a> {
        IndexValue::Bytes(value)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for IndexValue<'a> {
    fn from(value: &'a [u8; N]) -> IndexValue<'a> {
        IndexValue::Bytes(value)
    }
}

impl<'a, T: Into<IndexValue<'a>>> From<Option<T>> for IndexValue<'a> {
    fn from(value: Option<T>) -> IndexValue<'a> {
        value.map_or(IndexValue::Null, Into::into)
    }
}
