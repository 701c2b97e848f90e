//! Savepoints: places in a write transaction to which it can return.
//!
//! A savepoint holds how far each buffer had come. It is good as long as the buffers' history leads through
//! it. Rolling back to an earlier one ends those that were set after that: what they describe may have been
//! made anew in another form since. The transaction knows the serial numbers of the good ones.

mod txn;

use super::buffer::Mark;
use super::tables::Changes;
use crate::base::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place in a transaction to which it can return. See
/// [`WriteTxn::rollback_to`](crate::WriteTxn::rollback_to).
///
/// ```
/// # let path = std::env::temp_dir().join(format!("azekura-doc-t-savepoint-{}.azk", std::process::id()));
/// # use azekura::{Db, Options, TableKind};
/// # let db = Db::open(&path, Options::new())?;
/// # let t = db.table("t", TableKind::Ordered)?;
/// let mut txn = db.write();
/// txn.put(&t, "order", "4711")?;
/// let before = txn.savepoint();
/// txn.put(&t, "gift", "yes")?;
/// txn.rollback_to(&before)?;
/// txn.commit()?;
/// assert!(t.contains("order")? && !t.contains("gift")?);
/// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
/// # Ok::<(), azekura::Error>(())
/// ```
pub struct Savepoint {
    /// The transaction's number, and its own within that.
    txn: u64,
    serial: u64,
    marks: Vec<(u32, Mark)>,
    tables: Option<Arc<Changes>>,
}

/// Which savepoints of a transaction are good.
#[derive(Default)]
pub(super) struct Savepoints {
    /// A number that tells this transaction from all others. Drawn with the first savepoint.
    txn: u64,
    /// The serial number of the next one. None is given twice.
    next: u64,
    /// The serial numbers of those that were not rolled past, as ranges in ascending order.
    good: Vec<Range<u64>>,
}

impl Savepoints {
    /// The transaction and the serial number of a new savepoint.
    fn add(&mut self) -> (u64, u64) {
        static TXNS: AtomicU64 = AtomicU64::new(1);
        if self.txn == 0 {
            self.txn = TXNS.fetch_add(1, Ordering::Relaxed);
        }
        let serial = self.next;
        self.next += 1;
        match self.good.last_mut() {
            Some(last) if last.end == serial => last.end = self.next,
            _ => self.good.push(serial..self.next),
        }
        (self.txn, serial)
    }

    /// Forgets the savepoints that were set after this one. An error if it is not good itself.
    fn back_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        let refuse = |detail: &str| Err(Error::Invalid { detail: detail.into() });
        if savepoint.txn != self.txn {
            return refuse("the savepoint is of another transaction");
        }
        let Some(i) = self.good.iter().position(|r| r.contains(&savepoint.serial)) else {
            return refuse(
                "the savepoint is not there any more: the transaction was rolled back to an earlier one",
            );
        };
        self.good.truncate(i + 1);
        self.good[i].end = savepoint.serial + 1;
        Ok(())
    }
}
