//! From text to a specification.
//!
//! ```text
//! spec    = field { "," field } [ "unique" ] [ "where present" ]
//! field   = ( "k" | "v" ) [ piece ] [ ":" type ]
//! piece   = "[" [ number ] ".." [ number ] "]"
//!         | ".split(" quoted "," number ")"
//!         | ".json" [ "." pointer ] | "." pointer
//!         | ".msgpack" [ "." pointer ]
//! pointer = what RFC 6901 says, from "/" up to a space, "," or ":"; or so in quotes
//! quoted  = "'" { byte | "\t" | "\n" | "\\" | "\'" | "\xNN" } "'"
//! ```

use super::field::{Field, FieldKind, FieldSource, Piece, Pointer, ends_pointer};
use super::json;
use super::spec::{FIELDS_MAX, IndexSpec, TEXT_BYTES_MAX};
use crate::base::error::{Error, Result};
use std::str::FromStr;

impl IndexSpec {
    /// Reads the text of a specification.
    ///
    /// ```
    /// let e = azekura::IndexSpec::parse("v[0..8]:u65").unwrap_err().to_string();
    /// assert!(e.contains("column 9: a type expected"), "{e}");
    /// ```
    ///
    /// # Errors
    /// `Invalid` says what is wrong and at which column; `TooLarge` if the text has more than 4,096 bytes.
    pub fn parse(text: &str) -> Result<IndexSpec> {
        parse(text)
    }
}

impl FromStr for IndexSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<IndexSpec> {
        parse(text)
    }
}

/// Reads a specification.
fn parse(text: &str) -> Result<IndexSpec> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::TooLarge {
            what: "specification of an index",
            found: text.len() as u64,
            limit: TEXT_BYTES_MAX as u64,
        });
    }
    let mut parser = Parser { text, at: 0 };
    let mut fields = Vec::new();
    loop {
        parser.skip_space();
        let start = parser.at;
        fields.push(parser.field()?);
        if fields.len() > FIELDS_MAX {
            return Err(parser.bad_at(start, &format!("an index has at most {FIELDS_MAX} fields")));
        }
        parser.skip_space();
        if !parser.eat(",") {
            break;
        }
    }
    let (mut unique, mut where_present) = (false, false);
    loop {
        parser.skip_space();
        let start = parser.at;
        let seen = match parser.word() {
            "" if parser.rest().is_empty() => break,
            "unique" => std::mem::replace(&mut unique, true),
            "where" => {
                parser.skip_space();
                let start = parser.at;
                if parser.word() != "present" {
                    return Err(parser.bad_at(start, "`present` expected after `where`"));
                }
                std::mem::replace(&mut where_present, true)
            }
            _ => return Err(parser.bad_at(start, "`,`, `unique`, `where present` or the end expected")),
        };
        if seen {
            return Err(parser.bad_at(start, "said twice"));
        }
    }
    let spec = IndexSpec { fields: fields.into(), unique, where_present };
    // The canonical form may be longer, and is what the file keeps.
    let canonical = spec.to_string().len();
    if canonical > TEXT_BYTES_MAX {
        return Err(Error::TooLarge {
            what: "specification of an index",
            found: canonical as u64,
            limit: TEXT_BYTES_MAX as u64,
        });
    }
    Ok(spec)
}

struct Parser<'a> {
    text: &'a str,
    /// Where the rest begins, in bytes.
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The error that something at `at` is not what was expected.
    #[cold]
    fn bad_at(&self, at: usize, expected: &str) -> Error {
        let column = self.text[..at].chars().count() + 1;
        let found = match self.text[at..].chars().next() {
            Some(c) => format!("{c:?}"),
            None => "the end".to_owned(),
        };
        Error::Invalid {
            detail: format!("specification of an index, column {column}: {expected}, found {found}"),
        }
    }

    fn bad(&self, expected: &str) -> Error {
        self.bad_at(self.at, expected)
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.bad(&format!("`{token}` expected"))) }
    }

    /// Letters and digits.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn number(&mut self) -> Result<u32> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number =
            rest[..end].parse().map_err(|_| self.bad("a number expected, smaller than 4294967296"))?;
        self.at += end;
        Ok(number)
    }

    fn field(&mut self) -> Result<Field> {
        let source = if self.eat("k") {
            FieldSource::Key
        } else if self.eat("v") {
            FieldSource::Value
        } else {
            return Err(self.bad("a field expected: `k`, the key, or `v`, the value"));
        };
        let piece = if self.eat("[") {
            self.slice()?
        } else if self.eat(".") {
            self.piece()?
        } else {
            Piece::Slice { from: 0, to: None }
        };
        let mut kind = piece.default_kind();
        if self.eat(":") {
            let start = self.at;
            kind = FieldKind::named(self.word()).ok_or_else(|| {
                self.bad_at(
                    start,
                    "a type expected: bytes, text, lower, bool, u64, i64, f64, u64le, u64be and others",
                )
            })?;
            if !piece.can_be(kind) {
                return Err(self.bad_at(
                    start,
                    "a type of documents expected: text, lower, bytes, bool, u64, i64 or f64",
                ));
            }
        }
        if self.rest().starts_with(|c: char| !c.is_whitespace() && c != ',') {
            return Err(self.bad("the end of the field expected"));
        }
        Ok(Field { source, piece, kind })
    }

    /// A slice, behind its bracket.
    fn slice(&mut self) -> Result<Piece> {
        self.skip_space();
        let start = self.at;
        let from = if self.rest().starts_with("..") { 0 } else { self.number()? };
        self.expect("..")?;
        self.skip_space();
        let to = if self.rest().starts_with(']') { None } else { Some(self.number()?) };
        self.skip_space();
        self.expect("]")?;
        if to.is_some_and(|to| to <= from) {
            return Err(self.bad_at(start, "a slice of one byte at least expected"));
        }
        Ok(Piece::Slice { from, to })
    }

    /// A piece, behind its point.
    fn piece(&mut self) -> Result<Piece> {
        if self.rest().starts_with(['/', '\'']) {
            return self.pointer().map(Piece::Json);
        }
        let start = self.at;
        match self.word() {
            "split" => self.split(),
            "json" => self.document().map(Piece::Json),
            "msgpack" => self.document().map(Piece::MsgPack),
            _ => Err(self.bad_at(start, "`/` and a pointer, `split(`, `json` or `msgpack` expected")),
        }
    }

    /// The pointer of a document, behind the document's format.
    fn document(&mut self) -> Result<Pointer> {
        if self.eat(".") { self.pointer() } else { Ok(Pointer(Box::new([]))) }
    }

    /// A split, behind its name.
    fn split(&mut self) -> Result<Piece> {
        self.expect("(")?;
        self.skip_space();
        let start = self.at;
        let separator = self.quoted()?;
        if separator.is_empty() {
            return Err(self.bad_at(start, "a separator of one byte at least expected"));
        }
        self.skip_space();
        self.expect(",")?;
        self.skip_space();
        let nth = self.number()?;
        self.skip_space();
        self.expect(")")?;
        Ok(Piece::Split { separator: separator.into(), nth })
    }

    fn quoted(&mut self) -> Result<Vec<u8>> {
        self.expect("'")?;
        let mut bytes = Vec::new();
        loop {
            let Some(c) = self.rest().chars().next() else { return Err(self.bad("`'` expected")) };
            let start = self.at;
            self.at += c.len_utf8();
            match c {
                '\'' => return Ok(bytes),
                '\\' => bytes.push(self.escape(start)?),
                _ => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    /// The byte of an escape that begins at `start`, behind its backslash.
    fn escape(&mut self, start: usize) -> Result<u8> {
        let byte = match self.rest().as_bytes().first() {
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(&byte @ (b'\\' | b'\'')) => byte,
            Some(b'x') => {
                let digits = self.rest().get(1..3).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                self.at += 2 * usize::from(byte.is_some());
                byte.ok_or_else(|| self.bad_at(start, "`\\x` and two hexadecimal digits expected"))?
            }
            _ => return Err(self.bad_at(start, r"`\t`, `\n`, `\\`, `\'` or `\xNN` expected")),
        };
        self.at += 1;
        Ok(byte)
    }

    fn pointer(&mut self) -> Result<Pointer> {
        let start = self.at;
        let quoted;
        let text = if self.rest().starts_with('\'') {
            quoted = self.quoted()?;
            std::str::from_utf8(&quoted).map_err(|_| self.bad_at(start, "a pointer of UTF-8 expected"))?
        } else {
            let rest = self.rest();
            let end = rest.find(ends_pointer).unwrap_or(rest.len());
            self.at += end;
            &rest[..end]
        };
        let Some(tokens) = text.strip_prefix('/') else {
            return Err(self.bad_at(start, "a pointer expected, which begins with `/`"));
        };
        let tokens: Option<Box<[_]>> = tokens.split('/').map(unescape).collect();
        let tokens =
            tokens.ok_or_else(|| self.bad_at(start, "a pointer expected, with `~0` for each `~`"))?;
        if tokens.len() > json::DEPTH_MAX {
            return Err(
                self.bad_at(start, &format!("a pointer of {} tokens at most expected", json::DEPTH_MAX))
            );
        }
        Ok(Pointer(tokens))
    }
}

/// A token of a pointer without its escapes.
fn unescape(token: &str) -> Option<Box<str>> {
    let mut text = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(c) = chars.next() {
        text.push(match c {
            '~' => match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            _ => c,
        });
    }
    Some(text.into())
}
