//! Numbers, and bool.

use super::codec::{Key, KeyBytes, KeyPart, Value, none_of};
use crate::base::error::{Error, Result};

/// The forms of a type that is `Copy`.
macro_rules! copied {
    ($type:ty) => {
        type Given<'a> = $type;
        type View<'a> = $type;
        type Owned = $type;

        #[inline(always)]
        fn own(view: $type) -> $type {
            view
        }

        #[inline(always)]
        fn lend(owned: &$type) -> $type {
            *owned
        }
    };
}
pub(super) use copied;

/// A key of a fixed width: `$encode` makes an array of bytes (or an error) of it, and `$decode` the number of
/// that.
macro_rules! fixed_key {
    ($type:ty, $encode:expr, $decode:expr) => {
        impl Key for $type {
            copied!($type);

            #[inline(always)]
            fn with_bytes<R>(key: $type, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
                f(&$encode(key)?)
            }

            #[inline(always)]
            fn view(bytes: &[u8]) -> Result<$type> {
                match bytes.try_into() {
                    Ok(array) => $decode(array),
                    Err(_) => Err(none_of(bytes, stringify!($type))),
                }
            }
        }

        impl KeyPart for $type {
            #[inline(always)]
            fn push(part: $type, key: &mut KeyBytes) -> Result<()> {
                key.push(&$encode(part)?);
                Ok(())
            }

            #[inline(always)]
            fn take(rest: &mut &[u8]) -> Result<$type> {
                let Some((array, after)) = rest.split_first_chunk() else {
                    return Err(none_of(rest, stringify!($type)));
                };
                *rest = after;
                $decode(*array)
            }
        }
    };
}

/// A number as a value: little-endian.
macro_rules! value {
    ($($type:ty),*) => {
        $(impl Value for $type {
            copied!($type);

            #[inline(always)]
            fn with_bytes<R>(value: $type, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
                f(&value.to_le_bytes())
            }

            #[inline(always)]
            fn view(bytes: &[u8]) -> Result<$type> {
                match bytes.try_into() {
                    Ok(array) => Ok(<$type>::from_le_bytes(array)),
                    Err(_) => Err(none_of(bytes, stringify!($type))),
                }
            }
        })*
    };
}

macro_rules! unsigned {
    ($($type:ty),*) => {
        $(fixed_key!($type, |key: $type| Ok::<_, Error>(key.to_be_bytes()), |b| Ok(<$type>::from_be_bytes(b)));)*
    };
}

/// With the sign flipped the bits of a signed number, read as an unsigned one, are in its order.
macro_rules! signed {
    ($($type:ty),*) => {
        $(fixed_key!(
            $type,
            |key: $type| Ok::<_, Error>((key ^ <$type>::MIN).to_be_bytes()),
            |b| Ok(<$type>::from_be_bytes(b) ^ <$type>::MIN)
        );)*
    };
}

/// The bits of a float grow with its size. So of a negative float all bits are flipped, and of others only
/// the sign.
macro_rules! float {
    ($type:ty, $bits:ty) => {
        fixed_key!(
            $type,
            |key: $type| {
                if key.is_nan() {
                    return Err(Error::Invalid {
                        detail: "NaN has no place in any order: it cannot be a key".into(),
                    });
                }
                // The sum makes 0.0 of -0.0, which are equal.
                let bits = (key + 0.0).to_bits();
                let sign = !(<$bits>::MAX >> 1);
                Ok((if bits & sign == 0 { bits ^ sign } else { !bits }).to_be_bytes())
            },
            |b| {
                let (ordered, sign) = (<$bits>::from_be_bytes(b), !(<$bits>::MAX >> 1));
                Ok(<$type>::from_bits(if ordered & sign == 0 { !ordered } else { ordered ^ sign }))
            }
        );
    };
}

unsigned!(u8, u16, u32, u64, u128);
signed!(i8, i16, i32, i64, i128);
float!(f32, u32);
float!(f64, u64);
value!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

fn bool_of(byte: [u8; 1]) -> Result<bool> {
    match byte {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(Error::WrongType { detail: format!("byte {other} is no bool") }),
    }
}

fixed_key!(bool, |key: bool| Ok::<_, Error>([u8::from(key)]), bool_of);

impl Value for bool {
    copied!(bool);

    fn with_bytes<R>(value: bool, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        f(&[u8::from(value)])
    }

    fn view(bytes: &[u8]) -> Result<bool> {
        <bool as Key>::view(bytes)
    }
}

/// Nothing, for tables that are sets.
impl Value for () {
    copied!(());

    fn with_bytes<R>((): (), f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        f(&[])
    }

    fn view(bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() { Ok(()) } else { Err(none_of(bytes, "()")) }
    }
}
