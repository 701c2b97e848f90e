//! What a write transaction does for the indexes of the tables that it writes to.
//!
//! Before a record changes, its old value is read as the transaction sees it, and counts as read. The entries
//! that the old and the new value have are compared, and what differs is written to the hidden tables of the
//! same transaction. So savepoints, rollback, conflicts and recovery need to know nothing of indexes.
//!
//! Unique indexes are looked at when the transaction commits, so that two records can swap their values
//! within it. The prefix of what was added counts as read then, whatever the isolation is.

use super::buffer::TableBuffer;
use super::entries::{Added, Change, Indexed, Walk};
use super::get::{is_gone, lookup};
use super::local::{LocalWrite, lookup_local};
use super::value::resolve;
use super::write::WriteTxn;
use crate::base::error::{Error, Result};
use crate::base::fault::fault;
use crate::base::key::{SortKey, TableKind};
use crate::base::limits::KEY_BYTES_MAX;
use crate::cursor::{Cursor, Limits};
use crate::engine::state::{State, TableState};
use crate::engine::{Db, IndexSlot, Table, conflict_error, no_feed};
use crate::format::block::Tag;
use crate::format::expiry::{Content, Expiry};
use crate::format::hidden::{FIRST_ENTRY, IndexState, STATE_KEY, parse_name};
use crate::format::ranges::{Range, Ranges};
use crate::index::IndexSpec;
use std::sync::Arc;

/// What an index is of; none if it is not there any more. REQUIRES: the state shows the newest commit.
pub(crate) fn spec_of<'a>(db: &Db, slot: &'a IndexSlot) -> Result<Option<&'a IndexSpec>> {
    if let Some(spec) = slot.spec.get() {
        return Ok(Some(spec));
    }
    let state = db.engine.state.load();
    match state_of(db, &state, state.visible(), slot.id)? {
        Some(known) => {
            let spec = IndexSpec::parse(&known.spec)?;
            Ok(Some(slot.spec.get_or_init(|| spec)))
        }
        None => Ok(None),
    }
}

/// The state record of an index as a state shows it; none if the index is not there. A follower can see the
/// hidden table before it sees the record, which the log has.
pub(crate) fn state_of(db: &Db, state: &State, seq: u64, id: u32) -> Result<Option<IndexState>> {
    let Ok(table) = state.table(id) else { return Ok(None) };
    let read = |tag, slot: super::get::FoundValue<'_>, _| {
        resolve(tag, slot.bytes(), |reference| db.engine.read_large(state, reference), IndexState::decode)
    };
    lookup(table, seq, SortKey::new(STATE_KEY), || 0, read)?.transpose()?.transpose()
}

/// Appends the entry of a record to `out`. Gives how many bytes of it are the fields; none if the record has
/// no entry.
pub(crate) fn entry_of(
    spec: &IndexSpec,
    key: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<Option<usize>> {
    let start = out.len();
    if !spec.fields(key, value, out)? {
        return Ok(None);
    }
    let fields = out.len() - start;
    out.extend_from_slice(key);
    let (found, limit) = ((out.len() - start) as u64, KEY_BYTES_MAX as u64);
    if found > limit {
        return Err(Error::TooLarge { what: "entry of an index", found, limit });
    }
    Ok(Some(fields))
}

/// Writes an entry, which expires with its record.
pub(super) fn push_entry(buffer: &mut TableBuffer, entry: &[u8], tag: Tag, expiry: Expiry) {
    let mut stored = Vec::new();
    let expiry = if fault!("entry_outlives") { Expiry::NEVER } else { expiry };
    let (tag, stored) = Content { tag, value: &[], expiry }.stored(&mut stored);
    buffer.push(entry, tag, stored);
}

impl Indexed {
    /// Whether something was added that is to be unique.
    #[inline]
    pub(super) fn is_checked(&self) -> bool {
        !self.added.is_empty()
    }

    /// Notes what changes in an index when a record does. `stays`: it expires when it did before.
    fn compare(
        &mut self,
        (slot, spec): (usize, &IndexSpec),
        key: &[u8],
        (old, new): (Option<&[u8]>, Option<&[u8]>),
        stays: bool,
    ) -> Result<()> {
        let start = self.bytes.len();
        // A record for which there can be no entry has none: it was there before the index, which is still
        // being built.
        let had = !fault!("forget_entry")
            && old.is_some_and(|old| matches!(entry_of(spec, key, old, &mut self.bytes), Ok(Some(_))));
        if !had {
            self.bytes.truncate(start);
        }
        let middle = self.bytes.len();
        let fields = match new {
            Some(new) => entry_of(spec, key, new, &mut self.bytes)?,
            None => None,
        };
        let is_same = had && fields.is_some() && self.bytes[start..middle] == self.bytes[middle..];
        if is_same && stays {
            self.bytes.truncate(start);
            return Ok(());
        }
        if had && !is_same {
            self.changes.push(Change { slot, tag: Tag::Tombstone, entry: start..middle, checked: 0 });
        }
        if let Some(fields) = fields {
            let entry = middle..self.bytes.len();
            let is_checked = spec.is_unique() && spec.is_checked(&self.bytes[middle..middle + fields]);
            let checked = if is_checked { fields } else { 0 };
            self.changes.push(Change { slot, tag: Tag::Put, entry, checked });
        }
        Ok(())
    }
}

impl WriteTxn {
    /// Brings the indexes of a table to where they are to be when a record has a new value. REQUIRES: the
    /// record is written after this, and not before. After an error nothing was written.
    #[cold]
    #[inline(never)]
    pub(super) fn reindex(&mut self, table: &Table, key: &[u8], new: Option<(&[u8], Expiry)>) -> Result<()> {
        if self.buffer(table)?.indexes.is_none() {
            return Ok(());
        }
        // What has expired needs no care: so have its entries.
        let old = self.get_expiring(table, key, |value, expiry| (value.to_vec(), expiry))?;
        self.reindex_from(table, key, old.as_ref().map(|(value, expiry)| (value.as_slice(), *expiry)), new)
    }

    /// As `reindex`, where the old value is known, and counts as read.
    pub(super) fn reindex_from(
        &mut self,
        table: &Table,
        key: &[u8],
        old: Option<(&[u8], Expiry)>,
        new: Option<(&[u8], Expiry)>,
    ) -> Result<()> {
        let Some(list) = self.buffer(table)?.indexes.clone() else { return Ok(()) };
        let (was, expiry) = (old.map(|old| old.1), new.map_or(Expiry::NEVER, |new| new.1));
        let values = (old.map(|old| old.0), new.map(|new| new.0));
        let mut indexed = std::mem::take(&mut self.indexed);
        indexed.changes.clear();
        indexed.bytes.clear();
        let mut compare = || {
            for (i, slot) in list.iter().enumerate() {
                // If it was dropped meanwhile, the commit will conflict.
                if let Some(spec) = spec_of(&self.db, slot)? {
                    indexed.compare((i, spec), key, values, was == Some(expiry))?;
                }
            }
            Ok(())
        };
        let compared = compare();
        if compared.is_ok() {
            for change in &indexed.changes {
                let (id, entry) = (list[change.slot].id, &indexed.bytes[change.entry.clone()]);
                push_entry(self.hidden_buffer(id), entry, change.tag, expiry);
                if change.checked > 0 {
                    indexed.added.push(Added { id, entry: entry.to_vec(), fields: change.checked });
                }
            }
        }
        self.indexed = indexed;
        compared
    }

    /// Removes the entries of all records in a range of sort keys, which then are removed.
    #[cold]
    #[inline(never)]
    pub(super) fn unindex(&mut self, table: &Table, range: &Range) -> Result<()> {
        if range.start.is_empty() && range.end.is_none() {
            let list = self.buffer(table)?.indexes.clone();
            for slot in list.iter().flat_map(|list| list.iter()) {
                let entries = Range { start: FIRST_ENTRY.to_vec(), end: None };
                self.hidden_buffer(slot.id).remove_range(entries);
            }
            return Ok(());
        }
        let mut cursor = self.limited(table, Limits::from(range.clone()))?;
        while let Some((key, _)) = cursor.next()? {
            let key = key.to_vec();
            self.reindex(table, &key, None)?;
        }
        Ok(())
    }

    /// A conflict if this transaction wrote to a table before an index of it was made, and so has not kept
    /// it.
    pub(crate) fn expect_kept(&self, table: &Table, id: u32) -> Result<()> {
        self.db.expect(table)?;
        self.tables.iter().try_for_each(|own| own.expect(table))?;
        let Some(buffer) = self.place_of(table.id).map(|i| &self.buffers[i]) else { return Ok(()) };
        let is_kept = buffer.indexes.iter().flat_map(|list| list.iter()).any(|slot| slot.id == id);
        if is_kept || buffer.is_empty() { Ok(()) } else { Err(conflict_error(&table.name)) }
    }

    /// The buffer of an index's table.
    pub(super) fn hidden_buffer(&mut self, id: u32) -> &mut TableBuffer {
        let i = match self.place_of(id) {
            Some(i) => i,
            None => {
                self.buffers.push(TableBuffer::new(id, self.db.engine.memory.pool.clone()));
                self.note_place(id)
            }
        };
        &mut self.buffers[i]
    }

    /// Writes a record to the table of the feed. `Invalid` if there is none.
    pub(crate) fn write_feed(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        self.db.engine.check_writable()?;
        let table = self.db.engine.feed.fed().table.ok_or_else(|| no_feed(&self.db.engine.opened.path))?;
        self.hidden_buffer(table).push(key, tag, value);
        Ok(())
    }

    /// Checks that what was added to unique indexes is unique. Gives what was read for that, by table. An
    /// index that was dropped meanwhile refuses nothing: the commit will conflict.
    ///
    /// # Errors
    /// `NotUnique`.
    #[cold]
    #[inline(never)]
    pub(super) fn check_unique(&mut self) -> Result<Vec<(u32, Ranges)>> {
        let mut added = std::mem::take(&mut self.indexed.added);
        added.sort_unstable();
        added.dedup();
        added.retain(|a| self.own_entry(a.id, &a.entry) == Some(true));
        let mut looked = Vec::new();
        for group in added.chunk_by(|a, b| a.id == b.id) {
            let mut entries = Walk::new(self.entries(group[0].id)?);
            let mut ranges = Ranges::default();
            for (i, a) in group.iter().enumerate() {
                // In their order those with the same fields stand side by side.
                let next = group.get(i + 1).filter(|b| b.fields() == a.fields()).map(Added::key);
                if let Some(other) = next.or(self.other_before(a, &mut entries)?.as_deref()) {
                    match self.not_unique(a, other) {
                        Some(e) => return Err(e),
                        None => break,
                    }
                }
                ranges.add(Limits::prefix(a.fields()).as_range());
            }
            looked.push((group[0].id, ranges));
        }
        Ok(looked)
    }

    /// Whether an entry is there by the own writes. None: they say nothing of it.
    fn own_entry(&self, id: u32, entry: &[u8]) -> Option<bool> {
        match lookup_local(self.place_of(id).map(|i| &self.buffers[i]), entry) {
            LocalWrite::Untouched => None,
            LocalWrite::Removed => Some(false),
            LocalWrite::Written(tag, stored) => {
                let Content { tag, expiry, .. } = Content::of(tag, stored);
                Some(tag != Tag::Tombstone && !is_gone(expiry, || self.now()))
            }
        }
    }

    /// The key of another record that had the fields of an entry before this transaction, and keeps them.
    fn other_before(&self, added: &Added, entries: &mut Walk) -> Result<Option<Vec<u8>>> {
        entries.go_to(added.fields())?;
        while let Some(entry) = entries.entry().filter(|entry| entry.starts_with(added.fields())) {
            if entry != added.entry && self.own_entry(added.id, entry) != Some(false) {
                return Ok(Some(entry[added.fields..].to_vec()));
            }
            entries.step()?;
        }
        Ok(None)
    }

    /// A cursor over the table of an index as the snapshot has it. Nothing is noted as read.
    fn entries(&self, id: u32) -> Result<Cursor> {
        let read = self.snapshot();
        let (db, state, seq) = (read.db.clone(), read.snapshot.state().clone(), read.snapshot.seq());
        let table = match state.table(id) {
            Ok(table) => table.clone(),
            // The index is newer than the snapshot. All that is in it was committed later, and conflicts.
            Err(_) => Arc::new(TableState::new(id, TableKind::Ordered, "".into())),
        };
        Cursor::new(db, state, table, seq, read.now_if_used(), Vec::new(), Limits::none())
    }

    /// The error of two records with the same values. None if the index was dropped since they were looked
    /// at.
    #[cold]
    fn not_unique(&self, added: &Added, other: &[u8]) -> Option<Error> {
        let state = self.db.engine.state.load();
        let (table, index) = parse_name(&state.table(added.id).ok()?.name)?;
        let table = state.table(table).ok()?.name.to_string();
        let (index, key, other) = (index.to_owned(), added.key().to_vec(), other.to_vec());
        Some(Error::NotUnique { table, index, key, other })
    }
}
