//! Which threads are needed: what the log's thread looks for, now and then.

use super::background::LOOK;
use super::compaction::install::Installer;
use super::compaction::merges::Merges;
use super::compaction::pick::{CLASSES, is_due};
use super::crew::Role;
use super::relocate::is_loose_for_idle_time;
use crate::base::error::{Error, Result};
use crate::base::sync::Instant;
use crate::log::Log;

/// Looks for work, and sees to it that there is a thread for it.
pub(super) struct Watcher<'a> {
    pub(super) merges: Merges<'a>,
    pub(super) log: &'a Log,
    /// Whether the background merges.
    pub(super) background_merges: bool,
}

impl Watcher<'_> {
    /// Whether the file leaves something to do: it was not closed, or holds what idle time would merge, move
    /// or cut. Nothing is read to learn that. In doubt there is something.
    pub(super) fn something_waits(&self) -> Result<bool> {
        let Merges { store, installer: Installer { state, checkpointer, .. }, .. } = self.merges;
        let space = &store.room.space;
        if !checkpointer.is_clean() || store.room.is_tight() {
            return Ok(true);
        }
        if !self.background_merges {
            return Ok(false);
        }
        let several = state.load().tables.with_runs().any(|t| t.levels.len() > 1);
        // If each table has one level, all that is looked at here is in memory.
        if several || is_loose_for_idle_time(space) {
            return Ok(true);
        }
        let survey = self.merges.survey();
        if survey.log_is_long(self.log.file_bytes()) || !survey.excess().is_empty() {
            return Ok(true);
        }
        if (0..CLASSES).any(|class| is_due(&state.load(), class, &self.merges.sizes(), true)) {
            return Ok(true);
        }
        let bytes = store.file.len().map_err(|e| Error::io("reading the file's length", e))?;
        Ok(bytes > space.end())
    }

    /// What the log's thread does beside the log. It has looked at the disk at `looked`.
    pub(super) fn keep_watch(&self, looked: &mut Instant) {
        let Merges { store, values, installer: Installer { background, .. }, .. } = self.merges;
        if looked.elapsed() >= LOOK {
            store.room.look();
            self.look_at_pins();
            *looked = Instant::now();
        }
        // What the system refuses is asked for again the next time. The thread that flushes comes first, for
        // idle time flushes too and must not start it.
        if background.crew.need(Role::Flush).is_ok() {
            let _later = background.crew.need(Role::Merge(CLASSES - 1));
        }
        if values.wants_writer() {
            let _later = background.crew.need(Role::Values);
        }
        self.start_merges();
    }

    /// Frees what was kept only by pins that are gone. Without a checkpoint nobody else looks. It does not
    /// wait for one: a checkpoint looks itself, and the log's thread has commits that are due.
    fn look_at_pins(&self) {
        let checkpointer = self.merges.installer.checkpointer;
        if self.merges.store.room.space.kept_bytes() > 0
            && let Some(newest) = checkpointer.try_lock()
        {
            checkpointer.find_pins(&newest);
        }
    }

    /// Starts the threads that have a merge to do.
    pub(super) fn start_merges(&self) {
        let Installer { state, background, .. } = self.merges.installer;
        for class in 0..CLASSES {
            let has_job = |_: &dyn Fn() -> bool| is_due(&state.load(), class, &self.merges.sizes(), false);
            if !background.crew.has(Role::Merge(class)) && background.look_at_runs(has_job) == Some(true) {
                let _later = background.crew.need(Role::Merge(class));
            }
        }
    }
}
