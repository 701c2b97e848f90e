//! Many keys or values: encoded, and where they come from.

use crate::codec::Codec;
use crate::errors::wrong_argument;
use crate::numbers::Number;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};
use std::ops::Range;

/// Byte strings, one after the other.
#[derive(Default)]
pub struct Packed {
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl Packed {
    /// Adds a byte string.
    pub fn push(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
        self.ends.push(self.bytes.len());
    }

    /// Byte string `i`. REQUIRES: `i < len()`.
    pub fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }

    /// How many byte strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Encoded keys or values.
pub enum Rows {
    /// All of one width.
    Fixed {
        /// One after the other.
        bytes: Vec<u8>,
        /// How many bytes each has.
        width: usize,
    },
    /// Of any widths.
    Packed(Packed),
}

impl Rows {
    /// Row `i`. REQUIRES: there is one.
    pub fn get(&self, i: usize) -> &[u8] {
        match self {
            Rows::Fixed { bytes, width } => &bytes[i * width..(i + 1) * width],
            Rows::Packed(packed) => packed.get(i),
        }
    }

    /// The first `count` rows. REQUIRES: there are so many.
    pub fn first(&self, count: usize) -> Vec<&[u8]> {
        (0..count).map(|i| self.get(i)).collect()
    }
}

/// The numbers of a column as keys or as values. `column` has them one after the other, as memory has them.
pub fn numbers(number: Number, column: &[u8], is_key: bool) -> PyResult<Rows> {
    let width = number.width();
    if let Some(bytes) = number.column(column, is_key) {
        return Ok(Rows::Fixed { bytes, width });
    }
    let mut bytes = Vec::with_capacity(column.len());
    for native in column.chunks_exact(width) {
        let bits = number.native_bits(native);
        let short = if is_key { number.key(bits)? } else { number.value(bits) };
        bytes.extend_from_slice(short.as_ref());
    }
    Ok(Rows::Fixed { bytes, width })
}

/// A copy of a buffer with a record in each row: numbers, or byte strings of one width.
pub struct Buffer {
    /// A bytes object never changes, so it can be read while other threads run.
    bytes: Py<PyBytes>,
    rows: usize,
    width: usize,
    /// The type of the numbers, if they are some.
    number: Option<Number>,
}

impl Buffer {
    /// Copies a buffer. None if the object is no buffer, or a buffer of Python's objects.
    ///
    /// If the table's type is a number, the elements must have that type. Otherwise a row is taken as raw
    /// bytes.
    pub fn of(object: &Bound<'_, PyAny>, codec: &Codec) -> PyResult<Option<Buffer>> {
        // Each of these is one key or value, not many.
        let is_one = object.is_instance_of::<PyBytes>()
            || object.is_instance_of::<PyString>()
            || object.is_instance_of::<PyByteArray>();
        if is_one {
            return Err(wrong_argument("a sequence or a buffer of rows", object));
        }
        let Ok(view) = PyMemoryView::from(object) else { return Ok(None) };
        let format = view.getattr("format")?.extract::<String>()?;
        if format.trim_start_matches(ORDERS) == "O" {
            // Its elements are objects like those of a list.
            return Ok(None);
        }
        if has_addresses(&format) {
            return Err(PyValueError::new_err(format!(
                "a buffer of format {format:?} has addresses, not data"
            )));
        }
        let Some(&rows) = view.getattr("shape")?.extract::<Vec<usize>>()?.first() else {
            return Err(PyValueError::new_err("a buffer without dimensions is one value, and has no rows"));
        };
        let bytes = view.call_method0("tobytes")?.cast_into::<PyBytes>()?;
        let len = bytes.as_bytes().len();
        let width = len.checked_div(rows).unwrap_or(0);
        let number = match codec {
            // Without rows nothing can be wrong.
            _ if len == 0 => None,
            Codec::Number(number) => {
                expect_numbers(*number, &format, width)?;
                Some(*number)
            }
            Codec::Bytes if has_text(&format) => {
                return Err(PyValueError::new_err(format!(
                    "a buffer of format {format:?} has text of a fixed width: encode it first"
                )));
            }
            Codec::Bytes => None,
            _ => return Err(PyValueError::new_err("buffers are for tables of bytes or numbers")),
        };
        Ok(Some(Buffer { bytes: bytes.unbind(), rows: if len == 0 { 0 } else { rows }, width, number }))
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Some of the rows, encoded. REQUIRES: there are these.
    pub fn piece(&self, py: Python<'_>, rows: Range<usize>, is_key: bool) -> PyResult<Rows> {
        let column = &self.bytes.as_bytes(py)[rows.start * self.width..rows.end * self.width];
        py.detach(|| match self.number {
            Some(number) => numbers(number, column, is_key),
            None => Ok(Rows::Fixed { bytes: column.to_vec(), width: self.width }),
        })
    }
}

/// How the format of a buffer says in which order its bytes are.
const ORDERS: [char; 5] = ['@', '=', '<', '>', '!'];

/// Whether the elements of a buffer, or parts of them, are addresses of something elsewhere.
fn has_addresses(format: &str) -> bool {
    // The names of parts stand between colons.
    format.split(':').step_by(2).any(|types| {
        let mut letters = types.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                'O' | 'P' | '&' | 'X' | 'z' => return true,
                // Before a float it means a complex number, alone the address of a text.
                'Z' if !matches!(letters.peek(), Some('e' | 'f' | 'd' | 'g')) => return true,
                _ => {}
            }
        }
        false
    })
}

/// Whether parts of the elements are characters of two or four bytes.
fn has_text(format: &str) -> bool {
    format.split(':').step_by(2).any(|types| types.contains(['u', 'w']))
}

fn expect_numbers(due: Number, format: &str, width: usize) -> PyResult<()> {
    if Number::of_buffer(format, width) == Some(due) {
        return Ok(());
    }
    let due = due.name();
    Err(PyValueError::new_err(format!(
        "the buffer has rows of {width} bytes of format {format:?}, numbers of type {due} are due"
    )))
}
