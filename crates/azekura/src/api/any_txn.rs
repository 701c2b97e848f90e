//! The transactions in which an index is read, as one type.

use crate::base::error::Result;
use crate::cursor::{Cursor, Limits};
use crate::engine::Table;
use crate::txn::{ReadTxn, WriteTxn};

/// A transaction in which an index is read.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-anytxn-{}.azk", std::process::id()));
/// use azekura::{AnyTxn, Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// let by_city = t.create_index("by_city", "v")?;
/// let mut txn = db.write();
/// txn.put(&t, "ada", "London")?;
/// assert_eq!(by_city.read_in(AnyTxn::Write(&txn)).get(&["London".into()])?.count(), 1);
/// # drop((txn, by_city, t)); db.close()?; std::fs::remove_file(&path).unwrap(); Ok::<(), azekura::Error>(())
/// ```
#[derive(Clone, Copy)]
pub enum AnyTxn<'t> {
    /// A snapshot.
    Read(&'t ReadTxn),
    /// One that sees its own writes. What it reads by an index counts as read.
    Write(&'t WriteTxn),
}

impl<'t> From<&'t ReadTxn> for AnyTxn<'t> {
    fn from(txn: &'t ReadTxn) -> AnyTxn<'t> {
        AnyTxn::Read(txn)
    }
}

impl<'t> From<&'t WriteTxn> for AnyTxn<'t> {
    fn from(txn: &'t WriteTxn) -> AnyTxn<'t> {
        AnyTxn::Write(txn)
    }
}

impl<'t> From<&'t mut WriteTxn> for AnyTxn<'t> {
    fn from(txn: &'t mut WriteTxn) -> AnyTxn<'t> {
        AnyTxn::Write(txn)
    }
}

/// Where the records are read that an index names: in a snapshot of their own, or in a transaction.
pub trait Reads {
    /// As a transaction.
    fn txn(&self) -> AnyTxn<'_>;
}

impl Reads for Box<ReadTxn> {
    fn txn(&self) -> AnyTxn<'_> {
        AnyTxn::Read(self)
    }
}

impl Reads for AnyTxn<'_> {
    fn txn(&self) -> AnyTxn<'_> {
        *self
    }
}

impl AnyTxn<'_> {
    pub(super) fn get(self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self {
            AnyTxn::Read(txn) => txn.get(table, key),
            AnyTxn::Write(txn) => txn.get(table, key),
        }
    }

    pub(super) fn limited(self, table: &Table, limits: Limits) -> Result<Cursor> {
        match self {
            AnyTxn::Read(txn) => txn.limited(table, limits),
            AnyTxn::Write(txn) => txn.limited(table, limits),
        }
    }

    pub(super) fn seq(self) -> u64 {
        match self {
            AnyTxn::Read(txn) => txn.snapshot.seq(),
            AnyTxn::Write(txn) => txn.snapshot().snapshot.seq(),
        }
    }
}
