//! Python's objects as bytes.
//!
//! Keys are encoded so that their bytes have the order that `sorted` gives:
//!
//! ```text
//! bytes, str     as they are (str as UTF-8)
//! int            eight bytes, big-endian, the sign flipped: -2^63 to 2^63 - 1
//! float          eight bytes, big-endian; the sign flipped, or all bits if negative. 0.0 and -0.0 are one key
//! tuple[a, b…]   one after the other; in bytes and str a 00 becomes 00 FF, and 00 01 ends them
//! ```
//!
//! Values need no order. int and float have eight bytes, little-endian, as for `increment`. `'json'` is JSON
//! text.

use crate::errors::{wrong_argument, wrong_form};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyMemoryView, PyString, PyTuple, PyType};

const SIGN: u64 = 1 << 63;
const ESCAPED: [u8; 2] = [0, 0xFF];
const END: [u8; 2] = [0, 1];

/// How a key or a value is encoded in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Bytes. Text is taken as its UTF-8.
    Bytes,
    /// Text.
    Str,
    /// A signed integer of 64 bits.
    Int,
    /// A floating-point number of 64 bits.
    Float,
    /// JSON text. Values only.
    Json,
    /// Several of these. Keys only.
    Tuple(Vec<Codec>),
}

/// Encoded bytes: Python's, or a new copy.
pub enum Encoded<'a> {
    /// Bytes of a Python object.
    Given(&'a [u8]),
    /// Eight bytes.
    Short([u8; 8]),
    /// Any number of bytes.
    Made(Vec<u8>),
}

impl AsRef<[u8]> for Encoded<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Encoded::Given(bytes) => bytes,
            Encoded::Short(bytes) => bytes,
            Encoded::Made(bytes) => bytes,
        }
    }
}

impl Codec {
    /// The codec for the argument `key` of a table.
    pub fn of_key(spec: Option<&Bound<'_, PyAny>>) -> PyResult<Codec> {
        let Some(spec) = spec else { return Ok(Codec::Bytes) };
        if let Some(codec) = plain(spec)? {
            return Ok(codec);
        }
        let is_tuple =
            spec.getattr("__origin__").is_ok_and(|origin| origin.is(spec.py().get_type::<PyTuple>()));
        let parts =
            if is_tuple { spec.getattr("__args__")?.extract::<Vec<Bound<'_, PyAny>>>()? } else { Vec::new() };
        if parts.is_empty() {
            let text = spec.repr()?;
            return Err(PyTypeError::new_err(format!(
                "keys are bytes, str, int, float or a tuple of these as tuple[int, str], not {text}"
            )));
        }
        parts.iter().map(|part| Codec::of_key(Some(part))).collect::<PyResult<_>>().map(Codec::Tuple)
    }

    /// The codec for the argument `value` of a table.
    pub fn of_value(spec: Option<&Bound<'_, PyAny>>) -> PyResult<Codec> {
        let Some(spec) = spec else { return Ok(Codec::Bytes) };
        if let Some(codec) = plain(spec)? {
            return Ok(codec);
        }
        if spec.cast::<PyString>().is_ok_and(|text| text == "json") {
            return Ok(Codec::Json);
        }
        let text = spec.repr()?;
        Err(PyTypeError::new_err(format!("values are bytes, str, int, float or 'json', not {text}")))
    }

    /// Encodes a key.
    pub fn key<'a>(&self, object: &'a Bound<'_, PyAny>) -> PyResult<Encoded<'a>> {
        match self {
            Codec::Bytes => bytes_of(object),
            Codec::Str => text_of(object).map(Encoded::Given),
            Codec::Int => int_of(object).map(int_key).map(Encoded::Short),
            Codec::Float => float_of(object).and_then(float_key).map(Encoded::Short),
            Codec::Tuple(parts) => tuple_key(parts, object, true).map(Encoded::Made),
            Codec::Json => Err(PyTypeError::new_err("JSON has no order: keys cannot be JSON")),
        }
    }

    /// Encodes one end of a range: a key, or the first parts of a tuple.
    pub fn bound<'a>(&self, object: &'a Bound<'_, PyAny>) -> PyResult<Encoded<'a>> {
        match self {
            Codec::Tuple(parts) => tuple_key(parts, object, false).map(Encoded::Made),
            other => other.key(object),
        }
    }

    /// Encodes a prefix of keys: bytes, text, or the first parts of a tuple.
    pub fn prefix<'a>(&self, object: &'a Bound<'_, PyAny>) -> PyResult<Encoded<'a>> {
        match self {
            Codec::Int | Codec::Float => {
                Err(PyTypeError::new_err("numbers have no prefix: range(lo, hi) is for them"))
            }
            other => other.bound(object),
        }
    }

    /// Encodes a value.
    pub fn value<'a>(&self, object: &'a Bound<'_, PyAny>) -> PyResult<Encoded<'a>> {
        match self {
            Codec::Int => Ok(Encoded::Short(int_of(object)?.to_le_bytes())),
            Codec::Float => Ok(Encoded::Short(float_of(object)?.to_le_bytes())),
            Codec::Json => json_text(object).map(Encoded::Made),
            other => other.key(object),
        }
    }

    /// Decodes a key.
    pub fn key_object<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let mut rest = bytes;
        let object = match self {
            Codec::Tuple(_) => self.part_object(py, &mut rest)?,
            Codec::Int | Codec::Float => self.part_object(py, &mut rest)?,
            Codec::Str => return text_object(py, bytes),
            Codec::Bytes | Codec::Json => return Ok(PyBytes::new(py, bytes).into_any()),
        };
        if rest.is_empty() { Ok(object) } else { Err(not_a("key", bytes, self)) }
    }

    /// Decodes a value.
    pub fn value_object<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let eight = || <[u8; 8]>::try_from(bytes).map_err(|_| not_a("value", bytes, self));
        match self {
            Codec::Int => Ok(PyInt::new(py, i64::from_le_bytes(eight()?)).into_any()),
            Codec::Float => Ok(PyFloat::new(py, f64::from_le_bytes(eight()?)).into_any()),
            Codec::Str => text_object(py, bytes),
            Codec::Json => py.import("json")?.call_method1("loads", (PyBytes::new(py, bytes),)),
            Codec::Bytes | Codec::Tuple(_) => Ok(PyBytes::new(py, bytes).into_any()),
        }
    }

    /// Decodes the next part of a tuple, or a number. `rest` becomes what follows it.
    fn part_object<'py>(&self, py: Python<'py>, rest: &mut &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let all = *rest;
        let bad = || not_a("key", all, self);
        match self {
            Codec::Int | Codec::Float => {
                let (eight, after) = all.split_first_chunk::<8>().ok_or_else(bad)?;
                *rest = after;
                let bits = u64::from_be_bytes(*eight);
                Ok(match self {
                    Codec::Int => PyInt::new(py, (bits ^ SIGN).cast_signed()).into_any(),
                    _ => PyFloat::new(py, float_of_bits(bits)).into_any(),
                })
            }
            Codec::Bytes | Codec::Str | Codec::Json => {
                let (bytes, after) = unescaped(all).ok_or_else(bad)?;
                *rest = after;
                if *self == Codec::Str {
                    text_object(py, &bytes)
                } else {
                    Ok(PyBytes::new(py, &bytes).into_any())
                }
            }
            Codec::Tuple(parts) => {
                let objects =
                    parts.iter().map(|part| part.part_object(py, rest)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, objects)?.into_any())
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Codec::Bytes => "bytes",
            Codec::Str => "str",
            Codec::Int => "int",
            Codec::Float => "float",
            Codec::Json => "JSON",
            Codec::Tuple(_) => "tuple of this form",
        }
    }
}

fn not_a(what: &str, bytes: &[u8], codec: &Codec) -> PyErr {
    wrong_form(&format!("a {what} in the table, of {} bytes, is no {}", bytes.len(), codec.name()))
}

/// The codec of one of Python's own types.
fn plain(spec: &Bound<'_, PyAny>) -> PyResult<Option<Codec>> {
    let py = spec.py();
    let named: [(Bound<'_, PyType>, Codec); 4] = [
        (py.get_type::<PyBytes>(), Codec::Bytes),
        (py.get_type::<PyString>(), Codec::Str),
        (py.get_type::<PyInt>(), Codec::Int),
        (py.get_type::<PyFloat>(), Codec::Float),
    ];
    Ok(named.into_iter().find(|(of, _)| spec.is(of)).map(|(_, codec)| codec))
}

/// The bytes of a bytes object, of text, or of anything with a buffer.
pub fn bytes_of<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Encoded<'a>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Encoded::Given(bytes.as_bytes()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Encoded::Given(text.to_str()?.as_bytes()));
    }
    let view = PyMemoryView::from(object).map_err(|_| wrong_argument("bytes or str", object))?;
    // A copy: other threads may change a buffer while the thread is detached.
    let copy = view.call_method0("tobytes")?;
    Ok(Encoded::Made(copy.cast::<PyBytes>()?.as_bytes().to_vec()))
}

fn text_of<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    let text = object.cast::<PyString>().map_err(|_| wrong_argument("str", object))?;
    Ok(text.to_str()?.as_bytes())
}

fn text_object<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let text =
        std::str::from_utf8(bytes).map_err(|error| wrong_form(&format!("text is no UTF-8: {error}")))?;
    Ok(PyString::new(py, text).into_any())
}

fn int_of(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    // Integers only: a float is refused, as Python's own indices refuse it.
    object.extract::<i64>().map_err(|error| {
        if error.is_instance_of::<PyTypeError>(object.py()) { wrong_argument("int", object) } else { error }
    })
}

fn float_of(object: &Bound<'_, PyAny>) -> PyResult<f64> {
    object.extract::<f64>().map_err(|error| {
        if error.is_instance_of::<PyTypeError>(object.py()) { wrong_argument("float", object) } else { error }
    })
}

/// The key of an integer.
pub fn int_key(number: i64) -> [u8; 8] {
    (number.cast_unsigned() ^ SIGN).to_be_bytes()
}

/// The key of a float.
pub fn float_key(number: f64) -> PyResult<[u8; 8]> {
    if number.is_nan() {
        return Err(PyValueError::new_err("nan has no place in any order: it cannot be a key"));
    }
    // The sum turns -0.0 into 0.0.
    let bits = (number + 0.0).to_bits();
    let ordered = if bits & SIGN == 0 { bits ^ SIGN } else { !bits };
    Ok(ordered.to_be_bytes())
}

fn float_of_bits(ordered: u64) -> f64 {
    f64::from_bits(if ordered & SIGN == 0 { !ordered } else { ordered ^ SIGN })
}

fn tuple_key(parts: &[Codec], object: &Bound<'_, PyAny>, whole: bool) -> PyResult<Vec<u8>> {
    let mut out = Vec::with_capacity(parts.len() * 10);
    add_tuple(parts, object, whole, &mut out)?;
    Ok(out)
}

fn add_tuple(parts: &[Codec], object: &Bound<'_, PyAny>, whole: bool, out: &mut Vec<u8>) -> PyResult<()> {
    let given = object.cast::<PyTuple>().map_err(|_| wrong_argument("tuple", object))?;
    if given.len() > parts.len() || whole && given.len() < parts.len() {
        let (due, found) = (parts.len(), given.len());
        return Err(PyValueError::new_err(format!("the key is a tuple of {found}, of {due} it should be")));
    }
    for (part, codec) in given.iter().zip(parts) {
        match codec {
            Codec::Tuple(inner) => add_tuple(inner, &part, true, out)?,
            Codec::Bytes | Codec::Str => add_escaped(codec.key(&part)?.as_ref(), out),
            number => out.extend_from_slice(number.key(&part)?.as_ref()),
        }
    }
    Ok(())
}

fn add_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        if byte == 0 { out.extend_from_slice(&ESCAPED) } else { out.push(byte) }
    }
    out.extend_from_slice(&END);
}

/// The bytes up to their end mark, and what follows it.
fn unescaped(from: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut bytes = Vec::new();
    let mut rest = from;
    loop {
        let zero = rest.iter().position(|&byte| byte == 0)?;
        bytes.extend_from_slice(&rest[..zero]);
        let (mark, after) = rest[zero..].split_first_chunk::<2>()?;
        rest = after;
        match *mark {
            ESCAPED => bytes.push(0),
            END => return Some((bytes, rest)),
            _ => return None,
        }
    }
}

fn json_text(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = object.py();
    let options = PyDict::new(py);
    options.set_item("ensure_ascii", false)?;
    options.set_item("separators", (",", ":"))?;
    let text = py.import("json")?.call_method("dumps", (object,), Some(&options))?;
    Ok(text.cast::<PyString>()?.to_str()?.as_bytes().to_vec())
}
