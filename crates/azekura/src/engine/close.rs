//! Closing: everything to the file, no more of it than is needed, and the file to others.

use super::Engine;
use super::checkpoint::Purpose;
use super::state::State;
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::Ordering;
use std::sync::Arc;

impl Engine {
    /// Closes, and lets others open the file: whoever still has a handle gets `Closed` from it, and no read
    /// that is under way believes what comes after this (`storage/gate.rs`). If there is no room for what is
    /// not durable, the handle stays open (`is_open`) and keeps its threads, unless this is the `last` of it:
    /// then what was saved is saved.
    pub(crate) fn close(&self, is_open: &mut bool, last: bool) -> Result<()> {
        let closed = self.finish(is_open, last);
        if *is_open {
            return closed;
        }
        self.life.close();
        closed.and(self.let_go())
    }

    /// Gives the file's lock up, at once or with the last of those who read it where it stands.
    fn let_go(&self) -> Result<()> {
        if !self.is_mapped() {
            return self.file.unlock().map_err(|e| Error::io("unlocking the database file", e));
        }
        let pending_free = std::mem::take(&mut *self.pending_free.lock());
        drop(pending_free);
        let _commit = self.lock_commit();
        self.state.store(Arc::new(State { lease: None, ..self.state.load().copy() }));
        Ok(())
    }

    /// Flushes, ends the threads and the log, and cuts the file to its length. The threads are left if
    /// nothing was closed.
    fn finish(&self, is_open: &mut bool, last: bool) -> Result<()> {
        if self.config.read_only {
            *is_open = false;
            return Ok(());
        }
        if !last && self.poison.check().is_ok() {
            // Mostly all there is to do, and others can still commit if there is no room for it.
            if let Err(e @ Error::NotDurable { .. }) = self.save_all() {
                return Err(e);
            }
        }
        // Every commit is before this, and saved, or refused.
        let commit = self.lock_commit();
        self.closed.store(true, Ordering::Release);
        drop(commit);
        let saved = self.poison.check().and_then(|()| self.save_all());
        if !last && matches!(saved, Err(Error::NotDurable { .. })) {
            self.closed.store(false, Ordering::Release);
            return saved.map(drop);
        }
        *is_open = false;
        self.stop_threads();
        self.free_spare();
        if !saved? {
            // The log has what could not be flushed, and the next handle reads it.
            return self.trim();
        }
        // Whoever settles or compacts notices at his next step.
        let _paused = self.pause_merges();
        self.values.close_open()?;
        self.lock_commit().clear_spares();
        self.end_load();
        let (clean, changed) = {
            let checkpoint = self.checkpoint.lock();
            (checkpoint.clean && self.pending_free.lock().is_empty(), checkpoint.number != checkpoint.opened)
        };
        if !clean {
            self.checkpoint(Purpose::Close)?;
        }
        if !clean || changed {
            // All is safe. What this cannot do, for want of room, the next handle does.
            let _shrunk = self.shrink_for_closing();
        }
        self.trim()
    }
}
