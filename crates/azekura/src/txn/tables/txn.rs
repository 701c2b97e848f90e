//! Making, opening, renaming and dropping tables in a transaction, and how long their records live.

use super::{Changes, missing};
use crate::base::error::{Error, Result};
use crate::base::key::TableKind;
use crate::base::life::Moment;
use crate::engine::state::{State, TableState};
use crate::engine::{Table, conflict_error};
use crate::format::ranges::Range;
use crate::txn::buffer::TableBuffer;
use crate::txn::expiry::lifetime_ms;
use crate::txn::write::WriteTxn;
use std::sync::Arc;
use std::time::Duration;

fn exists(name: &str) -> Error {
    Error::TableExists { name: name.to_owned() }
}

/// All keys of a table.
fn all_keys() -> Range {
    Range { start: Vec::new(), end: None }
}

impl WriteTxn {
    /// Makes a table, which is there when the transaction is committed, with all that it has written to it,
    /// and before that for this transaction alone: for everybody else the handle is one of a table that is
    /// not there ([`Error::NoSuchTable`]). So it stays if the transaction comes to nothing.
    ///
    /// A commit that makes, renames or drops tables, or says how long their records live, is durable,
    /// whatever the transaction's [durability](crate::WriteOptions::durability) is.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-txn-make-{}.azk", std::process::id()));
    /// use azekura::{Db, Options, TableKind};
    /// let db = Db::open(&path, Options::new())?;
    /// let mut txn = db.write();
    /// let born = txn.create_table("born", TableKind::Ordered)?;
    /// txn.put(&born, "ada", "1815")?;
    /// assert!(db.open_table("born").is_err());
    /// txn.commit()?;
    /// assert_eq!(born.get("ada")?.as_deref(), Some(&b"1815"[..]));
    /// # drop(born); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TableExists`, as this transaction sees it; `TooLarge` for a name over 255 bytes, `Invalid` for one
    /// that no table can have, `ReadOnly`, `Closed`, `Forked`. If another transaction makes a table of this
    /// name meanwhile, `Conflict` here or at the commit.
    pub fn create_table(&mut self, name: &str, kind: TableKind) -> Result<Table> {
        self.db.engine.table_changer().check_new_name(name)?;
        if self.table_named(name)?.is_some() {
            return Err(exists(name));
        }
        let id = self.db.engine.table_changer().reserve()?;
        self.begin_made(id)?;
        let name: Arc<str> = name.into();
        let changes = self.changes();
        changes.names.insert(name.clone(), Some((id, kind)));
        changes.made.insert(id, (kind, name.clone()));
        Ok(Table { db: self.db.clone(), id, kind, name })
    }

    /// Adds the buffer of a table that this transaction makes.
    pub(in crate::txn) fn begin_made(&mut self, id: u32) -> Result<()> {
        let mut buffer = TableBuffer::new(id, self.db.engine.memory.pool.clone());
        buffer.seen = self.db.engine.life.now()?;
        buffer.remove_range(all_keys());
        self.buffers.push(buffer);
        self.note_place(id);
        Ok(())
    }

    /// The table of a name, made in this transaction if there is none.
    ///
    /// # Errors
    /// `WrongType` if it is of the other kind; as [`create_table`](WriteTxn::create_table) and
    /// [`open_table`](WriteTxn::open_table).
    pub fn table(&mut self, name: &str, kind: TableKind) -> Result<Table> {
        match self.table_named(name)? {
            None => self.create_table(name, kind),
            Some((_, found)) if found != kind => {
                let detail = format!("table {name:?} is of kind {found:?}, not {kind:?}");
                Err(Error::WrongType { detail })
            }
            Some((id, kind)) => Ok(Table { db: self.db.clone(), id, kind, name: name.into() }),
        }
    }

    /// The table of a name as this transaction sees it, with what it has made, renamed and dropped itself.
    /// For others the table may have another name. That the name is this table's counts as read: the commit
    /// conflicts if another transaction has changed it.
    ///
    /// # Errors
    /// `NoSuchTable`; `Conflict` if the table was made after this transaction's snapshot; `Closed`, `Forked`.
    pub fn open_table(&mut self, name: &str) -> Result<Table> {
        let (id, kind) = self.table_named(name)?.ok_or_else(|| missing(name))?;
        Ok(Table { db: self.db.clone(), id, kind, name: name.into() })
    }

    /// Gives a table another name; handles stay good. What others write to the table meanwhile is no matter.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-txn-rename-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// # db.table("prices", TableKind::Ordered)?.put("tea", "3")?;
    /// let mut txn = db.write();                          // new prices in place of the old ones, at once
    /// let new = txn.create_table("prices of today", TableKind::Ordered)?;
    /// txn.put(&new, "tea", "4")?;
    /// txn.drop_table("prices")?;
    /// txn.rename_table("prices of today", "prices")?;
    /// txn.commit()?;
    /// assert_eq!(db.open_table("prices")?.get("tea")?.as_deref(), Some(&b"4"[..]));
    /// # drop(new); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoSuchTable`, `TableExists`, as [`create_table`](WriteTxn::create_table). If another transaction
    /// gives one of the names to another table meanwhile, or drops this one, `Conflict` here or at the
    /// commit.
    pub fn rename_table(&mut self, from: &str, to: &str) -> Result<()> {
        self.db.engine.table_changer().check_new_name(to)?;
        let (id, kind) = self.table_named(from)?.ok_or_else(|| missing(from))?;
        if self.table_named(to)?.is_some() {
            return Err(exists(to));
        }
        let to: Arc<str> = to.into();
        let changes = self.changes();
        changes.names.insert(from.into(), None);
        changes.names.insert(to.clone(), Some((id, kind)));
        match changes.made.get_mut(&id) {
            Some((_, name)) => *name = to,
            None => drop(changes.renamed.insert(id, to)),
        }
        Ok(())
    }

    /// Removes a table with all its records and its indexes. From now on this transaction has no such table,
    /// and others have none from the commit on.
    ///
    /// What others write to the table meanwhile goes with it, unless this transaction has read it, or is one
    /// of [`Isolation::Snapshot`](crate::Isolation::Snapshot): then the commit conflicts, as that of
    /// [`clear`](WriteTxn::clear) does.
    ///
    /// # Errors
    /// `NoSuchTable`, `ReadOnly`, `Closed`, `Forked`. If another transaction renames or drops the table
    /// meanwhile, `Conflict` here or at the commit.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        self.db.engine.check_writable()?;
        let table = self.open_table(name)?;
        // As for `clear`, so that what was written to it is nowhere any more.
        self.remove_keys(&table, all_keys())?;
        if let Some(i) = self.place_of(table.id) {
            // The next write looks for the table.
            self.buffers[i].seen = Moment::default();
        }
        let changes = self.changes();
        changes.names.insert(name.into(), None);
        changes.renamed.remove(&table.id);
        changes.lives.remove(&table.id);
        if changes.made.remove(&table.id).is_some() {
            changes.unmade.insert(table.id);
        } else {
            changes.dropped.insert(table.id);
        }
        Ok(())
    }

    /// Says how long a table's records live from now on if the put does not say otherwise: see
    /// [`Table::set_usual_ttl`]. It holds for what this transaction puts after this call, also in a table
    /// that it has made, and for all others from the commit on. (A transaction that has written to the table
    /// before goes on as it began.) Of several that say so the last to be committed counts.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-txn-ttl-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// use std::time::Duration;
    /// # let db = Db::open(&path, Options::new())?;
    /// let mut txn = db.write();
    /// let pages = txn.create_table("pages", TableKind::Hash)?;
    /// txn.set_usual_ttl(&pages, Some(Duration::from_secs(60)))?;
    /// txn.put(&pages, "/", "<html>")?;                           // for a minute
    /// txn.commit()?;
    /// assert_eq!(pages.usual_ttl(), Some(Duration::from_secs(60)));
    /// # drop(pages); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](WriteTxn::put); `Invalid` for a time of less than a millisecond, or of more than 1,100
    /// years. `NoSuchTable` here or at the commit if the table was dropped.
    pub fn set_usual_ttl(&mut self, table: &Table, ttl: Option<Duration>) -> Result<()> {
        let ttl_ms = ttl.map_or(Ok(0), lifetime_ms)?;
        self.db.engine.check_writable()?;
        self.buffer(table)?.ttl_ms = ttl_ms;
        self.changes().lives.insert(table.id, ttl_ms);
        Ok(())
    }

    /// How long a table's records live if the put does not say otherwise, as this transaction sees it: with
    /// what it has said itself. None if until they are removed, or if the table is not there.
    pub fn usual_ttl(&self, table: &Table) -> Option<Duration> {
        let own = self.tables.as_ref();
        let said = own.and_then(|own| own.changes.lives.get(&table.id)).copied();
        let ttl_ms = said.or_else(|| Some(self.db.engine.state.load().tables.get(table.id)?.ttl_ms))?;
        let is_there = own.is_none_or(|own| own.expect(table).is_ok());
        (is_there && ttl_ms > 0).then(|| Duration::from_millis(ttl_ms))
    }

    /// How long the records of each table live that this transaction has written to, after what was done with
    /// tables was rolled back.
    pub(in crate::txn) fn restore_lifetimes(&mut self) {
        let Some(own) = &self.tables else { return };
        for buffer in &mut self.buffers {
            buffer.ttl_ms = own.changes.lives.get(&buffer.table).copied().unwrap_or(buffer.found_ttl_ms);
        }
    }

    fn changes(&mut self) -> &mut Changes {
        Arc::make_mut(&mut self.tables.get_or_insert_default().changes)
    }

    /// The table of a name, and its kind.
    fn table_named(&mut self, name: &str) -> Result<Option<(u32, TableKind)>> {
        self.db.engine.life.check()?;
        let own = self.tables.get_or_insert_default();
        if let Some(known) = own.changes.names.get(name) {
            return Ok(*known);
        }
        let found = match self.db.engine.table_now(name) {
            Ok(table) => Some((table.id, table.kind)),
            Err(Error::NoSuchTable { .. }) => None,
            Err(e) => return Err(e),
        };
        let id = found.map(|(id, _)| id);
        let before = *own.seen.entry(name.into()).or_insert(id);
        // Somebody has renamed what this transaction has changed, or its snapshot has no table of that name,
        // or another one.
        let is_own = |id| own.changes.is_gone(id) || own.changes.renamed.contains_key(&id);
        let is_other = |t: &Arc<TableState>| &*t.name != name;
        let is_newer =
            |id| self.read.get().is_some_and(|r| r.snapshot.state().tables.get(id).is_none_or(is_other));
        if before != id || id.is_some_and(|id| is_own(id) || is_newer(id)) {
            return Err(conflict_error(name));
        }
        Ok(found)
    }

    /// What a key has that this transaction has removed, or never written in a table that it has made.
    #[inline(always)]
    pub(in crate::txn) fn nothing_in<T>(&self, table: &Table) -> Result<Option<T>> {
        match &self.tables {
            None => Ok(None),
            Some(own) => own.expect(table).map(|()| None),
        }
    }

    /// A table as the snapshot has it: without records if this transaction has made it.
    pub(in crate::txn) fn table_below(&self, table: &Table, state: &State) -> Result<Arc<TableState>> {
        if let Some(own) = &self.tables {
            own.expect(table)?;
            if own.has_made(table.id) {
                return Ok(Arc::new(TableState::new(table.id, table.kind, table.name.clone())));
            }
        }
        table.of(state).cloned()
    }
}
