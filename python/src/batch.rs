//! Many records in one call: from pairs, from two sequences, or from columns in memory.
//!
//! Records are handled some thousand at a time. Between two such pieces the interpreter's signals are looked
//! at, so that Ctrl-C ends a long call.

use crate::arrow::{ArrowColumn, Names, Pairs};
use crate::codec::Codec;
use crate::errors::Failure;
use crate::rows::{Buffer, Packed, Rows};
use azekura::Result;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ops::Range;

/// How many records are taken from Python before they are put.
const PUT_AT_ONCE: usize = 4096;
/// How many bytes are taken at most.
const PUT_BYTES: usize = 4 << 20;
/// How many records of columns are encoded before they are put: few enough for the second-level cache.
const COLUMNS_AT_ONCE: usize = 16 << 10;
/// How many keys are looked up before their values become objects.
const GET_AT_ONCE: usize = 4096;

/// The values of several keys: the bytes of all, and the place of each.
#[derive(Default)]
pub struct Found {
    bytes: Vec<u8>,
    places: Vec<Option<(usize, usize)>>,
}

impl Found {
    /// Forgets all, and makes room for the values of this many keys.
    pub fn reset(&mut self, keys: usize) {
        self.bytes.clear();
        self.places.clear();
        self.places.resize(keys, None);
    }

    /// Keeps the value of key `i`.
    pub fn set(&mut self, i: usize, value: Option<&[u8]>) {
        let Some(value) = value else { return };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.places[i] = Some((start, self.bytes.len()));
    }

    /// The value of key `i`. REQUIRES: there is such a key.
    pub fn get(&self, i: usize) -> Option<&[u8]> {
        self.places[i].map(|(start, end)| &self.bytes[start..end])
    }

    /// Adds the values to a list, with None for absent keys.
    fn add_to<'py>(
        &self,
        list: &Bound<'py, PyList>,
        object: impl Fn(&[u8]) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        for i in 0..self.places.len() {
            match self.get(i) {
                Some(value) => list.append(object(value)?)?,
                None => list.append(list.py().None())?,
            }
        }
        Ok(())
    }
}

/// Keys or values in memory: a buffer, or Arrow data.
enum Column {
    Buffer(Buffer),
    Arrow(ArrowColumn),
}

impl Column {
    /// None if the object is neither.
    fn of(object: &Bound<'_, PyAny>, codec: &Codec) -> PyResult<Option<Column>> {
        if let Some(buffer) = Buffer::of(object, codec)? {
            return Ok(Some(Column::Buffer(buffer)));
        }
        Ok(ArrowColumn::of(object, codec)?.map(Column::Arrow))
    }

    fn len(&self) -> usize {
        match self {
            Column::Buffer(buffer) => buffer.len(),
            Column::Arrow(column) => column.len(),
        }
    }

    /// Rows from `rows.start` on, encoded, and how many they are: all of `rows`, or fewer. REQUIRES: there
    /// are such rows.
    fn piece(&self, py: Python<'_>, rows: Range<usize>, is_key: bool) -> PyResult<(Rows, usize)> {
        let count = rows.len();
        match self {
            Column::Buffer(buffer) => Ok((buffer.piece(py, rows, is_key)?, count)),
            Column::Arrow(column) => column.piece(py, rows, is_key),
        }
    }
}

/// Looks up all keys by `find`, which runs while the thread is detached. `object` makes an object of a value.
pub fn get_all<'py>(
    keys: &Bound<'py, PyAny>,
    key_codec: &Codec,
    object: impl Fn(&[u8]) -> PyResult<Bound<'py, PyAny>>,
    find: impl Fn(&[&[u8]], &mut Found) -> std::result::Result<(), Failure> + Sync,
) -> PyResult<Bound<'py, PyList>> {
    let py = keys.py();
    let (list, mut found) = (PyList::empty(py), Found::default());
    let mut look_up = |rows: &Rows, count: usize| -> PyResult<()> {
        py.detach(|| {
            found.reset(count);
            find(&rows.first(count), &mut found)
        })?;
        found.add_to(&list, &object)?;
        py.check_signals()
    };
    if let Some(column) = Column::of(keys, key_codec)? {
        let mut from = 0;
        while from < column.len() {
            let (rows, count) = column.piece(py, from..(from + GET_AT_ONCE).min(column.len()), true)?;
            look_up(&rows, count)?;
            from += count;
        }
        return Ok(list);
    }
    let mut some = Packed::default();
    let mut keys = keys.try_iter()?;
    loop {
        let key = keys.next().transpose()?;
        if let Some(key) = &key {
            some.push(key_codec.key(key)?.as_ref());
        }
        let count = some.len();
        if count == GET_AT_ONCE || key.is_none() {
            look_up(&Rows::Packed(std::mem::take(&mut some)), count)?;
        }
        if key.is_none() {
            return Ok(list);
        }
    }
}

/// Puts records in pieces; runs while the thread is detached.
pub type Put<'p> =
    &'p (dyn Fn(&mut dyn Iterator<Item = (&[u8], &[u8])>) -> std::result::Result<(), Failure> + Sync);

/// Passes records to `put`.
pub fn put_all(
    records: &Bound<'_, PyAny>,
    values: Option<&Bound<'_, PyAny>>,
    (key_codec, value_codec): (&Codec, &Codec),
    put: Put<'_>,
) -> PyResult<()> {
    let py = records.py();
    let Some(values) = values else {
        if let Some(pairs) = Pairs::of(records, &Names::default())? {
            return put_batches(py, pairs, (key_codec, value_codec), put).map(drop);
        }
        let pairs = if records.hasattr("items")? { records.call_method0("items")? } else { records.clone() };
        return put_pairs(&pairs, (key_codec, value_codec), put);
    };
    let columns = (Column::of(records, key_codec)?, Column::of(values, value_codec)?);
    if let (Some(keys), Some(values)) = columns {
        return put_columns(py, &keys, &values, put);
    }
    let strict = PyDict::new(py);
    strict.set_item("strict", true)?;
    let pairs = py.import("builtins")?.call_method("zip", (records, values), Some(&strict))?;
    put_pairs(&pairs, (key_codec, value_codec), put)
}

/// Passes the records of Arrow data to `put`: of an object that gives them, or of several. Returns how many
/// there were.
pub fn put_arrow(
    data: &Bound<'_, PyAny>,
    names: &Names<'_>,
    codecs: (&Codec, &Codec),
    put: Put<'_>,
) -> PyResult<u64> {
    let py = data.py();
    if let Some(pairs) = Pairs::of(data, names)? {
        return put_batches(py, pairs, codecs, put);
    }
    let none = |object: &Bound<'_, PyAny>| {
        let class = object.get_type();
        PyTypeError::new_err(format!("Arrow data are due, or several of them, not {class}"))
    };
    let mut records = 0;
    for batch in data.try_iter().map_err(|_| none(data))? {
        let batch = batch?;
        let pairs = Pairs::of(&batch, names)?.ok_or_else(|| none(&batch))?;
        records += put_batches(py, pairs, codecs, put)?;
    }
    Ok(records)
}

fn put_batches(py: Python<'_>, pairs: Pairs, codecs: (&Codec, &Codec), put: Put<'_>) -> PyResult<u64> {
    let mut records = 0;
    pairs.each(py, codecs, COLUMNS_AT_ONCE, |keys, values, count| {
        py.detach(|| put(&mut (0..count).map(|i| (keys.get(i), values.get(i)))))?;
        records += count as u64;
        py.check_signals()
    })?;
    Ok(records)
}

fn put_columns(py: Python<'_>, keys: &Column, values: &Column, put: Put<'_>) -> PyResult<()> {
    let (due, found) = (keys.len(), values.len());
    if due != found {
        return Err(PyValueError::new_err(format!("{due} keys have {found} values")));
    }
    let mut from = 0;
    while from < due {
        let rows = from..(from + COLUMNS_AT_ONCE).min(due);
        let (keys, some) = keys.piece(py, rows.clone(), true)?;
        let (values, others) = values.piece(py, rows, false)?;
        let count = some.min(others);
        py.detach(|| put(&mut (0..count).map(|i| (keys.get(i), values.get(i)))))?;
        from += count;
        py.check_signals()?;
    }
    Ok(())
}

fn pair_of<'py>(pair: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    if let Ok(pair) = pair.extract() {
        return Ok(pair);
    }
    let parts = pair.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    <[_; 2]>::try_from(parts).map(|[key, value]| (key, value)).map_err(|parts| {
        PyValueError::new_err(format!("a key and a value are due, not {} things", parts.len()))
    })
}

fn put_pairs(
    pairs: &Bound<'_, PyAny>,
    (key_codec, value_codec): (&Codec, &Codec),
    put: Put<'_>,
) -> PyResult<()> {
    let py = pairs.py();
    let mut packed = Packed::default();
    let send = |packed: &mut Packed| -> PyResult<()> {
        py.detach(|| put(&mut (0..packed.len()).step_by(2).map(|i| (packed.get(i), packed.get(i + 1)))))?;
        packed.clear();
        py.check_signals()
    };
    for pair in pairs.try_iter()? {
        let (key, value) = pair_of(&pair?)?;
        // Both are encoded before either is kept. So an error leaves no half record.
        let (key, value) = (key_codec.key(&key)?, value_codec.value(&value)?);
        packed.push(key.as_ref());
        packed.push(value.as_ref());
        if packed.len() >= 2 * PUT_AT_ONCE || packed.bytes() >= PUT_BYTES {
            send(&mut packed)?;
        }
    }
    send(&mut packed)
}

/// Puts records into a transaction.
pub fn put_into(
    txn: &mut azekura::WriteTxn,
    table: &azekura::Table,
    records: &mut dyn Iterator<Item = (&[u8], &[u8])>,
) -> Result<()> {
    txn.put_many(table, records)
}
