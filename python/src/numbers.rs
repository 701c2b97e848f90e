//! Numbers as bytes, in the forms of the engine's typed tables.
//!
//! A number of any width is handled as its bits: those of its own width, in the lowest bytes of a `u64`.

use crate::errors::wrong_argument;
use azekura::Merge;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

/// A type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    family: Family,
    /// Its bytes: 1, 2, 4 or 8.
    width: usize,
}

/// What kind of number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Unsigned,
    Signed,
    Float,
}

/// Up to eight bytes.
#[derive(Clone, Copy)]
pub struct Short {
    bytes: [u8; 8],
    len: usize,
}

impl AsRef<[u8]> for Short {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Number {
    /// Python's int.
    pub const INT: Number = Number { family: Family::Signed, width: 8 };
    /// Python's float.
    pub const FLOAT: Number = Number { family: Family::Float, width: 8 };

    /// The type of a name such as `u32`.
    pub fn named(name: &str) -> Option<Number> {
        let (family, bits) = match name.split_at_checked(1)? {
            ("u", bits) => (Family::Unsigned, bits),
            ("i", bits) => (Family::Signed, bits),
            ("f", bits @ ("32" | "64")) => (Family::Float, bits),
            _ => return None,
        };
        let width =
            [("8", 1), ("16", 2), ("32", 4), ("64", 8)].into_iter().find(|(text, _)| *text == bits)?;
        Some(Number { family, width: width.1 })
    }

    /// Its name, as Rust has it.
    pub fn name(self) -> String {
        let family = match self.family {
            Family::Unsigned => 'u',
            Family::Signed => 'i',
            Family::Float => 'f',
        };
        format!("{family}{}", self.width * 8)
    }

    /// The type of the elements of a buffer, by the last letter of their format and their width.
    pub fn of_buffer(format: &str, width: usize) -> Option<Number> {
        let native = if cfg!(target_endian = "little") { '<' } else { '>' };
        let mut letters = format.trim_start_matches(['@', '=', native]).chars();
        let family = match letters.next()? {
            'b' | 'h' | 'i' | 'l' | 'q' | 'n' => Family::Signed,
            'B' | 'H' | 'I' | 'L' | 'Q' | 'N' => Family::Unsigned,
            'f' | 'd' => Family::Float,
            _ => return None,
        };
        let is_one = letters.next().is_none() && [1, 2, 4, 8].contains(&width);
        is_one.then_some(Number { family, width })
    }

    /// The letter for this type in Arrow's schemas.
    pub fn arrow_format(self) -> &'static str {
        match (self.family, self.width) {
            (Family::Signed, 1) => "c",
            (Family::Unsigned, 1) => "C",
            (Family::Signed, 2) => "s",
            (Family::Unsigned, 2) => "S",
            (Family::Signed, 4) => "i",
            (Family::Unsigned, 4) => "I",
            (Family::Signed, _) => "l",
            (Family::Unsigned, _) => "L",
            (Family::Float, 4) => "f",
            (Family::Float, _) => "g",
        }
    }

    /// The type of such a letter.
    pub fn of_arrow(format: &str) -> Option<Number> {
        let names = ["i64", "f64", "i32", "f32", "u8", "u16", "u32", "u64", "i8", "i16"];
        names.into_iter().filter_map(Number::named).find(|number| number.arrow_format() == format)
    }

    /// How many bytes it has.
    pub fn width(self) -> usize {
        self.width
    }

    fn sign(self) -> u64 {
        1 << (self.width * 8 - 1)
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.width * 8)
    }

    /// The merge of a Python number by the operator of this name. REQUIRES: it has eight bytes.
    pub fn merge(self, operator: &str, object: &Bound<'_, PyAny>) -> PyResult<Merge<'static>> {
        let bits = self.bits_of(object)?;
        let (signed, float) = (bits.cast_signed(), f64::from_bits(bits));
        Ok(match (self.family, operator) {
            (Family::Unsigned | Family::Signed, "add") => Merge::AddU64(bits),
            (Family::Unsigned | Family::Signed, "or") => Merge::BitOr(bits),
            (Family::Unsigned, "min") => Merge::MinU64(bits),
            (Family::Unsigned, "max") => Merge::MaxU64(bits),
            (Family::Signed, "min") => Merge::MinI64(signed),
            (Family::Signed, "max") => Merge::MaxI64(signed),
            (Family::Float, "add") => Merge::AddF64(float),
            (Family::Float, "min") => Merge::MinF64(float),
            (Family::Float, "max") => Merge::MaxF64(float),
            _ => {
                let text =
                    format!("{operator:?} is no operator of {}: add, min, max, or (integers)", self.name());
                return Err(PyValueError::new_err(text));
            }
        })
    }

    /// The bits of a Python number.
    pub fn bits_of(self, object: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = object.py();
        let wrong = |due: &'static str| {
            move |error: PyErr| match error.is_instance_of::<PyTypeError>(py) {
                true => wrong_argument(due, object),
                false => error,
            }
        };
        // Integers only: a float is refused, as Python's own indices refuse it.
        match self.family {
            Family::Unsigned => {
                let number = object.extract::<u64>().map_err(wrong("int"))?;
                if number > self.mask() { Err(self.too_large(object)) } else { Ok(number) }
            }
            Family::Signed => {
                let bits = object.extract::<i64>().map_err(wrong("int"))?.cast_unsigned();
                if self.widened(bits & self.mask()) == bits.cast_signed() {
                    Ok(bits & self.mask())
                } else {
                    Err(self.too_large(object))
                }
            }
            Family::Float => {
                let number = object.extract::<f64>().map_err(wrong("float"))?;
                // A type of fewer digits takes the nearest, as in Rust and NumPy.
                Ok(if self.width == 8 { number.to_bits() } else { u64::from((number as f32).to_bits()) })
            }
        }
    }

    fn too_large(self, object: &Bound<'_, PyAny>) -> PyErr {
        PyOverflowError::new_err(format!("{object} is no {}", self.name()))
    }

    /// A signed number of 64 bits, from the bits of this type.
    fn widened(self, bits: u64) -> i64 {
        let unused = 64 - self.width * 8;
        (bits << unused).cast_signed() >> unused
    }

    /// The Python number of some bits.
    pub fn object(self, py: Python<'_>, bits: u64) -> Bound<'_, PyAny> {
        match self.family {
            Family::Unsigned => PyInt::new(py, bits).into_any(),
            Family::Signed => PyInt::new(py, self.widened(bits)).into_any(),
            Family::Float => PyFloat::new(py, self.float(bits)).into_any(),
        }
    }

    fn float(self, bits: u64) -> f64 {
        match u32::try_from(bits) {
            Ok(bits) if self.width == 4 => f64::from(f32::from_bits(bits)),
            _ => f64::from_bits(bits),
        }
    }

    /// Whether it has a fraction, and NaN.
    pub fn is_float(self) -> bool {
        self.family == Family::Float
    }

    /// Whether some bits are NaN, which is no key.
    pub fn is_nan(self, bits: u64) -> bool {
        self.family == Family::Float && self.float(bits).is_nan()
    }

    /// The key of some bits: big-endian, in the order of the numbers.
    pub fn key(self, bits: u64) -> PyResult<Short> {
        let sign = self.sign();
        let ordered = match self.family {
            Family::Unsigned => bits,
            Family::Signed => bits ^ sign,
            Family::Float if self.is_nan(bits) => {
                return Err(PyValueError::new_err("nan has no place in any order: it cannot be a key"));
            }
            // 0.0 and -0.0 are equal, so they are one key.
            Family::Float if bits == sign => sign,
            Family::Float if bits & sign == 0 => bits ^ sign,
            Family::Float => !bits & self.mask(),
        };
        let mut short = Short { bytes: [0; 8], len: self.width };
        short.bytes[..self.width].copy_from_slice(&ordered.to_be_bytes()[8 - self.width..]);
        Ok(short)
    }

    /// The value of some bits: little-endian.
    pub fn value(self, bits: u64) -> Short {
        Short { bytes: bits.to_le_bytes(), len: self.width }
    }

    /// The bits of the key that stands first, and what follows it. None if there are too few bytes.
    pub fn take_key(self, from: &[u8]) -> Option<(u64, &[u8])> {
        let (own, rest) = from.split_at_checked(self.width)?;
        let ordered = own.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        let sign = self.sign();
        let bits = match self.family {
            Family::Unsigned => ordered,
            Family::Signed => ordered ^ sign,
            Family::Float if ordered & sign == 0 => !ordered & self.mask(),
            Family::Float => ordered ^ sign,
        };
        Some((bits, rest))
    }

    /// The bits of a value. None if it has another width.
    pub fn value_bits(self, bytes: &[u8]) -> Option<u64> {
        let bits = || bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        match <[u8; 8]>::try_from(bytes) {
            Ok(eight) => (self.width == 8).then(|| u64::from_le_bytes(eight)),
            Err(_) => (bytes.len() == self.width).then(bits),
        }
    }

    /// The bits of a number as memory has it, in buffers and in Arrow's columns. REQUIRES: `bytes` has its
    /// width.
    pub fn native_bits(self, bytes: &[u8]) -> u64 {
        if let Ok(eight) = bytes.try_into() {
            u64::from_ne_bytes(eight)
        } else if let Ok(four) = bytes.try_into() {
            u64::from(u32::from_ne_bytes(four))
        } else if let Ok(two) = bytes.try_into() {
            u64::from(u16::from_ne_bytes(two))
        } else {
            u64::from(bytes[0])
        }
    }

    /// A column of numbers as memory has them, encoded: what `key` or `value` makes of each. None if they
    /// have to be looked at one by one.
    pub fn column(self, native: &[u8], is_key: bool) -> Option<Vec<u8>> {
        if !is_key {
            return cfg!(target_endian = "little").then(|| native.to_vec());
        }
        match (self.family, self.width) {
            (Family::Float, _) => None,
            (_, 8) => {
                Some(big_endian(native, |eight| (u64::from_ne_bytes(eight) ^ self.flip()).to_be_bytes()))
            }
            (_, 4) => {
                let flip = u32::try_from(self.flip()).ok()?;
                Some(big_endian(native, |four| (u32::from_ne_bytes(four) ^ flip).to_be_bytes()))
            }
            _ => None,
        }
    }

    /// The bits in which a whole number and its key differ.
    fn flip(self) -> u64 {
        if self.family == Family::Signed { self.sign() } else { 0 }
    }

    /// Adds a number to those of a column in memory.
    pub fn push_native(self, bits: u64, column: &mut Vec<u8>) {
        let bytes = bits.to_ne_bytes();
        let low =
            if cfg!(target_endian = "little") { &bytes[..self.width] } else { &bytes[8 - self.width..] };
        column.extend_from_slice(low);
    }
}

/// What `f` makes of each number of `N` bytes: a loop that the compiler can do for several at once.
fn big_endian<const N: usize>(native: &[u8], f: impl Fn([u8; N]) -> [u8; N]) -> Vec<u8> {
    let mut keys = vec![0; native.len()];
    let (from, to) = (native.as_chunks::<N>().0, keys.as_chunks_mut::<N>().0);
    to.iter_mut().zip(from).for_each(|(key, &number)| *key = f(number));
    keys
}
