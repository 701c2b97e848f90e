//! The fields of an entry as bytes. Each is a byte that says what follows, and that:
//!
//! | byte | what follows |
//! |---|---|
//! | 0 | nothing: null |
//! | 1, 2 | bytes, text: as they are, but 00 FF for each 00; then 00 01, the end |
//! | 3 | an unsigned integer, eight bytes, the highest first |
//! | 4 | a signed integer, likewise, its sign flipped |
//! | 5 | a float, likewise: of a negative one all bits are flipped, else the sign |
//!
//! These are the forms that typed tables give to parts of tuples. A field has one type and so one such byte,
//! or null. The smaller of two values has the smaller bytes, and no value's bytes begin those of another:
//! what follows them decides only between equals.

use super::field::{Field, Form};
use super::lower::lower_chars;
use super::value::IndexValue;
use crate::base::error::{Error, Result};
use crate::base::limits::KEY_BYTES_MAX;

/// The byte of a null.
pub(super) const NULL: u8 = 0;
const BYTES: u8 = 1;
const TEXT: u8 = 2;
const U64: u8 = 3;
const I64: u8 = 4;
const F64: u8 = 5;

/// In text and bytes this is a byte 00,
const ESCAPED: [u8; 2] = [0, 0xff];
/// and this is the end: smaller than whatever may come instead, so that what is shorter comes first.
const END: [u8; 2] = [0, 1];

/// Flipping this bit brings signed numbers into the order of unsigned ones.
const SIGN: u64 = 1 << 63;

/// The byte that a form begins with.
fn tag(form: Form) -> u8 {
    match form {
        Form::Bytes => BYTES,
        Form::Text => TEXT,
        Form::U64 => U64,
        Form::I64 => I64,
        Form::F64 => F64,
    }
}

pub(super) fn push_null(out: &mut Vec<u8>) {
    out.push(NULL);
}

pub(super) fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    push_escaped(BYTES, bytes, out);
}

pub(super) fn push_text(text: &str, out: &mut Vec<u8>) {
    push_escaped(TEXT, text.as_bytes(), out);
}

/// Text in lower case. Of a text that is too long only the beginning, as `push_escaped` does.
pub(super) fn push_lower(text: &str, out: &mut Vec<u8>) {
    let at = out.len();
    if text.is_ascii() {
        push_text(text, out);
        // Neither the escapes nor the end have capital letters.
        out[at..].make_ascii_lowercase();
        return;
    }
    out.push(TEXT);
    for c in lower_chars(text) {
        if out.len() - at > KEY_BYTES_MAX {
            break;
        }
        match c {
            '\0' => out.extend_from_slice(&ESCAPED),
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.extend_from_slice(&END);
}

/// Of bytes that are too long for a key only so much is appended. That is longer than any entry too. So a
/// write of it is refused, and a lookup finds nothing, as with all of the bytes.
fn push_escaped(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    let bytes = &bytes[..bytes.len().min(KEY_BYTES_MAX)];
    out.reserve(bytes.len() + 3);
    out.push(tag);
    for (i, stretch) in bytes.split(|&b| b == 0).enumerate() {
        if i > 0 {
            out.extend_from_slice(&ESCAPED);
        }
        out.extend_from_slice(stretch);
    }
    out.extend_from_slice(&END);
}

fn push_number(tag: u8, ordered: u64, out: &mut Vec<u8>) {
    let mut bytes = [tag; 9];
    bytes[1..].copy_from_slice(&ordered.to_be_bytes());
    out.extend_from_slice(&bytes);
}

pub(super) fn push_u64(value: u64, out: &mut Vec<u8>) {
    push_number(U64, value, out);
}

pub(super) fn push_i64(value: i64, out: &mut Vec<u8>) {
    push_number(I64, value.cast_unsigned() ^ SIGN, out);
}

/// A float. -0.0 is 0.0. `None`: NaN has no place in any order, and nothing is appended.
pub(super) fn push_f64(value: f64, out: &mut Vec<u8>) -> Option<()> {
    if value.is_nan() {
        return None;
    }
    // The sum makes 0.0 of -0.0.
    let bits = (value + 0.0).to_bits();
    push_number(F64, if bits & SIGN == 0 { bits ^ SIGN } else { !bits }, out);
    Some(())
}

/// Removes the end mark of text or bytes. What is left is the beginning of longer ones.
pub(super) fn open_end(field: &Field, out: &mut Vec<u8>) -> Result<()> {
    match field.kind.form() {
        Form::Bytes | Form::Text if out.ends_with(&END) => {
            out.truncate(out.len() - END.len());
            Ok(())
        }
        _ => Err(Error::Invalid {
            detail: format!("field {field} of an index: only text and bytes have a beginning"),
        }),
    }
}

/// Appends a value that a lookup is given.
pub(super) fn push_value(field: &Field, value: IndexValue<'_>, out: &mut Vec<u8>) -> Result<()> {
    let form = field.kind.form();
    match (form, value) {
        (_, IndexValue::Null) => push_null(out),
        (Form::Bytes, IndexValue::Bytes(bytes)) => push_bytes(bytes, out),
        (Form::Bytes, IndexValue::Text(text)) => push_bytes(text.as_bytes(), out),
        (Form::Text, IndexValue::Text(text)) => field.push_text(text, out),
        (Form::Text, IndexValue::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => field.push_text(text, out),
            Err(_) => return Err(wrong(field, value)),
        },
        (Form::U64 | Form::I64 | Form::F64, IndexValue::U64(number)) => {
            push_integer(field, i128::from(number), out).ok_or_else(|| wrong(field, value))?;
        }
        (Form::U64 | Form::I64 | Form::F64, IndexValue::I64(number)) => {
            push_integer(field, i128::from(number), out).ok_or_else(|| wrong(field, value))?;
        }
        (Form::F64, IndexValue::F64(number)) => push_f64(number, out).ok_or_else(|| wrong(field, value))?,
        _ => return Err(wrong(field, value)),
    }
    Ok(())
}

/// Appends an integer, if the field's numbers have it exactly.
fn push_integer(field: &Field, number: i128, out: &mut Vec<u8>) -> Option<()> {
    match field.kind.form() {
        Form::U64 => push_u64(number.try_into().ok()?, out),
        Form::I64 => push_i64(number.try_into().ok()?, out),
        _ => {
            // Rounded, and compared with what it was.
            let float = number as f64;
            if float as i128 != number {
                return None;
            }
            push_f64(float, out)?;
        }
    }
    Some(())
}

#[cold]
fn wrong(field: &Field, value: IndexValue<'_>) -> Error {
    Error::Invalid { detail: format!("field {field} of an index has no value {value:?}") }
}

/// The length of the first field of `entry`, and whether it is null.
pub(super) fn field_len(field: &Field, entry: &[u8]) -> Result<(usize, bool)> {
    let form = field.kind.form();
    let Some((&first, rest)) = entry.split_first() else { return Err(damaged(field, "it is missing")) };
    if first == NULL {
        return Ok((1, true));
    }
    if first != tag(form) {
        return Err(damaged(field, "it is of another type"));
    }
    let len = match form {
        Form::U64 | Form::I64 | Form::F64 if rest.len() >= 8 => 8,
        Form::U64 | Form::I64 | Form::F64 => return Err(damaged(field, "its end is missing")),
        Form::Bytes | Form::Text => escaped_len(rest).ok_or_else(|| damaged(field, "it has no end"))?,
    };
    Ok((1 + len, false))
}

/// The length of escaped bytes, with their end.
fn escaped_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|&b| b == 0)?;
        let mark = *bytes.get(at..)?.first_chunk::<2>()?;
        at += 2;
        match mark {
            END => return Some(at),
            ESCAPED => {}
            _ => return None,
        }
    }
}

#[cold]
fn damaged(field: &Field, how: &str) -> Error {
    Error::corrupt("entry of an index", 0, format!("field {field}: {how}"))
}
