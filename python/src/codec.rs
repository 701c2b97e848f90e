//! Python's objects as bytes.
//!
//! Keys are encoded so that their bytes have the order that `sorted` gives:
//!
//! ```text
//! bytes, str     as they are (str as UTF-8)
//! int            eight bytes, big-endian, the sign flipped: -2^63 to 2^63 - 1
//! float          eight bytes, big-endian; the sign flipped, or all bits if negative. 0.0 and -0.0 are one key
//! bool           one byte, 00 or 01
//! tuple[a, b…]   one after the other; in bytes and str a 00 becomes 00 FF, and 00 01 ends them
//! ```
//!
//! Values need no order. int and float have eight bytes, little-endian, as for `increment`. `'json'` is JSON
//! text, `'pickle'` what pickle makes of an object. A bool or a tuple has the form of a key. The numbers of
//! `azekura.types` are as int and float, with fewer bytes or without a sign. The engine's typed tables have
//! the same forms: `tests/forms.txt` is a list that both compare with.

use crate::errors::{wrong_argument, wrong_form};
use crate::numbers::{Number, Short};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyInt, PyMemoryView, PyString, PyTuple, PyType, PyTypeMethods,
};

/// Every Python that this package is for can read it.
const PICKLE_PROTOCOL: u8 = 5;
const ESCAPED: [u8; 2] = [0, 0xFF];
const END: [u8; 2] = [0, 1];

/// How a key or a value is encoded in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Bytes. Text is taken as its UTF-8.
    Bytes,
    /// Text.
    Str,
    /// A number.
    Number(Number),
    /// True or False.
    Bool,
    /// JSON text. Values only.
    Json,
    /// Any object, by Python's pickle. Values only.
    Pickle,
    /// Several of these, but not of those that are for values only.
    Tuple(Vec<Codec>),
}

/// Encoded bytes: Python's, or a new copy.
pub enum Encoded<'a> {
    /// Bytes of a Python object.
    Given(&'a [u8]),
    /// A few bytes.
    Short(Short),
    /// Any number of bytes.
    Made(Vec<u8>),
}

impl AsRef<[u8]> for Encoded<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Encoded::Given(bytes) => bytes,
            Encoded::Short(short) => short.as_ref(),
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
        match tuple_of(spec)? {
            Some(codec) => Ok(codec),
            None => Err(PyTypeError::new_err(format!(
                "keys are bytes, str, int, float, bool, a type of azekura.types, or a tuple of these as \
                 tuple[int, str], not {}",
                spec.repr()?
            ))),
        }
    }

    /// The codec for the argument `value` of a table.
    pub fn of_value(spec: Option<&Bound<'_, PyAny>>) -> PyResult<Codec> {
        let Some(spec) = spec else { return Ok(Codec::Bytes) };
        if let Some(codec) = plain(spec)? {
            return Ok(codec);
        }
        let named = spec.cast::<PyString>().ok().map(|name| name.to_str()).transpose()?;
        match (named, tuple_of(spec)?) {
            (Some("json"), _) => Ok(Codec::Json),
            (Some("pickle"), _) => Ok(Codec::Pickle),
            (_, Some(codec)) => Ok(codec),
            _ => Err(PyTypeError::new_err(format!(
                "values are bytes, str, int, float, bool, a type of azekura.types, a tuple of these, 'json' or \
                 'pickle', not {}",
                spec.repr()?
            ))),
        }
    }

    /// Encodes a key.
    pub fn key<'a>(&self, object: &'a Bound<'_, PyAny>) -> PyResult<Encoded<'a>> {
        match self {
            Codec::Bytes => bytes_of(object),
            Codec::Str => text_of(object).map(Encoded::Given),
            Codec::Number(number) => number.key(number.bits_of(object)?).map(Encoded::Short),
            Codec::Bool => bool_of(object).map(Encoded::Given),
            Codec::Tuple(parts) => tuple_key(parts, object, true).map(Encoded::Made),
            Codec::Json | Codec::Pickle => Err(PyTypeError::new_err("JSON and pickles have no order")),
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
            Codec::Number(_) | Codec::Bool => {
                Err(PyTypeError::new_err("numbers have no prefix: range(lo, hi) is for them"))
            }
            other => other.bound(object),
        }
    }

    /// Encodes a value.
    pub fn value<'a>(&self, object: &'a Bound<'_, PyAny>) -> PyResult<Encoded<'a>> {
        match self {
            Codec::Number(number) => Ok(Encoded::Short(number.value(number.bits_of(object)?))),
            Codec::Json => json_text(object).map(Encoded::Made),
            Codec::Pickle => pickled(object).map(Encoded::Made),
            other => other.key(object),
        }
    }

    /// Decodes a key.
    pub fn key_object<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let mut rest = bytes;
        let object = match self {
            Codec::Tuple(_) | Codec::Number(_) | Codec::Bool => self.part_object(py, &mut rest)?,
            Codec::Str => return text_object(py, bytes),
            Codec::Bytes | Codec::Json | Codec::Pickle => return Ok(PyBytes::new(py, bytes).into_any()),
        };
        if rest.is_empty() { Ok(object) } else { Err(self.refused("key", bytes)) }
    }

    /// Decodes a value.
    pub fn value_object<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Codec::Bytes => Ok(PyBytes::new(py, bytes).into_any()),
            Codec::Number(number) => {
                let bits = number.value_bits(bytes).ok_or_else(|| self.refused("value", bytes))?;
                Ok(number.object(py, bits))
            }
            Codec::Json => py.import("json")?.call_method1("loads", (PyBytes::new(py, bytes),)),
            Codec::Pickle => py.import("pickle")?.call_method1("loads", (PyBytes::new(py, bytes),)),
            other => other.key_object(py, bytes),
        }
    }

    /// Decodes the next part of a tuple, a number or a bool. `rest` becomes what follows it.
    fn part_object<'py>(&self, py: Python<'py>, rest: &mut &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let all = *rest;
        let bad = || self.refused("key", all);
        match self {
            Codec::Number(number) => {
                let (bits, after) = number.take_key(all).ok_or_else(bad)?;
                *rest = after;
                Ok(number.object(py, bits))
            }
            Codec::Bool => {
                let (&byte, after) = all.split_first().filter(|(byte, _)| **byte <= 1).ok_or_else(bad)?;
                *rest = after;
                Ok(PyBool::new(py, byte == 1).to_owned().into_any())
            }
            Codec::Bytes | Codec::Str | Codec::Json | Codec::Pickle => {
                let (bytes, after) = unescaped(all).ok_or_else(bad)?;
                *rest = after;
                match self {
                    Codec::Str => text_object(py, &bytes),
                    _ => Ok(PyBytes::new(py, &bytes).into_any()),
                }
            }
            Codec::Tuple(parts) => {
                let objects =
                    parts.iter().map(|part| part.part_object(py, rest)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, objects)?.into_any())
            }
        }
    }

    /// The error for stored bytes that are not of this form.
    pub fn refused(&self, what: &str, bytes: &[u8]) -> PyErr {
        wrong_form(&format!("a {what} in the table, of {} bytes, is no {}", bytes.len(), self.name()))
    }

    /// The form's name, for people.
    pub fn name(&self) -> String {
        match self {
            Codec::Bytes => "bytes".to_owned(),
            Codec::Str => "str".to_owned(),
            Codec::Number(number) => number.name(),
            Codec::Bool => "bool".to_owned(),
            Codec::Json => "JSON".to_owned(),
            Codec::Pickle => "pickle".to_owned(),
            Codec::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(Codec::name).collect();
                format!("tuple[{}]", parts.join(", "))
            }
        }
    }
}

/// The codec of one of Python's own types, or of one of `azekura.types`.
fn plain(spec: &Bound<'_, PyAny>) -> PyResult<Option<Codec>> {
    let py = spec.py();
    let named: [(Bound<'_, PyType>, Codec); 5] = [
        (py.get_type::<PyBytes>(), Codec::Bytes),
        (py.get_type::<PyString>(), Codec::Str),
        (py.get_type::<PyInt>(), Codec::Number(Number::INT)),
        (py.get_type::<PyFloat>(), Codec::Number(Number::FLOAT)),
        (py.get_type::<PyBool>(), Codec::Bool),
    ];
    if let Some((_, codec)) = named.into_iter().find(|(of, _)| spec.is(of)) {
        return Ok(Some(codec));
    }
    match spec.cast::<PyType>() {
        Ok(class) if class.module()? == "azekura.types" => {
            Ok(Number::named(class.name()?.to_str()?).map(Codec::Number))
        }
        _ => Ok(None),
    }
}

/// The codec for a type such as `tuple[int, str]`. None if it is none, or has no parts.
fn tuple_of(spec: &Bound<'_, PyAny>) -> PyResult<Option<Codec>> {
    let is_tuple = spec.getattr("__origin__").is_ok_and(|origin| origin.is(spec.py().get_type::<PyTuple>()));
    if !is_tuple {
        return Ok(None);
    }
    let parts = spec.getattr("__args__")?.extract::<Vec<Bound<'_, PyAny>>>()?;
    if parts.is_empty() {
        return Ok(None);
    }
    parts.iter().map(|part| Codec::of_key(Some(part))).collect::<PyResult<_>>().map(|v| Some(Codec::Tuple(v)))
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

fn bool_of(object: &Bound<'_, PyAny>) -> PyResult<&'static [u8]> {
    let given = object.cast::<PyBool>().map_err(|_| wrong_argument("bool", object))?;
    Ok(if given.is_true() { &[1] } else { &[0] })
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

/// Adds bytes as a part of a tuple.
pub fn add_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        if byte == 0 { out.extend_from_slice(&ESCAPED) } else { out.push(byte) }
    }
    out.extend_from_slice(&END);
}

/// The bytes up to their end mark, and what follows it.
pub fn unescaped(from: &[u8]) -> Option<(Vec<u8>, &[u8])> {
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

fn pickled(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let made = object.py().import("pickle")?.call_method1("dumps", (object, PICKLE_PROTOCOL))?;
    Ok(made.cast::<PyBytes>()?.as_bytes().to_vec())
}
