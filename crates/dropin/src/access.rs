//! What a call does to records. It is done in the transaction under way, if there is one, else by commits of
//! its own.

use crate::errors::{NOT_WRITER, Outcome};
use crate::open::Open;
use azekura::{Cursor, WriteTxn};

/// A batch is committed when this much was written, so that it fits into memory.
const BATCH_BYTES: usize = 4 << 20;

/// The records of an open database.
pub(crate) struct Access<'a> {
    pub(crate) open: &'a Open,
    writes: Writes<'a>,
    /// Whether it may have written something that no cursor knows of.
    pub(crate) untold: bool,
}

/// Where writes go.
enum Writes<'a> {
    /// Each is a commit.
    Alone,
    /// To the caller's transaction.
    Outer(&'a mut WriteTxn),
    /// To a transaction of this access, which is committed when it has so many bytes, and by `finish`.
    Batch { txn: Box<WriteTxn>, bytes: usize, bytes_max: usize },
}

impl<'a> Access<'a> {
    /// Each write is a commit, unless the caller has begun a transaction.
    pub(crate) fn new(open: &'a Open, outer: Option<&'a mut WriteTxn>) -> Access<'a> {
        Access { open, writes: outer.map_or(Writes::Alone, Writes::Outer), untold: false }
    }

    /// As `new`, for many writes. If `atomic`, all of them are one commit of this access.
    pub(crate) fn batch(open: &'a Open, outer: Option<&'a mut WriteTxn>, atomic: bool) -> Access<'a> {
        let bytes_max = if atomic { usize::MAX } else { BATCH_BYTES };
        let own = || Writes::Batch { txn: Box::new(open.begin(None)), bytes: 0, bytes_max };
        Access { open, writes: outer.map_or_else(own, Writes::Outer), untold: false }
    }

    /// Commits what is left of a batch.
    pub(crate) fn finish(self) -> Outcome<()> {
        match self.writes {
            Writes::Batch { txn, .. } => Ok(txn.commit()?),
            Writes::Alone | Writes::Outer(_) => Ok(()),
        }
    }

    fn txn(&self) -> Option<&WriteTxn> {
        match &self.writes {
            Writes::Alone => None,
            Writes::Outer(txn) => Some(txn),
            Writes::Batch { txn, .. } => Some(txn),
        }
    }

    fn txn_mut(&mut self) -> Option<&mut WriteTxn> {
        match &mut self.writes {
            Writes::Alone => None,
            Writes::Outer(txn) => Some(txn),
            Writes::Batch { txn, .. } => Some(txn),
        }
    }

    /// What `f` makes of a value; none if there is no such record.
    pub(crate) fn get_with<T>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> T) -> Outcome<Option<T>> {
        let (mut f, mut out) = (Some(f), None);
        self.show(key, &mut |value| out = f.take().map(|f| f(value)))?;
        Ok(out)
    }

    /// Calls `f` with the value of a key, if there is one. It is compiled once, not for each `f`.
    fn show(&self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Outcome<()> {
        match self.txn() {
            Some(txn) => txn.get_with(&self.open.table, key, f)?,
            None => self.open.table.get_with(key, f)?,
        };
        Ok(())
    }

    /// A copy of a value.
    pub(crate) fn get(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Writes a record.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.room(key.len() + value.len())?;
        let table = &self.open.table;
        match self.txn_mut() {
            Some(txn) => txn.put(table, key, value)?,
            None => table.put(key, value)?,
        }
        Ok(())
    }

    /// Removes a record.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        self.room(key.len())?;
        let table = &self.open.table;
        match self.txn_mut() {
            Some(txn) => txn.remove(table, key)?,
            None => table.remove(key)?,
        }
        Ok(())
    }

    /// Removes all records.
    pub(crate) fn clear(&mut self) -> Outcome<()> {
        self.writable()?;
        self.untold = true;
        let table = &self.open.table;
        match self.txn_mut() {
            Some(txn) => txn.clear(table)?,
            None => table.clear()?,
        }
        Ok(())
    }

    /// A cursor over the records as they are now.
    pub(crate) fn cursor(&self) -> Outcome<Cursor> {
        Ok(match self.txn() {
            Some(txn) => txn.cursor(&self.open.table)?,
            None => self.open.table.cursor()?,
        })
    }

    /// How many records there are.
    pub(crate) fn count(&self) -> Outcome<i64> {
        let count = match self.txn() {
            Some(txn) => txn.count(&self.open.table)?,
            None => self.open.table.count()?,
        };
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn writable(&self) -> Outcome<()> {
        if self.open.writer { Ok(()) } else { Err(NOT_WRITER) }
    }

    /// Before a write: commits a batch that is full.
    fn room(&mut self, more: usize) -> Outcome<()> {
        self.writable()?;
        self.untold = true;
        if let Writes::Batch { txn, bytes, bytes_max } = &mut self.writes {
            *bytes = bytes.saturating_add(more);
            if *bytes > *bytes_max {
                *bytes = more;
                let full = std::mem::replace(&mut **txn, self.open.begin(None));
                full.commit()?;
                // The new one began before the commit, so it would not see it.
                **txn = self.open.begin(None);
            }
        }
        Ok(())
    }
}
