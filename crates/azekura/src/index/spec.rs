//! The specification of an index.

use super::encode::{NULL, field_len, open_end, push_value};
use super::field::{Field, Form};
use super::value::IndexValue;
use crate::base::error::{Error, Result};
use crate::base::limits::KEY_BYTES_MAX;
use std::fmt::{self, Display, Formatter};

/// The most fields of an index.
pub(super) const FIELDS_MAX: usize = 16;

/// The longest text of a specification.
pub(super) const TEXT_BYTES_MAX: usize = 4096;

/// What an index is of: the fields of a record, and which records. It is a text that the file keeps.
///
/// ```
/// use azekura::IndexSpec;
///
/// let spec = IndexSpec::parse("v./user/email:lower, k[0..4] unique where present")?;
/// assert_eq!(spec.to_string(), "v./user/email:lower, k[0..4] unique where present");
/// # Ok::<(), azekura::Error>(())
/// ```
///
/// One or more fields stand between commas, then what is asked of the records. A field is a source, a piece
/// of it and a type:
///
/// ```text
/// v./user/email:lower, k[0..4] unique where present
/// │ └─ piece    └ type │ └ piece └─ options
/// └─ source            └─ source
/// ```
///
/// # Sources and pieces
///
/// The source is `k`, the key, or `v`, the value. The piece is one of these:
///
/// | piece | what it is |
/// |---|---|
/// | none | all of it |
/// | `[2..6]`, `[..6]`, `[2..]` | the bytes from the third to the sixth, up to there, from there on |
/// | `.split('\t', 2)` | the third part between tabs; parts are counted from 0 |
/// | `./user/email` | what this JSON pointer (RFC 6901) leads to in a JSON document |
/// | `.json` | the JSON document itself, if it is text, a number, `true` or `false` |
/// | `.msgpack./user/age` | the same in a MessagePack document |
/// | `.msgpack` | the MessagePack document itself |
///
/// A separator is any bytes in quotes, where `\t`, `\n`, `\\`, `\'` and `\xNN` (two hexadecimal digits) are
/// one byte each. A pointer with spaces, commas, colons, quotes or backslashes stands in quotes too:
/// `v.'/first name'`.
///
/// ```
/// use azekura::{IndexSpec, IndexValue};
///
/// fn same(spec: &str, key: &[u8], value: &[u8], expected: IndexValue<'_>) -> azekura::Result<()> {
///     let (spec, mut fields) = (IndexSpec::parse(spec)?, Vec::new());
///     assert!(spec.fields(key, value, &mut fields)?);
///     assert_eq!(fields, spec.encode(&[expected])?);
///     Ok(())
/// }
///
/// same("k", b"ada", b"", "ada".into())?;
/// same("k[1..3]", b"ada", b"", "da".into())?;
/// same("k[..2]", b"ada", b"", "ad".into())?;
/// same("k[2..5]", b"ada", b"", IndexValue::Null)?;                  // there are not so many
/// same("v[4..]:u32le", b"", b"1815\x17\x07\0\0", 1815.into())?;
/// same(r"v.split('\t', 1):u64", b"", b"ada\t1815\tLondon", 1815.into())?;
/// same("v./born/year:u64", b"", br#"{"born": {"year": 1815}}"#, 1815.into())?;
/// same("v./names/0", b"", br#"{"names": ["Ada", "Augusta"]}"#, "Ada".into())?;
/// same("v.'/first name':lower", b"", br#"{"first name": "Ada"}"#, "ada".into())?;
/// same("v.json:f64", b"", b" -1.5e3", (-1500.0).into())?;
/// same("v.msgpack./born:i64", b"", b"\x81\xa4born\xcd\x07\x17", 1815.into())?;
/// same("v.msgpack:bool", b"", b"\xc3", true.into())?;
/// # Ok::<(), azekura::Error>(())
/// ```
///
/// # Types
///
/// | type | what it is | for |
/// |---|---|---|
/// | `bytes` | bytes, in byte order. It is the default of slices and splits | all |
/// | `text` | UTF-8, in byte order, which is that of the characters. It is the default of pointers | all |
/// | `lower` | text in lower case | all |
/// | `bool` | `true` and `false`, or a document's; `IndexValue::U64(1)` and `U64(0)` | all |
/// | `u64`, `i64`, `f64` | a number in digits, or a document's | all |
/// | `u64le`, `u64be`, `i64le`, `i64be`, `f64le`, `f64be` | a number in exactly eight bytes, the lowest first or the highest | slices, splits |
/// | `u32le`, `u32be`, `i32le`, `i32be`, `f32le`, `f32be` | in four bytes | slices, splits |
/// | `u16le`, `u16be`, `i16le`, `i16be`, `u8`, `i8` | in two, in one | slices, splits |
///
/// A field is *null* if the record does not have it or has something else there: a slice that ends behind the
/// end, bytes that are no UTF-8, a number that is too large, a document that is none. Of documents these are
/// values: strings for `bytes`, `text` and `lower` (MessagePack's bytes for `bytes`), numbers for numbers. An
/// integer is one for `f64` too, rounded as in any parser; `1.0` is none for `u64`. `null`, arrays and
/// objects are null.
///
/// - Numbers in digits are what Rust's `str::parse` reads: no spaces, for `f64` also `inf` and `1e9`.
/// - `f64` has the order of numbers, from -∞ to ∞. -0.0 is 0.0, and NaN is null.
/// - `lower` maps each character as Unicode 17.0 does, whatever stands beside it, so the sigma at the end of
///   a word is that within it. It stays so when there is more of Unicode. Lookups may give any case.
/// - A document is read up to the field and no further: what follows it may be damaged. Of equal names the
///   first counts. In JSON nothing is found 128 levels deep.
///
/// # Options
///
/// `unique`: no two records have the same fields. As in SQL, a record with a null among them is not compared.
///
/// `where present`: a record with a null among its fields has no entry, so the index holds, and costs, only
/// the others.
///
/// ```
/// # use azekura::IndexSpec;
/// let (spec, mut fields) = (IndexSpec::parse("v./email unique where present")?, Vec::new());
/// assert!(!spec.fields(b"", b"{}", &mut fields)?);                  // no email, no entry
/// assert!(spec.fields(b"", br#"{"email": "ada@example.org"}"#, &mut fields)?);
/// # Ok::<(), azekura::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSpec {
    pub(super) fields: Box<[Field]>,
    pub(super) unique: bool,
    pub(super) where_present: bool,
}

impl IndexSpec {
    /// Whether no two records may have the same fields. Records with a null among them are not compared.
    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// Whether records with a null among their fields have no entry.
    pub fn is_where_present(&self) -> bool {
        self.where_present
    }

    /// How many fields there are.
    pub fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// Appends the fields of a record to `out`, as they stand in the index: of two records the smaller in the
    /// order of their fields has the smaller bytes. `false` says that the record has
    /// no entry, and nothing is appended.
    ///
    /// # Errors
    /// `TooLarge` if they are longer than a key may be. `found` counts no further than that took to see, and
    /// `out` never has more than about three times that length appended meanwhile.
    #[inline]
    pub fn fields(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let start = out.len();
        let mut too_long = None;
        for field in &self.fields {
            let at = out.len();
            field.push(key, value, out);
            if self.where_present && out[at] == NULL {
                out.truncate(start);
                return Ok(false);
            }
            if out.len() - start > KEY_BYTES_MAX {
                too_long.get_or_insert(out.len() - start);
                // The others are looked at for nulls only.
                out.truncate(start);
            }
        }
        match too_long {
            None => Ok(true),
            Some(found) => {
                out.truncate(start);
                let (found, limit) = (found as u64, KEY_BYTES_MAX as u64);
                Err(Error::TooLarge { what: "entry of an index", found, limit })
            }
        }
    }

    /// Whether encoded fields take part in uniqueness: none of them is null. Damaged ones do not.
    pub fn is_checked(&self, fields: &[u8]) -> bool {
        let mut rest = fields;
        self.fields.iter().all(|field| match field_len(field, rest) {
            Ok((len, null)) => {
                rest = &rest[len..];
                !null
            }
            Err(_) => false,
        })
    }

    /// The first fields of entries that have these values: what a lookup seeks. All entries with the values
    /// begin with it, and no others.
    ///
    /// # Errors
    /// `Invalid` if there are more values than fields, or a field cannot have its value: -1 for `u64`, NaN.
    pub fn encode(&self, values: &[IndexValue<'_>]) -> Result<Vec<u8>> {
        if values.len() > self.fields.len() {
            return Err(Error::Invalid {
                detail: format!("{} values for the {} fields of an index", values.len(), self.fields.len()),
            });
        }
        let mut out = Vec::new();
        for (field, value) in self.fields.iter().zip(values) {
            push_value(field, *value, &mut out)?;
        }
        Ok(out)
    }

    /// As [`encode`](IndexSpec::encode), but of the last value, text or bytes, only the beginning is known:
    /// all entries whose field begins so begin with this, and no others.
    ///
    /// ```
    /// let (spec, mut fields) = (azekura::IndexSpec::parse("v:lower")?, Vec::new());
    /// spec.fields(b"", b"Ada Lovelace", &mut fields)?;
    /// assert!(fields.starts_with(&spec.encode_beginning(&["ADA".into()])?));
    /// assert!(!fields.starts_with(&spec.encode(&["ADA".into()])?));
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As `encode`; `Invalid` too if there is no value, or the last is neither text nor bytes.
    pub fn encode_beginning(&self, values: &[IndexValue<'_>]) -> Result<Vec<u8>> {
        let mut out = self.encode(values)?;
        match values.len().checked_sub(1).and_then(|last| self.fields.get(last)) {
            Some(field) => open_end(field, &mut out)?,
            None => return Err(Error::Invalid { detail: "no value that entries begin with".into() }),
        }
        Ok(out)
    }

    /// The value that text stands for in the field at that place, counted from 0: digits for a number, `true`
    /// or `false` for a `bool`, the bytes themselves for others. For programs that are given values as text.
    ///
    /// ```
    /// use azekura::{IndexSpec, IndexValue};
    ///
    /// let spec = IndexSpec::parse("v./name, v./born:i64")?;
    /// assert_eq!(spec.value_of(0, b"1815")?, IndexValue::Bytes(b"1815"));
    /// assert_eq!(spec.value_of(1, b"1815")?, IndexValue::I64(1815));
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if there is no such field, or it has no such value.
    pub fn value_of<'a>(&self, place: usize, text: &'a [u8]) -> Result<IndexValue<'a>> {
        match self.fields.get(place) {
            Some(field) => field.value_of(text),
            None => Err(Error::Invalid {
                detail: format!(
                    "the index has {} fields: there is none for another value",
                    self.fields.len()
                ),
            }),
        }
    }

    /// Whether the field at that place is text or bytes. Only these have beginnings.
    pub fn is_bytes(&self, place: usize) -> bool {
        self.fields.get(place).is_some_and(|field| matches!(field.kind.form(), Form::Bytes | Form::Text))
    }

    /// How many bytes of an entry are its fields. The primary key is what follows.
    ///
    /// # Errors
    /// `Corrupt` if the bytes do not begin with such fields.
    #[inline]
    pub fn fields_len(&self, entry: &[u8]) -> Result<usize> {
        let mut at = 0;
        for field in &self.fields {
            at += field_len(field, &entry[at..])?.0;
        }
        Ok(at)
    }
}

/// The canonical text: what is the default is left out, and one space stands after commas and before options.
///
/// ```
/// let spec = azekura::IndexSpec::parse("k[..4]:bytes,v.json./a where present unique")?;
/// assert_eq!(spec.to_string(), "k[0..4], v./a unique where present");
/// # Ok::<(), azekura::Error>(())
/// ```
impl Display for IndexSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, field) in self.fields.iter().enumerate() {
            write!(f, "{}{field}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str(if self.unique { " unique" } else { "" })?;
        f.write_str(if self.where_present { " where present" } else { "" })
    }
}
