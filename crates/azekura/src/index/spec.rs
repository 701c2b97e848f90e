//! The specification of an index.

use super::encode::{field_len, open_end, push_value};
use super::field::Field;
use super::parse::parse;
use super::value::IndexValue;
use crate::base::error::{Error, Result};
use crate::base::limits::KEY_BYTES_MAX;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// The most fields of an index.
pub(super) const FIELDS_MAX: usize = 16;

/// The longest text of a specification.
pub(super) const TEXT_BYTES_MAX: usize = 4096;

/// Specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSpec {
    pub(super) fields: Box<[Field]>,
    pub(super) unique: bool,
    pub(super) where_present: bool,
}

impl IndexSpec {
    /// Reads the text of a specification.
    ///
    /// # Errors
    /// `Invalid` says what is wrong and at which column; `TooLarge` if the text has more than 4,096 bytes.
    pub fn parse(text: &str) -> Result<IndexSpec> {
        parse(text)
    }

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

    /// Appends the fields of a record to `out`, as they stand in the index. `false` says that the record has
    /// no entry, and nothing is appended.
    ///
    /// # Errors
    /// `TooLarge` if they are longer than a key may be.
    #[inline]
    pub fn fields(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let start = out.len();
        for field in &self.fields {
            let at = out.len();
            field.push(key, value, out);
            if self.where_present && out[at] == super::encode::NULL {
                out.truncate(start);
                return Ok(false);
            }
        }
        if out.len() - start > KEY_BYTES_MAX {
            let found = (out.len() - start) as u64;
            out.truncate(start);
            return Err(Error::TooLarge { what: "entry of an index", found, limit: KEY_BYTES_MAX as u64 });
        }
        Ok(true)
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
    /// `Invalid` if there are more values than fields, or a field cannot have its value.
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

/// The canonical text.
impl Display for IndexSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, field) in self.fields.iter().enumerate() {
            write!(f, "{}{field}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str(if self.unique { " unique" } else { "" })?;
        f.write_str(if self.where_present { " where present" } else { "" })
    }
}

impl FromStr for IndexSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<IndexSpec> {
        parse(text)
    }
}
