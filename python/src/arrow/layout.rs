//! The types of columns that can be read, and their values row by row.

use super::abi::{Array, Schema};
use crate::codec::{Codec, add_escaped};
use crate::numbers::Number;
use std::ffi::{CStr, c_void};

/// A type of columns.
pub enum Layout {
    /// Numbers.
    Number(Number),
    /// A bit for each.
    Bool,
    /// Bytes or text, with offsets of 32 or 64 bits.
    Bytes {
        /// Whether the offsets have 64.
        wide: bool,
    },
    /// Bytes or text, of which the short ones stand in the view.
    View,
    /// Bytes of one width.
    Fixed(usize),
    /// Several columns.
    Struct(Vec<Field>),
}

/// A part of a structure.
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub layout: Layout,
}

/// The bytes of a view: 4 of length, then 12 of text; or 4 of its beginning, the buffer and the place there.
const VIEW_BYTES: usize = 16;
const VIEW_INLINE: usize = 12;
const MISSHAPEN: &str = "an Arrow array that is not of its type";

impl Layout {
    /// The type that a schema describes.
    pub fn of(schema: &Schema) -> Result<Layout, String> {
        // SAFETY: a schema that is not released has a format, which is a C string.
        let format = unsafe { CStr::from_ptr(schema.format) }.to_string_lossy();
        if !schema.dictionary.is_null() {
            return Err("columns with a dictionary cannot be read: cast them to plain ones".to_owned());
        }
        if let Some(number) = Number::of_arrow(&format) {
            return Ok(Layout::Number(number));
        }
        match &*format {
            "b" => Ok(Layout::Bool),
            "u" | "z" => Ok(Layout::Bytes { wide: false }),
            "U" | "Z" => Ok(Layout::Bytes { wide: true }),
            "vu" | "vz" => Ok(Layout::View),
            "+s" => fields_of(schema).map(Layout::Struct),
            other => match other.strip_prefix("w:").and_then(|width| width.parse().ok()) {
                Some(width) => Ok(Layout::Fixed(width)),
                None => Err(format!("columns of Arrow's type {other:?} cannot be read")),
            },
        }
    }

    fn buffers_min(&self) -> i64 {
        match self {
            Layout::Number(_) | Layout::Bool | Layout::View | Layout::Fixed(_) => 2,
            Layout::Bytes { .. } => 3,
            Layout::Struct(_) => 1,
        }
    }
}

fn count_of(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn fields_of(schema: &Schema) -> Result<Vec<Field>, String> {
    (0..count_of(schema.n_children))
        .map(|i| {
            // SAFETY: a schema has `n_children` children, none of them null.
            let child = unsafe { &**schema.children.add(i) };
            let name = match child.name.is_null() {
                true => String::new(),
                // SAFETY: a name that is not null is a C string.
                false => unsafe { CStr::from_ptr(child.name) }.to_string_lossy().into_owned(),
            };
            Ok(Field { name, layout: Layout::of(child)? })
        })
        .collect()
}

/// A column of a batch.
#[derive(Clone, Copy)]
pub struct Column<'a> {
    layout: &'a Layout,
    array: &'a Array,
    /// Where its first row is in the buffers.
    start: usize,
    rows: usize,
}

impl<'a> Column<'a> {
    /// The column of an array. It has what its type needs.
    pub fn of(layout: &'a Layout, array: &'a Array) -> Result<Column<'a>, String> {
        let (start, rows) = (count_of(array.offset), count_of(array.length));
        Column::part(layout, array, start, rows)
    }

    fn part(layout: &'a Layout, array: &'a Array, start: usize, rows: usize) -> Result<Column<'a>, String> {
        let there = count_of(array.offset).checked_add(count_of(array.length));
        let due = start.checked_add(rows);
        // A sum that overflows is None, which is less than any length.
        if array.n_buffers < layout.buffers_min() || due.is_none() || due > there {
            return Err(MISSHAPEN.to_owned());
        }
        Ok(Column { layout, array, start, rows })
    }

    /// Fails if a row is null. A part of a structure may be. All rows are looked at, so this is for arrays
    /// when they arrive.
    pub fn expect_rows(&self) -> Result<(), String> {
        let validity = self.buffer(0);
        if self.array.null_count == 0 || validity.is_null() {
            return Ok(());
        }
        // SAFETY: the buffer of validity has a bit for each row.
        match (0..self.rows).find(|row| !unsafe { bit(validity, self.start + row) }) {
            Some(row) => Err(format!("row {row} is null, which no key or value can be")),
            None => Ok(()),
        }
    }

    /// Whether a row is null. REQUIRES: there is such a row.
    pub fn is_null(&self, row: usize) -> bool {
        let validity = self.buffer(0);
        // SAFETY: the buffer of validity has a bit for each row.
        self.array.null_count != 0 && !validity.is_null() && !unsafe { bit(validity, self.start + row) }
    }

    /// Fails if a row, or a part of one, is null.
    pub fn expect_whole(&self) -> Result<(), String> {
        self.expect_rows()?;
        let Layout::Struct(fields) = self.layout else { return Ok(()) };
        (0..fields.len()).try_for_each(|i| self.child(i)?.expect_whole())
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Its type.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Part `i` of a structure.
    pub fn child(&self, i: usize) -> Result<Column<'a>, String> {
        let Layout::Struct(fields) = self.layout else { return Err("a column without parts".to_owned()) };
        if count_of(self.array.n_children) != fields.len() {
            return Err(MISSHAPEN.to_owned());
        }
        // SAFETY: an array has `n_children` children, none of them null, and lives as long as its parent.
        let array = unsafe { &**self.array.children.add(i) };
        // A structure's rows are those of its parts at the same places, behind their own offset.
        let start = count_of(array.offset).checked_add(self.start).ok_or(MISSHAPEN)?;
        Column::part(&fields[i].layout, array, start, self.rows)
    }

    /// Buffer `i`. REQUIRES: `i < n_buffers`.
    fn buffer(&self, i: usize) -> *const c_void {
        // SAFETY: there are `n_buffers` buffers, more than `i`.
        unsafe { *self.array.buffers.add(i) }
    }

    /// The bytes of rows from `from` on, in a buffer with `width` bytes for each. REQUIRES: there are these.
    pub fn plain(&self, from: usize, rows: usize, width: usize) -> &'a [u8] {
        let buffer = self.buffer(1).cast::<u8>();
        if rows * width == 0 || buffer.is_null() {
            return &[];
        }
        // SAFETY: the buffer has `width` bytes for each row up to the array's end, as its type says.
        unsafe { std::slice::from_raw_parts(buffer.add((self.start + from) * width), rows * width) }
    }

    /// A row of a column of bools.
    pub fn truth(&self, row: usize) -> bool {
        // SAFETY: the buffer has a bit for each row.
        unsafe { bit(self.buffer(1), self.start + row) }
    }

    /// A row of a column of bytes or text. REQUIRES: the row and the type.
    pub fn bytes(&self, row: usize) -> Result<&'a [u8], String> {
        match self.layout {
            Layout::Fixed(width) => Ok(self.plain(row, 1, *width)),
            Layout::View => self.view(row),
            _ => self.between_offsets(row),
        }
    }

    fn between_offsets(&self, row: usize) -> Result<&'a [u8], String> {
        let wide = matches!(self.layout, Layout::Bytes { wide: true });
        let at = |i: usize| -> i64 {
            let offsets = self.buffer(1);
            if wide {
                // SAFETY: there is an offset of 64 bits for each row, and one more.
                unsafe { offsets.cast::<i64>().add(self.start + i).read_unaligned() }
            } else {
                // SAFETY: there is an offset of 32 bits for each row, and one more.
                i64::from(unsafe { offsets.cast::<i32>().add(self.start + i).read_unaligned() })
            }
        };
        let (from, to) = (usize::try_from(at(row)), usize::try_from(at(row + 1)));
        let (Ok(from), Ok(to)) = (from, to) else {
            return Err("an Arrow array with wrong offsets".to_owned());
        };
        let len = to.checked_sub(from).ok_or("an Arrow array with wrong offsets")?;
        Ok(slice(self.buffer(2), from, len))
    }

    fn view(&self, row: usize) -> Result<&'a [u8], String> {
        let view = self.plain(row, 1, VIEW_BYTES);
        let number = |at: usize| {
            let four = view.get(at..at + 4).and_then(|four| four.try_into().ok());
            four.map(i32::from_ne_bytes).and_then(|number| usize::try_from(number).ok())
        };
        let wrong = || "an Arrow array with a wrong view".to_owned();
        let len = number(0).ok_or_else(wrong)?;
        if len <= VIEW_INLINE {
            return Ok(&view[4..4 + len]);
        }
        let (buffer, at) = (number(8).ok_or_else(wrong)?, number(12).ok_or_else(wrong)?);
        // Two buffers come before those with data. A last one has their lengths.
        if buffer + 3 >= count_of(self.array.n_buffers) {
            return Err(wrong());
        }
        Ok(slice(self.buffer(buffer + 2), at, len))
    }

    /// Adds a row as a part of a tuple, which `codec` is.
    pub fn push_part(&self, codec: &Codec, row: usize, key: &mut Vec<u8>) -> Result<(), String> {
        match (codec, self.layout) {
            (Codec::Tuple(parts), Layout::Struct(fields)) if parts.len() == fields.len() => {
                for (i, part) in parts.iter().enumerate() {
                    self.child(i)?.push_part(part, row, key)?;
                }
            }
            (Codec::Number(due), Layout::Number(found)) if due == found => {
                let bits = due.native_bits(self.plain(row, 1, due.width()));
                key.extend_from_slice(due.key(bits).map_err(|error| error.to_string())?.as_ref());
            }
            (Codec::Bool, Layout::Bool) => key.push(u8::from(self.truth(row))),
            (Codec::Str, Layout::Bytes { .. } | Layout::View) => {
                let text = std::str::from_utf8(self.bytes(row)?).map_err(|error| error.to_string())?;
                add_escaped(text.as_bytes(), key);
            }
            (Codec::Bytes, Layout::Bytes { .. } | Layout::View | Layout::Fixed(_)) => {
                add_escaped(self.bytes(row)?, key);
            }
            _ => return Err(self.misfit(codec)),
        }
        Ok(())
    }

    /// The error for a column that has another type than the table.
    pub fn misfit(&self, codec: &Codec) -> String {
        let found = match self.layout {
            Layout::Number(number) => number.name(),
            Layout::Bool => "bool".to_owned(),
            Layout::Bytes { .. } | Layout::View | Layout::Fixed(_) => "bytes or text".to_owned(),
            Layout::Struct(fields) => format!("a structure of {} parts", fields.len()),
        };
        format!("the Arrow column has {found}, and the table {}", codec.name())
    }
}

/// A bit of a buffer.
///
/// # Safety
/// The buffer must have so many.
unsafe fn bit(buffer: *const c_void, at: usize) -> bool {
    // SAFETY: the caller has looked.
    unsafe { *buffer.cast::<u8>().add(at / 8) >> (at % 8) & 1 == 1 }
}

/// Bytes of a buffer of data. Only the array's offsets tell its length.
fn slice<'a>(buffer: *const c_void, from: usize, len: usize) -> &'a [u8] {
    if len == 0 || buffer.is_null() {
        return &[];
    }
    // SAFETY: offsets and views point into their buffer, which lives as long as the array.
    unsafe { std::slice::from_raw_parts(buffer.cast::<u8>().add(from), len) }
}
