//! Batches of other libraries, as encoded keys and values.

use super::abi::{ARRAY, Array, SCHEMA, STREAM, Schema, Stream, taken};
use super::layout::{Column, Field, Layout};
use crate::codec::Codec;
use crate::rows::{Packed, Rows, numbers};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ops::Range;

/// Bytes and texts are encoded until they have so many, however few rows that are.
const PIECE_BYTES: usize = 4 << 20;

/// Batches, one after the other, all of one type.
pub struct Batches {
    /// Their type.
    pub layout: Layout,
    from: From,
}

enum From {
    Stream(Stream),
    One(Option<Array>),
}

fn wrong(detail: String) -> PyErr {
    PyValueError::new_err(detail)
}

impl Batches {
    /// The batches of an object. None if it gives no Arrow data.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Batches>> {
        let py = object.py();
        if object.hasattr("__arrow_c_stream__")? {
            let mut stream: Stream = taken(&object.call_method0("__arrow_c_stream__")?, STREAM)?;
            let schema = py.detach(|| stream.schema()).map_err(wrong)?;
            let layout = Layout::of(&schema).map_err(wrong)?;
            return Ok(Some(Batches { layout, from: From::Stream(stream) }));
        }
        if object.hasattr("__arrow_c_array__")? {
            let capsules: (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                object.call_method0("__arrow_c_array__")?.extract()?;
            let schema: Schema = taken(&capsules.0, SCHEMA)?;
            let array = taken(&capsules.1, ARRAY)?;
            let layout = Layout::of(&schema).map_err(wrong)?;
            return Ok(Some(Batches { layout, from: From::One(Some(array)) }));
        }
        Ok(None)
    }

    /// The next batch. None at the end.
    pub fn next(&mut self, py: Python<'_>) -> PyResult<Option<Array>> {
        match &mut self.from {
            // Whoever gives them may need the interpreter for it.
            From::Stream(stream) => py.detach(|| stream.next()).map_err(wrong),
            From::One(array) => Ok(array.take()),
        }
    }
}

/// Encodes rows of a column from `rows.start` on, until `rows.end` or until they have many bytes. Also
/// returns how many rows these are, at least one.
pub fn encode(
    column: Column<'_>,
    codec: &Codec,
    rows: Range<usize>,
    is_key: bool,
) -> PyResult<(Rows, usize)> {
    let count = rows.len();
    match (codec, column.layout()) {
        (Codec::Number(due), Layout::Number(found)) if due == found => {
            let plain = column.plain(rows.start, count, due.width());
            return Ok((numbers(*due, plain, is_key)?, count));
        }
        (Codec::Bool, Layout::Bool) => {
            let bytes = rows.map(|row| u8::from(column.truth(row))).collect();
            return Ok((Rows::Fixed { bytes, width: 1 }, count));
        }
        (Codec::Bytes, Layout::Fixed(width)) if *width > 0 => {
            let bytes = column.plain(rows.start, count, *width).to_vec();
            return Ok((Rows::Fixed { bytes, width: *width }, count));
        }
        _ => {}
    }
    let (mut packed, mut part) = (Packed::default(), Vec::new());
    for row in rows {
        match (codec, column.layout()) {
            (Codec::Tuple(_), Layout::Struct(_)) => {
                part.clear();
                column.push_part(codec, row, &mut part).map_err(wrong)?;
                packed.push(&part);
            }
            (Codec::Str | Codec::Json, Layout::Bytes { .. } | Layout::View) => {
                let text = std::str::from_utf8(column.bytes(row).map_err(wrong)?);
                packed
                    .push(text.map_err(|error| wrong(format!("row {row} is no text: {error}")))?.as_bytes());
            }
            (Codec::Bytes | Codec::Pickle, Layout::Bytes { .. } | Layout::View | Layout::Fixed(_)) => {
                packed.push(column.bytes(row).map_err(wrong)?);
            }
            _ => return Err(wrong(column.misfit(codec))),
        }
        if packed.bytes() >= PIECE_BYTES {
            break;
        }
    }
    let count = packed.len();
    Ok((Rows::Packed(packed), count))
}

/// Keys or values: all batches of one column.
pub struct ArrowColumn {
    layout: Layout,
    arrays: Vec<Array>,
    /// How many rows come before each array, and behind the last.
    starts: Vec<usize>,
    codec: Codec,
}

impl ArrowColumn {
    /// The column of an object. None if it gives no Arrow data.
    pub fn of(object: &Bound<'_, PyAny>, codec: &Codec) -> PyResult<Option<ArrowColumn>> {
        let Some(mut batches) = Batches::of(object)? else { return Ok(None) };
        let (mut arrays, mut starts) = (Vec::new(), vec![0_usize]);
        while let Some(array) = batches.next(object.py())? {
            let rows = object.py().detach(|| {
                let column = Column::of(&batches.layout, &array)?;
                column.expect_whole().map(|()| column.rows())
            });
            let end = starts[arrays.len()].checked_add(rows.map_err(wrong)?);
            starts.push(end.ok_or_else(|| wrong("more rows than there can be".to_owned()))?);
            arrays.push(array);
        }
        Ok(Some(ArrowColumn { layout: batches.layout, arrays, starts, codec: codec.clone() }))
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.starts[self.arrays.len()]
    }

    /// Rows from `rows.start` on, encoded, and how many there are: all of `rows`, or fewer. REQUIRES: there
    /// are such rows.
    pub fn piece(&self, py: Python<'_>, rows: Range<usize>, is_key: bool) -> PyResult<(Rows, usize)> {
        let i = self.starts.partition_point(|&start| start <= rows.start) - 1;
        let (start, end) = (self.starts[i], self.starts[i + 1]);
        py.detach(|| {
            let column = Column::of(&self.layout, &self.arrays[i]).map_err(wrong)?;
            encode(column, &self.codec, rows.start - start..rows.end.min(end) - start, is_key)
        })
    }
}

/// Fails if a row of a batch, or its key or value, is null. Other columns may have nulls.
fn expect_whole(layout: &Layout, places: (usize, usize), array: &Array) -> Result<(), String> {
    let batch = Column::of(layout, array)?;
    batch.expect_rows()?;
    batch.child(places.0)?.expect_whole()?;
    batch.child(places.1)?.expect_whole()
}

/// What the columns of keys and values are called.
#[derive(Default)]
pub struct Names<'a> {
    /// If it was given. Else it is "key".
    pub key: Option<&'a str>,
    /// If it was given. Else it is "value".
    pub value: Option<&'a str>,
}

impl Names<'_> {
    /// Where the two columns are.
    fn places(&self, fields: &[Field]) -> Result<(usize, usize), String> {
        let there = || fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ");
        let place = |said: Option<&str>, usual: &str| {
            let found = fields.iter().position(|field| field.name == said.unwrap_or(usual));
            match said {
                Some(name) if found.is_none() => Err(format!("there is no column {name:?}, but {}", there())),
                _ => Ok(found),
            }
        };
        match (place(self.key, "key")?, place(self.value, "value")?, fields.len()) {
            (Some(key), Some(value), _) => Ok((key, value)),
            (Some(key), None, 2) => Ok((key, 1 - key)),
            (None, Some(value), 2) => Ok((1 - value, value)),
            (None, None, 2) => Ok((0, 1)),
            _ => Err(format!("which columns are the key and the value? There are {}", there())),
        }
    }
}

/// Batches of two columns, keys and values.
pub struct Pairs {
    batches: Batches,
    /// Where the two columns are.
    places: (usize, usize),
}

impl Pairs {
    /// The keys and values of an object: its columns of these names, or the only two that it has. None if it
    /// gives no Arrow data.
    pub fn of(object: &Bound<'_, PyAny>, names: &Names<'_>) -> PyResult<Option<Pairs>> {
        let Some(batches) = Batches::of(object)? else { return Ok(None) };
        let Layout::Struct(fields) = &batches.layout else {
            return Err(wrong(
                "a table with keys and values is due, or two columns of Arrow data".to_owned(),
            ));
        };
        let places = names.places(fields).map_err(wrong)?;
        Ok(Some(Pairs { batches, places }))
    }

    /// Passes all keys and values to `put`, some thousand at a time: the rows, and how many.
    pub fn each(
        mut self,
        py: Python<'_>,
        (key_codec, value_codec): (&Codec, &Codec),
        at_once: usize,
        mut put: impl FnMut(&Rows, &Rows, usize) -> PyResult<()>,
    ) -> PyResult<()> {
        while let Some(array) = self.batches.next(py)? {
            py.detach(|| expect_whole(&self.batches.layout, self.places, &array)).map_err(wrong)?;
            let mut from = 0;
            loop {
                let done = py.detach(|| {
                    let batch = Column::of(&self.batches.layout, &array).map_err(wrong)?;
                    let (keys, values) = (batch.child(self.places.0), batch.child(self.places.1));
                    let rows = from..(from + at_once).min(batch.rows());
                    if rows.is_empty() {
                        return Ok(None);
                    }
                    let keys = encode(keys.map_err(wrong)?, key_codec, rows.clone(), true)?;
                    let values = encode(values.map_err(wrong)?, value_codec, rows, false)?;
                    Ok::<_, PyErr>(Some((keys, values)))
                })?;
                let Some(((keys, some), (values, others))) = done else { break };
                let count = some.min(others);
                put(&keys, &values, count)?;
                from += count;
            }
        }
        Ok(())
    }
}
