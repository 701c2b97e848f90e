//! Checkpoints: making a state of the tables the one that recovery starts from.
//!
//! The manifest goes to the file first, unless it fits the superblock. Then everything written so far is
//! synced, runs among it. Then superblock A is written durably. Superblock B follows, unsynced: the next
//! checkpoint's sync makes it durable before A is touched again. Only then are the extents freed that the
//! checkpoint no longer names.
//!
//! The manifest needs room, and so do values that are still to be written. If the disk has none, nothing has
//! happened yet and the checkpoint can be tried again. A failure after that poisons the handle.

mod checkpointer;
mod describe;
mod old_log;
mod request;

pub(super) use checkpointer::{Checkpoint, Checkpointer, PendingFree};
pub(super) use old_log::{OldLog, old_log_bytes};
pub(super) use request::{Purpose, ValueMove};

use super::commit::{Commit, Committer};
use super::counters::Counters;
use super::ids::Ids;
use super::pace::Pace;
use super::relief::Relief;
use super::state::State;
use crate::base::error::{Error, Result};
use crate::base::limits::align_up;
use crate::base::poison::Poison;
use crate::base::sync::ArcSwap;
use crate::format::manifest::Manifest;
use crate::format::superblock::ManifestAt;
use crate::log::Log;
use crate::space::{Extent, Space};
use crate::values::ValueStore;
use describe::describe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Room for the next manifest is not taken from the last of the reserve, which is this part of it.
const SPARED_PART: u64 = 4;

/// What a checkpoint says before the state does. If there is no room for it, nothing has happened.
#[derive(Clone, Copy)]
enum Change<'a> {
    Nothing,
    Tables(&'a dyn Fn(&State) -> State),
    Values(&'a ValueMove),
}

/// Writes checkpoints. Runs are out of its reach: it names them, and others write and merge them.
#[derive(Clone, Copy)]
pub(crate) struct Checkpoints<'a> {
    pub(super) checkpointer: &'a Checkpointer,
    pub(super) state: &'a ArcSwap<State>,
    pub(super) committer: &'a Committer,
    pub(super) log: &'a Log,
    pub(super) values: &'a ValueStore,
    pub(super) ids: &'a Ids,
    pub(super) space: &'a Space,
    pub(super) pace: &'a Pace,
    pub(super) relief: &'a Relief,
    pub(super) poison: &'a Poison,
    pub(super) counters: &'a Counters,
}

impl Checkpoints<'_> {
    /// Writes a checkpoint of the state as it is now.
    pub(super) fn write(&self) -> Result<()> {
        self.write_for(Purpose::Plain)
    }

    /// As `write`, for a purpose.
    pub(super) fn write_for(&self, purpose: Purpose) -> Result<()> {
        self.write_with(&mut self.checkpointer.lock(), purpose, Change::Nothing)
    }

    /// Writes a checkpoint, but none after closing has begun.
    pub(super) fn write_if_open(&self) -> Result<()> {
        let mut guard = self.checkpointer.lock();
        self.committer.check_open()?;
        self.write_with(&mut guard, Purpose::Plain, Change::Nothing)
    }

    /// Writes a checkpoint with other tables, and then changes the state to have them. After `NoSpace`
    /// nothing has changed. `change` says under the checkpoint lock whether the change may be made, and
    /// gives a function that makes it. That is called twice, on different states, since commits and merges
    /// go on meanwhile. `changed` gets the state before the change.
    pub(super) fn write_tables<F: Fn(&State) -> State>(
        &self,
        change: impl FnOnce(&State) -> Result<F>,
        changed: impl FnOnce(&mut Commit, &State),
    ) -> Result<()> {
        let mut guard = self.checkpointer.lock();
        self.committer.check_open()?;
        let change = change(&self.state.load())?;
        let armed = self.poison.armed("changing the tables");
        if let Err(e) = self.write_with(&mut guard, Purpose::Plain, Change::Tables(&change)) {
            armed.disarm();
            return Err(e);
        }
        let mut commit = self.committer.lock();
        let before = self.state.load_full();
        self.state.store(Arc::new(change(&before)));
        changed(&mut commit, &before);
        armed.disarm();
        // Without the locks: a dropped table may have much memory to give back.
        drop((commit, guard));
        drop(before);
        Ok(())
    }

    /// Writes a checkpoint in which a value segment stands in another place, and then moves it there.
    /// Nobody else names the new place before that. What is logged later may name either place, and the
    /// checkpoint's word counts. After an error that does not poison the handle, the segment is where it
    /// was.
    pub(super) fn write_move(&self, step: &ValueMove) -> Result<()> {
        let mut guard = self.checkpointer.lock();
        let armed = self.poison.armed("moving large values");
        let done = self.write_with(&mut guard, Purpose::Plain, Change::Values(step));
        if done.is_ok() {
            step.segment.moved(step.extents.clone(), step.left.clone());
        }
        armed.disarm();
        done
    }

    fn write_with(&self, guard: &mut Checkpoint, purpose: Purpose, change: Change<'_>) -> Result<()> {
        self.poison.check()?;
        if purpose == Purpose::StartLog {
            self.log.begin_chain(self.ids.next())?;
        }
        // Runs that were replaced before the state is looked at are not in it.
        let pending_free = self.checkpointer.take_pending();
        let mut state = self.state.load_full();
        if let Change::Tables(change) = change {
            state = Arc::new(change(&state));
        }
        let flushed = state.flushed_seq;
        let mut freed = if purpose == Purpose::Close { self.log.end_chain(flushed) } else { Vec::new() };
        let chain = self.log.chain_after(flushed);
        let kept = guard.old_logs.iter().filter(|l| l.last_seq > flushed).map(|l| &l.chain);
        let logs = kept.chain(&chain).cloned().collect();
        let moved = if let Change::Values(step) = change { Some(step) } else { None };
        let manifest = describe(&state, self.values, self.ids.peek(), logs, moved, &self.log.clock);
        guard.version = manifest.version();
        let (at, extent) = match self.make_room(guard, &manifest, purpose) {
            Err(e @ Error::NoSpace { .. }) if purpose != Purpose::Close => {
                self.checkpointer.free_later(pending_free);
                return Err(e);
            }
            placed => self.poison.guard(placed)?,
        };
        let bytes = match &at {
            ManifestAt::Extent { len, .. } => align_up(u64::from(*len)),
            ManifestAt::Inline(_) => 0,
        };
        let armed = self.poison.armed("writing a checkpoint");
        let done = self.checkpointer.publish(guard, at, extent, || self.poison.check_syncs());
        armed.disarm();
        let old = self.poison.guard(done)?;
        // Flushes come first.
        let flush_need = || self.relief.flush_need(self.pace, &self.state.load());
        let others = || flush_need() + self.relief.reserve_bytes() / SPARED_PART;
        self.checkpointer.keep_spare(guard, old, bytes, purpose, others);
        freed.extend(chain.into_iter().flat_map(|c| self.log.release(c.first_frame)));
        freed.extend(self.forget_old_logs(guard, flushed));
        freed.into_iter().for_each(|extent| self.space.free(extent));
        for old in pending_free {
            if let PendingFree::Run { run, extents } = old {
                run.free_parts_on_drop(extents);
            }
        }
        if purpose == Purpose::StartLog {
            self.log.published();
        }
        self.log.set_checkpoint(guard.number);
        self.log.clock.saved(manifest.clock_ms.unwrap_or(0));
        self.log.flushed(flushed);
        guard.flushed_seq = flushed;
        guard.clean = manifest.logs.is_empty();
        Ok(())
    }

    /// Extents that belong to no run and no value segment.
    pub(crate) fn live_extents(&self) -> Vec<Extent> {
        let guard = self.checkpointer.lock();
        let mut live: Vec<Extent> = guard.manifest.into_iter().chain(guard.spare).collect();
        live.extend(guard.old_logs.iter().flat_map(|l| l.segments.iter().copied()));
        live.extend(self.log.extents());
        live
    }

    /// Forgets chains of earlier handles that a flush has made needless. Gives their segments.
    fn forget_old_logs(&self, guard: &mut Checkpoint, flushed: u64) -> impl Iterator<Item = Extent> + use<> {
        let old_logs = std::mem::take(&mut guard.old_logs);
        let (needless, kept): (Vec<_>, _) = old_logs.into_iter().partition(|l| l.last_seq <= flushed);
        guard.old_logs = kept;
        self.counters.old_log_bytes.store(old_log_bytes(&guard.old_logs), Ordering::Relaxed);
        needless.into_iter().flat_map(|l| l.segments)
    }

    /// Does what needs room on the disk.
    fn make_room(
        &self,
        guard: &mut Checkpoint,
        manifest: &Manifest,
        purpose: Purpose,
    ) -> Result<(ManifestAt, Option<Extent>)> {
        let (at, extent) = self.checkpointer.place_manifest(guard, manifest, purpose)?;
        match self.values.sync() {
            Ok(()) => Ok((at, extent)),
            Err(e) => {
                extent.into_iter().for_each(|extent| self.checkpointer.put_aside(guard, extent));
                Err(e)
            }
        }
    }
}
