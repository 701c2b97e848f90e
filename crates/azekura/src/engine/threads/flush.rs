//! The thread that flushes, and waiting for it. Between flushes it gives memory back (`idle.rs`).

use super::RETRY;
use crate::base::error::{Error, Result};
use crate::engine::Engine;
use crate::engine::background::LOOK;
use crate::engine::checkpoint::Purpose;
use crate::engine::crew::Role;
use crate::engine::idle::Watch;
use std::time::Duration;

/// A caller who waits for a flush looks around this often.
const WAIT: Duration = Duration::from_millis(20);

impl Engine {
    pub(in crate::engine) fn flush_loop(&self) {
        let mut watch = Watch::new(self);
        loop {
            self.give_memory_back(&mut watch);
            if self.poison.check().is_ok() && !self.background.stopping() {
                // Sealing a buffer fails only where a commit would, which reports it.
                let _later = self.freeze_remainder(&mut watch);
            }
            {
                let mut work = self.background.lock();
                if !self.has_frozen() {
                    if self.background.stopping() {
                        return;
                    }
                    self.background.wait(&mut work, LOOK);
                }
            }
            if !self.has_frozen() {
                self.finish_flush();
                self.revoke_pins();
                continue;
            }
            let number = self.background.begin_flush();
            let mut done = self.flush_frozen();
            if matches!(done, Err(Error::NoSpace { .. })) {
                // Merges give back what they have taken and not put in place.
                let _paused = self.background.pause_merges();
                done = self.flush_frozen();
            }
            let failed = done.is_err();
            self.start_merges();
            self.background.end_flush(number, done);
            if failed {
                if self.poison.check().is_err() || self.background.stopping() {
                    return;
                }
                self.background.pause(RETRY);
            }
        }
    }

    /// Ends a flush that has put its runs in place and found no room for the checkpoint: a checkpoint is all
    /// that it needs.
    fn finish_flush(&self) {
        let failed = self.background.has_flush_failed();
        if failed && self.poison.check().is_ok() {
            match self.checkpoint(Purpose::Plain) {
                Ok(()) => self.background.forget_flush_error(),
                Err(_) => self.background.pause(RETRY),
            }
        }
    }

    /// Stops honouring pins that have come to keep more than they may since the last checkpoint.
    fn revoke_pins(&self) {
        if self.poison.check().is_ok() && !self.background.stopping() && self.checkpointer.has_to_revoke() {
            // A failure poisons the handle. If there is no room for a checkpoint, the next one does it.
            let _later = self.checkpoint(Purpose::Plain);
        }
    }

    /// Waits until a flush has ended or a moment has passed. Without a thread for it, flushes. An error if a
    /// flush that began after number `after` has failed.
    pub(in crate::engine) fn wait_for_flush(&self, after: u64) -> Result<()> {
        self.poison.check()?;
        if !self.config.threads || self.background.crew.need(Role::Flush).is_err() {
            return self.flush_frozen();
        }
        let mut work = self.background.lock();
        work.check_flushes(after)?;
        if self.has_frozen() {
            self.background.wait(&mut work, WAIT);
        }
        Ok(())
    }
}
