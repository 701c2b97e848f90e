//! Writes of a transaction that depend on what is there.

use super::write::{WriteTxn, check_key};
use crate::base::error::{Error, Result};
use crate::engine::Table;

impl WriteTxn {
    /// Sets the value of a key only if it is absent; whether it was.
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put) and [`get`](WriteTxn::get).
    pub fn add(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_key(key)?;
        let absent = !self.contains(table, key)?;
        if absent {
            self.put(table, key, value)?;
        }
        Ok(absent)
    }

    /// Sets the value of a key only if it is present; whether it was.
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put) and [`get`](WriteTxn::get).
    pub fn replace(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_key(key)?;
        let present = self.contains(table, key)?;
        if present {
            self.put(table, key, value)?;
        }
        Ok(present)
    }

    /// Appends to the value of a key; an absent one counts as empty.
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put) and [`get`](WriteTxn::get).
    pub fn append(&mut self, table: &Table, key: impl AsRef<[u8]>, suffix: impl AsRef<[u8]>) -> Result<()> {
        let (key, suffix) = (key.as_ref(), suffix.as_ref());
        check_key(key)?;
        let mut value = self.get(table, key)?.unwrap_or_default();
        value.extend_from_slice(suffix);
        self.put(table, key, &value)
    }

    /// Adds to a number and gives the sum. Numbers are eight bytes, little-endian, two's
    /// complement; an absent key counts as zero; sums wrap around.
    ///
    /// # Errors
    /// `WrongType` if the value has not eight bytes; as [`put`](WriteTxn::put) and
    /// [`get`](WriteTxn::get).
    pub fn increment(&mut self, table: &Table, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        let key = key.as_ref();
        check_key(key)?;
        let old = match self.with(table, key, |v| <[u8; 8]>::try_from(v).map_err(|_| v.len()))? {
            None => 0,
            Some(Ok(b)) => i64::from_le_bytes(b),
            Some(Err(n)) => {
                let detail = format!("a number has 8 bytes, the value of the key has {n}");
                return Err(Error::WrongType { detail });
            }
        };
        let new = old.wrapping_add(delta);
        self.put(table, key, &new.to_le_bytes())?;
        Ok(new)
    }

    /// Replaces the value of a key only if it is what is expected (none = absent); whether it was.
    /// A new value of none removes the key.
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put) and [`get`](WriteTxn::get).
    pub fn compare_and_swap(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let key = key.as_ref();
        check_key(key)?;
        let equal = self.with(table, key, |v| expected == Some(v))?.unwrap_or(expected.is_none());
        if equal {
            self.set(table, key, new)?;
        }
        Ok(equal)
    }

    fn set(&mut self, table: &Table, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        match value {
            Some(value) => self.put(table, key, value),
            None => self.remove(table, key),
        }
    }

    /// Replaces the value of a key by what `f` makes of it; none = absent, before and after.
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put) and [`get`](WriteTxn::get).
    pub fn update(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        f: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        let old = self.get(table, key)?;
        let new = f(old.as_deref());
        if new.is_some() || old.is_some() { self.set(table, key, new.as_deref()) } else { Ok(()) }
    }

    /// Removes a key and gives its value.
    ///
    /// # Errors
    /// As [`get`](WriteTxn::get).
    pub fn take(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        check_key(key)?;
        let old = self.get(table, key)?;
        if old.is_some() {
            self.remove(table, key)?;
        }
        Ok(old)
    }
}
