//! Keys and values as text and as JSON.
//!
//! Text output is escaped: it stays on one line, has no tab, and does no harm to a terminal:
//!
//! ```text
//! \t  tab      \n  line feed      \r  carriage return      \0  zero byte      \\  backslash
//! \xNN  every other control character, and every byte that is not UTF-8
//! ```
//!
//! [`escape`] and [`unescape`] are inverse for all bytes; import and export rely on that. JSON has text if
//! the bytes are UTF-8 (`"key"`), and otherwise hexadecimal digits under another name (`"key_hex"`), so that
//! the two cannot be confused.

use std::borrow::Cow;

use serde::Serialize;

use crate::units;

/// How bytes are written in arguments and in text output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As text, escaped on output.
    Text,
    /// As hexadecimal digits.
    Hex,
}

/// The `--hex` flag.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct FormArg {
    /// Read and write keys and values as hexadecimal digits
    #[arg(long)]
    hex: bool,
}

impl FormArg {
    /// The form asked for.
    pub fn form(self) -> Form {
        if self.hex { Form::Hex } else { Form::Text }
    }
}

/// Appends `bytes` to `out` in the given form.
pub fn write_form(bytes: &[u8], form: Form, out: &mut Vec<u8>) {
    match form {
        Form::Text => escape(bytes, out),
        Form::Hex => to_hex(bytes, out),
    }
}

/// Reads one field of a line in the given form.
pub fn read_form(field: &[u8], form: Form) -> Result<Cow<'_, [u8]>, String> {
    match form {
        Form::Text => unescape(field),
        Form::Hex => from_hex(field).map(Cow::Owned),
    }
}

/// Appends hexadecimal digits.
pub fn to_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Decodes hexadecimal digits, of either case.
pub fn from_hex(text: &[u8]) -> Result<Vec<u8>, String> {
    if !text.len().is_multiple_of(2) {
        return Err("an odd number of hexadecimal digits".to_owned());
    }
    text.chunks_exact(2).map(|pair| hex_byte(pair[0], pair[1])).collect()
}

fn hex_byte(high: u8, low: u8) -> Result<u8, String> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(format!("{:?} is no hexadecimal digit", char::from(byte))),
    };
    Ok(digit(high)? << 4 | digit(low)?)
}

/// Appends `bytes` escaped.
pub fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    let plain = |&byte: &u8| matches!(byte, b' '..=b'~') && byte != b'\\';
    if bytes.iter().all(plain) {
        out.extend_from_slice(bytes);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            escape_char(character, out);
        }
        chunk.invalid().iter().for_each(|&byte| escape_byte(byte, out));
    }
}

fn escape_char(character: char, out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    let encoded = character.encode_utf8(&mut buffer).as_bytes();
    match character {
        '\t' => out.extend_from_slice(b"\\t"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\0' => out.extend_from_slice(b"\\0"),
        '\\' => out.extend_from_slice(b"\\\\"),
        _ if character.is_control() => encoded.iter().for_each(|&byte| escape_byte(byte, out)),
        _ => out.extend_from_slice(encoded),
    }
}

fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\x");
    to_hex(&[byte], out);
}

/// The inverse of [`escape`]. Borrows if there is nothing to undo.
pub fn unescape(text: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let Some(first) = text.iter().position(|&byte| byte == b'\\') else {
        return Ok(Cow::Borrowed(text));
    };
    let mut out = text[..first].to_vec();
    let mut rest = &text[first..];
    while let Some((&byte, tail)) = rest.split_first() {
        rest = if byte == b'\\' {
            unescape_one(tail, &mut out)?
        } else {
            out.push(byte);
            tail
        };
    }
    Ok(Cow::Owned(out))
}

/// Decodes what follows a backslash. Returns the rest.
fn unescape_one<'a>(tail: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], String> {
    let (byte, used) = match *tail {
        [b't', ..] => (b'\t', 1),
        [b'n', ..] => (b'\n', 1),
        [b'r', ..] => (b'\r', 1),
        [b'0', ..] => (0, 1),
        [b'\\', ..] => (b'\\', 1),
        [b'x', high, low, ..] => (hex_byte(high, low)?, 3),
        [b'x', ..] => return Err("\\x needs two hexadecimal digits".to_owned()),
        [other, ..] => {
            return Err(format!("unknown escape \\{}", char::from(other).escape_default()));
        }
        [] => return Err("a backslash ends the field".to_owned()),
    };
    out.push(byte);
    Ok(&tail[used..])
}

/// The most columns of a key or a name in a message or a list.
const SHOWN_COLUMNS: usize = 80;
/// Enough bytes to fill them: no character has more than four.
const SHOWN_BYTES: usize = 4 * SHOWN_COLUMNS;

/// A key in a message: escaped, and cut if it is long, with its length.
pub fn shown(bytes: &[u8], form: Form) -> String {
    let head = &bytes[..bytes.len().min(SHOWN_BYTES)];
    let mut text = Vec::new();
    write_form(head, form, &mut text);
    let text = harmless(&String::from_utf8_lossy(&text));
    if head.len() == bytes.len() && text.chars().map(columns).sum::<usize>() <= SHOWN_COLUMNS {
        return text;
    }
    let length =
        format!("\u{2026} ({} bytes)", units::grouped(u64::try_from(bytes.len()).unwrap_or(u64::MAX)));
    let mut room = SHOWN_COLUMNS.saturating_sub(length.chars().map(columns).sum());
    let fits = |&character: &char| {
        let fits = columns(character) <= room;
        room = room.saturating_sub(columns(character));
        fits
    };
    text.chars().take_while(fits).chain(length.chars()).collect()
}

/// A table's name in a list, as [`shown`].
pub fn shown_name(name: &str) -> String {
    shown(name.as_bytes(), Form::Text)
}

/// A table's name in a sentence.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", shown_name(name))
}

/// The most columns that a terminal gives to a character.
fn columns(character: char) -> usize {
    // Scripts with wide characters begin here.
    if character < '\u{1100}' { 1 } else { 2 }
}

/// Escapes every character that acts on a terminal. Line feeds stay.
pub fn harmless(text: &str) -> String {
    let acts = |character: char| (character.is_control() && character != '\n') || turns_text(character);
    if !text.chars().any(acts) {
        return text.to_owned();
    }
    let mut out = Vec::new();
    for character in text.chars() {
        let mut buffer = [0; 4];
        let encoded = character.encode_utf8(&mut buffer).as_bytes();
        if acts(character) {
            encoded.iter().for_each(|&byte| escape_byte(byte, &mut out));
        } else {
            out.extend_from_slice(encoded);
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether a character is invisible and changes the direction or the lines of the text around it.
fn turns_text(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A record as JSON. Either part may be left out.
#[derive(Debug, Default, Serialize)]
pub struct JsonRecord<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_hex: Option<String>,
}

impl<'a> JsonRecord<'a> {
    /// The record of `key` and, unless only keys are wanted, `value`. `Form::Hex` gives both as hexadecimal
    /// digits in any case.
    pub fn new(key: &'a [u8], value: Option<&'a [u8]>, form: Form) -> JsonRecord<'a> {
        let (key, key_hex) = json_bytes(key, form);
        let (value, value_hex) = value.map_or((None, None), |value| json_bytes(value, form));
        JsonRecord { key, key_hex, value, value_hex }
    }
}

/// Bytes as text, or as hexadecimal digits.
pub fn json_bytes(bytes: &[u8], form: Form) -> (Option<&str>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) if form == Form::Text => (Some(text), None),
        _ => (None, Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        escape(bytes, &mut out);
        String::from_utf8(out).expect("escaped text is UTF-8")
    }

    #[test]
    fn text_stays_readable() {
        assert_eq!(escaped("crème brûlée".as_bytes()), "crème brûlée");
        assert_eq!(escaped(b"a\tb\nc\rd\\e\0f"), "a\\tb\\nc\\rd\\\\e\\0f");
        assert_eq!(escaped(b"\x1b[31m\xff"), "\\x1b[31m\\xff");
        assert_eq!(escaped("\u{9b}".as_bytes()), "\\xc2\\x9b");
    }

    #[test]
    fn every_pair_of_bytes_survives_escaping() {
        for pair in 0..=u16::MAX {
            let bytes = pair.to_be_bytes();
            let text = escaped(&bytes);
            assert!(!text.contains(['\t', '\n', '\r']));
            assert_eq!(unescape(text.as_bytes()).as_deref(), Ok(&bytes[..]));
        }
    }

    #[test]
    fn what_people_see_is_short_and_harmless() {
        assert_eq!(shown(b"a\x1b[31m\tb\\", Form::Text), "a\\x1b[31m\\tb\\\\");
        assert_eq!(shown("a\u{202e}b".as_bytes(), Form::Text), "a\\xe2\\x80\\xaeb");
        assert_eq!(shown_name("crème brûlée"), "crème brûlée");
        assert_eq!(shown(&[b'k'; 80], Form::Text), "k".repeat(80));
        assert_eq!(shown(&[b'k'; 65_000], Form::Text), format!("{}… (65,000 bytes)", "k".repeat(63)));
        assert_eq!(shown(&[0xab; 41], Form::Hex), format!("{}a… (41 bytes)", "ab".repeat(33)));
        for long in ["鍵".repeat(50), "\u{9b}".repeat(50), "é".repeat(81), "\u{1f511}".repeat(1_000)] {
            let shown = shown_name(&long);
            assert!(shown.chars().map(columns).sum::<usize>() <= SHOWN_COLUMNS, "{shown}");
            assert!(shown.ends_with(&format!("… ({} bytes)", units::grouped(long.len() as u64))), "{shown}");
            assert_eq!(shown, harmless(&shown));
        }
    }

    #[test]
    fn bad_escapes_are_refused() {
        for bad in ["\\", "a\\", "\\q", "\\x", "\\x1", "\\xg0"] {
            assert!(unescape(bad.as_bytes()).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn hex_round_trips() {
        let mut out = Vec::new();
        to_hex(&[0, 0x1f, 0xff], &mut out);
        assert_eq!(out, b"001fff");
        assert_eq!(from_hex(b"001FfF"), Ok(vec![0, 0x1f, 0xff]));
        assert!(from_hex(b"abc").is_err());
        assert!(from_hex(b"zz").is_err());
    }

    #[test]
    fn json_tells_text_from_bytes() {
        let json =
            |key, value| serde_json::to_string(&JsonRecord::new(key, value, Form::Text)).expect("serializes");
        assert_eq!(json(b"a", Some(b"b\n")), r#"{"key":"a","value":"b\n"}"#);
        assert_eq!(json(b"\xff", None), r#"{"key_hex":"ff"}"#);
    }
}
