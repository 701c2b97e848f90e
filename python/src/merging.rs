//! Merges of values: what changes a value without reading it.

use crate::codec::Codec;
use crate::many::undone;
use crate::numbers::Number;
use crate::table::{Table, View};
use azekura::{ELEMENT_BYTES_MAX, Merge};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What is merged into a value.
enum Operand {
    Number(Merge<'static>),
    /// Bytes that are put behind it.
    Suffix(Vec<u8>),
    /// Elements of a set, of one length.
    Elements {
        width: usize,
        bytes: Vec<u8>,
    },
    /// No elements: nothing happens.
    Nothing,
}

impl Operand {
    fn merge(&self) -> Option<Merge<'_>> {
        match self {
            Operand::Number(merge) => Some(*merge),
            Operand::Suffix(bytes) => Some(Merge::Append(bytes)),
            Operand::Elements { width, bytes } => Some(Merge::Union { width: *width, elements: bytes }),
            Operand::Nothing => None,
        }
    }
}

impl Table {
    /// What Python's operand is for an operator; none stands for its usual one.
    fn operand(&self, operator: &str, given: Option<&Bound<'_, PyAny>>, py: Python<'_>) -> PyResult<Operand> {
        match (operator, given) {
            ("append", Some(bytes)) => {
                self.expect_value("merge with \"append\"", &[Codec::Bytes, Codec::Str])?;
                Ok(Operand::Suffix(self.values.value(bytes)?.as_ref().to_vec()))
            }
            ("union", Some(elements)) => self.elements(elements),
            ("append" | "union", None) => {
                Err(PyTypeError::new_err(format!("merge with {operator:?} needs what is merged")))
            }
            _ => {
                let of = match self.values {
                    Codec::Number(number) if number.width() == 8 => number,
                    _ => {
                        self.expect_value("merge", &[Codec::Bytes])?;
                        Number::INT
                    }
                };
                let one = 1i64.into_pyobject(py)?.into_any();
                Ok(Operand::Number(of.merge(operator, given.unwrap_or(&one))?))
            }
        }
    }

    /// The elements of a set, of one length.
    fn elements(&self, elements: &Bound<'_, PyAny>) -> PyResult<Operand> {
        self.expect_value("merge with \"union\"", &[Codec::Bytes])?;
        let (mut all, mut width) = (Vec::new(), None);
        for element in elements.try_iter()? {
            let element = element?;
            let bytes = self.values.value(&element)?;
            let bytes = bytes.as_ref();
            if *width.get_or_insert(bytes.len()) != bytes.len()
                || !(1..=ELEMENT_BYTES_MAX).contains(&bytes.len())
            {
                let text = format!("elements are of one length, of 1 to {ELEMENT_BYTES_MAX} bytes");
                return Err(PyValueError::new_err(text));
            }
            all.extend_from_slice(bytes);
        }
        Ok(width.map_or(Operand::Nothing, |width| Operand::Elements { width, bytes: all }))
    }

    /// Python's pairs of keys and operands.
    fn operands(
        &self,
        records: &Bound<'_, PyAny>,
        operands: Option<&Bound<'_, PyAny>>,
        operator: &str,
    ) -> PyResult<Vec<(Vec<u8>, Operand)>> {
        let py = records.py();
        let pairs = match operands {
            Some(operands) => {
                let strict = PyDict::new(py);
                strict.set_item("strict", true)?;
                py.import("builtins")?.call_method("zip", (records, operands), Some(&strict))?
            }
            None if records.hasattr("items")? => records.call_method0("items")?,
            None => records.clone(),
        };
        let mut out = Vec::new();
        for pair in pairs.try_iter()? {
            let (key, given): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            let operand = self.operand(operator, Some(&given), py)?;
            out.push((self.keys.key(&key)?.as_ref().to_vec(), operand));
        }
        Ok(out)
    }
}

#[pymethods]
impl Table {
    /// Changes a number without reading it, so this never conflicts with others: "add" to it, make it the
    /// "min" or the "max" of both, or set the bits of an integer ("or"). An absent key gets the number as its
    /// value. The values are int, u64 or float, or eight bytes, which are an int, little-endian. Other values
    /// can be lists, to which bytes or text are put ("append"), or sets of bytes of one length each ("union",
    /// with a sequence of these).
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> highest = db.table("highest", key=str, value=float)
    /// >>> highest.merge("oslo", 17.5, "max"), highest.merge("oslo", 3.0, "max"), highest["oslo"]
    /// (None, None, 17.5)
    /// >>> db.close()
    #[pyo3(signature = (key, number = None, operator = "add"))]
    fn merge(
        &self,
        key: &Bound<'_, PyAny>,
        number: Option<&Bound<'_, PyAny>>,
        operator: &str,
    ) -> PyResult<()> {
        let operand = self.operand(operator, number, key.py())?;
        let bytes = self.keys.key(key)?;
        let Some(merge) = operand.merge() else { return Ok(()) };
        let k = bytes.as_ref();
        self.writes(key.py(), |t| t.merge(k, merge), |txn, t| txn.merge(t, k, merge))
    }

    /// Changes the values of many keys in one transaction, as `merge` changes one; none if there is an error.
    /// Takes a dict, pairs, or two sequences. If keys are equal all count.
    ///
    /// >>> import azekura, os, tempfile
    /// >>> db = azekura.Database(os.path.join(tempfile.mkdtemp(), "t.azk"))
    /// >>> words = db.table("words", "hash", key=str, value=int)
    /// >>> words.merge_many((word, 1) for word in "the cat and the dog".split())
    /// >>> words.merge_many({"cat": 7, "dog": 7}, operator="max")
    /// >>> words.get_many(["the", "cat", "dog", "cow"])
    /// [2, 7, 7, None]
    /// >>> db.close()
    #[pyo3(signature = (records, operands = None, operator = "add"))]
    fn merge_many(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyAny>,
        operands: Option<&Bound<'_, PyAny>>,
        operator: &str,
    ) -> PyResult<()> {
        self.expect_writable()?;
        let given = self.operands(records, operands, operator)?;
        let merges = || given.iter().filter_map(|(key, operand)| Some((key.as_slice(), operand.merge()?)));
        let View::Write(txn) = &self.view else {
            return self.writes(py, |t| t.merge_many(merges()), |_, _| Ok(()));
        };
        let before = py.detach(|| txn.with(|txn| Ok(txn.savepoint())))?;
        let all = |txn: &mut azekura::WriteTxn, t: &azekura::Table| {
            merges().try_for_each(|(key, merge)| txn.merge(t, key, merge))
        };
        self.writes(py, |_| Ok(()), all).map_err(|error| undone(py, txn, &before, error))
    }
}
