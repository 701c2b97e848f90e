//! Many records in one call: from pairs, from two sequences, or from two buffers of fixed width.

use crate::codec::{Codec, float_key, int_key};
use crate::errors::{Failure, wrong_argument};
use azekura::Result;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyByteArray, PyBytes, PyDict, PyList, PyMemoryView, PyString};

/// How many records are taken from Python before they are put.
const PUT_AT_ONCE: usize = 4096;
/// How many bytes are taken at most.
const PUT_BYTES: usize = 4 << 20;

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

    /// All of them, in order.
    pub fn parts(&self) -> Vec<&[u8]> {
        (0..self.len()).map(|i| self.get(i)).collect()
    }
}

/// The values of several keys: the bytes of all, and the place of each.
#[derive(Default)]
pub struct Found {
    bytes: Vec<u8>,
    places: Vec<Option<(usize, usize)>>,
}

impl Found {
    /// Room for the values of this many keys.
    pub fn of(keys: usize) -> Found {
        Found { bytes: Vec::new(), places: vec![None; keys] }
    }

    /// Keeps the value of key `i`.
    pub fn set(&mut self, i: usize, value: Option<&[u8]>) {
        let Some(value) = value else { return };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.places[i] = Some((start, self.bytes.len()));
    }

    /// The values as a list, with None for absent keys.
    pub fn list<'py>(&self, py: Python<'py>, values: &Codec) -> PyResult<Bound<'py, PyList>> {
        let object = |place: &Option<(usize, usize)>| match *place {
            Some((start, end)) => values.value_object(py, &self.bytes[start..end]),
            None => Ok(py.None().into_bound(py)),
        };
        PyList::new(py, self.places.iter().map(object).collect::<PyResult<Vec<_>>>()?)
    }
}

/// Numbers or byte strings of fixed width, copied from a buffer.
pub struct Fixed {
    bytes: Vec<u8>,
    width: usize,
}

impl Fixed {
    /// Copies a buffer with a record in each row. None if the object is no such buffer.
    ///
    /// If the table's type is a number, the elements must have that type. Otherwise a row is taken as raw
    /// bytes.
    fn of(object: &Bound<'_, PyAny>, codec: &Codec, is_key: bool) -> PyResult<Option<Fixed>> {
        // Each of these is one key or value, not many.
        let is_one = object.is_instance_of::<PyBytes>()
            || object.is_instance_of::<PyString>()
            || object.is_instance_of::<PyByteArray>();
        if is_one {
            return Err(wrong_argument("a sequence or a buffer of rows", object));
        }
        let Ok(view) = PyMemoryView::from(object) else { return Ok(None) };
        let rows = *view.getattr("shape")?.extract::<Vec<usize>>()?.first().unwrap_or(&0);
        let bytes = view.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec();
        if rows == 0 || bytes.len() % rows != 0 {
            return Ok(Some(Fixed { bytes: Vec::new(), width: 1 }));
        }
        let mut fixed = Fixed { width: bytes.len() / rows, bytes };
        if matches!(codec, Codec::Int | Codec::Float) {
            fixed.expect_numbers(codec, &view.getattr("format")?.extract::<String>()?)?;
            fixed.number(codec, is_key)?;
        } else if !matches!(codec, Codec::Bytes) {
            return Err(PyValueError::new_err("buffers are for tables of bytes, int or float"));
        }
        Ok(Some(fixed))
    }

    fn expect_numbers(&self, codec: &Codec, format: &str) -> PyResult<()> {
        let native =
            format.trim_start_matches(['@', '=', if cfg!(target_endian = "little") { '<' } else { '>' }]);
        let fits = match codec {
            Codec::Int => ["q", "l"].contains(&native),
            _ => native == "d",
        };
        if fits && self.width == 8 {
            return Ok(());
        }
        let due = if *codec == Codec::Int { "signed integers" } else { "floats" };
        Err(PyValueError::new_err(format!(
            "the buffer has rows of {} bytes of format {format:?}, {due} of 64 bits are due",
            self.width
        )))
    }

    /// Converts native numbers to the table's form.
    fn number(&mut self, codec: &Codec, is_key: bool) -> PyResult<()> {
        let (numbers, _) = self.bytes.as_chunks_mut::<8>();
        for bytes in numbers {
            *bytes = match (codec, is_key) {
                (Codec::Int, true) => int_key(i64::from_ne_bytes(*bytes)),
                (_, true) => float_key(f64::from_ne_bytes(*bytes))?,
                (_, false) => u64::from_ne_bytes(*bytes).to_le_bytes(),
            };
        }
        Ok(())
    }

    /// The rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.width)
    }
}

/// Keys to look up.
pub enum Keys {
    /// From a buffer.
    Fixed(Fixed),
    /// From an iterable.
    Packed(Packed),
}

impl Keys {
    /// The keys of a buffer, or of any iterable.
    pub fn of(object: &Bound<'_, PyAny>, codec: &Codec) -> PyResult<Keys> {
        if let Some(fixed) = Fixed::of(object, codec, true)? {
            return Ok(Keys::Fixed(fixed));
        }
        let mut packed = Packed::default();
        for key in object.try_iter()? {
            packed.push(codec.key(&key?)?.as_ref());
        }
        Ok(Keys::Packed(packed))
    }

    /// All keys, in order.
    pub fn parts(&self) -> Vec<&[u8]> {
        match self {
            Keys::Fixed(fixed) => fixed.rows().collect(),
            Keys::Packed(packed) => packed.parts(),
        }
    }
}

/// Passes records to `put`, which runs while the thread is detached.
pub fn put_all(
    records: &Bound<'_, PyAny>,
    values: Option<&Bound<'_, PyAny>>,
    (key_codec, value_codec): (&Codec, &Codec),
    put: impl Fn(&mut dyn Iterator<Item = (&[u8], &[u8])>) -> std::result::Result<(), Failure> + Sync,
) -> PyResult<()> {
    let py = records.py();
    let Some(values) = values else {
        let pairs = if records.hasattr("items")? { records.call_method0("items")? } else { records.clone() };
        return put_pairs(&pairs, (key_codec, value_codec), put);
    };
    let fixed = (Fixed::of(records, key_codec, true)?, Fixed::of(values, value_codec, false)?);
    if let (Some(keys), Some(values)) = fixed {
        let (due, found) = (keys.rows().len(), values.rows().len());
        if due != found {
            return Err(PyValueError::new_err(format!("{due} keys have {found} values")));
        }
        return Ok(py.detach(|| put(&mut keys.rows().zip(values.rows())))?);
    }
    let strict = PyDict::new(py);
    strict.set_item("strict", true)?;
    let pairs = py.import("builtins")?.call_method("zip", (records, values), Some(&strict))?;
    put_pairs(&pairs, (key_codec, value_codec), put)
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
    put: impl Fn(&mut dyn Iterator<Item = (&[u8], &[u8])>) -> std::result::Result<(), Failure> + Sync,
) -> PyResult<()> {
    let py = pairs.py();
    let mut packed = Packed::default();
    let send = |packed: &mut Packed| {
        let done =
            py.detach(|| put(&mut (0..packed.len()).step_by(2).map(|i| (packed.get(i), packed.get(i + 1)))));
        packed.clear();
        done
    };
    for pair in pairs.try_iter()? {
        let (key, value) = pair_of(&pair?)?;
        // Both are encoded before either is kept, so an error leaves no half record.
        let (key, value) = (key_codec.key(&key)?, value_codec.value(&value)?);
        packed.push(key.as_ref());
        packed.push(value.as_ref());
        if packed.len() >= 2 * PUT_AT_ONCE || packed.bytes() >= PUT_BYTES {
            send(&mut packed)?;
        }
    }
    Ok(send(&mut packed)?)
}

/// Puts records into a transaction.
pub fn put_into(
    txn: &mut azekura::WriteTxn,
    table: &azekura::Table,
    records: &mut dyn Iterator<Item = (&[u8], &[u8])>,
) -> Result<()> {
    for (key, value) in records {
        txn.put(table, key, value)?;
    }
    Ok(())
}
