//! Finds what a pointer leads to in a MessagePack document, and builds no tree.
//!
//! A token of the pointer is a key of a map: that text, those bytes, or that integer in digits. In an array
//! it is a place. The reader goes forward once and stops at what it was asked for. What follows is not looked
//! at. If the field is the document itself, nothing may follow. Of equal keys the first counts. What is
//! passed over may be nested to any depth: only a count is kept. Extensions, timestamps too, are no values of
//! a field.

use super::field::Pointer;
use super::found::Found;
use super::json::index;
use std::borrow::Cow;

/// What the pointer leads to, where it is text, bytes, a number or a truth value.
pub(super) fn find<'a>(document: &'a [u8], pointer: &Pointer) -> Found<'a> {
    try_find(document, pointer).unwrap_or(Found::Null)
}

fn try_find<'a>(document: &'a [u8], pointer: &Pointer) -> Option<Found<'a>> {
    let mut reader = Reader { rest: document };
    for token in &pointer.0 {
        match reader.head()? {
            Head::Map(len) => reader.enter_value(token, len)?,
            Head::Array(len) => {
                let index = u32::try_from(index(token)?).ok().filter(|&index| index < len)?;
                reader.skip(u64::from(index))?;
            }
            _ => return None,
        }
    }
    let found = match reader.head()? {
        Head::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Found::Text(Cow::Borrowed(text)),
            Err(_) => Found::Bytes(bytes),
        },
        Head::Bytes(bytes) => Found::Bytes(bytes),
        Head::U64(value) => Found::U64(value),
        Head::I64(value) => Found::I64(value),
        Head::F64(value) => Found::F64(value),
        Head::Bool(value) => Found::Bool(value),
        Head::Map(_) | Head::Array(_) | Head::Other => return None,
    };
    if pointer.0.is_empty() && !reader.rest.is_empty() {
        return None;
    }
    Some(found)
}

/// A value. Of a map or an array only how many follow.
enum Head<'a> {
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    U64(u64),
    I64(i64),
    F64(f64),
    Bool(bool),
    Array(u32),
    Map(u32),
    /// Nil, and extensions.
    Other,
}

impl Head<'_> {
    /// Whether it is the key that a token names.
    fn is(&self, token: &str) -> bool {
        match *self {
            Head::Text(bytes) | Head::Bytes(bytes) => bytes == token.as_bytes(),
            Head::U64(number) => is_integer(token, i128::from(number)),
            Head::I64(number) => is_integer(token, i128::from(number)),
            _ => false,
        }
    }

    /// How many values follow that are parts of it.
    fn parts(&self) -> u64 {
        match *self {
            Head::Array(len) => u64::from(len),
            Head::Map(len) => 2 * u64::from(len),
            _ => 0,
        }
    }
}

/// Whether a token is an integer in digits, without needless zeros.
fn is_integer(token: &str, number: i128) -> bool {
    let digits = token.strip_prefix('-').unwrap_or(token);
    let plain = !digits.starts_with(['+', '0']) || token == "0";
    plain && token.parse() == Ok(number)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn take_u32(&mut self, len: u32) -> Option<&'a [u8]> {
        self.take(usize::try_from(len).ok()?)
    }

    /// An extension of so many bytes, and the byte of its type.
    fn extension(&mut self, len: u32) -> Option<Head<'a>> {
        self.take(1)?;
        self.take_u32(len)?;
        Some(Head::Other)
    }

    /// The next value, or the beginning of a map or an array.
    fn head(&mut self) -> Option<Head<'a>> {
        Some(match self.u8()? {
            byte @ 0..=0x7f => Head::U64(u64::from(byte)),
            byte @ 0x80..=0x8f => Head::Map(u32::from(byte & 0xf)),
            byte @ 0x90..=0x9f => Head::Array(u32::from(byte & 0xf)),
            byte @ 0xa0..=0xbf => Head::Text(self.take(usize::from(byte & 0x1f))?),
            0xc0 => Head::Other,
            0xc1 => return None,
            byte @ (0xc2 | 0xc3) => Head::Bool(byte == 0xc3),
            byte @ 0xc4..=0xc6 => {
                let len = self.len(byte - 0xc4)?;
                Head::Bytes(self.take_u32(len)?)
            }
            byte @ 0xc7..=0xc9 => {
                let len = self.len(byte - 0xc7)?;
                return self.extension(len);
            }
            0xca => Head::F64(f64::from(f32::from_bits(self.u32()?))),
            0xcb => Head::F64(f64::from_be_bytes(self.array()?)),
            0xcc => Head::U64(u64::from(self.u8()?)),
            0xcd => Head::U64(u64::from(self.u16()?)),
            0xce => Head::U64(u64::from(self.u32()?)),
            0xcf => Head::U64(u64::from_be_bytes(self.array()?)),
            0xd0 => Head::I64(i64::from(i8::from_be_bytes(self.array()?))),
            0xd1 => Head::I64(i64::from(i16::from_be_bytes(self.array()?))),
            0xd2 => Head::I64(i64::from(i32::from_be_bytes(self.array()?))),
            0xd3 => Head::I64(i64::from_be_bytes(self.array()?)),
            byte @ 0xd4..=0xd8 => return self.extension(1 << (byte - 0xd4)),
            byte @ 0xd9..=0xdb => {
                let len = self.len(byte - 0xd9)?;
                Head::Text(self.take_u32(len)?)
            }
            byte @ (0xdc | 0xdd) => Head::Array(self.len(byte - 0xdb)?),
            byte @ (0xde | 0xdf) => Head::Map(self.len(byte - 0xdd)?),
            byte @ 0xe0..=0xff => Head::I64(i64::from(byte.cast_signed())),
        })
    }

    /// A length in one, two or four bytes.
    fn len(&mut self, width: u8) -> Option<u32> {
        match width {
            0 => self.u8().map(u32::from),
            1 => self.u16().map(u32::from),
            _ => self.u32(),
        }
    }

    /// Goes on to the value of a key, behind the head of a map.
    fn enter_value(&mut self, token: &str, len: u32) -> Option<()> {
        for _ in 0..len {
            let key = self.head()?;
            if key.is(token) {
                return Some(());
            }
            self.skip(key.parts().checked_add(1)?)?;
        }
        None
    }

    /// Passes over so many values.
    fn skip(&mut self, mut values: u64) -> Option<()> {
        while values > 0 {
            // Each takes a byte at least.
            if values > self.rest.len() as u64 {
                return None;
            }
            values = values - 1 + self.head()?.parts();
        }
        Some(())
    }
}
