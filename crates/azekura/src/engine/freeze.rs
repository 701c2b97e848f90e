//! Freezing memtables for a flush: when, and how. Commits and flushes do it, under the commit lock.
//!
//! All memtables that hold something are frozen at one commit. The lock guards a list of them, so a freeze
//! costs no more for the tables that hold nothing.

use super::background::Background;
use super::bound::Bound;
use super::commit::Commit;
use super::crew::Role;
use super::memory::MemoryBudget;
use super::pace::Pace;
use super::state::{ReadBy, State, TableState};
use crate::base::error::Result;
use crate::base::sync::ArcSwap;
use crate::base::sync::atomic::Ordering;
use crate::log::Log;
use std::sync::Arc;

/// The log may take this part of what is alive before a flush, up to so much. So may large values: a memtable
/// has only references to most of them, and dead ones would stay until it is full.
const UNFLUSHED_PART: u64 = 8;
const LOG_BYTES_MAX: u64 = 64 << 20;
/// The log may always grow to this. Its segments are a part of it, and no smaller.
const LOG_BYTES_MIN: u64 = 1 << 20;

/// Freezes memtables. It knows neither the file nor its runs.
#[derive(Clone, Copy)]
pub(super) struct Freezer<'a> {
    pub(super) state: &'a ArcSwap<State>,
    pub(super) log: &'a Log,
    pub(super) memory: &'a MemoryBudget,
    pub(super) pace: &'a Pace,
    pub(super) bound: &'a Bound,
    pub(super) background: &'a Background,
}

impl Freezer<'_> {
    /// Whether memtables wait for a flush, or are being flushed.
    pub(super) fn has_frozen(&self) -> bool {
        self.state.load().has_frozen()
    }

    /// Memory that a flush of the live memtables would free. That is their own, or what the same commits take
    /// in the log's queue, if it is more: the queue has every version of a key.
    pub(super) fn held_bytes(&self, commit: &Commit) -> u64 {
        self.log.queued_bytes_from(commit.queued_before).max(commit.live_bytes as u64)
    }

    /// Freezes the memtables for a flush, if they are full and no flush is under way.
    pub(super) fn rotate_if_full(&self, commit: &mut Commit) -> Result<()> {
        let held_bytes = self.held_bytes(commit);
        self.pace.set_live(held_bytes);
        self.note_load();
        // A small durable commit takes a block of the log, however little it adds to memory. So the log is
        // bounded too, and with it the time that recovery takes.
        let (memtable_bytes, part) = (self.memory.memtable_bytes(), self.bound.alive() / UNFLUSHED_PART);
        let log_full = self.log.needless_bytes()
            >= self.memory.division().log_bytes.max(part.clamp(LOG_BYTES_MIN, LOG_BYTES_MAX));
        let values_full = commit.large_bytes >= memtable_bytes.max(part);
        if held_bytes >= self.memory.flush_bytes() || log_full || values_full {
            self.rotate(commit)?;
        }
        Ok(())
    }

    /// Called after memtables have grown: if they are not small any more, the flushing thread is to be there.
    fn note_load(&self) {
        if !self.memory.loading.load(Ordering::Relaxed) && !self.memory.is_small(self.pace.memtable_bytes()) {
            self.memory.loading.store(true, Ordering::Relaxed);
            let _later = self.background.crew.need(Role::Flush);
        }
    }

    /// Whether no memtable has anything that is not frozen. (Dropped tables may be among those that had.)
    pub(super) fn nothing_is_live(&self, commit: &Commit, state: &State) -> bool {
        let is_empty =
            |t: &TableState| t.active.as_ref().is_none_or(|a| a.list.is_empty()) && t.chunks.is_empty();
        commit.touched.iter().all(|&id| state.tables.get(id).is_none_or(|t| is_empty(t)))
    }

    /// Freezes the memtables. False if a flush is under way, or if nothing is in them and no table has
    /// changed. (What the log says of tables is needless when a manifest says it, as each flush makes one
    /// do.)
    pub(super) fn rotate(&self, commit: &mut Commit) -> Result<bool> {
        let state = self.state.load();
        if state.has_frozen() || self.nothing_is_live(commit, &state) && !commit.tables_changed {
            return Ok(false);
        }
        let mut next = state.copy();
        let mut frozen = Vec::with_capacity(commit.touched.len());
        let mut noted = Vec::with_capacity(commit.touched.len());
        for at in 0..commit.touched.len() {
            let Some(table) = state.tables.get(commit.touched[at]) else { continue };
            let mut t = TableState::clone(table);
            let live_bytes = t.live_bytes();
            commit.keep_spare(t.seal_active(&self.memory.pool)?);
            t.freeze(live_bytes);
            if !t.frozen.is_empty() {
                frozen.push(t.id);
            }
            next.tables.set(t);
        }
        noted.extend_from_slice(&frozen);
        for &id in &commit.noted {
            let Some(table) = next.tables.get(id).filter(|t| t.frozen.is_empty()) else { continue };
            let mut t = TableState::clone(table);
            t.pass_freeze();
            if t.was_read_by > ReadBy::Nobody {
                noted.push(id);
            }
            next.tables.set(t);
        }
        commit.noted = noted;
        self.pace.set_frozen(self.held_bytes(commit));
        commit.touched.clear();
        commit.tables_changed = false;
        commit.live_bytes = 0;
        commit.queued_before = self.log.added_bytes();
        commit.large_bytes = 0;
        self.pace.set_live(0);
        next.frozen_seq = next.visible();
        next.frozen = Some(frozen.into());
        self.state.store(Arc::new(next));
        // The error of the last flush says nothing of this one.
        self.background.forget_flush_error();
        // If the thread is refused, a caller that waits flushes, and the log's thread asks again.
        let _later = self.background.crew.need(Role::Flush);
        self.background.wake();
        Ok(true)
    }
}
