//! The table handle: every operation as a transaction of its own.

use crate::base::error::{Error, Result};
use crate::base::key::{KeyBuf, TableKind};
use crate::cursor::{Cursor, KeyRange};
use crate::engine::{Batch, BatchPart, Table, within};
use crate::format::block::Tag;
use crate::txn::get::lookup;
use crate::txn::{ValueRef, WriteTxn, check_key};
use crate::values::ahead::ReadAhead;

impl Table {
    /// The table's name; empty if it was dropped.
    pub fn name(&self) -> String {
        let state = self.db.engine.state.load();
        state.table(self.id).map_or(String::new(), |t| t.name.to_string())
    }

    /// The table's kind.
    pub fn kind(&self) -> TableKind {
        self.kind
    }

    /// Calls `f` with the value of a key where it stands, and gives what `f` made of it: the
    /// cheapest way to read.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    #[inline]
    pub fn get_with<T>(&self, key: impl AsRef<[u8]>, f: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let key = key.as_ref();
        let engine = &self.db.engine;
        let state = engine.state.load();
        // After the state is at hand: what it reads stays its own though somebody closes the database
        // meanwhile.
        engine.life.check()?;
        let seq = state.visible();
        let t = self.of(&state)?;
        let mut buf = KeyBuf::new();
        lookup(t, seq, t.kind.sort_key(key, engine.hash_seed, &mut buf), |tag, slot| match tag {
            Tag::Large => engine.read_large(slot.bytes()).map(|v| f(&v)),
            _ => Ok(f(slot.bytes())),
        })?
        .transpose()
    }

    /// The value of a key.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if it cannot be read, `NoSuchTable` if the table was dropped, `Closed`, `Forked`.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Replaces the contents of `out` by the value of a key; false (and `out` empty) if there is
    /// none. Allocates only if the value does not fit.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn get_into(&self, key: impl AsRef<[u8]>, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        Ok(self.get_with(key, |v| out.extend_from_slice(v))?.is_some())
    }

    /// The value of a key without copying it.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn get_ref(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueRef<'static>>> {
        let key = key.as_ref();
        let engine = &self.db.engine;
        let state = engine.state.load_full();
        engine.life.check()?;
        let mut buf = KeyBuf::new();
        let t = self.of(&state)?;
        let sort = t.kind.sort_key(key, engine.hash_seed, &mut buf);
        lookup(t, state.visible(), sort, |tag, slot| match tag {
            Tag::Large => {
                let value = ReadAhead::default().read(&engine.values, slot.bytes())?;
                Ok(ValueRef::large(value, Some(state.clone())))
            }
            // SAFETY: the state goes with the reference.
            _ => Ok(unsafe { ValueRef::new(slot, Some(state.clone())) }),
        })?
        .transpose()
    }

    /// The values of several keys, in their order. Much faster than one by one.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.db.read().get_many(self, keys)
    }

    /// Calls `f` with the place and value of each of several keys, in no particular order.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        f: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.db.read().get_many_with(self, keys, f)
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_with(key, |_| ())?.is_some())
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// `TooLarge`, `ReadOnly`, `NoSpace`, `Io`, `Poisoned`, `NoSuchTable`, `Closed`, `Forked`.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_key(key)?;
        if value.len() >= self.db.engine.config.large_value_bytes {
            let mut w = self.db.write();
            w.put(self, key, value)?;
            return w.commit();
        }
        self.commit_one(key, Tag::Put, value)
    }

    fn commit_one(&self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        let engine = &self.db.engine;
        let mut buf = KeyBuf::new();
        let sort = self.kind.sort_key(key, engine.hash_seed, &mut buf);
        let part = BatchPart::single(self.id, sort.bytes, tag, value);
        let durable = engine.config.durability == super::Durability::Sync;
        let user_bytes = (key.len() + value.len()) as u64;
        let done = engine.commit(Batch { parts: vec![part], durable, user_bytes, ..Batch::default() });
        done.map(|_| ()).map_err(|e| self.named(e))
    }

    /// Sets the values of many keys in one transaction.
    ///
    /// # Errors
    /// As [`put`](Table::put); nothing is written then.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<()> {
        let mut w = self.db.write();
        for (key, value) in records {
            w.put(self, key.as_ref(), value.as_ref())?;
        }
        w.commit()
    }

    /// Removes a key, whether it is there or not.
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        self.commit_one(key, Tag::Tombstone, &[])
    }

    /// Runs an operation that reads before it writes, again as long as others come between.
    fn retry<T>(&self, mut f: impl FnMut(&mut WriteTxn) -> Result<T>) -> Result<T> {
        loop {
            let mut w = self.db.write();
            let out = f(&mut w)?;
            match w.commit() {
                Err(Error::Conflict { .. }) => {}
                other => return other.map(|()| out),
            }
        }
    }

    /// Sets the value of a key only if it is absent; whether it was.
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn add(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.retry(|w| w.add(self, key, value))
    }

    /// Sets the value of a key only if it is present; whether it was.
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn replace(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.retry(|w| w.replace(self, key, value))
    }

    /// Appends to the value of a key; an absent one counts as empty.
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn append(&self, key: impl AsRef<[u8]>, suffix: impl AsRef<[u8]>) -> Result<()> {
        let (key, suffix) = (key.as_ref(), suffix.as_ref());
        self.retry(|w| w.append(self, key, suffix))
    }

    /// Adds to a number (eight bytes, little-endian; absent = 0; sums wrap) and gives the sum.
    ///
    /// # Errors
    /// `WrongType` if the value has not eight bytes; as [`put`](Table::put).
    pub fn increment(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        let key = key.as_ref();
        self.retry(|w| w.increment(self, key, delta))
    }

    /// Replaces the value of a key only if it is what is expected (none = absent); whether it was.
    /// A new value of none removes the key.
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let key = key.as_ref();
        self.retry(|w| w.compare_and_swap(self, key, expected, new))
    }

    /// Replaces the value of a key by what `f` makes of it; none = absent, before and after. `f` is run again
    /// if another commit comes between. It may use the database, but not write to what it is asked to change.
    ///
    /// # Errors
    /// As [`put`](Table::put); `Invalid` if `f` has itself committed a change to the key, be it by the delete
    /// of a range.
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut f: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<()> {
        let key = key.as_ref();
        let engine = &*self.db.engine;
        self.retry(|w| {
            let (done, own) = within::watch(engine, || w.update(self, key, &mut f));
            w.set_own_commits(own, self, key);
            done
        })
    }

    /// Removes a key and gives its value.
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.retry(|w| w.take(self, key))
    }

    /// Removes all keys of a range. Ordered tables only.
    ///
    /// # Errors
    /// `WrongType` for a hash table; as [`put`](Table::put).
    pub fn remove_range(&self, range: impl KeyRange) -> Result<()> {
        let mut w = self.db.write();
        w.remove_range(self, range)?;
        w.commit()
    }

    /// Removes all records.
    ///
    /// # Errors
    /// As [`put`](Table::put).
    pub fn clear(&self) -> Result<()> {
        let mut w = self.db.write();
        w.clear(self)?;
        w.commit()
    }

    /// How many records there are. Cheap where runs do not overlap, else a scan.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn count(&self) -> Result<u64> {
        self.db.read().count(self)
    }

    /// A cursor over the table as it is now, before its first record.
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn cursor(&self) -> Result<Cursor> {
        self.db.read().cursor(self)
    }

    /// As [`cursor`](Table::cursor).
    ///
    /// # Errors
    /// As [`get`](Table::get).
    pub fn iter(&self) -> Result<Cursor> {
        self.cursor()
    }

    /// A cursor over the keys of a range, before its first record. Ordered tables only.
    ///
    /// # Errors
    /// `WrongType` for a hash table; as [`get`](Table::get).
    pub fn range(&self, range: impl KeyRange) -> Result<Cursor> {
        self.db.read().range(self, range)
    }

    /// A cursor over the keys that begin with `prefix`. Ordered tables only.
    ///
    /// # Errors
    /// As [`range`](Table::range).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        self.db.read().prefix(self, prefix)
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({:?}, {:?})", self.name(), self.kind)
    }
}
