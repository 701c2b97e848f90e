//! Finds what a pointer leads to in a JSON document, and builds no tree.
//!
//! The reader goes forward once and stops at what it was asked for. What stands before that must be well
//! formed: brackets, commas, colons, numbers and words are compared with RFC 8259. Of strings only the end is
//! looked for. What follows the field is not looked at. If the field is the document itself, only white space
//! may follow. Of members with the same name the first counts. Nothing is found below `DEPTH_MAX` levels, nor
//! behind something that is nested deeper.

use super::field::Pointer;
use super::found::Found;
use crate::base::limits::KEY_BYTES_MAX;
use std::borrow::Cow;

/// The deepest nesting of a document that is read: as many levels as the bits of `Nesting`.
pub(super) const DEPTH_MAX: usize = 128;

/// Only so much of an unescaped text is kept. That is too long for an entry, even if lower case makes it a
/// third as long.
const TEXT_BYTES: usize = 4 * KEY_BYTES_MAX;

/// What the pointer leads to, where it is text, a number or a truth value.
pub(super) fn find<'a>(document: &'a [u8], pointer: &Pointer) -> Found<'a> {
    try_find(document, pointer).unwrap_or(Found::Null)
}

fn try_find<'a>(document: &'a [u8], pointer: &Pointer) -> Option<Found<'a>> {
    let mut reader = Reader { bytes: document, at: 0 };
    for (depth, token) in (1..).zip(&pointer.0) {
        match reader.next_token()? {
            b'{' => reader.enter_member(token, depth)?,
            b'[' => reader.enter_element(index(token)?, depth)?,
            _ => return None,
        }
    }
    let found = match reader.next_token()? {
        b'"' => Found::Text(reader.string()?.text()?),
        b't' => reader.word(b"rue").map(|()| Found::Bool(true))?,
        b'f' => reader.word(b"alse").map(|()| Found::Bool(false))?,
        b'-' | b'0'..=b'9' => Found::Digits(reader.number()?),
        _ => return None,
    };
    if pointer.0.is_empty() && reader.next_token().is_some() {
        return None;
    }
    Some(found)
}

/// The place of an element: digits, without needless zeros.
pub(super) fn index(token: &str) -> Option<usize> {
    let plain = token.bytes().all(|b| b.is_ascii_digit()) && (token.len() == 1 || !token.starts_with('0'));
    if plain { token.parse().ok() } else { None }
}

/// Where in a document a reader is.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// What stands between the quotes of a string.
struct Raw<'a> {
    bytes: &'a [u8],
    escaped: bool,
}

/// The arrays and objects that a reader is in: one bit each, set for an object, the innermost lowest.
struct Nesting {
    bits: u128,
    depth: usize,
}

impl Nesting {
    fn push(&mut self, object: bool) -> Option<()> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.bits = self.bits << 1 | u128::from(object);
        self.depth += 1;
        Some(())
    }

    fn pop(&mut self) {
        self.bits >>= 1;
        self.depth -= 1;
    }

    fn in_object(&self) -> bool {
        self.bits & 1 == 1
    }
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// The next byte that is no white space.
    #[inline]
    fn next_token(&mut self) -> Option<u8> {
        loop {
            match self.next()? {
                b' ' | b'\t' | b'\n' | b'\r' => {}
                byte => return Some(byte),
            }
        }
    }

    fn expect(&mut self, token: u8) -> Option<()> {
        (self.next_token()? == token).then_some(())
    }

    /// Goes on to the member of that name, behind the bracket of an object.
    fn enter_member(&mut self, name: &str, depth: usize) -> Option<()> {
        loop {
            // A `}` of an object without members is no quote either.
            self.expect(b'"')?;
            let found = self.string()?.is(name)?;
            self.expect(b':')?;
            if found {
                return Some(());
            }
            self.skip_value(depth)?;
            self.expect(b',')?;
        }
    }

    /// Goes on to an element, behind the bracket of an array.
    fn enter_element(&mut self, index: usize, depth: usize) -> Option<()> {
        for _ in 0..index {
            self.skip_value(depth)?;
            self.expect(b',')?;
        }
        Some(())
    }

    /// Passes over a value that stands `depth` levels deep.
    fn skip_value(&mut self, depth: usize) -> Option<()> {
        let mut nesting = Nesting { bits: 0, depth };
        loop {
            match self.next_token()? {
                b'{' => {
                    nesting.push(true)?;
                    match self.next_token()? {
                        b'}' => nesting.pop(),
                        b'"' => {
                            self.skip_name()?;
                            continue;
                        }
                        _ => return None,
                    }
                }
                b'[' => {
                    nesting.push(false)?;
                    if self.next_token()? == b']' {
                        nesting.pop();
                    } else {
                        self.at -= 1;
                        continue;
                    }
                }
                b'"' => self.string().map(|_| ())?,
                b't' => self.word(b"rue")?,
                b'f' => self.word(b"alse")?,
                b'n' => self.word(b"ull")?,
                b'-' | b'0'..=b'9' => self.number().map(|_| ())?,
                _ => return None,
            }
            if !self.skip_ends(&mut nesting, depth)? {
                return Some(());
            }
        }
    }

    /// Passes over what follows a value, up to the next one. `false`: the outermost has ended.
    fn skip_ends(&mut self, nesting: &mut Nesting, depth: usize) -> Option<bool> {
        while nesting.depth > depth {
            match (self.next_token()?, nesting.in_object()) {
                (b',', true) => {
                    self.expect(b'"')?;
                    self.skip_name()?;
                    return Some(true);
                }
                (b',', false) => return Some(true),
                (b'}', true) | (b']', false) => nesting.pop(),
                _ => return None,
            }
        }
        Some(false)
    }

    /// Passes over a member's name, behind its quote, and the colon.
    fn skip_name(&mut self) -> Option<()> {
        self.string()?;
        self.expect(b':')
    }

    /// A string, behind its quote.
    fn string(&mut self) -> Option<Raw<'a>> {
        let start = self.at;
        let mut escaped = false;
        loop {
            let rest = self.bytes.get(self.at..)?;
            self.at += rest.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20)? + 1;
            match self.bytes[self.at - 1] {
                b'"' => return Some(Raw { bytes: &self.bytes[start..self.at - 1], escaped }),
                b'\\' => {
                    escaped = true;
                    self.at += 1;
                }
                _ => return None,
            }
        }
    }

    /// The rest of a word.
    fn word(&mut self, rest: &[u8]) -> Option<()> {
        self.bytes.get(self.at..)?.starts_with(rest).then(|| self.at += rest.len())
    }

    /// A number, behind its first byte.
    fn number(&mut self) -> Option<&'a str> {
        let start = self.at - 1;
        let first = match self.bytes[start] {
            b'-' => self.next()?,
            digit => digit,
        };
        match first {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return None,
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        match self.bytes.get(self.at) {
            None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r') => {
                std::str::from_utf8(&self.bytes[start..self.at]).ok()
            }
            _ => None,
        }
    }

    fn digits(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Option<()> {
        let start = self.at;
        self.digits();
        (self.at > start).then_some(())
    }
}

impl<'a> Raw<'a> {
    /// Whether it is that name.
    fn is(&self, name: &str) -> Option<bool> {
        if self.escaped { Some(self.text()? == name) } else { Some(self.bytes == name.as_bytes()) }
    }

    /// The text, copied only if there are escapes in it. What is behind the longest is only checked.
    fn text(&self) -> Option<Cow<'a, str>> {
        let raw = std::str::from_utf8(self.bytes).ok()?;
        if !self.escaped {
            return Some(Cow::Borrowed(raw));
        }
        let mut text = String::with_capacity(raw.len().min(TEXT_BYTES));
        let mut rest = raw;
        while let Some((before, escape)) = rest.split_once('\\') {
            push_some(before, &mut text);
            let (c, len) = unescape(escape)?;
            push_some(c.encode_utf8(&mut [0; 4]), &mut text);
            rest = &escape[len..];
        }
        push_some(rest, &mut text);
        Some(Cow::Owned(text))
    }
}

/// Appends what there is room for below `TEXT_BYTES`, or all but a character.
fn push_some(more: &str, text: &mut String) {
    let room = TEXT_BYTES.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room)]);
}

/// The character of an escape, behind its backslash, and how many bytes it takes there.
fn unescape(escape: &str) -> Option<(char, usize)> {
    let c = match escape.as_bytes().first()? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let high = hex(escape.get(1..5)?)?;
            if !(0xd800..0xdc00).contains(&high) {
                // The second half of a pair alone is no character.
                return Some((char::from_u32(high)?, 5));
            }
            let low = hex(escape.get(5..)?.strip_prefix("\\u")?.get(..4)?)?;
            if !(0xdc00..0xe000).contains(&low) {
                return None;
            }
            return Some((char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))?, 11));
        }
        _ => return None,
    };
    Some((c, 1))
}

fn hex(digits: &str) -> Option<u32> {
    let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    if plain { u32::from_str_radix(digits, 16).ok() } else { None }
}
