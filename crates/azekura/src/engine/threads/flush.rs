//! The thread that flushes. Between flushes it merges chunks, and gives memory back (`idle.rs`).

use super::RETRY;
use crate::base::error::Error;
use crate::engine::chunks::merge_small_chunks;
use crate::engine::compaction::install::Installer;
use crate::engine::compaction::merges::Merges;
use crate::engine::flush::Flush;
use crate::engine::idle::MemoryWatch;
use crate::engine::watch::Watcher;

/// What the flushing thread uses.
pub(in crate::engine) struct FlushThread<'a> {
    pub(in crate::engine) flush: Flush<'a>,
    pub(in crate::engine) watcher: Watcher<'a>,
    pub(in crate::engine) memory: MemoryWatch<'a>,
}

impl FlushThread<'_> {
    /// From the thread's start to its end.
    pub(super) fn run(mut self) {
        let Flush { merges, freezer, .. } = self.flush;
        let (poison, Installer { background, committer, .. }) = (merges.poison, merges.installer);
        loop {
            self.memory.give_memory_back();
            if poison.check().is_ok() && !background.stopping() {
                // Sealing a buffer fails only where a commit would, which reports it.
                let _later = self.memory.freeze_remainder();
            }
            {
                let mut work = background.lock();
                if !freezer.has_frozen() {
                    if background.stopping() {
                        return;
                    }
                    background.wait_for_flush(&mut work);
                }
            }
            let crowded = background.take_crowded();
            if !freezer.has_frozen() {
                if let Some(table) = crowded.filter(|_| poison.check().is_ok() && !background.stopping()) {
                    merge_small_chunks(committer, freezer.state, &[table], None);
                }
                self.finish_flush();
                self.revoke_pins();
                continue;
            }
            let number = background.begin_flush();
            let mut done = self.flush.flush_frozen();
            if matches!(done, Err(Error::NoSpace { .. })) {
                // Merges give back what they have taken and not put in place.
                let _paused = background.pause_merges();
                done = self.flush.flush_frozen();
            }
            let failed = done.is_err();
            self.watcher.start_merges();
            background.end_flush(number, done);
            if failed {
                if poison.check().is_err() || background.stopping() {
                    return;
                }
                background.pause(RETRY);
            }
        }
    }

    /// Ends a flush that has put its runs in place and found no room for the checkpoint. A checkpoint is all
    /// that it needs.
    fn finish_flush(&self) {
        let merges = self.flush.merges;
        let background = merges.installer.background;
        let failed = background.has_flush_failed();
        if failed && merges.poison.check().is_ok() {
            match merges.checkpoints.write() {
                Ok(()) => background.forget_flush_error(),
                Err(_) => background.pause(RETRY),
            }
        }
    }

    /// Stops honouring pins that have come to keep more than they may since the last checkpoint.
    fn revoke_pins(&self) {
        let Merges { poison, checkpoints, installer: Installer { background, checkpointer, .. }, .. } =
            self.flush.merges;
        if poison.check().is_ok() && !background.stopping() && checkpointer.has_to_revoke() {
            // A failure poisons the handle. If there is no room for a checkpoint, the next one does it.
            let _later = checkpoints.write();
        }
    }
}
