//! The columns of a set, and batches of them as encoded records.

use crate::arrow::layout::{Column, Layout};
use crate::arrow::read::encode;
use crate::codec::Codec;
use crate::errors::of_engine;
use crate::numbers::Number;
use crate::rows::{Packed, Rows};
use azekura_shards::{ColumnType, RowForm, Spec};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ops::Range;

/// How many rows are encoded before they are used.
pub const ROWS_AT_ONCE: usize = 16 << 10;

/// The codec of a column by itself.
pub fn codec_of(of: ColumnType) -> Codec {
    use ColumnType::*;
    let name = match of {
        Bool => return Codec::Bool,
        Str => return Codec::Str,
        Bytes => return Codec::Bytes,
        I8 => "i8",
        I16 => "i16",
        I32 | Date => "i32",
        I64 | Timestamp | TimestampNtz => "i64",
        U8 => "u8",
        U16 => "u16",
        U32 => "u32",
        U64 => "u64",
        F32 => "f32",
        F64 => "f64",
    };
    Number::named(name).map_or(Codec::Bytes, Codec::Number)
}

/// How records of a set are encoded.
pub struct Form {
    /// The codec of whole keys.
    pub key: Codec,
    /// Those of the parts of keys.
    pub key_parts: Vec<Codec>,
    /// Those of the columns of values.
    pub values: Vec<Codec>,
    /// Several columns of values as bytes.
    pub row: RowForm,
    /// All names: those of the key's parts, then those of the values.
    pub names: Vec<String>,
    /// Their types.
    pub types: Vec<ColumnType>,
}

fn wrong(detail: String) -> PyErr {
    PyValueError::new_err(detail)
}

impl Form {
    /// The form of a set's records.
    pub fn of(spec: &Spec) -> Form {
        let codecs = |columns: &[azekura_shards::Column]| -> Vec<Codec> {
            columns.iter().map(|column| codec_of(column.of)).collect()
        };
        let (key_parts, values) = (codecs(&spec.key), codecs(&spec.value));
        let key = match &*key_parts {
            [one] => one.clone(),
            several => Codec::Tuple(several.to_vec()),
        };
        let columns = || spec.key.iter().chain(&spec.value);
        Form {
            key,
            key_parts,
            values,
            row: RowForm::of(&spec.value),
            names: columns().map(|column| column.name.clone()).collect(),
            types: columns().map(|column| column.of).collect(),
        }
    }

    /// Where columns of these names are in batches of this type.
    pub fn places(layout: &Layout, names: &[String]) -> PyResult<Vec<usize>> {
        let Layout::Struct(fields) = layout else {
            return Err(PyTypeError::new_err("a table of Arrow data is due, not one column"));
        };
        let place = |name: &String| {
            let found = fields.iter().position(|field| field.name == *name);
            found.ok_or_else(|| wrong(format!("there is no column {name:?}")))
        };
        names.iter().map(place).collect()
    }

    /// Encodes rows of all columns: calls `put` with keys, values, and how many there are, until all rows are
    /// through.
    pub fn encode(
        &self,
        columns: &[Column<'_>],
        rows: usize,
        mut put: impl FnMut(&Rows, &Rows, usize) -> PyResult<()>,
    ) -> PyResult<()> {
        let (keys, values) = columns.split_at(self.key_parts.len());
        for column in keys {
            column.expect_rows().map_err(wrong)?;
        }
        let mut from = 0;
        while from < rows {
            let piece = from..rows.min(from + ROWS_AT_ONCE);
            self.expect_keys(keys, piece.clone())?;
            let (keys, some) = self.keys(keys, piece.clone())?;
            let (values, others) = self.rows(values, piece)?;
            let count = some.min(others);
            put(&keys, &values, count)?;
            from += count;
        }
        Ok(())
    }

    /// The keys of some rows. Returns how many these are, at least one.
    pub fn keys(&self, columns: &[Column<'_>], rows: Range<usize>) -> PyResult<(Rows, usize)> {
        if let [column] = columns {
            return encode(*column, &self.key, rows, true);
        }
        let (count, mut packed, mut key) = (rows.len(), Packed::default(), Vec::new());
        for row in rows {
            key.clear();
            for (column, codec) in columns.iter().zip(&self.key_parts) {
                column.push_part(codec, row, &mut key).map_err(wrong)?;
            }
            packed.push(&key);
        }
        Ok((Rows::Packed(packed), count))
    }

    /// Whether a part of a row's key is NaN.
    pub fn has_nan(&self, columns: &[Column<'_>], row: usize) -> bool {
        columns.iter().any(|column| is_nan(column, row))
    }

    /// Fails if a part of a key is NaN.
    pub fn expect_keys(&self, columns: &[Column<'_>], rows: Range<usize>) -> PyResult<()> {
        for (column, name) in columns.iter().zip(&self.names) {
            if let Some(row) = rows.clone().find(|&row| is_nan(column, row)) {
                return Err(wrong(format!("column {name:?} is NaN in row {row}, which is no key")));
            }
        }
        Ok(())
    }

    /// As `keys`, but a row whose key is NaN has any key.
    pub fn keys_or_any(&self, columns: &[Column<'_>], rows: Range<usize>) -> PyResult<(Rows, usize)> {
        if !rows.clone().any(|row| self.has_nan(columns, row)) {
            return self.keys(columns, rows);
        }
        let (count, mut packed) = (rows.len(), Packed::default());
        for row in rows {
            match self.has_nan(columns, row) {
                true => packed.push(&[]),
                false => packed.push(self.keys(columns, row..row + 1)?.0.get(0)),
            }
        }
        Ok((Rows::Packed(packed), count))
    }

    /// The values of some rows. Returns how many these are, at least one.
    pub fn rows(&self, columns: &[Column<'_>], rows: Range<usize>) -> PyResult<(Rows, usize)> {
        let any_null = columns.iter().any(|column| rows.clone().any(|row| column.is_null(row)));
        if let ([column], false) = (columns, any_null)
            && (self.row.is_plain() || matches!(column.layout(), Layout::Number(_)))
        {
            return encode(*column, &self.values[0], rows, false);
        }
        let numbers = columns.iter().all(|column| matches!(column.layout(), Layout::Number(_)));
        if numbers && !any_null && !columns.is_empty() && cfg!(target_endian = "little") {
            return self.side_by_side(columns, rows);
        }
        self.one_by_one(columns, rows)
    }

    /// Rows of numbers without nulls: their bytes side by side.
    fn side_by_side(&self, columns: &[Column<'_>], rows: Range<usize>) -> PyResult<(Rows, usize)> {
        let mut widths = Vec::new();
        for (column, codec) in columns.iter().zip(&self.values) {
            match (codec, column.layout()) {
                (Codec::Number(due), Layout::Number(found)) if due == found => widths.push(due.width()),
                _ => return Err(wrong(column.misfit(codec))),
            }
        }
        let width: usize = widths.iter().sum();
        let mut bytes = vec![0; width * rows.len()];
        let mut at = 0;
        for (column, own) in columns.iter().zip(widths) {
            let from = column.plain(rows.start, rows.len(), own);
            for (row, value) in bytes.chunks_exact_mut(width).zip(from.chunks_exact(own)) {
                row[at..at + own].copy_from_slice(value);
            }
            at += own;
        }
        Ok((Rows::Fixed { bytes, width }, rows.len()))
    }

    fn one_by_one(&self, columns: &[Column<'_>], rows: Range<usize>) -> PyResult<(Rows, usize)> {
        let (count, mut packed, mut bytes) = (rows.len(), Packed::default(), Vec::new());
        let mut cells = Vec::with_capacity(columns.len());
        for row in rows {
            cells.clear();
            for (column, codec) in columns.iter().zip(&self.values) {
                cells.push(if column.is_null(row) { None } else { Some(cell(column, codec, row)?) });
            }
            bytes.clear();
            self.row.encode(&cells, &mut bytes).map_err(wrong)?;
            packed.push(&bytes);
        }
        Ok((Rows::Packed(packed), count))
    }
}

fn is_nan(column: &Column<'_>, row: usize) -> bool {
    match column.layout() {
        Layout::Number(number) if number.is_float() => {
            number.is_nan(number.native_bits(column.plain(row, 1, number.width())))
        }
        _ => false,
    }
}

/// A value of a column as a row has it.
fn cell<'a>(column: &Column<'a>, codec: &Codec, row: usize) -> PyResult<&'a [u8]> {
    match (codec, column.layout()) {
        (Codec::Number(due), Layout::Number(found)) if due == found && cfg!(target_endian = "little") => {
            Ok(column.plain(row, 1, due.width()))
        }
        (Codec::Bool, Layout::Bool) => Ok(if column.truth(row) { &[1] } else { &[0] }),
        (Codec::Str, Layout::Bytes { .. } | Layout::View) => {
            let bytes = column.bytes(row).map_err(wrong)?;
            std::str::from_utf8(bytes).map_err(|error| wrong(format!("row {row} is no text: {error}")))?;
            Ok(bytes)
        }
        (Codec::Bytes, Layout::Bytes { .. } | Layout::View | Layout::Fixed(_)) => {
            column.bytes(row).map_err(wrong)
        }
        _ => Err(wrong(column.misfit(codec))),
    }
}

/// What a set is, from the text that describes it.
pub fn spec_of(text: &str) -> PyResult<Spec> {
    serde_json::from_str(text).map_err(|error| wrong(format!("what a set is: {error}")))
}

/// Anything that can be said as JSON, as text.
pub fn text_of(thing: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(thing).map_err(|error| wrong(error.to_string()))
}

/// The outcome of a call of the crate.
pub fn raised<T>(outcome: azekura::Result<T>) -> PyResult<T> {
    outcome.map_err(|error| of_engine(&error))
}
