//! Commits that are made again after a conflict, from their own writes.
//!
//! Writes that depend on nothing that was read can be made over whatever others have left. Where there are
//! indexes they may still meet a conflict: by the old values of records, or by an index that comes or goes.
//! The commit then gives its writes back.

use super::tables::OwnTables;
use super::write::WriteTxn;
use crate::base::error::{Error, Result};
use crate::engine::{BatchPart, Refused, Table};
use crate::format::block::Tag;
use crate::format::expiry::Content;
use crate::values::ValuePointer;
use std::sync::Arc;

impl WriteTxn {
    /// Commits writes that depend on nothing that this transaction has read. Where
    /// [`commit`](WriteTxn::commit) gives `Conflict` all of them are made again, over what others have
    /// committed, until none comes between. So if two transactions write one key, the later commit counts.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("azekura-doc-blind-{}.azk", std::process::id()));
    /// # use azekura::{Db, Options, TableKind};
    /// # let db = Db::open(&path, Options::new())?;
    /// let born = db.table("born", TableKind::Ordered)?;
    /// let mut txn = db.write();
    /// txn.put(&born, "ada", "1815")?;
    /// let by_year = born.create_index("by_year", "v:u64")?;      // the transaction knows nothing of it
    /// txn.commit_blind()?;
    /// assert_eq!(by_year.count(&[1815.into()])?, 1);
    /// # drop((by_year, born)); db.close()?; std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), azekura::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`commit`](WriteTxn::commit), without `Conflict` but for one over the name of a table, and over a
    /// key whose value a [`merge`](WriteTxn::merge) had to read; an error that a new index has for a record;
    /// what reading the old values meets. Nothing is written then, but for `MirrorBehind`. It may take as
    /// long as others write the same keys of a table with indexes.
    pub fn commit_blind(mut self) -> Result<()> {
        let refused = Arc::new(Refused::default());
        loop {
            if self.has_merged_reading {
                return self.commit();
            }
            let tables = self.tables.clone();
            let Some(mut batch) = self.take_batch()? else { return Ok(()) };
            batch.refused = Some(refused.clone());
            let done = self.commit_batch(batch);
            self = match refused.take() {
                Some(parts) if matches!(done, Err(Error::Conflict { .. })) => self.again(parts, tables)?,
                _ => return done,
            };
        }
    }

    /// A new transaction with the writes of this one, and what it does with tables.
    #[cold]
    fn again(&self, parts: Vec<BatchPart>, tables: Option<Box<OwnTables>>) -> Result<WriteTxn> {
        let mut txn = WriteTxn::new(self.db.clone(), self.options);
        let made: Vec<Table> = tables.iter().flat_map(|own| own.made(&self.db)).collect();
        txn.tables = tables;
        made.iter().try_for_each(|table| txn.begin_made(table.id))?;
        for part in parts {
            if let Some(table) = made.iter().find(|table| table.id == part.table) {
                txn.write_again(table, part)?;
                continue;
            }
            // What was written to tables of indexes follows from the rest.
            if let Some((id, name)) = self.names.iter().find(|(id, _)| *id == part.table) {
                let kind = self.db.engine.state.load().table(*id).map_err(|e| self.named(e))?.kind;
                txn.write_again(&Table { db: self.db.clone(), id: *id, kind, name: name.clone() }, part)?;
            }
        }
        Ok(txn)
    }

    fn write_again(&mut self, table: &Table, part: BatchPart) -> Result<()> {
        let BatchPart { block, ranges, segments, .. } = part;
        // Its records are newer than its ranges.
        for range in ranges.iter() {
            self.remove_keys(table, range.clone())?;
        }
        let (mut tmp, mut key) = ([0; 8], Vec::new());
        for i in 0..block.len() {
            table.kind.user_key(block.key(i, &mut tmp), self.db.engine.store.hash_seed, &mut key)?;
            let content = block.content(i);
            let Content { tag, value, expiry } = content;
            if tag == Tag::Operand {
                self.merge_stored(table, &key, value)?;
                continue;
            }
            if self.buffer(table)?.indexes.is_some() {
                match tag {
                    Tag::Large => {
                        let value = self.db.engine.values.read(value)?;
                        self.reindex(table, &key, Some((&value, expiry)))?;
                    }
                    Tag::Tombstone => self.reindex(table, &key, None)?,
                    _ => self.reindex(table, &key, Some((value, expiry)))?,
                }
            }
            self.write_content(table, &key, content)?;
            if tag == Tag::Large {
                let len = u64::from(ValuePointer::decode(value)?.len);
                self.buffer(table)?.user_bytes += len.saturating_sub(value.len() as u64);
            }
        }
        let buffer = self.buffer(table)?;
        segments.into_iter().for_each(|segment| buffer.hold(segment));
        Ok(())
    }
}
