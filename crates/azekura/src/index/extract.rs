//! From a record to the bytes of a field.

use super::encode::{push_bytes, push_f64, push_i64, push_lower, push_null, push_text, push_u64};
use super::field::{Field, FieldKind, FieldSource, Form, Number, Piece};
use super::found::Found;
use super::value::IndexValue;
use super::{json, msgpack};
use crate::base::error::{Error, Result};

impl Field {
    /// Appends the field of a record. A field that it does not have, or has of another type, is null.
    #[inline]
    pub(super) fn push(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let bytes = match self.source {
            FieldSource::Key => key,
            FieldSource::Value => value,
        };
        let pushed = match &self.piece {
            Piece::Slice { from, to } => slice(bytes, *from, *to).and_then(|b| self.push_piece(b, out)),
            Piece::Split { separator, nth } => {
                part(bytes, separator, *nth).and_then(|bytes| self.push_piece(bytes, out))
            }
            Piece::Json(pointer) => self.push_found(json::find(bytes, pointer), out),
            Piece::MsgPack(pointer) => self.push_found(msgpack::find(bytes, pointer), out),
        };
        if pushed.is_none() {
            push_null(out);
        }
    }

    /// Appends bytes that are no document. `None`: they are not of the field's type, and nothing is appended.
    #[inline]
    fn push_piece(&self, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        match self.kind {
            FieldKind::Bytes => push_bytes(bytes, out),
            FieldKind::Binary { number, bytes: width, little } => {
                return push_binary(number, width, raw(bytes, width, little)?, out);
            }
            FieldKind::Text | FieldKind::Lower => self.push_text(std::str::from_utf8(bytes).ok()?, out),
            FieldKind::Number(number) => return push_digits(number, std::str::from_utf8(bytes).ok()?, out),
            FieldKind::Bool => match bytes {
                b"true" => push_u64(1, out),
                b"false" => push_u64(0, out),
                _ => return None,
            },
        }
        Some(())
    }

    /// Appends what a document has. `None` as above.
    fn push_found(&self, found: Found<'_>, out: &mut Vec<u8>) -> Option<()> {
        match (self.kind, found) {
            (FieldKind::Bytes, Found::Bytes(bytes)) => push_bytes(bytes, out),
            (FieldKind::Bytes, Found::Text(text)) => push_bytes(text.as_bytes(), out),
            (FieldKind::Text | FieldKind::Lower, Found::Text(text)) => self.push_text(&text, out),
            (FieldKind::Bool, Found::Bool(value)) => push_u64(u64::from(value), out),
            (FieldKind::Number(number), Found::Digits(digits)) => return push_digits(number, digits, out),
            (FieldKind::Number(Number::Unsigned), Found::U64(n)) => push_u64(n, out),
            (FieldKind::Number(Number::Unsigned), Found::I64(n)) => push_u64(n.try_into().ok()?, out),
            (FieldKind::Number(Number::Signed), Found::I64(n)) => push_i64(n, out),
            (FieldKind::Number(Number::Signed), Found::U64(n)) => push_i64(n.try_into().ok()?, out),
            // An integer of more than 53 bits is the nearest float, as one in digits is.
            (FieldKind::Number(Number::Float), Found::U64(n)) => return push_f64(n as f64, out),
            (FieldKind::Number(Number::Float), Found::I64(n)) => return push_f64(n as f64, out),
            (FieldKind::Number(Number::Float), Found::F64(n)) => return push_f64(n, out),
            _ => return None,
        }
        Some(())
    }

    /// The value that text stands for.
    pub(super) fn value_of<'a>(&self, text: &'a [u8]) -> Result<IndexValue<'a>> {
        let digits = std::str::from_utf8(text);
        let value = match self.kind {
            FieldKind::Bool => match text {
                b"true" => Some(IndexValue::U64(1)),
                b"false" => Some(IndexValue::U64(0)),
                _ => None,
            },
            _ => match (self.kind.form(), digits) {
                (Form::Bytes | Form::Text, _) => Some(IndexValue::Bytes(text)),
                (Form::U64, Ok(digits)) => digits.parse().ok().map(IndexValue::U64),
                (Form::I64, Ok(digits)) => digits.parse().ok().map(IndexValue::I64),
                (Form::F64, Ok(digits)) => digits.parse().ok().map(IndexValue::F64),
                (_, Err(_)) => None,
            },
        };
        value.ok_or_else(|| Error::Invalid {
            detail: format!("field {self} of an index has no value \"{}\"", text.escape_ascii()),
        })
    }

    /// Appends text, which lookups are given too.
    pub(super) fn push_text(&self, text: &str, out: &mut Vec<u8>) {
        if self.kind == FieldKind::Lower {
            push_lower(text, out);
        } else {
            push_text(text, out);
        }
    }
}

#[inline]
fn slice(bytes: &[u8], from: u32, to: Option<u32>) -> Option<&[u8]> {
    let from = usize::try_from(from).ok()?;
    match to {
        None => bytes.get(from..),
        Some(to) => bytes.get(from..usize::try_from(to).ok()?),
    }
}

/// The part before the first separator, between two, or behind the last.
fn part<'a>(mut bytes: &'a [u8], separator: &[u8], nth: u32) -> Option<&'a [u8]> {
    for _ in 0..nth {
        bytes = &bytes[position(bytes, separator)? + separator.len()..];
    }
    Some(&bytes[..position(bytes, separator).unwrap_or(bytes.len())])
}

fn position(bytes: &[u8], separator: &[u8]) -> Option<usize> {
    match separator {
        [one] => bytes.iter().position(|b| b == one),
        _ => bytes.windows(separator.len()).position(|window| window == separator),
    }
}

/// The bits of a number of `width` bytes: those of a smaller one are the lowest.
#[inline]
fn raw(bytes: &[u8], width: u8, little: bool) -> Option<u64> {
    if bytes.len() != usize::from(width) {
        return None;
    }
    let mut all = [0; 8];
    Some(if little {
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        u64::from_le_bytes(all)
    } else {
        all.get_mut(8 - bytes.len()..)?.copy_from_slice(bytes);
        u64::from_be_bytes(all)
    })
}

#[inline]
fn push_binary(number: Number, width: u8, raw: u64, out: &mut Vec<u8>) -> Option<()> {
    // The sign of a smaller number is moved to the top, and back.
    let unused = 64 - 8 * u32::from(width);
    match number {
        Number::Unsigned => push_u64(raw, out),
        Number::Signed => push_i64((raw << unused).cast_signed() >> unused, out),
        Number::Float if width == 4 => {
            return push_f64(f64::from(f32::from_bits(u32::try_from(raw).ok()?)), out);
        }
        Number::Float => return push_f64(f64::from_bits(raw), out),
    }
    Some(())
}

/// Appends a number in digits.
fn push_digits(number: Number, digits: &str, out: &mut Vec<u8>) -> Option<()> {
    match number {
        Number::Unsigned => push_u64(digits.parse().ok()?, out),
        Number::Signed => push_i64(digits.parse().ok()?, out),
        Number::Float => return push_f64(digits.parse().ok()?, out),
    }
    Some(())
}
