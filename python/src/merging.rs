//! Merges of values: what changes a value without reading it.

use crate::codec::Codec;
use crate::numbers::Number;
use crate::table::Table;
use azekura::{ELEMENT_BYTES_MAX, Merge};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

impl Table {
    /// Puts bytes or text behind a value that is not read.
    fn merge_append(&self, key: &Bound<'_, PyAny>, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        self.expect_value("merge with \"append\"", &[Codec::Bytes, Codec::Str])?;
        let (key_bytes, bytes) = (self.keys.key(key)?, self.values.value(bytes)?);
        let (k, merge) = (key_bytes.as_ref(), Merge::Append(bytes.as_ref()));
        self.writes(key.py(), |t| t.merge(k, merge), |txn, t| txn.merge(t, k, merge))
    }

    /// Unites a set that is not read with elements of one length.
    fn merge_union(&self, key: &Bound<'_, PyAny>, elements: &Bound<'_, PyAny>) -> PyResult<()> {
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
        let Some(width) = width else { return Ok(()) };
        let key_bytes = self.keys.key(key)?;
        let (k, merge) = (key_bytes.as_ref(), Merge::Union { width, elements: &all });
        self.writes(key.py(), |t| t.merge(k, merge), |txn, t| txn.merge(t, k, merge))
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
        match (operator, number) {
            ("append", Some(bytes)) => return self.merge_append(key, bytes),
            ("union", Some(elements)) => return self.merge_union(key, elements),
            ("append" | "union", None) => {
                return Err(PyTypeError::new_err(format!("merge with {operator:?} needs what is merged")));
            }
            _ => {}
        }
        let of = match self.values {
            Codec::Number(number) if number.width() == 8 => number,
            _ => {
                self.expect_value("merge", &[Codec::Bytes])?;
                Number::INT
            }
        };
        let one = 1i64.into_pyobject(key.py())?.into_any();
        let merge = of.merge(operator, number.unwrap_or(&one))?;
        let bytes = self.keys.key(key)?;
        let k = bytes.as_ref();
        self.writes(key.py(), |t| t.merge(k, merge), |txn, t| txn.merge(t, k, merge))
    }
}
