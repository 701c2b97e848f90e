//! Which threads are needed: what a change, the log's thread and the end of the engine have started or ended.

use super::Engine;
use super::background::LOOK;
use super::compaction::pick::{CLASSES, is_due};
use super::crew::Role;
use super::relocate::is_loose_for_idle_time;
use crate::base::error::{Error, Result};
use crate::base::sync::Instant;

impl Engine {
    /// Called before anything is changed: the background looks after it from now on. False if the system
    /// refuses the thread.
    #[inline(always)]
    pub(super) fn look_after(&self) -> bool {
        self.background.crew.has(Role::Log) || self.begin_to_look_after()
    }

    #[cold]
    fn begin_to_look_after(&self) -> bool {
        // Nobody has looked since the file was opened.
        self.room.look();
        self.background.crew.need(Role::Log).is_ok()
    }

    /// Starts the background at once if the file leaves something to do: it was not closed, or holds what
    /// idle time would merge, move or cut. Nothing is read to learn that. In doubt there is something.
    pub(super) fn look_after_what_waits(&self) -> Result<()> {
        if self.background.crew.has(Role::Log) || !self.something_waits()? {
            return Ok(());
        }
        // If it is refused, the first commit asks again.
        let _later = self.background.crew.need(Role::Log);
        Ok(())
    }

    fn something_waits(&self) -> Result<bool> {
        let keeps_with_limits = self.config.pins.are_set() && self.space.kept_bytes() > 0;
        if !self.checkpointer.is_clean() || self.room.is_tight() || keeps_with_limits {
            return Ok(true);
        }
        if !self.config.background_merges {
            return Ok(false);
        }
        let several = self.state.load().tables.with_runs().any(|t| t.levels.len() > 1);
        // Of tables with one level each, all that is looked at here is in memory.
        if several || is_loose_for_idle_time(&self.space) {
            return Ok(true);
        }
        let survey = self.survey();
        if survey.log_is_long(self.log.file_bytes()) || !survey.excess().is_empty() {
            return Ok(true);
        }
        if (0..CLASSES).any(|class| is_due(&self.state.load(), class, &self.sizes(), true)) {
            return Ok(true);
        }
        let bytes = self.file.len().map_err(|e| Error::io("reading the file's length", e))?;
        Ok(bytes > self.space.end())
    }

    /// What the log's thread does beside the log. It has looked at the disk at `looked`.
    pub(super) fn keep_watch(&self, looked: &mut Instant) {
        if looked.elapsed() >= LOOK {
            self.room.look();
            self.look_at_pins();
            *looked = Instant::now();
        }
        // What the system refuses is asked for again the next time. The thread that flushes comes first, for
        // idle time flushes too and must not start it.
        if self.background.crew.need(Role::Flush).is_ok() {
            let _later = self.background.crew.need(Role::Merge(CLASSES - 1));
        }
        if self.values.wants_writer() {
            let _later = self.background.crew.need(Role::Values);
        }
        self.start_merges();
    }

    /// Frees what only pins kept that are gone. Without a checkpoint nobody else looks. It waits for none: that
    /// looks itself, and the log's thread has commits that are due.
    fn look_at_pins(&self) {
        if self.space.kept_bytes() > 0
            && let Some(newest) = self.checkpointer.try_lock()
        {
            self.checkpointer.find_pins(&newest);
        }
    }

    /// Starts those that have a merge to do.
    pub(super) fn start_merges(&self) {
        for class in 0..CLASSES {
            let has_job = |_: &dyn Fn() -> bool| is_due(&self.state.load(), class, &self.sizes(), false);
            if !self.background.crew.has(Role::Merge(class))
                && self.background.look_at_runs(has_job) == Some(true)
            {
                let _later = self.background.crew.need(Role::Merge(class));
            }
        }
    }

    /// Ends the threads: they finish the step they are at.
    pub(super) fn stop_threads(&self) {
        self.background.stop();
        self.values.stop();
        self.background.wake();
        for thread in self.background.crew.end() {
            // A thread that panicked has already said so on standard error.
            let _panicked = thread.join();
        }
    }
}
