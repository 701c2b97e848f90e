//! Closing: everything to the file, no more of it than is needed, and the file to others.

use super::Engine;
use super::checkpoint::Purpose;
use super::state::{State, TableState};
use crate::base::error::{Error, Result};
use std::sync::Arc;

impl Engine {
    /// Closes, and lets others open the file. Every other handle gets `Closed` from now on, and no read
    /// under way believes what comes after this (`storage/gate.rs`). If there is no room for what is not
    /// durable, the handle stays open (`is_open`) and keeps its threads. If it is the `last` one, it closes
    /// all the same.
    pub(crate) fn close(&self, is_open: &mut bool, last: bool) -> Result<()> {
        let closed = self.finish(is_open, last);
        if *is_open {
            return closed;
        }
        self.life.close();
        closed.and(self.let_go())
    }

    /// Gives the file's lock up: at once, or with the last reader of the mapping.
    fn let_go(&self) -> Result<()> {
        if !self.store.is_mapped() && self.following.handle().is_none() {
            return self.store.file.unlock().map_err(|e| Error::io("unlocking the database file", e));
        }
        drop(self.checkpointer.take_pending());
        let _commit = self.committer.lock();
        let mut last = State { lease: None, followed: None, ..self.state.load().copy() };
        if self.following.handle().is_some() {
            drop_memtables(&mut last);
        }
        self.state.store(Arc::new(last));
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
            if let Err(e @ Error::NotDurable { .. }) = self.syncer().save_all() {
                return Err(e);
            }
        }
        // Every commit is either before this, and saved below, or refused.
        self.committer.close();
        let saved = self.poison.check().and_then(|()| self.syncer().save_all());
        if !last && matches!(saved, Err(Error::NotDurable { .. })) {
            self.committer.reopen();
            return saved.map(drop);
        }
        *is_open = false;
        // They finish the step they are at.
        self.background.stop();
        self.log.give_up_ahead();
        self.values.stop();
        self.background.join();
        // It may have written more of the log meanwhile.
        self.log.give_up_ahead();
        self.checkpointer.free_spare();
        if !saved? {
            // The log has what could not be flushed, and the next handle reads it.
            return self.room_maker().trim();
        }
        // Threads that compact or tidy up notice it at their next step.
        let _paused = self.background.pause_merges();
        self.values.close_open()?;
        self.committer.lock().spare.clear();
        self.memory.end_load();
        let (clean, changed) = {
            let checkpoint = self.checkpointer.lock();
            (checkpoint.clean && !self.checkpointer.has_pending(), checkpoint.number != checkpoint.opened)
        };
        if !clean {
            self.checkpoints().write_for(Purpose::Close)?;
        } else if self.config.clock.is_ahead_of_file() {
            // Saves the clock, so that expired records stay expired for the next handle. On a full disk the
            // file stays as it was.
            let _noted = self.checkpoints().write_for(Purpose::Close);
        }
        if !clean || changed {
            // All is safe. What this cannot do, for want of room, the next handle does.
            let _shrunk = self.reclaimer().shrink_for_closing();
        }
        self.room_maker().trim()
    }
}

/// Nobody reads a closed follower's memtables, and their large values would keep its pin.
fn drop_memtables(state: &mut State) {
    let has_some = |t: &TableState| t.active.is_some() || !t.chunks.is_empty() || !t.frozen.is_empty();
    let tables: Vec<TableState> =
        state.tables.iter().filter(|t| has_some(t)).map(|t| (**t).clone()).collect();
    for table in tables {
        state.tables.set(TableState { active: None, chunks: Vec::new(), frozen: Arc::default(), ..table });
    }
}
