//! Records as batches of the columns that are wanted.

use super::form::{Form, codec_of};
use crate::arrow::abi::{Array, Schema};
use crate::arrow::write::{Buffer, array, array_with_nulls, schema};
use crate::codec::{Codec, unescaped};
use azekura_shards::ColumnType;

/// A column under construction.
struct Builder {
    of: ColumnType,
    codec: Codec,
    data: Vec<u8>,
    /// Where values of no fixed width end.
    offsets: Vec<i32>,
    /// The bits of rows that are not null.
    validity: Vec<u8>,
    nulls: i64,
    rows: usize,
}

impl Builder {
    fn of(of: ColumnType) -> Builder {
        let (codec, offsets) = (codec_of(of), vec![0]);
        Builder { of, codec, data: Vec::new(), offsets, validity: Vec::new(), nulls: 0, rows: 0 }
    }

    fn mark(&mut self, is_there: bool) {
        if self.rows.is_multiple_of(8) {
            self.validity.push(0);
        }
        let at = self.rows / 8;
        self.validity[at] |= u8::from(is_there) << (self.rows % 8);
        self.rows += 1;
    }

    fn push_null(&mut self) {
        match self.of.width() {
            // A bit for each, which comes with its byte.
            Some(_) if self.codec == Codec::Bool => self.push_bit(0),
            Some(width) => self.data.resize(self.data.len() + width, 0),
            None => self.offsets.push(self.offsets[self.rows]),
        }
        self.nulls += 1;
        self.mark(false);
    }

    fn push_bit(&mut self, bit: u8) {
        if self.rows.is_multiple_of(8) {
            self.data.push(0);
        }
        let at = self.rows / 8;
        self.data[at] |= bit << (self.rows % 8);
    }

    /// Adds the value of a row's cell. None if it is not of the type.
    fn push_cell(&mut self, cell: &[u8]) -> Option<()> {
        match &self.codec {
            Codec::Number(number) => number.push_native(number.value_bits(cell)?, &mut self.data),
            Codec::Bool => match cell {
                [bit @ (0 | 1)] => self.push_bit(*bit),
                _ => return None,
            },
            _ => return self.push_bytes(cell),
        }
        self.mark(true);
        Some(())
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> Option<()> {
        if self.codec == Codec::Str && std::str::from_utf8(bytes).is_err() {
            return None;
        }
        self.data.extend_from_slice(bytes);
        self.offsets.push(i32::try_from(self.data.len()).ok()?);
        self.mark(true);
        Some(())
    }

    /// Adds the first part of a key. `rest` becomes what follows it.
    fn push_part(&mut self, rest: &mut &[u8]) -> Option<()> {
        match &self.codec {
            Codec::Number(number) => {
                let (bits, after) = number.take_key(rest)?;
                number.push_native(bits, &mut self.data);
                *rest = after;
                self.mark(true);
                Some(())
            }
            Codec::Bool => {
                let (bit, after) = rest.split_first()?;
                *rest = after;
                self.push_cell(std::slice::from_ref(bit))
            }
            _ => {
                let (bytes, after) = unescaped(rest)?;
                *rest = after;
                self.push_bytes(&bytes)
            }
        }
    }

    fn format(&self) -> &'static str {
        match (self.of, &self.codec) {
            (ColumnType::Date, _) => "tdD",
            (ColumnType::Timestamp, _) => "tsu:UTC",
            (ColumnType::TimestampNtz, _) => "tsu:",
            (_, Codec::Number(number)) => number.arrow_format(),
            (_, Codec::Bool) => "b",
            (_, Codec::Str) => "u",
            _ => "z",
        }
    }

    fn finish(self) -> Array {
        let validity = (self.nulls > 0).then_some((self.validity, self.nulls));
        let buffers = match self.of.width() {
            Some(_) => vec![Buffer::Bytes(self.data)],
            None => vec![Buffer::ShortOffsets(self.offsets), Buffer::Bytes(self.data)],
        };
        array_with_nulls(self.rows, validity, buffers, Vec::new())
    }
}

/// A batch under construction: columns of keys, then of values.
pub struct Batch<'f> {
    form: &'f Form,
    /// For each part of the key, and then for each column of the values, its builder if it is wanted.
    builders: Vec<Option<Builder>>,
    /// In which order they are wanted.
    wanted: Vec<usize>,
    /// Whether each row was found; for lookups.
    found: Option<Builder>,
    rows: usize,
    bytes: usize,
}

impl<'f> Batch<'f> {
    /// A batch of these columns.
    pub fn of(form: &'f Form, wanted: &[usize], with_found: bool) -> Batch<'f> {
        let builder = |i: usize| wanted.contains(&i).then(|| Builder::of(form.types[i]));
        let builders = (0..form.types.len()).map(builder).collect();
        let found = with_found.then(|| Builder::of(ColumnType::Bool));
        Batch { form, builders, wanted: wanted.to_vec(), found, rows: 0, bytes: 0 }
    }

    /// How many rows and bytes it has.
    pub fn size(&self) -> (usize, usize) {
        (self.rows, self.bytes)
    }

    /// Adds a record. None if it is not of the types.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        self.push_key(key)?;
        self.push_value(Some(value))
    }

    fn push_key(&mut self, key: &[u8]) -> Option<()> {
        let parts = self.form.key_parts.len();
        if self.builders[..parts].iter().all(Option::is_none) {
            return Some(());
        }
        self.bytes += key.len();
        if let ([Some(one)], Codec::Str | Codec::Bytes) = (&mut self.builders[..parts], &self.form.key) {
            return one.push_bytes(key);
        }
        let mut rest = key;
        for (i, builder) in self.builders[..parts].iter_mut().enumerate() {
            match builder {
                Some(builder) => builder.push_part(&mut rest)?,
                None => Builder::of(self.form.types[i]).push_part(&mut rest)?,
            }
        }
        rest.is_empty().then_some(())
    }

    /// Adds a value, or nulls where none was found. None if it is not of the types.
    pub fn push_value(&mut self, value: Option<&[u8]>) -> Option<()> {
        self.rows += 1;
        if let Some(found) = &mut self.found {
            found.push_cell(&[u8::from(value.is_some())])?;
        }
        let parts = self.form.key_parts.len();
        if self.builders[parts..].iter().all(Option::is_none) {
            return Some(());
        }
        let builders = &mut self.builders[parts..];
        let Some(value) = value else {
            builders.iter_mut().flatten().for_each(Builder::push_null);
            return Some(());
        };
        self.bytes += value.len();
        self.form.row.decode(value, |i, cell| match (&mut builders[i], cell) {
            (Some(builder), Some(cell)) => builder.push_cell(cell),
            (Some(builder), None) => {
                builder.push_null();
                Some(())
            }
            (None, _) => Some(()),
        })
    }

    /// The type of its columns.
    pub fn schema(&self) -> Schema {
        let nullable = |mut schema: Schema| {
            schema.flags = 2;
            schema
        };
        let column = |&i: &usize| {
            let builder = self.builders[i].as_ref();
            let format = builder.map_or("n", Builder::format);
            nullable(schema(format, self.form.names[i].clone(), Vec::new()))
        };
        let mut columns: Vec<Schema> = self.wanted.iter().map(column).collect();
        columns.extend(self.found.as_ref().map(|found| schema(found.format(), "found".into(), Vec::new())));
        schema("+s", String::new(), columns)
    }

    /// The batch.
    pub fn finish(mut self) -> Array {
        let rows = self.rows;
        let builders = &mut self.builders;
        let mut columns: Vec<Array> =
            self.wanted.iter().filter_map(|&i| builders[i].take()).map(Builder::finish).collect();
        columns.extend(self.found.map(Builder::finish));
        array(rows, Vec::new(), columns)
    }
}
