//! One field of an index: where it stands in a record, and of what type it is. `Display` writes its canonical
//! text.

use std::fmt::{self, Display, Formatter, Write};

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) source: FieldSource,
    pub(super) piece: Piece,
    pub(super) kind: FieldKind,
}

/// Which part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldSource {
    Key,
    Value,
}

/// Which piece of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The bytes from `from` on, up to `to` or the end.
    Slice { from: u32, to: Option<u32> },
    /// The `nth` part, counted from 0, of those between separators. A separator is not empty.
    Split { separator: Box<[u8]>, nth: u32 },
    /// What a pointer leads to in a JSON document.
    Json(Pointer),
    /// What a pointer leads to in a MessagePack document.
    MsgPack(Pointer),
}

/// The tokens of a JSON pointer (RFC 6901), decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer(pub(super) Box<[Box<str>]>);

/// What a field is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    Bytes,
    Text,
    /// Text, in lower case.
    Lower,
    Bool,
    /// A number in digits, or one of a document.
    Number(Number),
    /// A number in `bytes` bytes.
    Binary {
        number: Number,
        bytes: u8,
        little: bool,
    },
}

/// Which numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Unsigned,
    Signed,
    Float,
}

/// What a field's values are as bytes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Bytes,
    Text,
    U64,
    I64,
    F64,
}

impl FieldKind {
    pub(super) fn form(self) -> Form {
        match self {
            FieldKind::Bytes => Form::Bytes,
            FieldKind::Text | FieldKind::Lower => Form::Text,
            FieldKind::Bool => Form::U64,
            FieldKind::Number(number) | FieldKind::Binary { number, .. } => match number {
                Number::Unsigned => Form::U64,
                Number::Signed => Form::I64,
                Number::Float => Form::F64,
            },
        }
    }

    /// The type of that name.
    pub(super) fn named(name: &str) -> Option<FieldKind> {
        let kind = match name {
            "bytes" => FieldKind::Bytes,
            "text" => FieldKind::Text,
            "lower" => FieldKind::Lower,
            "bool" => FieldKind::Bool,
            _ => {
                let (name, order) = match name.strip_suffix("le") {
                    Some(name) => (name, Some(true)),
                    None => match name.strip_suffix("be") {
                        Some(name) => (name, Some(false)),
                        None => (name, None),
                    },
                };
                let (number, bits) = name.split_at_checked(1)?;
                let number = match number {
                    "u" => Number::Unsigned,
                    "i" => Number::Signed,
                    "f" => Number::Float,
                    _ => return None,
                };
                match (bits, order, number) {
                    ("8", None, Number::Unsigned | Number::Signed) => {
                        FieldKind::Binary { number, bytes: 1, little: true }
                    }
                    ("16", Some(little), Number::Unsigned | Number::Signed) => {
                        FieldKind::Binary { number, bytes: 2, little }
                    }
                    ("32", Some(little), _) => FieldKind::Binary { number, bytes: 4, little },
                    ("64", Some(little), _) => FieldKind::Binary { number, bytes: 8, little },
                    ("64", None, _) => FieldKind::Number(number),
                    _ => return None,
                }
            }
        };
        Some(kind)
    }
}

impl Piece {
    /// The type of a field that names none.
    pub(super) fn default_kind(&self) -> FieldKind {
        match self {
            Piece::Slice { .. } | Piece::Split { .. } => FieldKind::Bytes,
            Piece::Json(_) | Piece::MsgPack(_) => FieldKind::Text,
        }
    }

    /// Whether a document may hold values of the type.
    pub(super) fn can_be(&self, kind: FieldKind) -> bool {
        match self {
            Piece::Slice { .. } | Piece::Split { .. } => true,
            Piece::Json(_) | Piece::MsgPack(_) => !matches!(kind, FieldKind::Binary { .. }),
        }
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char(if self.source == FieldSource::Key { 'k' } else { 'v' })?;
        match &self.piece {
            Piece::Slice { from: 0, to: None } => {}
            Piece::Slice { from, to: None } => write!(f, "[{from}..]")?,
            Piece::Slice { from, to: Some(to) } => write!(f, "[{from}..{to}]")?,
            Piece::Split { separator, nth } => {
                f.write_str(".split(")?;
                quoted(separator, f)?;
                write!(f, ", {nth})")?;
            }
            Piece::Json(pointer) if pointer.0.is_empty() => f.write_str(".json")?,
            Piece::Json(pointer) => write!(f, ".{pointer}")?,
            Piece::MsgPack(pointer) if pointer.0.is_empty() => f.write_str(".msgpack")?,
            Piece::MsgPack(pointer) => write!(f, ".msgpack.{pointer}")?,
        }
        if self.kind == self.piece.default_kind() { Ok(()) } else { write!(f, ":{}", self.kind) }
    }
}

impl Display for FieldKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let letter = |number: Number| match number {
            Number::Unsigned => 'u',
            Number::Signed => 'i',
            Number::Float => 'f',
        };
        match *self {
            FieldKind::Bytes => f.write_str("bytes"),
            FieldKind::Text => f.write_str("text"),
            FieldKind::Lower => f.write_str("lower"),
            FieldKind::Bool => f.write_str("bool"),
            FieldKind::Number(number) => write!(f, "{}64", letter(number)),
            FieldKind::Binary { number, bytes: 1, .. } => write!(f, "{}8", letter(number)),
            FieldKind::Binary { number, bytes, little } => {
                write!(f, "{}{}{}", letter(number), u32::from(bytes) * 8, if little { "le" } else { "be" })
            }
        }
    }
}

/// In quotes if it has a character that would end it.
impl Display for Pointer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for token in &self.0 {
            text.push('/');
            for c in token.chars() {
                match c {
                    '~' => text.push_str("~0"),
                    '/' => text.push_str("~1"),
                    _ => text.push(c),
                }
            }
        }
        if text.chars().any(ends_pointer) { quoted(text.as_bytes(), f) } else { f.write_str(&text) }
    }
}

/// What a pointer without quotes cannot hold.
pub(super) fn ends_pointer(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, ',' | ':' | '\'' | '\\')
}

/// Bytes in quotes: what is readable as it is, the rest escaped.
fn quoted(bytes: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('\'')?;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => f.write_str("\\t")?,
                '\n' => f.write_str("\\n")?,
                '\\' => f.write_str("\\\\")?,
                '\'' => f.write_str("\\'")?,
                _ if c.is_control() => {
                    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                        write!(f, "\\x{byte:02x}")?;
                    }
                }
                _ => f.write_char(c)?,
            }
        }
        for byte in chunk.invalid() {
            write!(f, "\\x{byte:02x}")?;
        }
    }
    f.write_char('\'')
}
