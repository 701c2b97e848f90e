//! Putting a commit into the memtables, and making it visible.
//!
//! Small parts go to the table's active buffer, large ones become chunks of their own. Nothing shows before
//! `publish` raises the visible number, or puts a new state in the place of the one there is.

use super::guarded::Commit;
use super::queue::Ready;
use crate::base::codec::usize_of;
use crate::base::error::Result;
use crate::base::sync::{ArcSwap, CountedArc};
use crate::engine::batch::BatchPart;
use crate::engine::catalog::Names;
use crate::engine::state::{ActiveBuf, State, TableState, publish};
use crate::format::block::Tag;
use crate::format::expiry::Content;
use crate::format::operand::{Operand, STORED_BYTES, is_long};
use crate::log::{Inserted, Log};
use crate::memtable::pool::Pool;
use crate::values::Segment;
use std::sync::Arc;

/// Where commits go: what readers see, and where chunks have their memory from.
pub(super) struct Memtables<'a> {
    pub(super) state: &'a ArcSwap<State>,
    pub(super) names: &'a Names,
    pub(super) pool: &'a Arc<Pool>,
    /// Whether the tables that the commit makes and drops are noted as indexes. Recovery does that for all at
    /// once.
    pub(super) attaches: bool,
}

impl Commit {
    /// Puts a commit's parts into the memtables and makes them visible.
    pub(super) fn apply(&mut self, to: &Memtables<'_>, seq: u64, ready: Vec<Ready>) -> Result<()> {
        let mut next: Option<State> = None;
        let state_now = to.state.load();
        let (parts, mut given_up) = (ready.len(), Vec::new());
        for part in ready {
            match part {
                Ready::Chunk(table, chunk) => {
                    let state = next.get_or_insert_with(|| state_now.copy());
                    let mut t = self.sealed(state.table(table)?, to.pool)?;
                    t.push_chunk(chunk)?;
                    self.live_bytes += t.live_bytes();
                    state.tables.set(t);
                }
                Ready::Tables(changes) => {
                    let state = next.get_or_insert_with(|| state_now.copy());
                    self.tables_changed = true;
                    state.tables_seq = seq;
                    if changes.iter().any(|change| change.is_joint(parts - 1)) {
                        state.joint_seq = seq;
                    }
                    given_up = to.names.change(state, changes, to.attaches);
                }
                Ready::Small(part) => {
                    let active = self.active_for(&part, &state_now, &mut next, to.pool)?;
                    self.insert(&active, seq, part)?;
                }
            }
        }
        publish(to.state, seq, next);
        if !given_up.is_empty() {
            to.names.give_up(given_up, &to.state.load());
        }
        Ok(())
    }

    /// Puts a commit with one small part into its table's active buffer, queues it for the log by reference
    /// to what stands there now, and makes it visible.
    pub(super) fn apply_small(
        &mut self,
        to: &Memtables<'_>,
        state_now: &State,
        log: &Log,
        seq: u64,
        part: BatchPart,
    ) -> Result<()> {
        let mut next: Option<State> = None;
        let active = self.active_for(&part, state_now, &mut next, to.pool)?;
        let table = part.table;
        let payload_bytes = self.insert(&active, seq, part)?;
        let own = Inserted { table, list: &active.list, nodes: &self.nodes, payload_bytes };
        // SAFETY: `insert` has noted what the buffer's inserts gave. It is not reset while this has it.
        unsafe { log.add_inserted(seq, own, None) };
        match next {
            None => state_now.show(seq),
            next => publish(to.state, seq, next),
        }
        Ok(())
    }

    /// As `apply_small`, with a record for the feed's table: the key, and what is `told`.
    pub(super) fn apply_told(
        &mut self,
        to: &Memtables<'_>,
        state_now: &State,
        log: &Log,
        seq: u64,
        (part, feed, key): (BatchPart, u32, &[u8]),
    ) -> Result<()> {
        let mut next: Option<State> = None;
        let active = self.active_for(&part, state_now, &mut next, to.pool)?;
        let told_bytes = key.len() + self.told.bytes().len();
        let feeding = self.active_with_room(feed, (1, told_bytes), state_now, &mut next, to.pool)?;
        let table = part.table;
        let payload_bytes = self.insert(&active, seq, part)?;
        let before = feeding.bytes();
        // SAFETY: the commit lock is held (`self` is what it guards), so this is the only insert, and the
        // last one happened before the lock was taken.
        let node = unsafe { feeding.list.insert(key, seq, Tag::Put as u8, self.told.bytes()) };
        debug_assert!(node.is_some(), "`fits` promised room");
        self.live_bytes += feeding.bytes() - before;
        let own = Inserted { table, list: &active.list, nodes: &self.nodes, payload_bytes };
        let told =
            Inserted { table: feed, list: &feeding.list, nodes: node.as_slice(), payload_bytes: told_bytes };
        // SAFETY: the buffers' inserts have just given these. Neither is reset while this has it.
        unsafe { log.add_inserted(seq, own, Some(told)) };
        match next {
            None => state_now.show(seq),
            next => publish(to.state, seq, next),
        }
        Ok(())
    }

    /// A table whose active buffer is sealed, so that something newer may come. Its bytes are not among the
    /// live ones.
    fn sealed(&mut self, table: &TableState, pool: &Arc<Pool>) -> Result<TableState> {
        let mut t = TableState::clone(table);
        self.live_bytes -= t.live_bytes().min(self.live_bytes);
        if t.active.is_none() && t.chunks.is_empty() {
            self.touched.push(t.id);
            t.begin_memtable();
        }
        self.keep_spare(t.seal_active(pool)?);
        self.chunk_added.push(t.id);
        Ok(t)
    }

    /// The active buffer of a part's table, with room for the part. A new one goes to the state that comes
    /// next.
    fn active_for(
        &mut self,
        part: &BatchPart,
        state_now: &State,
        next: &mut Option<State>,
        pool: &Arc<Pool>,
    ) -> Result<CountedArc<ActiveBuf>> {
        self.active_with_room(part.table, (part.block.len(), part.block.bytes()), state_now, next, pool)
    }

    /// The active buffer of a table, with room for so many records with so many bytes.
    fn active_with_room(
        &mut self,
        table: u32,
        (records, bytes): (usize, usize),
        state_now: &State,
        next: &mut Option<State>,
        pool: &Arc<Pool>,
    ) -> Result<CountedArc<ActiveBuf>> {
        let table = next.as_ref().unwrap_or(state_now).table(table)?;
        if let Some(active) = table.active.as_ref().filter(|a| a.list.fits(records, bytes)) {
            return Ok(active.clone());
        }
        let was_full = table.active.is_some();
        let mut t = self.sealed(table, pool)?;
        if was_full {
            t.active_is_full();
        }
        let active = self.new_active(usize_of(t.active_bytes), records, bytes);
        t.active = Some(active.clone());
        self.live_bytes += t.live_bytes();
        next.get_or_insert_with(|| state_now.copy()).tables.set(t);
        Ok(active)
    }

    /// Adds a part to an active buffer that has room for it. Notes in `nodes` where its records stand, and
    /// returns how many bytes their keys and values have. An operand is folded with what the buffer has of
    /// its key.
    fn insert(&mut self, active: &ActiveBuf, seq: u64, part: BatchPart) -> Result<usize> {
        if !part.segments.is_empty() {
            hold(&mut active.segments.lock(), part.segments);
        }
        let before = active.bytes();
        self.nodes.clear();
        let (mut payload_bytes, mut tmp) = (0, [0; 8]);
        for i in 0..part.block.len() {
            let (key, value, tag) = (part.block.key(i, &mut tmp), part.block.value(i), part.block.tag(i));
            let mut bytes = [0; STORED_BYTES];
            let (tag, value) = match tag {
                Tag::Expiring => in_buffer(active, key, value, &mut bytes)?,
                _ => (tag, value),
            };
            payload_bytes += key.len() + value.len();
            // SAFETY: the commit lock is held (`self` is what it guards), so this is the only insert,
            // and the last one happened before the lock was taken.
            let node = unsafe { active.list.insert(key, seq, tag as u8, value) };
            debug_assert!(node.is_some(), "`fits` promised room");
            self.nodes.extend(node);
        }
        self.live_bytes += active.bytes() - before;
        Ok(payload_bytes)
    }
}

/// What is added to a buffer for a record with a word. The operand of a number is folded with the newest
/// record of its key, so that readers find all that the buffer has of it in one place. It does not get
/// longer. (One with a length does, and a key with many would take the square of their bytes. So its readers
/// go on to older versions.)
fn in_buffer<'a>(
    active: &ActiveBuf,
    key: &[u8],
    stored: &'a [u8],
    bytes: &'a mut [u8; STORED_BYTES],
) -> Result<(Tag, &'a [u8])> {
    let content = Content::of(Tag::Expiring, stored);
    if content.tag != Tag::Operand || is_long(content.value) {
        return Ok((Tag::Expiring, stored));
    }
    let Some(older) = active.list.get(key, u64::MAX) else { return Ok((Tag::Expiring, stored)) };
    let operand = Operand::decode(content.value)?;
    Ok(operand.onto(Content::of(older.tag(), older.value))?.stored(bytes))
}

/// Adds segments to a list that holds each once.
fn hold(list: &mut Vec<Arc<Segment>>, more: Vec<Arc<Segment>>) {
    for segment in more {
        if !list.iter().any(|s| Arc::ptr_eq(s, &segment)) {
            list.push(segment);
        }
    }
}
