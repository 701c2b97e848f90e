//! Setting savepoints, and returning to them.

use super::Savepoint;
use crate::base::error::Result;
use crate::txn::write::WriteTxn;

impl WriteTxn {
    /// Remembers the writes so far, and what became of tables, to return to them with
    /// [`rollback_to`](WriteTxn::rollback_to).
    pub fn savepoint(&mut self) -> Savepoint {
        let (txn, serial) = self.savepoints.add();
        let marks = self.buffers.iter_mut().map(|b| (b.table, b.mark())).collect();
        let tables = self.tables.as_ref().map(|own| own.changes.clone());
        Savepoint { txn, serial, marks, tables }
    }

    /// Undoes the writes since a savepoint, and what was done with tables. The savepoint can be used again;
    /// those set after it are gone.
    ///
    /// # Errors
    /// `Invalid` if the savepoint is of another transaction, or gone since the transaction was rolled back to
    /// an earlier one. Nothing is undone then.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-savepoint-{}.azk", std::process::id()));
    /// use azekura::{Db, Error, Options, TableKind};
    /// let db = Db::open(&path, Options::new())?;
    /// let t = db.table("t", TableKind::Ordered)?;
    /// let mut txn = db.write();
    /// txn.put(&t, b"a", b"1")?;
    /// let first = txn.savepoint();
    /// txn.put(&t, b"b", b"2")?;
    /// let second = txn.savepoint();
    /// txn.rollback_to(&first)?;
    /// assert_eq!(txn.get(&t, b"b")?, None);
    /// assert!(matches!(txn.rollback_to(&second), Err(Error::Invalid { .. })));
    /// txn.commit()?;
    /// # drop(t); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.db.engine.life.check()?;
        self.savepoints.back_to(savepoint)?;
        if let Some(own) = &mut self.tables {
            // Names that were looked up stay so: what they stood for may have been told.
            let changes = savepoint.tables.clone().unwrap_or_default();
            let undone = std::mem::replace(&mut own.changes, changes);
            own.unmake(&undone);
        }
        for buffer in &mut self.buffers {
            match savepoint.marks.iter().find(|(table, _)| *table == buffer.table) {
                Some((_, mark)) => buffer.back_to(mark),
                None => *buffer = buffer.anew(),
            }
        }
        self.restore_lifetimes();
        Ok(())
    }
}
