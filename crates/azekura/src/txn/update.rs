//! Writes of a transaction that depend on what is there.

use super::write::{WriteTxn, check_bounds, check_key};
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::cursor::{KeyRange, Limits, Records, Way};
use crate::engine::Table;
use crate::format::expiry::Expiry;
use std::ops::Bound;

/// A pop that has to pass over more deleted records than this removes their range with the record. Later pops
/// go past them by one seek. This is not done each time: a range is more work than a key, and conflicts with
/// all transactions that have read single keys of the table.
const PASSED_MAX: usize = 256;

impl WriteTxn {
    /// Sets the value of a key only if the key is absent. True if it was.
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

    /// Sets the value of a key only if the key is present. True if it was.
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
        let old = self.get_expiring(table, key, |value, expiry| (value.to_vec(), expiry))?;
        let (mut value, expiry) = old.map_or((Vec::new(), None), |(value, expiry)| (value, Some(expiry)));
        value.extend_from_slice(suffix);
        self.put_changed(table, key, &value, expiry)
    }

    /// Sets the value of a key that had one until this time, or had none.
    pub(super) fn put_changed(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        was: Option<Expiry>,
    ) -> Result<()> {
        match was {
            Some(expiry) if expiry != Expiry::NEVER || self.buffer(table)?.ttl_ms > 0 => {
                self.put_expiring(table, key, value, expiry)
            }
            _ => self.put(table, key, value),
        }
    }

    /// Adds to a number and gives the sum. Numbers are eight bytes, little-endian, in two's complement. An
    /// absent key counts as zero. Sums wrap around.
    ///
    /// # Errors
    /// `WrongType` if the value has not eight bytes; as [`put`](WriteTxn::put) and
    /// [`get`](WriteTxn::get).
    pub fn increment(&mut self, table: &Table, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        let key = key.as_ref();
        check_key(key)?;
        let number = |v: &[u8], expiry| (<[u8; 8]>::try_from(v).map_err(|_| v.len()), expiry);
        let (old, expiry) = match self.get_expiring(table, key, number)? {
            None => (0, None),
            Some((Ok(b), expiry)) => (i64::from_le_bytes(b), Some(expiry)),
            Some((Err(n), _)) => {
                let detail = format!("a number has 8 bytes, the value of the key has {n}");
                return Err(Error::WrongType { detail });
            }
        };
        let new = old.wrapping_add(delta);
        self.put_changed(table, key, &new.to_le_bytes(), expiry)?;
        Ok(new)
    }

    /// Replaces the value of a key only if it is what is expected, where none stands for an absent key. True
    /// if it was. A new value of none removes the key.
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
        let equal = self.get_with(table, key, |v| expected == Some(v))?.unwrap_or(expected.is_none());
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

    /// Replaces the value of a key by what `f` makes of it. None stands for an absent key, before and after.
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put) and [`get`](WriteTxn::get).
    pub fn update(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        f: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<()> {
        self.try_update(table, key.as_ref(), |old| Ok(f(old)))
    }

    /// As [`update`](WriteTxn::update), with an `f` that may fail: then nothing is written.
    ///
    /// # Errors
    /// What `f` fails with, and as [`update`](WriteTxn::update).
    pub fn try_update(
        &mut self,
        table: &Table,
        key: &[u8],
        f: impl FnOnce(Option<&[u8]>) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        check_key(key)?;
        let old = self.get_expiring(table, key, |value, expiry| (value.to_vec(), expiry))?;
        match (f(old.as_ref().map(|old| old.0.as_slice()))?, old) {
            (Some(new), old) => self.put_changed(table, key, &new, old.map(|old| old.1)),
            (None, Some(_)) => self.remove(table, key),
            (None, None) => Ok(()),
        }
    }

    /// Removes a key and gives its value.
    ///
    /// # Errors
    /// As [`get`](WriteTxn::get).
    pub fn take(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.take_with(table, key.as_ref(), |value| Ok(value.to_vec()))
    }

    /// Removes a key and gives what `f` made of its value. If `f` fails nothing is removed.
    pub(crate) fn take_with<T>(
        &mut self,
        table: &Table,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        check_key(key)?;
        let old = self.get_with(table, key, f)?.transpose()?;
        if old.is_some() {
            self.remove(table, key)?;
        }
        Ok(old)
    }

    /// Removes a key if it is there. True if it was. It costs a get, and the key counts as read, so the
    /// commit may conflict. [`remove`](WriteTxn::remove) reads nothing.
    ///
    /// # Errors
    /// As [`get`](WriteTxn::get).
    pub fn remove_existing(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool> {
        self.take_with(table, key.as_ref(), |_| Ok(())).map(|found| found.is_some())
    }

    /// Removes the first record and gives it. Of a hash table it may be any. For conflicts only the keys up
    /// to it count as read. [`drain`](WriteTxn::drain) is better for many.
    ///
    /// # Errors
    /// As [`get`](WriteTxn::get).
    pub fn pop_first(&mut self, table: &Table) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop_with(table, Way::Forward, |key, value| Ok((key.to_vec(), value.to_vec())))
    }

    /// Removes the last record and gives it, as [`pop_first`](WriteTxn::pop_first) does with the first.
    ///
    /// # Errors
    /// As [`get`](WriteTxn::get).
    pub fn pop_last(&mut self, table: &Table) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop_with(table, Way::Backward, |key, value| Ok((key.to_vec(), value.to_vec())))
    }

    /// Removes the first record in this direction, and gives what `f` made of it. If `f` fails nothing is
    /// removed.
    pub(crate) fn pop_with<T>(
        &mut self,
        table: &Table,
        way: Way,
        f: impl FnOnce(&[u8], &[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        let seen = self.look(table, way, |key, value| Ok((key.to_vec(), f(key, value)?)))?;
        let Some((key, out)) = seen.found else { return Ok(None) };
        // (Salvage knows no parts of a hash table as ranges: its seed may be lost.)
        if seen.passed > PASSED_MAX && table.kind == TableKind::Ordered {
            // Nothing else is in the range.
            self.remove(table, key)?;
            self.remove_keys_alone(table, seen.range)?;
        } else {
            self.remove(table, key)?;
        }
        Ok(Some(out))
    }

    /// Removes the records of a range for which `f` says false, and tells how many. Of a hash table the range
    /// is `..`. `f` sees the table as it was at the beginning of the call.
    ///
    /// # Errors
    /// `WrongType` for a part of a hash table; as [`get`](WriteTxn::get).
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-retain-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let stock = db.table("stock", TableKind::Ordered)?;
    /// let mut txn = db.write();
    /// txn.put(&stock, "apples", "3")?;
    /// txn.put(&stock, "pears", "0")?;
    /// assert_eq!(txn.retain(&stock, .., |_, left| left != b"0")?, 1);
    /// assert!(!txn.contains(&stock, "pears")?);
    /// # drop(txn); drop(stock); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn retain(
        &mut self,
        table: &Table,
        range: impl KeyRange,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        self.try_retain(table, range, |key, value| Ok(f(key, value)))
    }

    /// As `retain`. If `f` fails nothing is removed.
    pub(crate) fn try_retain(
        &mut self,
        table: &Table,
        range: impl KeyRange,
        mut f: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<u64> {
        let mut cursor = self.limited(table, limits_of(table, &range)?)?;
        let mut gone = Vec::new();
        while let Some((key, value)) = cursor.next()? {
            let value = value.bytes()?;
            if !f(key, value)? {
                gone.push(key.to_vec());
            }
        }
        for key in &gone {
            self.remove(table, key)?;
        }
        Ok(gone.len() as u64)
    }

    /// Removes a range and gives what was in it, by an iterator that reads from the table as it was. However
    /// many records there are, they are removed in one step, unless the table has indexes. Of a hash table
    /// the range is `..`.
    ///
    /// # Errors
    /// `WrongType` for a part of a hash table; as [`get`](WriteTxn::get).
    pub fn drain(&mut self, table: &Table, range: impl KeyRange) -> Result<Records> {
        let limits = limits_of(table, &range)?;
        let keys = limits.as_range();
        let cursor = self.limited(table, limits)?;
        self.remove_keys(table, keys)?;
        Ok(cursor.owned())
    }
}

/// The limits of a range. A hash table can be walked through only as a whole.
fn limits_of(table: &Table, range: &impl KeyRange) -> Result<Limits> {
    match (range.start(), range.end()) {
        (Bound::Unbounded, Bound::Unbounded) => Ok(Limits::none()),
        (start, end) => {
            table.expect_ordered("a range other than ..")?;
            check_bounds(start, end)?;
            Ok(Limits::range(start, end))
        }
    }
}
